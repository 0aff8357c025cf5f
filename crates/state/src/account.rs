//! What the objects of a program may take, and what they do take: entries and bytes, counted where they are written.
//!
//! An [`Account`] is that of one program. Tables, multicast groups and clone sessions each have a [`Charge`] to it, which says what it
//! wants before it writes; so a look at every write is two additions, and nothing is ever counted again from what is there.
//!
//! Bytes are by a price list ([`millrace_tables::prices`]), not what the system has given: so what fits does not depend on how
//! memory grows, and an operator can compute it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use millrace_tables::prices::Held;

/// What the objects of a program may take together; none: what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// As [`Held::entries`].
    pub entries: Option<u64>,
    /// As [`Held::bytes`], in bytes.
    pub memory: Option<u64>,
}

impl Limits {
    /// Whether so much is within them.
    ///
    /// # Errors
    /// The quota that it would exceed.
    pub fn check(self, held: Held) -> Result<(), OverQuota> {
        for (what, wanted, limit) in
            [(Quota::Entries, held.entries, self.entries), (Quota::Memory, held.bytes, self.memory)]
        {
            if let Some(limit) = limit.filter(|limit| wanted > *limit) {
                return Err(OverQuota { what, wanted, limit });
            }
        }
        Ok(())
    }
}

/// A quota that a write would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverQuota {
    /// What there would be too much of.
    pub what: Quota,
    /// What there would be.
    pub wanted: u64,
    /// The quota.
    pub limit: u64,
}

/// A quota of an [`Account`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// [`Limits::entries`].
    Entries,
    /// [`Limits::memory`].
    Memory,
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverQuota { what, wanted, limit } = self;
        match what {
            Quota::Entries => {
                write!(f, "the switch would have {wanted} entries, its quota `entries` is {limit}")
            }
            Quota::Memory => {
                write!(
                    f,
                    "tables and state would take {wanted} bytes, the quota `memory` of the switch is {limit}"
                )
            }
        }
    }
}

impl std::error::Error for OverQuota {}

/// What the objects of one program take, of what they may.
#[derive(Debug)]
pub struct Account {
    entries: Gauge,
    memory: Gauge,
}

#[derive(Debug)]
struct Gauge {
    held: AtomicU64,
    /// [`u64::MAX`]: none.
    limit: AtomicU64,
}

impl Gauge {
    fn new() -> Gauge {
        Gauge { held: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) }
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != u64::MAX)
    }

    /// Takes so much if it is not too much, else gives what there would be, and the limit.
    fn take(&self, more: u64) -> Result<(), (u64, u64)> {
        let limit = self.limit.load(Ordering::Relaxed);
        let take = |held: u64| held.checked_add(more).filter(|held| more == 0 || *held <= limit);
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|held| (held.saturating_add(more), limit))
    }

    fn force(&self, more: u64) {
        self.held.fetch_add(more, Ordering::Relaxed);
    }

    fn give(&self, less: u64) {
        self.held.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Default for Account {
    fn default() -> Account {
        Account { entries: Gauge::new(), memory: Gauge::new() }
    }
}

impl Account {
    /// Other limits from now on. What there is stays.
    pub fn set_limits(&self, limits: Limits) {
        self.entries.limit.store(limits.entries.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.memory.limit.store(limits.memory.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        Limits { entries: self.entries.limit(), memory: self.memory.limit() }
    }

    /// What there is.
    pub fn held(&self) -> Held {
        Held {
            entries: self.entries.held.load(Ordering::Relaxed),
            bytes: self.memory.held.load(Ordering::Relaxed),
        }
    }

    /// Whether so much is within the limits.
    ///
    /// # Errors
    /// The quota that it would exceed.
    pub fn check(&self, held: Held) -> Result<(), OverQuota> {
        self.limits().check(held)
    }

    fn take(&self, more: Held) -> Result<(), OverQuota> {
        let over = |what| move |(wanted, limit)| OverQuota { what, wanted, limit };
        self.entries.take(more.entries).map_err(over(Quota::Entries))?;
        self.memory.take(more.bytes).map_err(|refused| {
            self.entries.give(more.entries);
            over(Quota::Memory)(refused)
        })
    }

    fn force(&self, more: Held) {
        self.entries.force(more.entries);
        self.memory.force(more.bytes);
    }

    fn give(&self, less: Held) {
        self.entries.give(less.entries);
        self.memory.give(less.bytes);
    }
}

/// What some objects have of an account; without one they only count. It is given back with them.
#[derive(Debug, Default)]
pub struct Charge {
    account: Option<Arc<Account>>,
    held: Held,
}

impl Clone for Charge {
    /// What a copy takes is charged to nobody.
    fn clone(&self) -> Charge {
        Charge { account: None, held: self.held }
    }
}

impl Charge {
    /// The limits of the account; none without one.
    pub fn limits(&self) -> Limits {
        self.account.as_ref().map_or_else(Limits::default, |account| account.limits())
    }

    /// What it has.
    pub fn held(&self) -> Held {
        self.held
    }

    /// Takes more.
    ///
    /// # Errors
    /// The quota that this would exceed; nothing is taken then.
    pub fn take(&mut self, more: Held) -> Result<(), OverQuota> {
        if let Some(account) = &self.account {
            account.take(more)?;
        }
        self.held += more;
        Ok(())
    }

    /// Has something else in the place of what was there.
    ///
    /// # Errors
    /// The quota that this would exceed; nothing changes then.
    pub fn change(&mut self, before: Held, after: Held) -> Result<(), OverQuota> {
        self.take(after.beyond(before))?;
        self.set(self.held - before.beyond(after));
        Ok(())
    }

    /// Has so much from now on, whatever the limits are.
    pub fn set(&mut self, held: Held) {
        let before = std::mem::replace(&mut self.held, held);
        if let Some(account) = &self.account {
            account.force(held);
            account.give(before);
        }
    }

    /// As [`Charge::set`], with the place of what was there in another sum.
    pub fn exchange(&mut self, before: Held, after: Held) {
        self.set(self.held + after - before);
    }

    /// What it has is charged to that account from now on, also where it is more than that may have.
    pub fn move_to(&mut self, account: &Arc<Account>) {
        account.force(self.held);
        self.leave();
        self.account = Some(Arc::clone(account));
    }

    /// What it has is charged to nobody from now on.
    pub fn leave(&mut self) {
        if let Some(account) = self.account.take() {
            account.give(self.held);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.leave();
    }
}
