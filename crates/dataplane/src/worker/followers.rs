//! The other workers of a switch: threads that forward with switches of their own over the same tables and objects.
//!
//! The **leading worker** answers all requests. A request that concerns all workers is answered while no packet is under way:
//! each **follower** hands itself over to the leader between two rounds and waits until it comes back.
//!
//! ```text
//!  leader      Lend ->  gather: takes the others     work on all switches     give back
//!  follower             ends its round, hands itself over    ...waits...      goes on
//! ```
//!
//! A follower that sleeps is woken for that. It waits for nothing but the leader, and the leader waits for one round of each
//! follower at most, so neither can wait for the other in a circle. Nothing is shared that a lock would have to protect:
//! whoever has a worker owns it.

use super::Worker;
use super::control::{Control, Message};
use crate::Switch;
use crate::requests::RequestError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Most workers of one switch.
pub const MAX_WORKERS: usize = 64;

/// Where a follower is to send itself.
pub(crate) type Loan = SyncSender<Box<Worker>>;

/// The followers of a worker; none for a switch with one worker.
#[derive(Default)]
pub(super) struct Followers {
    /// Here, in their order: before they run, and while the leader works on their switches.
    #[expect(clippy::vec_box, reason = "workers come and go by channels, as boxes")]
    here: Vec<Box<Worker>>,
    threads: Vec<Follower>,
}

struct Follower {
    control: Control,
    back: SyncSender<Box<Worker>>,
    /// Its ports have ended, and nothing waits in it.
    is_done: Arc<AtomicBool>,
    thread: JoinHandle<Option<Box<Worker>>>,
}

impl Followers {
    /// One more, which does not run yet.
    pub(super) fn push(&mut self, worker: Worker) {
        self.here.push(Box::new(worker));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.here.len().max(self.threads.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a thread for each, which waits until the worker is given back. `leader` wakes the leader.
    ///
    /// # Errors
    /// The system has no thread; those that there are end.
    pub(super) fn start(&mut self, leader: &Control) -> io::Result<()> {
        let mut threads = Vec::new();
        for worker in &self.here {
            let (back, returned) = sync_channel(1);
            let is_done = Arc::new(AtomicBool::new(false));
            let (control, done) = (worker.control(), Arc::clone(&is_done));
            let (name, leader) = (format!("worker {}", worker.seat.number), leader.clone());
            let thread =
                thread::Builder::new().name(name).spawn(move || follow(&returned, &done, &leader))?;
            threads.push(Follower { control, back, is_done, thread });
        }
        self.threads = threads;
        Ok(())
    }

    /// Whether the ports of all have ended, and nothing waits in them.
    pub(super) fn are_done(&self) -> bool {
        self.threads.iter().all(|follower| follower.is_done.load(Ordering::Acquire))
    }

    /// Has all be here. One that has panicked is not, which ends the switch.
    fn gather(&mut self) {
        if !self.here.is_empty() || self.threads.is_empty() {
            return;
        }
        let (to, lent) = sync_channel(self.threads.len());
        let asked = self.threads.iter().map(|follower| follower.control.lend(to.clone()));
        let asked: Vec<Result<(), RequestError>> = asked.collect();
        drop(to);
        let mut here: Vec<Box<Worker>> = lent.iter().collect();
        here.sort_by_key(|worker| worker.seat.number);
        assert!(asked.iter().all(Result::is_ok) && here.len() == self.threads.len(), "a worker has panicked");
        self.here = here;
    }

    /// All of them, between two rounds, until [`Followers::give_back`].
    pub(super) fn all(&mut self) -> &mut [Box<Worker>] {
        self.gather();
        &mut self.here
    }

    /// Their switches, as [`Followers::all`].
    pub(super) fn switches(&mut self) -> Vec<&mut Switch> {
        self.all().iter_mut().map(|worker| &mut worker.switch).collect()
    }

    /// Has them go on.
    pub(super) fn give_back(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        for (follower, worker) in self.threads.iter().zip(self.here.drain(..)) {
            follower.is_done.store(false, Ordering::Release);
            // One that waits takes it.
            let _ = follower.back.send(worker);
        }
    }

    /// Has them end, after the round that each is in, and gives them back.
    #[expect(clippy::vec_box, reason = "they come by channels, as boxes")]
    pub(super) fn end(mut self) -> Vec<Box<Worker>> {
        self.give_back();
        self.threads.iter().for_each(|follower| follower.control.stop());
        let ended = self.threads.into_iter().map(|follower| follower.thread.join());
        // Those that never ran are here.
        ended.filter_map(|worker| worker.ok().flatten()).chain(self.here).collect()
    }
}

/// Forwards with the worker that comes, until it is to stop. None: the leader has gone.
fn follow(returned: &Receiver<Box<Worker>>, is_done: &AtomicBool, leader: &Control) -> Option<Box<Worker>> {
    let mut worker = returned.recv().ok()?;
    super::prepare_thread(worker.seat.processors.get(worker.seat.number).copied());
    while !worker.mailbox.control().is_to_stop() {
        while let Some(message) = worker.mailbox.next() {
            let Message::Lend(to) = message else { continue };
            worker.pace.rest();
            let sent = to.send(worker);
            // The leader waits until all have come or can come no more.
            drop(to);
            worker = match sent {
                Ok(()) => returned.recv().ok()?,
                // Nobody waits for it any more.
                Err(unwanted) => unwanted.0,
            };
        }
        let busy = worker.round();
        let has_ended = worker.has_ended();
        if is_done.swap(has_ended, Ordering::AcqRel) != has_ended && has_ended {
            // It may have ended before, and waits for this.
            leader.wake();
        }
        worker.rest_after(busy);
    }
    Some(worker)
}
