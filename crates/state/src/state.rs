//! Making the objects of a program.

use crate::account::{Account, Limits};
use crate::entries::{EntryWrite, Target};
use crate::hashes::hashes;
use crate::migration::Vacant;
use crate::own::{BeforeReset, Noted, Own, TablePart};
use crate::pack;
use crate::prices;
use crate::schema::{Schema, width};
use crate::shared::Shared;
use crate::tables::{Tables, TablesGuard, TablesHandle};
use crate::{BuildError, LookupCounts, Random, WriteError};
use millrace_pipeline::*;
use millrace_tables::{
    self as tables, ActionProfile, CounterArray, KeySchema, MeterArray, ProfileSpec, RecordLayout,
    RegisterArray, SpecError, TableReader, TableSpec,
    engines::{Domain, Worker},
};
use std::sync::Arc;

/// Most memory that the counters, meters and registers of one program may take together, in bytes.
pub const MAX_STATE_BYTES: u64 = 4 << 30;

/// What one running program remembers between packets, as the worker that forwards them has it. See the crate's
/// documentation.
pub struct State {
    pub(crate) schema: Arc<Schema>,
    pub(crate) handle: TablesHandle,
    pub(crate) shared: Shared,
    pub(crate) own: Own,
    pub(crate) noted: Noted,
    /// What it may take, all workers together.
    pub(crate) account: Arc<Account>,
    /// What another state's objects will move into.
    pub(crate) vacant: Vacant,
    /// Counts writes of control to registers, meters, value sets and hashes.
    pub(crate) object_writes: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("program", &self.schema.program.name).finish_non_exhaustive()
    }
}

impl State {
    /// The objects of a program, with its initial entries and default actions.
    ///
    /// # Errors
    /// [`BuildError`]: an object above its written limit, an entry that does not fit, or [`MAX_STATE_BYTES`].
    pub fn new(program: Arc<Program>) -> Result<State, BuildError> {
        State::within(program, Limits::default())
    }

    /// As [`State::new`], of a switch with these quotas.
    ///
    /// # Errors
    /// As [`State::new`], and [`BuildError::Quota`].
    pub fn within(program: Arc<Program>, limits: Limits) -> Result<State, BuildError> {
        State::in_domain(program, Domain::new(), limits)
    }

    /// As [`State::new`], for a program that may take over from the one whose tables these are
    /// ([`crate::Migration`]). It has the quotas of that.
    ///
    /// # Errors
    /// As [`State::within`].
    pub fn alongside(program: Arc<Program>, running: &TablesHandle) -> Result<State, BuildError> {
        let (domain, host, limits) = {
            let running = running.lock();
            (running.domain.clone(), running.plugins.clone(), running.charge.limits())
        };
        let mut state = State::in_domain(program, domain, limits)?;
        host.map_or(Ok(()), |host| state.set_plugins(&host))?;
        Ok(state)
    }

    /// As [`State::alongside`], for a program that only has to take over: objects that will move there from the running
    /// program are left out. Until they have moved, or this state is [reset](State::reset), nobody may read or write it.
    ///
    /// # Errors
    /// As [`State::new`].
    pub fn successor(program: Arc<Program>, running: &TablesHandle) -> Result<State, BuildError> {
        let (domain, old, host, limits) = {
            let running = running.lock();
            let (old, host) = (Arc::clone(&running.schema), running.plugins.clone());
            (running.domain.clone(), old, host, running.charge.limits())
        };
        let schema = Arc::new(Schema::new(program));
        let vacant = Vacant::of(&old, &schema);
        let mut state = State::with(schema, domain, vacant, limits)?;
        host.map_or(Ok(()), |host| state.set_plugins(&host))?;
        Ok(state)
    }

    fn in_domain(program: Arc<Program>, domain: Domain, limits: Limits) -> Result<State, BuildError> {
        State::with(Arc::new(Schema::new(program)), domain, Vacant::default(), limits)
    }

    fn with(
        schema: Arc<Schema>,
        domain: Domain,
        vacant: Vacant,
        limits: Limits,
    ) -> Result<State, BuildError> {
        let account = Arc::<Account>::default();
        account.set_limits(limits);
        prices::check(&schema, &account, &vacant)?;
        let mut own = Own::new(domain, hashes(&schema.program));
        let (mut tables, shared) = make(&schema, &mut own, &vacant)?;
        account.check(tables.held()).map_err(|error| prices::over(&schema, error))?;
        tables.charge.move_to(&account);
        let (handle, noted) = (TablesHandle::new(tables), Noted::default());
        Ok(State { schema, handle, shared, own, noted, account, vacant, object_writes: 0 })
    }

