//! The units of tables, as hardware: a module each, and the words that software writes to it.
//!
//! | keys | unit | how |
//! | --- | --- | --- |
//! | exact, at most [`DIRECT_BITS`] bits | [`Kind::Direct`] | a memory with a word for each key |
//! | exact | [`Kind::Hash`] | four memories with a hash each; software places entries by moving others (cuckoo hashing) |
//! | any other | [`Kind::Compare`] | every entry's value and mask in registers, all compared at once; the first that matches wins |
//!
//! A unit takes a key in each cycle and answers [`Unit::latency`](crate::Unit::latency) cycles later with
//! [`LookupAnswer`]. It has one write port, an address and a word; the highest address is the answer to a miss.
//! [`words()`] gives all words for what a table holds.

mod content;
mod module;

pub(crate) use content::{Contents, call_data};
pub use content::{Full, words};

#[cfg(test)]
mod tests;

use crate::convert::answer_width;
use crate::limits::MAX_VALUE;
use crate::software_port::{PortKind, SoftwarePort};
use crate::stage::LookupAnswer;
use millrace_pipeline::{MatchKind, Program, TableId};

/// Bits of a key that is an address.
pub const DIRECT_BITS: u32 = 10;
/// The memories of a hash unit.
pub const HASHES: u32 = 4;
/// The most entries of a unit that compares all of them, unless a capacity is asked for.
pub const COMPARED: u64 = 64;
/// The most entries of a unit with memories, unless a capacity is asked for.
pub const HASHED: u64 = 1 << 12;
/// The most entries of any unit.
pub const MAX_CAPACITY: u64 = 1 << 16;

/// How a unit finds the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word for each key.
    Direct,
    /// Four memories of so many words, each with a hash of its own.
    Hash {
        /// Bits of the address of one.
        bits: u32,
    },
    /// So many entries are compared at once.
    Compare {
        /// How many.
        entries: u32,
    },
}

impl Kind {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Hash { .. } => "hash",
            Kind::Compare { .. } => "compare",
        }
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
}

impl TableUnit {
    /// The unit of a table; `capacity` says how many entries it has to hold, if not as many as the table declares. None: entries
    /// name members of an action profile, or the words would be wider than [`MAX_VALUE`].
    pub fn of(program: &Program, id: TableId, capacity: Option<u64>) -> Option<TableUnit> {
        let table = &program.tables[id];
        if table.profile.is_some() {
            return None;
        }
        let fields: Vec<(u32, MatchKind)> =
            table.keys.iter().map(|key| (key.value.ty(program).bits().unwrap_or(1), key.kind)).collect();
        let bits: u32 = fields.iter().map(|(width, _)| width).sum();
        let exact = fields.iter().all(|(_, kind)| *kind == MatchKind::Exact);
        let least = table.entries.len() as u64;
        let wanted = |most: u64| capacity.unwrap_or(table.size.min(most)).max(least).clamp(1, MAX_CAPACITY);
        let kind = match exact {
            true if bits <= DIRECT_BITS => Kind::Direct,
            true => {
                // At most nine tenths of the words are in use.
                let words = (wanted(HASHED) * 10).div_ceil(9).div_ceil(u64::from(HASHES));
                Kind::Hash { bits: words.next_power_of_two().trailing_zeros().max(2) }
            }
            false => Kind::Compare { entries: wanted(COMPARED) as u32 },
        };
        let unit = TableUnit { table: id, kind, fields, answer: answer_width(program, id) };
        (unit.word() <= MAX_VALUE).then_some(unit)
    }

    /// The port through which software writes its words.
    pub fn software_port(&self, program: &Program) -> SoftwarePort {
        SoftwarePort {
            object: program.tables[self.table].name.clone(),
            kind: PortKind::Table,
            words: u64::from(self.miss()) + 1,
            width: self.word(),
            readable: false,
            writable: true,
        }
    }

    /// The bits of the key.
    pub fn key(&self) -> u32 {
        self.fields.iter().map(|(width, _)| width).sum()
    }

    /// The cycles from a key to its answer.
    pub fn latency(&self) -> u32 {
        3
    }

    /// How many entries it holds at least.
    pub fn capacity(&self) -> u64 {
        match self.kind {
            Kind::Direct => 1 << self.key(),
            Kind::Hash { bits } => (u64::from(HASHES) << bits) * 9 / 10,
            Kind::Compare { entries } => u64::from(entries),
        }
    }

    /// The bits of memory, or of registers where all entries are compared.
    pub fn storage(&self) -> u64 {
        u64::from(self.word()) * u64::from(self.miss()) + u64::from(self.answer)
    }

    /// The address of the answer to a miss; those below are of entries.
    pub fn miss(&self) -> u32 {
        match self.kind {
            Kind::Direct => 1 << self.key(),
            Kind::Hash { bits } => HASHES << bits,
            Kind::Compare { entries } => entries,
        }
    }

    /// The bits of an address.
    pub fn address(&self) -> u32 {
        32 - self.miss().leading_zeros()
    }

    /// The bits of a word: the answer lowest, then what tells the key, then whether there is an entry.
    pub fn word(&self) -> u32 {
        1 + self.answer
            + match self.kind {
                Kind::Direct => 0,
                Kind::Hash { .. } => self.key(),
                Kind::Compare { .. } => 2 * self.key(),
            }
    }

    /// The largest answer that a table may give.
    pub(crate) fn data(&self) -> u32 {
        self.answer - LookupAnswer::DATA
    }
}
