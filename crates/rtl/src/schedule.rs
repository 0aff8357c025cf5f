//! When each value is computed: cycles of a pipeline that takes a new frame in each of them.
//!
//! A value is computed as soon as its operands are there (*as soon as possible* scheduling). Operations are chained within a
//! cycle as long as their delays fit its length; the next one begins in the next cycle, where its operands come from registers.
//! The delays are estimates for an FPGA with 6-input lookup tables ([`delay`]). Since every frame takes the same path through the
//! pipeline, a value has one cycle, and so does the last of them: the latency.
//!
//! Accesses to one object keep the order that they have in the program: none is made in an earlier cycle than the one before it.
//! So an object sees the accesses of a frame in order; [`Schedule::interval`] says how many cycles apart frames have to come where
//! an object is written after it is read, such that they see each other's writes, too.

use crate::graph::{Binary, Node, Unary, Wire};
use crate::limits::{MAX_LATENCY, MAX_REGISTERS};
use crate::refusal::Construct;
use crate::stage::{Dataflow, Unit};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeMap;

/// Cycles of values and accesses.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The cycle in which a wire has its value; none for one that nothing needs.
    pub(crate) cycle: SecondaryMap<Wire, Option<u32>>,
    /// The cycle in which an access is asked for.
    pub(crate) access: Vec<u32>,
    /// The cycles from a frame to what is said of it.
    pub(crate) latency: u32,
    /// The fewest cycles from one frame to the next.
    pub(crate) interval: u32,
}

/// Picoseconds after the edge of the clock at which values of registers are there, and before the next at which they must be.
const MARGIN: u32 = 500;

/// Places a stage in time. `period` is the length of a cycle in picoseconds.
pub(crate) fn schedule(dataflow: &Dataflow, period: u32) -> Result<Schedule, Construct> {
    let graph = &dataflow.graph;
    let needed = needed(dataflow);
    let room = period.saturating_sub(MARGIN).max(1);
    let mut cycle: SecondaryMap<Wire, Option<u32>> = SecondaryMap::new();
    let mut time: SecondaryMap<Wire, u32> = SecondaryMap::new();
    let mut access: Vec<u32> = Vec::new();
    let mut objects: BTreeMap<(u8, u32), u32> = BTreeMap::new();
    let place_accesses = |until: usize,
                          cycle: &SecondaryMap<Wire, Option<u32>>,
                          access: &mut Vec<u32>,
                          objects: &mut BTreeMap<(u8, u32), u32>| {
        while access.len() < until {
            let made = &dataflow.accesses[access.len()];
            let wires = made.inputs.iter().map(|(wire, _)| *wire).chain([made.enable]);
            let ready = wires.filter_map(|wire| cycle[wire]).max().unwrap_or(0);
            let last = objects.entry(made.unit.object()).or_default();
            *last = ready.max(*last);
            access.push(*last);
        }
    };
    for wire in graph.wires() {
        if !needed[wire] {
            continue;
        }
        let (mut at, mut after) = (0, 0);
        match graph.node(wire) {
            Node::Answer(of, _) => {
                let of = *of as usize;
                place_accesses(of + 1, &cycle, &mut access, &mut objects);
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
        let takes = delay(graph.node(wire), graph.width(wire), |operand| graph.width(operand));
        if after + takes > room && after > 0 {
            (at, after) = (at + 1, 0);
        }
        cycle[wire] = Some(at);
        time[wire] = after + takes;
    }
    place_accesses(dataflow.accesses.len(), &cycle, &mut access, &mut objects);
    let ends = access.iter().zip(&dataflow.accesses).map(|(at, made)| match made.answer {
        0 => *at,
        _ => at + made.latency,
    });
    let outputs = dataflow.outputs.iter().filter_map(|(_, wire)| cycle[*wire]);
    let latency = ends.chain(outputs).max().unwrap_or(0);
    if latency > MAX_LATENCY {
        return Err(Construct::Latency);
    }
    if registers(dataflow, &cycle, &access, latency) > MAX_REGISTERS {
        return Err(Construct::Registers);
    }
    Ok(Schedule { interval: interval(dataflow, &access), cycle, access, latency })
}

/// Registers: of each wire one for each cycle from its own to the last in which something needs it.
fn registers(
    dataflow: &Dataflow,
    cycle: &SecondaryMap<Wire, Option<u32>>,
    access: &[u32],
    latency: u32,
) -> u64 {
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
    wires.filter_map(|wire| Some(u64::from(last[wire].saturating_sub(cycle[wire]?)))).sum()
}

/// The fewest cycles between frames: from the first access to a register to the last that may change what it read.
fn interval(dataflow: &Dataflow, access: &[u32]) -> u32 {
    let mut spans: BTreeMap<(u8, u32), (u32, u32)> = BTreeMap::new();
    for (at, made) in access.iter().zip(&dataflow.accesses) {
        if let Unit::RegisterRead(_) | Unit::RegisterWrite(_) = made.unit {
            let span = spans.entry(made.unit.object()).or_insert((*at, *at));
            *span = (span.0.min(*at), span.1.max(*at));
        }
    }
    spans.values().map(|(first, last)| last - first + 1).max().unwrap_or(1)
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

/// About the picoseconds that an operation takes in lookup tables and carry chains, with the wires to it.
fn delay(node: &Node, width: u32, of: impl Fn(Wire) -> u32) -> u32 {
    /// A lookup table and the wire to it.
    const LEVEL: u32 = 450;
    /// A bit of a carry chain.
    const CARRY: u32 = 15;
    let levels = |inputs: u32| inputs.max(2).ilog2().div_ceil(2).max(1);
    match node {
        Node::Const(_) | Node::Frame(_) | Node::Input(_) | Node::Answer(..) => 0,
        Node::Concat(..) | Node::Slice(..) | Node::Unary(Unary::Not, _) => 0,
        Node::Unary(Unary::Any | Unary::Parity, a) => LEVEL * levels(of(*a)),
        Node::Mux(..) => LEVEL,
        Node::Binary(op, a, b) => match op {
            Binary::And | Binary::Or | Binary::Xor => LEVEL,
            Binary::Add | Binary::Sub | Binary::Lt | Binary::LtSigned => LEVEL + CARRY * of(*a),
            Binary::Eq => LEVEL * (1 + levels(of(*a))) / 2 + LEVEL / 2,
            Binary::Mul => 4 * LEVEL + 2 * CARRY * width,
            // A level of choices for each bit of the amount that counts; two fit in a lookup table.
            Binary::Shl | Binary::Shr | Binary::ShrSigned => {
                let bits = of(*b).min(width.max(2).ilog2() + 1);
                LEVEL * bits.div_ceil(2).max(1)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn wiring_is_free_and_wide_sums_take_longer() {
        let of = |_| 32;
        let (a, b) = (Wire::new(0), Wire::new(1));
        assert_eq!(delay(&Node::Concat(a, b), 64, of), 0);
        let sum = |width| delay(&Node::Binary(Binary::Add, a, b), width, |_| width);
        assert!(sum(16) < sum(64));
    }
}
