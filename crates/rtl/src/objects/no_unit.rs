//! Why an object has no unit, so that its ports are ports of the stages.

use super::ObjectUnit;
use crate::limits::*;
use crate::stage::ObjectKey;
use std::fmt;

/// What is too large, or not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoUnit {
    /// Cells of an array.
    Cells(u64),
    /// Bits of memory.
    Bits(u64),
    /// Words that software reaches.
    Words(u64),
    /// Bits of memory of all objects of a program, this one among them.
    AllBits(u64),
    /// Words of them that software reaches.
    AllWords(u64),
    /// Bits of such a word.
    Width(u32),
    /// Cells with an initial value that is not 0.
    Initial(u32),
    /// Members of a value set.
    Members(u32),
    /// Bits of the members of all value sets, of this one among them.
    AllMembers(u64),
    /// A value set without fields.
    NoFields,
    /// A hash with settable parameters of another algorithm than a CRC.
    Algorithm,
    /// A table, whose entry no match engine holds.
    Table,
}

impl fmt::Display for NoUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self {
            NoUnit::AllBits(_) | NoUnit::AllWords(_) => "with it the units of all objects",
            NoUnit::AllMembers(_) => "with it the units of all value sets",
            _ => "its unit",
        };
        let (has, of, most, limit) = match *self {
            NoUnit::Cells(0) => return f.write_str("it has no cells"),
            NoUnit::Cells(cells) => (cells, "cells", MAX_OBJECT_WORDS, "MAX_OBJECT_WORDS"),
            NoUnit::Bits(bits) => (bits, "bits of memory", MAX_OBJECT_BITS, "MAX_OBJECT_BITS"),
            NoUnit::Words(words) => (words, "words", MAX_OBJECT_WORDS, "MAX_OBJECT_WORDS"),
            NoUnit::AllBits(bits) => (bits, "bits of memory", MAX_OBJECTS_BITS, "MAX_OBJECTS_BITS"),
            NoUnit::AllWords(words) => (words, "words", MAX_OBJECTS_WORDS, "MAX_OBJECTS_WORDS"),
            NoUnit::Width(bits) => (bits.into(), "bits in a word", MAX_VALUE.into(), "MAX_VALUE"),
            NoUnit::Initial(cells) => {
                (cells.into(), "cells that are not 0 at first", MAX_INITIAL_CELLS, "MAX_INITIAL_CELLS")
            }
            NoUnit::AllMembers(bits) => (bits, "bits of members", MAX_MEMBERS_BITS, "MAX_MEMBERS_BITS"),
            NoUnit::Members(members) => (members.into(), "members", MAX_MEMBERS, "MAX_MEMBERS"),
            NoUnit::NoFields => return f.write_str("it has no fields"),
            NoUnit::Algorithm => return f.write_str("its algorithm is no CRC"),
            NoUnit::Table => {
                return write!(
                    f,
                    "no match engine holds its entries: it has words of more than {MAX_VALUE} bits (limit MAX_VALUE), or with the tables before \
                     it more than {MAX_TABLES_BITS} bits of memory (limit MAX_TABLES_BITS)"
                );
            }
        };
        write!(f, "{whose} would have {has} {of}, more than {most} (limit {limit})")
    }
}

/// What the units of a program's objects have together.
#[derive(Debug, Default)]
pub(crate) struct AllUnits {
    bits: u64,
    words: u64,
    members: u64,
}

impl AllUnits {
    /// Counts another one, if it is within the limits with those before.
    pub(crate) fn add(&mut self, unit: ObjectUnit) -> Result<ObjectUnit, NoUnit> {
        let (bits, words) = (self.bits + unit.storage(), self.words + unit.port().words);
        let own = if matches!(unit.key, ObjectKey::ValueSet(_)) { unit.storage() } else { 0 };
        let members = self.members + own;
        if members > MAX_MEMBERS_BITS {
            return Err(NoUnit::AllMembers(members));
        }
        if bits > MAX_OBJECTS_BITS {
            return Err(NoUnit::AllBits(bits));
        }
        if words > MAX_OBJECTS_WORDS {
            return Err(NoUnit::AllWords(words));
        }
        (self.bits, self.words, self.members) = (bits, words, members);
        Ok(unit)
    }
}
