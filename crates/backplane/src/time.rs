//! The clock of the backplane: the machine's monotonic one, from when it was asked first.

use millrace_dataplane::Clock;
use std::sync::LazyLock;

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::real);

/// Now, in nanoseconds.
#[inline]
pub(crate) fn now_ns() -> u64 {
    CLOCK.now_ns()
}
