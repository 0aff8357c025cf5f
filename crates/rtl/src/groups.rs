//! The words of multicast groups in a device.
//!
//! A group is a word at its number: whether there is one, how many copies it has, and its first node. Nodes are words of a replica
//! number and a port. Both are there in two banks, as tables are; word n in bank b is word 2 n + b of the port.

use millrace_netlist::address_width;
use millrace_pipeline::Bits;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Multicast groups: those of number 1 to one less.
pub const GROUPS: u32 = 64;
/// Copies of all multicast groups together.
pub const NODES: u32 = 256;

/// Multicast groups: for each number the ports and replica numbers of its copies.
pub type Groups = BTreeMap<u32, Vec<(u32, u16)>>;

/// What of multicast groups is more than a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// The number of a group.
    Group(u32),
    /// Copies.
    Copies(usize),
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooMany::Group(group) => {
                write!(f, "multicast group {group} is not from 1 to {} (limit GROUPS)", GROUPS - 1)
            }
            TooMany::Copies(copies) => {
                write!(f, "{copies} copies in multicast groups, more than {NODES} (limit NODES)")
            }
        }
    }
}

impl std::error::Error for TooMany {}

/// Bits of the number of a node.
fn node_bits() -> u32 {
    address_width(NODES)
}

/// Bits of the word of a group.
pub(crate) fn group_width() -> u32 {
    1 + node_bits() + 1 + node_bits()
}

/// Bits of the word of a node.
pub(crate) const NODE_WIDTH: u32 = 48;

/// The words of all groups, and which have changed.
#[derive(Debug)]
pub(crate) struct GroupWords {
    groups: Area,
    nodes: Area,
}

#[derive(Debug)]
struct Area {
    /// The number of its port.
    port: usize,
    words: Vec<Bits>,
    changed: BTreeSet<usize>,
}

impl Area {
    fn new(port: usize, words: u32, width: u32) -> Area {
        Area { port, words: vec![Bits::zero(width); words as usize], changed: BTreeSet::new() }
    }

    fn set(&mut self, at: usize, word: Bits) {
        if self.words[at] != word {
            self.words[at] = word;
            self.changed.insert(at);
        }
    }

    fn take(&mut self) -> (usize, Vec<(u64, Bits)>) {
        let changed = std::mem::take(&mut self.changed).into_iter();
        (self.port, changed.map(|at| (2 * at as u64, self.words[at].clone())).collect())
    }
}

impl GroupWords {
    /// None, by the ports of those numbers.
    pub(crate) fn new(groups: usize, nodes: usize) -> GroupWords {
        GroupWords {
            groups: Area::new(groups, GROUPS, group_width()),
            nodes: Area::new(nodes, NODES, NODE_WIDTH),
        }
    }

    pub(crate) fn set(&mut self, groups: &Groups) -> Result<(), TooMany> {
        let copies: usize = groups.values().map(Vec::len).sum();
        if copies > NODES as usize {
            return Err(TooMany::Copies(copies));
        }
        if let Some(group) = groups.keys().find(|group| !(1..GROUPS).contains(*group)) {
            return Err(TooMany::Group(*group));
        }
        let bits = node_bits();
        let mut next = 0;
        for number in 1..GROUPS {
            let word = match groups.get(&number) {
                Some(members) => Bits::new(1, 1)
                    .concat(&Bits::new(bits + 1, members.len() as u128))
                    .concat(&Bits::new(bits, next as u128 % u128::from(NODES))),
                None => Bits::zero(group_width()),
            };
            self.groups.set(number as usize, word);
            for (port, rid) in groups.get(&number).into_iter().flatten() {
                let node = Bits::new(16, u128::from(*rid)).concat(&Bits::new(32, u128::from(*port)));
                self.nodes.set(next, node);
                next += 1;
            }
        }
        Ok(())
    }

    pub(crate) fn change_all(&mut self) {
        for area in [&mut self.groups, &mut self.nodes] {
            area.changed.extend(0..area.words.len());
        }
    }

    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = (usize, Vec<(u64, Bits)>)> {
        [self.nodes.take(), self.groups.take()].into_iter()
    }
}
