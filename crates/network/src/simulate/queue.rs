//! What happens next: a calendar of events.
//!
//! Times only go on, and most events are soon: a ring of buckets holds those of the next while, each bucket those of a short time, and a heap
//! those that are later. The next event is the first of the first bucket that has some; buckets are short enough to hold few. So adding and taking
//! cost the same however many events there are (R. Brown, Calendar Queues, CACM 1988), where a heap takes a step for each doubling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Buckets of the ring; a word of the map has 64.
const BUCKETS: u64 = 1024;

/// An event with its key, by which it is ordered.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    key: u64,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Where the next event is: its key, its bucket in the ring, and its place there.
type Place = (u64, usize, usize);

/// The calendar. No key is below one that was taken.
#[derive(Debug)]
pub(super) struct Queue<T> {
    buckets: Vec<Vec<Entry<T>>>,
    /// A bit for each bucket that has an event.
    map: [u64; BUCKETS as usize / 64],
    /// The bucket of the last event that was taken, counted from the start.
    now: u64,
    /// A bucket holds keys that are the same from this bit on.
    shift: u32,
    /// Events of the ring.
    near: usize,
    far: BinaryHeap<Reverse<Entry<T>>>,
    next: Option<Place>,
}

impl<T: Copy> Queue<T> {
    /// An empty calendar whose buckets have `2^shift` keys each.
    pub(super) fn new(shift: u32) -> Queue<T> {
        Queue {
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            map: [0; BUCKETS as usize / 64],
            now: 0,
            shift,
            near: 0,
            far: BinaryHeap::new(),
            next: None,
        }
    }

    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, key: u64, event: T) {
        let number = (key >> self.shift).max(self.now);
        if number >= self.now + BUCKETS {
            self.far.push(Reverse(Entry { key, event }));
            return;
        }
        let bucket = (number % BUCKETS) as usize;
        if self.next.is_some_and(|(first, ..)| key < first) {
            self.next = Some((key, bucket, self.buckets[bucket].len()));
        }
        self.buckets[bucket].push(Entry { key, event });
        self.map[bucket / 64] |= 1 << (bucket % 64);
        self.near += 1;
    }

    /// The key of the next event.
    #[inline]
    pub(super) fn next_key(&mut self) -> Option<u64> {
        if self.next.is_none() {
            self.next = self.find();
        }
        self.next.map(|(key, ..)| key)
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        self.next_key()?;
        let (key, bucket, at) = self.next.take()?;
        let entries = &mut self.buckets[bucket];
        let entry = entries.swap_remove(at);
        if entries.is_empty() {
            self.map[bucket / 64] &= !(1 << (bucket % 64));
        }
        self.near -= 1;
        Some((key, entry.event))
    }

    /// Looks for the first event.
    fn find(&mut self) -> Option<Place> {
        if self.near == 0 {
            let Reverse(first) = self.far.peek()?;
            self.now = first.key >> self.shift;
        } else {
            self.now += self.steps();
        }
        // What was far is near now.
        while let Some(Reverse(first)) = self.far.peek()
            && first.key >> self.shift < self.now + BUCKETS
            && let Some(Reverse(Entry { key, event })) = self.far.pop()
        {
            self.push(key, event);
        }
        let bucket = (self.now % BUCKETS) as usize;
        let entries = self.buckets[bucket].iter().enumerate();
        entries.map(|(at, entry)| (entry.key, bucket, at)).min()
    }

    /// How many buckets after this one the first is that has an event; there is one in the ring.
    fn steps(&self) -> u64 {
        let start = (self.now % BUCKETS) as usize;
        let (word, bit) = (start / 64, start % 64);
        let words = self.map.len();
        let here = self.map[word] >> bit;
        if here != 0 {
            return here.trailing_zeros().into();
        }
        for step in 1..=words {
            let bits = self.map[(word + step) % words];
            // The word that the search began in comes last, with what is before the start.
            if bits != 0 {
                return (step * 64 - bit) as u64 + u64::from(bits.trailing_zeros());
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Random events, near and far, against a list that is sorted.
    #[test]
    fn events_come_in_their_order() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut queue = Queue::new(4);
            let (mut wanted, mut now) = (Vec::new(), 0);
            for count in 0..2000u32 {
                let ahead = [10, 1000, 20_000, 1_000_000][random.below(4) as usize];
                let key = now + random.below(ahead);
                queue.push(key, count);
                wanted.push(key);
                if random.one_in(2) || count > 1500 {
                    wanted.sort_unstable();
                    let first = wanted.remove(0);
                    assert_eq!(queue.next_key(), Some(first), "{seed} {count}");
                    assert_eq!(queue.pop().map(|(key, _)| key), Some(first), "{seed} {count}");
                    now = first;
                }
            }
            wanted.sort_unstable();
            let left: Vec<u64> = std::iter::from_fn(|| queue.pop().map(|(key, _)| key)).collect();
            assert_eq!(left, wanted, "{seed}");
        }
    }
}
