//! The answer of a read, from where it is made to where its client takes it.
//!
//! An answer is made under the lock that writers wait for, so that it shows one state. So whoever makes it never waits for
//! the client while somebody else waits for the lock: what the client does not take at once is kept encoded, as far as
//! there is memory for it, and beyond that the read ends.

use crate::budget::Held;
use crate::forwarding::Lock;
use millrace_p4runtime_api::v1::ReadResponse;
use prost::Message;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;

/// Most bytes of one answer that wait for its client, encoded.
pub const MAX_READ_BACKLOG: usize = 64 << 20;
/// How long a client may take nothing of its answer.
pub const STALL: Duration = Duration::from_secs(5);
/// How long a client may take for what was left of its answer when all of it had been made.
pub const TAKING_TIME: Duration = Duration::from_secs(60);
/// Messages that wait as they are.
const FRESH: usize = 2;

/// Where the messages of an answer wait.
#[derive(Debug)]
pub(crate) struct Queue(Arc<Shared>);

/// What the client takes.
#[derive(Debug)]
pub struct Answers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<QueueState>,
    /// Told when something was taken, or nobody is there any more.
    taken: Notify,
    held: Option<Held>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// How many messages were taken.
    taken: u64,
    is_ended: bool,
    is_left: bool,
    taker: Option<Waker>,
}

#[derive(Debug)]
enum Waiting {
    Fresh(ReadResponse),
    Encoded(Vec<u8>),
    Last(Status),
}

/// Why no more of an answer is made.
pub(crate) enum Full {
    /// The client has gone.
    Left,
    /// It is too slow, with what to tell it.
    Slow(Status),
}

/// Both ends of an answer, and what its memory counts for.
pub(crate) fn queue(held: Option<Held>) -> (Queue, Answers) {
    let shared = Arc::new(Shared { state: Mutex::default(), taken: Notify::new(), held });
    (Queue(Arc::clone(&shared)), Answers(shared))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: &mut QueueState, waiting: Waiting) {
        state.waiting.push_back(waiting);
        if let Some(taker) = state.taker.take() {
            taker.wake();
        }
    }

    fn give_back(&self, bytes: usize) {
        if let Some(held) = &self.held {
            held.give_back(bytes);
        }
    }

    /// Whether so many bytes more may wait.
    fn has_room(&self, state: &QueueState, bytes: usize) -> bool {
        state.bytes + bytes <= MAX_READ_BACKLOG
            && self.held.as_ref().is_none_or(|held| held.take(bytes).is_ok())
    }
}

impl Queue {
    /// Brings a message to the client. While there is no room for it, it waits for the client, unless somebody waits for
    /// the lock under which the message was made.
    pub(crate) async fn send(&self, message: ReadResponse, lock: &Lock) -> Result<(), Full> {
        let shared = &*self.0;
        {
            let mut state = shared.state();
            if state.is_left {
                return Err(Full::Left);
            }
            if state.waiting.len() < FRESH {
                shared.put(&mut state, Waiting::Fresh(message));
                return Ok(());
            }
        }
        let encoded = message.encode_to_vec();
        drop(message);
        loop {
            let taken = shared.taken.notified();
            {
                let mut state = shared.state();
                if state.is_left {
                    return Err(Full::Left);
                }
                if shared.has_room(&state, encoded.len()) {
                    state.bytes += encoded.len();
                    shared.put(&mut state, Waiting::Encoded(encoded));
                    return Ok(());
                }
            }
            tokio::select! {
                () = taken => {}
                () = lock.wanted() => return Err(Full::Slow(Status::aborted(format!(
                    "the client is slow, more of the answer waits for it than there is memory for (at most \
                     {MAX_READ_BACKLOG} bytes), and others wait for it: read again, or in parts"
                )))),
                () = tokio::time::sleep(STALL) => return Err(Full::Slow(nothing_taken())),
            }
        }
    }

