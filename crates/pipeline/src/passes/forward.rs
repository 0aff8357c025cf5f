//! Forwarding of temporaries: a value that is computed into a local and used once is computed where it is used.

use super::dataflow::Readers;
use crate::*;
use std::mem;

/// The deepest expression that this pass makes.
const MAX_DEPTH: usize = 64;
/// How many instructions further on a value may be used; so that a long block takes no quadratic time.
const MAX_DISTANCE: usize = 256;

/// Moves the value of a local into the one place that reads it, when that place is in the same block and nothing
/// between changes what the value reads. The assignment is then dead.
pub fn forward_temporaries(program: &mut Program) {
    let readers = Readers::of(program);
    let mut bodies = mem::take(&mut program.bodies);
    for block in bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        for index in 0..block.insts.len() {
            let Inst::Assign { dst, value } = &block.insts[index] else { continue };
            if program.slots[*dst].home == Home::Local && readers.counts[*dst] == 1 && !value.reads(*dst) {
                let (dst, value) = (*dst, value.clone());
                forward_one(program, block, index, dst, value);
            }
        }
    }
    program.bodies = bodies;
}

fn forward_one(program: &Program, block: &mut Block, index: usize, dst: SlotId, value: Expr) {
    let inputs = Inputs::of(&value, program);
    let room = MAX_DEPTH.saturating_sub(value.depth());
    let mut value = Some(value);
    let mut place = |e: &mut Expr| {
        if e.reads(dst)
            && e.depth() <= room
            && let Some(value) = value.take()
        {
            insert(e, dst, &mut Some(value));
            *e = fold::tree(mem::replace(e, Expr::Bool(false)), program);
        }
    };
    let rest = block.insts.len() - index - 1;
    for inst in block.insts[index + 1..].iter_mut().take(MAX_DISTANCE) {
        let mut reads = false;
        inst.for_each_expr(&mut |e| reads |= e.reads(dst));
        if reads {
            return inst.for_each_expr_mut(&mut place);
        }
        if inst.dst() == Some(dst) || inputs.changed_by(inst, program) {
            return;
        }
    }
    if rest <= MAX_DISTANCE {
        block.term.for_each_expr_mut(&mut place);
    }
}

/// Puts the value where `slot` is read.
fn insert(expr: &mut Expr, slot: SlotId, value: &mut Option<Expr>) {
    expr.walk_mut(&mut |part| {
        if matches!(part, Expr::Read(read) if *read == slot)
            && let Some(value) = value.take()
        {
            *part = value;
        }
    });
}

/// What the value of an expression depends on.
struct Inputs {
    slots: Vec<SlotId>,
    /// Headers whose validity or fields are read.
    headers: Vec<HeaderId>,
    cursor: bool,
    length: bool,
}

impl Inputs {
    fn of(expr: &Expr, program: &Program) -> Inputs {
        let mut inputs = Inputs { slots: Vec::new(), headers: Vec::new(), cursor: false, length: false };
        expr.walk(&mut |e| match e {
            Expr::Read(slot) => {
                inputs.slots.push(*slot);
                if let Home::Header { header, .. } = program.slots[*slot].home {
                    inputs.headers.push(header);
                }
            }
            Expr::IsValid(header) => inputs.headers.push(*header),
            Expr::Cursor => inputs.cursor = true,
            Expr::PacketLength => inputs.length = true,
            _ => {}
        });
        inputs
    }

    fn changed_by(&self, inst: &Inst, program: &Program) -> bool {
        if self.length && inst.rewrites(program) {
            return true;
        }
        let moves = matches!(inst, Inst::Extract(_) | Inst::ExtractVar { .. } | Inst::Advance { .. });
        self.cursor && moves
            || inst.dst().is_some_and(|dst| self.slots.contains(&dst))
            || inst.header_changed().is_some_and(|header| self.headers.contains(&header))
    }
}

impl Expr {
    /// The operations on the longest way to a leaf, the leaf included.
    pub fn depth(&self) -> usize {
        match self {
            Expr::Read(_)
            | Expr::Const(_)
            | Expr::Bool(_)
            | Expr::IsValid(_)
            | Expr::PacketLength
            | Expr::Cursor => 1,
            Expr::Unary(_, a)
            | Expr::Slice(a, _, _)
            | Expr::ZeroExtend(a, _)
            | Expr::SignExtend(a, _)
            | Expr::BoolToBits(a) => 1 + a.depth(),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => 1 + a.depth().max(b.depth()),
            Expr::Mux(c, a, b) => 1 + c.depth().max(a.depth()).max(b.depth()),
        }
    }
}
