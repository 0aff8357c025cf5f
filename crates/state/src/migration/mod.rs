//! The objects of one program going on under another, while packets are forwarded.
//!
//! Objects are the same when they have the same name. What also looks the same is **moved**, between two batches: entries,
//! engines, counts and all, however much that is. A table that looks otherwise is **copied** before, entry by entry, as
//! far as its entries fit, and their counts follow after the change; packets wait for neither.
//!
//! ```text
//!  Migration::new -> copy -> foresee (compile) -> take (worker, between two batches) -> finish
//! ```
//!
//! What moves: tables with the same key, actions, parameters, size, initial entries and default action, which do not change
//! their action profile or share one that looks the same; arrays with the same cells. Registers of another size are
//! copied while packets wait, as the program reads them at once.

mod arrays;
mod copy;
mod likeness;
mod vacant;

use crate::account::{Held, OverQuota};
use crate::prices;
use crate::schema::Schema;
use crate::state::State;
use crate::tables::{TablesGuard, TablesHandle};
use crate::{BuildError, EntryIndex, ObjectKind};
use likeness::{Pair, profile_pairs, table_pairs};
use millrace_pipeline::{ProfileId, TableId};
use std::collections::HashMap;
use std::sync::Arc;
pub(crate) use vacant::Vacant;

/// What became of something that an object held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What the object is.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// What it held: `entries`, `default action`, `members`, `groups`, `cells`, `values`.
    pub what: &'static str,
    /// How many of them.
    pub count: u64,
    /// Why they were dropped; none: they were kept.
    pub dropped: Option<String>,
}

/// Why objects were not taken; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Another thread has the tables at this moment.
    Busy,
    /// Something was written since [`Migration::copy`].
    Changed,
}

/// How the objects of one program go on under another.
#[derive(Debug)]
pub struct Migration {
    old: Arc<Schema>,
    new: Arc<Schema>,
    tables: Vec<Pair<TableId>>,
    profiles: Vec<Pair<ProfileId>>,
    /// Where copied entries are now, by their tables of before.
    entries: HashMap<TableId, HashMap<EntryIndex, EntryIndex>>,
    /// [`crate::Tables::commits`] when they were copied.
    commits: Option<u64>,
    report: Vec<Carried>,
}

impl Migration {
    /// From the program whose tables these are to one that was made for it ([`State::alongside`], [`State::successor`]).
    pub fn new(running: &TablesHandle, next: &State) -> Migration {
        let old = Arc::clone(&running.lock().schema);
        let new = Arc::clone(&next.schema);
        let profiles = profile_pairs(&old, &new);
        let tables = table_pairs(&old, &new, &profiles);
        Migration { old, new, tables, profiles, entries: HashMap::new(), commits: None, report: Vec::new() }
    }

    /// Whether a state was made for the program whose tables these are.
    pub fn is_possible(running: &TablesHandle, next: &State) -> bool {
        running.lock().domain.is(&next.own.domain)
    }

    /// Whether all will move into a state that it has left out ([`State::successor`]). Else the state is to be
    /// [reset](State::reset) first.
    pub fn fills(&self, next: &State) -> bool {
        next.vacant.is_within(&Vacant::of(&self.old, &self.new))
    }

    /// Calls that with a state whose lookups are as they will be: what moves is shown already.
    pub fn foresee<R>(
        &self,
        running: &TablesHandle,
        next: &mut State,
        work: impl FnOnce(&mut State) -> R,
    ) -> R {
        let tables = running.lock();
        let mut readers: Vec<_> =
            moved(&self.tables).map(|(old, new)| (new, tables.table(old).reader().clone())).collect();
        drop(tables);
        let mut exchange = |next: &mut State| {
            for (table, reader) in &mut readers {
                std::mem::swap(&mut next.own.tables[*table].reader, reader);
            }
        };
        exchange(next);
        let result = work(next);
        exchange(next);
        result
    }

    /// What the next program will hold once all that moves is there, after [`Migration::copy`].
    pub fn held_after(&self, running: &TablesHandle, next: &State) -> Held {
        let (from, to) = (running.lock(), next.handle.lock());
        let mut held = to.held();
        for (old, new) in moved(&self.tables) {
            held = held + from.tables[old].held() - to.tables[new].held();
        }
        for (old, new) in moved(&self.profiles) {
            held = held + from.profiles[old].held() - to.profiles[new].held();
        }
        held
    }

