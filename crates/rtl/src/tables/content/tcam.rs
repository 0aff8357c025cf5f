//! The memories of a unit that compares all entries: each entry has a bit in each word.

use super::Image;
use crate::tables::order::arrange;
use crate::tables::slices::{Slice, Wanted, slices};
use crate::tables::{GROUP, TableUnit};
use millrace_pipeline::{Bits, EntryMatch};
use millrace_state::{EntryIndex, EntryView};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Which entry has which bit.
#[derive(Debug)]
pub(super) struct Placed {
    slices: Vec<Slice>,
    /// The numbers of entries, in the order in which they win.
    columns: Vec<Option<u64>>,
    /// The number of each entry: another one when it matches something else.
    numbers: FxHashMap<EntryIndex, (u64, u32, Vec<EntryMatch>)>,
    next: u64,
    /// The words by part of the key, group of entries, and value of the part.
    rows: Vec<Vec<Vec<u64>>>,
}

impl Placed {
    pub(super) fn new(unit: &TableUnit, entries: u32, block: bool) -> Placed {
        let slices = slices(&unit.fields, block);
        let groups = entries.div_ceil(GROUP) as usize;
        let rows = slices.iter().map(|slice| vec![vec![0; 1 << slice.bits]; groups]).collect();
        let columns = vec![None; entries as usize];
        Placed { slices, columns, numbers: FxHashMap::default(), next: 0, rows }
    }

    pub(super) fn write(
        &mut self,
        unit: &TableUnit,
        entries: &[EntryView],
        answers: &[Bits],
        image: &mut Image,
    ) -> Option<()> {
        let before = std::mem::take(&mut self.numbers);
        let mut order = Vec::new();
        let mut of_number = FxHashMap::default();
        for (entry, answer) in entries.iter().zip(answers) {
            let known = before.get(&entry.index);
            let known = known
                .filter(|(_, priority, matches)| (*priority, matches) == (entry.priority, &entry.matches));
            let number = known.map_or(self.next, |(number, ..)| *number);
            self.next = self.next.max(number + 1);
            self.numbers.insert(entry.index, (number, entry.priority, entry.matches.clone()));
            order.push(number);
            of_number.insert(number, (entry, answer));
        }
        let old = self.columns.clone();
        if !arrange(&mut self.columns, &order) {
            return None;
        }
        let groups = self.columns.len().div_ceil(GROUP as usize);
        let mut changed = BTreeSet::new();
        for (column, (old, new)) in old.iter().zip(&self.columns).enumerate() {
            if old != new {
                let (group, bit) = (column / GROUP as usize, column % GROUP as usize);
                changed.insert(group);
                let entry = new.and_then(|number| of_number.get(&number));
                let wanted = entry.and_then(|(entry, _)| Wanted::of(&unit.fields, &entry.matches));
                for (slice, rows) in self.slices.iter().zip(&mut self.rows) {
                    rows[group].iter_mut().for_each(|row| *row &= !(1 << bit));
                    for row in wanted.iter().flat_map(|wanted| wanted.rows(*slice)) {
                        rows[group][row as usize] |= 1 << bit;
                    }
                }
            }
        }
        for (number, rows) in self.rows.iter().enumerate() {
            for group in &changed {
                let area = number * groups + group;
                let width = image.areas[area].width;
                for (row, word) in rows[*group].iter().enumerate() {
                    image.set(area, row as u32, Bits::new(width, u128::from(*word)));
                }
            }
        }
        let last = self.slices.len() * groups;
        for (column, number) in self.columns.iter().enumerate() {
            if let Some((_, answer)) = number.and_then(|number| of_number.get(&number)) {
                image.set(last, column as u32, (*answer).clone());
            }
        }
        Some(())
    }
}
