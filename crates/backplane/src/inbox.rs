//! Packets that have come for somebody and that he has not taken yet: any number of senders, one taker.
//!
//! A lock is held for a batch, not for a packet. Where it can be, a batch goes through as it is: the inbox and its users exchange
//! their batches, and no packet is moved. All packets of one batch in here are of one memory and have taken as many links, so that
//! whoever takes it can switch it where it lies ([`Batch::burst`]).

use millrace_frames::{Batch, Packet};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Batches with so many packets together become one: the packets are moved.
const JOINED: usize = 32;
/// Empty batches that an inbox keeps for later.
const SPARE: usize = 2;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Packets in it, those of a later time not counted: a look costs no lock.
    waiting: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    batches: VecDeque<Batch>,
    spare: Vec<Batch>,
    /// Packets that may be taken only at a time, in the order of these.
    late: VecDeque<(u64, Packet)>,
    /// Packets that may be taken now.
    ready: usize,
    limit: usize,
}

impl Inner {
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.ready + self.late.len())
    }

    fn empty_batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Adds a packet after the others; there is room.
    fn push(&mut self, packet: Packet) {
        self.ready += 1;
        let fits = |last: &Batch| {
            !last.is_full() && last.packets().last().is_none_or(|before| before.is_like(&packet))
        };
        if !self.batches.back().is_some_and(fits) {
            let batch = self.empty_batch();
            self.batches.push_back(batch);
        }
        // The last batch has room.
        let _ = self.batches.back_mut().map(|last| last.push(packet));
    }

    /// Adds a whole batch as it is, or packet by packet where two small batches become one.
    fn push_all(&mut self, batch: &mut Batch) {
        let joins = self.batches.back().is_some_and(|last| last.len() + batch.len() <= JOINED);
        if !joins && batch.is_alike() {
            let mut whole = self.empty_batch();
            let count = batch.len();
            if whole.take_all(batch) {
                self.ready += count;
                return self.batches.push_back(whole);
            }
        }
        batch.drain().for_each(|packet| self.push(packet));
    }
}

impl Inbox {
    /// An empty one that holds so many packets at most.
    pub(crate) fn new(limit: usize) -> Inbox {
        let inner = Inner {
            batches: VecDeque::new(),
            spare: Vec::new(),
            late: VecDeque::new(),
            ready: 0,
            limit: limit.max(1),
        };
        Inbox { waiting: AtomicUsize::new(0), inner: Mutex::new(inner) }
    }

    /// Holds so many packets at most from now on; those that are there stay.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.inner().limit = limit.max(1);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held, and each change leaves it whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets that may be taken now.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Puts in as many packets of a batch as there is room for, from the first one on; the others stay in the batch. Says whether
    /// there was none before, so that the taker is to be told.
    #[inline]
    pub(crate) fn put(&self, batch: &mut Batch) -> bool {
        let mut inner = self.inner();
        let before = inner.ready;
        let room = inner.room();
        match batch.len() <= room {
            true => inner.push_all(batch),
            false => batch.drain_first(room).for_each(|packet| inner.push(packet)),
        }
        self.waiting.store(inner.ready, Ordering::Release);
        before == 0 && inner.ready > 0
    }

    /// Puts packets in that may be taken at a time and not before. No packet that is put in later may be taken earlier.
    pub(crate) fn put_late(&self, batch: &mut Batch, mut due_ns: impl FnMut(&Packet) -> u64) {
        let mut inner = self.inner();
        let mut earliest = inner.late.back().map_or(0, |(due, _)| *due);
        let room = inner.room();
        for packet in batch.drain_first(room) {
            earliest = earliest.max(due_ns(&packet));
            inner.late.push_back((earliest, packet));
        }
    }