    /// The quotas leave no room for the next program with what it would hold: which of its objects takes the most.
    pub fn refusal(next: &State, error: OverQuota) -> BuildError {
        prices::over(&next.schema, error)
    }

    /// Whether [`Migration::take`] would find the tables free, and what was copied unchanged.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn can_take(&self, old: &State, next: &State) -> Result<(), NotNow> {
        self.locked(&old.handle, &next.handle).map(drop)
    }

    fn locked<'a>(
        &self,
        old: &'a TablesHandle,
        next: &'a TablesHandle,
    ) -> Result<(TablesGuard<'a>, TablesGuard<'a>), NotNow> {
        let (from, to) = (old.try_lock().ok_or(NotNow::Busy)?, next.try_lock().ok_or(NotNow::Busy)?);
        match self.commits.is_some_and(|commits| commits != from.commits) {
            true => Err(NotNow::Changed),
            false => Ok((from, to)),
        }
    }

    /// Moves what moves. For the worker, between two batches. Afterwards `old` holds what `next` held.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn take(&self, old: &mut State, next: &mut State) -> Result<(), NotNow> {
        let (old_handle, next_handle) = (old.handle.clone(), next.handle.clone());
        let (mut from, mut to) = self.locked(&old_handle, &next_handle)?;
        for (old_id, new_id) in moved(&self.tables) {
            std::mem::swap(&mut from.tables[old_id], &mut to.tables[new_id]);
            std::mem::swap(&mut old.own.tables[old_id], &mut next.own.tables[new_id]);
        }
        for (old_id, new_id) in moved(&self.profiles) {
            std::mem::swap(&mut from.profiles[old_id], &mut to.profiles[new_id]);
        }
        arrays::take_counters(&mut from, &mut to);
        from.count_again();
        to.count_again();
        drop((from, to));
        arrays::copy_cells(old, next);
        self.take_own(old, next);
        Ok(())
    }

    /// Moves what moves of another worker of the old program to another worker of the new one ([`State::share`]), after
    /// [`Migration::take`] and before one of them runs again.
    pub fn take_part(&self, old: &mut State, next: &mut State) {
        for (old_id, new_id) in moved(&self.tables) {
            std::mem::swap(&mut old.own.tables[old_id], &mut next.own.tables[new_id]);
        }
        self.take_own(old, next);
    }

    /// Moves a worker's parts and handles of counters and cells, and its copies of value sets.
    fn take_own(&self, old: &mut State, next: &mut State) {
        arrays::take_counter_parts(old, next);
        arrays::take_cells(old, next);
        arrays::take_values(old, next);
    }

    /// What is not urgent: adds what copied entries and counters of another size had counted, and completes the report.
    /// `old` is the old state after [`Migration::take`], and no longer in use.
    pub fn finish(&mut self, old: &State, now: &TablesHandle) {
        self.count_behind(old, now);
        arrays::report(old, &self.new.program, &mut self.report);
        let mut tables = now.lock();
        for (_, table) in moved(&self.tables) {
            // They may not have been settled.
            tables.table_mut(table);
        }
    }

    /// What was kept and what dropped, of objects that held something.
    pub fn report(&self) -> &[Carried] {
        &self.report
    }

    /// What was dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &Carried> {
        self.report.iter().filter(|carried| carried.dropped.is_some())
    }

    /// The table that a table has become.
    pub fn table(&self, old: TableId) -> Option<TableId> {
        self.tables.iter().find(|pair| pair.old == old)?.new
    }

    /// The action profile that a profile has become.
    pub fn profile(&self, old: ProfileId) -> Option<ProfileId> {
        self.profiles.iter().find(|pair| pair.old == old)?.new
    }

    /// The entry that an entry has become.
    pub fn entry(&self, table: TableId, index: EntryIndex) -> Option<(TableId, EntryIndex)> {
        let pair = self.tables.iter().find(|pair| pair.old == table)?;
        match pair.moves {
            true => Some((pair.new?, index)),
            false => Some((pair.new?, *self.entries.get(&table)?.get(&index)?)),
        }
    }
}

/// The objects that move.
fn moved<T: Copy>(pairs: &[Pair<T>]) -> impl Iterator<Item = (T, T)> {
    pairs.iter().filter(|pair| pair.moves).filter_map(|pair| Some((pair.old, pair.new?)))
}
