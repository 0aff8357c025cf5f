//! Making the objects of a program.

use crate::entries::{EntryWrite, Target};
use crate::pack;
use crate::{BuildError, Random, WriteError};
use millrace_pipeline::entity::{PrimaryMap, SecondaryMap};
use millrace_pipeline::*;
use millrace_tables::{
    self as tables, ActionProfile, CounterArray, KeyField, KeySchema, MeterArray, ProfileSpec, RecordLayout,
    RegisterArray, SpecError, TableSpec,
    fast::{Domain, NoMemory, Worker},
};
use std::sync::Arc;

/// Most memory that the counters, meters and registers of one program may take together, in bytes.
pub const MAX_STATE_BYTES: u64 = 4 << 30;

/// What one running program remembers between packets. See the crate's documentation.
pub struct State {
    pub(crate) program: Arc<Program>,
    pub(crate) tables: PrimaryMap<TableId, TableState>,
    pub(crate) profiles: PrimaryMap<ProfileId, ActionProfile>,
    pub(crate) counters: PrimaryMap<CounterId, CounterArray>,
    pub(crate) meters: PrimaryMap<MeterId, MeterArray>,
    pub(crate) registers: PrimaryMap<RegisterId, RegisterArray>,
    pub(crate) value_sets: PrimaryMap<ValueSetId, tables::ValueSet>,
    /// Widths of the parameters of each action.
    pub(crate) params: SecondaryMap<ActionId, Vec<u32>>,
    pub(crate) random: Random,
    domain: Domain,
    /// Reads the tables for engines that run over this state. It sleeps while they do not.
    worker: Worker,
    /// Whether a table may have writes that are not visible to the worker yet.
    uncommitted: bool,
}

impl std::fmt::Debug for State {
    /// What can be told apart by packets and the control side.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("tables", &self.tables)
            .field("profiles", &self.profiles)
            .field("counters", &self.counters)
            .field("meters", &self.meters)
            .field("registers", &self.registers)
            .field("value_sets", &self.value_sets)
            .field("random", &self.random)
            .finish_non_exhaustive()
    }
}

fn sleeping(domain: &Domain) -> Worker {
    let mut worker = domain.worker();
    worker.sleep();
    worker
}

/// A table with what is needed to convert its keys and actions.
#[derive(Debug)]
pub(crate) struct TableState {
    pub(crate) table: tables::Table,
    /// Widths of the key fields.
    pub(crate) widths: Vec<u32>,
}

impl State {
    /// The objects of a program, with its initial entries and default actions.
    ///
    /// # Errors
    /// [`BuildError`]: an object above its written limit, an entry that does not fit, or [`MAX_STATE_BYTES`].
    pub fn new(program: Arc<Program>) -> Result<State, BuildError> {
        check_memory(&program)?;
        let domain = Domain::new();
        let mut state = State {
            tables: PrimaryMap::new(),
            profiles: PrimaryMap::new(),
            counters: PrimaryMap::new(),
            meters: PrimaryMap::new(),
            registers: PrimaryMap::new(),
            value_sets: PrimaryMap::new(),
            params: SecondaryMap::new(),
            random: Random::new(0),
            program: Arc::clone(&program),
            worker: sleeping(&domain),
            domain,
            uncommitted: false,
        };
        for (id, action) in &program.actions {
            state.params[id] = action.params.iter().map(|slot| width(program.slots[*slot].ty)).collect();
        }
        for profile in program.profiles.values() {
            state.profiles.push(named(&profile.name, make_profile(profile))?);
        }
        for table in program.tables.values() {
            let made = named(&table.name, make_table(&program, table, &state.params, &state.domain))?;
            state.tables.push(made);
        }
        for counter in program.counters.values() {
            let made = CounterArray::new(pack::counter_kind(counter.unit), counter.size);
            state.counters.push(named(&counter.name, made)?);
        }
        for meter in program.meters.values() {
            let made = MeterArray::new(pack::meter_unit(meter.unit), meter.size);
            state.meters.push(named(&meter.name, made)?);
        }
        for register in program.registers.values() {
            let mut made = named(&register.name, RegisterArray::new(register.width, register.size))?;
            if let Some(initial) = register.initial.as_ref().filter(|initial| !initial.is_zero()) {
                made.fill(&pack::limbs(initial));
            }
            state.registers.push(made);
        }
        for set in program.value_sets.values() {
            state.value_sets.push(named(&set.name, make_value_set(set))?);
        }
        state.add_initial_entries()?;
        Ok(state)
    }

