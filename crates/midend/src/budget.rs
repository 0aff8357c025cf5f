//! What making code may take: the size of what is generated, the work of the passes before that, and whether
//! somebody still waits for it.
//!
//! Two bounds work together. The cost of operations is estimated from the cfg graph, by operations times width, so that
//! nothing is begun that cannot end soon; and while code is generated its instructions are counted, which is exact.
//! Cranelift's time and memory follow from them: both are about linear in the instructions where variables are in memory
//! . Where they are in registers, it takes longer the more limbs a number has, since all are
//! live at once; so a limb costs more there, and what would take too long is made in the quick way.

use crate::cfg::{CfgBlock, Op, Term};
use millrace_pipeline::*;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A bound of code generation. A program beyond it has no machine code; the interpreter runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Instructions of Cranelift's IR ([`MAX_CODE`]).
    Code,
    /// What is estimated of them with all actions inlined ([`MAX_ESTIMATE`]).
    Estimate,
    /// Work of the passes over the graph ([`MAX_WORK`]).
    Work,
    /// Bytes of what is known of slots and headers at all points of the graph ([`MAX_FACTS`]).
    Facts,
}

/// Most instructions of Cranelift's IR in one function: below half a second and 256 MB.
pub const MAX_CODE: usize = 1 << 18;
/// Most instructions that a program is estimated to need. An estimate knows nothing of what is left out because its
/// result is known or not read, so it is far above [`MAX_CODE`].
pub const MAX_ESTIMATE: u64 = 1 << 22;
/// Most steps of the passes over the graph, of about 10 ns.
pub const MAX_WORK: u64 = 1 << 26;
/// Most bytes of what is known at all points of the graph.
pub const MAX_FACTS: u64 = 128 << 20;

/// So many limbs more, and an instruction costs as much again where variables are in registers.
const LIMBS_OF_COST: u64 = 16;

impl Limit {
    /// Its name, with the most that it allows.
    fn told(self) -> (&'static str, u64) {
        match self {
            Limit::Code => ("instructions of generated code (MAX_CODE)", MAX_CODE as u64),
            Limit::Estimate => {
                ("instructions as estimated from operations and widths (MAX_ESTIMATE)", MAX_ESTIMATE)
            }
            Limit::Work => ("steps of code generation (MAX_WORK)", MAX_WORK),
            Limit::Facts => ("bytes of what is known at the points of the program (MAX_FACTS)", MAX_FACTS),
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, most) = self.told();
        write!(f, "more than {most} {what}")
    }
}

/// Why there is nothing for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It would take too much time or memory.
    TooLarge(Limit),
    /// Nobody waits for it any more.
    Cancelled,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::TooLarge(limit) => limit.fmt(f),
            Refusal::Cancelled => f.write_str("nobody waits for it any more"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Tells a compilation that nobody waits for its code any more. Clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU8>);

const OPEN: u8 = 0;
const CANCELLED: u8 = 1;
const SETTLED: u8 = 2;

impl Cancel {
    /// Nobody waits any more; without effect once [settled](Cancel::settle).
    pub fn cancel(&self) {
        let _ = self.0.compare_exchange(OPEN, CANCELLED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether nobody waits any more.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }

    /// What was waited for is there: from now on it cannot be cancelled. False: it was before.
    pub fn settle(&self) -> bool {
        let settled = self.0.compare_exchange(OPEN, SETTLED, Ordering::AcqRel, Ordering::Acquire);
        matches!(settled, Ok(_) | Err(SETTLED))
    }

    /// Cancels when what this gives is dropped.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Cancels when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Counts the work of one compilation.
pub struct Meter<'a> {
    left: Cell<u64>,
    /// Tells when nobody waits any more.
    pub cancel: &'a Cancel,
}

impl<'a> Meter<'a> {
    /// With all steps left.
    pub fn new(cancel: &'a Cancel) -> Meter<'a> {
        Meter { left: Cell::new(MAX_WORK), cancel }
    }

    /// Takes so many steps.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn spend(&self, steps: usize) -> Result<(), Refusal> {
        if self.cancel.is_cancelled() {
            return Err(Refusal::Cancelled);
        }
        let left = self.left.get().checked_sub(steps as u64).ok_or(Refusal::TooLarge(Limit::Work))?;
        self.left.set(left);
        Ok(())
    }
}

/// About what something becomes, in instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions.
    pub code: u64,
    /// The same with wide numbers counted more, as they are where variables are in registers.
    pub speed: u64,
}

impl Cost {
    fn add(&mut self, per_limb: u64, limbs: u64) {
        let code = per_limb * limbs.max(1);
        self.code = self.code.saturating_add(code);
        self.speed = self.speed.saturating_add(code.saturating_mul(1 + limbs / LIMBS_OF_COST));
    }

    /// Both together.
    pub fn and(self, other: Cost) -> Cost {
        Cost { code: self.code.saturating_add(other.code), speed: self.speed.saturating_add(other.speed) }
    }

