//! What is known of the validity of headers.

use super::dataflow::{self, Effects, Facts};
use crate::*;
use cranelift_entity::SecondaryMap;
use std::mem;

/// Decides tests of validity whose result is known, removes changes of validity that change nothing and assignments to
/// fields of invalid headers, and reads such fields as 0.
pub fn use_validity(program: &mut Program) {
    let effects = dataflow::table_effects(program);
    let mut bodies = mem::take(&mut program.bodies);
    for (id, body) in bodies.iter_mut() {
        let entry = if starts_without_headers(program, id, body) {
            program.headers.keys().map(|header| (header, false)).collect()
        } else {
            Facts::default()
        };
        dataflow::forward(body, entry, |body, id, valid| {
            let block = &mut body.blocks[id];
            let mut kept = Vec::with_capacity(block.insts.len());
            for mut inst in mem::take(&mut block.insts) {
                inst.for_each_expr_mut(&mut |e| decide(e, valid, program));
                if step(&inst, valid, program) {
                    kept.push(inst);
                }
            }
            block.insts = kept;
            block.term.for_each_expr_mut(&mut |e| decide(e, valid, program));
            leave(&block.term, valid, &effects)
        });
    }
    program.bodies = bodies;
}

/// A packet that comes in, or that was put together between ingress and egress, has no valid header until something
/// ran on it.
fn starts_without_headers(program: &Program, id: BodyId, body: &Body) -> bool {
    let first = |list: &[BodyId]| list.first() == Some(&id);
    let uses = program.ingress.iter().chain(&program.egress).filter(|b| **b == id).count();
    body.kind == BodyKind::Parser
        && uses == 1
        && (first(&program.ingress) || program.deparse_at_ingress && first(&program.egress))
}

fn decide(expr: &mut Expr, valid: &Facts<HeaderId, bool>, program: &Program) {
    let mut found = false;
    replace(expr, valid, program, &mut found);
    if found {
        *expr = fold::tree(mem::replace(expr, Expr::Bool(false)), program);
    }
}

fn replace(expr: &mut Expr, valid: &Facts<HeaderId, bool>, program: &Program, found: &mut bool) {
    let known = match expr {
        Expr::IsValid(header) => valid.get(header).map(|v| Expr::Bool(*v)),
        Expr::Read(slot) => zero_of(*slot, valid, program),
        Expr::Const(_) | Expr::Bool(_) | Expr::PacketLength | Expr::Cursor => None,
        Expr::Unary(_, a)
        | Expr::Slice(a, _, _)
        | Expr::ZeroExtend(a, _)
        | Expr::SignExtend(a, _)
        | Expr::BoolToBits(a) => return replace(a, valid, program, found),
        Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
            replace(a, valid, program, found);
            return replace(b, valid, program, found);
        }
        Expr::Mux(c, a, b) => {
            replace(c, valid, program, found);
            replace(a, valid, program, found);
            return replace(b, valid, program, found);
        }
    };
    if let Some(known) = known {
        *expr = known;
        *found = true;
    }
}

/// The value of a field of an invalid header.
fn zero_of(slot: SlotId, valid: &Facts<HeaderId, bool>, program: &Program) -> Option<Expr> {
    let Slot { ty, home, .. } = program.slots[slot];
    let Home::Header { header, .. } = home else { return None };
    match (valid.get(&header), ty) {
        (Some(false), Type::Bool) => Some(Expr::Bool(false)),
        (Some(false), Type::Bits(width)) => Some(Expr::bits(width, 0)),
        _ => None,
    }
}

/// Notes what an instruction changes. Returns whether it does anything at all.
fn step(inst: &Inst, valid: &mut Facts<HeaderId, bool>, program: &Program) -> bool {
    match inst {
        Inst::SetValid(header) => valid.insert(*header, true) != Some(true),
        Inst::SetInvalid(header) => valid.insert(*header, false) != Some(false),
        Inst::Extract(header) | Inst::ExtractVar { header, .. } => {
            valid.insert(*header, true);
            true
        }
        Inst::Assign { dst, .. } => match program.slots[*dst].home {
            Home::Header { header, .. } => valid.get(&header) != Some(&false),
            _ => true,
        },
        Inst::Emit(header) => valid.get(header) != Some(&false),
        _ => true,
    }
}

fn leave(
    term: &Terminator,
    valid: &mut Facts<HeaderId, bool>,
    effects: &SecondaryMap<TableId, Effects>,
) -> Vec<(BlockId, Vec<(HeaderId, bool)>)> {
    if let Terminator::Apply { table, .. } = term {
        for header in &effects[*table].headers {
            valid.remove(header);
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
fn told(cond: &Expr, is: bool) -> Vec<(HeaderId, bool)> {
    match cond {
        Expr::IsValid(header) => vec![(*header, is)],
        Expr::Unary(UnaryOp::Not, inner) => told(inner, !is),
        Expr::Binary(BinaryOp::BoolAnd, a, b) if is => [told(a, true), told(b, true)].concat(),
        Expr::Binary(BinaryOp::BoolOr, a, b) if !is => [told(a, false), told(b, false)].concat(),
        _ => Vec::new(),
    }
}
