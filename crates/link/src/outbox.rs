//! What waits for a client to read it: answers, for which there is always room, and frames and messages, for which there may be none.

use crate::limits::{MAX_REQUESTS, MAX_WAITING};
use crate::wire::ToHost;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The records for one client, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<ToHost>,
    /// Requests whose answers the client has not read, those that are still to come included.
    requests: usize,
    /// Frames and messages among the records.
    events: usize,
    is_closed: bool,
}

impl Outbox {
    /// Makes room for the answer to one more request, and waits while [`MAX_REQUESTS`] have theirs; false: it is closed.
    pub(crate) fn reserve(&self) -> bool {
        let mut state = self.lock();
        while state.requests >= MAX_REQUESTS && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.requests += 1;
        !state.is_closed
    }

    /// The answer to a request that has reserved its room.
    pub(crate) fn answer(&self, record: ToHost) {
        self.lock().records.push_back(record);
        self.changed.notify_all();
    }

    /// A frame or message, if there is room.
    pub(crate) fn offer(&self, record: ToHost) -> bool {
        let mut state = self.lock();
        let has_room = state.events < MAX_WAITING && !state.is_closed;
        if has_room {
            state.events += 1;
            state.records.push_back(record);
            self.changed.notify_all();
        }
        has_room
    }

    /// Waits for the next record; none: it is closed.
    pub(crate) fn next(&self) -> Option<ToHost> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(record) = state.records.pop_front() {
                match record {
                    ToHost::Event(_) | ToHost::Lost { .. } => state.events -= 1,
                    ToHost::Hello(_)
                    | ToHost::Words { .. }
                    | ToHost::Done { .. }
                    | ToHost::Said { .. }
                    | ToHost::Refused(_) => {
                        state.requests -= 1;
                    }
                }
                self.changed.notify_all();
                return Some(record);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing goes in or comes out any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.records.clear();
        self.changed.notify_all();
    }

    /// Waits until it is closed, but not longer than that.
    pub(crate) fn wait_for_close(&self, longest: Duration) {
        let open = |state: &mut State| !state.is_closed;
        drop(self.changed.wait_timeout_while(self.lock(), longest, open));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Event;
    use std::sync::Arc;

    fn frame(port: u16) -> ToHost {
        ToHost::Event(Event::Frame { port, bytes: Vec::new() })
    }

    #[test]
    fn answers_have_room_when_frames_have_none() {
        let outbox = Outbox::default();
        assert!(outbox.reserve());
        for port in 0..MAX_WAITING {
            assert!(outbox.offer(frame(port as u16)));
        }
        assert!(!outbox.offer(frame(0)));
        outbox.answer(ToHost::Done { tag: 1 });
        assert_eq!(outbox.next(), Some(frame(0)));
        assert!(outbox.offer(frame(9)));
        for _ in 1..MAX_WAITING {
            outbox.next();
        }
        assert_eq!((outbox.next(), outbox.next()), (Some(ToHost::Done { tag: 1 }), Some(frame(9))));
    }

    #[test]
    fn a_client_that_reads_no_answers_is_not_read_from() {
        let outbox = Arc::new(Outbox::default());
        assert!((0..MAX_REQUESTS).all(|_| outbox.reserve()));
        let waits = std::thread::spawn({
            let outbox = Arc::clone(&outbox);
            move || (outbox.reserve(), outbox.reserve())
        });
        outbox.answer(ToHost::Done { tag: 1 });
        assert_eq!(outbox.next(), Some(ToHost::Done { tag: 1 }));
        while outbox.lock().requests < MAX_REQUESTS {
            std::thread::yield_now();
        }
        outbox.close();
        assert_eq!(waits.join().unwrap(), (true, false));
        assert_eq!((outbox.next(), outbox.offer(frame(1))), (None, false));
    }
}
