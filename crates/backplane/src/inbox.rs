//! Packets that have come for somebody and that he has not taken yet: any number of senders, one taker, which is the thread of a lane.
//!
//! Where it can be, a batch goes through as it is: the inbox and its users exchange their batches, and no packet is moved. An inbox that nothing
//! waits in has no memory for packets, so that the lane's next batch has what is in the cache ([`Batch::rest`]). All packets
//! of one batch in here are of one memory and have taken as many links, so that whoever takes it can switch it where it lies
//! ([`Batch::burst`]), but where they are for a port of the machine, which takes any ([`Mix`]).
//!
//! What the lane puts in itself goes into a queue of its own ([`crate::own`]), what other threads put in into one with a lock, which is held
//! for a batch and not for a packet. The packets of one sender stay in their order, as that is one thread as long as it lives.

use crate::counts::{Counts, Hand};
use crate::own::{LaneKey, OwnQueue};
use millrace_frames::{Batch, Packet, ask_for_start};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which packets may be in one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Those of one memory that have taken as many links.
    Alike,
    /// Any: nobody compares them.
    Any,
}

/// Packets in their order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The first batch, empty only if there is no other.
    head: Batch,
    /// Those after it. Mostly there are none, and an inbox is no longer than it has to be.
    #[allow(clippy::box_collection, reason = "a pointer, so that a queue is in one cache line")]
    others: Option<Box<VecDeque<Batch>>>,
    count: usize,
}

impl Queue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The last batch, which may be empty only if it is the first.
    #[inline]
    fn last(&mut self) -> &mut Batch {
        let others = self.others.as_mut();
        others.and_then(|others| others.back_mut()).unwrap_or(&mut self.head)
    }

    /// An empty batch after the others.
    fn add_batch(&mut self) -> &mut Batch {
        let Queue { head, others, .. } = self;
        if head.is_empty() && others.as_ref().is_none_or(|others| others.is_empty()) {
            return head;
        }
        others.get_or_insert_default().push_back_mut(Batch::new())
    }

    /// Adds a packet after the others.
    fn push(&mut self, packet: Packet, mix: Mix) {
        self.count += 1;
        let fits = |last: &mut Batch| {
            let is_like = |before: &Packet| mix == Mix::Any || before.is_like(&packet);
            !last.is_full() && last.packets().last().is_none_or(is_like)
        };
        if !fits(self.last()) {
            self.add_batch();
        }
        // The last batch has room.
        let _ = self.last().push(packet);
    }

    /// Adds a whole batch as it is, or after the packets of the last one where that has room: fewer batches take less time.
    #[inline]
    pub(crate) fn push_all(&mut self, batch: &mut Batch, mix: Mix) {
        if batch.is_empty() {
            return;
        }
        let (count, last) = (batch.len(), self.last());
        let is_like_last = match (last.packets().last(), batch.packets().first()) {
            (Some(last), Some(first)) => mix == Mix::Any || last.is_like(first),
            _ => false,
        };
        if (mix == Mix::Any || batch.is_alike())
            && (is_like_last && last.join(batch) || self.add_batch().take_all(batch))
        {
            self.count += count;
            return;
        }
        batch.drain().for_each(|packet| self.push(packet, mix));
    }

    /// Adds packets to a batch, up to its limit, which may be in one batch with those there.
    #[inline]
    fn take(&mut self, into: &mut Batch, mix: Mix) {
        let first = &mut self.head;
        let count = first.len();
        if into.take_all(first) {
            self.count -= count;
        } else {
            let alike = match (into.packets().first(), first.packets().first()) {
                (Some(there), Some(here)) => mix == Mix::Any || there.is_like(here),
                _ => true,
            };
            let moved = if alike { into.room().min(count) } else { 0 };
            first.drain_first(moved).for_each(|packet| _ = into.push(packet));
            self.count -= moved;
        }
        if first.is_empty()
            && let Some(next) = self.others.as_mut().and_then(|others| others.pop_front())
        {
            std::mem::replace(first, next).rest();
        }
    }

    /// Takes all packets out; how many there were.
    fn clear(&mut self) -> usize {
        let count = self.count;
        *self = Queue::default();
        count
    }
}

