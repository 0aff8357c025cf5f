//! Arithmetic on numbers of any width, limb by limb.

use super::emitter::Emitter;
use super::fields::ones;
use super::values::{Form, Num, Val, top_mask};
use crate::runtime::{Helper, WideOp};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_midend::limbs;
use millrace_pipeline::*;

impl Emitter<'_> {
    /// The value of a type with all bits 0.
    pub(super) fn zero(&mut self, ty: Type) -> Val {
        match ty {
            Type::Bool => Val::Bool(self.ins().iconst(types::I8, 0)),
            Type::Bits(width) => Val::Bits(Num::constant(Bits::zero(width))),
            Type::Varbit(_) => Val::Varbit(self.int(crate::runtime::empty_varbit() as u64)),
        }
    }

    /// The limbs of a number.
    pub(super) fn limbs(&mut self, num: &Num) -> Vec<Value> {
        match &num.form {
            Form::Const(bits) => bits.limbs().map(|limb| self.int(limb)).collect(),
            Form::Limbs(limbs) => limbs.clone(),
            Form::Swapped(raw) => {
                let value = self.swap(*raw, num.width);
                self.widths.insert(value, num.width);
                vec![value]
            }
        }
    }

    /// The lowest limb.
    pub(super) fn low(&mut self, num: &Num) -> Value {
        self.limbs(num)[0]
    }

    /// The bits of a value that is a number or a truth value.
    pub(super) fn bits_of(&mut self, val: Val) -> Num {
        match val {
            Val::Bits(num) => num,
            Val::Bool(truth) => {
                let limb = self.ins().uextend(types::I64, truth);
                Num::one(1, limb)
            }
            Val::Varbit(_) => Num::constant(Bits::zero(1)),
        }
    }

    /// As a number of at most 64 bits, the largest when it does not fit.
    pub(super) fn saturated(&mut self, num: &Num) -> Value {
        let limbs = self.limbs(num);
        let mut low = limbs[0];
        if limbs.len() > 1 {
            let mut high = limbs[1];
            for limb in &limbs[2..] {
                high = self.ins().bor(high, *limb);
            }
            let ones = self.int(u64::MAX);
            let zero = self.int(0);
            let over = self.ins().icmp(IntCC::NotEqual, high, zero);
            low = self.ins().select(over, ones, low);
        }
        low
    }

    /// Cuts the highest limb to the width.
    pub(super) fn cut(&mut self, width: u32, mut limbs: Vec<Value>) -> Num {
        limbs.truncate(millrace_midend::limbs(width));
        if let Some(top) = limbs.last_mut() {
            let bits = (width - 1) % 64 + 1;
            let known = self.widths.get(&self.b.func.dfg.resolve_aliases(*top));
            if known.is_none_or(|known| *known > bits) {
                *top = self.and(*top, top_mask(width));
                self.widths.insert(*top, bits);
            }
        }
        Num::limbs(width, limbs)
    }

    /// Cut, or widened with zeros.
    pub(super) fn resize(&mut self, num: Num, width: u32) -> Num {
        if num.width == width {
            return num;
        }
        if let Form::Const(bits) = &num.form {
            return Num::constant(bits.zero_extend(width));
        }
        let mut all = self.limbs(&num);
        while all.len() < limbs(width) {
            all.push(self.int(0));
        }
        if width > num.width { Num::limbs(width, all) } else { self.cut(width, all) }
    }

    /// Bits `low` and up of limbs, as many as `width`; what is above the limbs is 0.
    pub(super) fn extract(&mut self, limbs: &[Value], low: u32, width: u32) -> Num {
        let (skip, shift) = ((low / 64) as usize, low % 64);
        let mut result = Vec::new();
        for at in 0..millrace_midend::limbs(width) {
            let Some(limb) = limbs.get(skip + at).copied() else {
                result.push(self.int(0));
                continue;
            };
            let mut part = self.shr(limb, shift);
            let needed = (width - 64 * at as u32).min(64);
            if shift > 0
                && needed > 64 - shift
                && let Some(next) = limbs.get(skip + at + 1).copied()
            {
                let high = self.shl(next, 64 - shift);
                part = self.ins().bor(part, high);
            }
            result.push(part);
        }
        self.cut(width, result)
    }

    /// Limbs moved up by a constant, zeros below, cut to `width`.
    pub(super) fn move_up(&mut self, limbs: &[Value], by: u32, width: u32) -> Num {
        let (skip, shift) = ((by / 64) as usize, by % 64);
        let mut result = Vec::new();
        for at in 0..millrace_midend::limbs(width) {
            if at < skip {
                result.push(self.int(0));
                continue;
            }
            let own = limbs.get(at - skip).copied();
            let below = if at > skip && shift > 0 { limbs.get(at - skip - 1).copied() } else { None };
            let own = own.map(|own| self.shl(own, shift));
            let below = below.map(|below| self.shr(below, 64 - shift));
            result.push(match (own, below) {
                (Some(a), Some(b)) => self.ins().bor(a, b),
                (Some(a), None) | (None, Some(a)) => a,
                (None, None) => self.int(0),
            });
        }
        self.cut(width, result)
    }

    /// Two numbers one after another, the first one highest.
    fn joined(&mut self, high: &Num, low: &Num) -> Num {
        let width = high.width + low.width;
        let (above, below) = (self.limbs(high), self.limbs(low));
        let above = self.move_up(&above, low.width, width);
        let mut limbs = self.limbs(&above);
        for (limb, below) in limbs.iter_mut().zip(below) {
            *limb = self.ins().bor(*limb, below);
        }
        Num::limbs(width, limbs)
    }

    /// Numbers one after another, in parts that are each a multiple of `unit` bits and as short as that goes; what is
    /// left is filled up with zeros at the end.
    pub(super) fn in_units(&mut self, nums: Vec<Num>, unit: u32) -> Vec<Num> {
        let mut parts = Vec::new();
        let mut open: Option<Num> = None;
        for num in nums {
            let joined = match open.take() {
                None => num,
                Some(before) => self.joined(&before, &num),
            };
            match joined.width.is_multiple_of(unit) {
                true => parts.push(joined),
                false => open = Some(joined),
            }
        }
        if let Some(rest) = open {
            let missing = Num::constant(Bits::zero(unit - rest.width % unit));
            parts.push(self.joined(&rest, &missing));
        }
        parts
    }

    /// Widens with the sign, or cuts.
    pub(super) fn sign_extend(&mut self, num: &Num, width: u32) -> Num {
        let limbs = self.limbs(num);
        if width <= num.width {
            return self.cut(width, limbs);
        }
        let last = limbs.len() - 1;
        let top = self.signed_top(limbs[last], num.width);
        let sign = {
            let by = self.int(63);
            self.ins().sshr(top, by)
        };
        let mut result = limbs;
        result[last] = top;
        result.resize(millrace_midend::limbs(width), sign);
        self.cut(width, result)
    }

    /// A highest limb with the sign in all the bits above.
    fn signed_top(&mut self, limb: Value, width: u32) -> Value {
        let free = (64 - width % 64) % 64;
        if free == 0 {
            return limb;
        }
        let up = self.shl(limb, free);
        let by = self.int(u64::from(free));
        self.ins().sshr(up, by)
    }

    /// The sum, with the carry out of the limbs. (`I64`, 0 or 1.)
    pub(super) fn add_limbs(&mut self, a: &[Value], b: &[Value]) -> (Vec<Value>, Value) {
        let mut carry = None;
        let mut result = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let sum = self.ins().iadd(*a, *b);
            let over = self.less(sum, *a);
            let (sum, over) = match carry {
                None => (sum, over),
                Some(carry) => {
                    let with = self.ins().iadd(sum, carry);
                    let again = self.less(with, sum);
                    (with, self.ins().bor(over, again))
                }
            };
            carry = Some(over);
            result.push(sum);
        }
        let carry = carry.unwrap_or_else(|| self.int(0));
        (result, carry)
    }

    /// The difference, with the borrow.
    pub(super) fn sub_limbs(&mut self, a: &[Value], b: &[Value]) -> (Vec<Value>, Value) {
        let mut borrow = None;
        let mut result = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let difference = self.ins().isub(*a, *b);
            let under = self.less(*a, *b);
            let (difference, under) = match borrow {
                None => (difference, under),
                Some(borrow) => {
                    let with = self.ins().isub(difference, borrow);
                    let again = self.less(difference, borrow);
                    (with, self.ins().bor(under, again))
                }
            };
            borrow = Some(under);
            result.push(difference);
        }
        let borrow = borrow.unwrap_or_else(|| self.int(0));
        (result, borrow)
    }

    /// `a < b` unsigned, as `I64`.
    fn less(&mut self, a: Value, b: Value) -> Value {
        let less = self.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.ins().uextend(types::I64, less)
    }

    pub(super) fn saturating(&mut self, op: BinaryOp, a: Value, b: Value, width: u32) -> Value {
        if op == BinaryOp::SubSat {
            let difference = self.ins().isub(a, b);
            let under = self.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let zero = self.int(0);
            return self.ins().select(under, zero, difference);
        }
        let sum = self.ins().iadd(a, b);
        let most = self.int(ones(width));
        let over = match width {
            64 => self.ins().icmp(IntCC::UnsignedLessThan, sum, a),
            _ => self.ins().icmp(IntCC::UnsignedGreaterThan, sum, most),
        };
        self.ins().select(over, most, sum)
    }

    pub(super) fn saturating_signed(&mut self, op: BinaryOp, a: Value, b: Value, width: u32) -> Value {
        let (a, b) = (self.signed_top(a, width), self.signed_top(b, width));
        let adds = op == BinaryOp::AddSatSigned;
        let result = if adds { self.ins().iadd(a, b) } else { self.ins().isub(a, b) };
        let least = self.int((-1i64 << (width - 1)) as u64);
        let most = self.int(ones(width) >> 1);
        let limited = if width == 64 {
            // Over: the operands (of a difference: a and the opposite of b) have one sign, the result another.
            let differ = self.ins().bxor(a, result);
            let other = if adds { self.ins().bxor(b, result) } else { self.ins().bxor(a, b) };
            let both = self.ins().band(differ, other);
            let zero = self.int(0);
            let over = self.ins().icmp(IntCC::SignedLessThan, both, zero);
            let negative = self.ins().icmp(IntCC::SignedLessThan, a, zero);
            let end = self.ins().select(negative, least, most);
            self.ins().select(over, end, result)
        } else {
            let over = self.ins().icmp(IntCC::SignedGreaterThan, result, most);
            let result = self.ins().select(over, most, result);
            let under = self.ins().icmp(IntCC::SignedLessThan, result, least);
            self.ins().select(under, least, result)
        };
        self.and(limited, ones(width))
    }

    pub(super) fn shift(&mut self, op: BinaryOp, a: &Num, by: &Num) -> Num {
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
        let beyond = self.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, amount, most);
        let zero = self.int(0);
        let result = match op {
            BinaryOp::Shl => {
                let moved = self.ins().ishl(value, amount);
                self.ins().select(beyond, zero, moved)
            }
            BinaryOp::Shr => {
                let moved = self.ins().ushr(value, amount);
                self.ins().select(beyond, zero, moved)
            }
            _ => {
                let signed = self.signed_top(value, width);
                let last = self.int(63);
                let amount = self.ins().select(beyond, last, amount);
                self.ins().sshr(signed, amount)
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
    pub(super) fn wide(&mut self, op: WideOp, a: &Num, b: &Num) -> Num {
        let width = a.width;
        let first = self.spill_number(0, a);
        let second = self.spill_number(1, b);
        let result = self.buffer(2, 8 * limbs(width) as u32);
        let (op, bits) = (self.int(op as u64), self.int(u64::from(width)));
        self.call(Helper::Wide, &[op, bits, first, second, result]);
        self.fill_number(result, width)
    }

    pub(super) fn equal_values(&mut self, a: &Val, b: &Val) -> Value {
        match (a, b) {
            (Val::Bool(a), Val::Bool(b)) => self.ins().icmp(IntCC::Equal, *a, *b),
            (Val::Varbit(a), Val::Varbit(b)) => {
                let equal = self.call(Helper::VarbitsEqual, &[*a, *b]);
                self.ins().ireduce(types::I8, equal)
            }
            (Val::Bits(a), Val::Bits(b)) => self.equal(a, b),
            _ => self.ins().iconst(types::I8, 0),
        }
    }

    /// Whether two numbers of one width are equal.
    pub(super) fn equal(&mut self, a: &Num, b: &Num) -> Value {
        self.compare(a, b, IntCC::Equal)
    }

    /// Whether two numbers of one width are equal, or whether they differ.
    pub(super) fn compare(&mut self, a: &Num, b: &Num, how: IntCC) -> Value {
        let width = a.width;
        match (&a.form, &b.form) {
            (Form::Swapped(a), Form::Swapped(b)) => return self.ins().icmp(how, *a, *b),
            (Form::Swapped(raw), Form::Const(bits)) | (Form::Const(bits), Form::Swapped(raw)) => {
                let value = bits.limbs().next().unwrap_or(0);
                let swapped = value.swap_bytes() >> (64 - width);
                let constant = self.int(swapped);
                return self.ins().icmp(how, *raw, constant);
            }
            (Form::Swapped(raw), Form::Limbs(limbs)) | (Form::Limbs(limbs), Form::Swapped(raw)) => {
                let other = self.swap(limbs[0], width);
                return self.ins().icmp(how, *raw, other);
            }
            _ => {}
        }
        let (a, b) = (self.limbs(a), self.limbs(b));
        if a.len() == 1 {
            return self.ins().icmp(how, a[0], b[0]);
        }
        let mut all = None;
        for (a, b) in a.iter().zip(&b) {
            let differs = self.ins().bxor(*a, *b);
            all = Some(match all {
                None => differs,
                Some(all) => self.ins().bor(all, differs),
            });
        }
        let all = all.unwrap_or_else(|| self.int(0));
        let zero = self.int(0);
        self.ins().icmp(how, all, zero)
    }

    /// `a < b`, unsigned or in two's complement, of one width.
    pub(super) fn less_than(&mut self, a: &Num, b: &Num, signed: bool) -> Value {
        let width = a.width;
        let (mut a, mut b) = (self.limbs(a), self.limbs(b));
        let last = a.len() - 1;
        if signed {
            a[last] = self.signed_top(a[last], width);
            b[last] = self.signed_top(b[last], width);
        }
        let top = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        if last == 0 {
            return self.ins().icmp(top, a[0], b[0]);
        }
        // From the lowest limb up: a higher limb decides unless it is equal.
        let mut less = self.ins().icmp(IntCC::UnsignedLessThan, a[0], b[0]);
        for at in 1..=last {
            let code = if at == last { top } else { IntCC::UnsignedLessThan };
            let here = self.ins().icmp(code, a[at], b[at]);
            let same = self.ins().icmp(IntCC::Equal, a[at], b[at]);
            less = self.ins().select(same, less, here);
        }
        less
    }

    /// Whether a key is between two constants.
    pub(super) fn between(&mut self, key: &Num, low: &Bits, high: &Bits, signed: bool) -> Value {
        let (low, high) = (Num::constant(low.clone()), Num::constant(high.clone()));
        let below = self.less_than(key, &low, signed);
        let above = self.less_than(&high, key, signed);
        let outside = self.ins().bor(below, above);
        self.negate(outside)
    }

    /// Whether a key is equal to a constant under a mask.
    pub(super) fn masked(&mut self, key: &Num, value: &Bits, mask: &Bits) -> Value {
        let limbs = self.limbs(key);
        let cut = limbs.into_iter().zip(mask.limbs()).map(|(limb, mask)| self.and(limb, mask)).collect();
        let key = Num::limbs(key.width, cut);
        self.equal(&key, &Num::constant(value.and(mask)))
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

    /// The reverse of [`Emitter::spill_number`]; bits above the width count as 0.
    pub(super) fn fill_number(&mut self, address: Value, width: u32) -> Num {
        let limbs = (0..limbs(width)).map(|at| self.load_word(types::I64, address, 8 * at as u32)).collect();
        self.cut(width, limbs)
    }

    /// Numbers one after another in stack memory, each as its limbs.
    pub(super) fn numbers_in_memory(&mut self, buffer: usize, nums: &[Num]) -> Value {
        let words: Vec<Value> = nums.iter().flat_map(|num| self.limbs(num)).collect();
        let address = self.buffer(buffer, 8 * words.len() as u32);
        for (at, word) in words.into_iter().enumerate() {
            self.store_word(word, address, 8 * at as u32);
        }
        address
    }
}
