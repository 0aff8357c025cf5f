//! The units of tables, as hardware: a module each, and the words that software writes to it.
//!
//! | keys | unit | how |
//! | --- | --- | --- |
//! | all entries const | [`Kind::Constant`] | comparisons with constants, no memory |
//! | exact, at most [`DIRECT_BITS`] bits | [`Kind::Direct`] | a memory with a word for each key |
//! | exact | [`Kind::Hash`] | memories with a hash each, and a stash where they are nearly full; software places entries by moving others (cuckoo hashing) |
//! | one field of prefixes or ranges, others exact | [`Kind::Tree`] | a search tree over the places where the answer changes, a level after the other |
//! | any other, and few prefixes | [`Kind::Tcam`] | memories that parts of the key address, with a bit for each entry |
//!
//! A unit takes a key in each cycle and answers [`TableUnit::latency`] cycles later with [`LookupAnswer`].
//!
//! # Writes
//! Each memory exists twice, in two *banks*. Frames meet one of them; software writes the other, and then has frames meet that. The
//! bank goes with the frame from stage to stage of the pipeline, so a frame meets all tables before a batch of writes or all after
//! it, and no word is written in a bank that is read. When no frame meets the old bank any more, software writes the same words there.
//! [`Contents`] says which words those are. What a member of an action profile does is in the words of each entry that names it.
//!
//! # Groups
//! The words of an entry with a group of an action selector say where the members of the group begin in a memory of their own and how
//! many places they take there: a member has as many places as its weight. The pipeline gives the selector's hash with the key. The
//! remainder of the hash by the number of places chooses one, as software chooses ([`Choice`]).

mod content;
mod hardware;
mod layout;
mod order;
mod slices;

pub(crate) use content::Numbers;
pub(crate) use content::call_data;
pub use content::{Contents, Full};
pub use layout::Area;

#[cfg(test)]
mod tests;

use crate::convert::answer_width;
use crate::limits::MAX_VALUE;
use crate::software_port::{PortKind, SoftwarePort};
use crate::stage::LookupAnswer;
use millrace_netlist::address_width;
use millrace_pipeline::{MatchKind, Program, Table, TableId};

/// Bits of a key that is an address.
pub const DIRECT_BITS: u32 = 10;
/// Const entries that become logic; where there are more, they are in memory.
pub const CONSTANT: usize = 256;
/// Entries of a hash unit that are compared with each key, next to those in memories, unless these are mostly empty.
pub const STASH: u32 = 4;
/// Bits of the address of a block memory that is as wide as possible, without the bank.
pub const BLOCK_BITS: u32 = 8;
/// Up to so many entries the parts of a key address lookup tables, above block memory. Prefixes are in a tree then.
pub const FEW: u64 = 64;
/// The most entries of a unit that compares all of them, unless a capacity is asked for.
pub const COMPARED: u64 = 512;
/// The most entries of a unit with hashes or a tree, unless a capacity is asked for.
pub const SEARCHED: u64 = 1 << 12;
/// The most entries of any unit.
pub const MAX_CAPACITY: u64 = 1 << 16;
/// Bits of one memory of a unit that compares all entries, for so many of these.
pub(crate) const GROUP: u32 = 64;

/// How a unit finds the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Logic for the const entries of the program.
    Constant,
    /// A word for each key.
    Direct,
    /// Memories with a hash each.
    Hash {
        /// How many memories.
        memories: u32,
        /// Bits of the address of one.
        bits: u32,
        /// How many entries.
        entries: u32,
    },
    /// A search tree.
    Tree {
        /// How many entries.
        entries: u32,
        /// Keys of a node that are compared at once.
        keys: u32,
    },
    /// Memories that parts of the key address.
    Tcam {
        /// How many entries.
        entries: u32,
        /// Whether they are block memories.
        block: bool,
    },
}

