//! The one clock of a switch.

use std::time::Instant;

/// Where time comes from, in nanoseconds since the switch started. Read once a batch, so that all packets of a batch
/// have one time.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's monotonic clock.
    Real(Instant),
    /// The time that somebody set last: a test, or a port that replays a capture. It never goes back.
    Simulated(u64),
}

impl Clock {
    /// The machine's clock, 0 now.
    pub fn real() -> Clock {
        Clock::Real(Instant::now())
    }

    /// A clock that stands at 0 until it is moved.
    pub fn simulated() -> Clock {
        Clock::Simulated(0)
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Real(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Clock::Simulated(now) => *now,
        }
    }

    /// Whether it goes on by itself.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Clock::Real(_))
    }

    /// Moves a simulated clock forward to that time; an earlier time and a real clock stay as they are.
    pub fn advance_to(&mut self, ns: u64) {
        if let Clock::Simulated(now) = self {
            *now = ns.max(*now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_moves_only_forward() {
        let mut clock = Clock::simulated();
        clock.advance_to(50);
        clock.advance_to(20);
        assert_eq!(clock.now_ns(), 50);
    }

    #[test]
    fn a_real_clock_is_not_moved() {
        let mut clock = Clock::real();
        clock.advance_to(u64::MAX);
        assert!(clock.now_ns() < u64::MAX / 2);
    }
}