/// See the module's documentation.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Inbox {
    /// Packets that the lane has put in; it alone changes this.
    own_waiting: AtomicU32,
    /// Packets that others have put in, those of a later time not counted: a look costs no lock.
    waiting: AtomicU32,
    limit: AtomicU32,
    /// Whether the lane takes from what others have put in first, the next time: one after the other, so that nobody waits for ever.
    others_next: AtomicBool,
    mix: Mix,
    /// Whether the lane is that of the switch whose packets these are.
    hand: Hand,
    counts: Arc<Counts>,
    own: OwnQueue,
    others: Box<Mutex<Others>>,
}

/// What other threads than the lane put in, and what may be taken only later.
#[derive(Debug, Default)]
struct Others {
    ready: Queue,
    /// Packets that may be taken only at a time, in the order of these.
    late: VecDeque<(u64, Packet)>,
}

impl Inbox {
    /// An empty one that holds so many packets at most, of that lane; whose packets they are, and whether that switch is on the lane.
    pub(crate) fn new(
        limit: usize,
        mix: Mix,
        lane: &Arc<LaneKey>,
        (counts, is_on_lane): (Arc<Counts>, bool),
    ) -> Inbox {
        Inbox {
            own_waiting: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            limit: AtomicU32::new(count(limit).max(1)),
            others_next: AtomicBool::new(false),
            mix,
            hand: if is_on_lane { Hand::Lane } else { Hand::Any },
            counts,
            own: OwnQueue::new(lane),
            others: Box::default(),
        }
    }

