//! Prefixes and ranges: a search tree over the keys at which the answer changes.
//!
//! The keys at which another interval starts are in order in the leaves. A node has a few of them; the number of those that are not
//! above the key, all compared at once, says which node of the next level goes on, or in a leaf which interval it is. A level takes a cycle
//! for its memory, two more where that is block memory, which lies far from the logic, and one for the comparison.

use super::{Found, Making};
use crate::tables::layout::{index_bits, levels};
use millrace_netlist::{NodeId, address_width};

/// Nodes of a level up to which it is in lookup tables.
const SMALL: u32 = 32;

/// Bits that are compared as a whole: a carry chain of more takes most of a cycle.
const COMPARED: u32 = 64;

/// Cycles from a key to what is found.
pub(super) fn cycles(entries: u32, keys: u32) -> u32 {
    let levels: u32 = levels(entries, keys).iter().map(|nodes| level_cycles(*nodes)).sum();
    // The key comes in a register, and so does the index of the answer, then its word.
    1 + levels + 3
}

fn level_cycles(nodes: u32) -> u32 {
    if nodes <= SMALL { 2 } else { 4 }
}

impl Making<'_> {
    pub(super) fn tree(&mut self, entries: u32, keys: u32) -> Found {
        let stored = self.unit.stored.bits();
        let (Some(mut key), index) = (self.searched(), index_bits(entries)) else {
            let (hit, stored) = (self.m.number(1, 0), self.m.number(stored, 0));
            return Found { hit, stored, cycle: cycles(entries, keys) };
        };
        let nodes = levels(entries, keys);
        let mut cycle = 1;
        // The node of the level, and the index of the answer after the last one.
        let mut node: Option<NodeId> = None;
        for (level, count) in nodes.iter().enumerate() {
            let memory = self.memory(&format!("level{level}"));
            let node_bits = (*count > 1).then(|| address_width(*count));
            let at = node_bits.and_then(|bits| node.map(|node| self.m.resize(node, bits)));
            let place = self.place(at, cycle);
            let word = match *count <= SMALL {
                true => self.m.read(memory, place),
                false => self.m.read_clocked(memory, place, None),
            };
            let mut word = self.m.delayed(&format!("word{level}"), word, None);
            if *count > SMALL {
                word = self.m.delayed(&format!("near{level}"), word, None);
            }
            let step = |making: &mut Self, cycle: &mut u32, key: &mut NodeId, node: &mut Option<NodeId>| {
                *cycle += 1;
                *key = making.m.delayed(&format!("key_{cycle}"), *key, None);
                *node = node.map(|node| making.m.delayed(&format!("node{level}_{cycle}"), node, None));
            };
            for _ in 1..level_cycles(*count) {
                step(self, &mut cycle, &mut key, &mut node);
            }
            let passed = self.passed(key, word, keys);
            let passed = self.m.delayed(&format!("passed{level}"), passed, None);
            step(self, &mut cycle, &mut key, &mut node);
            let chosen = self.chosen(passed);
            node = Some(match nodes.get(level + 1) {
                Some(below) => self.child(node, &chosen, address_width(*below)),
                None => {
                    let results = self.m.slice(word, keys * (1 + self.m.width(key)), (keys + 1) * index);
                    let results = self.m.delayed("results", results, None);
                    let choices: Vec<(NodeId, NodeId)> = (chosen.iter().zip(0..))
                        .map(|(chosen, at)| (*chosen, self.m.slice(results, at * index, index)))
                        .collect();
                    self.m.one_hot(index, &choices)
                }
            });
        }
        let index_node = node.unwrap_or_else(|| self.m.number(index, 0));
        let index_node = self.m.delayed("index", index_node, None);
        let none = self.m.is(index_node, u128::from(entries));
        let hit = self.m.not(none);
        let answers = self.memory("answers");
        let at = (entries > 1).then(|| self.m.slice(index_node, 0, address_width(entries)));
        let place = self.place(at, cycle + 1);
        let word = self.m.read_clocked(answers, place, None);
        let hit = self.m.delayed("hit", hit, None);
        let (hit, word) = (self.m.delayed("hit_2", hit, None), self.m.delayed("word", word, None));
        debug_assert_eq!(cycle + 3, cycles(entries, keys));
        Found { hit, stored: word, cycle: cycle + 3 }
    }

    /// The key with the field of prefixes or ranges lowest.
    fn searched(&mut self) -> Option<NodeId> {
        let key = self.key?;
        let parts = self.unit.search_order();
        let parts: Vec<NodeId> = parts.iter().map(|(low, width)| self.m.slice(key, *low, *width)).collect();
        Some(self.m.concat(&parts))
    }

    /// Bit i: there is a key i in the node, and it is not above. Keys are in order, so these are ones, then zeros.
    fn passed(&mut self, key: NodeId, word: NodeId, keys: u32) -> NodeId {
        let width = self.m.width(key);
        let passed: Vec<NodeId> = (0..keys)
            .rev()
            .map(|at| {
                let low = at * (1 + width);
                let (there, start) = (self.m.bit(word, low + width), self.m.slice(word, low, width));
                let reached = self.not_above(start, key);
                self.m.and(there, reached)
            })
            .collect();
        self.m.concat(&passed)
    }

    /// `a <= b`, part by part, all parts at once.
    fn not_above(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let m = &mut self.m;
        let width = m.width(a);
        let first = width.min(COMPARED);
        let (low_a, low_b) = (m.slice(a, 0, first), m.slice(b, 0, first));
        let mut not_above = m.le(low_a, low_b);
        for low in (first..width).step_by(COMPARED as usize) {
            let part = COMPARED.min(width - low);
            let (a, b) = (m.slice(a, low, part), m.slice(b, low, part));
            let (below, equal) = (m.lt(a, b), m.eq(a, b));
            let rest = m.and(equal, not_above);
            not_above = m.or(below, rest);
        }
        not_above
    }

    /// For each number of keys that are not above whether it is that, alone.
    fn chosen(&mut self, passed: NodeId) -> Vec<NodeId> {
        let m = &mut self.m;
        let passed: Vec<NodeId> = (0..m.width(passed)).map(|at| m.bit(passed, at)).collect();
        (0..=passed.len())
            .map(|count| {
                let not_more = passed.get(count).map(|next| m.not(*next));
                match (count.checked_sub(1), not_more) {
                    (None, Some(none)) => none,
                    (Some(last), Some(next)) => m.and(passed[last], next),
                    (Some(last), None) => passed[last],
                    (None, None) => m.number(1, 1),
                }
            })
            .collect()
    }

    /// The number of a child: that of the node above which child it is.
    fn child(&mut self, node: Option<NodeId>, chosen: &[NodeId], bits: u32) -> NodeId {
        let m = &mut self.m;
        let which_bits = (chosen.len() as u32).ilog2();
        let choices: Vec<(NodeId, NodeId)> =
            (chosen.iter().zip(0..)).map(|(chosen, at)| (*chosen, m.number(which_bits, at))).collect();
        let which = m.one_hot(which_bits, &choices);
        let number = match node {
            Some(node) => m.concat(&[node, which]),
            None => which,
        };
        m.resize(number, bits)
    }
}
