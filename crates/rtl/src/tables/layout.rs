//! The memories of a unit, and where software finds their words.

use super::slices::slices;
use super::{GROUP, Kind, TableUnit};
use millrace_netlist::address_width;

/// A memory of a unit. Its word `index` of a bank has the address `2 * (base + index) + bank` at the port of the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its name in the module.
    pub name: String,
    /// Its first word: a multiple of its words rounded up to a power of two.
    pub base: u32,
    /// Words of a bank.
    pub words: u32,
    /// Bits of a word.
    pub width: u32,
}

/// Keys that a root compares at most: about as many as two levels of nodes with seven keys, which it stands for.
const ROOT_KEYS: u32 = 16;

/// A level of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) nodes: u32,
    /// Keys of a node.
    pub(super) keys: u32,
}

/// The levels of a tree, the root first. `keys` are those of a node that is not the root; the root has one less than the nodes below it.
pub(super) fn levels(entries: u32, keys: u32) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut nodes = intervals(entries);
    while nodes > ROOT_KEYS + 1 || levels.is_empty() && nodes > 1 {
        nodes = nodes.div_ceil(keys + 1);
        levels.push(Level { nodes, keys });
    }
    if nodes > 1 {
        levels.push(Level { nodes: 1, keys: nodes - 1 });
    }
    levels.reverse();
    levels
}

/// Intervals of keys with one answer each, at most: an entry starts one, and ends one.
pub(super) fn intervals(entries: u32) -> u32 {
    2 * entries + 1
}

/// How many keys of a node are compared at once. With one less than a power of two, the number of a child is that of the node and which
/// child it is, without a sum.
pub(super) fn keys_of_node(key: u32) -> u32 {
    if key <= 160 { 7 } else { 3 }
}

/// Bits of an index of an answer; `entries` stands for the answer to a miss.
pub(super) fn index_bits(entries: u32) -> u32 {
    address_width(entries + 1)
}

impl TableUnit {
    /// Its memories, in the order of their addresses.
    pub fn areas(&self) -> Vec<Area> {
        let mut areas = Areas::default();
        let (key, stored) = (self.key(), self.stored.bits());
        match self.kind {
            Kind::Constant => {}
            Kind::Direct => areas.add("entries", 1 << key, 1 + stored),
            Kind::Hash { memories, bits, .. } => {
                (0..memories)
                    .for_each(|way| areas.add(&format!("entries{way}"), 1 << bits, 1 + key + stored));
                (0..self.kind.stash())
                    .for_each(|place| areas.add(&format!("stash{place}"), 1, 1 + key + stored));
                areas.add("seed", 1, key);
            }
            Kind::Tree { entries, keys } => {
                let levels = levels(entries, keys);
                for (number, Level { nodes, keys }) in levels.iter().enumerate() {
                    let is_leaf = number + 1 == levels.len();
                    let results = if is_leaf { (keys + 1) * index_bits(entries) } else { 0 };
                    areas.add(&format!("level{number}"), *nodes, keys * (1 + key) + results);
                }
                areas.add("answers", entries, stored);
            }
            Kind::Tcam { entries, block } => {
                for (number, slice) in slices(&self.fields, block).iter().enumerate() {
                    for group in 0..entries.div_ceil(GROUP) {
                        let width = GROUP.min(entries - group * GROUP);
                        areas.add(&format!("slice{number}_{group}"), 1 << slice.bits, width);
                    }
                }
                areas.add("answers", entries, stored);
            }
        }
        if let Some(choice) = self.choice {
            areas.add("members", choice.places, self.stored.action + self.data());
        }
        // Always the last.
        if !(self.kind == Kind::Constant && self.const_default) {
            areas.add("miss", 1, stored);
        }
        areas.0
    }

    /// The words of a bank at its port: a power of two, or 0 without memories.
    pub(super) fn words(&self) -> u64 {
        self.areas().last().map_or(0, |last| u64::from(last.base + last.words).next_power_of_two())
    }
}

#[derive(Default)]
struct Areas(Vec<Area>);

impl Areas {
    fn add(&mut self, name: &str, words: u32, width: u32) {
        let end = self.0.last().map_or(0, |last| last.base + last.words);
        let base = end.next_multiple_of(words.next_power_of_two());
        self.0.push(Area { name: name.to_owned(), base, words, width });
    }
}
