//! Numbers in registers: limbs of 64 bits, and arithmetic on them.
//!
//! A number of width W is `ceil(W/64)` limbs, the lowest first; the bits above W are 0. All arithmetic keeps that.

use super::Gen;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Value, types};
use millrace_pipeline::Bits;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// 0 or 1, of type `I8`.
    Bool(Value),
    Bits(Num),
    /// The address of a varbit: its length in bits and its bytes.
    Varbit(Value),
}

/// A number.
#[derive(Clone, Debug)]
pub(crate) struct Num {
    pub(crate) width: u32,
    pub(crate) form: Form,
}

/// How a number is held.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Const(Bits),
    Limbs(Vec<Value>),
    /// Of 2 to 8 whole bytes, as they lie in a packet: in the reverse order. The bits above are 0.
    Swapped(Value),
}

impl Num {
    pub(crate) fn limbs(width: u32, limbs: Vec<Value>) -> Num {
        Num { width, form: Form::Limbs(limbs) }
    }

    pub(crate) fn one(width: u32, limb: Value) -> Num {
        Num::limbs(width, vec![limb])
    }

    pub(crate) fn constant(bits: Bits) -> Num {
        Num { width: bits.width(), form: Form::Const(bits) }
    }

    pub(crate) fn as_const(&self) -> Option<&Bits> {
        match &self.form {
            Form::Const(bits) => Some(bits),
            _ => None,
        }
    }
}

