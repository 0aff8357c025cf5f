//! The hardware of a program: a pipeline for each stage.

use crate::assemble::{assemble, unit_of};
use crate::convert::convert;
use crate::emit::{Ports, emit, object};
use crate::graph::Node;
use crate::model::Sim;
use crate::refusal::{Construct, Refusal};
use crate::report::{AccessReport, Report, StageReport, TableReport};
use crate::running::Running;
use crate::schedule::{Schedule, schedule};
use crate::stage::{Dataflow, input_width};
use crate::tables::TableUnit;
use millrace_midend::cfg::flatten;
use millrace_midend::order::may_set;
use millrace_midend::{Cancel, Meter, Plan, Step};
use millrace_netlist::{Design, Module};
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

/// How hardware is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// How many entries the units of tables hold, by the name of the table, where it is not what the table declares.
    pub capacities: BTreeMap<String, u64>,
}

impl Default for Options {
    /// 156.25 MHz, at which 64 bits a cycle are 10 Gbit/s.
    fn default() -> Options {
        Options { period_ps: 6400, capacities: BTreeMap::new() }
    }
}

/// The hardware of a program.
pub struct Hardware {
    pub(crate) program: Arc<Program>,
    pub(crate) stages: Vec<Stage>,
    /// The units of tables, of all that have one.
    pub(crate) units: Vec<TableUnit>,
    period_ps: u32,
}

/// The pipeline of a part.
pub(crate) struct Stage {
    pub(crate) part: Part,
    pub(crate) dataflow: Dataflow,
    pub(crate) placed: Schedule,
    pub(crate) ports: Ports,
    pub(crate) pipeline: Module,
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
        let capacity = |name: &str| options.capacities.get(name).copied();
        let tables = program.tables.iter();
        let units =
            tables.filter_map(|(id, table)| TableUnit::of(&program, id, capacity(&table.name))).collect();
        let mut stages = Vec::new();
        for part in parts_of(&program) {
            let name = part.name();
            let dataflow = dataflow(&program, part)?;
            let placed = schedule(&dataflow, options.period_ps)
                .map_err(|construct| Refusal::of(&program, construct, &name))?;
            let (pipeline, ports) = emit(&program, &name, &dataflow, &placed);
            stages.push(Stage { part, dataflow, placed, ports, pipeline });
        }
        Ok(Hardware { program, stages, units, period_ps: options.period_ps })
    }

    /// The stages, each a design of its own: a pipeline, and the units of its tables.
    pub fn designs(&self) -> impl Iterator<Item = (Part, Design)> {
        self.stages.iter().map(|stage| (stage.part, self.design(stage, false)))
    }

    /// The design of a stage. With `observed`, what it asks the units of its tables are outputs.
    pub(crate) fn design(&self, stage: &Stage, observed: bool) -> Design {
        let accesses = (stage.dataflow.accesses.as_slice(), &stage.ports);
        assemble(&self.program, stage.pipeline.clone(), accesses, &self.units, observed)
    }

    /// What the hardware is like.
    pub fn report(&self) -> Report {
        let stages = self.stages.iter().map(|stage| self.stage_report(stage)).collect();
        Report {
            program: self.program.name.clone(),
            period_ps: self.period_ps,
            stages,
            tables: self.tables_report(),
        }
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
            capacity: unit.capacity(),
            storage_bits: unit.storage(),
        };
        self.units.iter().filter(used).map(report).collect()
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
            latency: access.unit.latency(),
            asked_bits: access.inputs.iter().map(|(_, ty)| input_width(*ty)).sum(),
            answered_bits: access.answer,
        });
        StageReport {
            name: stage.part.name(),
            latency: placed.latency,
            interval: placed.interval,
            window: ports.window,
            values,
            registers,
            blocks: dataflow.blocks,
            accesses: accesses.collect(),
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
