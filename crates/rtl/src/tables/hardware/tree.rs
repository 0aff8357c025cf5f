//! Prefixes and ranges: a search tree over the keys at which the answer changes.
//!
//! The keys at which another interval starts are in order in the leaves. A node has a few of them; the number of those that are not
//! above the key, all compared at once, says which node of the next level goes on, or in a leaf which interval it is. A level takes a cycle
//! for its memory, one more where that is block memory, which lies far from the logic, and one for the comparison.

use super::{Found, Making};
use crate::tables::layout::{index_bits, levels};
use millrace_netlist::{NodeId, address_width};

/// Nodes of a level up to which it is in lookup tables: with both banks 32 words, which a lookup table holds.
const SMALL: u32 = 16;

/// Bits that are compared as a whole: a carry chain of more takes most of a cycle.
const COMPARED: u32 = 64;

/// Cycles from a key to what is found.
pub(super) fn cycles(entries: u32, keys: u32) -> u32 {
    let levels: u32 = levels(entries, keys).iter().map(|nodes| level_cycles(*nodes)).sum();
    // The key comes in a register, and so does the index of the answer, then its word.
    1 + levels + 3
}

fn level_cycles(nodes: u32) -> u32 {
    if nodes <= SMALL { 2 } else { 3 }
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
            let word = self.m.delayed(&format!("word{level}"), word, None);
            let step = |making: &mut Self, cycle: &mut u32, key: &mut NodeId, node: &mut Option<NodeId>| {
                *cycle += 1;
                *key = making.m.delayed(&format!("key_{cycle}"), *key, None);
                *node = node.map(|node| making.m.delayed(&format!("node{level}_{cycle}"), node, None));
            };
            for _ in 1..level_cycles(*count) {
                step(self, &mut cycle, &mut key, &mut node);
            }
            let compared = self.keys_compared(key, word, keys);
            let compared = self.m.delayed(&format!("compared{level}"), compared, None);
            step(self, &mut cycle, &mut key, &mut node);
            let passed = self.passed(compared, keys);
            let chosen = self.chosen(&passed);
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

    /// Of each key of a node, the first lowest: whether it is there, whether its lowest part is not above that of the key that is looked
    /// for, and of each other part whether it is below and whether it is equal. All parts are compared at once.
    fn keys_compared(&mut self, key: NodeId, word: NodeId, keys: u32) -> NodeId {
        let m = &mut self.m;
        let width = m.width(key);
        let mut all = Vec::new();
        for at in 0..keys {
            let own = at * (1 + width);
            all.push(m.bit(word, own + width));
            for low in (0..width).step_by(COMPARED as usize) {
                let part = COMPARED.min(width - low);
                let (start, key) = (m.slice(word, own + low, part), m.slice(key, low, part));
                match low {
                    0 => all.push(m.le(start, key)),
                    _ => all.extend([m.lt(start, key), m.eq(start, key)]),
                }
            }
        }
        all.reverse();
        m.concat(&all)
    }

    /// Bit i: there is a key i in the node, and it is not above. Keys are in order, so these are ones, then zeros.
    fn passed(&mut self, compared: NodeId, keys: u32) -> Vec<NodeId> {
        let m = &mut self.m;
        let of_key = m.width(compared) / keys;
        (0..keys * of_key)
            .step_by(of_key as usize)
            .map(|first| {
                let (there, mut not_above) = (m.bit(compared, first), m.bit(compared, first + 1));
                for part in (first + 2..first + of_key).step_by(2) {
                    let (below, equal) = (m.bit(compared, part), m.bit(compared, part + 1));
                    let rest = m.and(equal, not_above);
                    not_above = m.or(below, rest);
                }
                m.and(there, not_above)
            })
            .collect()
    }

    /// For each number of keys that are not above whether it is that, alone.
    fn chosen(&mut self, passed: &[NodeId]) -> Vec<NodeId> {
        let m = &mut self.m;
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
