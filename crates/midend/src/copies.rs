//! How the copies of a packet for a set of ports ([`Intrinsic::EgressPorts`]) may pass egress in one run of compiled code.
//!
//! Each copy passes egress as a packet of its own. Where nobody can tell, less does the same: what egress does to all copies alike is
//! done once, and where the port only decides whether a copy is dropped, no copy is needed to find that out. So egress is cut
//! after the last body that looks at the port or counts. The bodies before the cut run once for each port, the others once for all.
//!
//! That is right when the bodies before the cut change nothing that the others, the deparser among them, read, and nothing that they
//! find again for the next port. What they write is metadata, so a slot that they may read before they write it has to be as it was
//! when egress began: 0, as nothing before egress writes it, or what the switch tells each copy.
//!
//! Example: an AFDX switch has a longest stay for each egress port, looked up by the port. The action writes it to metadata, and a
//! copy that has been in the switch for longer is dropped and counted.

use crate::order::{QUEUES, reached};
use millrace_pipeline::*;
use std::collections::{BTreeMap, BTreeSet};

/// Most ports of a set whose copies pass egress together: those that are numbered from 0.
pub const MAX_COPIES: u32 = 32;

/// How copies pass egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// So many of the bodies of egress run for each port; the others do for all what they would do for each.
    pub apart: usize,
    /// What is set to 0 before each of these runs.
    pub cleared: Vec<SlotId>,
}

/// What the switch tells each packet before egress, or takes back from it.
const TOLD: [Intrinsic; 16] = [
    Intrinsic::Drop,
    Intrinsic::Clone,
    Intrinsic::CloneSession,
    Intrinsic::CloneList,
    Intrinsic::Recirculate,
    Intrinsic::RecirculateList,
    Intrinsic::PacketLength,
    Intrinsic::PacketPath,
    Intrinsic::EgressPort,
    Intrinsic::EgressRid,
    Intrinsic::EnqueueTimestamp,
    Intrinsic::EnqueueDepth,
    Intrinsic::QueueDelay,
    Intrinsic::DequeueDepth,
    Intrinsic::QueueId,
    Intrinsic::EgressTimestamp,
];

/// What a program asks the switch for in egress, but for a drop.
const ASKED: [Intrinsic; 5] = [
    Intrinsic::Clone,
    Intrinsic::Recirculate,
    Intrinsic::Truncate,
    Intrinsic::Resubmit,
    Intrinsic::EgressPorts,
];

impl Copies {
    /// Of a verified program, whose code weighs that; none where each copy has to pass egress on its own.
    pub fn of(program: &Program, work: &Work) -> Option<Copies> {
        program.intrinsics.get(Intrinsic::EgressPorts)?;
        // Egress would parse each copy again; where there is none of it, copies are bytes that are sent.
        if program.deparse_at_ingress && !program.egress.is_empty() {
            return None;
        }
        let blind = |body: &BodyId| is_blind(program, *body);
        let apart = program.egress.iter().rposition(|body| !blind(body)).map_or(0, |last| last + 1);
        let (apart, together) = program.egress.split_at(apart);
        let bodies = reached(program, apart);
        if !bodies.iter().all(|body| tells_apart_only(program, *body) && !work.counts(*body)) {
            return None;
        }
        let changed = written(program, &bodies);
        let read_after = read(program, &reached(program, together));
        if !changed.is_disjoint(&read_after) {
            return None;
        }
        let told: BTreeSet<SlotId> = TOLD.iter().filter_map(|role| program.intrinsics.get(*role)).collect();
        let starts_anew = |slot: &SlotId| {
            told.contains(slot)
                || program.reset_at_egress.contains(slot)
                || is_settled(program, (apart, &bodies), *slot, &changed)
        };
        let needed = apart.iter().rev().fold(BTreeSet::new(), |after, body| needed(program, *body, &after));
        let found: Vec<SlotId> =
            changed.intersection(&needed).copied().filter(|slot| !starts_anew(slot)).collect();
        let before = written(program, &reached(program, &program.ingress));
        let is_zero = |slot: &SlotId| !before.contains(slot) && !has_role(program, *slot);
        found.iter().all(is_zero).then_some(Copies { apart: apart.len(), cleared: found })
    }

    /// The tables that are looked up for each port.
    pub fn tables(&self, program: &Program) -> BTreeSet<TableId> {
        let bodies = program.egress[..self.apart].iter().map(|body| &program.bodies[*body]);
        let applied = |block: &Block| match block.term {
            Terminator::Apply { table, .. } => Some(table),
            _ => None,
        };
        bodies.flat_map(|body| body.blocks.values()).filter_map(applied).collect()
    }
}

