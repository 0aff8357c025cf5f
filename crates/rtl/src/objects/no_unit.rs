//! Why an object has no unit, so that its ports are ports of the stages.

use crate::limits::{MAX_INITIAL_CELLS, MAX_MEMBERS, MAX_OBJECT_BITS, MAX_OBJECT_WORDS, MAX_VALUE};
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
    /// Bits of such a word.
    Width(u32),
    /// Cells with an initial value that is not 0.
    Initial(u32),
    /// Members of a value set.
    Members(u32),
    /// A value set without fields.
    NoFields,
    /// A hash with settable parameters of another algorithm than a CRC.
    Algorithm,
    /// A table, whose entry no match engine holds.
    Table,
}

impl fmt::Display for NoUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has, of, most, limit) = match *self {
            NoUnit::Cells(0) => return f.write_str("it has no cells"),
            NoUnit::Cells(cells) => (cells, "cells", MAX_OBJECT_WORDS, "MAX_OBJECT_WORDS"),
            NoUnit::Bits(bits) => (bits, "bits of memory", MAX_OBJECT_BITS, "MAX_OBJECT_BITS"),
            NoUnit::Words(words) => (words, "words", MAX_OBJECT_WORDS, "MAX_OBJECT_WORDS"),
            NoUnit::Width(bits) => (bits.into(), "bits in a word", MAX_VALUE.into(), "MAX_VALUE"),
            NoUnit::Initial(cells) => {
                (cells.into(), "cells that are not 0 at first", MAX_INITIAL_CELLS, "MAX_INITIAL_CELLS")
            }
            NoUnit::Members(members) => (members.into(), "members", MAX_MEMBERS, "MAX_MEMBERS"),
            NoUnit::NoFields => return f.write_str("it has no fields"),
            NoUnit::Algorithm => return f.write_str("its algorithm is no CRC"),
            NoUnit::Table => {
                return write!(
                    f,
                    "no match engine holds its entries (words of {MAX_VALUE} bits, limit MAX_VALUE)"
                );
            }
        };
        write!(f, "its unit would have {has} {of}, more than {most} (limit {limit})")
    }
}