    /// Bytes of memory that its tables and objects take as they are, once packets have used all cells of arrays. It is not what quotas count
    /// ([`State::account`]), which is by a list of prices, so that an operator can compute it.
    pub fn memory_bytes(&self) -> usize {
        let (meters, registers) = (self.shared.meters.values(), self.shared.registers.values());
        let arrays = meters.map(MeterArray::memory_bytes).chain(registers.map(RegisterArray::memory_bytes));
        let sets = self.own.value_sets.values().map(tables::ValueSet::memory_bytes);
        self.tables().memory_bytes() + arrays.chain(sets).sum::<usize>()
    }

    /// What it may take, and what it does.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The side of one more worker: the same tables, meters and registers, a part of the counters of its own, and copies of
    /// value sets and hashes as they are now. What control writes to copies it writes to those of each worker. Its random
    /// numbers are drawn from the next number of this worker, so that a run with as many workers can be repeated.
    ///
    /// # Errors
    /// [`BuildError`]: there is no memory for its counters.
    pub fn share(&mut self) -> Result<State, BuildError> {
        let program = Arc::clone(self.program());
        let mut own = Own::new(self.own.domain.clone(), self.own.hashes.clone());
        own.random = Random::new(self.own.random.next_u64());
        own.value_sets = self.own.value_sets.clone();
        let handle = self.handle.clone();
        let mut tables = handle.lock();
        for (id, table) in &program.tables {
            own.tables.push(named(&table.name, tables.worker_part(id))?);
            own.lookups.push(LookupCounts::default());
        }
        for (id, counter) in &program.counters {
            let part = tables.counters[id].part().map_err(SpecError::from);
            own.counters.push(named(&counter.name, part)?);
        }
        drop(tables);
        let (schema, shared) = (Arc::clone(&self.schema), self.shared.share());
        let (noted, account, vacant) = (Noted::default(), Arc::clone(&self.account), self.vacant.clone());
        let mut other = State { schema, handle, shared, own, noted, account, vacant, object_writes: 0 };
        let host = self.handle.lock().plugins.clone();
        host.map_or(Ok(()), |host| other.set_plugins(&host))?;
        Ok(other)
    }

    /// Makes the copies that this worker has of what control writes, of value sets and hashes, those of another worker.
    pub fn copy_from(&mut self, other: &State) {
        self.object_writes += 1;
        self.own.value_sets = other.own.value_sets.clone();
        self.own.hashes = other.own.hashes.clone();
    }

    /// Whether nothing of it was left out.
    pub fn is_whole(&self) -> bool {
        self.vacant.is_empty()
    }

    /// The program whose objects these are.
    pub fn program(&self) -> &Arc<Program> {
        &self.schema.program
    }

