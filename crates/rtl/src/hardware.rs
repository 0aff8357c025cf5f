//! The hardware of a program: a pipeline for each stage.

use crate::assemble::{Parts, View, assemble, bank_port, lookups_at, software_ports, unit_of, units_of};
use crate::convert::convert;
use crate::driver::Driver;
use crate::emit::{Ports, emit, object};
use crate::graph::{Node, Wire};
use crate::limits::MAX_TABLES_BITS;
use crate::map::RegisterMap;
use crate::model::Sim;
use crate::objects::{AllUnits, NoUnit, ObjectUnit, Synced};
use crate::place::Place;
use crate::refusal::{Construct, Refusal};
use crate::report::{
    AccessReport, ObjectReport, OutsideReport, Report, StageReport, StartReport, TableReport, frames,
};
use crate::running::Running;
use crate::schedule::{Schedule, TooLarge, schedule};
use crate::shared::{Shared, SharedObject};
use crate::slots::Slot;
use crate::software_port::SoftwarePort;
use crate::stage::{Dataflow, Input, ObjectKey, Start, input_width};
use crate::table_memories::PortMemory;
use crate::tables::{Area, TableUnit};
use crate::target::Target;
use cranelift_entity::SecondaryMap;
use millrace_midend::cfg::flatten;
use millrace_midend::order::may_set;
use millrace_midend::{Cancel, Meter, Plan, Step};
use millrace_netlist::{Design, Module, verify};
use millrace_pipeline::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of a program that runs without the traffic manager in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ingress.
    Ingress,
    /// Ingress up to its first parser: for clones, which are parsed again.
    Parser,
    /// Egress, up to a clone before a deparser.
    Egress,
    /// The rest of egress after a clone before its deparser of that number, counted from 0.
    Tail(u32),
}

impl Part {
    /// A word for it, which is also the name of its module.
    pub fn name(self) -> String {
        match self {
            Part::Ingress => "ingress".to_owned(),
            Part::Parser => "parser".to_owned(),
            Part::Egress => "egress".to_owned(),
            Part::Tail(nth) => format!("tail{nth}"),
        }
    }
}

/// How many entries the units of tables hold, and places those of action selectors, where it is not as many as are declared: by name, or
/// by the end of it, which begins after a dot (`ipv4_lpm` is `RouterIngress.ipv4_lpm`, and every other table that is called so).
pub type Capacities = BTreeMap<String, u64>;

fn is_called(name: &str, asked: &str) -> bool {
    name.strip_suffix(asked).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// What was asked for of a name; the longest end of it that was given counts.
fn capacity(capacities: &Capacities, name: &str) -> Option<u64> {
    let given = capacities.iter().filter(|(asked, _)| is_called(name, asked));
    given.max_by_key(|(asked, _)| asked.len()).map(|(_, entries)| *entries)
}

/// A name for which a program has no table or action selector.
pub fn without_unit<'a>(capacities: &'a Capacities, program: &Program) -> Option<&'a str> {
    let has_unit = |asked: &str| {
        let is_selector = |profile: &Profile| profile.selector.is_some() && is_called(&profile.name, asked);
        program.tables.values().any(|table| is_called(&table.name, asked))
            || program.profiles.values().any(is_selector)
    };
    capacities.keys().map(String::as_str).find(|asked| !has_unit(asked))
}

/// How hardware is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// What units hold; those of tables that a program does not have are nothing to it.
    pub capacities: Capacities,
    /// What it is for.
    pub target: Target,
}

impl Default for Options {
    /// 156.25 MHz, at which 64 bits a cycle are 10 Gbit/s.
    fn default() -> Options {
        Options { period_ps: 6400, capacities: Capacities::new(), target: Target::default() }
    }
}

/// The hardware of a program.
pub struct Hardware {
    pub(crate) program: Arc<Program>,
    pub(crate) stages: Vec<Stage>,
    /// The units of tables, of all that have one.
    pub(crate) units: Vec<TableUnit>,
    /// Objects that several stages ask.
    pub(crate) shared: Shared,
    pub(crate) period_ps: u32,
    pub(crate) target: Target,
}