impl Kind {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Constant => "constant",
            Kind::Direct => "direct",
            Kind::Hash { .. } => "hash",
            Kind::Tree { .. } => "tree",
            Kind::Tcam { block: true, .. } => "tcam",
            Kind::Tcam { block: false, .. } => "small tcam",
        }
    }

    fn capacity(self, fields: &[(u32, MatchKind)]) -> Option<u64> {
        match self {
            Kind::Constant => None,
            Kind::Direct => Some(1 << fields.iter().map(|(width, _)| width).sum::<u32>()),
            Kind::Hash { entries, .. } | Kind::Tree { entries, .. } | Kind::Tcam { entries, .. } => {
                Some(entries.into())
            }
        }
    }

    /// The memories of a unit with hashes for so many entries.
    ///
    /// A block memory has its words whether they are in use or not, so small units have few memories that are mostly empty: a memory
    /// less is a comparison less with each key, and where three of four words are free, some seed has a place for each key without a
    /// stash. In large units nine tenths of the words are in use at most, in four to eight memories, so that few more words are there
    /// than that.
    fn hash(entries: u32) -> Kind {
        let (memories, bits) = match entries {
            0..=128 => (2, BLOCK_BITS),
            129..=384 => (3, BLOCK_BITS),
            _ => {
                let words = (entries * 10).div_ceil(9);
                let bits = (words / 4).ilog2();
                (words.div_ceil(1 << bits).max(4), bits)
            }
        };
        Kind::Hash { memories, bits, entries }
    }

    /// Entries that are compared with each key.
    pub(crate) fn stash(self) -> u32 {
        match self {
            Kind::Hash { memories, bits, entries } if 4 * entries > memories << bits => STASH,
            _ => 0,
        }
    }
}

/// How an answer is kept in a memory, from its lowest bit on: the action, the entry, the data of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Bits of the index of the action.
    pub action: u32,
    /// Bits of the number of the entry: 0 where nothing asks for it.
    pub entry: u32,
    /// Bits of the data, or of the place of a group's members.
    pub data: u32,
    /// Bits that say whether there is a group.
    pub chosen: u32,
}

/// How an entry comes to its action, in the highest bits of a stored answer where the table has a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// It is in the answer.
    Given,
    /// Of a group, by the selector's hash.
    ByHash,
    /// Of a group, at random.
    AtRandom,
}

impl Chosen {
    /// Bits of it.
    const BITS: u32 = 2;
}

/// How the unit of a table with an action selector chooses members of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Places for members of groups: the weights of all groups that entries name are no more, all together.
    pub places: u32,
    /// Bits of the hash.
    pub hash: u32,
}

impl Choice {
    fn of(program: &Program, table: &Table, capacity: Option<u64>) -> Option<Choice> {
        let profile = &program.profiles[table.profile?];
        let selector = profile.selector.as_ref()?;
        let least = profile.size.max(u64::from(selector.max_group_size));
        let places = capacity.unwrap_or(least.min(SEARCHED)).clamp(1, MAX_CAPACITY) as u32;
        let is_fixed = table.const_entries && table.const_default;
        (!is_fixed).then_some(Choice { places, hash: selector.width })
    }

    /// Bits of the first place of a group.
    pub(crate) fn base_bits(self) -> u32 {
        address_width(self.places)
    }

    /// Bits of how many places a group has.
    pub(crate) fn count_bits(self) -> u32 {
        address_width(self.places + 1)
    }
}

impl Stored {
    fn of(table: &Table, (answer, numbers): (u32, u64), choice: Option<Choice>) -> Stored {
        let action = usize::BITS - table.actions.len().saturating_sub(1).leading_zeros();
        let keeps_hits = table.idle_timeout && !table.const_entries;
        let is_needed = keeps_hits || table.direct_counter.is_some() || table.direct_meter.is_some();
        let entry = if is_needed { address_width(numbers as u32 + 1) } else { 0 };
        let data = answer - LookupAnswer::DATA;
        match choice {
            None => Stored { action, entry, data, chosen: 0 },
            Some(choice) => {
                let data = data.max(choice.base_bits() + choice.count_bits());
                Stored { action, entry, data, chosen: Chosen::BITS }
            }
        }
    }

    /// All of its bits.
    pub fn bits(self) -> u32 {
        self.action + self.entry + self.data + self.chosen
    }
}