    /// The tables and counters, for this thread; waits for others that have them. Not while this one has them already.
    pub fn tables(&self) -> TablesGuard<'_> {
        self.handle.lock()
    }

    /// A handle on the tables and counters for other threads, which write while this state is in use.
    pub fn handle(&self) -> TablesHandle {
        self.handle.clone()
    }

    /// Whether entries of a table need a priority: it has a ternary, range or optional field.
    pub fn needs_priority(&self, table: TableId) -> bool {
        let keys = &self.schema.program.tables[table].keys;
        keys.iter().any(|key| pack::match_kind(key.kind).needs_priority())
    }

    /// The widths of the key fields in bits.
    pub fn key_widths(&self, table: TableId) -> &[u32] {
        self.schema.key_widths(table)
    }

    /// The widths of the parameters of an action in bits; a truth value has 1.
    pub fn param_widths(&self, action: ActionId) -> &[u32] {
        self.schema.param_widths(action)
    }

    /// Starts the program's random numbers from a seed; without it they start from 0.
    pub fn seed(&mut self, seed: u64) {
        self.own.random = Random::new(seed);
    }

    /// Sets everything back to how it was made: initial entries, default actions, cells. The random numbers go on, and
    /// hashes keep their parameters.
    /// `tables` are those of this state.
    ///
    /// # Errors
    /// None that [`State::new`] did not give for the same program.
    pub fn reset(&mut self, tables: &mut Tables) -> Result<(), BuildError> {
        self.object_writes += 1;
        let mut own = Own::new(self.own.domain.clone(), self.own.hashes.clone());
        let (mut made, shared) = make(&self.schema, &mut own, &Vacant::default())?;
        made.plugins = tables.plugins.clone();
        for id in self.schema.program.tables.keys() {
            if let Some(capacity) = tables.capacities[id] {
                made.set_capacity(id, capacity);
            }
        }
        for id in self.schema.program.profiles.keys() {
            if let Some(places) = tables.places[id] {
                made.set_places(id, places);
            }
        }
        // It has what the program had when it was made, whatever quotas say by now.
        tables.charge.leave();
        made.charge.move_to(&self.account);
        std::mem::swap(&mut own.random, &mut self.own.random);
        std::mem::swap(&mut own.plugins, &mut self.own.plugins);
        self.vacant = Vacant::default();
        let before = BeforeReset {
            tables: std::mem::replace(tables, made),
            shared: std::mem::replace(&mut self.shared, shared),
            own: std::mem::replace(&mut self.own, own),
            noted: std::mem::take(&mut self.noted),
        };
        if before.noted.notes() {
            self.noted.before_reset = Some(Box::new(before));
            self.note(tables);
        }
        Ok(())
    }

    /// From now on writes to this state, and to `tables`, which are its own, note what undoes them.
    pub fn note(&mut self, tables: &mut Tables) {
        tables.note();
        self.noted.note();
    }

    /// All that was written since [`State::note`] stays.
    pub fn keep(&mut self, tables: &mut Tables) {
        tables.undo = None;
        self.noted.keep();
    }

    /// Takes back all that was written since [`State::note`].
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub fn undo(&mut self, tables: &mut Tables) -> Result<(), WriteError> {
        self.object_writes += 1;
        while let Some(before) = self.noted.before_reset.take() {
            let BeforeReset { tables: before_tables, shared, mut own, noted } = *before;
            // What the program has drawn stays drawn, and its hashes keep their parameters.
            std::mem::swap(&mut own.random, &mut self.own.random);
            std::mem::swap(&mut own.hashes, &mut self.own.hashes);
            std::mem::swap(&mut own.plugins, &mut self.own.plugins);
            (*tables, self.shared, self.own, self.noted) = (before_tables, shared, own, noted);
            tables.charge.move_to(&self.account);
        }
        self.noted.undo(&mut self.shared, &mut self.own);
        tables.undo()
    }

    /// What a worker reads of a table, with [`State::worker`].
    #[inline]
    pub fn reader(&self, id: TableId) -> &TableReader {
        &self.own.tables[id].reader
    }

    /// What a worker reads of all tables, in the order of their ids.
    #[inline]
    pub fn readers(&self) -> impl ExactSizeIterator<Item = &TableReader> {
        self.own.tables.values().map(|part| &part.reader)
    }

    /// The reader of tables for code that runs over this state, between [`State::start_batch`] and [`State::end_batch`].
    #[inline]
    pub fn worker(&self) -> &Worker {
        &self.own.worker
    }

    /// A batch starts: what was written before is visible from now on, and nothing read in an earlier batch is held.
    #[inline]
    pub fn start_batch(&mut self) {
        self.own.worker.quiescent();
    }

    /// No batch runs until the next starts. Until then whoever writes tables never waits for this worker.
    #[inline]
    pub fn end_batch(&mut self) {
        // A packet that left in the middle of a section left it open.
        self.end_atomic();
        self.own.worker.sleep();
    }

    /// A number that changes when the lookup of some table has another kind ([`tables::engines::LookupShape::kind`]),
    /// and that no state of another domain has had: only states that [`State::alongside`] made for the same tables have it
    /// too.
    #[inline]
    pub fn shapes(&self) -> u64 {
        self.own.domain.shapes()
    }
}

/// The objects of a program as they are at first, and the part of the first worker (`own`, which has none). An object that
/// another one will replace when it moves here (`vacant`) is made with one cell only, so that it takes little memory.
fn make(schema: &Arc<Schema>, own: &mut Own, vacant: &Vacant) -> Result<(Tables, Shared), BuildError> {
    let program = &schema.program;
    let size = |is_vacant: bool, size: u64| if is_vacant { size.min(1) } else { size };
    let (mut made, mut shared) = (Tables::new(Arc::clone(schema), own.domain.clone()), Shared::default());
    for (id, profile) in &program.profiles {
        made.profiles.push(named(&profile.name, make_profile(schema, id))?);
    }
    for (id, table) in &program.tables {
        let is_vacant = vacant.tables.contains(&id);
        let table_made = make_table(schema, id, is_vacant, &own.domain);
        made.tables.push(named(&table.name, table_made)?);
        own.lookups.push(LookupCounts::default());
        own.tables.push(named(&table.name, made.worker_part(id))?);
    }
    for (id, counter) in &program.counters {
        let size = size(vacant.counters.contains(&id), counter.size);
        let array = CounterArray::new(pack::counter_kind(counter.unit), size);
        let mut array = named(&counter.name, array)?;
        own.counters.push(named(&counter.name, array.part().map_err(SpecError::from))?);
        made.counters.push(array);
    }
    for (id, meter) in &program.meters {
        let size = size(vacant.meters.contains(&id), meter.size);
        let array = MeterArray::new(pack::meter_unit(meter.unit), size);
        shared.meters.push(named(&meter.name, array)?);
    }
    for (id, register) in &program.registers {
        let size = size(vacant.registers.contains(&id), register.size);
        let array = named(&register.name, RegisterArray::new(register.width, size))?;
        if let Some(initial) = register.initial.as_ref().filter(|initial| !initial.is_zero()) {
            array.fill(&pack::limbs(initial));
        }
        shared.registers.push(array);
    }
    for set in program.value_sets.values() {
        own.value_sets.push(named(&set.name, make_value_set(set))?);
    }
    made.count_again();
    made.add_initial_entries(vacant)?;
    made.commit();
    Ok((made, shared))
}

