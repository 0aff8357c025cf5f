//! When each value is computed: cycles of a pipeline that takes a new frame in each of them.
//!
//! A value is computed as soon as its operands are there (*as soon as possible* scheduling). Operations are chained within a
//! cycle as long as their delays fit its length; the next one begins in the next cycle, where its operands come from registers.
//! The delays are estimates for the target ([`Delays`]). Since every frame takes the same path through the
//! pipeline, a value has one cycle, and so does the last of them: the latency.
//!
//! Accesses to one object keep the order that they have in the program, as far apart as [`Unit::apart`] says; accesses that no frame
//! makes both ([`Conditions`]) need no order. [`Schedule::slots`] are the groups of accesses that share a port of the unit, and
//! [`Schedule::interval`] says how many cycles apart frames have to come such that each sees what the one before did.
//!
//! An interval comes from accesses at different cycles. So those that exclude each other are moved to one cycle, and those without an
//! answer to cycles that follow each other; that takes further passes, each with a least cycle for every access.

use crate::exclusive::Conditions;
use crate::graph::{Graph, Node, Wire};
use crate::limits::{MAX_LATENCY, MAX_REGISTERS};
use crate::refusal::Construct;
use crate::slots::{Slot, aligned, intervals, slots};
use crate::stage::{Dataflow, ObjectKey};
use crate::target::Delays;
use cranelift_entity::SecondaryMap;
use millrace_pipeline::BodyId;
use std::collections::BTreeMap;

/// Cycles of values and accesses.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The cycle in which a wire has its value; none for one that nothing needs.
    pub(crate) cycle: SecondaryMap<Wire, Option<u32>>,
    /// The cycle in which an access is asked for.
    pub(crate) access: Vec<u32>,
    /// The ports that accesses share, by their objects.
    pub(crate) slots: BTreeMap<ObjectKey, Vec<Slot>>,
    /// The fewest cycles from one frame to the next for the sake of each object.
    pub(crate) intervals: BTreeMap<ObjectKey, u32>,
    /// The cycles from a frame to what is said of it.
    pub(crate) latency: u32,
    /// The fewest cycles from one frame to the next.
    pub(crate) interval: u32,
    /// Picoseconds that the slowest cycle takes, by the estimates.
    pub(crate) longest: u32,
}

/// A limit that a stage exceeds, and the parser, control or deparser that takes most of what is limited.
pub(crate) type TooLarge = (Construct, Option<BodyId>);

/// Passes that move accesses to common cycles.
const PASSES: usize = 6;
/// Accesses to one object that are compared with each other; of more, each waits for all before it.
const MAX_COMPARED: usize = 128;

/// Places a stage in time. `period` is the length of a cycle in picoseconds.
pub(crate) fn schedule(dataflow: &Dataflow, period: u32, delays: &Delays) -> Result<Schedule, TooLarge> {
    let needed = needed(dataflow);
    let conditions = Conditions::of(dataflow);
    let mut objects: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
    for (at, access) in dataflow.accesses.iter().enumerate() {
        objects.entry(access.unit.object()).or_default().push(at);
    }
    let pass = Pass { dataflow, needed: &needed, conditions: &conditions, objects: &objects, period, delays };
    let mut least = vec![0; dataflow.accesses.len()];
    let mut best = pass.place(&least)?;
    for _ in 0..PASSES {
        let moved = aligned(dataflow, &conditions, &objects, &best.access);
        let next: Vec<u32> = least.iter().zip(&moved).map(|(old, new)| *old.max(new)).collect();
        if next == least || next == best.access {
            break;
        }
        least = next;
        // Where there is no room to move, accesses stay as they were.
        match pass.place(&least) {
            Ok(placed) => best = placed,
            Err(_) => break,
        }
    }
    Ok(best)
}

/// What a pass goes by.
struct Pass<'a> {
    dataflow: &'a Dataflow,
    needed: &'a SecondaryMap<Wire, bool>,
    conditions: &'a Conditions,
    objects: &'a BTreeMap<ObjectKey, Vec<usize>>,
    period: u32,
    delays: &'a Delays,
}

