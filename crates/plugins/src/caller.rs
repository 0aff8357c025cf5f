//! A worker's side of a plugin: calls, failures, and the exchange of its instance.

use crate::counts::Counters;
use crate::instance::{Failure, Instance};
use crate::registry::Plugin;
use crate::{Grants, Policy, TIMED};
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What a worker and control share of a plugin.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    pub(crate) mail: Mutex<Mail>,
    pub(crate) counters: Counters,
}

/// Instances on their way.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// What the worker is to take, if anything is new; no instance: the plugin has no code, or is off.
    pub(crate) coming: Option<Option<Instance>>,
    /// What it had before, which control frees.
    pub(crate) gone: Option<Instance>,
}

/// Calls one plugin for one worker of one program.
#[derive(Debug)]
pub struct Caller {
    plugin: Arc<Plugin>,
    seat: Arc<Seat>,
    instance: Option<Instance>,
    /// That of the plugin when the instance was taken.
    generation: u64,
    /// What becomes of packets without an answer, where the plugin's settings do not say.
    policy: Policy,
    grants: Grants,
    until_timed: u64,
}

/// No plugin comes to that generation.
const UNKNOWN: u64 = u64::MAX;

/// What a call gave besides its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Called<'a> {
    /// Whether the packet is to be dropped.
    pub drop: bool,
    /// What of the payload changes.
    pub payload: Option<Splice<'a>>,
    /// A packet that goes to the port which the packet came from.
    pub reply: Option<&'a [u8]>,
}

/// The start of a payload becomes other bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Splice<'a> {
    /// How many bytes are replaced.
    pub replaced: usize,
    /// By these.
    pub bytes: &'a [u8],
}

impl Caller {
    pub(crate) fn new(plugin: Arc<Plugin>, seat: Arc<Seat>, policy: Policy, grants: Grants) -> Caller {
        Caller { plugin, seat, instance: None, generation: UNKNOWN, policy, grants, until_timed: TIMED }
    }

    /// Calls the plugin for a packet. Words that come out are 0 where the plugin gives none.
    pub fn call(&mut self, ins: &[u64], outs: &mut [u64], payload: &[u8]) -> Called<'_> {
        let generation = self.plugin.generation.load(Acquire);
        if generation != self.generation {
            self.exchange(generation);
        }
        let counters = &self.seat.counters;
        let Some(instance) = &mut self.instance else {
            outs.fill(0);
            counters.unanswered.add(1);
            return self.by_policy();
        };
        counters.calls.add(1);
        self.until_timed -= 1;
        let started = (self.until_timed == 0).then(Instant::now);
        let answer = instance.call(ins, outs, payload, self.grants);
        if let Some(started) = started {
            self.until_timed = TIMED;
            counters.nanoseconds.add(TIMED * started.elapsed().as_nanos() as u64);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                outs.fill(0);
                return self.failed(failure);
            }
        };
        counters.fuel.add(answer.fuel);
        counters.drops.add(answer.drop.into());
        let Some(instance) = &self.instance else { return Called::default() };
        let payload = answer.payload.map(|(replaced, range)| {
            counters.rewrites.add(1);
            Splice { replaced, bytes: instance.bytes(range) }
        });
        let reply = answer.reply.map(|range| {
            counters.replies.add(1);
            instance.bytes(range)
        });
        Called { drop: answer.drop, payload, reply }
    }

    /// Takes what control has put into the mail.
    #[cold]
    fn exchange(&mut self, generation: u64) {
        let mut mail = self.seat.mail.lock().unwrap_or_else(PoisonError::into_inner);
        // Control puts the mail there before it says that there is a new generation. So a worker that comes for one may find the mail of the
        // next, and nothing new when it comes for that.
        if let Some(coming) = mail.coming.take() {
            mail.gone = std::mem::replace(&mut self.instance, coming);
        }
        self.generation = generation;
        if self.plugin.has_failed() {
            self.instance = None;
        }
    }

    /// The instance is not used again: another one takes its place, unless the plugin is off by now.
    #[cold]
    fn failed(&mut self, failure: Failure) -> Called<'_> {
        let counters = &self.seat.counters;
        match failure {
            Failure::Trap => counters.traps.add(1),
            Failure::OverBudget => counters.over_budget.add(1),
        }
        if let Some(instance) = self.instance.take() {
            if failure == Failure::OverBudget {
                counters.fuel.add(instance.settings().fuel);
            }
            if self.plugin.note_failure(self.generation, instance.settings().failures) {
                self.instance = instance.again().ok();
            }
        }
        self.by_policy()
    }

    fn by_policy(&self) -> Called<'static> {
        let drop = self.plugin.policy().unwrap_or(self.policy) == Policy::Drop;
        self.seat.counters.drops.add(drop.into());
        Called { drop, ..Called::default() }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.plugin.leave(&self.seat);
    }
}
