//! The control side of tables and counters, for any thread.

use crate::WriteError;
use crate::account::{Charge, Held};
use crate::journal::Undo;
use crate::plugins::PluginHost;
use crate::prices;
use crate::schema::Schema;
use millrace_pipeline::entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::*;
use millrace_tables::{self as tables, ActionProfile, CounterArray, engines::Domain};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// The tables of one running program with their action profiles, and its counters, as the control side reads and writes
/// them. Packets go on meanwhile: each meets a table as it was before a write or as it is after it.
pub struct Tables {
    pub(crate) schema: Arc<Schema>,
    /// The workers that read these.
    pub(crate) domain: Domain,
    pub(crate) tables: PrimaryMap<TableId, tables::Table>,
    pub(crate) profiles: PrimaryMap<ProfileId, ActionProfile>,
    pub(crate) counters: PrimaryMap<CounterId, CounterArray>,
    /// What all this counts for, with the arrays of the program.
    pub(crate) charge: Charge,
    /// What undoes the writes since [`Tables::note`].
    pub(crate) undo: Option<Vec<Undo>>,
    /// Tables that may have writes which packets do not meet yet.
    uncommitted: Vec<TableId>,
    /// Counts commits, and writes to meters, which packets meet without one.
    pub(crate) commits: u64,
    /// Counts writes of control to counters and to what meters counted.
    pub(crate) counter_writes: u64,
    /// What runs the plugins of this program and of those that take over from it.
    pub(crate) plugins: Option<Arc<dyn PluginHost>>,
    /// Whether a thread waits until there is nothing else to write.
    settling: bool,
    /// See [`Tables::revision`].
    revisions: SecondaryMap<TableId, u64>,
    /// See [`Tables::set_capacity`].
    pub(crate) capacities: SecondaryMap<TableId, Option<u32>>,
    /// See [`Tables::set_places`].
    pub(crate) places: SecondaryMap<ProfileId, Option<u32>>,
}

/// What a write makes grow.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Table(TableId),
    Profile(ProfileId),
}

/// So long nothing is written, and what commits left for later is done.
const IDLE: Duration = Duration::from_millis(100);

/// A handle on the tables of a running program, for any thread. Whoever forwards packets takes no lock of it.
#[derive(Clone)]
pub struct TablesHandle(Arc<Mutex<Tables>>);

/// The tables, for one thread at a time. When this is dropped, packets that come from then on meet all that was written;
/// single writes may be met before.
pub struct TablesGuard<'a> {
    tables: MutexGuard<'a, Tables>,
    handle: &'a TablesHandle,
}

impl TablesHandle {
    pub(crate) fn new(tables: Tables) -> TablesHandle {
        TablesHandle(Arc::new(Mutex::new(tables)))
    }

    /// Waits until no other thread has the tables. A thread that has them already must not.
    pub fn lock(&self) -> TablesGuard<'_> {
        // Every write leaves the tables whole, also a write that panics.
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        TablesGuard { tables, handle: self }
    }

    /// The tables, if no other thread has them.
    pub(crate) fn try_lock(&self) -> Option<TablesGuard<'_>> {
        let tables = match self.0.try_lock() {
            Ok(tables) => tables,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(TablesGuard { tables, handle: self })
    }

    /// Has a thread of its own settle the tables once nothing was written for a while: lists of rules that were written one
    /// by one are laid out again as a whole.
    fn settle_when_idle(&self) -> bool {
        let tables = Arc::downgrade(&self.0);
        let settle = move || {
            let mut seen = 0;
            loop {
                std::thread::sleep(IDLE);
                // When nobody has the tables any more there is nothing to do.
                let Some(tables) = tables.upgrade() else { return };
                let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
                if tables.commits == seen {
                    tables.settle();
                    tables.settling = false;
                    return;
                }
                seen = tables.commits;
            }
        };
        // Without a thread lookups are as right as with it, only slower.
        std::thread::Builder::new().name("settle tables".to_owned()).spawn(settle).is_ok()
    }
}

impl std::fmt::Debug for TablesHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TablesHandle")
    }
}

impl Deref for TablesGuard<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl DerefMut for TablesGuard<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }
}

impl Drop for TablesGuard<'_> {
    fn drop(&mut self) {
        if self.tables.commit() && !self.tables.settling && !self.tables.is_settled() {
            self.tables.settling = self.handle.settle_when_idle();
        }
    }
}