/// The pipeline of a part.
pub(crate) struct Stage {
    pub(crate) part: Part,
    pub(crate) dataflow: Dataflow,
    pub(crate) placed: Schedule,
    pub(crate) ports: Ports,
    pub(crate) pipeline: Module,
    /// The units of its objects, of all that have one.
    pub(crate) objects: Vec<ObjectUnit>,
}

/// What software reaches.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    /// Its port, with a name that no other has.
    pub(crate) port: SoftwarePort,
    pub(crate) what: ReachedUnit,
    /// Who has it, and what its port is named there.
    pub(crate) holders: Vec<(Holder, String)>,
}

/// Who has a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The stage of that number.
    Stage(usize),
    /// None of those that ask it.
    Shared,
}

#[derive(Clone, Debug)]
pub(crate) enum ReachedUnit {
    Table(TableId),
    Bank,
    Object(Box<ObjectUnit>),
}

impl std::fmt::Debug for Hardware {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hardware").field("program", &self.program.name).finish_non_exhaustive()
    }
}

impl Hardware {
    /// The hardware of a verified program.
    ///
    /// # Errors
    /// What hardware cannot do of it.
    pub fn new(program: Arc<Program>, options: Options) -> Result<Hardware, Refusal> {
        let parts = parts_of(&program);
        Hardware::of_parts(program, options, &parts)
    }

    /// The hardware of some parts of a verified program.
    ///
    /// # Errors
    /// What hardware cannot do of it.
    pub fn of_parts(program: Arc<Program>, options: Options, parts: &[Part]) -> Result<Hardware, Refusal> {
        let capacity = |name: &str| capacity(&options.capacities, name);
        let mut bits = 0;
        let mut has_room = |unit: &TableUnit| {
            let with_it: u64 = unit.storage().saturating_add(bits);
            bits = if with_it > MAX_TABLES_BITS { bits } else { with_it };
            with_it <= MAX_TABLES_BITS
        };
        let tables = program.tables.keys().filter_map(|id| TableUnit::of(&program, id, capacity));
        let units: Vec<TableUnit> = tables.filter(&mut has_room).collect();
        let mut stages = Vec::new();
        for part in parts.iter().copied() {
            let name = part.name();
            let mut dataflow = dataflow(&program, part)?;
            for access in &mut dataflow.accesses {
                if let Some(unit) = unit_of(&units, access) {
                    access.latency = unit.latency();
                }
            }
            let placed = schedule(&dataflow, options.period_ps, &options.target.delays())
                .map_err(|why| too_large(&program, &name, why))?;
            let (pipeline, ports) = emit(&program, &name, &dataflow, &placed);
            if let Some((found, access)) = ports.excess() {
                let access = access.map(|access| object(&program, &dataflow.accesses[access].unit));
                let refusal = Refusal::of(&program, Construct::Ports(found), access.unwrap_or(&name));
                return Err(Refusal { part: name, ..refusal });
            }
            stages.push(Stage { part, dataflow, placed, ports, pipeline, objects: Vec::new() });
        }
        let shared = add_objects((&program, &units), &mut stages);
        let Options { period_ps, target, .. } = options;
        Ok(Hardware { program, stages, units, shared, period_ps, target })
    }

