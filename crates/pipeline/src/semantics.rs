//! What each pure operation means: one definition for the interpreter, for constant folding and for tests.
//!
//! The functions are total. In a verified program the operands have the types that the operation asks for; for any
//! other operand they read it as the nearest value of the type asked for ([`Value::as_bool`], [`Value::as_bits`]).

use crate::{BinaryOp, Bits, Expr, HeaderId, SlotId, Type, UnaryOp};

/// The value of a slot or an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Of [`Type::Bool`].
    Bool(bool),
    /// Of [`Type::Bits`].
    Bits(Bits),
    /// Of [`Type::Varbit`].
    Varbit(VarbitValue),
}

/// A bit string whose length shows at run time: 0 bits, or more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VarbitValue {
    bits: Option<Bits>,
}

impl VarbitValue {
    /// No bits at all.
    pub const EMPTY: VarbitValue = VarbitValue { bits: None };

    /// As long as `bits` is wide.
    pub fn new(bits: Bits) -> VarbitValue {
        VarbitValue { bits: Some(bits) }
    }

    /// The length in bits.
    pub fn len(&self) -> u32 {
        self.bits.as_ref().map_or(0, Bits::width)
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.bits.is_none()
    }

    /// The bits; none when empty.
    pub fn bits(&self) -> Option<&Bits> {
        self.bits.as_ref()
    }
}

impl Value {
    /// What a slot of that type starts with: 0, false, empty.
    pub fn zero(ty: Type) -> Value {
        match ty {
            Type::Bool => Value::Bool(false),
            Type::Bits(width) => Value::Bits(Bits::zero(width)),
            Type::Varbit(_) => Value::Varbit(VarbitValue::EMPTY),
        }
    }

    /// Whether this can stand in a slot of that type.
    pub fn fits(&self, ty: Type) -> bool {
        match (self, ty) {
            (Value::Bool(_), Type::Bool) => true,
            (Value::Bits(bits), Type::Bits(width)) => bits.width() == width,
            (Value::Varbit(varbit), Type::Varbit(width)) => varbit.len() <= width,
            _ => false,
        }
    }

    /// The truth value; of another type, whether any bit is 1.
    pub fn as_bool(&self) -> bool {
        match self {
            Value::Bool(b) => *b,
            Value::Bits(bits) => !bits.is_zero(),
            Value::Varbit(varbit) => varbit.bits().is_some_and(|b| !b.is_zero()),
        }
    }

