//! The process that this is.

use millrace_observe_api::Process;
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// When something started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started(f64);

impl Started {
    pub(crate) fn now() -> Started {
        Started(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
    }
}

/// This process, which started then.
pub(crate) fn now(started: Started) -> Process {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Process {
        start_seconds: started.0,
        cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        resident_bytes: field(&status, "VmRSS:"),
        virtual_bytes: field(&status, "VmSize:"),
    }
}

/// A size of /proc/PID/status, which has them in KiB; 0 when it is not there.
fn field(status: &str, name: &str) -> u64 {
    let words = status.lines().find_map(|line| line.strip_prefix(name));
    let number = words.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok());
    number.map_or(0, |kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_file_of_the_kernel() {
        let text = "Name:\tmillrace\nVmSize:\t  10 kB\nVmRSS:\t       3 kB\n";
        assert_eq!((field(text, "VmSize:"), field(text, "VmRSS:"), field(text, "VmPin:")), (10_240, 3072, 0));
    }

    #[test]
    fn this_process_takes_memory_and_time() {
        let process = now(Started::now());
        assert!(process.resident_bytes > 1 << 20 && process.virtual_bytes >= process.resident_bytes);
        assert!(process.start_seconds > 1.7e9 && process.cpu_seconds > 0.0);
    }
}