    /// The length of a cycle in picoseconds.
    pub fn period_ps(&self) -> u32 {
        self.period_ps
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The stages, each a design of its own: a pipeline, and the units of its tables.
    pub fn designs(&self) -> impl Iterator<Item = (Part, Design)> {
        self.stages.iter().map(|stage| {
            let mut design = self.design(stage, View::Alone);
            self.target.suit(&mut design);
            (stage.part, design)
        })
    }

    /// The design of a stage. As it is simulated, software draws random numbers, so that they are those of other engines.
    pub(crate) fn design(&self, stage: &Stage, view: View) -> Design {
        let is_there = |unit: &&ObjectUnit| view != View::Observed || unit.key != ObjectKey::Random;
        let objects: Vec<ObjectUnit> = stage.objects.iter().filter(is_there).cloned().collect();
        let number = self.stages.iter().position(|other| other.part == stage.part).unwrap_or_default();
        assemble(Parts {
            program: &self.program,
            pipeline: stage.pipeline.clone(),
            accesses: &stage.dataflow.accesses,
            cycles: &stage.placed.access,
            ports: &stage.ports,
            tables: &self.units,
            objects: &objects,
            interval: stage.placed.interval,
            shares: view != View::Observed && self.shared.is_asked_by(number),
            view,
        })
    }

    /// The ports of software to the units of a stage, in the order of the ports of its design.
    pub fn software_ports(&self, part: Part) -> Vec<SoftwarePort> {
        let Some(stage) = self.stages.iter().find(|stage| stage.part == part) else { return Vec::new() };
        let (ports, bank) = software_ports(&self.program, &units_of(&self.units, &stage.dataflow.accesses));
        let objects = stage.objects.iter().map(ObjectUnit::port);
        ports.into_iter().map(|(_, port)| port).chain(bank).chain(objects).collect()
    }

    /// The memories of a stage in which words of tables are, in the order of ports and addresses.
    pub(crate) fn memories(&self, stage: &Stage) -> Vec<PortMemory> {
        let accesses = &stage.dataflow.accesses;
        let (ports, _) = software_ports(&self.program, &units_of(&self.units, accesses));
        let of_table = |(port, (table, _)): (usize, &(TableId, SoftwarePort))| {
            self.memories_of(port, *table, &lookups_at(accesses, *table))
        };
        ports.iter().enumerate().flat_map(of_table).collect()
    }

    /// Those of a table that has this port, whose units are these instances.
    pub(crate) fn memories_of(&self, port: usize, table: TableId, lookups: &[String]) -> Vec<PortMemory> {
        let Some(unit) = self.units.iter().find(|unit| unit.table == table) else { return Vec::new() };
        let of_area = |area: Area| {
            let names = lookups.iter().map(|lookup| format!("{lookup}.{}", area.name)).collect();
            let first = 2 * u64::from(area.base);
            PortMemory { port, addresses: first..first + 2 * u64::from(area.words), names }
        };
        unit.areas().into_iter().map(of_area).collect()
    }

    /// Software's part of a stage: by the numbers of [`Hardware::software_ports`].
    pub fn driver(&self, part: Part) -> Driver {
        let Some(stage) = self.stages.iter().find(|stage| stage.part == part) else { return Driver::new([]) };
        let (tables, bank) = software_ports(&self.program, &units_of(&self.units, &stage.dataflow.accesses));
        let first = tables.len() + bank.iter().len();
        let numbered = tables.iter().enumerate().filter_map(|(number, (table, _))| {
            let unit = self.units.iter().find(|unit| unit.table == *table)?;
            Some((number, unit.clone()))
        });
        let objects = (first..).zip(stage.objects.iter().cloned().map(Synced::new));
        Driver::new(numbered).with(objects, None)
    }

    /// What software reaches, each once: what several stages have of it is written to all of them.
    pub(crate) fn reached(&self) -> Vec<Reached> {
        let mut all: Vec<Reached> = Vec::new();
        let mut add = |holder: Holder, name: &str, port: SoftwarePort, what: ReachedUnit| {
            let same = |other: &&mut Reached| match (&what, &other.what) {
                (ReachedUnit::Bank, ReachedUnit::Bank) => true,
                (ReachedUnit::Table(one), ReachedUnit::Table(two)) => one == two,
                // No frame changes them, so each stage has the same.
                (ReachedUnit::Object(one), ReachedUnit::Object(two)) => {
                    one.key == two.key && matches!(one.key, ObjectKey::ValueSet(_) | ObjectKey::Hash(_))
                }
                _ => false,
            };
            match all.iter_mut().find(same) {
                Some(known) => known.holders.push((holder, name.to_owned())),
                None => all.push(Reached { port, what, holders: vec![(holder, name.to_owned())] }),
            }
        };
        for (number, stage) in self.stages.iter().enumerate() {
            let holder = Holder::Stage(number);
            let (tables, bank) =
                software_ports(&self.program, &units_of(&self.units, &stage.dataflow.accesses));
            for (table, port) in tables {
                add(holder, &port.object.clone(), port, ReachedUnit::Table(table));
            }
            if let Some(port) = bank {
                add(holder, &port.object.clone(), port, ReachedUnit::Bank);
            }
            for unit in &stage.objects {
                add(holder, &unit.name, unit.port(), ReachedUnit::Object(Box::new(unit.clone())));
            }
        }
        for SharedObject { unit, .. } in &self.shared.objects {
            add(Holder::Shared, &unit.name, unit.port(), ReachedUnit::Object(Box::new(unit.clone())));
        }
        let mut taken: FxHashSet<String> = FxHashSet::from_iter([bank_port(&self.program).object]);
        for Reached { port, what, holders } in &mut all {
            let is_bank = matches!(what, ReachedUnit::Bank);
            while !is_bank && !taken.insert(port.object.clone()) {
                port.object = match holders[0].0 {
                    Holder::Stage(stage) => format!("{}.{}", port.object, self.stages[stage].part.name()),
                    Holder::Shared => format!("{}.shared", port.object),
                };
            }
        }
        all
    }

    /// The registers by which a processor reaches all stages. A port that stages share, such as that of the bank, is to be connected to
    /// each of them.
    pub fn register_map(&self) -> RegisterMap {
        let ports = self.reached().into_iter().map(|reached| reached.port).collect();
        RegisterMap::new(&self.program, ports, &self.units, Vec::new())
    }

    /// How many entries the units of tables hold, where that is less than anything.
    pub fn capacities(&self) -> impl Iterator<Item = (TableId, u64)> {
        self.units.iter().filter_map(|unit| Some((unit.table, unit.capacity()?)))
    }

    /// How many members of groups the units of tables hold, counted with their weights, of each action selector.
    pub fn places(&self) -> impl Iterator<Item = (ProfileId, u64)> {
        let program = &self.program;
        let profiles = program.profiles.keys();
        profiles.filter_map(|profile| {
            let units = self.units.iter().filter(|unit| program.tables[unit.table].profile == Some(profile));
            Some((profile, units.filter_map(|unit| unit.choice).map(|choice| choice.places.into()).min()?))
        })
    }

    /// What the hardware is like.
    pub fn report(&self) -> Report {
        let stages = self.stages.iter().map(|stage| self.stage_report(stage)).collect();
        Report {
            program: self.program.name.clone(),
            period_ps: self.period_ps,
            target: self.target,
            stages,
            tables: self.tables_report(),
            objects: self.objects_report(),
            outside: self.outside(),
        }
    }

    /// Whether each object that frames change and that several stages ask has a unit.
    ///
    /// # Errors
    /// The first object that has none.
    pub fn check_shared(&self) -> Result<(), Refusal> {
        let mut users: BTreeMap<ObjectKey, (&Slot, Vec<String>)> = BTreeMap::new();
        for stage in &self.stages {
            for (key, slots) in stage.placed.slots.iter().filter(|(key, _)| is_kept(**key)) {
                if let Some(slot) = slots.first() {
                    users.entry(*key).or_insert_with(|| (slot, Vec::new())).1.push(stage.part.name());
                }
            }
        }
        users.retain(|key, _| !self.shared.has(*key));
        let Some((slot, stages)) = users.into_values().find(|(_, stages)| stages.len() > 1) else {
            return Ok(());
        };
        let (kind, name) = (slot.unit.kind(), object(&self.program, &slot.unit));
        let part = stages.join(" and ");
        let refusal =
            Refusal::of(&self.program, Construct::Shared { object: format!("{kind} {name}"), stages }, name);
        Err(Refusal { part, ..refusal })
    }

    /// Whether the stages take so many frames a second.
    ///
    /// # Errors
    /// The object that lets the fewest pass.
    pub fn check_rate(&self, rate: u64) -> Result<(), Refusal> {
        let is_slow = |interval: u32| frames(self.period_ps, interval) < rate;
        let slow = self.stages.iter().find(|stage| is_slow(stage.placed.interval)).map(|stage| {
            let interval = stage.placed.interval;
            let key = stage.placed.intervals.iter().find(|(_, own)| **own == interval).map(|(key, _)| *key);
            let slots = key.and_then(|key| stage.placed.slots.get(&key));
            let unit = slots.and_then(|slots| slots.first()).map(|slot| &slot.unit);
            (unit, interval, stage.part.name())
        });
        let shared = || {
            let interval = self.shared.interval();
            let objects = self.shared.objects.iter().filter(|_| is_slow(interval));
            let object = objects.max_by_key(|object| object.interval)?;
            let unit = object.unit.slots.first().map(|slot| &slot.unit);
            Some((unit, interval, self.names(&object.stages).join(" and ")))
        };
        let Some((unit, interval, part)) = slow.or_else(shared) else { return Ok(()) };
        let (kind, name) = unit.map_or(("", ""), |unit| (unit.kind(), object(&self.program, unit)));
        let construct = Construct::Slow {
            object: format!("{kind} {name}"),
            interval,
            frames: frames(self.period_ps, interval),
            rate,
        };
        let refusal = Refusal::of(&self.program, construct, name);
        Err(Refusal { part, ..refusal })
    }

    /// Whether a design that was made of it is within what the hardware IR allows.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check_design(&self, part: &str, design: &Design) -> Result<(), Refusal> {
        verify(design).map_err(|errors| {
            let why = errors.first().map_or_else(String::new, ToString::to_string);
            Refusal::of(&self.program, Construct::Design(why), part)
        })
    }

