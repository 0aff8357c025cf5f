//! Prefixes and ranges: a search tree over the keys at which the answer changes.
//!
//! The keys at which another interval starts are in order in the leaves. A node has a few of them; the number of those that are not
//! above the key, all compared at once, says which node of the next level goes on, or in a leaf which interval it is. A level takes a cycle
//! for its memory and one for the comparison where the memory is a block memory.

use super::{Found, Making};
use crate::tables::layout::{index_bits, levels};
use millrace_netlist::{NodeId, address_width};

/// Nodes of a level up to which it is in lookup tables.
const SMALL: u32 = 32;

/// Cycles from a key to what is found.
pub(super) fn cycles(entries: u32, keys: u32) -> u32 {
    let levels: u32 = levels(entries, keys).iter().map(|nodes| level_cycles(*nodes)).sum();
    // The key comes in a register, and so does the index of the answer, then its word.
    1 + levels + 3
}

fn level_cycles(nodes: u32) -> u32 {
    if nodes <= SMALL { 1 } else { 2 }
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
            let word = match level_cycles(*count) {
                1 => self.m.read(memory, place),
                _ => self.m.read_clocked(memory, place, None),
            };
            let word = self.m.delayed(&format!("word{level}"), word, None);
            for _ in 0..level_cycles(*count) {
                cycle += 1;
                key = self.m.delayed(&format!("key_{cycle}"), key, None);
                node = node.map(|node| self.m.delayed(&format!("node{level}_{cycle}"), node, None));
            }
            let (chosen, results) = self.node_of(key, word, keys, level + 1 == nodes.len(), index);
            node = Some(match results {
                Some(result) => result,
                // The number of the node and which of its keys + 1 children.
                None => {
                    let below = nodes[level + 1];
                    self.child(node, keys + 1, &chosen, address_width(below))
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

    /// For each number of keys of a node that are not above the key whether it is that, alone; of a leaf the index of the answer.
    fn node_of(
        &mut self,
        key: NodeId,
        word: NodeId,
        keys: u32,
        leaf: bool,
        index: u32,
    ) -> (Vec<NodeId>, Option<NodeId>) {
        let m = &mut self.m;
        let width = m.width(key);
        // Bit i: there is a key i, and it is not above. Keys are in order, so these are ones, then zeros.
        let passed: Vec<NodeId> = (0..keys)
            .map(|at| {
                let low = at * (1 + width);
                let (there, start) = (m.bit(word, low + width), m.slice(word, low, width));
                let reached = m.le(start, key);
                m.and(there, reached)
            })
            .collect();
        let chosen: Vec<NodeId> = (0..=keys as usize)
            .map(|count| {
                let not_more = passed.get(count).map(|next| m.not(*next));
                match (count.checked_sub(1), not_more) {
                    (None, Some(none)) => none,
                    (Some(last), Some(next)) => m.and(passed[last], next),
                    (Some(last), None) => passed[last],
                    (None, None) => m.number(1, 1),
                }
            })
            .collect();
        let results = leaf.then(|| {
            let low = keys * (1 + width);
            let choices: Vec<(NodeId, NodeId)> = (chosen.iter().zip(0..))
                .map(|(chosen, at)| (*chosen, m.slice(word, low + at * index, index)))
                .collect();
            m.one_hot(index, &choices)
        });
        (chosen, results)
    }

    /// The number of a child: that of the node times how many it has, and which.
    fn child(&mut self, node: Option<NodeId>, children: u32, chosen: &[NodeId], bits: u32) -> NodeId {
        let m = &mut self.m;
        let choices: Vec<(NodeId, NodeId)> =
            (chosen.iter().zip(0..)).map(|(chosen, at)| (*chosen, m.number(bits, at))).collect();
        let which = m.one_hot(bits, &choices);
        let Some(node) = node else { return which };
        let node = m.resize(node, bits);
        // A sum of the node moved by each bit of the number of children.
        let mut sum = which;
        for bit in (0..children.ilog2() + 1).filter(|bit| children >> bit & 1 == 1) {
            let moved = m.shl_by(node, bit);
            sum = m.add(sum, moved);
        }
        sum
    }
}
