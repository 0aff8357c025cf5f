//! The clock of the backplane: the machine's monotonic one, in nanoseconds since the process asked it first.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Now.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