impl Tables {
    pub(crate) fn new(schema: Arc<Schema>, domain: Domain) -> Tables {
        Tables {
            schema,
            domain,
            tables: PrimaryMap::new(),
            profiles: PrimaryMap::new(),
            counters: PrimaryMap::new(),
            charge: Charge::default(),
            undo: None,
            uncommitted: Vec::new(),
            commits: 0,
            counter_writes: 0,
            plugins: None,
            settling: false,
            revisions: SecondaryMap::new(),
            capacities: SecondaryMap::new(),
            places: SecondaryMap::new(),
        }
    }

    /// Has all packets from now on meet what was written, and says whether there was something. Done too when a
    /// [`TablesGuard`] is dropped.
    pub fn commit(&mut self) -> bool {
        if self.uncommitted.is_empty() {
            return false;
        }
        self.commits += 1;
        // What finds no memory now is tried again at the next commit; until then packets meet the table as before.
        let Tables { tables, uncommitted, .. } = self;
        uncommitted.retain(|id| tables[*id].commit().is_err());
        true
    }

    /// Whether all lookups are as fast as they can be: what was written one by one is laid out as a whole. A thread sees to
    /// it once nothing was written for a tenth of a second.
    pub fn is_settled(&self) -> bool {
        self.tables.values().all(tables::Table::is_settled)
    }

    /// Lays out what was written one by one as a whole, here and now.
    pub(crate) fn settle(&mut self) {
        self.tables.values_mut().for_each(tables::Table::settle);
    }

    /// What there is counts for ([`crate::Account::held`] has what else the switch has).
    pub fn held(&self) -> Held {
        self.charge.held()
    }

    /// Bytes of memory that tables, profiles and counters take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tables = self.tables.values().map(tables::Table::memory_bytes);
        let profiles = self.profiles.values().map(ActionProfile::memory_bytes);
        let counters = self.counters.values().map(tables::CounterArray::memory_bytes);
        tables.chain(profiles).chain(counters).sum()
    }

    /// Counts again, from what each table and profile says of itself.
    pub(crate) fn count_again(&mut self) {
        let tables: Held = self.tables.values().map(tables::Table::held).sum();
        let profiles: Held = self.profiles.values().map(ActionProfile::held).sum();
        self.charge.set(prices::arrays(&self.schema.program) + tables + profiles);
    }

    /// What a table or a profile counts for.
    fn held_by(&self, place: Place) -> Held {
        match place {
            Place::Table(id) => self.tables[id].held(),
            Place::Profile(id) => self.profiles[id].held(),
        }
    }

    /// Does a write to a place that makes it grow by as much, if quotas have room.
    pub(crate) fn write_within<T>(
        &mut self,
        place: Place,
        growth: Held,
        write: impl FnOnce(&mut Tables) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        self.charge.take(growth)?;
        let before = self.held_by(place);
        let written = write(self);
        let after = self.held_by(place);
        self.charge.exchange(before + growth, after);
        written
    }

    /// Does a write to a place that takes nothing, or that nothing may stop.
    pub(crate) fn write_freely<T>(&mut self, place: Place, write: impl FnOnce(&mut Tables) -> T) -> T {
        let before = self.held_by(place);
        let written = write(self);
        let after = self.held_by(place);
        self.charge.exchange(before, after);
        written
    }

    /// A table as the match engines see it.
    pub fn table(&self, id: TableId) -> &tables::Table {
        &self.tables[id]
    }

    /// A table to be written.
    pub(crate) fn table_mut(&mut self, id: TableId) -> &mut tables::Table {
        if !self.uncommitted.contains(&id) {
            self.uncommitted.push(id);
        }
        /// Numbers of all tables of all programs, so that a table which another one replaces has another number.
        static REVISIONS: AtomicU64 = AtomicU64::new(1);
        self.revisions[id] = REVISIONS.fetch_add(1, Ordering::Relaxed);
        &mut self.tables[id]
    }

    /// A number that is another one after each write to a table: to its entries, its default action, the members and groups that
    /// it uses.
    pub fn revision(&self, id: TableId) -> u64 {
        self.revisions[id]
    }

    /// Whoever looks the table up holds so many entries of it at most: more are refused, as beyond the size of the table. What there is
    /// stays.
    pub fn set_capacity(&mut self, id: TableId, entries: u32) {
        self.capacities[id] = Some(entries);
        self.tables[id].set_capacity(entries);
    }

    /// Whoever looks up holds so many members of the groups of a profile at most, each as often as its weight: more are refused. What
    /// there is stays.
    pub fn set_places(&mut self, id: ProfileId, places: u32) {
        self.places[id] = Some(places);
        self.profiles[id].set_capacity(places);
    }
}
