//! What happens next: a calendar of events.
//!
//! Times only go on, and most events are soon. A ring of buckets holds those of the next while, each bucket those of a short time, and a heap those that
//! are later. When the calendar comes to a bucket, it sorts the events of it, which are few. So adding and taking cost the same however many events
//! there are (R. Brown, Calendar Queues, CACM 1988), where a heap takes a step for each doubling.
//!
//! **Order.** Events of one time come in the order of their values. So the order depends on what happens alone: not on the width of buckets, nor on when
//! an event was added.
//!
//! **Memory.** A bucket is a list and takes four bytes; the events of all buckets lie in one slab, where the place that was left last is the next that is
//! used. Few events wait at a time (a frame on each link), so ring and slab stay in the first cache of a processor.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Buckets of the ring.
pub(super) const BUCKETS: u64 = 1024;
/// Buckets of a word of the map.
const WORD: usize = 64;
/// No slot.
const NONE: u32 = u32::MAX;

/// An event with its key, by which it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<T> {
    key: u64,
    event: T,
}

/// An event in the list of a bucket, or a free place.
#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    entry: Entry<T>,
    next: u32,
}

/// The calendar. No key is below one that was taken.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// All events up to the end of the bucket that the calendar is at, the next one last.
    present: Vec<Entry<T>>,
    /// The number of that bucket, counted from the start.
    now: u64,
    /// Of each bucket after that one the first event.
    buckets: Box<[u32; BUCKETS as usize]>,
    /// A bit for each bucket that has an event.
    map: [u64; BUCKETS as usize / WORD],
    /// A bucket holds keys that are the same from this bit on.
    shift: u32,
    slots: Vec<Slot<T>>,
    free: u32,
    far: BinaryHeap<Reverse<Entry<T>>>,
}

impl<T: Copy + Ord> Queue<T> {
    /// An empty calendar whose buckets have the least power of two of keys that is not below a width.
    pub(super) fn new(width: u64) -> Queue<T> {
        Queue {
            present: Vec::new(),
            now: 0,
            buckets: Box::new([NONE; BUCKETS as usize]),
            map: [0; BUCKETS as usize / WORD],
            shift: width.clamp(1, 1 << 62).next_power_of_two().trailing_zeros(),
            slots: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, key: u64, event: T) {
        let (number, entry) = (key >> self.shift, Entry { key, event });
        if number <= self.now {
            let at = self.present.partition_point(|other| *other > entry);
            self.present.insert(at, entry);
        } else if number - self.now < BUCKETS {
            self.put((number % BUCKETS) as usize, entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// The key of the next event.
    #[inline]
    pub(super) fn next_key(&mut self) -> Option<u64> {
        if self.present.is_empty() {
            self.advance();
        }
        self.present.last().map(|entry| entry.key)
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        self.next_key()?;
        self.present.pop().map(|entry| (entry.key, entry.event))
    }

    /// Puts an event in the list of a bucket.
    #[inline]
    fn put(&mut self, bucket: usize, entry: Entry<T>) {
        let slot = Slot { entry, next: self.buckets[bucket] };
        let at = match self.slots.get_mut(self.free as usize) {
            Some(free) => {
                let at = self.free;
                self.free = free.next;
                *free = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.buckets[bucket] = at;
        self.map[bucket / WORD] |= 1 << (bucket % WORD);
    }

    /// Goes to the next bucket that has an event. Nothing is left of those before.
    fn advance(&mut self) {
        match (self.steps(), self.far.peek()) {
            (Some(steps), _) => self.now += steps,
            (None, Some(Reverse(first))) => self.now = first.key >> self.shift,
            (None, None) => return,
        }
        // What was far is near now. It is later than all that was in the ring, since it was beyond the end of it.
        while let Some(Reverse(first)) = self.far.peek()
            && (first.key >> self.shift) - self.now < BUCKETS
            && let Some(Reverse(Entry { key, event })) = self.far.pop()
        {
            self.push(key, event);
        }
        let bucket = (self.now % BUCKETS) as usize;
        let mut at = std::mem::replace(&mut self.buckets[bucket], NONE);
        self.map[bucket / WORD] &= !(1 << (bucket % WORD));
        while let Some(slot) = self.slots.get_mut(at as usize) {
            self.present.push(slot.entry);
            let next = std::mem::replace(&mut slot.next, self.free);
            self.free = at;
            at = next;
        }
        if self.present.len() > 1 {
            self.present.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// How many buckets after the present one the first is that has an event.
    fn steps(&self) -> Option<u64> {
        let start = ((self.now + 1) % BUCKETS) as usize;
        let (word, bit) = (start / WORD, start % WORD);
        let here = self.map[word] >> bit;
        if here != 0 {
            return Some(1 + u64::from(here.trailing_zeros()));
        }
        let words = self.map.len();
        // The word that the search began in comes last, with what is before the start.
        let found = (1..=words).find(|step| self.map[(word + step) % words] != 0)?;
        let bits = self.map[(word + found) % words];
        Some(1 + (found * WORD - bit) as u64 + u64::from(bits.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Random events, near and far, many of them at the same time, against a list that is sorted.
    #[test]
    fn events_come_in_their_order() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut queue = Queue::new(16);
            let (mut wanted, mut now) = (Vec::new(), 0);
            for _ in 0..2000 {
                let ahead = [10, 1000, 20_000, 1_000_000][random.below(4) as usize];
                let (key, event) = (now + random.below(ahead), random.below(1000));
                queue.push(key, event);
                wanted.push((key, event));
                if random.one_in(2) || wanted.len() > 500 {
                    wanted.sort_unstable();
                    let first = wanted.remove(0);
                    assert_eq!(queue.next_key(), Some(first.0), "{seed}");
                    assert_eq!(queue.pop(), Some(first), "{seed}");
                    now = first.0;
                }
            }
            wanted.sort_unstable();
            let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(left, wanted, "{seed}");
        }
    }

    /// The order depends neither on the width of buckets nor on the order of adding.
    #[test]
    fn events_of_one_time_come_in_the_order_of_their_values() {
        for width in [1, 64, 1 << 40] {
            let mut queue = Queue::new(width);
            for (key, event) in [(7, 3), (5, 9), (7, 1), (100_000, 2), (7, 2), (100_000, 1)] {
                queue.push(key, event);
            }
            assert_eq!(queue.pop(), Some((5, 9)));
            // Added when the calendar is there.
            queue.push(7, 0);
            let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(left, [(7, 0), (7, 1), (7, 2), (7, 3), (100_000, 1), (100_000, 2)], "{width}");
        }
    }
}
