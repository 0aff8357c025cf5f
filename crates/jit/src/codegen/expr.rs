//! Expressions and conditions.

use super::Gen;
use super::fields::{Base, ones};
use super::values::{Num, Val};
use crate::runtime::{Helper, WideOp};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use millrace_midend::facts::HeaderPlace;
use millrace_midend::limbs;
use millrace_midend::simplify;
use millrace_pipeline::*;

impl Gen<'_> {
    /// The value of an expression.
    pub(super) fn eval(&mut self, expr: &Expr) -> Val {
        let simple = simplify(self.s.program, expr, &self.facts);
        self.expr(&simple)
    }

    /// The value of an expression that is a number.
    pub(super) fn number(&mut self, expr: &Expr) -> Num {
        match self.eval(expr) {
            Val::Bits(num) => num,
            Val::Bool(truth) => {
                let limb = self.b.ins().uextend(types::I64, truth);
                Num::one(1, limb)
            }
            Val::Varbit(_) => Num::constant(Bits::zero(1)),
        }
    }

    fn num(&mut self, expr: &Expr) -> Num {
        match self.expr(expr) {
            Val::Bits(num) => num,
            Val::Bool(truth) => {
                let limb = self.b.ins().uextend(types::I64, truth);
                Num::one(1, limb)
            }
            Val::Varbit(_) => Num::constant(Bits::zero(1)),
        }
    }

    fn truth(&mut self, expr: &Expr) -> Value {
        match self.expr(expr) {
            Val::Bool(truth) => truth,
            Val::Bits(num) => {
                let limb = self.low(&num);
                self.not_zero(limb)
            }
            Val::Varbit(_) => self.b.ins().iconst(types::I8, 0),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Val {
        match expr {
            Expr::Const(bits) => Val::Bits(Num::constant(bits.clone())),
            Expr::Bool(truth) => Val::Bool(self.b.ins().iconst(types::I8, i64::from(*truth))),
            Expr::Read(slot) => self.read(*slot),
            Expr::IsValid(header) => {
                let flag = self.is_valid(*header);
                Val::Bool(self.b.ins().ireduce(types::I8, flag))
            }
            Expr::PacketLength => Val::Bits(Num::one(32, self.get(self.vars.len))),
            Expr::Cursor => {
                let cursor = self.cursor();
                Val::Bits(Num::one(32, cursor))
            }
            Expr::Unary(UnaryOp::Not, a) => {
                let truth = self.truth(a);
                Val::Bool(self.negate(truth))
            }
            Expr::Unary(op, a) => {
                let a = self.num(a);
                let width = a.width;
                let a = self.limbs(&a);
                let result = match op {
                    UnaryOp::Neg => {
                        let zeros = a.iter().map(|_| self.int(0)).collect::<Vec<_>>();
                        self.sub_limbs(&zeros, &a).0
                    }
                    UnaryOp::BitNot | UnaryOp::Not => {
                        a.into_iter().map(|limb| self.b.ins().bnot(limb)).collect()
                    }
                };
                Val::Bits(self.cut(width, result))
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::Mux(cond, a, b) => {
                let cond = self.truth(cond);
                match (self.expr(a), self.expr(b)) {
                    (Val::Bits(a), Val::Bits(b)) => {
                        let width = a.width;
                        let (a, b) = (self.limbs(&a), self.limbs(&b));
                        let pairs = a.into_iter().zip(b);
                        let limbs = pairs.map(|(a, b)| self.b.ins().select(cond, a, b)).collect();
                        Val::Bits(Num::limbs(width, limbs))
                    }
                    (Val::Bool(a), Val::Bool(b)) => Val::Bool(self.b.ins().select(cond, a, b)),
                    (Val::Varbit(a), Val::Varbit(b)) => Val::Varbit(self.b.ins().select(cond, a, b)),
                    (a, _) => a,
                }
            }
            Expr::Slice(a, high, low) => {
                let a = self.num(a);
                let a = self.limbs(&a);
                Val::Bits(self.extract(&a, *low, high - low + 1))
            }
            Expr::Concat(high, low) => {
                let (high, low) = (self.num(high), self.num(low));
                let width = high.width + low.width;
                let (high, below) = (self.limbs(&high), self.limbs(&low));
                let high = self.move_up(&high, low.width, width);
                let mut limbs = self.limbs(&high);
                for (limb, below) in limbs.iter_mut().zip(below) {
                    *limb = self.b.ins().bor(*limb, below);
                }
                Val::Bits(Num::limbs(width, limbs))
            }
            Expr::ZeroExtend(a, width) => {
                let a = self.num(a);
                Val::Bits(self.resize(a, *width))
            }
            Expr::SignExtend(a, width) => {
                let a = self.num(a);
                Val::Bits(self.sign_extend(&a, *width))
            }
            Expr::BoolToBits(a) => {
                let truth = self.truth(a);
                let limb = self.b.ins().uextend(types::I64, truth);
                Val::Bits(Num::one(1, limb))
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Val {
        use BinaryOp::*;
        match op {
            BoolAnd | BoolOr => {
                let (a, b) = (self.truth(a), self.truth(b));
                return Val::Bool(if op == BoolAnd {
                    self.b.ins().band(a, b)
                } else {
                    self.b.ins().bor(a, b)
                });
            }
            Eq | Ne => {
                let (a, b) = (self.expr(a), self.expr(b));
                let equal = self.equal_values(&a, &b);
                return Val::Bool(if op == Eq { equal } else { self.negate(equal) });
            }
            _ => {}
        }
        let (a, b) = (self.num(a), self.num(b));
        match op {
            Lt => return Val::Bool(self.less_than(&a, &b, false)),
            LtSigned => return Val::Bool(self.less_than(&a, &b, true)),
            Le | LeSigned => {
                let greater = self.less_than(&b, &a, op == LeSigned);
                return Val::Bool(self.negate(greater));
            }
            Shl | Shr | ShrSigned => return Val::Bits(self.shift(op, &a, &b)),
            _ => {}
        }
        let width = a.width;
        let (x, y) = (self.limbs(&a), self.limbs(&b));
        let bitwise = |gen_: &mut Self, f: &dyn Fn(&mut Self, Value, Value) -> Value| {
            let pairs: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
            Num::limbs(width, pairs.into_iter().map(|(a, b)| f(gen_, a, b)).collect())
        };
        Val::Bits(match op {
            And => bitwise(self, &|g, a, b| g.b.ins().band(a, b)),
            Or => bitwise(self, &|g, a, b| g.b.ins().bor(a, b)),
            Xor => bitwise(self, &|g, a, b| g.b.ins().bxor(a, b)),
            Add => {
                let sum = self.add_limbs(&x, &y).0;
                self.cut(width, sum)
            }
            Sub if width <= 64 && self.is_at_least(x[0], &b) => {
                let difference = self.b.ins().isub(x[0], y[0]);
                self.widths.insert(difference, width);
                Num::one(width, difference)
            }
            Sub => {
                let difference = self.sub_limbs(&x, &y).0;
                self.cut(width, difference)
            }
            _ if width > 64 => self.wide(WideOp::of(op), &a, &b),
            Mul => {
                let product = self.b.ins().imul(x[0], y[0]);
                self.cut(width, vec![product])
            }
            Div | Mod => {
                let by_zero = self.is_zero(y[0]);
                let one = self.int(1);
                let zero = self.int(0);
                let divisor = self.b.ins().select(by_zero, one, y[0]);
                let result = if op == Div {
                    self.b.ins().udiv(x[0], divisor)
                } else {
                    self.b.ins().urem(x[0], divisor)
                };
                Num::one(width, self.b.ins().select(by_zero, zero, result))
            }
            AddSat | SubSat => Num::one(width, self.saturating(op, x[0], y[0], width)),
            _ => Num::one(width, self.saturating_signed(op, x[0], y[0], width)),
        })
    }

    /// Whether a number is known to be at least a constant.
    fn is_at_least(&self, value: Value, constant: &Num) -> bool {
        let least = self.cache.least.get(&value).copied().unwrap_or(0);
        constant.as_const().and_then(Bits::to_u64).is_some_and(|constant| constant <= least)
    }

    fn saturating(&mut self, op: BinaryOp, a: Value, b: Value, width: u32) -> Value {
        if op == BinaryOp::SubSat {
            let difference = self.b.ins().isub(a, b);
            let under = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let zero = self.int(0);
            return self.b.ins().select(under, zero, difference);
        }
        let sum = self.b.ins().iadd(a, b);
        let most = self.int(ones(width));
        let over = match width {
            64 => self.b.ins().icmp(IntCC::UnsignedLessThan, sum, a),
            _ => self.b.ins().icmp(IntCC::UnsignedGreaterThan, sum, most),
        };
        self.b.ins().select(over, most, sum)
    }

    fn saturating_signed(&mut self, op: BinaryOp, a: Value, b: Value, width: u32) -> Value {
        let (a, b) = (self.signed_top(a, width), self.signed_top(b, width));
        let adds = op == BinaryOp::AddSatSigned;
        let result = if adds { self.b.ins().iadd(a, b) } else { self.b.ins().isub(a, b) };
        let least = self.int((-1i64 << (width - 1)) as u64);
        let most = self.int(ones(width) >> 1);
        let limited = if width == 64 {
            // Over: the operands (of a difference: a and the opposite of b) have one sign, the result another.
            let differ = self.b.ins().bxor(a, result);
            let other = if adds { self.b.ins().bxor(b, result) } else { self.b.ins().bxor(a, b) };
            let both = self.b.ins().band(differ, other);
            let zero = self.int(0);
            let over = self.b.ins().icmp(IntCC::SignedLessThan, both, zero);
            let negative = self.b.ins().icmp(IntCC::SignedLessThan, a, zero);
            let end = self.b.ins().select(negative, least, most);
            self.b.ins().select(over, end, result)
        } else {
            let over = self.b.ins().icmp(IntCC::SignedGreaterThan, result, most);
            let result = self.b.ins().select(over, most, result);
            let under = self.b.ins().icmp(IntCC::SignedLessThan, result, least);
            self.b.ins().select(under, least, result)
        };
        self.and(limited, ones(width))
    }

    fn shift(&mut self, op: BinaryOp, a: &Num, by: &Num) -> Num {
        let width = a.width;
        if let Some(by) = by.as_const() {
            let by = by.to_u64_saturating().min(u64::from(width)) as u32;
            return self.shift_by(op, a, by);
        }
        if width > 64 {
            let amount = self.saturated(by);
            let amount = Num::one(64, amount);
            return self.wide(WideOp::of(op), a, &amount);
        }
        let value = self.low(a);
        let amount = self.saturated(by);
        let most = self.int(u64::from(width));
        let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, amount, most);
        let zero = self.int(0);
        let result = match op {
            BinaryOp::Shl => {
                let moved = self.b.ins().ishl(value, amount);
                self.b.ins().select(beyond, zero, moved)
            }
            BinaryOp::Shr => {
                let moved = self.b.ins().ushr(value, amount);
                self.b.ins().select(beyond, zero, moved)
            }
            _ => {
                let signed = self.signed_top(value, width);
                let last = self.int(63);
                let amount = self.b.ins().select(beyond, last, amount);
                self.b.ins().sshr(signed, amount)
            }
        };
        self.cut(width, vec![result])
    }

    fn shift_by(&mut self, op: BinaryOp, a: &Num, by: u32) -> Num {
        let width = a.width;
        let value = self.limbs(a);
        match op {
            BinaryOp::Shl => self.move_up(&value, by, width),
            BinaryOp::Shr if by >= width => Num::constant(Bits::zero(width)),
            BinaryOp::Shr => {
                let moved = self.extract(&value, by, width - by);
                self.resize(moved, width)
            }
            _ => {
                // The sign goes into as many limbs as the shift looks at, then it is a plain shift.
                let extended = self.sign_extend(a, width + by);
                let value = self.limbs(&extended);
                self.extract(&value, by, width)
            }
        }
    }

    /// An operation on wide numbers, by a helper on memory.
    fn wide(&mut self, op: WideOp, a: &Num, b: &Num) -> Num {
        let width = a.width;
        let first = self.spill_number(0, a);
        let second = self.spill_number(1, b);
        let result = self.buffer(2, 8 * limbs(width) as u32);
        let (op, bits) = (self.int(op as u64), self.int(u64::from(width)));
        self.call(Helper::Wide, &[op, bits, first, second, result]);
        self.fill_number(result, width)
    }

    /// A number in stack memory, as limbs.
    pub(super) fn spill_number(&mut self, buffer: usize, num: &Num) -> Value {
        let limbs = self.limbs(num);
        let address = self.buffer(buffer, 8 * limbs.len() as u32);
        for (at, limb) in limbs.into_iter().enumerate() {
            self.store_word(limb, address, 8 * at as u32);
        }
        address
    }

    /// The reverse of [`Gen::to_memory`]; bits above the width count as 0.
    pub(super) fn fill_number(&mut self, address: Value, width: u32) -> Num {
        let limbs = (0..limbs(width)).map(|at| self.load_word(types::I64, address, 8 * at as u32)).collect();
        self.cut(width, limbs)
    }

    pub(super) fn equal_values(&mut self, a: &Val, b: &Val) -> Value {
        match (a, b) {
            (Val::Bool(a), Val::Bool(b)) => self.b.ins().icmp(IntCC::Equal, *a, *b),
            (Val::Varbit(a), Val::Varbit(b)) => {
                let equal = self.call(Helper::VarbitsEqual, &[*a, *b]);
                self.b.ins().ireduce(types::I8, equal)
            }
            (Val::Bits(a), Val::Bits(b)) => self.equal(a, b),
            _ => self.b.ins().iconst(types::I8, 0),
        }
    }

    /// The branch at the end of a node. All of its parts are looked at one after another, but for comparisons of
    /// neighbouring fields, which are one; what then is known goes with its edges.
    pub(super) fn branch_at_end(&mut self, cond: &Expr, then: Block, els: Block) {
        // All parts must hold, or else any: a part that decides goes away, the others go on.
        let all = !matches!(cond, Expr::Binary(BinaryOp::BoolOr, ..));
        let mut parts = Vec::new();
        split(cond, if all { BinaryOp::BoolAnd } else { BinaryOp::BoolOr }, &mut parts);
        let (decided, at_end) = if all { (els, then) } else { (then, els) };
        let mut least = Vec::new();
        let (on_then, on_els) = evaluates_all(cond);
        let mut parts = parts.as_slice();
        while let Some((part, rest)) = parts.split_first() {
            let as_one = self.neighbours(part, rest, if all { BinaryOp::Eq } else { BinaryOp::Ne });
            parts = &rest[as_one.as_ref().map_or(0, |(_, _, used)| *used)..];
            let next = if parts.is_empty() { at_end } else { self.b.create_block() };
            if let Some((key, value, _)) = as_one {
                let differs = self.compare(&key, &Num::constant(value), IntCC::NotEqual);
                self.b.ins().brif(differs, decided, &[], next, &[]);
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
                let value = self.low(&num);
                least.push((value, bound.saturating_add(1)));
            }
            let (then, els) = if all { (next, decided) } else { (decided, next) };
            self.branch_past(part, then, els, all);
            self.go_on(next, parts);
        }
        if on_then {
            self.remember_on(then, &least);
        }
        if on_els {
            self.remember_on(els, &[]);
        }
    }

    /// Starts the block of the next part of a condition.
    fn go_on(&mut self, next: Block, parts: &[&Expr]) {
        if !parts.is_empty() {
            self.start(next);
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
        let (base, address, bit) = match self.facts.place(header) {
            HeaderPlace::At(at) => (Base::Packet, self.data(), 8 * at + start),
            HeaderPlace::Pointed => (Base::Header(header), self.pointer(header), start),
            _ => return None,
        };
        let width = value.width();
        Some((self.load_bits(base, address, bit, width), value, used))
    }

    /// A field in the packet that is compared with a constant: its header, where it starts there, the constant.
    fn field_compared(&self, part: &Expr, how: BinaryOp) -> Option<(HeaderId, u32, Bits)> {
        let Expr::Binary(op, a, b) = part else { return None };
        if *op != how {
            return None;
        }
        let (Expr::Read(slot), Expr::Const(value)) = (&**a, &**b) else { return None };
        let Home::Header { header, offset } = self.s.program.slots[*slot].home else { return None };
        let in_packet = matches!(self.facts.place(header), HeaderPlace::At(_) | HeaderPlace::Pointed);
        in_packet.then(|| (header, offset, value.clone()))
    }

    /// Goes by a condition, whose parts are looked at one after another.
    pub(super) fn branch(&mut self, cond: &Expr, then: Block, els: Block) {
        match cond {
            Expr::Bool(truth) => {
                self.b.ins().jump(if *truth { then } else { els }, &[]);
            }
            Expr::Unary(UnaryOp::Not, inner) => self.branch(inner, els, then),
            Expr::Binary(op @ (BinaryOp::BoolAnd | BinaryOp::BoolOr), a, b) => {
                let rest = self.b.create_block();
                let both = *op == BinaryOp::BoolAnd;
                let (then_a, els_a) = if both { (rest, els) } else { (then, rest) };
                self.branch_past(a, then_a, els_a, both);
                self.start(rest);
                self.branch(b, then, els);
            }
            Expr::Binary(BinaryOp::Ne, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let equal = self.equal_values(&a, &b);
                self.b.ins().brif(equal, els, &[], then, &[]);
            }
            _ => {
                let truth = self.truth(cond);
                self.b.ins().brif(truth, then, &[], els, &[]);
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
        let known = self.cache.clone();
        self.branch(cond, then, els);
        self.cache = known;
    }

    /// Whether a key is between two constants.
    pub(super) fn between(&mut self, key: &Num, low: &Bits, high: &Bits, signed: bool) -> Value {
        let (low, high) = (Num::constant(low.clone()), Num::constant(high.clone()));
        let below = self.less_than(key, &low, signed);
        let above = self.less_than(&high, key, signed);
        let outside = self.b.ins().bor(below, above);
        self.negate(outside)
    }

    /// Whether a key is equal to a constant under a mask.
    pub(super) fn masked(&mut self, key: &Num, value: &Bits, mask: &Bits) -> Value {
        let limbs = self.limbs(key);
        let cut = limbs.into_iter().zip(mask.limbs()).map(|(limb, mask)| self.and(limb, mask)).collect();
        let key = Num::limbs(key.width, cut);
        self.equal(&key, &Num::constant(value.and(mask)))
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
