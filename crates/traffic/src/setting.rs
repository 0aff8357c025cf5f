//! What is wrong with the setting of a timed discipline, and the limits that all of them share.

use std::fmt;

/// Largest rate, in bit/s.
pub const MAX_RATE: u64 = 400_000_000_000;
/// Largest burst or credit, in bytes: its bits times 10^9 fit 63 bits.
pub const MAX_BURST: u64 = 1 << 30;
/// A second, in nanoseconds: also what a bit counts in the units of [`crate::tokens`] and [`crate::credit`].
pub(crate) const SECOND: u64 = 1_000_000_000;
/// A byte in units of a billionth of a bit. A rate in bit/s times a time in nanoseconds is in this unit, without a remainder.
pub(crate) const BYTE: u64 = 8 * SECOND;

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// A number out of its limits.
    OutOfRange {
        /// What the number is, such as "rate".
        what: &'static str,
        /// Its unit, such as "bit/s".
        unit: &'static str,
        /// The number.
        is: u64,
        /// Least that it may be.
        least: u64,
        /// Most that it may be.
        most: u64,
    },
    /// The send slope of a credit-based shaper is not its idle slope less the rate of the port.
    SendSlope {
        /// The send slope, in bit/s.
        is: i64,
        /// What it has to be.
        wanted: i64,
    },
    /// The intervals of a gate control list are no cycle.
    NoEntries,
    /// An entry begins after the cycle has ended.
    PastCycle {
        /// Number of the entry, from 0.
        entry: usize,
        /// The cycle, in nanoseconds.
        cycle_ns: u64,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::OutOfRange { what, unit, is, least, most } => {
                let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
                write!(f, "{what} is {is}{unit}, it may be {least} to {most}{unit}")
            }
            SettingError::SendSlope { is, wanted } => write!(
                f,
                "send slope is {is} bit/s, it has to be {wanted} bit/s: the idle slope less the rate of the port"
            ),
            SettingError::NoEntries => f.write_str("a gate control list has no entry"),
            SettingError::PastCycle { entry, cycle_ns } => {
                write!(f, "entry {entry} begins after the cycle of {cycle_ns} ns has ended")
            }
        }
    }
}

impl std::error::Error for SettingError {}

/// Refuses a number out of its limits.
pub(crate) fn within(
    what: &'static str,
    unit: &'static str,
    is: u64,
    limits: std::ops::RangeInclusive<u64>,
) -> Result<u64, SettingError> {
    match limits.contains(&is) {
        true => Ok(is),
        false => {
            let (least, most) = limits.into_inner();
            Err(SettingError::OutOfRange { what, unit, is, least, most })
        }
    }
}

/// Nanoseconds that `bytes` take at a rate, rounded up.
#[inline]
pub(crate) fn wire_ns(bytes: u64, rate: u64) -> u64 {
    bytes.min(MAX_BURST).saturating_mul(BYTE).div_ceil(rate)
}
