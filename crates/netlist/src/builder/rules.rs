//! The operations with their rules: what is known without a circuit, or with a smaller one, becomes that.
//!
//! Each rule replaces an operation by nodes that have the same value for all operands; the comment says why where it is not
//! plain. A rule looks at an operand and its operands, no further, so that it takes constant time.

use super::ModuleBuilder;
use crate::{BinaryOp, Bits, NodeId, Op, UnaryOp, limits};

/// How many parts a concatenation may have that takes the parts of those inside it. Else a chain of concatenations, each of
/// the last and one part more, would take quadratic room.
const FLATTENED_PARTS: usize = 64;
/// How deep a slice looks into concatenations of concatenations.
const SLICE_DEPTH: usize = 16;

/// The widest amount of a shift by a value: Verilator takes no more than 32 bits, and no value has 2^16 bits.
const WIDEST_AMOUNT: u32 = 16;

impl ModuleBuilder {
    /// A constant.
    pub fn constant(&mut self, value: Bits) -> NodeId {
        let width = value.width();
        self.node(Op::Constant(Box::new(value)), width)
    }

    /// A constant of a width, cut to it.
    pub fn number(&mut self, width: u32, value: u128) -> NodeId {
        self.constant(Bits::new(width.max(1), value))
    }

    /// The constant that a value is, if it is one.
    pub fn as_constant(&self, node: NodeId) -> Option<&Bits> {
        match &self.module.nodes[node].op {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn op(&self, node: NodeId) -> &Op {
        &self.module.nodes[node].op
    }

    fn zero(&mut self, width: u32) -> NodeId {
        self.constant(Bits::zero(width))
    }

    fn is_not(&self, node: NodeId) -> Option<NodeId> {
        match self.op(node) {
            Op::Unary(UnaryOp::Not, inner) => Some(*inner),
            _ => None,
        }
    }

    /// Whether one is the complement of the other.
    fn are_complements(&self, a: NodeId, b: NodeId) -> bool {
        self.is_not(a) == Some(b) || self.is_not(b) == Some(a)
    }

    /// An operation on one value.
    pub fn unary(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        if let Some(value) = self.as_constant(a) {
            let value = op.evaluate(value);
            return self.constant(value);
        }
        let width = self.width(a);
        if op == UnaryOp::Not {
            return self.is_not(a).unwrap_or_else(|| self.node(Op::Unary(op, a), width));
        }
        if width == 1 {
            return a;
        }
        match self.op(a) {
            Op::Repeat(bit) if op != UnaryOp::ReduceXor => *bit,
            Op::Concat(parts) if parts.len() == 2 && op != UnaryOp::ReduceAnd => {
                let (high, low) = (parts[0], parts[1]);
                // Zeros make no difference to "any" and "odd".
                match (self.as_constant(high), self.as_constant(low)) {
                    (Some(zeros), _) if zeros.is_zero() => self.unary(op, low),
                    (_, Some(zeros)) if zeros.is_zero() => self.unary(op, high),
                    _ => self.node(Op::Unary(op, a), 1),
                }
            }
            _ => self.node(Op::Unary(op, a), 1),
        }
    }

    /// An operation on two values.
    #[track_caller]
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        let width = self.width(a);
        let result = if op.is_comparison() { 1 } else { width };
        if !op.is_shift() && width != self.width(b) {
            debug_assert_eq!(width, self.width(b), "operands of {op:?}");
            return self.node(Op::Binary(op, a, b), result);
        }
        if let (Some(x), Some(y)) = (self.as_constant(a), self.as_constant(b)) {
            let value = op.evaluate(x, y);
            return self.constant(value);
        }
        // The constant of an operation whose order makes no difference comes second, else the older value comes first.
        let swap = op.is_commutative()
            && (self.as_constant(a).is_some() || (self.as_constant(b).is_none() && b < a));
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let simpler = match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => self.bitwise(op, a, b),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => self.arithmetic(op, a, b),
            BinaryOp::Eq => self.equality(a, b),
            BinaryOp::Lt => self.less(a, b),
            BinaryOp::LtSigned => self.less_signed(a, b),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => self.shift(op, a, b),
        };
        simpler.unwrap_or_else(|| self.node(Op::Binary(op, a, b), result))
    }

