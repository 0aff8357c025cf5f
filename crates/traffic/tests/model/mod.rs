//! A slow model of a port, from the papers and standards: lists that are searched, sums that are made again each time, and fractions.
//!
//! It shares the types of plans and packets with the crate, and none of its code.

pub(crate) mod clocks;
pub(crate) mod plans;
pub(crate) mod port;

use std::cmp::Ordering;

/// A fraction, not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction(pub(crate) u128, pub(crate) u128);

impl Fraction {
    pub(crate) const ZERO: Fraction = Fraction(0, 1);

    pub(crate) fn plus(self, other: Fraction) -> Fraction {
        let (num, den) = (self.0 * other.1 + other.0 * self.1, self.1 * other.1);
        let (mut a, mut b) = (num, den);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Fraction(num / a, den / a)
    }

    pub(crate) fn up(self) -> u64 {
        self.0.div_ceil(self.1) as u64
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

/// Random numbers of the tests (xorshift64*).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    pub(crate) fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