    /// Holds so many packets at most from now on; those that are there stay.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(count(limit).max(1), Ordering::Relaxed);
    }

    /// How many packets it holds at most.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        // Nothing panics while it is held, and each change leaves it whole.
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the processor bring what puts packets in uses: the inbox is in the cache itself, and that is soon.
    #[inline]
    pub(crate) fn ask_ahead(&self) {
        ask_for_start(&*self.counts);
        self.own.ask_ahead();
    }

    /// Packets that may be taken now.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.own_waiting.load(Ordering::Acquire) as usize + self.waiting.load(Ordering::Acquire) as usize
    }

    /// How many more packets there is room for, next to so many. Two threads that put packets in at the same time may exceed the limit by a
    /// batch.
    #[inline]
    fn room(&self, taken: usize) -> usize {
        (self.limit.load(Ordering::Relaxed) as usize).saturating_sub(taken)
    }

    /// Puts in as many packets of a batch as there is room for, from the first one on; the others stay in the batch. Says whether
    /// the taker is to be told: there was none before of this kind of sender.
    #[inline]
    pub(crate) fn put(&self, batch: &mut Batch) -> bool {
        let own = self.own.with(|queue| {
            let before = queue.len();
            let room = self.room(before + self.waiting.load(Ordering::Relaxed) as usize);
            put(queue, batch, room, self.mix);
            self.own_waiting.store(count(queue.len()), Ordering::Release);
            self.counts.hold(queue.len() - before, self.hand);
            before == 0 && queue.len() > 0
        });
        own.unwrap_or_else(|| self.put_from_elsewhere(batch))
    }

    fn put_from_elsewhere(&self, batch: &mut Batch) -> bool {
        let Others { ready, late } = &mut *self.others();
        let before = ready.len();
        let room = self.room(before + late.len() + self.own_waiting.load(Ordering::Relaxed) as usize);
        put(ready, batch, room, self.mix);
        self.waiting.store(count(ready.len()), Ordering::Release);
        self.counts.hold(ready.len() - before, Hand::Any);
        before == 0 && ready.len() > 0
    }

    /// Puts packets in that may be taken at a time and not before. No packet that is put in later may be taken earlier.
    pub(crate) fn put_late(&self, batch: &mut Batch, mut due_ns: impl FnMut(&Packet) -> u64) {
        let Others { ready, late } = &mut *self.others();
        let mut earliest = late.back().map_or(0, |(due, _)| *due);
        let room = self.room(ready.len() + late.len() + self.own_waiting.load(Ordering::Relaxed) as usize);
        self.counts.hold(room.min(batch.len()), Hand::Any);
        for packet in batch.drain_first(room) {
            earliest = earliest.max(due_ns(&packet));
            late.push_back((earliest, packet));
        }
    }

    /// When the first packet may be taken that may not yet.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.others().late.front().map(|(due, _)| *due)
    }

    /// Lets packets be taken whose time has come; says whether there are any to take.
    pub(crate) fn let_time_pass(&self, now_ns: u64) -> bool {
        let Others { ready, late } = &mut *self.others();
        while let Some((_, packet)) = late.pop_front_if(|(due, _)| *due <= now_ns) {
            ready.push(packet, self.mix);
        }
        self.waiting.store(count(ready.len()), Ordering::Release);
        ready.len() > 0
    }

    /// Adds packets to a batch, up to its limit, which may be in one batch with those there; says whether there are more.
    #[inline]
    pub(crate) fn take(&self, into: &mut Batch) -> bool {
        if self.waiting.load(Ordering::Acquire) > 0
            && (self.others_next.load(Ordering::Relaxed) || self.own_waiting.load(Ordering::Relaxed) == 0)
        {
            self.others_next.store(false, Ordering::Relaxed);
            // Who put the batch in has the memory of this one for the next.
            into.make_room();
            let ready = &mut self.others().ready;
            let before = ready.len();
            ready.take(into, self.mix);
            self.waiting.store(count(ready.len()), Ordering::Release);
            self.counts.let_go(before - ready.len(), Hand::Any);
        } else if self.own_waiting.load(Ordering::Relaxed) > 0 {
            self.others_next.store(true, Ordering::Relaxed);
            into.rest();
            self.own.with(|queue| {
                let before = queue.len();
                queue.take(into, self.mix);
                self.own_waiting.store(count(queue.len()), Ordering::Release);
                self.counts.let_go(before - queue.len(), self.hand);
            });
        }
        self.waiting() > 0
    }

    /// As [`Inbox::clear`], and takes none any more.
    pub(crate) fn close(&self) -> usize {
        self.limit.store(0, Ordering::Relaxed);
        self.clear()
    }

    /// Takes all packets out, also those of a later time; how many there were. The lane asks.
    pub(crate) fn clear(&self) -> usize {
        let own = self.own.with(|queue| queue.clear()).unwrap_or_default();
        let Others { ready, late } = std::mem::take(&mut *self.others());
        self.own_waiting.store(0, Ordering::Release);
        self.waiting.store(0, Ordering::Release);
        self.counts.let_go(own, self.hand);
        self.counts.let_go(ready.len() + late.len(), Hand::Any);
        own + ready.len() + late.len()
    }
}

impl Drop for Inbox {
    /// What waits goes with it. It may end on any thread; what the lane has put in counts as what others have then, so that the sum is right.
    fn drop(&mut self) {
        let own = *self.own_waiting.get_mut() as usize;
        let Others { ready, late } = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.counts.let_go(own + ready.len() + late.len(), Hand::Any);
    }
}

/// No inbox has room for more.
#[inline]
fn count(packets: usize) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