    fn bitwise(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let width = self.width(a);
        if a == b {
            return Some(if op == BinaryOp::Xor { self.zero(width) } else { a });
        }
        if self.are_complements(a, b) {
            let all = if op == BinaryOp::And { Bits::zero(width) } else { Bits::ones(width) };
            return Some(self.constant(all));
        }
        let (zeros, ones) = self.as_constant(b).map(|b| (b.is_zero(), b.is_ones())).unwrap_or_default();
        match op {
            BinaryOp::And if zeros => return Some(b),
            BinaryOp::And if ones => return Some(a),
            BinaryOp::Or if zeros => return Some(a),
            BinaryOp::Or if ones => return Some(b),
            BinaryOp::Xor if zeros => return Some(a),
            BinaryOp::Xor if ones => return Some(self.not(a)),
            _ => (),
        }
        // `a & (a & c)` is `a & c`, and so is `a | (a | c)`; `a & (a | c)` is `a`, and so is `a | (a & c)`.
        for (outer, inner) in [(a, b), (b, a)] {
            if let Op::Binary(inner_op, x, y) = self.op(inner)
                && (*x == outer || *y == outer)
            {
                match (op, *inner_op) {
                    (BinaryOp::And, BinaryOp::And) | (BinaryOp::Or, BinaryOp::Or) => return Some(inner),
                    (BinaryOp::And, BinaryOp::Or) | (BinaryOp::Or, BinaryOp::And) => return Some(outer),
                    _ => (),
                }
            }
        }
        None
    }

