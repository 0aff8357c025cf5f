//! Any keys: memories that parts of the key address, with a bit for each entry ([`crate::tables::slices`]).

use super::{Found, Making};
use crate::tables::GROUP;
use crate::tables::slices::{Test, slices};
use millrace_netlist::{NodeId, address_width};

/// Cycles from a key to what is found.
pub(super) fn cycles(block: bool) -> u32 {
    // Words of the parts (from a block memory, and once more in a register), all of them together, the first of each group, the first
    // of all, the word of its answer, and that in a register.
    if block { 8 } else { 6 }
}

impl Making<'_> {
    pub(super) fn tcam(&mut self, entries: u32, block: bool) -> Found {
        let stored = self.unit.stored.bits();
        let Some(key) = self.key else {
            let (hit, stored) = (self.m.number(1, 0), self.m.number(stored, 0));
            return Found { hit, stored, cycle: cycles(block) };
        };
        let slices = slices(&self.unit.fields, block);
        let mut matched = Vec::new();
        for group in 0..entries.div_ceil(GROUP) {
            let mut words = Vec::new();
            for (number, slice) in slices.iter().enumerate() {
                let memory = self.memory(&format!("slice{number}_{group}"));
                let part = self.m.slice(key, slice.low, slice.bits);
                let place = self.place(Some(part), 1);
                let word = match block {
                    true => {
                        let word = self.m.read_clocked(memory, place, None);
                        self.m.delayed(&format!("word{number}_{group}"), word, None)
                    }
                    false => self.m.read(memory, place),
                };
                words.push((slice.test, word));
            }
            let all = self.all_tests(&words);
            matched.push(self.m.delayed(&format!("matched{group}"), all, None));
        }
        let matched: Vec<NodeId> = matched.into_iter().rev().collect();
        let matched = self.m.concat(&matched);
        let (hit, first) = self.first_entry(matched, entries);
        let cycle = cycles(block) - 2;
        let answers = self.memory("answers");
        let place = self.place((entries > 1).then_some(first), cycle);
        let word = self.m.read_clocked(answers, place, None);
        let hit = self.m.delayed("hit_2", hit, None);
        let (hit, word) = (self.m.delayed("hit_3", hit, None), self.m.delayed("word", word, None));
        Found { hit, stored: word, cycle: cycle + 2 }
    }

    /// For each entry whether all of its tests hold. Tests of one range come one after the other, those of the highest digit first.
    fn all_tests(&mut self, words: &[(Test, NodeId)]) -> NodeId {
        let m = &mut self.m;
        let mut all = Vec::new();
        let mut digits: Vec<[NodeId; 4]> = Vec::new();
        let mut rest = words.iter();
        while let Some((test, word)) = rest.next() {
            let mut next = || rest.next().map_or(*word, |(_, word)| *word);
            match test {
                Test::Above => digits.push([*word, next(), next(), next()]),
                Test::NotBelow => {
                    let (mut above, mut below) = (*word, next());
                    for [more, at_low, less, at_high] in digits.drain(..).rev() {
                        let (low, high) = (m.and(at_low, above), m.and(at_high, below));
                        (above, below) = (m.or(more, low), m.or(less, high));
                    }
                    all.extend([above, below]);
                }
                _ => all.push(*word),
            }
        }
        let none = m.number(1, 0);
        m.tree(millrace_netlist::BinaryOp::And, &all, none)
    }

    /// Whether there is a bit that is 1, and the lowest, two cycles later: first in each group of bits, then among the groups.
    fn first_entry(&mut self, matched: NodeId, entries: u32) -> (NodeId, NodeId) {
        let m = &mut self.m;
        let bits = address_width(entries);
        let size = 1 << (bits / 2);
        let inner = address_width(size);
        let mut groups = Vec::new();
        for low in (0..entries).step_by(size as usize) {
            let count = size.min(entries - low);
            let of = m.slice(matched, low, count);
            let any = m.reduce_or(of);
            let first = first_bit(m, of, bits);
            let name = low / size;
            let any = m.delayed(&format!("any{name}"), any, None);
            let first = m.slice(first, 0, inner);
            let first = m.delayed(&format!("first{name}"), first, None);
            let first = m.resize(first, bits);
            let base = m.number(bits, low.into());
            groups.push((any, m.or(base, first)));
        }
        let (hit, first) = m.first_found(&groups).unwrap_or_else(|| (m.number(1, 0), m.number(bits, 0)));
        (m.delayed("hit", hit, None), m.delayed("first", first, None))
    }
}

/// The number of the lowest bit that is 1.
fn first_bit(m: &mut millrace_netlist::ModuleBuilder, of: NodeId, bits: u32) -> NodeId {
    let numbers: Vec<(NodeId, NodeId)> =
        (0..m.width(of)).map(|at| (m.bit(of, at), m.number(bits, at.into()))).collect();
    m.first_found(&numbers).map_or(of, |(_, number)| number)
}