    /// Whether the client has gone.
    pub(crate) fn is_left(&self) -> bool {
        self.0.state().is_left
    }

    /// All of the answer was made. Waits until the client has taken it, for as long as it may take.
    pub(crate) async fn finish(self, last: Option<Status>) {
        if let Some(last) = last {
            self.0.put(&mut self.0.state(), Waiting::Last(last));
        }
        let all = async {
            let mut seen = None;
            loop {
                let taken = self.0.taken.notified();
                {
                    let state = self.0.state();
                    if state.waiting.is_empty() || state.is_left {
                        return Ok(());
                    }
                    if seen == Some(state.taken) {
                        return Err(nothing_taken());
                    }
                    seen = Some(state.taken);
                }
                tokio::select! {
                    () = taken => seen = None,
                    () = tokio::time::sleep(STALL) => {}
                }
            }
        };
        let in_time = tokio::time::timeout(TAKING_TIME, all).await.unwrap_or_else(|_| {
            Err(Status::aborted(format!(
                "the client took more than {} seconds for an answer",
                TAKING_TIME.as_secs()
            )))
        });
        if let Err(late) = in_time {
            self.fail(late);
        }
    }

    /// The answer ends with an error, and what waits is given up.
    pub(crate) fn fail(&self, status: Status) {
        let mut state = self.0.state();
        state.waiting.clear();
        self.0.give_back(std::mem::take(&mut state.bytes));
        self.0.put(&mut state, Waiting::Last(status));
    }
}

fn nothing_taken() -> Status {
    Status::aborted(format!("the client took nothing for {} seconds", STALL.as_secs()))
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_ended = true;
        if let Some(taker) = state.taker.take() {
            taker.wake();
        }
    }
}

impl Stream for Answers {
    type Item = Result<ReadResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let shared = &*self.0;
        let mut state = shared.state();
        let Some(first) = state.waiting.pop_front() else {
            if state.is_ended {
                return Poll::Ready(None);
            }
            state.taker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let answer = match first {
            Waiting::Fresh(message) => Ok(message),
            Waiting::Encoded(bytes) => {
                state.bytes -= bytes.len();
                shared.give_back(bytes.len());
                // It was a message a moment ago.
                ReadResponse::decode(&*bytes).map_err(|error| Status::internal(error.to_string()))
            }
            Waiting::Last(status) => Err(status),
        };
        state.taken += 1;
        drop(state);
        shared.taken.notify_one();
        Poll::Ready(Some(answer))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_left = true;
        state.waiting.clear();
        self.0.give_back(std::mem::take(&mut state.bytes));
        drop(state);
        self.0.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::Forwarding;
    use millrace_p4runtime_api::v1::{Entity, RegisterEntry, entity};
    use tokio_stream::StreamExt;

    fn message(index: i64) -> ReadResponse {
        let index = Some(millrace_p4runtime_api::v1::Index { index });
        let entry = RegisterEntry { register_id: 1, index, data: None };
        ReadResponse { entities: vec![Entity { entity: Some(entity::Entity::RegisterEntry(entry)) }] }
    }

    #[tokio::test]
    async fn messages_come_in_order_whether_or_not_they_waited() {
        let lock = Lock::new(Forwarding::default());
        let (queue, mut answers) = queue(None);
        for index in 0..100 {
            assert!(queue.send(message(index), &lock).await.is_ok());
        }
        for index in 0..100 {
            assert_eq!(answers.next().await.unwrap().unwrap(), message(index));
        }
        queue.fail(Status::aborted("x"));
        drop(queue);
        assert!(answers.next().await.unwrap().is_err());
        assert!(answers.next().await.is_none());
    }

    #[tokio::test]
    async fn nobody_makes_more_for_a_client_that_has_gone() {
        let lock = Lock::new(Forwarding::default());
        let (queue, answers) = queue(None);
        drop(answers);
        assert!(matches!(queue.send(message(0), &lock).await, Err(Full::Left)));
        queue.finish(None).await;
    }
}
