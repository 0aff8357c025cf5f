//! Building expressions, and their types.
//!
//! The constructors fold what is plain to see ([`crate::fold`]), so that a producer may write the general form and get
//! the short one: `Expr::not(Expr::Bool(true))` is `Expr::Bool(false)`.

use crate::{BinaryOp, Bits, Expr, HeaderId, Program, SlotId, Type, UnaryOp, fold};

impl Type {
    /// The width of a `Bits`.
    pub fn bits(self) -> Option<u32> {
        match self {
            Type::Bits(width) => Some(width),
            _ => None,
        }
    }
}

impl Expr {
    /// A constant number cut to `width` bits.
    pub fn bits(width: u32, value: u128) -> Expr {
        Expr::Const(Bits::new(width, value))
    }

    /// The value of a slot.
    pub fn read(slot: SlotId) -> Expr {
        Expr::Read(slot)
    }

    /// Whether a header is valid.
    pub fn is_valid(header: HeaderId) -> Expr {
        Expr::IsValid(header)
    }

    /// An operation of one operand.
    pub fn unary(op: UnaryOp, operand: Expr) -> Expr {
        fold::node(Expr::Unary(op, Box::new(operand)), None)
    }

    /// An operation of two operands.
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        fold::node(Expr::Binary(op, Box::new(left), Box::new(right)), None)
    }

    /// Logical not.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Expr {
        Expr::unary(UnaryOp::Not, self)
    }

    /// Logical and.
    pub fn and(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::BoolAnd, self, other)
    }

    /// Logical or.
    pub fn or(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::BoolOr, self, other)
    }

    /// Whether all of them are true; true for none.
    pub fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        pairwise(conditions.into_iter().collect(), Expr::Bool(true), Expr::and)
    }

    /// Whether any of them is true; false for none.
    pub fn any(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        pairwise(conditions.into_iter().collect(), Expr::Bool(false), Expr::or)
    }

    /// Equality.
    pub fn eq(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Eq, self, other)
    }

    /// Inequality.
    pub fn ne(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Ne, self, other)
    }

    /// Unsigned less than.
    pub fn lt(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Lt, self, other)
    }

    /// Unsigned less than or equal.
    pub fn le(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Le, self, other)
    }

    /// The wrapping sum.
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Add, self, other)
    }

    /// The wrapping difference.
    #[allow(clippy::should_implement_trait)]
    pub fn sub(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Sub, self, other)
    }

    /// `cond ? then : els`.
    pub fn mux(cond: Expr, then: Expr, els: Expr) -> Expr {
        fold::node(Expr::Mux(Box::new(cond), Box::new(then), Box::new(els)), None)
    }

    /// Bits `high` down to `low`.
    pub fn slice(self, high: u32, low: u32, program: &Program) -> Expr {
        fold::node(Expr::Slice(Box::new(self), high, low), Some(program))
    }

    /// This above `low`.
    pub fn concat(self, low: Expr) -> Expr {
        fold::node(Expr::Concat(Box::new(self), Box::new(low)), None)
    }

    /// This cut, or widened with zeros, to `width` bits; nothing when it has that width.
    pub fn zext_to(self, width: u32, program: &Program) -> Expr {
        fold::node(Expr::ZeroExtend(Box::new(self), width), Some(program))
    }

    /// This cut, or widened with its sign, to `width` bits; nothing when it has that width.
    pub fn sext_to(self, width: u32, program: &Program) -> Expr {
        fold::node(Expr::SignExtend(Box::new(self), width), Some(program))
    }

    /// A truth value as one bit.
    pub fn bool_to_bits(self) -> Expr {
        fold::node(Expr::BoolToBits(Box::new(self)), None)
    }

    /// One bit (any width: not zero) as a truth value.
    pub fn bits_to_bool(self, program: &Program) -> Expr {
        let width = self.ty(program).bits().unwrap_or(1);
        self.ne(Expr::bits(width, 0))
    }

    /// With bits `high` down to `low` of this `Bits` replaced by `value`, whose width is `high - low + 1`.
    pub fn with_slice(self, high: u32, low: u32, value: Expr, program: &Program) -> Expr {
        let width = self.ty(program).bits().unwrap_or(high + 1);
        let mut result = value;
        if high + 1 < width {
            result = self.clone().slice(width - 1, high + 1, program).concat(result);
        }
        if low > 0 {
            result = result.concat(self.slice(low - 1, 0, program));
        }
        result
    }

    /// The constant that this is.
    pub fn as_const(&self) -> Option<&Bits> {
        match self {
            Expr::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// The type. Takes it for granted that the operands fit, as the verifier checks; a slot that is not in the
    /// program is a `Bool`.
    pub fn ty(&self, program: &Program) -> Type {
        self.type_with(Some(program)).unwrap_or(Type::Bool)
    }

    /// The type, as far as it shows without the program: `None` for a slot's.
    pub(crate) fn type_with(&self, program: Option<&Program>) -> Option<Type> {
        match self {
            Expr::Const(bits) => Some(Type::Bits(bits.width())),
            Expr::Bool(_) | Expr::IsValid(_) => Some(Type::Bool),
            Expr::Read(slot) => program?.slots.get(*slot).map(|s| s.ty),
            Expr::PacketLength | Expr::Cursor => Some(Type::Bits(32)),
            Expr::Unary(UnaryOp::Not, _) => Some(Type::Bool),
            Expr::Unary(_, operand) => operand.type_with(program),
            Expr::Binary(op, left, right) => match op.result() {
                OpResult::Bool => Some(Type::Bool),
                OpResult::Left => left.type_with(program),
                OpResult::Operands => left.type_with(program).or_else(|| right.type_with(program)),
            },
            Expr::Mux(_, then, els) => then.type_with(program).or_else(|| els.type_with(program)),
            Expr::Slice(_, high, low) => Some(Type::Bits(high.saturating_sub(*low).saturating_add(1))),
            Expr::Concat(high, low) => {
                let (high, low) = (high.type_with(program)?.bits()?, low.type_with(program)?.bits()?);
                Some(Type::Bits(high.saturating_add(low)))
            }
            Expr::ZeroExtend(_, width) | Expr::SignExtend(_, width) => Some(Type::Bits(*width)),
            Expr::BoolToBits(_) => Some(Type::Bits(1)),
        }
    }
}

/// Where the type of a binary operation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpResult {
    Bool,
    /// That of the left operand; the right is an amount.
    Left,
    /// That of both operands.
    Operands,
}