/// Whether a body does the same to each copy, and nothing else shows that it ran: it looks neither at the port nor at queues,
/// applies no table, keeps and counts nothing, and asks the switch for nothing.
fn is_blind(program: &Program, body: BodyId) -> bool {
    let body = &program.bodies[body];
    let told = [Intrinsic::EgressPort, Intrinsic::EgressRid];
    let looks = sees(program, body, told.into_iter().chain(QUEUES));
    let asked = slots(program, ASKED.into_iter().chain([Intrinsic::Drop]));
    let is_plain = |inst: &Inst| match inst {
        Inst::Assign { dst, value } => !asked.contains(dst) || is_zero(value),
        Inst::SetValid(_) | Inst::SetInvalid(_) | Inst::Emit(_) => true,
        Inst::Hash { dst, .. } => !asked.contains(dst),
        _ => false,
    };
    let applies = |block: &Block| matches!(block.term, Terminator::Apply { .. });
    body.kind != BodyKind::Parser
        && !body.has_loop()
        && !looks
        && body.blocks.values().all(|block| !applies(block) && block.insts.iter().all(is_plain))
}

/// Whether a body may run for one port after another, and its action too: it writes metadata, counts, and asks for nothing but a drop.
fn tells_apart_only(program: &Program, body: BodyId) -> bool {
    let body = &program.bodies[body];
    let asked = slots(program, ASKED);
    let may_write =
        |dst: SlotId| !matches!(program.slots[dst].home, Home::Header { .. }) && !asked.contains(&dst);
    let is_plain = |inst: &Inst| match inst {
        Inst::Assign { dst, .. } | Inst::Hash { dst, .. } => may_write(*dst),
        Inst::Count { .. } | Inst::CountDirect(_) => true,
        _ => false,
    };
    let applies_plainly = |block: &Block| match &block.term {
        Terminator::Apply { table, hit, action, .. } => {
            program.tables[*table].direct_meter.as_ref().is_none_or(|meter| meter.at_hit.is_none())
                && hit.iter().chain(action).all(|slot| may_write(*slot))
        }
        _ => true,
    };
    matches!(body.kind, BodyKind::Control | BodyKind::Action)
        && !body.has_loop()
        && !sees(program, body, QUEUES)
        && body.blocks.values().all(|block| block.insts.iter().all(is_plain) && applies_plainly(block))
}

fn is_zero(value: &Expr) -> bool {
    match value {
        Expr::Const(bits) => bits.is_zero(),
        Expr::Bool(set) => !set,
        _ => false,
    }
}

/// Whether the first thing that egress does to a slot gives it, or leaves it, what it has for each copy, and nothing else writes it:
/// `x = cond ? value : x`, of what is the same for each. So the next copy finds it as the first one did, or as that would have made it.
fn is_settled(
    program: &Program,
    (apart, bodies): (&[BodyId], &BTreeSet<BodyId>),
    slot: SlotId,
    written: &BTreeSet<SlotId>,
) -> bool {
    let Some(first) = apart.first().map(|body| &program.bodies[*body]) else { return false };
    let port = program.intrinsics.get(Intrinsic::EgressPort);
    let same = |expr: &Expr| {
        let mut same = true;
        expr.for_each_read(&mut |read| same &= Some(read) != port && !written.contains(&read));
        same
    };
    let settles = |inst: &Inst| match inst {
        Inst::Assign { dst, value: Expr::Mux(cond, then, els) } => {
            *dst == slot && **els == Expr::Read(slot) && same(cond) && same(then)
        }
        _ => false,
    };
    let blocks = || bodies.iter().flat_map(|body| program.bodies[*body].blocks.values());
    let writes = blocks().flat_map(|block| &block.insts).filter(|inst| inst.dst() == Some(slot)).count();
    let by_table = blocks().any(|block| written_by_table(program, &block.term).contains(&slot));
    writes == 1 && !by_table && first.blocks[first.entry].insts.iter().any(settles)
}

fn has_role(program: &Program, slot: SlotId) -> bool {
    Intrinsic::ALL.iter().any(|role| program.intrinsics.get(*role) == Some(slot))
}

fn slots(program: &Program, roles: impl IntoIterator<Item = Intrinsic>) -> BTreeSet<SlotId> {
    roles.into_iter().filter_map(|role| program.intrinsics.get(role)).collect()
}

