//! How often numbers of each size came.

/// The ranges of a histogram that end: at each power of two from 1 on.
pub const RANGES: usize = 36;

/// How often numbers were in each of the ranges up to 1, 2, 4, 8 and so on to 2^35, and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Histogram {
    /// In a cache line with the smallest ranges.
    sum: u64,
    counts: [u64; RANGES + 1],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; RANGES + 1], sum: 0 }
    }
}

impl Histogram {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        let range = u64::BITS - number.saturating_sub(1).leading_zeros();
        self.counts[(range as usize).min(RANGES)] += 1;
        self.sum = self.sum.saturating_add(number);
    }

    /// Adds all numbers of another one.
    pub(crate) fn append(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// The numbers so far.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// How many were above `2^(power - 1)` and at most `2^power`; with power 0 those up to 1, with [`RANGES`] those above
    /// all others.
    pub fn in_range(&self, power: usize) -> u64 {
        self.counts.get(power).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_at_powers_of_two() {
        let mut histogram = Histogram::default();
        for number in [0, 1, 2, 3, 4, 5, 64, 65, 1 << 35, (1 << 35) + 1, u64::MAX] {
            histogram.add(number);
        }
        let found: Vec<(usize, u64)> =
            (0..=RANGES).map(|power| (power, histogram.in_range(power))).filter(|(_, n)| *n > 0).collect();
        assert_eq!(found, [(0, 2), (1, 1), (2, 2), (3, 1), (6, 1), (7, 1), (35, 1), (36, 2)]);
        assert_eq!((histogram.count(), histogram.sum()), (11, u64::MAX));
        assert_eq!(histogram.in_range(RANGES + 1), 0);
    }
}
