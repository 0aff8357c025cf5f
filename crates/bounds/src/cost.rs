//! What blocks cost, and what is called from them.

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
    /// Of what is weighed by time alone: how much of the rest waits.
    #[serde(skip)]
    pub waits: Waits,
}

/// What has to wait for lines from memory, of one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Lines of data, each asked for when the one before has come; the others are asked for with one of these.
    pub data: u64,
    /// Lines of code that a jump leads to.
    pub jumps: u64,
    /// Lines of code after the one before.
    pub follows: u64,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            instructions: self.instructions.saturating_add(other.instructions),
            own: self.own.saturating_add(other.own),
            lines: self.lines.saturating_add(other.lines),
            waits: self.waits.with(other.waits, u64::saturating_add),
        }
    }
}

impl Waits {
    fn with(self, other: Waits, of: impl Fn(u64, u64) -> u64) -> Waits {
        Waits {
            data: of(self.data, other.data),
            jumps: of(self.jumps, other.jumps),
            follows: of(self.follows, other.follows),
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
            waits: self.waits.with(other.waits, u64::max),
        }
    }

    /// Lines of code alone: those that a jump leads to, and those after the one before.
    pub(crate) fn of_code(jumps: u64, follows: u64) -> Cost {
        Cost { waits: Waits { jumps, follows, data: 0 }, ..Cost::default() }
    }

    /// All lines of code.
    pub(crate) fn code_lines(&self) -> u64 {
        self.waits.jumps.saturating_add(self.waits.follows)
    }

    /// The same without the lines of code.
    pub(crate) fn without_code(self) -> Cost {
        Cost { waits: Waits { data: self.waits.data, ..Waits::default() }, ..self }
    }

    /// Cache lines of data alone, and how many of them wait for one another.
    pub(crate) fn of_lines(lines: u64, waits: u64) -> Cost {
        Cost { lines, waits: Waits { data: waits, ..Waits::default() }, ..Cost::default() }
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
            waits: self.waits.with(self.waits, |one, _| one.saturating_mul(times)),
        }
    }
}