    /// When the first packet may be taken that may not yet.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.inner().late.front().map(|(due, _)| *due)
    }

    /// Lets packets be taken whose time has come; says whether there are any to take.
    pub(crate) fn let_time_pass(&self, now_ns: u64) -> bool {
        let mut inner = self.inner();
        while let Some((_, packet)) = inner.late.pop_front_if(|(due, _)| *due <= now_ns) {
            inner.push(packet);
        }
        self.waiting.store(inner.ready, Ordering::Release);
        inner.ready > 0
    }

    /// Adds packets to a batch, up to its limit, all of them alike; says whether there are more.
    #[inline]
    pub(crate) fn take(&self, into: &mut Batch) -> bool {
        if self.waiting() == 0 {
            return false;
        }
        let mut inner = self.inner();
        let Some(first) = inner.batches.front_mut() else { return false };
        let count = first.len();
        if into.take_all(first) {
            inner.ready -= count;
        } else {
            let alike = match (into.packets().first(), first.packets().first()) {
                (Some(there), Some(here)) => there.is_like(here),
                _ => true,
            };
            let moved = if alike { into.room().min(count) } else { 0 };
            first.drain_first(moved).for_each(|packet| _ = into.push(packet));
            inner.ready -= moved;
        }
        if inner.batches.front().is_some_and(Batch::is_empty)
            && let Some(empty) = inner.batches.pop_front()
            && inner.spare.len() < SPARE
        {
            inner.spare.push(empty);
        }
        self.waiting.store(inner.ready, Ordering::Release);
        inner.ready > 0
    }

    /// Takes all packets out, also those of a later time; how many there were.
    pub(crate) fn clear(&self) -> usize {
        let mut inner = self.inner();
        let count = inner.ready + inner.late.len();
        inner.batches.clear();
        inner.late.clear();
        inner.ready = 0;
        self.waiting.store(0, Ordering::Release);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_frames::PacketPool;

    fn batch(pool: &mut PacketPool, numbers: std::ops::Range<u8>, hops: u8) -> Batch {
        let mut batch = Batch::new();
        for number in numbers {
            let packet = batch.add(pool).unwrap();
            packet.set_frame(&[number; 60]).unwrap();
            packet.hops = hops;
        }
        batch
    }

    fn numbers(batch: &Batch) -> Vec<u8> {
        batch.packets().iter().map(|packet| packet.data()[0]).collect()
    }

    #[test]
    fn packets_leave_in_their_order_and_what_has_no_room_stays_with_the_sender() {
        let mut pool = PacketPool::new(256);
        let inbox = Inbox::new(70);
        let mut first = batch(&mut pool, 0..64, 0);
        assert!(inbox.put(&mut first) && first.is_empty());
        let mut second = batch(&mut pool, 64..80, 0);
        assert!(!inbox.put(&mut second));
        assert_eq!(numbers(&second), (70..80).collect::<Vec<u8>>());
        let mut taken = Batch::new();
        assert!(inbox.take(&mut taken));
        assert_eq!(numbers(&taken), (0..64).collect::<Vec<u8>>());
        taken.recycle(&mut pool);
        assert!(!inbox.take(&mut taken) && inbox.waiting() == 0);
        assert_eq!(numbers(&taken), (64..70).collect::<Vec<u8>>());
    }

    #[test]
    fn a_batch_that_is_taken_has_one_memory_and_one_number_of_links() {
        let (mut pool, mut other) = (PacketPool::new(64), PacketPool::new(64));
        let inbox = Inbox::new(100);
        for mut batch in [
            batch(&mut pool, 0..4, 0),
            batch(&mut other, 4..6, 0),
            batch(&mut other, 6..9, 1),
            batch(&mut other, 9..10, 1),
        ] {
            inbox.put(&mut batch);
        }
        let mut takes = Vec::new();
        for _ in 0..3 {
            let mut taken = Batch::new();
            inbox.take(&mut taken);
            assert!(taken.is_alike());
            takes.push(numbers(&taken));
        }
        assert_eq!(takes, [vec![0, 1, 2, 3], vec![4, 5], vec![6, 7, 8, 9]]);
        // A batch that has some takes no others.
        let (mut one, mut more) = (batch(&mut pool, 1..2, 0), batch(&mut other, 2..3, 0));
        inbox.put(&mut more);
        assert!(inbox.take(&mut one));
        assert_eq!((numbers(&one), inbox.waiting()), (vec![1], 1));
    }

    #[test]
    fn a_small_batch_is_taken_in_parts() {
        let mut pool = PacketPool::new(64);
        let inbox = Inbox::new(100);
        inbox.put(&mut batch(&mut pool, 0..10, 0));
        let mut taken = Batch::with_limit(4);
        assert!(inbox.take(&mut taken));
        assert_eq!((numbers(&taken), inbox.waiting()), (vec![0, 1, 2, 3], 6));
    }

    #[test]
    fn late_packets_wait_for_their_time_in_order() {
        let mut pool = PacketPool::new(64);
        let inbox = Inbox::new(4);
        let mut late = batch(&mut pool, 0..6, 0);
        inbox.put_late(&mut late, |packet| 100 + 10 * u64::from(packet.data()[0]));
        assert_eq!((numbers(&late), inbox.waiting(), inbox.due_ns()), (vec![4, 5], 0, Some(100)));
        assert!(!inbox.let_time_pass(99) && inbox.let_time_pass(115));
        assert_eq!((inbox.waiting(), inbox.due_ns()), (2, Some(120)));
        assert_eq!(inbox.clear(), 4);
        drop(late);
        assert_eq!(pool.available(), 64);
    }
}
