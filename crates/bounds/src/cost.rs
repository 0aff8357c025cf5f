//! What blocks cost, and what is called from them.

use crate::decode::{Access, Instruction};
use crate::graph::Block;
use rustc_hash::FxHashMap;
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
    let mut groups: FxHashMap<[u16; 2], Vec<Span>> = FxHashMap::default();
    let mut total = 0;
    for instruction in instructions {
        for access in instruction.accesses.iter().filter(|access| !access.in_frame) {
            note(groups.entry(access.registers).or_default(), access);
        }
        if !instruction.changes.is_empty() {
            // A later access by what has changed is of another group: this one is complete. Only those that may still grow are looked at.
            groups.retain(|registers, spans| {
                let is_open = !instruction.changes.iter().any(|changed| registers.contains(changed));
                total += if is_open { 0 } else { spans.iter().map(touched).sum() };
                is_open
            });
        }
    }
    total + groups.values().flatten().map(touched).sum::<u64>()
}

/// From the lowest byte to after the highest.
type Span = (i64, i64);

/// The lines that a span touches at most.
fn touched((low, high): &Span) -> u64 {
    (high.abs_diff(*low) - 1).div_ceil(u64::from(LINE)) + 1
}

/// Adds an access. No two spans are nearer to each other than a line; what lies farther apart brings as many lines alone.
fn note(spans: &mut Vec<Span>, access: &Access) {
    let mut span = (access.offset, access.offset + i64::from(access.size));
    let line = i64::from(LINE);
    // From the last one on: code goes on next to where it was.
    while let Some(at) = spans.iter().rposition(|(low, high)| span.0 <= high + line && *low <= span.1 + line)
    {
        let (low, high) = spans[at];
        if low <= span.0 && span.1 <= high {
            return;
        }
        span = (low.min(span.0), high.max(span.1));
        spans.swap_remove(at);
    }
    spans.push(span);
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
        // What joins two spans makes one of them: bytes 0 to 199 are in five lines at most.
        assert_eq!(lines(&[access(1, 0, 8), access(1, 192, 8), access(1, 72, 56)]), 5);
        // Other registers, or the same after a change, may be anywhere.
        assert_eq!(lines(&[access(1, 0, 1), access(2, 0, 1)]), 2);
        let change = Instruction { changes: vec![1], accesses: Vec::new(), ..access(1, 0, 1) };
        assert_eq!(lines(&[access(1, 0, 1), change, access(1, 0, 1)]), 2);
    }
}