impl Tables {
    /// One more worker's way into a table.
    fn worker_part(&mut self, id: TableId) -> Result<TablePart, SpecError> {
        let table = &mut self.tables[id];
        Ok(TablePart { attached: table.attach()?, reader: table.reader().clone() })
    }

    fn add_initial_entries(&mut self, vacant: &Vacant) -> Result<(), BuildError> {
        let program = Arc::clone(&self.schema.program);
        for (id, table) in program.tables.iter().filter(|(id, _)| !vacant.tables.contains(id)) {
            let needs_priority = self.tables[id].spec().schema.needs_priority();
            for (at, entry) in table.entries.iter().enumerate() {
                let write = EntryWrite {
                    matches: entry.matches.clone(),
                    priority: if needs_priority { entry.priority } else { 0 },
                    target: Target::Action(entry.call.clone()),
                    idle_timeout_ns: 0,
                };
                self.insert_as(id, &write, entry.is_const || table.const_entries, 0).map_err(|error| {
                    BuildError::Entry { table: table.name.clone(), number: at + 1, error: Box::new(error) }
                })?;
            }
        }
        Ok(())
    }
}

fn named<T>(object: &str, made: Result<T, SpecError>) -> Result<T, BuildError> {
    made.map_err(|error| BuildError::Spec { object: object.to_owned(), error })
}

/// A table; one in whose place another will move has no keys, so that no memory is made for lookups.
fn make_table(
    schema: &Schema,
    id: TableId,
    is_vacant: bool,
    domain: &Domain,
) -> Result<tables::Table, SpecError> {
    let program = &schema.program;
    let (table, params) = (&program.tables[id], &schema.params);
    let (key, size) = match is_vacant {
        true => (KeySchema::new(Vec::new())?, 1),
        false => (prices::key_schema(schema, id)?, table.size),
    };
    let call = |call: &ActionCall| {
        let args: Vec<Bits> = match table.actions.get(call.action) {
            Some(action) => {
                params[action.action].iter().zip(&call.args).map(|(w, v)| v.zero_extend(*w)).collect()
            }
            None => Vec::new(),
        };
        tables::ActionCall::new(call.action as u32, pack::pack(&args))
    };
    let default = call(&table.default);
    let spec = TableSpec {
        const_default: table.const_default,
        const_entries: table.const_entries,
        has_profile: table.profile.is_some(),
        empty_group: table.empty_group.as_ref().map(call),
        counter: table.direct_counter.as_ref().map(|counter| pack::counter_kind(counter.unit)),
        meter: table.direct_meter.as_ref().map(|meter| pack::meter_unit(meter.unit)),
        idle_timeout: table.idle_timeout,
        records: record_layout(program, table),
        ..TableSpec::new(key, clamp(size), default)
    };
    tables::Table::new(spec, domain)
}

/// The layout of the records of a table's action slots.
pub fn record_layout(program: &Program, table: &Table) -> RecordLayout {
    let widths = |listed: &TableAction| {
        let params = &program.actions[listed.action].params;
        params.iter().map(|slot| width(program.slots[*slot].ty)).collect()
    };
    RecordLayout::new(&table.actions.iter().map(widths).collect::<Vec<_>>())
}

fn make_profile(schema: &Schema, id: ProfileId) -> Result<ActionProfile, SpecError> {
    let program = &schema.program;
    let profile = &program.profiles[id];
    let max_members = clamp(profile.size);
    let (max_groups, max_group_weight) = match &profile.selector {
        Some(selector) => {
            let weight = match selector.max_group_size {
                0 => tables::limits::MAX_GROUP_WEIGHT,
                own => own,
            };
            (max_members.min(tables::limits::MAX_GROUPS), weight)
        }
        None => (0, 0),
    };
    let made = ActionProfile::new(ProfileSpec { max_members, max_groups, max_group_weight })?;
    let users = schema.users(id).into_iter();
    Ok(made.used_by(users.map(|table| record_layout(program, &program.tables[table]).stride)))
}

fn make_value_set(set: &ValueSet) -> Result<tables::ValueSet, SpecError> {
    tables::ValueSet::new(prices::set_schema(set)?, clamp(set.size))
}

/// Sizes above `u32` are above every limit too.
fn clamp(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
