//! Time, data and rates as integers, and which way each conversion rounds.
//!
//! A bound may be too large, never too small. Time is counted in picoseconds ([`Time`]). Inside the analyses, data is counted in 10⁻¹⁸ bit
//! and a rate in 10⁻⁶ bit/s, so that a rate times a time is exact, whatever the two are: 10⁻⁶ bit/s · 10⁻¹² s = 10⁻¹⁸ bit. Only a
//! division rounds, and each one here says which way in its name.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A time or a length of time, in picoseconds.
///
/// A picosecond is 0.1 bit at 100 Gbit/s. What is added up from several hops is at most one picosecond a hop above the exact value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// No time.
    pub const ZERO: Time = Time(0);

    /// So many picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// So many nanoseconds; the largest time if that is too many.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns.saturating_mul(1_000))
    }

    /// So many microseconds; the largest time if that is too many.
    pub const fn from_us(us: u64) -> Time {
        Time(us.saturating_mul(1_000_000))
    }

    /// So many milliseconds; the largest time if that is too many.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000_000))
    }

    /// In picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// In nanoseconds, rounded up.
    pub const fn ns_up(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// In microseconds, for people. Not for further bounds: this rounds to the nearest number.
    pub fn us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time between, or none if `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }

    /// The sum, or the largest time.
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// How long `bits` take at `rate` bit/s, rounded up.
    ///
    /// # Panics
    /// If `rate` is 0.
    pub fn of_bits_up(bits: u64, rate: u64) -> Time {
        Time(saturate((u128::from(bits) * PS_PER_S).div_ceil(u128::from(rate))))
    }

    /// How long `bits` take at `rate` bit/s, rounded down.
    ///
    /// # Panics
    /// If `rate` is 0.
    pub fn of_bits_down(bits: u64, rate: u64) -> Time {
        Time(saturate(u128::from(bits) * PS_PER_S / u128::from(rate)))
    }
}

impl Add for Time {
    type Output = Time;

    fn add(self, other: Time) -> Time {
        self.saturating_add(other)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    /// In microseconds, with as many digits as are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if part == 0 {
            write!(f, "{whole} us")
        } else {
            let digits = format!("{part:06}");
            write!(f, "{whole}.{} us", digits.trim_end_matches('0'))
        }
    }
}

const PS_PER_S: u128 = 1_000_000_000_000;

fn saturate(ps: u128) -> u64 {
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// Data, in 10⁻¹⁸ bit.
pub(crate) type Data = i128;
/// A rate, in 10⁻⁶ bit/s.
pub(crate) type Rate = i128;
/// A time in a calculation, in picoseconds.
pub(crate) type Ps = i128;

/// One bit.
pub(crate) const BIT: Data = 1_000_000_000_000_000_000;

/// `bits` as data.
pub(crate) fn data(bits: u64) -> Data {
    Data::from(bits) * BIT
}

/// `bits_per_second` as a rate.
pub(crate) fn rate(bits_per_second: u64) -> Rate {
    Rate::from(bits_per_second) * 1_000_000
}

/// The rate of `bits` in each `period`, rounded up.
pub(crate) fn rate_of_up(bits: u64, period: Time) -> Rate {
    div_up(data(bits), Ps::from(period.ps()))
}

/// A quotient, rounded up. `by` is positive.
pub(crate) fn div_up(value: i128, by: i128) -> i128 {
    debug_assert!(by > 0);
    let quotient = value / by;
    if value % by > 0 { quotient + 1 } else { quotient }
}

/// Data in whole bits, rounded up.
pub(crate) fn bits_up(value: Data) -> u64 {
    u64::try_from(div_up(value.max(0), BIT)).unwrap_or(u64::MAX)
}

/// A time of a calculation, none if it is negative.
pub(crate) fn time(ps: Ps) -> Time {
    Time(u64::try_from(ps.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_the_way_they_say() {
        // 1 bit at 3 bit/s is 0.333… s.
        assert_eq!(Time::of_bits_up(1, 3).ps(), 333_333_333_334);
        assert_eq!(Time::of_bits_down(1, 3).ps(), 333_333_333_333);
        // 672 bits at 100 Mbit/s are 6.72 us.
        assert_eq!(Time::of_bits_up(672, 100_000_000), Time::from_ns(6_720));
        assert_eq!(div_up(-7, 2), -3);
        assert_eq!(bits_up(BIT + 1), 2);
        assert_eq!(rate_of_up(1, Time::from_ms(3)), 333_333_334);
    }

    #[test]
    fn a_time_is_printed_in_microseconds() {
        assert_eq!(Time::from_ps(6_720_000).to_string(), "6.72 us");
        assert_eq!(Time::from_us(12).to_string(), "12 us");
        assert_eq!(Time::from_ps(1).to_string(), "0.000001 us");
    }
}
