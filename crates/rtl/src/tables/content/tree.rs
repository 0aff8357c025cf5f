//! The search tree of prefixes and ranges.

use super::Image;
use crate::tables::TableUnit;
use crate::tables::layout::{index_bits, intervals, levels};
use crate::tables::order::arrange;
use crate::tables::slices::Wanted;
use millrace_pipeline::Bits;
use millrace_state::{EntryIndex, EntryView};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A key as bytes, the highest first: keys of one width are in the order of their bytes.
type Key = Vec<u8>;

/// Where intervals and answers are.
#[derive(Debug)]
pub(super) struct Placed {
    entries: u32,
    /// Keys of a node.
    keys: u32,
    /// The starts of intervals, `keys + 1` for each leaf.
    leaves: Vec<Option<Key>>,
    /// The places of answers.
    answers: FxHashMap<EntryIndex, u32>,
    free: Vec<u32>,
}

impl Placed {
    pub(super) fn new(entries: u32, keys: u32) -> Placed {
        let leaves = intervals(entries).div_ceil(keys + 1) * (keys + 1);
        let free = (0..entries).rev().collect();
        Placed { entries, keys, leaves: vec![None; leaves as usize], answers: FxHashMap::default(), free }
    }

    pub(super) fn write(
        &mut self,
        unit: &TableUnit,
        entries: &[EntryView],
        answers: &[Bits],
        image: &mut Image,
    ) -> Option<()> {
        let there: BTreeSet<EntryIndex> = entries.iter().map(|entry| entry.index).collect();
        let free = &mut self.free;
        self.answers.retain(|entry, place| {
            let stays = there.contains(entry);
            if !stays {
                free.push(*place);
            }
            stays
        });
        for entry in entries {
            if !self.answers.contains_key(&entry.index) {
                self.answers.insert(entry.index, self.free.pop()?);
            }
        }
        let last = levels(self.entries, self.keys).len();
        for (entry, answer) in entries.iter().zip(answers) {
            image.set(last, self.answers[&entry.index], answer.clone());
        }
        let intervals = self.intervals(unit, entries)?;
        let starts: Vec<Key> = intervals.iter().map(|(start, _)| start.clone()).collect();
        if !arrange(&mut self.leaves, &starts) {
            return None;
        }
        self.write_nodes(unit, &intervals.into_iter().collect(), image);
        Some(())
    }

    /// The keys at which the answer changes, from 0 on, with the place of the answer from there on.
    fn intervals(&self, unit: &TableUnit, entries: &[EntryView]) -> Option<Vec<(Key, u32)>> {
        let zero = Bits::zero(unit.key()).to_bytes();
        // Where entries start and where they have ended, by their number in the order in which they win.
        let mut events: Vec<(Key, bool, usize)> = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let (low, high) = unit.interval(&Wanted::of(&unit.fields, &entry.matches)?);
            events.push((low.to_bytes(), true, number));
            if !high.is_ones() {
                events.push((high.add(&Bits::new(high.width(), 1)).to_bytes(), false, number));
            }
        }
        events.sort();
        let mut active: BTreeSet<usize> = BTreeSet::new();
        let mut intervals: Vec<(Key, u32)> = Vec::new();
        let mut events = events.into_iter().peekable();
        let mut start = zero;
        loop {
            while let Some((_, starts, number)) = events.next_if(|(key, ..)| *key == start) {
                match starts {
                    true => active.insert(number),
                    false => active.remove(&number),
                };
            }
            let answer = active.first().map_or(self.entries, |first| self.answers[&entries[*first].index]);
            if intervals.last().is_none_or(|(_, last)| *last != answer) {
                intervals.push((start, answer));
            }
            match events.peek() {
                Some((key, ..)) => start = key.clone(),
                None => return Some(intervals),
            }
        }
    }

    fn write_nodes(&self, unit: &TableUnit, answers: &FxHashMap<Key, u32>, image: &mut Image) {
        let (width, children) = (unit.key(), self.keys as usize + 1);
        let levels = levels(self.entries, self.keys);
        let empty = Bits::zero(1 + width);
        let start = |key: Option<&Key>| match key {
            Some(key) => Bits::new(1, 1).concat(&Bits::from_bytes(width, key)),
            None => empty.clone(),
        };
        // The first start in each leaf or, where it has none, in one after it.
        let mut firsts: Vec<Option<&Key>> = Vec::new();
        let leaf_level = levels.len() - 1;
        let index = index_bits(self.entries);
        for (leaf, slots) in self.leaves.chunks(children).enumerate() {
            let starts: Vec<&Key> = slots.iter().flatten().collect();
            firsts.push(starts.first().copied());
            let keys = (1..children).map(|at| start(starts.get(at).copied()));
            let found = (0..children).map(|at| {
                let answer =
                    starts.get(at).and_then(|key| answers.get(*key)).copied().unwrap_or(self.entries);
                Bits::new(index, answer.into())
            });
            image.set(leaf_level, leaf as u32, word(keys.chain(found)));
        }
        for level in (0..leaf_level).rev() {
            let mut next = None;
            for first in firsts.iter_mut().rev() {
                *first = first.or(next);
                next = *first;
            }
            let children = levels[level].keys as usize + 1;
            for (node, firsts) in firsts.chunks(children).enumerate() {
                let keys = (1..children).map(|at| start(firsts.get(at).copied().flatten()));
                image.set(level, node as u32, word(keys));
            }
            firsts = firsts.chunks(children).map(|firsts| firsts[0]).collect();
        }
    }
}

/// A word, the first part lowest.
fn word(parts: impl Iterator<Item = Bits>) -> Bits {
    parts.reduce(|low, high| high.concat(&low)).unwrap_or_else(|| Bits::zero(1))
}

impl TableUnit {
    /// The parts of a key in the order in which it is searched, the highest first: the field of prefixes or ranges comes last.
    pub(in crate::tables) fn search_order(&self) -> Vec<(u32, u32)> {
        use millrace_pipeline::MatchKind;
        let mut end = self.key();
        let (mut exact, mut others) = (Vec::new(), Vec::new());
        for (width, kind) in &self.fields {
            end -= width;
            let to = if *kind == MatchKind::Exact { &mut exact } else { &mut others };
            to.push((end, *width));
        }
        exact.into_iter().chain(others).collect()
    }

    /// The first and the last key, in the order of the search, that an entry matches.
    fn interval(&self, wanted: &Wanted) -> (Bits, Bits) {
        use millrace_pipeline::MatchKind;
        let is_range = self.fields.iter().any(|(_, kind)| *kind == MatchKind::Range);
        let order = self.search_order();
        let put = |bits: &Bits| {
            let parts = order.iter().map(|(low, width)| bits.slice(low + width - 1, *low));
            parts.reduce(|high, low| high.concat(&low)).unwrap_or_else(|| bits.clone())
        };
        let (value, mask) = (put(&wanted.value), put(&wanted.mask));
        if !is_range {
            return (value.clone(), value.or(&mask.bit_not()));
        }
        // Of the range its highest value stands in the mask; of exact fields all bits are 1 there.
        let (_, width) = order[order.len() - 1];
        let high = value.with_slice(width - 1, 0, &mask.slice(width - 1, 0));
        (value, high)
    }
}
