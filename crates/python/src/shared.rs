//! One switch that several Python objects and threads share.

use millrace_dataplane::{DigestMessage, Dropped, PortId, Sent, Switch, Trace};
use millrace_state::Tables;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most digest messages, and most lines of the log, that wait to be taken; beyond that the oldest are lost.
pub(crate) const MAX_WAITING: usize = 1 << 16;

/// A switch, and what its program said that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) switch: Switch,
    pub(crate) digests: VecDeque<DigestMessage>,
    pub(crate) log: VecDeque<String>,
}

/// What became of one packet.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) sent: Vec<Sent>,
    pub(crate) drops: Vec<Dropped>,
    pub(crate) digests: Vec<DigestMessage>,
    pub(crate) log: Vec<String>,
}

/// A handle on a running switch.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Running>>);

impl Shared {
    pub(crate) fn new(switch: Switch) -> Shared {
        Shared(Arc::new(Mutex::new(Running { switch, digests: VecDeque::new(), log: VecDeque::new() })))
    }

    /// Has the switch for a moment. Python stands still meanwhile unless another thread has the switch: to let go of the
    /// interpreter and to wait for it again, after a busy thread, can take longer than a packet by a thousand times.
    ///
    /// The bound keeps Python's objects out: who touched one with the lock taken could run into code that wants it too.
    pub(crate) fn briefly<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Running) -> R + Send) -> R {
        let mut running = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        work(&mut running)
    }

    /// Has the switch for longer work, while other Python threads run.
    pub(crate) fn call<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Running) -> R + Send) -> R {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Has its tables and counters, while other Python threads run.
    pub(crate) fn tables<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Tables, u64) -> R + Send,
    ) -> R {
        self.call(py, |running| {
            let now_ns = running.switch.now_ns();
            work(&mut running.switch.state().tables(), now_ns)
        })
    }
}

impl Running {
    /// Takes a packet in; gives what left.
    pub(crate) fn send(&mut self, port: PortId, bytes: &[u8]) -> Vec<Sent> {
        let passed = self.pass(port, bytes);
        self.keep(passed.digests, passed.log);
        passed.sent
    }

    /// Takes a packet in; gives all that became of it.
    pub(crate) fn pass(&mut self, port: PortId, bytes: &[u8]) -> Passed {
        let outcome = self.switch.inject(port, bytes, self.switch.now_ns());
        Passed { sent: outcome.sent, drops: outcome.drops, digests: outcome.digests, log: outcome.log }
    }

    /// Takes a packet in and tells its story.
    pub(crate) fn trace(&mut self, port: PortId, bytes: &[u8]) -> (Vec<Sent>, Trace) {
        let (outcome, trace) = self.switch.inject_traced(port, bytes, self.switch.now_ns());
        self.keep(outcome.digests, outcome.log);
        (outcome.sent, trace)
    }

    /// Lets time pass; gives what left its queue.
    pub(crate) fn advance(&mut self, ns: u64) -> Vec<Sent> {
        let until = self.switch.now_ns().saturating_add(ns);
        let outcome = self.switch.advance_to(until);
        self.keep(outcome.digests, outcome.log);
        outcome.sent
    }

    /// Lets time pass until all queues are empty.
    pub(crate) fn drain(&mut self) -> Vec<Sent> {
        let outcome = self.switch.drain();
        self.keep(outcome.digests, outcome.log);
        outcome.sent
    }

    fn keep(&mut self, digests: Vec<DigestMessage>, log: Vec<String>) {
        append(&mut self.digests, digests);
        append(&mut self.log, log);
    }
}

fn append<T>(waiting: &mut VecDeque<T>, more: Vec<T>) {
    waiting.extend(more);
    let beyond = waiting.len().saturating_sub(MAX_WAITING);
    waiting.drain(..beyond);
}