    fn arithmetic(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Option<NodeId> {
        let width = self.width(a);
        if width == 1 {
            // Modulo 2, sum and difference are "not equal".
            let bitwise = if op == BinaryOp::Mul { BinaryOp::And } else { BinaryOp::Xor };
            return Some(self.binary(bitwise, a, b));
        }
        if op == BinaryOp::Sub && a == b {
            return Some(self.zero(width));
        }
        let constant = self.as_constant(b)?.clone();
        match op {
            BinaryOp::Add | BinaryOp::Sub if constant.is_zero() => Some(a),
            BinaryOp::Add => match self.op(a) {
                // A sum of two constants and a value is one of a constant and the value.
                Op::Binary(BinaryOp::Add, x, y) if self.as_constant(*y).is_some() => {
                    let (x, sum) = (*x, self.as_constant(*y)?.add(&constant));
                    let sum = self.constant(sum);
                    Some(self.binary(BinaryOp::Add, x, sum))
                }
                _ => None,
            },
            BinaryOp::Mul if constant.is_zero() => Some(b),
            BinaryOp::Mul => {
                let ones: u32 = constant.limbs().map(u64::count_ones).sum();
                let lowest = (0..width).find(|bit| constant.bit(*bit))?;
                (ones == 1).then(|| self.shl_by(a, lowest))
            }
            _ => None,
        }
    }

    fn equality(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        if a == b {
            return Some(self.number(1, 1));
        }
        if self.are_complements(a, b) {
            return Some(self.zero(1));
        }
        let constant = self.as_constant(b)?.clone();
        if self.width(a) == 1 {
            return Some(if constant.is_zero() { self.not(a) } else { a });
        }
        match self.op(a) {
            // A constant part is equal or not; the other part decides.
            Op::Concat(parts) if parts.len() == 2 => {
                let (high, low) = (parts[0], parts[1]);
                let split = self.width(low);
                let (high_bits, low_bits) =
                    (constant.slice(constant.width() - 1, split), constant.slice(split - 1, 0));
                let (part, rest, rest_bits) = match (self.as_constant(high), self.as_constant(low)) {
                    (Some(part), _) => (*part == high_bits, low, low_bits),
                    (_, Some(part)) => (*part == low_bits, high, high_bits),
                    _ => return None,
                };
                if !part {
                    return Some(self.zero(1));
                }
                let rest_bits = self.constant(rest_bits);
                Some(self.binary(BinaryOp::Eq, rest, rest_bits))
            }
            Op::Repeat(bit) => {
                let bit = *bit;
                match (constant.is_zero(), constant.is_ones()) {
                    (true, _) => Some(self.not(bit)),
                    (_, true) => Some(bit),
                    _ => Some(self.zero(1)),
                }
            }
            Op::Unary(UnaryOp::Not, inner) => {
                let inner = *inner;
                let complement = self.constant(constant.bit_not());
                Some(self.binary(BinaryOp::Eq, inner, complement))
            }
            _ => None,
        }
    }

    fn less(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        if a == b {
            return Some(self.zero(1));
        }
        if self.width(a) == 1 {
            let clear = self.not(a);
            return Some(self.and(clear, b));
        }
        if let Some(b_value) = self.as_constant(b).cloned() {
            if b_value.is_zero() {
                return Some(self.zero(1));
            }
            if b_value.is_ones() {
                return Some(self.ne(a, b));
            }
            if b_value.to_u64() == Some(1) {
                let zero = self.zero(self.width(a));
                return Some(self.eq(a, zero));
            }
        }
        if let Some(a_value) = self.as_constant(a) {
            if a_value.is_ones() {
                return Some(self.zero(1));
            }
            if a_value.is_zero() {
                return Some(self.reduce_or(b));
            }
        }
        // Equal high parts make no difference: two values widened with zeros compare as they are.
        if let (Op::Concat(x), Op::Concat(y)) = (self.op(a), self.op(b))
            && let ([x_high, x_low], [y_high, y_low]) = (&**x, &**y)
            && x_high == y_high
        {
            let (x_low, y_low) = (*x_low, *y_low);
            return Some(self.binary(BinaryOp::Lt, x_low, y_low));
        }
        None
    }

    fn less_signed(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        if a == b {
            return Some(self.zero(1));
        }
        let width = self.width(a);
        if width == 1 {
            // 1 is -1 here.
            let clear = self.not(b);
            return Some(self.and(a, clear));
        }
        if self.as_constant(b).is_some_and(|b| b.is_zero()) {
            return Some(self.slice(a, width - 1, 1));
        }
        let least = Bits::min_signed(width);
        if self.as_constant(b) == Some(&least) || self.as_constant(a) == Some(&Bits::max_signed(width)) {
            return Some(self.zero(1));
        }
        // `a < most` is `a != most`, and `least < b` is `least != b`.
        if self.as_constant(a) == Some(&least) || self.as_constant(b) == Some(&Bits::max_signed(width)) {
            return Some(self.ne(a, b));
        }
        None
    }

    fn shift(&mut self, op: BinaryOp, a: NodeId, amount: NodeId) -> Option<NodeId> {
        if self.as_constant(a).is_some_and(|value| value.is_zero()) {
            return Some(a);
        }
        let width = self.width(a);
        if self.width(amount) > WIDEST_AMOUNT && self.as_constant(amount).is_none() {
            return Some(self.shift_wide_amount(op, a, amount));
        }
        let by = self.as_constant(amount)?.to_u64_saturating().min(u64::from(width)) as u32;
        Some(match op {
            BinaryOp::Shl => self.shl_by(a, by),
            BinaryOp::Shr => self.shr_by(a, by),
            _ => {
                let sign = self.slice(a, width - 1, 1);
                if by >= width {
                    return Some(self.repeat(sign, width));
                }
                if by == 0 {
                    return Some(a);
                }
                let copies = self.repeat(sign, by);
                let rest = self.slice(a, by, width - by);
                self.concat(&[copies, rest])
            }
        })
    }

    /// A shift whose amount is the low bits of what it was, or so large that nothing is left.
    fn shift_wide_amount(&mut self, op: BinaryOp, a: NodeId, amount: NodeId) -> NodeId {
        let width = self.width(a);
        let low = self.slice(amount, 0, WIDEST_AMOUNT);
        let high = self.slice(amount, WIDEST_AMOUNT, self.width(amount) - WIDEST_AMOUNT);
        let beyond = self.reduce_or(high);
        let shifted = self.binary(op, a, low);
        let rest = match op {
            BinaryOp::ShrSigned => {
                let sign = self.slice(a, width - 1, 1);
                self.repeat(sign, width)
            }
            _ => self.zero(width),
        };
        self.mux(beyond, rest, shifted)
    }

    /// The values one after the other, the highest bits first.
    pub fn concat(&mut self, parts: &[NodeId]) -> NodeId {
        let mut merged: Vec<NodeId> = Vec::with_capacity(parts.len());
        for part in parts {
            match self.op(*part) {
                Op::Concat(inner) if inner.len() + parts.len() <= FLATTENED_PARTS => {
                    for part in inner.clone() {
                        self.append(&mut merged, part);
                    }
                }
                _ => self.append(&mut merged, *part),
            }
        }
        match merged.as_slice() {
            [one] => *one,
            _ => {
                // Sums of widths that the verifier refuses must not wrap.
                let width = merged.iter().fold(0u32, |sum, part| sum.saturating_add(self.width(*part)));
                self.node(Op::Concat(merged.into_boxed_slice()), width)
            }
        }
    }

    /// Adds a part below others; one with its neighbour if both are constants, copies of one bit, or parts of one value.
    fn append(&mut self, parts: &mut Vec<NodeId>, low: NodeId) {
        let Some(high) = parts.last().copied() else { return parts.push(low) };
        let (high_width, low_width) = (self.width(high), self.width(low));
        let width = high_width.saturating_add(low_width);
        let repeated = |builder: &ModuleBuilder, node: NodeId| match builder.op(node) {
            Op::Repeat(bit) => Some(*bit),
            _ => (builder.width(node) == 1).then_some(node),
        };
        if width > limits::MAX_WIDTH {
            return parts.push(low);
        }
        if let (Some(a), Some(b)) = (self.as_constant(high), self.as_constant(low)) {
            let both = a.concat(b);
            parts.pop();
            let both = self.constant(both);
            return parts.push(both);
        }
        if let (Some(a), Some(b)) = (repeated(self, high), repeated(self, low))
            && a == b
        {
            parts.pop();
            let both = self.repeat(a, width);
            return self.append(parts, both);
        }
        if let (Op::Slice(a, a_low), Op::Slice(b, b_low)) = (self.op(high), self.op(low))
            && a == b
            && b_low + low_width == *a_low
        {
            let (value, from) = (*a, *b_low);
            parts.pop();
            let both = self.slice(value, from, width);
            return self.append(parts, both);
        }
        parts.push(low);
    }

    /// `width` bits of a value from bit `low` on.
    #[track_caller]
    pub fn slice(&mut self, value: NodeId, low: u32, width: u32) -> NodeId {
        let within = low.checked_add(width).is_some_and(|end| width > 0 && end <= self.width(value));
        debug_assert!(within, "bits {low} to {low} + {width} of {} bits", self.width(value));
        if !within {
            return self.node(Op::Slice(value, low), width);
        }
        self.slice_to(value, low, width, SLICE_DEPTH)
    }

    fn slice_to(&mut self, mut value: NodeId, mut low: u32, width: u32, depth: usize) -> NodeId {
        for _ in 0..depth {
            if low == 0 && width == self.width(value) {
                return value;
            }
            match self.op(value) {
                Op::Constant(bits) => {
                    let bits = bits.slice(low + width - 1, low);
                    return self.constant(bits);
                }
                Op::Slice(inner, inner_low) => (value, low) = (*inner, low + inner_low),
                Op::Repeat(bit) => {
                    let bit = *bit;
                    return self.repeat(bit, width);
                }
                Op::Concat(parts) => {
                    let pieces = self.pieces(parts, low, width);
                    if let [(part, from, _)] = pieces[..] {
                        (value, low) = (part, from);
                        continue;
                    }
                    let mut merged = Vec::with_capacity(pieces.len());
                    for (part, from, len) in pieces {
                        let piece = self.slice_to(part, from, len, depth - 1);
                        merged.push(piece);
                    }
                    return self.concat(&merged);
                }
                _ => break,
            }
        }
        if low == 0 && width == self.width(value) {
            return value;
        }
        self.node(Op::Slice(value, low), width)
    }

    /// The parts of a concatenation that its bits from `low` on lie in, highest first: each with its first bit and width.
    fn pieces(&self, parts: &[NodeId], low: u32, width: u32) -> Vec<(NodeId, u32, u32)> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for part in parts.iter().rev() {
            let end = start + self.width(*part);
            let (from, to) = (low.max(start), (low + width).min(end));
            if from < to {
                pieces.push((*part, from - start, to - from));
            }
            start = end;
            if start >= low + width {
                break;
            }
        }
        pieces.reverse();
        pieces
    }

