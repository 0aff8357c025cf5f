//! The numbers of entries in hardware.
//!
//! What a unit answers of an entry is not the index that software has for it: an index may be larger than the unit has entries, as one is
//! given out again only when no packet can still have it. A number is at most as large as the unit's capacity, so units of what entries
//! count have a cell for each entry that the table's unit holds, however many the program declares.

use millrace_state::EntryIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Which entry has which number, from 1 on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    of: FxHashMap<EntryIndex, u32>,
    /// By the number.
    entries: Vec<Option<EntryIndex>>,
    /// Numbers that were in use, in the order in which they came free.
    free: VecDeque<u32>,
}

impl Numbers {
    /// Gives entries that are new a number of 1 to `capacity`, where there are at most so many entries. One that is gone leaves its
    /// number to others, which take it only when no other is free: frames may still have it.
    pub(crate) fn update(&mut self, entries: impl Iterator<Item = EntryIndex>, capacity: u64) {
        let entries: Vec<EntryIndex> = entries.collect();
        let there: FxHashSet<EntryIndex> = entries.iter().copied().collect();
        self.entries.resize(capacity as usize + 1, None);
        for (number, entry) in (0..).zip(&mut self.entries) {
            if let Some(gone) = entry.take_if(|entry| !there.contains(entry)) {
                self.of.remove(&gone);
                self.free.push_back(number);
            }
        }
        let known = self.of.len() + self.free.len();
        let mut never_used = known as u32 + 1..=capacity as u32;
        for entry in entries {
            if self.of.contains_key(&entry) {
                continue;
            }
            let Some(number) = never_used.next().or_else(|| self.free.pop_front()) else { return };
            self.of.insert(entry, number);
            self.entries[number as usize] = Some(entry);
        }
    }

    /// The number of an entry; 0 of none.
    pub(crate) fn number(&self, entry: EntryIndex) -> u32 {
        self.of.get(&entry).copied().unwrap_or(0)
    }

    /// The entry of a number.
    pub(crate) fn entry(&self, number: u64) -> Option<EntryIndex> {
        *self.entries.get(usize::try_from(number).ok()?)?
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;
    use millrace_state::EntryIndex;

    fn numbers_of(numbers: &mut Numbers, entries: &[u32]) -> Vec<u32> {
        numbers.update(entries.iter().map(|entry| EntryIndex(*entry)), 3);
        entries.iter().map(|entry| numbers.number(EntryIndex(*entry))).collect()
    }

    /// As many as there is room for, by hand; an entry keeps its number, and one that came free longest ago is used first.
    #[test]
    fn entries_keep_their_numbers() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers_of(&mut numbers, &[7, 900]), [1, 2]);
        assert_eq!(
            numbers_of(&mut numbers, &[900, 4]),
            [2, 3],
            "a number that was never used before one of an entry that is gone"
        );
        assert_eq!(numbers_of(&mut numbers, &[4, 5]), [3, 1]);
        assert_eq!(numbers_of(&mut numbers, &[8, 9, 10]), [2, 1, 3]);
        assert_eq!(
            (numbers.entry(3), numbers.entry(0), numbers.entry(4)),
            (Some(EntryIndex(10)), None, None)
        );
        assert_eq!(numbers.number(EntryIndex(4)), 0);
    }
}
