//! How much of something a second: what quotas are measured by.

/// A token bucket: so many a second, and at most so many at once.
///
/// It counts in billionths of a token, so that nothing is lost between two looks: a rate times nanoseconds is a whole number of these.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    per_second: u64,
    /// Billionths of a token that it holds at most.
    full: u128,
    tokens: u128,
    /// Taken without being there.
    owed: u128,
    since_ns: u64,
}

const TOKEN: u128 = 1_000_000_000;

impl Rate {
    /// A full bucket; `burst` is at least 1.
    pub(crate) fn new(per_second: u64, burst: u64, now_ns: u64) -> Rate {
        let full = u128::from(burst.max(1)) * TOKEN;
        Rate { per_second, full, tokens: full, owed: 0, since_ns: now_ns }
    }

    /// A bucket that holds what comes in a hundredth of a second, and `least` at the least.
    pub(crate) fn with_usual_burst(per_second: u64, least: u64, now_ns: u64) -> Rate {
        Rate::new(per_second, (per_second / 100).max(least), now_ns)
    }

    fn fill(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(now_ns);
        let came = u128::from(passed) * u128::from(self.per_second);
        let paid = came.min(self.owed);
        self.owed -= paid;
        self.tokens = (self.tokens + came - paid).min(self.full);
    }

    /// How many of so many may go now; they are taken.
    pub(crate) fn take(&mut self, wanted: u64, now_ns: u64) -> u64 {
        self.fill(now_ns);
        let there = u64::try_from(self.tokens / TOKEN).unwrap_or(u64::MAX);
        let taken = wanted.min(there);
        self.tokens -= u128::from(taken) * TOKEN;
        taken
    }

    /// Whether all of so many may go now; they are taken then, else none.
    pub(crate) fn take_all(&mut self, wanted: u64, now_ns: u64) -> bool {
        self.fill(now_ns);
        let needed = u128::from(wanted) * TOKEN;
        let may = needed <= self.tokens;
        if may {
            self.tokens -= needed;
        }
        may
    }

    /// Takes so many, also those that are not there: they are owed, and nothing goes until they have come.
    pub(crate) fn owe(&mut self, count: u64, now_ns: u64) {
        self.fill(now_ns);
        let needed = u128::from(count) * TOKEN;
        self.owed += needed.saturating_sub(self.tokens);
        self.tokens = self.tokens.saturating_sub(needed);
    }

    /// Whether there is any now.
    #[inline]
    pub(crate) fn has_any(&mut self, now_ns: u64) -> bool {
        self.fill(now_ns);
        self.tokens >= TOKEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_to_the_token_and_bursts_are_bounded() {
        let mut rate = Rate::new(1_000_003, 10, 0);
        assert_eq!((rate.take(7, 0), rate.take(7, 0)), (7, 3));
        let mut taken = 0;
        // Looks that come at odd times lose nothing.
        let mut now = 0;
        while now < 1_000_000_000 {
            now = (now + 977).min(1_000_000_000);
            taken += rate.take(u64::MAX, now);
        }
        assert_eq!(taken, 1_000_003);
        assert_eq!(rate.take(100, 2_000_000_000), 10);
        assert!(!rate.take_all(1, 2_000_000_000) && rate.take_all(1, 2_000_001_000));
    }

    #[test]
    fn what_is_owed_is_paid_first() {
        let mut rate = Rate::new(1_000, 10, 0);
        rate.owe(30, 0);
        assert!(!rate.has_any(0) && !rate.has_any(20_999_999) && rate.has_any(21_000_000));
        assert_eq!(rate.take(9, 25_000_000), 5);
    }
}