    /// The bits; of a truth value one bit, of an empty varbit one 0.
    pub fn as_bits(&self) -> Bits {
        match self {
            Value::Bool(b) => Bits::new(1, u128::from(*b)),
            Value::Bits(bits) => bits.clone(),
            Value::Varbit(varbit) => varbit.bits().cloned().unwrap_or_else(|| Bits::zero(1)),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<Bits> for Value {
    fn from(value: Bits) -> Value {
        Value::Bits(value)
    }
}

/// What a unary operation gives.
pub fn unary(op: UnaryOp, operand: &Value) -> Value {
    match op {
        UnaryOp::Not => Value::Bool(!operand.as_bool()),
        UnaryOp::BitNot => Value::Bits(operand.as_bits().bit_not()),
        UnaryOp::Neg => Value::Bits(operand.as_bits().neg()),
    }
}

/// What a binary operation gives.
pub fn binary(op: BinaryOp, left: &Value, right: &Value) -> Value {
    match op {
        BinaryOp::Eq => return Value::Bool(left == right),
        BinaryOp::Ne => return Value::Bool(left != right),
        BinaryOp::BoolAnd => return Value::Bool(left.as_bool() && right.as_bool()),
        BinaryOp::BoolOr => return Value::Bool(left.as_bool() || right.as_bool()),
        _ => {}
    }
    match (left, right) {
        (Value::Bits(left), Value::Bits(right)) => binary_bits(op, left, right),
        _ => binary_bits(op, &left.as_bits(), &right.as_bits()),
    }
}

fn binary_bits(op: BinaryOp, a: &Bits, b: &Bits) -> Value {
    match op {
        BinaryOp::Add => Value::Bits(a.add(b)),
        BinaryOp::Sub => Value::Bits(a.sub(b)),
        BinaryOp::Mul => Value::Bits(a.mul(b)),
        BinaryOp::Div => Value::Bits(a.div(b)),
        BinaryOp::Mod => Value::Bits(a.rem(b)),
        BinaryOp::AddSat => Value::Bits(a.add_sat(b)),
        BinaryOp::SubSat => Value::Bits(a.sub_sat(b)),
        BinaryOp::AddSatSigned => Value::Bits(a.add_sat_signed(b)),
        BinaryOp::SubSatSigned => Value::Bits(a.sub_sat_signed(b)),
        BinaryOp::And => Value::Bits(a.and(b)),
        BinaryOp::Or => Value::Bits(a.or(b)),
        BinaryOp::Xor => Value::Bits(a.xor(b)),
        BinaryOp::Shl => Value::Bits(a.shl(b)),
        BinaryOp::Shr => Value::Bits(a.shr(b)),
        BinaryOp::ShrSigned => Value::Bits(a.shr_signed(b)),
        BinaryOp::Lt => Value::Bool(a.cmp_unsigned(b).is_lt()),
        BinaryOp::Le => Value::Bool(a.cmp_unsigned(b).is_le()),
        BinaryOp::LtSigned => Value::Bool(a.cmp_signed(b).is_lt()),
        BinaryOp::LeSigned => Value::Bool(a.cmp_signed(b).is_le()),
        BinaryOp::Eq => Value::Bool(a == b),
        BinaryOp::Ne => Value::Bool(a != b),
        BinaryOp::BoolAnd => Value::Bool(!a.is_zero() && !b.is_zero()),
        BinaryOp::BoolOr => Value::Bool(!a.is_zero() || !b.is_zero()),
    }
}

/// What [`Expr::Slice`] gives: bits `high` down to `low`.
pub fn slice(operand: &Value, high: u32, low: u32) -> Value {
    Value::Bits(operand.as_bits().slice(high, low))
}

/// What [`Expr::Concat`] gives.
pub fn concat(high: &Value, low: &Value) -> Value {
    Value::Bits(high.as_bits().concat(&low.as_bits()))
}

/// What [`Expr::ZeroExtend`] gives.
pub fn zero_extend(operand: &Value, width: u32) -> Value {
    Value::Bits(operand.as_bits().zero_extend(width))
}

/// What [`Expr::SignExtend`] gives.
pub fn sign_extend(operand: &Value, width: u32) -> Value {
    Value::Bits(operand.as_bits().sign_extend(width))
}

/// What [`Expr::BoolToBits`] gives.
pub fn bool_to_bits(operand: &Value) -> Value {
    Value::Bits(Bits::new(1, u128::from(operand.as_bool())))
}

/// What an expression reads: a leaf whose value depends on the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// [`Expr::Read`].
    Slot(SlotId),
    /// [`Expr::IsValid`].
    Valid(HeaderId),
    /// [`Expr::PacketLength`].
    PacketLength,
    /// [`Expr::Cursor`].
    Cursor,
}

/// The value of an expression, where `leaf` gives what it reads.
pub fn evaluate(expr: &Expr, leaf: &impl Fn(Leaf) -> Value) -> Value {
    match expr {
        Expr::Const(bits) => Value::Bits(bits.clone()),
        Expr::Bool(b) => Value::Bool(*b),
        Expr::Read(slot) => leaf(Leaf::Slot(*slot)),
        Expr::IsValid(header) => leaf(Leaf::Valid(*header)),
        Expr::PacketLength => leaf(Leaf::PacketLength),
        Expr::Cursor => leaf(Leaf::Cursor),
        Expr::Unary(op, operand) => unary(*op, &evaluate(operand, leaf)),
        Expr::Binary(op, a, b) => binary(*op, &evaluate(a, leaf), &evaluate(b, leaf)),
        Expr::Mux(cond, then, els) => {
            let chosen = if evaluate(cond, leaf).as_bool() { then } else { els };
            evaluate(chosen, leaf)
        }
        Expr::Slice(operand, high, low) => slice(&evaluate(operand, leaf), *high, *low),
        Expr::Concat(high, low) => concat(&evaluate(high, leaf), &evaluate(low, leaf)),
        Expr::ZeroExtend(operand, width) => zero_extend(&evaluate(operand, leaf), *width),
        Expr::SignExtend(operand, width) => sign_extend(&evaluate(operand, leaf), *width),
        Expr::BoolToBits(operand) => bool_to_bits(&evaluate(operand, leaf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn b(width: u32, value: u128) -> Value {
        Value::Bits(Bits::new(width, value))
    }

    #[test]
    fn one_operand() {
        assert_eq!(unary(UnaryOp::Not, &Value::Bool(false)), Value::Bool(true));
        assert_eq!(unary(UnaryOp::BitNot, &b(4, 0b0101)), b(4, 0b1010));
        assert_eq!(unary(UnaryOp::Neg, &b(8, 1)), b(8, 255));
    }

    #[test]
    fn two_operands() {
        use BinaryOp::*;
        for (op, left, right, result) in [
            (Add, b(8, 250), b(8, 10), b(8, 4)),
            (Sub, b(8, 1), b(8, 2), b(8, 255)),
            (Mul, b(8, 16), b(8, 17), b(8, 16)),
            (Div, b(8, 7), b(8, 2), b(8, 3)),
            (Div, b(8, 7), b(8, 0), b(8, 0)),
            (Mod, b(8, 7), b(8, 4), b(8, 3)),
            (Mod, b(8, 7), b(8, 0), b(8, 0)),
            (AddSat, b(8, 250), b(8, 10), b(8, 255)),
            (SubSat, b(8, 1), b(8, 2), b(8, 0)),
            (AddSatSigned, b(8, 0x7f), b(8, 1), b(8, 0x7f)),
            (SubSatSigned, b(8, 0x80), b(8, 1), b(8, 0x80)),
            (And, b(4, 0b1100), b(4, 0b1010), b(4, 0b1000)),
            (Or, b(4, 0b1100), b(4, 0b1010), b(4, 0b1110)),
            (Xor, b(4, 0b1100), b(4, 0b1010), b(4, 0b0110)),
            (Shl, b(8, 3), b(3, 7), b(8, 0x80)),
            (Shl, b(8, 3), b(32, 8), b(8, 0)),
            (Shr, b(8, 0x80), b(3, 7), b(8, 1)),
            (ShrSigned, b(8, 0x80), b(16, 300), b(8, 0xff)),
            (Eq, b(8, 1), b(8, 1), Value::Bool(true)),
            (Eq, Value::Bool(true), Value::Bool(false), Value::Bool(false)),
            (Ne, b(8, 1), b(8, 1), Value::Bool(false)),
            (Lt, b(8, 1), b(8, 0xff), Value::Bool(true)),
            (Le, b(8, 1), b(8, 1), Value::Bool(true)),
            (LtSigned, b(8, 1), b(8, 0xff), Value::Bool(false)),
            (LeSigned, b(8, 0xff), b(8, 0), Value::Bool(true)),
            (BoolAnd, Value::Bool(true), Value::Bool(false), Value::Bool(false)),
            (BoolOr, Value::Bool(true), Value::Bool(false), Value::Bool(true)),
        ] {
            assert_eq!(binary(op, &left, &right), result, "{op:?}");
        }
    }

    #[test]
    fn varbits_compare_by_length_and_bits() {
        let varbit = |bits: Bits| Value::Varbit(VarbitValue::new(bits));
        let empty = Value::Varbit(VarbitValue::EMPTY);
        assert_eq!(binary(BinaryOp::Eq, &varbit(Bits::zero(8)), &empty), Value::Bool(false));
        assert_eq!(binary(BinaryOp::Eq, &varbit(Bits::zero(8)), &varbit(Bits::zero(16))), Value::Bool(false));
        assert_eq!(binary(BinaryOp::Eq, &varbit(Bits::zero(8)), &varbit(Bits::zero(8))), Value::Bool(true));
        assert_eq!(binary(BinaryOp::Ne, &empty, &Value::zero(Type::Varbit(64))), Value::Bool(false));
        assert!(varbit(Bits::zero(8)).fits(Type::Varbit(8)) && !varbit(Bits::zero(16)).fits(Type::Varbit(8)));
    }

    #[test]
    fn whole_expressions() {
        // isValid ? (slot0[7:4] ++ sign_extend(2w0b10, 4)) : 8w0, with slot0 = 0x5a.
        let expr = Expr::Mux(
            Box::new(Expr::IsValid(HeaderId::from_u32(0))),
            Box::new(Expr::Concat(
                Box::new(Expr::Slice(Box::new(Expr::Read(SlotId::from_u32(0))), 7, 4)),
                Box::new(Expr::SignExtend(Box::new(Expr::Const(Bits::new(2, 2))), 4)),
            )),
            Box::new(Expr::Const(Bits::zero(8))),
        );
        let leaf = |valid: bool| {
            move |leaf: Leaf| match leaf {
                Leaf::Valid(_) => Value::Bool(valid),
                _ => b(8, 0x5a),
            }
        };
        assert_eq!(evaluate(&expr, &leaf(true)), b(8, 0x5e));
        assert_eq!(evaluate(&expr, &leaf(false)), b(8, 0));
    }
}