    /// Of a block of the cfg graph.
    pub fn of_block(program: &Program, block: &CfgBlock) -> Cost {
        let mut cost = Cost::default();
        block.ops.iter().for_each(|op| cost = cost.and(Cost::of_op(program, op)));
        block.term.for_each_expr(&mut |expr| _ = cost.expr(program, expr));
        match &block.term {
            Term::Select { keys, cases, .. } => {
                let wide: u64 = keys.iter().map(|key| width_limbs(key.ty(program))).sum();
                cost.add(3 * (1 + cases.len() as u64), wide);
            }
            Term::Lookup { table, .. } => {
                program.tables[*table].exprs().for_each(|expr| cost.add(4, cost_width(program, expr)));
            }
            Term::Dispatch { actions, .. } => cost.add(2, actions.len() as u64),
            Term::Lookahead { dst, .. } => cost.add(4, slot_limbs(program, *dst)),
            _ => cost.add(1, 1),
        }
        cost
    }

    /// Of an operation.
    pub fn of_op(program: &Program, op: &Op) -> Cost {
        let mut cost = Cost::default();
        match op {
            Op::Inst(inst) => return Cost::of_inst(program, inst),
            Op::Clear(dst) | Op::Argument { dst, .. } => cost.add(2, slot_limbs(program, *dst)),
            Op::Deparse { headers, .. } => headers.iter().for_each(|header| cost.header(program, *header)),
            Op::Emit(header) => cost.header(program, *header),
            Op::SetOut(expr) => _ = cost.expr(program, expr),
            _ => cost.add(4, 1),
        }
        cost
    }

    /// Of an instruction of the IR.
    pub fn of_inst(program: &Program, inst: &Inst) -> Cost {
        let mut cost = Cost::default();
        cost.add(2, 1);
        inst.for_each_expr(&mut |expr| _ = cost.expr(program, expr));
        if let Some(dst) = inst.dst() {
            cost.add(2, slot_limbs(program, dst));
        }
        match inst {
            Inst::SetValid(header) | Inst::SetInvalid(header) => cost.header(program, *header),
            Inst::Hash { data, .. } => data.iter().for_each(|item| match item {
                DataItem::Header(header) => cost.header(program, *header),
                DataItem::Value(_) | DataItem::Payload => cost.add(4, 1),
            }),
            _ => {}
        }
        cost
    }

    /// Of a terminator of the IR.
    pub fn of_terminator(program: &Program, term: &Terminator) -> Cost {
        let mut cost = Cost::default();
        match term {
            Terminator::Branch { cond, .. } => _ = cost.expr(program, cond),
            Terminator::Select { keys, cases, .. } => {
                let wide: u64 = keys.iter().map(|key| cost.expr(program, key)).sum();
                cost.add(3 * (1 + cases.len() as u64), wide);
            }
            _ => {}
        }
        cost
    }

    fn header(&mut self, program: &Program, header: HeaderId) {
        self.add(8, 1);
        program.headers[header].fields.iter().for_each(|field| self.add(3, slot_limbs(program, *field)));
    }

    /// Adds an expression; gives the limbs of its value.
    fn expr(&mut self, program: &Program, expr: &Expr) -> u64 {
        let (per_limb, wide) = match expr {
            Expr::Const(bits) => (1, limbs(bits.width()) as u64),
            Expr::Bool(_) | Expr::IsValid(_) | Expr::PacketLength | Expr::Cursor => (1, 1),
            Expr::Read(slot) => (2, slot_limbs(program, *slot)),
            Expr::Unary(_, a) => (4, self.expr(program, a)),
            Expr::Binary(op, a, b) => {
                let wide = self.expr(program, a).max(self.expr(program, b));
                self.add(8, wide);
                (1, if is_bool(*op) { 1 } else { wide })
            }
            Expr::Mux(cond, a, b) => {
                self.expr(program, cond);
                (1, self.expr(program, a).max(self.expr(program, b)))
            }
            Expr::Slice(a, high, low) => {
                self.expr(program, a);
                (4, limbs(high.saturating_sub(*low).saturating_add(1)) as u64)
            }
            Expr::Concat(a, b) => (5, self.expr(program, a) + self.expr(program, b)),
            Expr::ZeroExtend(a, width) | Expr::SignExtend(a, width) => {
                self.expr(program, a);
                (1, limbs(*width) as u64)
            }
            Expr::BoolToBits(a) => (1, self.expr(program, a)),
        };
        self.add(per_limb, wide);
        wide
    }
}

/// Limbs of a number.
pub fn limbs(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// The bits of a value in keys and action data: a truth value has 1.
pub fn type_width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

/// Whether an operation gives a truth value.
fn is_bool(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Eq | Ne | Lt | LtSigned | Le | LeSigned | BoolAnd | BoolOr)
}

fn cost_width(program: &Program, expr: &Expr) -> u64 {
    width_limbs(expr.ty(program))
}

fn width_limbs(ty: Type) -> u64 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) => limbs(width) as u64,
        // It stays in memory; helpers copy it.
        Type::Varbit(_) => 1,
    }
}

fn slot_limbs(program: &Program, slot: SlotId) -> u64 {
    width_limbs(program.slots[slot].ty)
}
