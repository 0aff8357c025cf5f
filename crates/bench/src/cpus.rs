//! Which processor a thread is on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that this process may use.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// The processor of the calling thread, and another one; none where there is only one.
pub fn two() -> (Option<usize>, Option<usize>) {
    let (here, allowed) = (sched_getcpu(), allowed());
    match allowed.iter().find(|cpu| **cpu != here) {
        Some(other) if allowed.contains(&here) => (Some(here), Some(*other)),
        _ => (None, None),
    }
}

/// Keeps the calling thread on a processor, if the system lets us, until this is dropped.
#[derive(Debug)]
pub struct Pinned(Option<CpuSet>);

impl Pinned {
    /// Keeps it there; none leaves it where it is.
    pub fn to(cpu: Option<usize>) -> Pinned {
        let Some(cpu) = cpu else { return Pinned(None) };
        let before = sched_getaffinity(None).ok();
        let mut set = CpuSet::new();
        set.set(cpu);
        // Without it the figures spread more, and that is reported.
        let _ = sched_setaffinity(None, &set);
        Pinned(before)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before);
        }
    }
}
