//! How many packets a worker takes at once.
//!
//! Compiled code takes a burst from end to end. One packet of a program with loops may take milliseconds, and a burst of
//! them a good part of a second, in which nobody else is heard. So after a burst that took long the next ones are smaller;
//! what a port has more waits there. Programs without heavy code are not measured.

use crate::turns::TURN;
use millrace_frames::MAX_BATCH;

/// The sizes of bursts, as the time that they take allows.
#[derive(Debug)]
pub(super) struct Pace {
    /// How many packets the next burst may have.
    pub(super) allowed: usize,
    limit: usize,
    /// When the last burst came, and how many packets it had.
    last: Option<(u64, usize)>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { allowed: MAX_BATCH, limit: MAX_BATCH, last: None }
    }
}

impl Pace {
    /// A burst of so many packets comes; gives how many the next one may have.
    pub(super) fn next(&mut self, now_ns: u64, packets: usize) -> usize {
        if let Some((came_ns, packets)) = self.last {
            let (took, turn) = (u128::from(now_ns.saturating_sub(came_ns)), TURN.as_nanos());
            if took > turn {
                self.limit = usize::try_from(packets as u128 * turn / took).unwrap_or(1).max(1);
            } else {
                // Slowly: who sends heavy packets now and then is to find a small burst.
                self.limit = (self.limit + 1).min(MAX_BATCH);
            }
        }
        self.last = Some((now_ns, packets));
        self.limit
    }

    /// Something else comes between this burst and the next one.
    pub(super) fn rest(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_takes_long_makes_the_next_ones_smaller() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(0, 64), 64);
        // 64 packets took 64 ms: two of them make a turn of 2 ms.
        assert_eq!(pace.next(64_000_000, 2), 2);
        assert_eq!(pace.next(65_000_000, 2), 3);
        // One that takes longer than a turn comes alone.
        assert_eq!(pace.next(75_000_000, 1), 1);
        // A request lay between.
        pace.rest();
        assert_eq!(pace.next(999_000_000, 1), 1);
        let grown = (0..100).map(|at| pace.next(999_000_000 + at, 1)).last();
        assert_eq!(grown, Some(64));
    }
}