    /// The names of stages.
    pub(crate) fn names(&self, stages: &[usize]) -> Vec<String> {
        stages.iter().map(|stage| self.stages[*stage].part.name()).collect()
    }

    /// Why an object that a stage asks has no unit; none: it has one.
    pub(crate) fn no_unit(&self, stage: &Stage, key: ObjectKey) -> Option<NoUnit> {
        let has_unit = stage.objects.iter().any(|unit| unit.key == key)
            || self.shared.has(key)
            || matches!(key, ObjectKey::Table(table) if self.units.iter().any(|unit| unit.table == table));
        stage.placed.slots.get(&key).filter(|_| !has_unit)?;
        self.shared.refused.get(&key).copied()
    }

    /// Objects without a unit.
    pub fn outside(&self) -> Vec<OutsideReport> {
        let mut outside: BTreeMap<ObjectKey, OutsideReport> = BTreeMap::new();
        for stage in &self.stages {
            for (key, slots) in &stage.placed.slots {
                let (Some(why), Some(slot)) = (self.no_unit(stage, *key), slots.first()) else { continue };
                let report = outside.entry(*key).or_insert_with(|| OutsideReport {
                    object: object(&self.program, &slot.unit).to_owned(),
                    stages: Vec::new(),
                    why: why.to_string(),
                    is_empty: why == NoUnit::Cells(0),
                });
                report.stages.push(stage.part.name());
            }
        }
        outside.into_values().collect()
    }