/// Adds as many packets of a batch as there is room for.
#[inline]
fn put(queue: &mut Queue, batch: &mut Batch, room: usize, mix: Mix) {
    match batch.len() <= room {
        true => queue.push_all(batch, mix),
        false => batch.drain_first(room).for_each(|packet| queue.push(packet, mix)),
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

    /// Tests an inbox that holds so many as another thread fills it, and as its lane does.
    fn with_both(limit: usize, test: impl Fn(Inbox)) {
        let lane = LaneKey::new();
        test(Inbox::new(limit, Mix::Alike, &lane, (Arc::default(), true)));
        lane.enter();
        test(Inbox::new(limit, Mix::Alike, &lane, (Arc::default(), true)));
        LaneKey::leave();
    }

    #[test]
    fn packets_leave_in_their_order_and_what_has_no_room_stays_with_the_sender() {
        with_both(70, |inbox| {
            let mut pool = PacketPool::new(256);
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
        });
    }

    #[test]
    fn a_batch_that_is_taken_has_one_memory_and_one_number_of_links() {
        with_both(100, |inbox| {
            let (mut pool, mut other) = (PacketPool::new(64), PacketPool::new(64));
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
        });
    }

    #[test]
    fn whoever_takes_gets_packets_while_some_wait() {
        with_both(100, |inbox| {
            let mut pool = PacketPool::new(100);
            // A quota, or a tag that does not fit, may leave nothing of a batch.
            for numbers in [0..40, 0..0, 40..80] {
                inbox.put(&mut batch(&mut pool, numbers, 0));
            }
            let mut taken = Batch::new();
            for count in [40, 40] {
                inbox.take(&mut taken);
                assert_eq!(taken.len(), count);
                taken.recycle(&mut pool);
            }
            assert_eq!(inbox.waiting(), 0);
        });
    }

    #[test]
    fn a_small_batch_is_taken_in_parts() {
        with_both(100, |inbox| {
            let mut pool = PacketPool::new(64);
            inbox.put(&mut batch(&mut pool, 0..10, 0));
            let mut taken = Batch::with_limit(4);
            assert!(inbox.take(&mut taken));
            assert_eq!((numbers(&taken), inbox.waiting()), (vec![0, 1, 2, 3], 6));
        });
    }

    #[test]
    fn the_lane_and_others_share_the_room_and_are_served_in_turn() {
        let lane = LaneKey::new();
        let inbox = Inbox::new(100, Mix::Alike, &lane, (Arc::default(), true));
        let mut pool = PacketPool::new(256);
        let [mut first, mut second] = [0..40, 40..80].map(|numbers| batch(&mut pool, numbers, 0));
        // Two batches: they have taken different numbers of links.
        let [mut third, mut fourth] =
            [(100..102, 1), (102..140, 2)].map(|(numbers, hops)| batch(&mut pool, numbers, hops));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(inbox.put(&mut third), "the lane is told");
                assert!(!inbox.put(&mut fourth));
            });
        });
        assert!(fourth.is_empty());
        lane.enter();
        assert!(inbox.put(&mut first) && !inbox.put(&mut second));
        assert_eq!((second.len(), inbox.waiting()), (20, 100));
        let mut takes = Vec::new();
        let mut taken = Batch::new();
        while inbox.waiting() > 0 {
            inbox.take(&mut taken);
            takes.push((taken.packets()[0].data()[0], taken.len()));
            taken.recycle(&mut pool);
        }
        let of = |lane: bool| {
            takes.iter().copied().filter(|(first, _)| (*first < 100) == lane).collect::<Vec<_>>()
        };
        assert_eq!((of(true), of(false)), (vec![(0, 60)], vec![(100, 2), (102, 38)]));
        assert!(takes[0].0 != takes[1].0 && takes[..2].iter().any(|(first, _)| *first == 100), "{takes:?}");
        inbox.put(&mut second);
        assert_eq!((inbox.close(), inbox.waiting()), (20, 0));
        let mut more = batch(&mut pool, 0..1, 0);
        assert!(!inbox.put(&mut more) && more.len() == 1, "it is closed");
        LaneKey::leave();
    }

    #[test]
    fn late_packets_wait_for_their_time_in_order() {
        let mut pool = PacketPool::new(64);
        let inbox = Inbox::new(4, Mix::Alike, &LaneKey::new(), (Arc::default(), true));
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
