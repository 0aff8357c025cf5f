//! What a device has to know of a program: which inputs of a stage matter, how many bytes of a frame a decision needs, and what needs
//! the end of the frame.

use crate::graph::{Binary, Node, Wire};
use crate::hardware::Stage;
use crate::place::{Place, with_actions};
use crate::stage::Input;
use millrace_pipeline::{Block, BodyId, Expr, Inst, Intrinsic, Program, SlotId, SourceKind, Terminator};
use std::collections::BTreeSet;

/// The inputs of a stage that anything depends on.
pub(super) fn needed(stage: &Stage) -> BTreeSet<usize> {
    let graph = &stage.dataflow.graph;
    let used = graph.wires().filter(|wire| stage.placed.cycle[*wire].is_some());
    used.filter_map(|wire| match graph.node(wire) {
        Node::Input(number) => Some(*number as usize),
        _ => None,
    })
    .collect()
}

/// How the length of a frame counts in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It is only compared: with at most that many bytes.
    Compared(u32),
    /// Its value counts.
    Value,
}

/// How the length of the frame counts in a stage.
pub(super) fn length_use(stage: &Stage) -> Length {
    let graph = &stage.dataflow.graph;
    let inputs = &stage.dataflow.inputs;
    let is_length =
        |wire: Wire| matches!(graph.node(wire), Node::Input(at) if inputs[*at as usize].0 == Input::Length);
    let mut most = 0;
    for wire in graph.wires().filter(|wire| stage.placed.cycle[*wire].is_some()) {
        let node = graph.node(wire);
        let mut touches = false;
        node.operands(|operand| touches |= is_length(operand));
        if !touches {
            continue;
        }
        let bound = match node {
            // Less than c: with c bytes it is known that it is not.
            Node::Binary(Binary::Lt, a, b) if is_length(*a) => {
                graph.constant(*b).map(|c| c.to_u64_saturating())
            }
            // More than c: known with one more.
            Node::Binary(Binary::Lt, a, b) if is_length(*b) => {
                graph.constant(*a).map(|c| c.to_u64_saturating().saturating_add(1))
            }
            _ => None,
        };
        match bound
            .and_then(|bytes| u32::try_from(bytes).ok())
            .filter(|bytes| *bytes <= crate::limits::MAX_WINDOW)
        {
            Some(bytes) => most = most.max(bytes),
            None => return Length::Value,
        }
    }
    let accesses = stage.dataflow.accesses.iter();
    let asked =
        accesses.flat_map(|access| access.inputs.iter().map(|(wire, _)| *wire).chain([access.enable]));
    let told = stage.dataflow.outputs.iter().map(|(_, wire)| *wire);
    match asked.chain(told).any(is_length) {
        true => Length::Value,
        false => Length::Compared(most),
    }
}

/// The first part of some bodies that makes use of the length of the packet, with its place, for people.
pub(super) fn who_reads_length(program: &Program, bodies: &[BodyId]) -> String {
    let all = with_actions(program, bodies);
    let lengths = length_slots(program, &all);
    for body in all.iter().filter_map(|body| program.bodies.get(*body)) {
        let found = body.blocks.iter().find(|(_, block)| uses_length(block, &lengths));
        if let Some((number, _)) = found {
            let Place { part, at } = Place::of_block(program, body, number);
            return match at {
                Some((file, line)) => format!("{part} ({file}:{line})"),
                None => part,
            };
        }
    }
    // Tables that count or meter by themselves when an entry is hit.
    let applied =
        all.iter().filter_map(|body| program.bodies.get(*body)).flat_map(|body| body.blocks.values());
    let measures = |block: &Block| match &block.term {
        Terminator::Apply { table, .. } => {
            let table = &program.tables[*table];
            let counts = table.direct_counter.as_ref().is_some_and(|counter| counter.at_hit);
            let meters = table.direct_meter.as_ref().is_some_and(|meter| meter.at_hit.is_some());
            (counts || meters).then(|| table.name.clone())
        }
        _ => None,
    };
    let Some(table) = applied.into_iter().find_map(measures) else { return program.name.clone() };
    let mut lines = program.source_lines.iter();
    match lines.find(|line| line.kind == SourceKind::Table && line.name == table) {
        Some(line) => format!("{table} ({}:{})", line.file, line.line),
        None => table,
    }
}

/// The slots that hold the length: that of the switch, and what is no more than a copy of it.
fn length_slots(program: &Program, bodies: &[BodyId]) -> BTreeSet<SlotId> {
    let mut slots: BTreeSet<SlotId> = program.intrinsics.get(Intrinsic::PacketLength).into_iter().collect();
    let mut known = usize::MAX;
    while known != slots.len() {
        known = slots.len();
        let blocks =
            bodies.iter().filter_map(|body| program.bodies.get(*body)).flat_map(|body| body.blocks.values());
        for inst in blocks.flat_map(|block| &block.insts) {
            if let Some(dst) = copy_of(inst, &slots) {
                slots.insert(dst);
            }
        }
    }
    slots
}

/// Where an instruction copies the length to, if it does nothing else.
fn copy_of(inst: &Inst, lengths: &BTreeSet<SlotId>) -> Option<SlotId> {
    let Inst::Assign { dst, value } = inst else { return None };
    let mut inner = value;
    while let Expr::ZeroExtend(of, _) | Expr::Slice(of, _, _) = inner {
        inner = of;
    }
    match inner {
        Expr::Read(slot) if lengths.contains(slot) => Some(*dst),
        Expr::PacketLength => Some(*dst),
        _ => None,
    }
}

fn uses_length(block: &Block, lengths: &BTreeSet<SlotId>) -> bool {
    let mut copied = 0;
    let mut read = 0;
    block.for_each_expr(&mut |expr| {
        expr.walk(&mut |part| match part {
            Expr::PacketLength => read += 1,
            Expr::Read(slot) if lengths.contains(slot) => read += 1,
            _ => {}
        });
    });
    copied += block.insts.iter().filter(|inst| copy_of(inst, lengths).is_some()).count();
    let measured = |inst: &Inst| {
        matches!(
            inst,
            Inst::Count { .. }
                | Inst::CountDirect { .. }
                | Inst::Meter { length: None, .. }
                | Inst::MeterDirect { length: None, .. }
        )
    };
    read > copied || block.insts.iter().any(measured)
}