impl Pass<'_> {
    fn place(&self, least: &[u32]) -> Result<Schedule, TooLarge> {
        let dataflow = self.dataflow;
        let graph = &dataflow.graph;
        let room = self.period.saturating_sub(self.delays.overhead()).max(1);
        let mut cycle: SecondaryMap<Wire, Option<u32>> = SecondaryMap::new();
        let mut time: SecondaryMap<Wire, u32> = SecondaryMap::new();
        let mut access: Vec<u32> = Vec::new();
        let mut slowest = 0;
        for wire in graph.wires() {
            if !self.needed[wire] {
                continue;
            }
            let (mut at, mut after) = (0, 0);
            match graph.node(wire) {
                Node::Answer(of, _) => {
                    let of = *of as usize;
                    self.place_accesses(of + 1, least, &cycle, &mut access);
                    at = access[of] + dataflow.accesses[of].latency;
                }
                node => node.operands(|operand| {
                    let (of, ends) = (cycle[operand].unwrap_or(0), time[operand]);
                    if graph.constant(operand).is_none() {
                        (at, after) = match of.cmp(&at) {
                            std::cmp::Ordering::Greater => (of, ends),
                            std::cmp::Ordering::Equal => (at, after.max(ends)),
                            std::cmp::Ordering::Less => (at, after),
                        };
                    }
                }),
            }
            let takes = self.delays.of(graph.node(wire), graph.width(wire), |operand| graph.width(operand));
            if after + takes > room && after > 0 {
                (at, after) = (at + 1, 0);
            }
            cycle[wire] = Some(at);
            time[wire] = after + takes;
            slowest = slowest.max(after + takes);
        }
        self.place_accesses(dataflow.accesses.len(), least, &cycle, &mut access);
        let ends = access.iter().zip(&dataflow.accesses).map(|(at, made)| match made.answer {
            0 => *at,
            _ => at + made.latency,
        });
        let outputs = dataflow.outputs.iter().filter_map(|(_, wire)| cycle[*wire]);
        let latency = ends.chain(outputs).max().unwrap_or(0);
        if latency > MAX_LATENCY {
            return Err((Construct::Latency, longest_body(graph, &cycle)));
        }
        let mut sum = 0;
        registers(dataflow, &cycle, &access, latency, |_, registers| sum += registers);
        if sum > MAX_REGISTERS {
            return Err((Construct::Registers, widest_body(dataflow, &cycle, &access, latency)));
        }
        let slots = slots(dataflow, self.conditions, self.objects, &access);
        let intervals = intervals(&slots);
        let interval = intervals.values().copied().max().unwrap_or(1);
        let longest = slowest + self.delays.overhead();
        Ok(Schedule { cycle, access, slots, intervals, latency, interval, longest })
    }

    /// Places the accesses before the one with that number.
    fn place_accesses(
        &self,
        until: usize,
        least: &[u32],
        cycle: &SecondaryMap<Wire, Option<u32>>,
        access: &mut Vec<u32>,
    ) {
        while access.len() < until {
            let number = access.len();
            let made = &self.dataflow.accesses[number];
            let wires = made.inputs.iter().map(|(wire, _)| *wire).chain([made.enable]);
            let ready = wires.filter_map(|wire| cycle[wire]).max().unwrap_or(0);
            let of_object = &self.objects[&made.unit.object()];
            let is_compared = of_object.len() <= MAX_COMPARED;
            let before = of_object.iter().copied().take_while(|other| *other < number);
            let before = before.filter(|other| !is_compared || !self.conditions.exclude(*other, number));
            let after =
                before.map(|other| access[other] + self.dataflow.accesses[other].unit.apart(&made.unit));
            let at = after.chain([ready, least[number]]).max().unwrap_or(0);
            access.push(at);
        }
    }
}

/// Registers: of each wire one for each cycle from its own to the last in which something needs it.
fn registers(
    dataflow: &Dataflow,
    cycle: &SecondaryMap<Wire, Option<u32>>,
    access: &[u32],
    latency: u32,
    mut each: impl FnMut(Wire, u64),
) {
    let mut last: SecondaryMap<Wire, u32> = SecondaryMap::new();
    let mut needs = |wire: Wire, at: u32| last[wire] = last[wire].max(at);
    for wire in dataflow.graph.wires() {
        if let Some(at) = cycle[wire] {
            dataflow.graph.node(wire).operands(|operand| needs(operand, at));
        }
    }
    for (made, at) in dataflow.accesses.iter().zip(access) {
        made.inputs.iter().for_each(|(wire, _)| needs(*wire, *at));
        needs(made.enable, *at);
    }
    dataflow.outputs.iter().for_each(|(_, wire)| needs(*wire, latency));
    let wires = dataflow.graph.wires().filter(|wire| dataflow.graph.constant(*wire).is_none());
    for wire in wires {
        if let Some(at) = cycle[wire] {
            each(wire, last[wire].saturating_sub(at).into());
        }
    }
}

/// The body whose values have the most registers.
fn widest_body(
    dataflow: &Dataflow,
    cycle: &SecondaryMap<Wire, Option<u32>>,
    access: &[u32],
    latency: u32,
) -> Option<BodyId> {
    let mut bodies: BTreeMap<BodyId, u64> = BTreeMap::new();
    registers(dataflow, cycle, access, latency, |wire, registers| {
        if let Some(body) = dataflow.graph.body(wire) {
            *bodies.entry(body).or_default() += registers;
        }
    });
    let most = bodies.into_iter().max_by_key(|(body, registers)| (*registers, std::cmp::Reverse(*body)));
    most.map(|(body, _)| body)
}

/// The body whose values take the most cycles from the first of them to the last.
fn longest_body(graph: &Graph, cycle: &SecondaryMap<Wire, Option<u32>>) -> Option<BodyId> {
    let mut bodies: BTreeMap<BodyId, (u32, u32)> = BTreeMap::new();
    for wire in graph.wires() {
        if let (Some(body), Some(at)) = (graph.body(wire), cycle[wire]) {
            let (first, last) = bodies.entry(body).or_insert((at, at));
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    }
    let longest =
        bodies.into_iter().max_by_key(|(body, (first, last))| (last - first, std::cmp::Reverse(*body)));
    longest.map(|(body, _)| body)
}

/// The wires that outputs and accesses depend on.
fn needed(dataflow: &Dataflow) -> SecondaryMap<Wire, bool> {
    let mut needed: SecondaryMap<Wire, bool> = SecondaryMap::new();
    let made = dataflow.accesses.iter();
    let of_accesses =
        made.flat_map(|access| access.inputs.iter().map(|(wire, _)| *wire).chain([access.enable]));
    for wire in of_accesses.chain(dataflow.outputs.iter().map(|(_, wire)| *wire)) {
        needed[wire] = true;
    }
    // Operands come before what uses them.
    for wire in dataflow.graph.wires().rev() {
        if needed[wire] {
            dataflow.graph.node(wire).operands(|operand| needed[operand] = true);
        }
    }
    needed
}