/// The unit of a table: what its module and its words are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUnit {
    /// The table.
    pub table: TableId,
    /// How it finds an entry.
    pub kind: Kind,
    /// The widths of the fields of the key, the first one highest, and how they match.
    pub fields: Vec<(u32, MatchKind)>,
    /// The bits of an answer.
    pub answer: u32,
    /// How an answer is kept.
    pub stored: Stored,
    /// The default action never changes.
    pub const_default: bool,
    /// How it chooses members of groups; none: no entry has a group.
    pub choice: Option<Choice>,
}

impl TableUnit {
    /// The unit of a table. `capacity` says of the name of a table how many entries its unit has to hold, if not as many as the table
    /// declares; of that of an action selector, how many members of groups. None: the words would be wider than [`MAX_VALUE`].
    pub fn of(program: &Program, id: TableId, capacity: impl Fn(&str) -> Option<u64>) -> Option<TableUnit> {
        let table = &program.tables[id];
        let fields: Vec<(u32, MatchKind)> =
            table.keys.iter().map(|key| (key.value.ty(program).bits().unwrap_or(1), key.kind)).collect();
        let answer = answer_width(program, id);
        let kind = kind(table, &fields, capacity(&table.name));
        let places = table.profile.and_then(|profile| capacity(&program.profiles[profile].name));
        let choice = Choice::of(program, table, places);
        let numbers = kind.capacity(&fields).unwrap_or(table.entries.len() as u64);
        let stored = Stored::of(table, (answer, numbers), choice);
        let const_default = table.const_default;
        let unit = TableUnit { table: id, kind, fields, answer, stored, const_default, choice };
        (unit.widest() <= MAX_VALUE).then_some(unit)
    }

    /// The port through which software writes its words, if there are any.
    pub fn software_port(&self, program: &Program) -> Option<SoftwarePort> {
        let words = 2 * self.words();
        (words > 0).then(|| SoftwarePort {
            object: program.tables[self.table].name.clone(),
            kind: PortKind::Table,
            words,
            width: self.widest(),
            readable: false,
            writable: true,
        })
    }

    /// The bits of the key.
    pub fn key(&self) -> u32 {
        self.fields.iter().map(|(width, _)| width).sum()
    }

    /// How many entries it holds, whichever they are; none if they are part of it.
    pub fn capacity(&self) -> Option<u64> {
        self.kind.capacity(&self.fields)
    }

    /// The largest number that an entry has.
    pub(crate) fn last_number(&self, program: &Program) -> u64 {
        self.capacity().unwrap_or(program.tables[self.table].entries.len() as u64)
    }

    /// The bits of memory, of both banks.
    pub fn storage(&self) -> u64 {
        self.areas().iter().map(|area| 2 * u64::from(area.words) * u64::from(area.width)).sum()
    }

    /// Bits of the data of an action.
    fn data(&self) -> u32 {
        self.answer - LookupAnswer::DATA
    }

    fn widest(&self) -> u32 {
        self.areas().iter().map(|area| area.width).max().unwrap_or(0)
    }
}

/// The kind of unit for a table, by its key and its size.
fn kind(table: &Table, fields: &[(u32, MatchKind)], capacity: Option<u64>) -> Kind {
    let bits: u32 = fields.iter().map(|(width, _)| width).sum();
    let least = table.entries.len() as u64;
    let wanted = |most: u64| capacity.unwrap_or(table.size.min(most)).max(least).clamp(1, MAX_CAPACITY);
    if table.const_entries && table.entries.len() <= CONSTANT {
        return Kind::Constant;
    }
    let others: Vec<MatchKind> =
        fields.iter().map(|(_, kind)| *kind).filter(|kind| *kind != MatchKind::Exact).collect();
    match others[..] {
        [] if bits <= DIRECT_BITS => Kind::Direct,
        [] => Kind::hash(wanted(SEARCHED) as u32),
        [MatchKind::Lpm | MatchKind::Range] if wanted(SEARCHED) > FEW => {
            Kind::Tree { entries: wanted(SEARCHED) as u32, keys: layout::keys_of_node(bits) }
        }
        _ => {
            let entries = wanted(COMPARED);
            Kind::Tcam { entries: entries as u32, block: entries > FEW }
        }
    }
}