    /// A value of 1 bit, `width` times.
    #[track_caller]
    pub fn repeat(&mut self, bit: NodeId, width: u32) -> NodeId {
        debug_assert_eq!(self.width(bit), 1, "width of a bit");
        match self.as_constant(bit) {
            _ if width == 1 => bit,
            Some(bit) if (1..=limits::MAX_WIDTH).contains(&width) => {
                let all = if bit.is_zero() { Bits::zero(width) } else { Bits::ones(width) };
                self.constant(all)
            }
            _ => self.node(Op::Repeat(bit), width),
        }
    }

    /// `a` if `select`, which is 1 bit wide, is 1, else `b`.
    #[track_caller]
    pub fn mux(&mut self, select: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let width = self.width(a);
        let sound = self.width(select) == 1 && width == self.width(b);
        debug_assert!(sound, "{} ? {width} : {} bits", self.width(select), self.width(b));
        if !sound {
            return self.node(Op::Mux(select, a, b), width);
        }
        if let Some(select) = self.as_constant(select) {
            return if select.is_zero() { b } else { a };
        }
        if let Some(inverse) = self.is_not(select) {
            return self.mux(inverse, b, a);
        }
        // Inside an arm the choice is known.
        let a = match self.op(a) {
            Op::Mux(again, chosen, _) if *again == select => *chosen,
            _ => a,
        };
        let b = match self.op(b) {
            Op::Mux(again, _, chosen) if *again == select => *chosen,
            _ => b,
        };
        if a == b {
            return a;
        }
        if width == 1 {
            return self.mux_bit(select, a, b);
        }
        // All ones and zeros, or the other order, are the choice itself.
        if let (Some(x), Some(y)) = (self.as_constant(a), self.as_constant(b)) {
            if x.is_ones() && y.is_zero() {
                return self.repeat(select, width);
            }
            if x.is_zero() && y.is_ones() {
                let inverse = self.not(select);
                return self.repeat(inverse, width);
            }
        }
        match (self.op(a), self.op(b)) {
            // `s ? (t ? x : b) : b` is `s & t ? x : b`.
            (Op::Mux(inner, x, y), _) if *y == b => {
                let (inner, x) = (*inner, *x);
                let both = self.and(select, inner);
                self.mux(both, x, b)
            }
            // `s ? a : (t ? a : y)` is `s | t ? a : y`.
            (_, Op::Mux(inner, x, y)) if *x == a => {
                let (inner, y) = (*inner, *y);
                let either = self.or(select, inner);
                self.mux(either, a, y)
            }
            _ => self.node(Op::Mux(select, a, b), width),
        }
    }

    fn mux_bit(&mut self, select: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let bit = |builder: &ModuleBuilder, node| builder.as_constant(node).map(|value| !value.is_zero());
        let (a_bit, b_bit) = (bit(self, a), bit(self, b));
        match (a_bit, b_bit) {
            (Some(true), Some(_)) => select,
            (Some(false), Some(_)) => self.not(select),
            (Some(true), None) => self.or(select, b),
            (Some(false), None) => {
                let inverse = self.not(select);
                self.and(inverse, b)
            }
            (None, Some(false)) => self.and(select, a),
            (None, Some(true)) => {
                let inverse = self.not(select);
                self.or(inverse, a)
            }
            (None, None) if a == select => self.or(select, b),
            (None, None) if b == select => self.and(select, a),
            (None, None) if self.are_complements(a, b) => {
                // `s ? a : ~a` is "s equals a".
                let differ = self.xor(select, b);
                if self.is_not(b) == Some(a) { self.eq(select, a) } else { differ }
            }
            (None, None) => self.node(Op::Mux(select, a, b), 1),
        }
    }
}
