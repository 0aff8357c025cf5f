//! Queues that the thread of a lane alone uses, without locks.
//!
//! Mostly a lane fills and empties its queues itself: its ports have frames for its switches, and these send by its ports. A lock would
//! cost it twice: the operation, and the time until all that the processor has written before is in its cache. So each inbox
//! ([`crate::inbox`]) has a queue in memory of the lane's thread, and one with a lock for all other threads.
//!
//! Whether the calling thread is the lane says a number ([`LaneKey`]), so nobody else reaches the queues of a lane: they are in a variable
//! of its thread. An inbox may end on any thread. Then its place is given to the next one, which finds what was left there by a number that is
//! not its own, and throws that away.

use crate::inbox::Queue;
use millrace_frames::ask_for_start;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The number of the lane that is this thread; 0: it is none.
    static LANE: Cell<u64> = const { Cell::new(0) };
    static QUEUES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// The next number of a lane, or of an inbox: none is given twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether the calling thread is the lane of that number.
#[inline]
pub(crate) fn is_lane(number: u64) -> bool {
    LANE.get() == number
}

/// Tells the thread of a lane from others.
#[derive(Debug)]
pub(crate) struct LaneKey {
    lane: u64,
    places: Mutex<Places>,
}

/// The places of the lane's queues.
#[derive(Debug, Default)]
struct Places {
    made: usize,
    free: Vec<usize>,
}

impl LaneKey {
    pub(crate) fn new() -> Arc<LaneKey> {
        Arc::new(LaneKey { lane: next(), places: Mutex::default() })
    }

    /// The calling thread is the lane from now on.
    pub(crate) fn enter(&self) {
        LANE.set(self.lane);
    }

    /// The calling thread is no lane any more.
    #[cfg(test)]
    pub(crate) fn leave() {
        LANE.set(0);
    }

    /// The number of the lane.
    pub(crate) fn number(&self) -> u64 {
        self.lane
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place of a lane's queue: a cache line, as the queues of hundreds of switches are in none.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    /// The number of the queue that has it.
    number: u64,
    queue: Queue,
}

const _: () = assert!(size_of::<Place>() == 64);

/// A queue of a lane.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct OwnQueue {
    lane: u64,
    number: u64,
    place: usize,
    key: Arc<LaneKey>,
}

impl OwnQueue {
    pub(crate) fn new(key: &Arc<LaneKey>) -> OwnQueue {
        let mut places = key.places();
        let place = places.free.pop().unwrap_or(places.made);
        places.made = places.made.max(place + 1);
        drop(places);
        OwnQueue { key: Arc::clone(key), lane: key.lane, place, number: next() }
    }

    /// Does something with the queue; none: the calling thread is not the lane. `work` uses no other queue of a lane.
    #[inline]
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        if LANE.get() != self.lane {
            return None;
        }
        QUEUES.with_borrow_mut(|queues| match queues.get_mut(self.place) {
            Some(Place { number, queue }) if *number == self.number => Some(work(queue)),
            _ => Some(work(self.begin(queues))),
        })
    }

    /// Has the processor bring the queue, if the calling thread is the lane.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        if LANE.get() == self.lane {
            QUEUES.with_borrow(|queues| queues.get(self.place).into_iter().for_each(ask_for_start));
        }
    }

    /// The queue, which is used for the first time.
    #[cold]
    fn begin<'q>(&self, queues: &'q mut Vec<Place>) -> &'q mut Queue {
        if queues.len() <= self.place {
            queues.resize_with(self.place + 1, Default::default);
        }
        queues[self.place] = Place { number: self.number, queue: Queue::default() };
        &mut queues[self.place].queue
    }
}

impl Drop for OwnQueue {
    fn drop(&mut self) {
        self.key.places().free.push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Mix;
    use millrace_frames::{Batch, PacketPool};

    #[test]
    fn a_place_is_empty_for_the_next_queue_and_nobody_but_the_lane_gets_there() {
        let key = LaneKey::new();
        let mut pool = PacketPool::new(2);
        let queue = OwnQueue::new(&key);
        assert_eq!(queue.with(|queue| queue.len()), None);
        key.enter();
        let mut batch = Batch::new();
        batch.add(&mut pool).unwrap();
        queue.with(|queue| queue.push_all(&mut batch, Mix::Alike));
        assert_eq!(queue.with(|queue| queue.len()), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(queue.with(|queue| queue.len()), None);
                drop(queue);
            });
        });
        let next = OwnQueue::new(&key);
        assert_eq!((next.place, next.with(|queue| queue.len())), (0, Some(0)));
        assert_eq!(pool.available(), 2, "what was left there went back");
        let other = LaneKey::new();
        other.enter();
        assert_eq!(next.with(|queue| queue.len()), None);
        assert_eq!(OwnQueue::new(&key).place, 1);
        LaneKey::leave();
    }
}