/// The ones of the highest limb of a number.
pub(crate) fn top_mask(width: u32) -> u64 {
    match width % 64 {
        0 => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

impl Gen<'_> {
    pub(crate) fn int(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    pub(crate) fn and(&mut self, a: Value, mask: u64) -> Value {
        if mask == u64::MAX {
            return a;
        }
        let mask = self.int(mask);
        self.b.ins().band(a, mask)
    }

    pub(crate) fn shl(&mut self, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        let by = self.int(u64::from(by));
        self.b.ins().ishl(a, by)
    }

    pub(crate) fn shr(&mut self, a: Value, by: u32) -> Value {
        if by == 0 {
            return a;
        }
        // A shift of 32 bits clears the upper half for nothing, which widening would not.
        if let Some(narrow) = self.widened_from(a)
            && by < 32
        {
            let by = self.b.ins().iconst(types::I32, i64::from(by));
            let moved = self.b.ins().ushr(narrow, by);
            return self.b.ins().uextend(types::I64, moved);
        }
        let by = self.int(u64::from(by));
        self.b.ins().ushr(a, by)
    }

    /// The number of 32 bits that a value is, with zeros above.
    fn widened_from(&self, value: Value) -> Option<Value> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        let arg = match dfg.insts[inst] {
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => arg,
            _ => return None,
        };
        (dfg.value_type(arg) == types::I32).then_some(arg)
    }

    pub(crate) fn plus(&mut self, a: Value, by: i64) -> Value {
        if by == 0 {
            return a;
        }
        let by = self.b.ins().iconst(types::I64, by);
        self.b.ins().iadd(a, by)
    }

    /// The limbs of a number.
    pub(crate) fn limbs(&mut self, num: &Num) -> Vec<Value> {
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
    pub(crate) fn low(&mut self, num: &Num) -> Value {
        self.limbs(num)[0]
    }

    /// Reverses the bytes of a number of whole bytes in a limb.
    pub(crate) fn swap(&mut self, value: Value, width: u32) -> Value {
        let ty = match width {
            24 | 40 | 48 | 56 => {
                let up = self.shl(value, 64 - width);
                return self.b.ins().bswap(up);
            }
            64 => return self.b.ins().bswap(value),
            32 => types::I32,
            16 => types::I16,
            _ => return value,
        };
        let narrow = self.b.ins().ireduce(ty, value);
        let swapped = self.b.ins().bswap(narrow);
        self.b.ins().uextend(types::I64, swapped)
    }

    /// As a number of at most 64 bits, the largest when it does not fit.
    pub(crate) fn saturated(&mut self, num: &Num) -> Value {
        let limbs = self.limbs(num);
        let mut low = limbs[0];
        if limbs.len() > 1 {
            let mut high = limbs[1];
            for limb in &limbs[2..] {
                high = self.b.ins().bor(high, *limb);
            }
            let ones = self.int(u64::MAX);
            let zero = self.int(0);
            let over = self.b.ins().icmp(IntCC::NotEqual, high, zero);
            low = self.b.ins().select(over, ones, low);
        }
        low
    }

    /// Cuts the highest limb to the width.
    pub(crate) fn cut(&mut self, width: u32, mut limbs: Vec<Value>) -> Num {
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

    /// Bits `low` and up of limbs, as many as `width`; what is above the limbs is 0.
    pub(crate) fn extract(&mut self, limbs: &[Value], low: u32, width: u32) -> Num {
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
                part = self.b.ins().bor(part, high);
            }
            result.push(part);
        }
        self.cut(width, result)
    }

    /// Limbs moved up by a constant, zeros below, cut to `width`.
    pub(crate) fn move_up(&mut self, limbs: &[Value], by: u32, width: u32) -> Num {
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
                (Some(a), Some(b)) => self.b.ins().bor(a, b),
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
            *limb = self.b.ins().bor(*limb, below);
        }
        Num::limbs(width, limbs)
    }

    /// Numbers one after another, in parts that are each a multiple of `unit` bits and as short as that goes; what is
    /// left is filled up with zeros at the end.
    pub(crate) fn in_units(&mut self, nums: Vec<Num>, unit: u32) -> Vec<Num> {
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
    pub(crate) fn sign_extend(&mut self, num: &Num, width: u32) -> Num {
        let limbs = self.limbs(num);
        if width <= num.width {
            return self.cut(width, limbs);
        }
        let last = limbs.len() - 1;
        let top = self.signed_top(limbs[last], num.width);
        let sign = {
            let by = self.int(63);
            self.b.ins().sshr(top, by)
        };
        let mut result = limbs;
        result[last] = top;
        result.resize(millrace_midend::limbs(width), sign);
        self.cut(width, result)
    }

    /// A highest limb with the sign in all the bits above.
    pub(crate) fn signed_top(&mut self, limb: Value, width: u32) -> Value {
        let free = (64 - width % 64) % 64;
        if free == 0 {
            return limb;
        }
        let up = self.shl(limb, free);
        let by = self.int(u64::from(free));
        self.b.ins().sshr(up, by)
    }

    /// The sum, with the carry out of the limbs. (`I64`, 0 or 1.)
    pub(crate) fn add_limbs(&mut self, a: &[Value], b: &[Value]) -> (Vec<Value>, Value) {
        let mut carry = None;
        let mut result = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let sum = self.b.ins().iadd(*a, *b);
            let over = self.less(sum, *a);
            let (sum, over) = match carry {
                None => (sum, over),
                Some(carry) => {
                    let with = self.b.ins().iadd(sum, carry);
                    let again = self.less(with, sum);
                    (with, self.b.ins().bor(over, again))
                }
            };
            carry = Some(over);
            result.push(sum);
        }
        let carry = carry.unwrap_or_else(|| self.int(0));
        (result, carry)
    }

    /// The difference, with the borrow.
    pub(crate) fn sub_limbs(&mut self, a: &[Value], b: &[Value]) -> (Vec<Value>, Value) {
        let mut borrow = None;
        let mut result = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let difference = self.b.ins().isub(*a, *b);
            let under = self.less(*a, *b);
            let (difference, under) = match borrow {
                None => (difference, under),
                Some(borrow) => {
                    let with = self.b.ins().isub(difference, borrow);
                    let again = self.less(difference, borrow);
                    (with, self.b.ins().bor(under, again))
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
        let less = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.b.ins().uextend(types::I64, less)
    }

    /// Whether two numbers of one width are equal.
    pub(crate) fn equal(&mut self, a: &Num, b: &Num) -> Value {
        self.compare(a, b, IntCC::Equal)
    }

    /// Whether two numbers of one width are equal, or whether they differ.
    pub(crate) fn compare(&mut self, a: &Num, b: &Num, how: IntCC) -> Value {
        let width = a.width;
        match (&a.form, &b.form) {
            (Form::Swapped(a), Form::Swapped(b)) => return self.b.ins().icmp(how, *a, *b),
            (Form::Swapped(raw), Form::Const(bits)) | (Form::Const(bits), Form::Swapped(raw)) => {
                let value = bits.limbs().next().unwrap_or(0);
                let swapped = value.swap_bytes() >> (64 - width);
                let constant = self.int(swapped);
                return self.b.ins().icmp(how, *raw, constant);
            }
            (Form::Swapped(raw), Form::Limbs(limbs)) | (Form::Limbs(limbs), Form::Swapped(raw)) => {
                let other = self.swap(limbs[0], width);
                return self.b.ins().icmp(how, *raw, other);
            }
            _ => {}
        }
        let (a, b) = (self.limbs(a), self.limbs(b));
        if a.len() == 1 {
            return self.b.ins().icmp(how, a[0], b[0]);
        }
        let mut all = None;
        for (a, b) in a.iter().zip(&b) {
            let differs = self.b.ins().bxor(*a, *b);
            all = Some(match all {
                None => differs,
                Some(all) => self.b.ins().bor(all, differs),
            });
        }
        let all = all.unwrap_or_else(|| self.int(0));
        let zero = self.int(0);
        self.b.ins().icmp(how, all, zero)
    }

    /// `a < b`, unsigned or in two's complement, of one width.
    pub(crate) fn less_than(&mut self, a: &Num, b: &Num, signed: bool) -> Value {
        let width = a.width;
        let (mut a, mut b) = (self.limbs(a), self.limbs(b));
        let last = a.len() - 1;
        if signed {
            a[last] = self.signed_top(a[last], width);
            b[last] = self.signed_top(b[last], width);
        }
        let top = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        if last == 0 {
            return self.b.ins().icmp(top, a[0], b[0]);
        }
        // From the lowest limb up: a higher limb decides unless it is equal.
        let mut less = self.b.ins().icmp(IntCC::UnsignedLessThan, a[0], b[0]);
        for at in 1..=last {
            let code = if at == last { top } else { IntCC::UnsignedLessThan };
            let here = self.b.ins().icmp(code, a[at], b[at]);
            let same = self.b.ins().icmp(IntCC::Equal, a[at], b[at]);
            less = self.b.ins().select(same, less, here);
        }
        less
    }

    pub(crate) fn is_zero(&mut self, value: Value) -> Value {
        let zero = self.int(0);
        self.b.ins().icmp(IntCC::Equal, value, zero)
    }

    pub(crate) fn not_zero(&mut self, value: Value) -> Value {
        let zero = self.int(0);
        self.b.ins().icmp(IntCC::NotEqual, value, zero)
    }

    /// The logical opposite of a truth value.
    pub(crate) fn negate(&mut self, truth: Value) -> Value {
        let one = self.b.ins().iconst(types::I8, 1);
        self.b.ins().bxor(truth, one)
    }
}
