//! A line of a network: how long a frame takes on it, and how much output jitter an end system may have.
//!
//! Lengths of frames count the frame check sequence (FCS). On the line each frame takes 20 bytes more: preamble, start of frame, and the
//! gap to the next one. Durations are rounded up to whole nanoseconds, and whoever compares with a bound uses the same rounded durations,
//! so that no bound is missed by rounding.

use crate::limits::{LimitError, within};
use crate::regulator::Bag;
use std::fmt;

/// Bytes that a frame takes on the line in addition to its own: preamble 7, start of frame 1, gap to the next frame 12.
pub const LINE_OVERHEAD: u64 = 20;

/// Lengths of a frame in bytes with its FCS, least and most.
pub const FRAME_LIMITS: (u64, u64) = (64, 1518);

/// Rates of a line in bit/s, least and most.
pub const RATE_LIMITS: (u64, u64) = (1_000, 10_000_000_000_000);

/// What an end system may add to the sum of the frames of its VLs, in nanoseconds.
pub const TECHNOLOGY_JITTER_NS: u64 = 40_000;

/// The most output jitter of an end system, in nanoseconds.
pub const MAX_OUTPUT_JITTER_NS: u64 = 500_000;

/// How much output jitter an end system may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterLimits {
    /// The part for its technology, in nanoseconds.
    pub technology_ns: u64,
    /// The most for all of it.
    pub most_ns: u64,
}

impl Default for JitterLimits {
    /// Those of the standard: [`TECHNOLOGY_JITTER_NS`] and [`MAX_OUTPUT_JITTER_NS`].
    fn default() -> JitterLimits {
        JitterLimits { technology_ns: TECHNOLOGY_JITTER_NS, most_ns: MAX_OUTPUT_JITTER_NS }
    }
}

/// The rate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRate(u64);

impl LineRate {
    /// A line of so many bit/s.
    ///
    /// # Errors
    /// [`LimitError`] outside of [`RATE_LIMITS`].
    pub fn from_bps(bps: u64) -> Result<LineRate, LimitError> {
        within("the rate of a line", bps, RATE_LIMITS, "bit/s").map(LineRate)
    }

    /// In bit/s.
    pub fn bps(self) -> u64 {
        self.0
    }

    /// How long the line is taken by a frame of so many bytes with FCS, until the next may begin; rounded up.
    pub fn duration_ns(self, frame_bytes: u64) -> u64 {
        let bits = u128::from(frame_bytes.saturating_add(LINE_OVERHEAD)) * 8;
        u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
    }
}

/// Why an end system cannot send its VLs within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterError {
    /// The VLs may ask for more than the line has.
    Overload {
        /// What they may ask for, in parts per million of the line, rounded up.
        load_ppm: u64,
    },
    /// The output jitter may be more than is allowed.
    Jitter {
        /// In nanoseconds.
        jitter_ns: u64,
        /// The most that is allowed.
        most_ns: u64,
    },
}

impl fmt::Display for JitterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitterError::Overload { load_ppm } => {
                let (percent, rest) = (load_ppm / 10_000, load_ppm % 10_000);
                write!(f, "the VLs may take {percent}.{rest:04} % of the line: at most 100 % is allowed")
            }
            JitterError::Jitter { jitter_ns, most_ns } => {
                write!(f, "the output jitter may be {jitter_ns} ns: at most {most_ns} ns is allowed")
            }
        }
    }
}

impl std::error::Error for JitterError {}

/// The output jitter of an end system by the standard's formula, in nanoseconds: 40 µs and, of each VL that it sends, a longest frame
/// (`lmax` bytes with FCS) with what it takes on the line in addition. It may be above [`MAX_OUTPUT_JITTER_NS`].
pub fn output_jitter_ns(rate: LineRate, lmax: impl IntoIterator<Item = u64>) -> u64 {
    TECHNOLOGY_JITTER_NS.saturating_add(frames_ns(rate, lmax))
}

/// How long the line is taken by one frame each of these lengths.
fn frames_ns(rate: LineRate, lmax: impl IntoIterator<Item = u64>) -> u64 {
    lmax.into_iter().map(|bytes| rate.duration_ns(bytes)).fold(0, u64::saturating_add)
}