    fn tables_report(&self) -> Vec<TableReport> {
        let used = |unit: &&TableUnit| {
            let mut accesses = self.stages.iter().flat_map(|stage| &stage.dataflow.accesses);
            accesses.any(|access| unit_of(std::slice::from_ref(unit), access).is_some())
        };
        let report = |unit: &TableUnit| TableReport {
            table: self.program.tables[unit.table].name.clone(),
            kind: unit.kind.name(),
            key_bits: unit.key(),
            declared: self.program.tables[unit.table].size,
            capacity: unit.capacity().unwrap_or(self.program.tables[unit.table].entries.len() as u64),
            storage_bits: unit.storage(),
        };
        self.units.iter().filter(used).map(report).collect()
    }

    fn objects_report(&self) -> Vec<ObjectReport> {
        let report = |unit: &ObjectUnit, stage: String, interval: u32| ObjectReport {
            object: unit.name.clone(),
            stage,
            kind: unit.kind_name(),
            words: unit.port().words,
            word_bits: unit.port().width,
            storage_bits: unit.storage(),
            accesses: unit.slots.iter().map(|slot| slot.accesses.len()).sum(),
            ports: unit.slots.len(),
            interval,
            wait: if unit.waits() { unit.wait } else { 0 },
        };
        let of_stages = self.stages.iter().flat_map(|stage| {
            let interval = |unit: &ObjectUnit| stage.placed.intervals.get(&unit.key).copied().unwrap_or(1);
            stage.objects.iter().map(move |unit| report(unit, stage.part.name(), interval(unit)))
        });
        let shared = self.shared.objects.iter();
        let shared = shared
            .map(|object| report(&object.unit, self.names(&object.stages).join(" and "), object.interval));
        of_stages.chain(shared).collect()
    }

