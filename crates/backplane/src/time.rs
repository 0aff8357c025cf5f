//! The clock of the backplane: the machine's monotonic one, from when it was asked first; and what a lane has had of its processor.

use millrace_dataplane::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// A stretch of time so long may have been another thread's, in nanoseconds: the system lets threads run for longer.
const LONG_NS: u64 = 100_000;

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::real);

/// Now, in nanoseconds.
#[inline]
pub(crate) fn now_ns() -> u64 {
    CLOCK.now_ns()
}

/// What a lane's thread has had of its processor. A look costs a system call, so it looks rarely.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    had_ns: u64,
    looked_ns: u64,
    others_ns: u64,
}

impl Processor {
    /// Before a stretch of time that somebody is charged for.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.looked_ns) >= LONG_NS {
            self.look(now_ns);
        }
    }

    #[cold]
    fn look(&mut self, now_ns: u64) -> u64 {
        let had = clock_gettime(ClockId::ThreadCPUTime);
        let had_ns = had.tv_sec.unsigned_abs() * 1_000_000_000 + had.tv_nsec.unsigned_abs();
        let more = had_ns.saturating_sub(self.had_ns);
        (self.had_ns, self.looked_ns) = (had_ns, now_ns);
        more
    }

    /// What a stretch of time costs that ends now: what it took, without what the system had other threads run for, where it was long. At most
    /// [`LONG_NS`] of that may have been of stretches before it.
    #[inline]
    pub(crate) fn charge(&mut self, took_ns: u64, now_ns: u64) -> u64 {
        if took_ns < LONG_NS {
            return took_ns;
        }
        let cost = self.look(now_ns).min(took_ns);
        self.others_ns += took_ns - cost;
        cost
    }

    /// Of the stretches of time that were charged, what the system had other threads run for.
    #[inline]
    pub(crate) fn others_ns(&self) -> u64 {
        self.others_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_of_other_threads_costs_nothing() {
        let mut processor = Processor::default();
        let begun = now_ns();
        processor.begin(begun);
        // A short one is what it took.
        assert_eq!(processor.charge(LONG_NS - 1, now_ns()), LONG_NS - 1);
        // The processor is somebody else's.
        std::thread::sleep(Duration::from_millis(50));
        let slept = now_ns();
        let cost = processor.charge(slept - begun, slept);
        assert_eq!(processor.others_ns(), slept - begun - cost);
        assert!(cost < 25_000_000, "{cost} of {} ns", slept - begun);
        // All of this one is its own, but for what the system does.
        let before = clock_gettime(ClockId::ThreadCPUTime);
        let until =
            Duration::new(before.tv_sec.unsigned_abs(), before.tv_nsec as u32) + Duration::from_millis(20);
        while Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap() < until {}
        let worked = now_ns();
        let cost = processor.charge(worked - slept, worked);
        assert!((20_000_000..40_000_000).contains(&cost), "{cost} of {} ns", worked - slept);
    }
}
