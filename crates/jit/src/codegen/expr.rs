//! Expressions and conditions.

use super::emitter::Emitter;
use super::fields::Base;
use super::ops::Operations;
use super::values::{Num, Val};
use super::variables::PacketVar;
use crate::runtime::{Helper, WideOp};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use millrace_midend::facts::HeaderPlace;
use millrace_midend::simplify;
use millrace_pipeline::*;

impl Operations<'_> {
    /// The value of an expression.
    pub(super) fn eval(&mut self, expr: &Expr) -> Val {
        let simple = simplify(self.slots.program, expr, &self.slots.facts);
        self.expr(&simple)
    }

    /// The value of an expression that is a number.
    pub(super) fn number(&mut self, expr: &Expr) -> Num {
        let val = self.eval(expr);
        self.e().bits_of(val)
    }

    fn num(&mut self, expr: &Expr) -> Num {
        let val = self.expr(expr);
        self.e().bits_of(val)
    }

    fn truth(&mut self, expr: &Expr) -> Value {
        match self.expr(expr) {
            Val::Bool(truth) => truth,
            Val::Bits(num) => {
                let limb = self.e().low(&num);
                self.e().not_zero(limb)
            }
            Val::Varbit(_) => self.ins().iconst(types::I8, 0),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Val {
        match expr {
            Expr::Const(bits) => Val::Bits(Num::constant(bits.clone())),
            Expr::Bool(truth) => Val::Bool(self.ins().iconst(types::I8, i64::from(*truth))),
            Expr::Read(slot) => self.slots.read(*slot),
            Expr::IsValid(header) => {
                let flag = self.slots.is_valid(*header);
                Val::Bool(self.ins().ireduce(types::I8, flag))
            }
            Expr::PacketLength => Val::Bits(Num::one(32, self.packet().get(PacketVar::Len))),
            Expr::Cursor => {
                let cursor = self.slots.cursor();
                Val::Bits(Num::one(32, cursor))
            }
            Expr::Unary(UnaryOp::Not, a) => {
                let truth = self.truth(a);
                Val::Bool(self.e().negate(truth))
            }
            Expr::Unary(op, a) => {
                let a = self.num(a);
                let width = a.width;
                let a = self.e().limbs(&a);
                let result = match op {
                    UnaryOp::Neg => {
                        let zeros = a.iter().map(|_| self.e().int(0)).collect::<Vec<_>>();
                        self.e().sub_limbs(&zeros, &a).0
                    }
                    UnaryOp::BitNot | UnaryOp::Not => {
                        a.into_iter().map(|limb| self.ins().bnot(limb)).collect()
                    }
                };
                Val::Bits(self.e().cut(width, result))
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::Mux(cond, a, b) => {
                let cond = self.truth(cond);
                match (self.expr(a), self.expr(b)) {
                    (Val::Bits(a), Val::Bits(b)) => {
                        let width = a.width;
                        let (a, b) = (self.e().limbs(&a), self.e().limbs(&b));
                        let pairs = a.into_iter().zip(b);
                        let limbs = pairs.map(|(a, b)| self.ins().select(cond, a, b)).collect();
                        Val::Bits(Num::limbs(width, limbs))
                    }
                    (Val::Bool(a), Val::Bool(b)) => Val::Bool(self.ins().select(cond, a, b)),
                    (Val::Varbit(a), Val::Varbit(b)) => Val::Varbit(self.ins().select(cond, a, b)),
                    (a, _) => a,
                }
            }
            Expr::Slice(a, high, low) => {
                let a = self.num(a);
                let a = self.e().limbs(&a);
                Val::Bits(self.e().extract(&a, *low, high - low + 1))
            }
            Expr::Concat(high, low) => {
                let (high, low) = (self.num(high), self.num(low));
                let width = high.width + low.width;
                let (high, below) = (self.e().limbs(&high), self.e().limbs(&low));
                let high = self.e().move_up(&high, low.width, width);
                let mut limbs = self.e().limbs(&high);
                for (limb, below) in limbs.iter_mut().zip(below) {
                    *limb = self.ins().bor(*limb, below);
                }
                Val::Bits(Num::limbs(width, limbs))
            }
            Expr::ZeroExtend(a, width) => {
                let a = self.num(a);
                Val::Bits(self.e().resize(a, *width))
            }
            Expr::SignExtend(a, width) => {
                let a = self.num(a);
                Val::Bits(self.e().sign_extend(&a, *width))
            }
            Expr::BoolToBits(a) => {
                let truth = self.truth(a);
                let limb = self.ins().uextend(types::I64, truth);
                Val::Bits(Num::one(1, limb))
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Val {
        use BinaryOp::*;
        match op {
            BoolAnd | BoolOr => {
                let (a, b) = (self.truth(a), self.truth(b));
                return Val::Bool(if op == BoolAnd { self.ins().band(a, b) } else { self.ins().bor(a, b) });
            }
            Eq | Ne => {
                let (a, b) = (self.expr(a), self.expr(b));
                let equal = self.e().equal_values(&a, &b);
                return Val::Bool(if op == Eq { equal } else { self.e().negate(equal) });
            }
            _ => {}
        }
        let (a, b) = (self.num(a), self.num(b));
        match op {
            Lt => return Val::Bool(self.e().less_than(&a, &b, false)),
            LtSigned => return Val::Bool(self.e().less_than(&a, &b, true)),
            Le | LeSigned => {
                let greater = self.e().less_than(&b, &a, op == LeSigned);
                return Val::Bool(self.e().negate(greater));
            }
            Shl | Shr | ShrSigned => return Val::Bits(self.e().shift(op, &a, &b)),
            _ => {}
        }
        let width = a.width;
        let (x, y) = (self.e().limbs(&a), self.e().limbs(&b));
        let bitwise = |e: &mut Emitter<'_>, f: fn(&mut Emitter<'_>, Value, Value) -> Value| {
            Num::limbs(width, x.iter().zip(&y).map(|(a, b)| f(e, *a, *b)).collect())
        };
        Val::Bits(match op {
            And => bitwise(self.e(), |e, a, b| e.ins().band(a, b)),
            Or => bitwise(self.e(), |e, a, b| e.ins().bor(a, b)),
            Xor => bitwise(self.e(), |e, a, b| e.ins().bxor(a, b)),
            Add => {
                let sum = self.e().add_limbs(&x, &y).0;
                self.e().cut(width, sum)
            }
            Sub if width <= 64 && self.slots.packet.cache.is_at_least(x[0], &b) => {
                let difference = self.ins().isub(x[0], y[0]);
                self.e().widths.insert(difference, width);
                Num::one(width, difference)
            }
            Sub => {
                let difference = self.e().sub_limbs(&x, &y).0;
                self.e().cut(width, difference)
            }
            _ if width > 64 => self.e().wide(WideOp::of(op), &a, &b),
            Mul => {
                let product = self.ins().imul(x[0], y[0]);
                self.e().cut(width, vec![product])
            }
            Div | Mod => {
                let by_zero = self.e().is_zero(y[0]);
                let one = self.e().int(1);
                let zero = self.e().int(0);
                let divisor = self.ins().select(by_zero, one, y[0]);
                let result =
                    if op == Div { self.ins().udiv(x[0], divisor) } else { self.ins().urem(x[0], divisor) };
                Num::one(width, self.ins().select(by_zero, zero, result))
            }
            AddSat | SubSat => Num::one(width, self.e().saturating(op, x[0], y[0], width)),
            _ => Num::one(width, self.e().saturating_signed(op, x[0], y[0], width)),
        })
    }

    /// The branch at the end of a node. All of its parts are looked at one after another, but for comparisons of
    /// neighbouring fields, which are one. Gives what numbers are at least where it goes to `then`.
    pub(super) fn branch_at_end(&mut self, cond: &Expr, then: Block, els: Block) -> Vec<(Value, u64)> {
        // All parts must hold, or else any: a part that decides goes away, the others go on.
        let all = !matches!(cond, Expr::Binary(BinaryOp::BoolOr, ..));
        let mut parts = Vec::new();
        split(cond, if all { BinaryOp::BoolAnd } else { BinaryOp::BoolOr }, &mut parts);
        let (decided, at_end) = if all { (els, then) } else { (then, els) };
        let mut least = Vec::new();
        let mut parts = parts.as_slice();
        while let Some((part, rest)) = parts.split_first() {
            let as_one = self.neighbours(part, rest, if all { BinaryOp::Eq } else { BinaryOp::Ne });
            parts = &rest[as_one.as_ref().map_or(0, |(_, _, used)| *used)..];
            let next = if parts.is_empty() { at_end } else { self.e().new_block() };
            if let Some((key, value, _)) = as_one {
                let differs = self.e().compare(&key, &Num::constant(value), IntCC::NotEqual);
                self.ins().brif(differs, decided, &[], next, &[]);
                self.go_on(next, parts);
                continue;
            }
            if all
                && let Expr::Binary(BinaryOp::Lt, a, b) = part
                && let Expr::Const(bound) = &**a
                && let Some(bound) = bound.to_u64()
                && let Val::Bits(num) = self.expr(b)
                && num.width <= 64
            {
                let value = self.e().low(&num);
                least.push((value, bound.saturating_add(1)));
            }
            let (then, els) = if all { (next, decided) } else { (decided, next) };
            self.branch_past(part, then, els, all);
            self.go_on(next, parts);
        }
        least
    }

    /// Starts the block of the next part of a condition.
    fn go_on(&mut self, next: Block, parts: &[&Expr]) {
        if !parts.is_empty() {
            self.e().start(next);
        }
    }

    /// The comparison (for being equal, or not) of a field in the packet with a constant, and of the fields after it
    /// that the next parts compare, as one: the bits, the constant, and how many of the next parts that is.
    fn neighbours(&mut self, part: &Expr, rest: &[&Expr], how: BinaryOp) -> Option<(Num, Bits, usize)> {
        let (header, start, mut value) = self.field_compared(part, how)?;
        let mut used = 0;
        for next in rest {
            match self.field_compared(next, how) {
                Some((of, at, more)) if of == header && at == start + value.width() => {
                    value = value.concat(&more);
                    used += 1;
                }
                _ => break,
            }
        }
        let fits = used > 0 && start.is_multiple_of(8) && matches!(value.width(), 8 | 16 | 32 | 64);
        if !fits {
            return None;
        }
        let (base, address, bit) = match self.slots.facts.place(header) {
            HeaderPlace::At(at) => (Base::Packet, self.packet().data(), 8 * at + start),
            HeaderPlace::Pointed => (Base::Header(header), self.slots.pointer(header), start),
            _ => return None,
        };
        let width = value.width();
        Some((self.packet().load_bits(base, address, bit, width), value, used))
    }

    /// A field in the packet that is compared with a constant: its header, where it starts there, the constant.
    fn field_compared(&self, part: &Expr, how: BinaryOp) -> Option<(HeaderId, u32, Bits)> {
        let Expr::Binary(op, a, b) = part else { return None };
        if *op != how {
            return None;
        }
        let (Expr::Read(slot), Expr::Const(value)) = (&**a, &**b) else { return None };
        let Home::Header { header, offset } = self.slots.program.slots[*slot].home else { return None };
        let in_packet = matches!(self.slots.facts.place(header), HeaderPlace::At(_) | HeaderPlace::Pointed);
        in_packet.then(|| (header, offset, value.clone()))
    }

    /// Goes by a condition, whose parts are looked at one after another.
    fn branch(&mut self, cond: &Expr, then: Block, els: Block) {
        match cond {
            Expr::Bool(truth) => {
                self.ins().jump(if *truth { then } else { els }, &[]);
            }
            Expr::Unary(UnaryOp::Not, inner) => self.branch(inner, els, then),
            Expr::Binary(op @ (BinaryOp::BoolAnd | BinaryOp::BoolOr), a, b) => {
                let rest = self.e().new_block();
                let both = *op == BinaryOp::BoolAnd;
                let (then_a, els_a) = if both { (rest, els) } else { (then, rest) };
                self.branch_past(a, then_a, els_a, both);
                self.e().start(rest);
                self.branch(b, then, els);
            }
            Expr::Binary(BinaryOp::Ne, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let equal = self.e().equal_values(&a, &b);
                self.ins().brif(equal, els, &[], then, &[]);
            }
            _ => {
                let truth = self.truth(cond);
                self.ins().brif(truth, then, &[], els, &[]);
            }
        }
    }

    /// Goes by a condition, of which code goes on where it holds, or where it does not. What only some paths to it have
    /// read is not known there.
    fn branch_past(&mut self, cond: &Expr, then: Block, els: Block, holds: bool) {
        let (on_then, on_els) = evaluates_all(cond);
        if if holds { on_then } else { on_els } {
            return self.branch(cond, then, els);
        }
        let known = self.packet().cache.clone();
        self.branch(cond, then, els);
        self.packet().cache = known;
    }

    /// Whether keys match; none: always.
    pub(super) fn matches(&mut self, matcher: &Matcher, keys: &[Num]) -> Option<Value> {
        let Some(key) = keys.first() else {
            return match matcher {
                Matcher::Any => None,
                _ => Some(self.ins().iconst(types::I8, 0)),
            };
        };
        match matcher {
            Matcher::Any => None,
            Matcher::Value(value) => Some(self.e().equal(key, &Num::constant(value.clone()))),
            Matcher::Mask(value, mask) => Some(self.e().masked(key, value, mask)),
            Matcher::Range(low, high) => Some(self.e().between(key, low, high, false)),
            Matcher::RangeSigned(low, high) => Some(self.e().between(key, low, high, true)),
            Matcher::ValueSet(set) => {
                let host = self.packet().host();
                let id = self.e().int(u64::from(set.as_u32()));
                let all = self.e().numbers_in_memory(0, keys);
                let member = self.e().call(Helper::ValueSet, &[host, id, all]);
                Some(self.ins().ireduce(types::I8, member))
            }
        }
    }
}

/// The parts of a chain of one operator.
fn split<'e>(cond: &'e Expr, by: BinaryOp, parts: &mut Vec<&'e Expr>) {
    match cond {
        Expr::Binary(op, a, b) if *op == by => {
            split(a, by, parts);
            split(b, by, parts);
        }
        part => parts.push(part),
    }
}

/// Whether all parts of a condition were looked at when it holds, and when it does not.
pub(super) fn evaluates_all(cond: &Expr) -> (bool, bool) {
    match cond {
        Expr::Unary(UnaryOp::Not, inner) => {
            let (holds, fails) = evaluates_all(inner);
            (fails, holds)
        }
        Expr::Binary(BinaryOp::BoolAnd, a, b) => (evaluates_all(a).0 && evaluates_all(b).0, false),
        Expr::Binary(BinaryOp::BoolOr, a, b) => (false, evaluates_all(a).1 && evaluates_all(b).1),
        _ => (true, true),
    }
}