    /// The same objects, read by a worker of their own.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn copy(&self) -> Result<State, NoMemory> {
        let domain = Domain::new();
        let mut tables = PrimaryMap::new();
        for kept in self.tables.values() {
            tables.push(TableState { table: kept.table.copy_in(&domain)?, widths: kept.widths.clone() });
        }
        Ok(State {
            program: Arc::clone(&self.program),
            tables,
            profiles: self.profiles.clone(),
            counters: self.counters.clone(),
            meters: self.meters.clone(),
            registers: self.registers.clone(),
            value_sets: self.value_sets.clone(),
            params: self.params.clone(),
            random: self.random.clone(),
            worker: sleeping(&domain),
            domain,
            uncommitted: true,
        })
    }

    /// The program whose objects these are.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Starts the program's random numbers from a seed; without it they start from 0.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Sets everything back to how it was made: initial entries, default actions, cells. The random numbers go on.
    ///
    /// # Errors
    /// None that [`State::new`] did not give for the same program.
    pub fn reset(&mut self) -> Result<(), BuildError> {
        let random = self.random.clone();
        *self = State::new(Arc::clone(&self.program))?;
        self.random = random;
        Ok(())
    }

    /// A table as the match engines see it. Engines that pack keys themselves look up through its
    /// [`reader`](tables::Table::reader), with [`State::worker`].
    #[inline]
    pub fn table(&self, id: TableId) -> &tables::Table {
        &self.tables[id].table
    }

    /// All tables, in the order of their ids.
    #[inline]
    pub fn tables(&self) -> impl ExactSizeIterator<Item = &tables::Table> {
        self.tables.values().map(|kept| &kept.table)
    }

    /// The reader of tables for code that runs over this state, between [`State::start_batch`] and [`State::end_batch`].
    #[inline]
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// A batch starts: what was written before is visible from now on, and nothing read in an earlier batch is held.
    #[inline]
    pub fn start_batch(&mut self) {
        if self.uncommitted {
            self.commit();
        }
        self.worker.quiescent();
    }

    /// No batch runs until the next starts.
    #[inline]
    pub fn end_batch(&mut self) {
        self.worker.sleep();
    }

    /// A number that changes when some table has to be looked up in another way ([`tables::fast::Plan::kind`]), and that
    /// no other state has ever had.
    #[inline]
    pub fn shapes(&self) -> u64 {
        self.domain.shapes()
    }

    #[cold]
    fn commit(&mut self) {
        self.worker.sleep();
        // What finds no memory now is tried again at the next batch; until then packets meet the table as before.
        self.uncommitted = !self.tables.values_mut().all(|kept| kept.table.commit().is_ok());
    }

    /// A table to be written while no batch runs.
    pub(crate) fn table_mut(&mut self, id: TableId) -> &mut tables::Table {
        self.worker.sleep();
        self.uncommitted = true;
        &mut self.tables[id].table
    }

    fn add_initial_entries(&mut self) -> Result<(), BuildError> {
        let program = Arc::clone(&self.program);
        for (id, table) in &program.tables {
            let needs_priority = self.tables[id].table.spec().schema.needs_priority();
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

/// The bits of a value in a key or in action data: a truth value has 1.
pub(crate) fn width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

fn named<T>(object: &str, made: Result<T, SpecError>) -> Result<T, BuildError> {
    made.map_err(|error| BuildError::Spec { object: object.to_owned(), error })
}

fn make_table(
    program: &Program,
    table: &Table,
    params: &SecondaryMap<ActionId, Vec<u32>>,
    domain: &Domain,
) -> Result<TableState, SpecError> {
    let widths: Vec<u32> = table.keys.iter().map(|key| width(key.value.ty(program))).collect();
    let fields = table.keys.iter().zip(&widths);
    let schema = KeySchema::new(
        fields.map(|(key, width)| KeyField { width: *width, kind: pack::match_kind(key.kind) }).collect(),
    )?;
    let args: Vec<Bits> = match table.actions.get(table.default.action) {
        Some(action) => {
            params[action.action].iter().zip(&table.default.args).map(|(w, v)| v.zero_extend(*w)).collect()
        }
        None => Vec::new(),
    };
    let default = tables::ActionCall::new(table.default.action as u32, pack::pack(&args));
    let spec = TableSpec {
        const_default: table.const_default,
        const_entries: table.const_entries,
        has_profile: table.profile.is_some(),
        counter: table.direct_counter.as_ref().map(|counter| pack::counter_kind(counter.unit)),
        meter: table.direct_meter.as_ref().map(|meter| pack::meter_unit(meter.unit)),
        idle_timeout: table.idle_timeout,
        records: record_layout(program, table),
        ..TableSpec::new(schema, clamp(table.size), default)
    };
    Ok(TableState { table: tables::Table::new(spec, domain)?, widths })
}

/// The layout of the records of a table's action slots.
pub fn record_layout(program: &Program, table: &Table) -> RecordLayout {
    let widths = |listed: &TableAction| {
        let params = &program.actions[listed.action].params;
        params.iter().map(|slot| width(program.slots[*slot].ty)).collect()
    };
    RecordLayout::new(&table.actions.iter().map(widths).collect::<Vec<_>>())
}

fn make_profile(profile: &Profile) -> Result<ActionProfile, SpecError> {
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
    ActionProfile::new(ProfileSpec { max_members, max_groups, max_group_weight })
}

fn make_value_set(set: &ValueSet) -> Result<tables::ValueSet, SpecError> {
    let fields = set.fields.iter();
    let schema = KeySchema::new(
        fields.map(|(_, width, kind)| KeyField { width: *width, kind: pack::match_kind(*kind) }).collect(),
    )?;
    tables::ValueSet::new(schema, clamp(set.size))
}

/// Sizes above `u32` are above every limit too.
fn clamp(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn check_memory(program: &Program) -> Result<(), BuildError> {
    let counters = program.counters.values().map(|counter| counter.size.saturating_mul(16));
    let meters =
        program.meters.values().map(|meter| meter.size.saturating_mul(size_of::<tables::Meter>() as u64));
    let registers = program
        .registers
        .values()
        .map(|register| register.size.saturating_mul(u64::from(register.width.div_ceil(64)) * 8));
    let bytes = counters.chain(meters).chain(registers).fold(0u64, u64::saturating_add);
    if bytes > MAX_STATE_BYTES {
        return Err(BuildError::Memory { bytes, limit: MAX_STATE_BYTES });
    }
    Ok(())
}

impl State {
    /// The arguments of an action, packed, when there are as many as parameters and each has its width.
    pub(crate) fn pack_args(&self, action: ActionId, args: &[Bits]) -> Result<Vec<u8>, WriteError> {
        let (name, params) = (&self.program.actions[action].name, &self.program.actions[action].params);
        let param_name = |slot: &SlotId| short(&self.program.slots[*slot].name).to_owned();
        if args.len() != params.len() {
            return Err(WriteError::ArgCount {
                action: name.clone(),
                params: params.iter().map(param_name).collect(),
                found: args.len(),
            });
        }
        for ((slot, width), arg) in params.iter().zip(&self.params[action]).zip(args) {
            if arg.width() != *width {
                return Err(WriteError::ArgWidth {
                    action: name.clone(),
                    param: param_name(slot),
                    width: *width,
                    found: arg.width(),
                });
            }
        }
        Ok(pack::pack(args))
    }
}

/// The last part of a dotted name.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