/// Whether a body, or a table that it applies, reads the slot of one of these roles.
fn sees(program: &Program, body: &Body, roles: impl IntoIterator<Item = Intrinsic>) -> bool {
    let roles = slots(program, roles);
    let mut found = false;
    for_each_read(program, body, &mut |slot| found |= roles.contains(&slot));
    found
}

fn for_each_read(program: &Program, body: &Body, f: &mut impl FnMut(SlotId)) {
    for block in body.blocks.values() {
        block.insts.iter().for_each(|inst| reads_of_inst(program, inst, f));
        reads_of_terminator(program, &block.term, f);
    }
}

/// What an instruction reads: of the packet and of hashes whole headers.
fn reads_of_inst(program: &Program, inst: &Inst, f: &mut impl FnMut(SlotId)) {
    let mut header = |header: &HeaderId| program.headers[*header].fields.iter().for_each(|field| f(*field));
    match inst {
        Inst::Emit(emitted) => header(emitted),
        Inst::Hash { data, .. } => data.iter().for_each(|item| {
            if let DataItem::Header(hashed) = item {
                header(hashed);
            }
        }),
        _ => {}
    }
    inst.for_each_expr(&mut |expr| expr.for_each_read(f));
}

fn reads_of_terminator(program: &Program, term: &Terminator, f: &mut impl FnMut(SlotId)) {
    match term {
        Terminator::Apply { table, .. } => {
            program.tables[*table].exprs().for_each(|expr| expr.for_each_read(f))
        }
        Terminator::Branch { cond, .. } => cond.for_each_read(f),
        Terminator::Select { keys, .. } => keys.iter().for_each(|key| key.for_each_read(f)),
        _ => {}
    }
}

/// What a body without loops may read before it writes it, or leaves to those after it, which need `after`. A backward walk: each
/// block comes after all that it leads to.
fn needed(program: &Program, body: BodyId, after: &BTreeSet<SlotId>) -> BTreeSet<SlotId> {
    let body = &program.bodies[body];
    let mut at: BTreeMap<BlockId, BTreeSet<SlotId>> = BTreeMap::new();
    for id in body.postorder() {
        let block = &body.blocks[id];
        let mut live = BTreeSet::new();
        block.term.for_each_successor(&mut |next| live.extend(at.get(&next).into_iter().flatten()));
        if matches!(block.term, Terminator::End | Terminator::Exit | Terminator::Reject) {
            live.extend(after);
        }
        if let Terminator::Apply { table, hit, action, .. } = &block.term {
            let run = program.tables[*table].actions.iter().map(|listed| {
                let action = &program.actions[listed.action];
                let mut live = needed(program, action.body, &live);
                live.retain(|slot| !action.params.contains(slot));
                live
            });
            live = run.fold(live.clone(), |all, of_action| all.union(&of_action).copied().collect());
            live.retain(|slot| *hit != Some(*slot) && *action != Some(*slot));
        }
        reads_of_terminator(program, &block.term, &mut |slot| _ = live.insert(slot));
        for inst in block.insts.iter().rev() {
            if let Some(dst) = inst.dst() {
                live.remove(&dst);
            }
            reads_of_inst(program, inst, &mut |slot| _ = live.insert(slot));
        }
        at.insert(id, live);
    }
    let mut live = at.remove(&body.entry).unwrap_or_default();
    body.locals(program).iter().for_each(|local| _ = live.remove(local));
    live
}

fn read(program: &Program, bodies: &BTreeSet<BodyId>) -> BTreeSet<SlotId> {
    let mut found = BTreeSet::new();
    bodies
        .iter()
        .for_each(|body| for_each_read(program, &program.bodies[*body], &mut |slot| _ = found.insert(slot)));
    found
}

/// What bodies write, and the tables that they apply.
fn written(program: &Program, bodies: &BTreeSet<BodyId>) -> BTreeSet<SlotId> {
    let mut found = BTreeSet::new();
    for block in bodies.iter().flat_map(|body| program.bodies[*body].blocks.values()) {
        found.extend(block.insts.iter().filter_map(Inst::dst));
        found.extend(written_by_table(program, &block.term));
    }
    found
}

fn written_by_table(program: &Program, term: &Terminator) -> Vec<SlotId> {
    let Terminator::Apply { table, hit, action, .. } = term else { return Vec::new() };
    let table = &program.tables[*table];
    let params = table.actions.iter().flat_map(|listed| &program.actions[listed.action].params);
    let color = table.direct_meter.as_ref().and_then(|meter| meter.at_hit);
    params.chain(hit).chain(action).copied().chain(color).collect()
}
