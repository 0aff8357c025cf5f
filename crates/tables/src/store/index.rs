//! Finds records by hash: an open-addressed table of record numbers, four bytes a slot.
//!
//! Bits of a slot that the numbers do not need hold bits of the hash, so nearly every record that is compared is the
//! one looked for. The table grows by a quarter, not to twice its size: with a million entries that saves megabytes.
//! It never keeps a hash; whoever holds the records computes it again.

use crate::engines::{NoMemory, headroom};

/// Slots of the smallest table.
const SMALLEST: usize = 16;

#[derive(Clone)]
pub(super) struct Index {
    /// 0 is free: no record has the number 0.
    slots: Vec<u32>,
    len: usize,
    /// The bits of a slot that are the number.
    number: u32,
}

impl Index {
    pub(super) fn new() -> Index {
        Index { slots: Vec::new(), len: 0, number: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// The number of this hash that `is` the one looked for.
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.seek(hash, is).map(|at| self.slots[at] & self.number)
    }

    /// Whether one number more can be added: the memory that it takes to grow is there.
    ///
    /// # Errors
    /// [`NoMemory`].
    #[inline]
    pub(super) fn room_for_one(&self) -> Result<(), NoMemory> {
        match has_room(self.len + 1, self.slots.len()) {
            true => Ok(()),
            false => headroom((self.slots.len().max(SMALLEST) * 5 / 4) * size_of::<u32>()),
        }
    }

    /// Adds a number that is not there.
    pub(super) fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        if number & !self.number != 0 || !has_room(self.len + 1, self.slots.len()) {
            self.grow(number, hash_of);
        }
        self.put(hash, number);
        self.len += 1;
    }

    /// Takes a number out. The numbers after it that it kept from their places move up.
    pub(super) fn remove(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        let Some(mut hole) = self.seek(hash, |other| other == number) else { return };
        let count = self.slots.len();
        let mut at = hole;
        loop {
            at = if at + 1 == count { 0 } else { at + 1 };
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = self.home(hash_of(slot & self.number));
            let way = |from: usize, to: usize| if to >= from { to - from } else { to + count - from };
            if way(home, at) >= way(hole, at) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    fn seek(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let tag = hash as u32 & !self.number;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot & !self.number == tag && is(slot & self.number) {
                return Some(at);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// Where a hash has its slot if that is free, by its upper half; tags are of the lower.
    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    fn put(&mut self, hash: u64, number: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        self.slots[at] = hash as u32 & !self.number | number;
    }

    #[cold]
    fn grow(&mut self, number: u32, hash_of: impl Fn(u32) -> u64) {
        let mut count = self.slots.len().max(SMALLEST);
        if !has_room(self.len + 1, count) {
            count += count / 4;
        }
        let mask = self.number;
        let numbers = std::mem::replace(&mut self.slots, vec![0; count]);
        self.number |= u32::MAX.checked_shr(number.leading_zeros()).unwrap_or(0);
        for slot in numbers.into_iter().filter(|slot| *slot != 0) {
            self.put(hash_of(slot & mask), slot & mask);
        }
    }
}

/// Whether so many numbers leave an eighth of the slots free, and at least one.
fn has_room(len: usize, slots: usize) -> bool {
    len < slots && len * 8 <= slots * 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against an ordered set, with hashes that are few so that slots are fought for.
        #[test]
        fn an_index_agrees_with_a_set(
            writes in prop::collection::vec((1u32..300, any::<bool>()), 1..600),
            hashes in 1u64..400,
        ) {
            let hash_of = |number: u32| (u64::from(number) % hashes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (mut index, mut set) = (Index::new(), BTreeSet::new());
            for (number, adds) in writes {
                if adds && set.insert(number) {
                    index.insert(hash_of(number), number, hash_of);
                } else if !adds && set.remove(&number) {
                    index.remove(hash_of(number), number, hash_of);
                }
                for number in 1..300 {
                    let found = index.find(hash_of(number), |other| other == number);
                    prop_assert_eq!(found.is_some(), set.contains(&number));
                }
            }
        }
    }

    #[test]
    fn a_million_numbers_take_less_than_six_bytes_each() {
        let hash_of = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = Index::new();
        (1..=1_000_000).for_each(|number| index.insert(hash_of(number), number, hash_of));
        assert!(index.bytes() < 6_000_000, "{}", index.bytes());
        assert_eq!(index.find(hash_of(77_777), |number| number == 77_777), Some(77_777));
        assert_eq!(index.find(hash_of(1_000_001), |number| number == 1_000_001), None);
    }
}