/// Checks that an end system with these VLs (BAG, Lmax in bytes with FCS) can keep the standard's output jitter, and says how much that is.
///
/// Why the formula bounds what a [`Multiplexer`](crate::Multiplexer) does: each regulator releases at most `b + r t` of time on the line
/// in any interval of length `t`, with `b` the duration of its longest frame and `r = b / BAG`. If the sum of all `r` is at most 1, a
/// line that is never idle while a frame waits has at most the sum of all `b` to do at any time, the frame that has just come included
/// (network calculus: FIFO server of rate 1, affine arrival curves). So it leaves at most that sum, less its own duration, later. The
/// 40 µs are for the technology.
///
/// # Errors
/// [`JitterError`] when the VLs may take more than the line, or the jitter may be above the limit.
pub fn check_output(rate: LineRate, limits: JitterLimits, vls: &[(Bag, u64)]) -> Result<u64, JitterError> {
    // The exact sum of fractions with different BAGs would be a large number; each is rounded up to 1/2^64 of the line.
    let one = 1u128 << 64;
    let share =
        |&(bag, lmax): &(Bag, u64)| (u128::from(rate.duration_ns(lmax)) << 64).div_ceil(u128::from(bag.ns()));
    // A BAG of a power of two and its multiples give sums that are exact or a hair above: so many units of rounding are forgiven.
    let forgiven = vls.len() as u128;
    let load = vls.iter().map(share).fold(0u128, u128::saturating_add);
    if load > one + forgiven {
        let load_ppm = (load >> 32).saturating_mul(1_000_000).div_ceil(1 << 32);
        return Err(JitterError::Overload { load_ppm: u64::try_from(load_ppm).unwrap_or(u64::MAX) });
    }
    let jitter_ns = limits.technology_ns.saturating_add(frames_ns(rate, vls.iter().map(|&(_, lmax)| lmax)));
    if jitter_ns > limits.most_ns {
        return Err(JitterError::Jitter { jitter_ns, most_ns: limits.most_ns });
    }
    Ok(jitter_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: u64) -> LineRate {
        LineRate::from_bps(bps).unwrap()
    }

    fn check(vls: &[(Bag, u64)]) -> Result<u64, JitterError> {
        check_output(rate(100_000_000), JitterLimits::default(), vls)
    }

    fn bag(us: u64) -> Bag {
        Bag::from_ns(us * 1000).unwrap()
    }

    #[test]
    fn durations_by_hand() {
        // 84 bytes at 100 Mbit/s: 672 bits, 10 ns each. 1538 bytes: 12304 bits.
        assert_eq!(rate(100_000_000).duration_ns(64), 6_720);
        assert_eq!(rate(100_000_000).duration_ns(1518), 123_040);
        assert_eq!(rate(1_000_000_000).duration_ns(64), 672);
        // 67.2 ns, rounded up.
        assert_eq!(rate(10_000_000_000).duration_ns(64), 68);
        assert_eq!(rate(10_000_000).duration_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_output_jitter_of_the_standard() {
        // 40 us + 3 * 123.04 us.
        assert_eq!(output_jitter_ns(rate(100_000_000), [1518; 3]), 409_120);
        assert_eq!(check(&[(bag(2000), 1518); 3]), Ok(409_120));
        // 40 us + 4 * 123.04 us = 532.16 us.
        let four = check(&[(bag(2000), 1518); 4]).unwrap_err();
        assert_eq!(four, JitterError::Jitter { jitter_ns: 532_160, most_ns: 500_000 });
        assert_eq!(four.to_string(), "the output jitter may be 532160 ns: at most 500000 ns is allowed");
        assert_eq!(check(&[]), Ok(40_000));
        let limits = JitterLimits { technology_ns: 1_000, most_ns: 493_160 };
        assert_eq!(check_output(rate(100_000_000), limits, &[(bag(2000), 1518); 4]), Ok(493_160));
    }

    #[test]
    fn a_line_is_not_asked_for_more_than_it_has() {
        // 64 bytes each 10.08 us: 6.72 / 10.08 is 2/3. Three of those with 20.16 us are exactly 1.
        let share = |us_hundredths: u64| (Bag::from_ns(us_hundredths * 10).unwrap(), 64);
        assert_eq!(check(&[share(2016); 3]), Ok(60_160));
        let over = check(&[share(2015); 3]).unwrap_err();
        assert_eq!(over, JitterError::Overload { load_ppm: 1_000_497 });
        assert_eq!(over.to_string(), "the VLs may take 100.0497 % of the line: at most 100 % is allowed");
    }
}