    fn stage_report(&self, stage: &Stage) -> StageReport {
        let Stage { dataflow, placed, ports, pipeline, .. } = stage;
        let registers = pipeline.registers.values().map(|one| u64::from(one.width)).sum();
        let needed = dataflow.graph.wires().filter(|wire| placed.cycle[*wire].is_some());
        let values = needed.filter(|wire| !matches!(dataflow.graph.node(*wire), Node::Const(_))).count();
        let accesses = dataflow.accesses.iter().zip(&placed.access).map(|(access, cycle)| AccessReport {
            kind: access.unit.kind(),
            object: object(&self.program, &access.unit).to_owned(),
            cycle: *cycle,
            latency: access.latency,
            asked_bits: access.inputs.iter().map(|(_, ty)| input_width(*ty)).sum(),
            answered_bits: access.answer,
        });
        StageReport {
            name: stage.part.name(),
            latency: placed.latency,
            interval: placed.interval,
            longest_ps: placed.longest,
            window: ports.window,
            values,
            registers,
            blocks: dataflow.blocks,
            accesses: accesses.collect(),
            starts: starts(stage),
        }
    }

    /// The hardware in simulation.
    ///
    /// # Errors
    /// The hardware IR refuses a pipeline, since it is larger than its limits allow, or Verilator cannot make a model.
    pub fn simulate(self, sim: Sim) -> Result<Running, Refusal> {
        Running::new(self, sim)
    }
}

/// Whether frames change an object for all stages: those have one unit of it together. No frame changes value sets and the parameters of
/// hashes, and each stage has a queue of messages and generators of random numbers of its own; tables are written by software alone.
fn is_kept(key: ObjectKey) -> bool {
    match key {
        ObjectKey::Table(_) | ObjectKey::ValueSet(_) | ObjectKey::Hash(_) => false,
        ObjectKey::Messages | ObjectKey::Random => false,
        ObjectKey::Hits(_) | ObjectKey::Counter(_) | ObjectKey::DirectCounter(_) => true,
        ObjectKey::Meter(_) | ObjectKey::DirectMeter(_) | ObjectKey::Register(_) => true,
    }
}

/// Gives each stage the units of the objects that it alone asks; gives those of several stages.
fn add_objects((program, units): (&Program, &[TableUnit]), stages: &mut [Stage]) -> Shared {
    let mut users: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for key in stages.iter().flat_map(|stage| stage.placed.slots.keys()) {
        *users.entry(*key).or_default() += 1;
    }
    let is_shared = |key: ObjectKey| is_kept(key) && users.get(&key).is_some_and(|stages| *stages > 1);
    let mut all = AllUnits::default();
    let mut shared = Shared::of((program, units), stages, is_shared, &mut all);
    name_apart(program, shared.objects.iter_mut().map(|object| &mut object.unit), std::iter::empty());
    for stage in stages {
        let Stage { dataflow, placed, .. } = &*stage;
        let mut objects: Vec<ObjectUnit> = Vec::new();
        for (key, slots) in placed.slots.iter().filter(|(key, _)| !is_shared(**key)) {
            let bounds = (placed.intervals.get(key).copied().unwrap_or(1), placed.latency);
            let unit = ObjectUnit::of((program, units), (*key, slots), &dataflow.accesses, bounds);
            match unit.and_then(|unit| all.add(unit)) {
                Ok(unit) => objects.push(unit),
                Err(why) => drop(shared.refused.insert(*key, why)),
            }
        }
        let hashes = dataflow.inputs.iter().filter_map(|(input, _)| match input {
            Input::Parameters(hash) => Some(ObjectKey::Hash(*hash)),
            _ => None,
        });
        objects
            .extend(hashes.filter_map(|key| ObjectUnit::of((program, units), (key, &[]), &[], (1, 0)).ok()));
        let lookups = (0..dataflow.accesses.len()).map(|number| format!("lookup{number}"));
        let others = lookups.chain(["pipeline".to_owned()]);
        name_apart(program, objects.iter_mut(), others);
        stage.objects = objects;
    }
    shared
}

/// Tables and objects of different kinds may have one name: gives the units names that no other part has.
fn name_apart<'a>(
    program: &Program,
    units: impl Iterator<Item = &'a mut ObjectUnit>,
    others: impl Iterator<Item = String>,
) {
    let mut taken: FxHashSet<String> = program.tables.values().map(|table| table.name.clone()).collect();
    taken.extend(others);
    for unit in units {
        while !taken.insert(unit.name.clone()) {
            unit.name = format!("{}.{}", unit.name, unit.kind_name().replace(' ', "_"));
        }
    }
}

