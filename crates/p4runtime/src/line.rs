//! The server's end of a stream: what waits for its client, and what tells the stream to end. It is there before the client
//! has said which device it is for.

use crate::budget::Held;
use crate::caller::Caller;
use crate::peers::OpenStream;
use millrace_p4runtime_api::v1::{StreamMessageResponse, stream_message_response::Update};
use prost::Message;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::{Notify, mpsc};
use tokio_stream::Stream;
use tonic::Status;

/// Most streams of one connection.
pub const MAX_STREAMS_OF_CONNECTION: usize = 32;
/// Most messages that wait for one stream.
pub(crate) const STREAM_QUEUE: usize = 1024;
/// Most bytes of memory that messages for one stream take.
pub const MAX_STREAM_BACKLOG: usize = 4 << 20;
/// Places of a stream's queue that only arbitration may take, so that a client that is flooded with packets still learns
/// who is the primary.
const RESERVED: usize = 128;

pub(crate) type Answer = Result<StreamMessageResponse, Status>;

/// An open stream.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) caller: Arc<Caller>,
    pub(crate) end: Arc<End>,
    pub(crate) answers: mpsc::Sender<Answer>,
    backlog: Arc<Backlog>,
}

impl Line {
    /// A stream opens, if its connection may have another one. Gives what its client takes, and what counts it until it is
    /// dropped.
    pub(crate) fn open(
        caller: Arc<Caller>,
        held: Option<Held>,
    ) -> Result<(Line, StreamAnswers, OpenStream), Status> {
        let place = OpenStream::of(&caller.peer, MAX_STREAMS_OF_CONNECTION)
            .ok_or_else(|| full(MAX_STREAMS_OF_CONNECTION, "of one connection"))?;
        let (answers, waiting) = mpsc::channel(STREAM_QUEUE);
        let backlog = Arc::new(Backlog { bytes: AtomicUsize::new(0), held });
        let taken = StreamAnswers { waiting, backlog: Arc::clone(&backlog) };
        Ok((Line { caller, end: Arc::default(), answers, backlog }, taken, place))
    }

    /// Sends a message if there is room that is not reserved.
    pub(crate) fn send(&self, update: Update) -> bool {
        let bytes = memory(&update);
        if self.answers.capacity() <= RESERVED || !self.backlog.take(bytes) {
            return false;
        }
        let sent = self.send_first(update);
        if !sent {
            self.backlog.give_back(bytes);
        }
        sent
    }

    /// Sends a message that may take what is reserved.
    pub(crate) fn send_first(&self, update: Update) -> bool {
        self.answers.try_send(Ok(StreamMessageResponse { update: Some(update) })).is_ok()
    }
}

/// Tells a stream that it has to end, and why.
#[derive(Debug, Default)]
pub(crate) struct End {
    status: Mutex<Option<Status>>,
    told: Notify,
}

impl End {
    pub(crate) fn tell(&self, status: Status) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        self.told.notify_one();
    }

    pub(crate) async fn told(&self) -> Status {
        self.told.notified().await;
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner).take();
        status.unwrap_or_else(|| Status::cancelled("the stream has ended"))
    }
}

/// Memory of the messages that wait for a stream.
#[derive(Debug)]
struct Backlog {
    bytes: AtomicUsize,
    held: Option<Held>,
}

impl Backlog {
    fn take(&self, bytes: usize) -> bool {
        let fits = self.bytes.load(Relaxed) + bytes <= MAX_STREAM_BACKLOG
            && self.held.as_ref().is_none_or(|held| held.take(bytes).is_ok());
        if fits {
            self.bytes.fetch_add(bytes, Relaxed);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
        if let Some(held) = &self.held {
            held.give_back(bytes);
        }
    }
}

/// What the client of a stream takes.
#[derive(Debug)]
pub struct StreamAnswers {
    waiting: mpsc::Receiver<Answer>,
    backlog: Arc<Backlog>,
}

impl StreamAnswers {
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Stream for StreamAnswers {
    type Item = Answer;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let answer = ready!(self.waiting.poll_recv(cx));
        if let Some(Ok(StreamMessageResponse { update: Some(update) })) = &answer {
            self.backlog.give_back(memory(update));
        }
        Poll::Ready(answer)
    }
}

/// About the memory of a message that waits; of arbitration nothing, since nothing may be in its way.
fn memory(update: &Update) -> usize {
    match update {
        Update::Arbitration(_) => 0,
        Update::Packet(packet) => 256 + packet.payload.len(),
        // Values of few bytes, each a structure of its own.
        Update::Digest(list) => 256 + 12 * list.encoded_len(),
        other => 256 + 4 * StreamMessageResponse { update: Some(other.clone()) }.encoded_len(),
    }
}

pub(crate) fn full(most: usize, of: &str) -> Status {
    Status::resource_exhausted(format!("at most {most} streams {of}"))
}