impl BinaryOp {
    pub(crate) fn result(self) -> OpResult {
        use BinaryOp::*;
        match self {
            Add | Sub | Mul | Div | Mod | AddSat | SubSat | AddSatSigned | SubSatSigned | And | Or | Xor => {
                OpResult::Operands
            }
            Shl | Shr | ShrSigned => OpResult::Left,
            Eq | Ne | Lt | Le | LtSigned | LeSigned | BoolAnd | BoolOr => OpResult::Bool,
        }
    }
}

/// Joins in order. Many are joined in groups, and these in turn, so that the tree grows in height with their logarithm.
fn pairwise(mut list: Vec<Expr>, none: Expr, join: fn(Expr, Expr) -> Expr) -> Expr {
    const GROUP: usize = 16;
    while list.len() > GROUP {
        let mut joined = Vec::with_capacity(list.len() / GROUP + 1);
        let mut rest = list.into_iter().peekable();
        while rest.peek().is_some() {
            joined.push(rest.by_ref().take(GROUP).fold(none.clone(), join));
        }
        list = joined;
    }
    list.into_iter().fold(none, join)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Home, Slot};

    fn program() -> (Program, SlotId) {
        let mut program = Program::default();
        let slot = program.slots.push(Slot { name: "a".into(), ty: Type::Bits(8), home: Home::Local });
        (program, slot)
    }

    #[test]
    fn constructors_fold() {
        let (p, a) = program();
        let a = || Expr::read(a);
        assert_eq!(Expr::all([]), Expr::Bool(true));
        assert_eq!(Expr::any([Expr::Bool(false), Expr::is_valid(HeaderId::from_u32(1))]).ty(&p), Type::Bool);
        assert_eq!(a().zext_to(8, &p), a());
        assert_eq!(a().slice(7, 0, &p), a());
        assert_eq!(Expr::bits(8, 3).add(Expr::bits(8, 4)), Expr::bits(8, 7));
        assert_eq!(Expr::mux(Expr::Bool(false), a(), Expr::bits(8, 0)), Expr::bits(8, 0));
        assert_eq!(Expr::bits(8, 0x5a).with_slice(3, 0, Expr::bits(4, 1), &p), Expr::bits(8, 0x51));
        assert_eq!(Expr::bits(8, 0x5a).with_slice(7, 4, Expr::bits(4, 1), &p), Expr::bits(8, 0x1a));
        assert_eq!(Expr::bits(8, 0x5a).with_slice(7, 0, Expr::bits(8, 1), &p), Expr::bits(8, 1));
        assert_eq!(Expr::bits(1, 1).bits_to_bool(&p), Expr::Bool(true));
    }

    #[test]
    fn types() {
        let (p, a) = program();
        let a = || Expr::read(a);
        assert_eq!(a().add(a()).ty(&p), Type::Bits(8));
        assert_eq!(a().eq(a()).ty(&p), Type::Bool);
        assert_eq!(a().concat(Expr::PacketLength).ty(&p), Type::Bits(40));
        assert_eq!(a().with_slice(4, 3, Expr::bits(2, 0), &p).ty(&p), Type::Bits(8));
        assert_eq!(Expr::binary(BinaryOp::Shl, a(), Expr::Cursor).ty(&p), Type::Bits(8));
        assert_eq!(Expr::read(SlotId::from_u32(9)).ty(&p), Type::Bool);
    }
}
