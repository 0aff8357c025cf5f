//! Expressions, as values.

use super::env::{Env, slot_width};
use super::{Converter, Step};
use crate::graph::{Binary, Graph, Unary, Wire};
use crate::limits::{MAX_PRODUCT, MAX_QUOTIENT, MAX_VALUE};
use crate::refusal::Construct;
use millrace_pipeline::*;

/// The value of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// A number; a truth value is 1 bit.
    Bits(Wire),
    /// A varbit: its bits, the first one highest and zeros after the last, and its length.
    Varbit(Wire, Wire),
}

impl Converter<'_> {
    /// The value of an expression that is no varbit; of a varbit its bits.
    pub(super) fn bits(&mut self, expr: &Expr, env: &Env) -> Step<Wire> {
        match self.value(expr, env)? {
            Value::Bits(wire) | Value::Varbit(wire, _) => Ok(wire),
        }
    }

    pub(super) fn value(&mut self, expr: &Expr, env: &Env) -> Step<Value> {
        let wire = match expr {
            Expr::Const(bits) => {
                self.check(bits.width())?;
                self.graph.bits(bits.clone())
            }
            Expr::Bool(value) => self.graph.bool(*value),
            Expr::Read(slot) => return self.read(*slot, env),
            Expr::IsValid(header) => env.cells[self.cells.valid(*header)],
            Expr::PacketLength => env.cells[self.cells.length()],
            Expr::Cursor => env.cursor.wire,
            Expr::Unary(op, operand) => {
                let operand = self.bits(operand, env)?;
                match op {
                    UnaryOp::Not | UnaryOp::BitNot => self.graph.not(operand),
                    UnaryOp::Neg => {
                        let zero = self.graph.number(self.graph.width(operand), 0);
                        self.graph.binary(Binary::Sub, zero, operand)
                    }
                }
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.value(left, env)?, self.value(right, env)?);
                self.two(*op, left, right)?
            }
            Expr::Mux(cond, then, els) => {
                let cond = self.bits(cond, env)?;
                return match (self.value(then, env)?, self.value(els, env)?) {
                    (Value::Varbit(a, la), Value::Varbit(b, lb)) => {
                        Ok(Value::Varbit(self.graph.mux(cond, a, b), self.graph.mux(cond, la, lb)))
                    }
                    (Value::Bits(a), Value::Bits(b)) => Ok(Value::Bits(self.graph.mux(cond, a, b))),
                    _ => Err(Construct::Operation("a choice between a varbit and a number")),
                };
            }
            Expr::Slice(operand, high, low) => {
                let operand = self.bits(operand, env)?;
                self.graph.slice(operand, *high, *low)
            }
            Expr::Concat(high, low) => {
                let (high, low) = (self.bits(high, env)?, self.bits(low, env)?);
                self.check(self.graph.width(high).saturating_add(self.graph.width(low)))?;
                self.graph.concat(high, low)
            }
            Expr::ZeroExtend(operand, width) => {
                self.check(*width)?;
                let operand = self.bits(operand, env)?;
                self.graph.zero_extend(operand, *width)
            }
            Expr::SignExtend(operand, width) => {
                self.check(*width)?;
                let operand = self.bits(operand, env)?;
                self.graph.sign_extend(operand, *width)
            }
            Expr::BoolToBits(operand) => self.bits(operand, env)?,
        };
        Ok(Value::Bits(wire))
    }

    fn check(&self, width: u32) -> Step<()> {
        if width > MAX_VALUE { Err(Construct::Width(width)) } else { Ok(()) }
    }

    /// The value of a slot. Fields of invalid headers are kept as 0, so nothing is to be decided here.
    pub(super) fn read(&mut self, slot: SlotId, env: &Env) -> Step<Value> {
        let ty = self.program.slots[slot].ty;
        self.check(slot_width(ty))?;
        let place = self.cells.slot(slot);
        Ok(match ty {
            Type::Varbit(_) => Value::Varbit(env.cells[place], env.cells[place + 1]),
            Type::Bool | Type::Bits(_) => Value::Bits(env.cells[place]),
        })
    }

    /// Writes a slot; of a field of an invalid header the write is lost.
    pub(super) fn write(&mut self, slot: SlotId, value: Value, env: &mut Env) -> Step<()> {
        let described = &self.program.slots[slot];
        self.check(slot_width(described.ty))?;
        let (place, width) = (self.cells.slot(slot), slot_width(described.ty));
        let there = match described.home {
            Home::Header { header, .. } => env.cells[self.cells.valid(header)],
            Home::Metadata | Home::Local => self.graph.bool(true),
        };
        let zero = self.graph.number(width, 0);
        let none = self.graph.number(32, 0);
        match (described.ty, value) {
            (Type::Varbit(_), Value::Varbit(bits, length)) => {
                env.cells[place] = self.graph.mux(there, bits, zero);
                env.cells[place + 1] = self.graph.mux(there, length, none);
            }
            (Type::Bool, Value::Bits(bits)) => {
                let bit = self.graph.any(bits);
                env.cells[place] = self.graph.mux(there, bit, zero);
            }
            (Type::Bits(width), Value::Bits(bits)) => {
                let bits = self.graph.zero_extend(bits, width);
                env.cells[place] = self.graph.mux(there, bits, zero);
            }
            _ => return Err(Construct::Operation("a varbit and a number as one value")),
        }
        Ok(())
    }

    fn two(&mut self, op: BinaryOp, left: Value, right: Value) -> Step<Wire> {
        if let (Value::Varbit(a, la), Value::Varbit(b, lb)) = (left, right) {
            let (same, long) = (self.graph.eq(a, b), self.graph.eq(la, lb));
            let equal = self.graph.and(same, long);
            return match op {
                BinaryOp::Eq => Ok(equal),
                BinaryOp::Ne => Ok(self.graph.not(equal)),
                _ => Err(Construct::Operation("arithmetic with a varbit")),
            };
        }
        let (Value::Bits(a), Value::Bits(b)) = (left, right) else {
            return Err(Construct::Operation("a varbit and a number as one value"));
        };
        let g = &mut self.graph;
        let width = g.width(a);
        Ok(match op {
            BinaryOp::Add => g.add(a, b),
            BinaryOp::Sub => g.binary(Binary::Sub, a, b),
            BinaryOp::Mul => self.multiply(a, b)?,
            BinaryOp::Div => self.divide(a, b)?.0,
            BinaryOp::Mod => self.divide(a, b)?.1,
            BinaryOp::AddSat => {
                let (wide, other) = (g.zero_extend(a, width + 1), g.zero_extend(b, width + 1));
                let sum = g.add(wide, other);
                let (over, sum) = (g.slice(sum, width, width), g.slice(sum, width - 1, 0));
                let ones = g.bits(Bits::ones(width));
                g.mux(over, ones, sum)
            }
            BinaryOp::SubSat => {
                let (under, difference) = (g.lt(a, b), g.binary(Binary::Sub, a, b));
                let zero = g.number(width, 0);
                g.mux(under, zero, difference)
            }
            BinaryOp::AddSatSigned => self.saturate(Binary::Add, a, b),
            BinaryOp::SubSatSigned => self.saturate(Binary::Sub, a, b),
            BinaryOp::And | BinaryOp::BoolAnd => g.and(a, b),
            BinaryOp::Or | BinaryOp::BoolOr => g.or(a, b),
            BinaryOp::Xor => g.binary(Binary::Xor, a, b),
            BinaryOp::Shl => g.binary(Binary::Shl, a, b),
            BinaryOp::Shr => g.binary(Binary::Shr, a, b),
            BinaryOp::ShrSigned => g.binary(Binary::ShrSigned, a, b),
            BinaryOp::Eq => g.eq(a, b),
            BinaryOp::Ne => {
                let same = g.eq(a, b);
                g.not(same)
            }
            BinaryOp::Lt => g.lt(a, b),
            BinaryOp::Le => {
                let more = g.lt(b, a);
                g.not(more)
            }
            BinaryOp::LtSigned => g.binary(Binary::LtSigned, a, b),
            BinaryOp::LeSigned => {
                let more = g.binary(Binary::LtSigned, b, a);
                g.not(more)
            }
        })
    }

    /// A signed sum or difference that stays at the ends of the range: it leaves the range when the sign of the result is not that of
    /// the first operand, and for a sum the operands have one sign, for a difference two.
    fn saturate(&mut self, op: Binary, a: Wire, b: Wire) -> Wire {
        let g = &mut self.graph;
        let width = g.width(a);
        let result = g.binary(op, a, b);
        let sign = |g: &mut crate::graph::Graph, of| g.slice(of, width - 1, width - 1);
        let (first, second, third) = (sign(g, a), sign(g, b), sign(g, result));
        let differ = g.binary(Binary::Xor, first, second);
        let may = match op {
            Binary::Add => g.not(differ),
            _ => differ,
        };
        let turned = g.binary(Binary::Xor, first, third);
        let over = g.and(may, turned);
        let (lowest, highest) = (g.bits(Bits::min_signed(width)), g.bits(Bits::max_signed(width)));
        let end = g.mux(first, lowest, highest);
        g.mux(over, end, result)
    }

    /// A product. A wide one is the sum of products of its parts, such that each fits a few multipliers and one cycle.
    fn multiply(&mut self, a: Wire, b: Wire) -> Step<Wire> {
        /// The bits of a part.
        const PART: u32 = 32;
        let g = &mut self.graph;
        let width = g.width(a);
        let is_power = |wire: Wire, g: &Graph| {
            g.constant(wire).is_some_and(|bits| (0..width).filter(|bit| bits.bit(*bit)).count() <= 1)
        };
        if width <= 2 * PART || is_power(a, g) || is_power(b, g) {
            return Ok(g.binary(Binary::Mul, a, b));
        }
        if width > MAX_PRODUCT {
            return Err(Construct::Product(width));
        }
        let parts = |g: &mut Graph, of: Wire| -> Vec<Wire> {
            let part = |low: u32| g.slice(of, (low + PART).min(width) - 1, low);
            (0..width).step_by(PART as usize).map(part).collect()
        };
        let (left, right) = (parts(g, a), parts(g, b));
        let mut terms = Vec::new();
        for (at, x) in left.iter().enumerate() {
            for (other, y) in right.iter().enumerate().take(left.len() - at) {
                let low = (at + other) as u32 * PART;
                let bits = (2 * PART).min(width - low);
                let (x, y) = (g.zero_extend(*x, bits), g.zero_extend(*y, bits));
                let product = g.binary(Binary::Mul, x, y);
                let zeros = g.number(low.max(1), 0);
                let placed = if low == 0 { product } else { g.concat(product, zeros) };
                terms.push(g.zero_extend(placed, width));
            }
        }
        Ok(g.sum(terms).unwrap_or(a))
    }

    /// Quotient and remainder, both 0 for a divisor of 0. By a power of 2 they are wiring; else a bit of the quotient follows from
    /// comparing what is left with the divisor, from the highest on.
    fn divide(&mut self, a: Wire, b: Wire) -> Step<(Wire, Wire)> {
        let g = &mut self.graph;
        let width = g.width(a);
        let zero = g.number(width, 0);
        if let Some(divisor) = g.constant(b).cloned() {
            if divisor.is_zero() {
                return Ok((zero, zero));
            }
            let ones: Vec<u32> = (0..width).filter(|bit| divisor.bit(*bit)).collect();
            if let [bit] = ones.as_slice() {
                let by = g.number(32, u64::from(*bit));
                let quotient = g.binary(Binary::Shr, a, by);
                let one = Bits::new(width, 1);
                let mask = g.bits(divisor.sub(&one));
                return Ok((quotient, g.and(a, mask)));
            }
        }
        if let (Some(x), Some(y)) = (g.constant(a).cloned(), g.constant(b).cloned()) {
            return Ok((g.bits(x.div(&y)), g.bits(x.rem(&y))));
        }
        if width > MAX_QUOTIENT {
            return Err(Construct::Quotient(width));
        }
        // What is left is less than the divisor, so it is as narrow as a constant one.
        let ones = g.constant(b).map(|bits| (0..width).rev().find(|bit| bits.bit(*bit)).unwrap_or(0) + 1);
        let narrow = ones.unwrap_or(width);
        let divisor = g.zero_extend(b, narrow + 1);
        let mut rest = g.number(narrow + 1, 0);
        let mut quotient: Option<Wire> = None;
        for bit in (0..width).rev() {
            let (kept, next) = (g.slice(rest, narrow - 1, 0), g.slice(a, bit, bit));
            let shifted = g.concat(kept, next);
            let less = g.lt(shifted, divisor);
            let difference = g.binary(Binary::Sub, shifted, divisor);
            rest = g.mux(less, shifted, difference);
            let fits = g.not(less);
            quotient = Some(quotient.map_or(fits, |high| g.concat(high, fits)));
        }
        let (quotient, rest) = (quotient.unwrap_or(zero), g.zero_extend(rest, width));
        let by_zero = g.eq(b, zero);
        Ok((g.mux(by_zero, zero, quotient), g.mux(by_zero, zero, rest)))
    }

    /// Whether a value is matched by a matcher of one key.
    pub(super) fn matched(&mut self, matcher: &Matcher, key: Wire) -> Step<Wire> {
        let g = &mut self.graph;
        let width = g.width(key);
        let fits = |bits: &Bits| bits.width() == width;
        Ok(match matcher {
            Matcher::Any => g.bool(true),
            Matcher::Value(value) if fits(value) => {
                let value = g.bits(value.clone());
                g.eq(key, value)
            }
            Matcher::Mask(value, mask) if fits(mask) => {
                let (masked, value) = (g.bits(mask.clone()), g.bits(value.and(mask)));
                let key = g.and(key, masked);
                g.eq(key, value)
            }
            Matcher::Range(low, high) | Matcher::RangeSigned(low, high) if fits(low) && fits(high) => {
                let op = match matcher {
                    Matcher::Range(..) => Binary::Lt,
                    _ => Binary::LtSigned,
                };
                let (low, high) = (g.bits(low.clone()), g.bits(high.clone()));
                let (under, over) = (g.binary(op, key, low), g.binary(op, high, key));
                let outside = g.or(under, over);
                g.not(outside)
            }
            _ => return Err(Construct::Operation("a matcher of another width than its key")),
        })
    }

    /// A number for an object: its bits.
    pub(super) fn number(&mut self, expr: &Expr, env: &Env) -> Step<(Wire, Type)> {
        let wire = self.bits(expr, env)?;
        Ok((wire, Type::Bits(self.graph.width(wire))))
    }

    /// A value for a message: a varbit with its length.
    pub(super) fn told(&mut self, expr: &Expr, env: &Env) -> Step<(Wire, Type)> {
        let ty = expr.ty(self.program);
        Ok(match self.value(expr, env)? {
            Value::Bits(wire) => (wire, ty),
            Value::Varbit(bits, length) => (self.graph.concat(length, bits), ty),
        })
    }

    /// The bits of a value are any: an or of all of them.
    pub(super) fn truth(&mut self, wire: Wire) -> Wire {
        self.graph.unary(Unary::Any, wire)
    }
}
