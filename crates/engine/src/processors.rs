//! The processors for work that runs concurrently with a worker.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How much nicer that work is than the thread that started it.
const NICE: i32 = 15;

/// The processors that a thread may use: those that the one may which makes a switch, not those of its worker, which may be
/// pinned when it starts threads.
#[derive(Clone, Debug)]
pub(crate) struct Processors(Option<CpuSet>);

impl Processors {
    /// Those of the calling thread.
    pub(crate) fn of_this_thread() -> Processors {
        Processors(sched_getaffinity(None).ok())
    }

    /// Lets the calling thread use them. Where the system refuses, it stays where it is.
    pub(crate) fn allow(&self) {
        if let Some(set) = &self.0 {
            let _ = sched_setaffinity(None, set);
        }
    }

    /// Has the calling thread work while others leave processors idle: nothing waits for what it does. Where the system
    /// refuses, it stays as it is.
    pub(crate) fn yield_to_others() {
        let _ = rustix::process::nice(NICE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_a_pinned_one_gets_what_there_was_before() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
        if before.count() < 2 {
            println!("a_thread_of_a_pinned_one_gets_what_there_was_before: skipped, there is one processor");
            return;
        }
        let there = std::thread::spawn(move || {
            let processors = Processors::of_this_thread();
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            let started = std::thread::spawn(move || {
                let inherited = sched_getaffinity(None).unwrap().count();
                processors.allow();
                (inherited, sched_getaffinity(None).unwrap())
            });
            started.join().unwrap()
        });
        assert_eq!(there.join().unwrap(), (1, before));
    }
}
