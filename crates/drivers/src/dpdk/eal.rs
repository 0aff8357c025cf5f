//! DPDK's environment (EAL): started once a process, for the first device; and the threads that DPDK knows.

#![allow(unsafe_code)]

use super::DRIVER;
use super::memory::{flush, reap};
use super::shim;
use crate::port::PortError;
use std::cell::LazyCell;
use std::ffi::CString;
use std::sync::OnceLock;

/// The variable with the arguments of the EAL, instead of those that are found out.
pub(super) const ARGUMENTS: &str = "MILLRACE_EAL";

/// Most arguments in it.
const MAX_ARGUMENTS: usize = 256;

/// Megabytes for all devices without huge pages. They are taken as they are used.
const MEGABYTES: &str = "2048";

static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Starts the EAL, if it is not started yet.
pub(super) fn start() -> Result<(), PortError> {
    let started = STARTED.get_or_init(|| {
        let arguments = match std::env::var(ARGUMENTS) {
            Ok(text) => text.split_whitespace().map(str::to_owned).collect(),
            Err(_) => found_out(has_huge_pages()),
        };
        // It pins the thread that starts it to a processor, so that is another one, which ends.
        let thread =
            std::thread::Builder::new().name("dpdk-start".to_owned()).spawn(move || init(&arguments));
        let joined = thread.map(|thread| thread.join());
        match joined {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("the thread that starts DPDK has ended".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
    started.clone().map_err(|reason| PortError::Arguments { driver: DRIVER, reason })
}

/// The arguments for this machine: no files that another process shares, no PCI device but those that are named by a port, and
/// ordinary memory where there are no huge pages.
fn found_out(has_huge_pages: bool) -> Vec<String> {
    let mut arguments = vec!["--no-telemetry", "--log-level=warning", "-a", "0000:00:00.0"];
    if has_huge_pages {
        arguments.push("--in-memory");
    } else {
        arguments.extend(["--no-shconf", "--no-huge", "-m", MEGABYTES]);
    }
    arguments.into_iter().map(str::to_owned).collect()
}

/// Whether a huge page of any size is free, or may be made.
fn has_huge_pages() -> bool {
    let Ok(sizes) = std::fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    let has = |directory: std::path::PathBuf, file: &str| {
        let text = std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        text.trim().parse::<u64>().is_ok_and(|count| count > 0)
    };
    sizes.flatten().any(|size| {
        ["free_hugepages", "nr_overcommit_hugepages"].into_iter().any(|file| has(size.path(), file))
    })
}

fn init(arguments: &[String]) -> Result<(), String> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err(format!("{ARGUMENTS} has more than {MAX_ARGUMENTS} words"));
    }
    let words = std::iter::once("millrace").chain(arguments.iter().map(String::as_str));
    let words: Vec<CString> = words
        .map(CString::new)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("{ARGUMENTS} has a zero byte"))?;
    // It keeps pointers to them.
    let mut pointers: Vec<_> = words.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = pointers.leak();
    let count = pointers.len() as i32 - 1;
    // SAFETY: so many arguments and a null pointer, which are never freed. It is called once a process, as `STARTED` is set once.
    let used = unsafe { shim::rte_eal_init(count, pointers.as_mut_ptr()) };
    if used >= 0 {
        return Ok(());
    }
    let error = shim::last_refusal();
    Err(format!(
        "DPDK does not start with `{}`: {error} (it says more above; {ARGUMENTS} has other arguments for it)",
        arguments.join(" ")
    ))
}

/// A thread that DPDK knows, so that pools keep a few mbufs apart for it, which takes less time than the common ring. They go back
/// when the thread ends.
struct Known {
    is_registered: bool,
}

impl Known {
    fn new() -> Known {
        // SAFETY: the EAL is started, for there is a device. With too many threads it refuses: then nothing is kept apart.
        Known { is_registered: unsafe { shim::rte_thread_register() } == 0 }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if self.is_registered {
            flush();
            // SAFETY: this thread was registered.
            unsafe { shim::rte_thread_unregister() };
        }
        reap();
    }
}

thread_local! {
    static THREAD: LazyCell<Known> = const { LazyCell::new(Known::new) };
}

/// Makes the thread known to DPDK, if it is not yet. Nothing happens in a thread that is ending.
#[inline]
pub(super) fn enter() {
    let _ = THREAD.try_with(|known| known.is_registered);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_ordinary_where_there_are_no_huge_pages() {
        let both = "--no-telemetry --log-level=warning -a 0000:00:00.0";
        assert_eq!(found_out(true).join(" "), format!("{both} --in-memory"));
        assert_eq!(found_out(false).join(" "), format!("{both} --no-shconf --no-huge -m 2048"));
    }
}
