//! The program that a filter becomes, its checks, and the loop that runs it.

use std::fmt;

/// Most instructions of a filter. Each runs at most once for a frame.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// Intermediate results that an arithmetic expression may keep.
pub(super) const MEMORY: usize = 16;

/// How many bytes are read; the first one is most significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Byte,
    Half,
    Word,
}

/// A comparison of two numbers without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Equal,
    Above,
    AtLeast,
}

impl Test {
    #[inline]
    pub(super) fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Test::Equal => left == right,
            Test::Above => left > right,
            Test::AtLeast => left >= right,
        }
    }
}

/// An operation of two numbers of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl Operator {
    /// None for a division by zero.
    #[inline]
    pub(super) fn apply(self, left: u32, right: u32) -> Option<u32> {
        Some(match self {
            Operator::Add => left.wrapping_add(right),
            Operator::Subtract => left.wrapping_sub(right),
            Operator::Multiply => left.wrapping_mul(right),
            Operator::Divide => left.checked_div(right)?,
            Operator::Modulo => left.checked_rem(right)?,
            Operator::And => left & right,
            Operator::Or => left | right,
            Operator::Xor => left ^ right,
            Operator::ShiftLeft => left.checked_shl(right).unwrap_or(0),
            Operator::ShiftRight => left.checked_shr(right).unwrap_or(0),
        })
    }
}

/// Bytes of a frame, without the bits that do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Where they are in the frame; after the IPv4 header at `header` if there is one.
    pub(super) at: u32,
    pub(super) header: Option<u16>,
    pub(super) width: Width,
    pub(super) mask: u32,
}

/// Where to go on: the number of an instruction further on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) yes: u16,
    pub(super) no: u16,
}

/// An instruction over two registers, `a` and `x`, and a small memory. All but the tests go on with the next one.
///
/// What reads beyond the end of the frame, or divides by zero, rejects the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Most of a filter: a field of the frame compared with a number.
    IfField { field: Field, test: Test, value: u32, to: Targets },
    /// The length of the frame compared with a number.
    IfLength { test: Test, value: u32, to: Targets },
    /// `a` compared with `x`.
    If { test: Test, to: Targets },
    /// `a` is the field.
    Load(Field),
    /// `a` is what is at `x` and so many bytes.
    LoadAtX { at: u32, width: Width },
    /// `a` is a number.
    Number(u32),
    /// `a` is the length of the frame.
    Length,
    /// `a` grows by the length of the IPv4 header there.
    AddHeaderLength(u16),
    /// `a` goes to the memory.
    Keep(u8),
    /// `a` comes from the memory.
    Fetch(u8),
    /// `x` is `a`.
    ToX,
    /// `a` is `a` and `x`, combined.
    Combine(Operator),
    /// The frame is selected, or not.
    End(bool),
}

/// A verified program: every jump leads forward to an instruction that exists, and the last one ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program(Box<[Instruction]>);

impl Program {
    /// Verifies instructions.
    pub(super) fn new(instructions: Vec<Instruction>) -> Result<Program, &'static str> {
        if instructions.len() > MAX_INSTRUCTIONS {
            return Err("it has too many instructions");
        }
        for (at, instruction) in instructions.iter().enumerate() {
            let forward = |to: u16| usize::from(to) > at && usize::from(to) < instructions.len();
            let is_right = match instruction {
                Instruction::IfField { to, .. }
                | Instruction::IfLength { to, .. }
                | Instruction::If { to, .. } => forward(to.yes) && forward(to.no),
                Instruction::Keep(place) | Instruction::Fetch(place) => usize::from(*place) < MEMORY,
                _ => true,
            };
            if !is_right {
                return Err("it jumps back, or out of the program, or uses memory that it has not");
            }
        }
        match instructions.last() {
            Some(Instruction::End(_)) => Ok(Program(instructions.into())),
            _ => Err("its last instruction does not end it"),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a frame is selected.
    pub(super) fn run(&self, frame: &[u8]) -> bool {
        self.result(frame).unwrap_or(false)
    }

    /// None when something was read beyond the end of the frame, or divided by zero.
    #[inline]
    fn result(&self, frame: &[u8]) -> Option<bool> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let mut at = 0usize;
        // Ends: `at` grows with each round, and there is an end.
        loop {
            at = match self.0.get(at)? {
                Instruction::IfField { field, test, value, to } => {
                    to.of(test.holds(field.read(frame)?, *value))
                }
                Instruction::IfLength { test, value, to } => to.of(test.holds(length, *value)),
                Instruction::End(is_selected) => return Some(*is_selected),
                // Most filters have tests alone, which need no registers.
                _ => return self.computed(at, frame),
            };
        }
    }

