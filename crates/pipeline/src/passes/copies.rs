//! Propagation of constants and copies.

use super::dataflow::{self, Effects, Facts};
use crate::*;
use cranelift_entity::{EntitySet, SecondaryMap};
use std::mem;

/// Replaces reads of slots whose value is a known constant, or a copy of another slot, by that. Locals start as 0, and
/// a branch tells something on its edges.
pub fn propagate_copies(program: &mut Program) {
    let effects = dataflow::table_effects(program);
    let mut params = EntitySet::<SlotId>::new();
    for action in program.actions.values() {
        action.params.iter().for_each(|param| {
            params.insert(*param);
        });
    }
    let mut bodies = mem::take(&mut program.bodies);
    for body in bodies.values_mut() {
        let entry = locals_of(body, program, &params);
        let copied = copied_slots(body);
        dataflow::forward(body, entry, |body, id, facts| {
            let block = &mut body.blocks[id];
            for inst in &mut block.insts {
                inst.for_each_expr_mut(&mut |e| substitute(e, facts, program));
                step(inst, facts, program, &copied);
            }
            block.term.for_each_expr_mut(&mut |e| substitute(e, facts, program));
            leave(&block.term, facts, program, &effects, &copied)
        });
    }
    program.bodies = bodies;
}

/// The most slots of which something is known at one place.
const MAX_FACTS: usize = 4096;

/// What a slot holds: a constant or what another slot holds.
type Known = Expr;

/// The locals that a body reads, which start as 0; parameters do not.
fn locals_of(body: &Body, program: &Program, params: &EntitySet<SlotId>) -> Facts<SlotId, Known> {
    let mut facts = Facts::default();
    for block in body.blocks.values() {
        block.for_each_expr(&mut |e| {
            e.for_each_read(&mut |slot| {
                let Slot { ty, home, .. } = program.slots[slot];
                if home == Home::Local && !params.contains(slot) && facts.len() < MAX_FACTS {
                    match ty {
                        Type::Bool => facts.insert(slot, Expr::Bool(false)),
                        Type::Bits(width) => facts.insert(slot, Expr::bits(width, 0)),
                        Type::Varbit(_) => None,
                    };
                }
            })
        });
    }
    facts
}

/// The slots whose value is copied somewhere; of all others no fact says that another slot holds the same.
fn copied_slots(body: &Body) -> EntitySet<SlotId> {
    let mut copied = EntitySet::new();
    for inst in body.blocks.values().flat_map(|block| &block.insts) {
        if let Inst::Assign { value, .. } = inst {
            // Folding may leave the read of a slot of a larger expression.
            value.for_each_read(&mut |slot| {
                copied.insert(slot);
            });
        }
    }
    copied
}

fn substitute(expr: &mut Expr, facts: &Facts<SlotId, Known>, program: &Program) {
    if facts.is_empty() || !replace(expr, facts) {
        return;
    }
    *expr = fold::tree(mem::replace(expr, Expr::Bool(false)), program);
}

fn replace(expr: &mut Expr, facts: &Facts<SlotId, Known>) -> bool {
    match expr {
        Expr::Read(slot) => match facts.get(slot) {
            Some(known) => {
                *expr = known.clone();
                true
            }
            None => false,
        },
        Expr::Const(_) | Expr::Bool(_) | Expr::IsValid(_) | Expr::PacketLength | Expr::Cursor => false,
        Expr::Unary(_, a)
        | Expr::Slice(a, _, _)
        | Expr::ZeroExtend(a, _)
        | Expr::SignExtend(a, _)
        | Expr::BoolToBits(a) => replace(a, facts),
        Expr::Binary(_, a, b) | Expr::Concat(a, b) => replace(a, facts) | replace(b, facts),
        Expr::Mux(c, a, b) => replace(c, facts) | replace(a, facts) | replace(b, facts),
    }
}

fn forget(
    slots: impl IntoIterator<Item = SlotId>,
    facts: &mut Facts<SlotId, Known>,
    copied: &EntitySet<SlotId>,
) {
    for slot in slots {
        facts.remove(&slot);
        if copied.contains(slot) {
            facts.retain(|_, known| *known != Expr::Read(slot));
        }
    }
}

fn step(inst: &Inst, facts: &mut Facts<SlotId, Known>, program: &Program, copied: &EntitySet<SlotId>) {
    if let Some(header) = inst.header_changed() {
        forget(program.headers[header].fields.iter().copied(), facts, copied);
    }
    let Some(dst) = inst.dst() else { return };
    forget([dst], facts, copied);
    // What is written to a header is lost when the header is invalid, so nothing is known of it.
    if let Inst::Assign { value: value @ (Expr::Const(_) | Expr::Bool(_) | Expr::Read(_)), .. } = inst
        && !matches!(program.slots[dst].home, Home::Header { .. })
        && *value != Expr::Read(dst)
        && facts.len() < MAX_FACTS
    {
        facts.insert(dst, value.clone());
    }
}

fn leave(
    term: &Terminator,
    facts: &mut Facts<SlotId, Known>,
    program: &Program,
    effects: &SecondaryMap<TableId, Effects>,
    copied: &EntitySet<SlotId>,
) -> Vec<(BlockId, Vec<(SlotId, Known)>)> {
    if let Terminator::Apply { table, hit, action, .. } = term {
        let effects = &effects[*table];
        forget(effects.slots.iter().chain(hit).chain(action).copied(), facts, copied);
        for header in &effects.headers {
            forget(program.headers[*header].fields.iter().copied(), facts, copied);
        }
    }
    let mut edges = Vec::new();
    if let Terminator::Branch { cond, then, els } = term
        && then != els
    {
        edges.push((*then, told(cond, true)));
        edges.push((*els, told(cond, false)));
    } else {
        term.for_each_successor(&mut |to| edges.push((to, Vec::new())));
    }
    edges
}

/// What holds when a condition is that.
fn told(cond: &Expr, is: bool) -> Vec<(SlotId, Known)> {
    match cond {
        Expr::Read(slot) => vec![(*slot, Expr::Bool(is))],
        Expr::Unary(UnaryOp::Not, inner) => told(inner, !is),
        Expr::Binary(BinaryOp::BoolAnd, a, b) if is => [told(a, true), told(b, true)].concat(),
        Expr::Binary(BinaryOp::BoolOr, a, b) if !is => [told(a, false), told(b, false)].concat(),
        Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) if is == (*op == BinaryOp::Eq) => {
            match (a.as_ref(), b.as_ref()) {
                (Expr::Read(slot), Expr::Const(value)) | (Expr::Const(value), Expr::Read(slot)) => {
                    vec![(*slot, Expr::Const(value.clone()))]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
