//! What blocks cost, and what is called from them.

use crate::decode::{Access, Instruction};
use crate::graph::Block;
use std::ops::{Add, AddAssign, Mul};

/// Bytes of a cache line.
pub(crate) const LINE: u32 = 64;

/// What some code takes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Instructions executed; of an instruction that repeats itself, each turn.
    pub instructions: u64,
    /// Those of them that are in the compiled code itself, not in what it calls.
    pub own: u64,
    /// Cache lines of data that are touched, without those of the frame of the code.
    pub lines: u64,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            instructions: self.instructions.saturating_add(other.instructions),
            own: self.own.saturating_add(other.own),
            lines: self.lines.saturating_add(other.lines),
        }
    }
}

impl Cost {
    /// The larger of two, in each regard alone.
    pub(crate) fn most(self, other: Cost) -> Cost {
        Cost {
            instructions: self.instructions.max(other.instructions),
            own: self.own.max(other.own),
            lines: self.lines.max(other.lines),
        }
    }

    /// Cache lines alone.
    pub(crate) fn of_lines(lines: u64) -> Cost {
        Cost { lines, ..Cost::default() }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl Mul<u64> for Cost {
    type Output = Cost;

    fn mul(self, times: u64) -> Cost {
        Cost {
            instructions: self.instructions.saturating_mul(times),
            own: self.own.saturating_mul(times),
            lines: self.lines.saturating_mul(times),
        }
    }
}

/// The cost of a block without what it calls.
pub(crate) fn of_block(block: &Block) -> Cost {
    let instructions = block.instructions.len() as u64;
    Cost { instructions, own: instructions, lines: lines(&block.instructions) }
}

/// The cache lines that instructions in a row touch at most.
///
/// Two accesses whose addresses are made of the same registers, unchanged between them, are as far apart as their offsets. So
/// those of one such group lie within a span of bytes that is known, and a span touches one line for each 64 bytes of it and one
/// more, wherever it starts.
fn lines(instructions: &[Instruction]) -> u64 {
    let mut groups: Vec<([u16; 2], bool, i64, i64)> = Vec::new();
    let mut total = 0;
    for instruction in instructions {
        for access in instruction.accesses.iter().filter(|access| !access.in_frame) {
            note(&mut groups, access);
        }
        for changed in &instruction.changes {
            // A later access by it is of another group.
            for (registers, is_open, ..) in &mut groups {
                *is_open &= !registers.contains(changed);
            }
        }
    }
    for (_, _, low, high) in groups {
        total += (high.abs_diff(low) - 1).div_ceil(u64::from(LINE)) + 1;
    }
    total
}

fn note(groups: &mut Vec<([u16; 2], bool, i64, i64)>, access: &Access) {
    let (low, high) = (access.offset, access.offset + i64::from(access.size));
    // What lies farther apart than a line brings as many lines alone.
    let near = |from: i64, to: i64| low <= to + i64::from(LINE) && from <= high + i64::from(LINE);
    let found = groups.iter_mut().find(|(registers, is_open, from, to)| {
        *registers == access.registers && *is_open && near(*from, *to)
    });
    match found {
        Some((_, _, from, to)) => (*from, *to) = ((*from).min(low), (*to).max(high)),
        None => groups.push((access.registers, true, low, high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Flow;

    fn access(register: u16, offset: i64, size: u32) -> Instruction {
        let access = Access { in_frame: false, writes: false, registers: [register, 0], offset, size };
        Instruction { at: 0, len: 4, flow: Flow::Next, accesses: vec![access], changes: Vec::new() }
    }

    #[test]
    fn a_span_touches_a_line_more_than_it_is_long() {
        // A byte is in one line; two may be in two; 65 bytes too, 66 may be in three.
        assert_eq!(lines(&[access(1, 0, 1)]), 1);
        assert_eq!(lines(&[access(1, 0, 2)]), 2);
        assert_eq!(lines(&[access(1, 0, 1), access(1, 64, 1)]), 2);
        assert_eq!(lines(&[access(1, 0, 1), access(1, 64, 2)]), 3);
        // Other registers, or the same after a change, may be anywhere.
        assert_eq!(lines(&[access(1, 0, 1), access(2, 0, 1)]), 2);
        let change = Instruction { changes: vec![1], accesses: Vec::new(), ..access(1, 0, 1) };
        assert_eq!(lines(&[access(1, 0, 1), change, access(1, 0, 1)]), 2);
    }
}
