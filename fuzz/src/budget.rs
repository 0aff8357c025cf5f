//! What one input may take: processor time and memory, counted for the thread and the process that work on it.

use std::fs;
use std::time::Duration;

/// Most processor time for one input, as released.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Most memory that one input adds, as released.
const MAX_BYTES: usize = 512 << 20;
/// The sanitizer, its checks of each access and the coverage counters make code slower by about so much, and memory of freed
/// objects is kept for a while.
const SLOWER: u32 = 20;
const LARGER: usize = 4;

/// Runs one input. Panics when it takes more processor time than [`MAX_TIME`] or more memory than [`MAX_BYTES`], each times
/// what fuzzing costs.
pub fn within<T>(work: impl FnOnce() -> T) -> T {
    let (time, bytes) = (processor_time(), resident());
    let result = work();
    let took = processor_time().saturating_sub(time);
    assert!(took <= MAX_TIME * SLOWER, "the input took {took:?}");
    let more = resident().saturating_sub(bytes);
    assert!(more <= MAX_BYTES * LARGER, "the input took {} MB", more >> 20);
    result
}

/// Processor time of this thread: the first number of `schedstat`, in nanoseconds.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// The most memory that the process has had so far.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<usize>().ok()).unwrap_or(0) << 10
}