    /// The same from an instruction on, with registers and memory, of which nothing has been used before.
    #[inline(never)]
    fn computed(&self, mut at: usize, frame: &[u8]) -> Option<bool> {
        let (mut a, mut x) = (0u32, 0u32);
        let mut memory = [0u32; MEMORY];
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        loop {
            let instruction = self.0.get(at)?;
            at += 1;
            match instruction {
                Instruction::IfField { field, test, value, to } => {
                    at = to.of(test.holds(field.read(frame)?, *value))
                }
                Instruction::IfLength { test, value, to } => at = to.of(test.holds(length, *value)),
                Instruction::If { test, to } => at = to.of(test.holds(a, x)),
                Instruction::Load(field) => a = field.read(frame)?,
                Instruction::LoadAtX { at, width } => a = read(frame, x.checked_add(*at)?, *width)?,
                Instruction::Number(number) => a = *number,
                Instruction::Length => a = length,
                Instruction::AddHeaderLength(header) => a = a.wrapping_add(header_length(frame, *header)?),
                Instruction::Keep(place) => *memory.get_mut(usize::from(*place))? = a,
                Instruction::Fetch(place) => a = *memory.get(usize::from(*place))?,
                Instruction::ToX => x = a,
                Instruction::Combine(operator) => a = operator.apply(a, x)?,
                Instruction::End(is_selected) => return Some(*is_selected),
            }
        }
    }
}

impl Targets {
    #[inline]
    fn of(self, holds: bool) -> usize {
        usize::from(if holds { self.yes } else { self.no })
    }
}

impl Field {
    #[inline]
    fn read(&self, frame: &[u8]) -> Option<u32> {
        let at = match self.header {
            None => self.at,
            Some(header) => self.at.checked_add(header_length(frame, header)?)?,
        };
        Some(read(frame, at, self.width)? & self.mask)
    }
}

/// The length in bytes that an IPv4 header says it has.
#[inline]
fn header_length(frame: &[u8], at: u16) -> Option<u32> {
    frame.get(usize::from(at)).map(|byte| u32::from(byte & 15) * 4)
}

#[inline]
fn read(frame: &[u8], at: u32, width: Width) -> Option<u32> {
    let rest = frame.get(at as usize..)?;
    Some(match width {
        Width::Byte => u32::from(*rest.first()?),
        Width::Half => u32::from(u16::from_be_bytes(*rest.first_chunk()?)),
        Width::Word => u32::from_be_bytes(*rest.first_chunk()?),
    })
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, instruction) in self.0.iter().enumerate() {
            writeln!(f, "{at:4}  {instruction:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_that_go_forward_and_end_are_taken() {
        let test = |yes, no| Instruction::IfLength { test: Test::Equal, value: 0, to: Targets { yes, no } };
        assert!(Program::new(vec![test(1, 1), Instruction::End(true)]).is_ok());
        for wrong in [
            vec![],
            vec![Instruction::ToX],
            vec![test(0, 1), Instruction::End(true)],
            vec![test(1, 2), Instruction::End(true)],
            vec![Instruction::Keep(16), Instruction::End(true)],
            vec![Instruction::End(true); MAX_INSTRUCTIONS + 1],
        ] {
            assert!(Program::new(wrong).is_err());
        }
    }

    #[test]
    fn what_is_beyond_the_end_or_divides_by_zero_rejects() {
        let field = |at| Field { at, header: None, width: Width::Half, mask: !0 };
        let of = |first| Program::new(vec![first, Instruction::End(true)]).unwrap();
        assert!(of(Instruction::Load(field(2))).run(&[0; 4]));
        assert!(!of(Instruction::Load(field(3))).run(&[0; 4]));
        assert!(!of(Instruction::Load(field(u32::MAX))).run(&[0; 4]));
        assert!(!of(Instruction::Combine(Operator::Divide)).run(&[0; 4]));
        assert!(!of(Instruction::Combine(Operator::Modulo)).run(&[0; 4]));
        assert!(of(Instruction::Combine(Operator::ShiftLeft)).run(&[0; 4]));
    }
}