/// A stage that exceeds a limit, with the part of the program that takes most of it.
fn too_large(program: &Program, stage: &str, (construct, body): TooLarge) -> Refusal {
    match body.and_then(|body| program.bodies.get(body)) {
        Some(body) => {
            let place = Place::of_body(program, body);
            Refusal::at(
                construct,
                Place { part: format!("{stage}, most of them in {}", place.part), ..place },
            )
        }
        None => Refusal::of(program, construct, stage),
    }
}

/// The parts that frames of a program may come to.
fn parts_of(program: &Program) -> Vec<Part> {
    let clones = may_set(program, Intrinsic::Clone);
    let mut parts = vec![Part::Ingress];
    if clones && !program.deparse_at_ingress {
        parts.push(Part::Parser);
    }
    parts.push(Part::Egress);
    if clones && !program.deparse_at_ingress {
        let deparsers =
            program.egress.iter().filter(|body| program.bodies[**body].kind == BodyKind::Deparser);
        parts.extend((0..deparsers.count() as u32).map(Part::Tail));
    }
    parts
}

fn dataflow(program: &Program, part: Part) -> Result<Dataflow, Refusal> {
    let mut plan = match part {
        Part::Ingress => Plan::ingress(program),
        Part::Parser => Plan::parser(program),
        Part::Egress => Plan::egress(program),
        Part::Tail(nth) => Plan::tail(program, nth),
    };
    // What becomes of the frame after egress is the traffic manager's.
    for step in &mut plan.steps {
        if let Step::Transmit { .. } = step {
            *step = Step::Stop;
        }
    }
    let cancel = Cancel::default();
    let cfg = flatten(program, &plan, &Meter::new(&cancel))
        .map_err(|refusal| Refusal::of(program, Construct::Midend(refusal.to_string()), plan.name))?;
    let kept = Kept::of(program, part);
    convert(program, &cfg, plan.start, &|slot| !kept.may_be_set(slot))
}

/// The metadata that may be other than 0 at the start of a stage.
struct Kept(FxHashSet<SlotId>);

impl Kept {
    /// Before ingress: what the switch tells, and what a pass before may have kept. Before egress also what ingress may write.
    fn of(program: &Program, part: Part) -> Kept {
        let told = Intrinsic::ALL.iter().filter_map(|role| program.intrinsics.get(*role));
        let mut kept: FxHashSet<SlotId> =
            told.chain(program.field_lists.iter().flat_map(|list| list.slots.iter().copied())).collect();
        let bodies: Vec<BodyId> = match part {
            Part::Ingress | Part::Parser => Vec::new(),
            Part::Egress => program.ingress.clone(),
            Part::Tail(_) => program.ingress.iter().chain(&program.egress).copied().collect(),
        };
        if !bodies.is_empty() {
            kept.extend(program.actions.values().flat_map(|action| action.params.iter().copied()));
            kept.extend(program.tables.values().filter_map(|table| table.direct_meter.as_ref()?.at_hit));
            let of_actions = program.actions.values().map(|action| action.body);
            for body in bodies.into_iter().chain(of_actions) {
                for block in program.bodies[body].blocks.values() {
                    kept.extend(block.insts.iter().filter_map(Inst::dst));
                    if let Terminator::Apply { hit, action, .. } = &block.term {
                        kept.extend(hit.iter().chain(action).copied());
                    }
                }
            }
        }
        Kept(kept)
    }

    fn may_be_set(&self, slot: SlotId) -> bool {
        self.0.contains(&slot)
    }
}

/// When it is known whether a frame gets to the parts of a stage. What nothing needs is not computed: of it that is when all that it would
/// come from is there.
fn starts(stage: &Stage) -> Vec<StartReport> {
    let Stage { dataflow, placed, .. } = stage;
    let mut cycles: SecondaryMap<Wire, u32> = SecondaryMap::new();
    for wire in dataflow.graph.wires() {
        let mut latest = 0;
        dataflow.graph.node(wire).operands(|operand| latest = latest.max(cycles[operand]));
        cycles[wire] = placed.cycle[wire].unwrap_or(latest);
    }
    let of = |start: &Start| StartReport {
        body: start.body.clone(),
        state: start.state.clone(),
        cycle: cycles[start.enable],
    };
    dataflow.starts.iter().map(of).collect()
}
