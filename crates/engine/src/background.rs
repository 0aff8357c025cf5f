//! Code that is made while workers forward: one thread for any number of switches.
//!
//! A worker [asks](Client::start) for code and [looks](Coming::take) from time to time whether it is there. Jobs wait in one
//! list. The thread takes the next job of the switch that it served longest ago, so that a switch whose program changes all
//! the time cannot keep others from better code. It makes one piece at a time: several would only be later together, and take
//! more from the workers. It ends when there is nothing to do.

use crate::processors::Processors;
use millrace_midend::{Cancel, CancelOnDrop};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Makes code on a thread of its own. Clones are the same compiler; switches that share one take turns.
#[derive(Clone, Default)]
pub struct Compiler(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// In the order in which they came. A switch has few jobs, and those that nobody wants any more are removed when
    /// another one comes, so there are not many more than switches.
    jobs: Vec<Job>,
    /// Whether there is a thread.
    runs: bool,
    /// Counts the jobs that were taken.
    taken: u64,
}

/// One piece of code to be made.
struct Job {
    /// When its switch was served last, as [`Queue::taken`] counts.
    served: Arc<AtomicU64>,
    /// Whether it has to wait.
    held: Arc<AtomicBool>,
    processors: Processors,
    cancel: Cancel,
    make: Box<dyn FnOnce() + Send>,
}

/// The compiler as one switch has it.
#[derive(Debug)]
pub(crate) struct Client {
    compiler: Compiler,
    served: Arc<AtomicU64>,
    /// Where its code is made.
    processors: Processors,
}

/// What the compiler makes. The worker looks whether it is there, and waits for nothing.
pub(crate) struct Coming<T> {
    place: Arc<Mutex<Option<T>>>,
    /// Nobody waits for it when this goes.
    _wanted: CancelOnDrop,
}

/// Holds back code that has time, until it is dropped: a thread that starts may keep others from the processor for
/// milliseconds.
#[derive(Debug, Default)]
pub struct Hold(Option<(Compiler, Arc<AtomicBool>)>);

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiler")
    }
}

impl Compiler {
    /// For another switch, whose code is made on the processors of the calling thread.
    pub(crate) fn client(&self) -> Client {
        let processors = Processors::of_this_thread();
        Client { compiler: self.clone(), served: Arc::new(AtomicU64::new(0)), processors }
    }

    /// Has a thread work on what is ready. False: the system has no thread.
    fn start(&self) -> bool {
        let mut queue = self.lock();
        if queue.runs || queue.next().is_none() {
            return true;
        }
        let compiler = self.clone();
        queue.runs =
            thread::Builder::new().name("compiler".to_owned()).spawn(move || compiler.work()).is_ok();
        queue.runs
    }

    /// Makes what is ready, until nothing is.
    fn work(&self) {
        Processors::yield_to_others();
        loop {
            let job = {
                let mut queue = self.lock();
                let Some(next) = queue.next() else {
                    queue.runs = false;
                    return;
                };
                let job = queue.jobs.remove(next);
                queue.taken += 1;
                job.served.store(queue.taken, Ordering::Relaxed);
                job
            };
            job.processors.allow();
            // Code that cannot be made must not keep others from theirs. Nothing is shared with it but where its result goes.
            let _ = catch_unwind(AssertUnwindSafe(job.make));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The job to be done next. Those that nobody wants any more are removed.
    fn next(&mut self) -> Option<usize> {
        self.jobs.retain(|job| !job.cancel.is_cancelled());
        let ready = self.jobs.iter().enumerate().filter(|(_, job)| !job.held.load(Ordering::Acquire));
        // Of equal ones the first.
        ready.min_by_key(|(_, job)| job.served.load(Ordering::Relaxed)).map(|(at, _)| at)
    }
}

impl Client {
    /// For another switch, or another worker, with the same compiler.
    pub(crate) fn another(&self) -> Client {
        self.compiler.client()
    }

    /// Has something made. None: the system has no thread.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> Option<Coming<T>> {
        let coming = self.add(false, make).0;
        self.compiler.start().then_some(coming)
    }

    /// Has something made once the hold is gone.
    pub(crate) fn start_later<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> (Coming<T>, Hold) {
        let (coming, held) = self.add(true, make);
        (coming, Hold(Some((self.compiler.clone(), held))))
    }

    fn add<T: Send + 'static>(
        &self,
        held: bool,
        make: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> (Coming<T>, Arc<AtomicBool>) {
        let cancel = Cancel::default();
        let coming = Coming { place: Arc::new(Mutex::new(None)), _wanted: cancel.on_drop() };
        let (place, wanted) = (Arc::clone(&coming.place), cancel.clone());
        let make = Box::new(move || {
            let made = make(&wanted);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        });
        let held = Arc::new(AtomicBool::new(held));
        let (served, processors) = (Arc::clone(&self.served), self.processors.clone());
        let job = Job { served, held: Arc::clone(&held), processors, cancel, make };
        self.compiler.lock().jobs.push(job);
        (coming, held)
    }
}

impl<T> Coming<T> {
    /// What was made, once it is there.
    pub(crate) fn take(&self) -> Option<T> {
        self.place.try_lock().ok()?.take()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some((compiler, held)) = self.0.take() {
            held.store(false, Ordering::Release);
            // Without a thread it is made with the next job; until then quickly made code does.
            compiler.start();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    fn wait<T>(coming: &Coming<T>) -> T {
        let begun = Instant::now();
        loop {
            match coming.take() {
                Some(made) => return made,
                None => assert!(begun.elapsed() < Duration::from_secs(20), "it is never made"),
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn switches_take_turns() {
        let compiler = Compiler::default();
        let (busy, quiet) = (compiler.client(), compiler.client());
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let order = Arc::clone(&order);
            move |_: &Cancel| order.lock().unwrap().push(name)
        };
        // Nothing is taken before all jobs are there.
        let (go, gate) = channel::<()>();
        let first = busy.start(move |_| gate.recv().is_err()).unwrap();
        let busy_jobs: Vec<_> = (0..3).map(|_| busy.start(note("busy")).unwrap()).collect();
        let quiet_job = quiet.start(note("quiet")).unwrap();
        drop(go);
        assert!(wait(&first));
        busy_jobs.iter().chain([&quiet_job]).for_each(wait);
        assert_eq!(*order.lock().unwrap(), ["quiet", "busy", "busy", "busy"]);
    }

    #[test]
    fn what_is_held_back_is_made_when_the_hold_goes() {
        let client = Compiler::default().client();
        let (later, hold) = client.start_later(|_| 1);
        assert_eq!(wait(&client.start(|_| 2).unwrap()), 2);
        assert!(later.take().is_none());
        drop(hold);
        assert_eq!(wait(&later), 1);
    }

    #[test]
    fn what_nobody_wants_is_not_made() {
        let compiler = Compiler::default();
        let client = compiler.client();
        let (unwanted, hold) = client.start_later(|_| panic!("nobody waits for it"));
        drop::<Coming<()>>(unwanted);
        drop(hold);
        assert!(compiler.lock().jobs.is_empty());
    }

    #[test]
    fn code_that_cannot_be_made_keeps_nobody_from_theirs() {
        let client = Compiler::default().client();
        let broken = client.start(|_| -> u32 { panic!("as a test wants it") }).unwrap();
        assert_eq!(wait(&client.start(|_| 3).unwrap()), 3);
        assert!(broken.take().is_none());
    }
}
