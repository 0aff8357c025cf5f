//! What plugins cost, counted by each worker in memory of its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sums over the calls of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that it answered or failed at.
    pub calls: u64,
    /// Fuel of its calls.
    pub fuel: u64,
    /// Time of its calls in nanoseconds: of one in 64, times 64.
    pub nanoseconds: u64,
    /// Calls that trapped or gave an answer that is none.
    pub traps: u64,
    /// Calls that were stopped because they had used their fuel up.
    pub over_budget: u64,
    /// Packets that came while it was missing or off.
    pub unanswered: u64,
    /// Packets that it, or its policy, had dropped.
    pub drops: u64,
    /// Payloads that it has changed.
    pub rewrites: u64,
    /// Packets of its own.
    pub replies: u64,
}

impl Counts {
    /// Adds those of another worker.
    pub(crate) fn add(&mut self, other: Counts) {
        self.calls += other.calls;
        self.fuel += other.fuel;
        self.nanoseconds += other.nanoseconds;
        self.traps += other.traps;
        self.over_budget += other.over_budget;
        self.unanswered += other.unanswered;
        self.drops += other.drops;
        self.rewrites += other.rewrites;
        self.replies += other.replies;
    }
}

/// A number that one thread alone changes.
#[derive(Debug, Default)]
pub(crate) struct Own(AtomicU64);

impl Own {
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: Own,
    pub(crate) fuel: Own,
    pub(crate) nanoseconds: Own,
    pub(crate) traps: Own,
    pub(crate) over_budget: Own,
    pub(crate) unanswered: Own,
    pub(crate) drops: Own,
    pub(crate) rewrites: Own,
    pub(crate) replies: Own,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        Counts {
            calls: self.calls.get(),
            fuel: self.fuel.get(),
            nanoseconds: self.nanoseconds.get(),
            traps: self.traps.get(),
            over_budget: self.over_budget.get(),
            unanswered: self.unanswered.get(),
            drops: self.drops.get(),
            rewrites: self.rewrites.get(),
            replies: self.replies.get(),
        }
    }
}
