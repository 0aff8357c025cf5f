//! Prefixes and ranges: a search tree over the keys at which the answer changes.
//!
//! The keys at which another interval starts are in order in the leaves. A node has a few of them; the number of those that are not
//! above the key, all compared at once, says which node of the next level goes on, or in a leaf which interval it is. A level takes a cycle
//! for its memory, one more where that is block memory, which lies far from the logic, one for the comparison, and one for the number of the
//! node below, whose wires go to all of the next memory. The root is the same word for each key, so it is read while the key comes.

use super::{Found, Making};
use crate::tables::layout::{Level, index_bits, levels};
use millrace_netlist::{NodeId, address_width};

/// Nodes of a level up to which it is in lookup tables: with both banks 32 words, which a lookup table holds.
const SMALL: u32 = 16;

/// Bits that are compared as a whole: a carry chain of more takes most of a cycle.
const COMPARED: u32 = 64;

/// Cycles from a key to what is found.
pub(super) fn cycles(entries: u32, keys: u32) -> u32 {
    let levels = levels(entries, keys);
    // The key comes in a register, and so does the number of each node below the root and the index of the answer; then its word.
    let compared: u32 = levels.iter().map(|level| level.cycles()).sum();
    1 + compared + levels.len() as u32 + 2
}

impl Level {
    fn is_small(&self) -> bool {
        self.nodes <= SMALL
    }

    /// Cycles from the number of a node to what the comparison with its keys says.
    fn cycles(&self) -> u32 {
        match self.nodes {
            1 => 1,
            _ if self.is_small() => 2,
            _ => 3,
        }
    }
}

/// What goes from level to level.
struct Search {
    key: NodeId,
    /// The node of the level, none for the root; after the leaf the index of the answer.
    node: Option<NodeId>,
    /// The cycles since the key came.
    cycle: u32,
}

impl Making<'_> {
    pub(super) fn tree(&mut self, entries: u32, keys: u32) -> Found {
        let stored = self.unit.stored.bits();
        let (Some(key), index) = (self.searched(), index_bits(entries)) else {
            let (hit, stored) = (self.m.number(1, 0), self.m.number(stored, 0));
            return Found { hit, stored, cycle: cycles(entries, keys) };
        };
        let levels = levels(entries, keys);
        let mut search = Search { key, node: None, cycle: 1 };
        for (number, level) in levels.iter().enumerate() {
            let word = self.node(number, level, &mut search);
            let compared = self.keys_compared(search.key, word, level.keys);
            let compared = self.m.delayed(&format!("compared{number}"), compared, None);
            self.step(&mut search);
            let passed = self.passed(compared, level.keys);
            let chosen = self.chosen(&passed);
            search.node = Some(match levels.get(number + 1) {
                Some(below) => self.child(search.node, &chosen, address_width(below.nodes)),
                None => {
                    let results =
                        self.m.slice(word, level.keys * (1 + self.m.width(key)), (level.keys + 1) * index);
                    let results = self.m.delayed("results", results, None);
                    let choices: Vec<(NodeId, NodeId)> = (chosen.iter().zip(0..))
                        .map(|(chosen, at)| (*chosen, self.m.slice(results, at * index, index)))
                        .collect();
                    self.m.one_hot(index, &choices)
                }
            });
            self.step(&mut search);
        }
        let cycle = search.cycle;
        let index_node = search.node.unwrap_or_else(|| self.m.number(index, 0));
        let none = self.m.is(index_node, u128::from(entries));
        let hit = self.m.not(none);
        let answers = self.memory("answers");
        let at = (entries > 1).then(|| self.m.slice(index_node, 0, address_width(entries)));
        let place = self.place(at, cycle);
        let word = self.m.read_clocked(answers, place, None);
        let hit = self.m.delayed("hit", hit, None);
        let (hit, word) = (self.m.delayed("hit_2", hit, None), self.m.delayed("word", word, None));
        debug_assert_eq!(cycle + 2, cycles(entries, keys));
        Found { hit, stored: word, cycle: cycle + 2 }
    }

    /// The word of the node, when it is there.
    fn node(&mut self, number: usize, level: &Level, search: &mut Search) -> NodeId {
        let memory = self.memory(&format!("level{number}"));
        let at = (level.nodes > 1).then_some(search.node).flatten();
        // The root is read in the cycle before the one in which the key is in its register.
        let place = self.place(at, if at.is_none() { search.cycle - 1 } else { search.cycle });
        let word = match level.is_small() {
            true => self.m.read(memory, place),
            false => self.m.read_clocked(memory, place, None),
        };
        for _ in 1..level.cycles() {
            self.step(search);
        }
        self.m.delayed(&format!("word{number}"), word, None)
    }

    /// A cycle later.
    fn step(&mut self, search: &mut Search) {
        search.cycle += 1;
        search.key = self.m.delayed(&format!("key_{}", search.cycle), search.key, None);
        search.node = search.node.map(|node| self.m.delayed(&format!("node_{}", search.cycle), node, None));
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
        let which_bits = address_width(chosen.len() as u32);
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
