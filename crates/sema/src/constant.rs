//! Compile-time values, and their evaluation over typed expressions.
//!
//! Used twice: while checking (widths, constants, labels) and by `lower` when it instantiates parsers and controls, where
//! `lookup` gives the values of constructor parameters.

use crate::hir::{BinaryOp, Expr, ExprKind, InstanceId, Program, Ty, TyKind, UnaryOp, VarId};
use crate::limits::{MAX_INT_BITS, MAX_INT_SHIFT, MAX_STRING_BYTES};
use millrace_syntax::Span;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

/// A value known at compile time.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A number of `bit`, `int`, a serializable enum or a new type over them, within the range of its type.
    Int(BigInt),
    /// A truth value.
    Bool(bool),
    /// A string.
    String(String),
    /// An index in [`Program::errors`].
    Error(usize),
    /// An index in [`Program::match_kinds`].
    MatchKind(usize),
    /// An index in the members of a plain enum.
    EnumMember(usize),
    /// A structure, header (valid), tuple, list or stack. A stack may have fewer members than its size: the headers after
    /// are invalid.
    Aggregate(Vec<Constant>),
    /// An invalid header.
    InvalidHeader,
    /// An instance.
    Instance(InstanceId),
}

/// Why an expression has no compile-time value.
#[derive(Clone, Debug)]
pub struct NotConstant {
    /// The part that is not known, or fails (division by zero, a shift too far).
    pub span: Span,
    /// What is wrong with it.
    pub message: String,
}

/// Evaluates a typed expression; `lookup` gives the values of variables that are known. Errors name the part that is not
/// known at compile time or has no value (division by zero, an index out of bounds).
pub fn evaluate(
    program: &Program,
    expr: &Expr,
    lookup: &dyn Fn(VarId) -> Option<Constant>,
) -> Result<Constant, NotConstant> {
    Evaluator { program, lookup }.value(expr)
}

/// The number that is left of `value` in a type: modulo 2^W for `bit<W>` and `int<W>`, the value itself for `int`.
pub(crate) fn wrap(value: &BigInt, kind: &TyKind) -> BigInt {
    match *kind {
        TyKind::Bits(w) => value.mod_floor(&(BigInt::from(1) << w)),
        TyKind::SignedBits(0) => BigInt::ZERO,
        TyKind::SignedBits(w) => {
            let modulus = BigInt::from(1) << w;
            let low = value.mod_floor(&modulus);
            if low >= BigInt::from(1) << (w - 1) { low - modulus } else { low }
        }
        _ => value.clone(),
    }
}

struct Evaluator<'p> {
    program: &'p Program,
    lookup: &'p dyn Fn(VarId) -> Option<Constant>,
}

impl Evaluator<'_> {
    fn value(&self, e: &Expr) -> Result<Constant, NotConstant> {
        let fail = |message: &str| Err(NotConstant { span: e.span, message: message.into() });
        Ok(match &e.kind {
            ExprKind::Int(value) => Constant::Int(value.clone()),
            ExprKind::Bool(value) => Constant::Bool(*value),
            ExprKind::String(value) => Constant::String(value.clone()),
            ExprKind::ErrorMember(index) => Constant::Error(*index),
            ExprKind::MatchKind(index) => Constant::MatchKind(*index),
            ExprKind::EnumMember(index) => self.enum_member(e.ty, *index),
            ExprKind::Var(id) => match (self.lookup)(*id) {
                Some(value) => value,
                None => return fail("the value of this variable is not known at compile time"),
            },
            ExprKind::Instance(id) => Constant::Instance(*id),
            ExprKind::InvalidHeader => Constant::InvalidHeader,
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                Constant::Aggregate(members.iter().map(|m| self.value(m)).collect::<Result<_, _>>()?)
            }
            ExprKind::Field(base, index) => match self.value(base)? {
                Constant::Aggregate(mut members) if *index < members.len() => members.swap_remove(*index),
                _ => return fail("this member has no value at compile time"),
            },
            ExprKind::Index(base, index) => match (self.value(base)?, self.value(index)?) {
                (Constant::Aggregate(mut members), Constant::Int(index)) => match index.to_usize() {
                    Some(i) if i < members.len() => members.swap_remove(i),
                    _ => return fail("this index is out of bounds"),
                },
                _ => return fail("this element has no value at compile time"),
            },
            ExprKind::Slice(base, high, low) => match self.value(base)? {
                Constant::Int(value) => {
                    let width = high.saturating_sub(*low).saturating_add(1);
                    Constant::Int(wrap(&(value >> *low), &TyKind::Bits(width)))
                }
                _ => return fail("this has no bits at compile time"),
            },
            ExprKind::Unary(op, operand) => match (op, self.value(operand)?) {
                (UnaryOp::Not, Constant::Bool(value)) => Constant::Bool(!value),
                (UnaryOp::BitNot, Constant::Int(value)) => Constant::Int(self.wrap(-value - 1, e.ty)),
                (UnaryOp::Neg, Constant::Int(value)) => Constant::Int(self.wrap(-value, e.ty)),
                _ => return fail("this operation has no value at compile time"),
            },
            ExprKind::Binary(op, left, right) => return self.binary(e, *op, left, right),
            ExprKind::Mux(cond, then, els) => match self.value(cond)? {
                Constant::Bool(true) => self.value(then)?,
                Constant::Bool(false) => self.value(els)?,
                _ => return fail("this condition has no value at compile time"),
            },
            ExprKind::Cast(operand) => {
                let value = self.value(operand)?;
                match self.cast(value, operand.ty, e.ty) {
                    Some(value) => value,
                    None => return fail("this conversion has no value at compile time"),
                }
            }
            ExprKind::This
            | ExprKind::Table(_)
            | ExprKind::StackNext(_)
            | ExprKind::StackLast(_)
            | ExprKind::StackLastIndex(_)
            | ExprKind::IsValid(_)
            | ExprKind::InTurn(_)
            | ExprKind::Call(_)
            | ExprKind::TableHit(_)
            | ExprKind::TableMiss(_)
            | ExprKind::Unknown => return fail("this is not known at compile time"),
        })
    }

    fn representation(&self, ty: Ty) -> &TyKind {
        representation(self.program, ty)
    }

    fn wrap(&self, value: BigInt, ty: Ty) -> BigInt {
        wrap(&value, self.representation(ty))
    }

    fn enum_member(&self, ty: Ty, index: usize) -> Constant {
        if let TyKind::Enum(id) = self.program.types.kind(ty)
            && let Some(member) = self.program.types.enums[*id].members.get(index)
            && let Some(value) = &member.value
        {
            return Constant::Int(value.clone());
        }
        Constant::EnumMember(index)
    }

    fn cast(&self, value: Constant, from: Ty, to: Ty) -> Option<Constant> {
        Some(match (value, self.representation(to)) {
            (Constant::Int(v), TyKind::Bool) => Constant::Bool(!v.is_zero()),
            (Constant::Int(v), TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Int) => {
                Constant::Int(self.wrap(v, to))
            }
            (Constant::Int(v), TyKind::Varbit(_)) if v.is_zero() => return None,
            (Constant::Bool(v), TyKind::Bits(_) | TyKind::SignedBits(_)) => {
                Constant::Int(BigInt::from(u8::from(v)))
            }
            (value, _) if from == to || matches!(value, Constant::Bool(_)) => value,
            _ => return None,
        })
    }

    fn binary(&self, e: &Expr, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Constant, NotConstant> {
        use BinaryOp as B;
        let fail = |span: Span, message: &str| Err(NotConstant { span, message: message.into() });
        let l = self.value(left)?;
        match (op, &l) {
            (B::BoolAnd, Constant::Bool(false)) => return Ok(Constant::Bool(false)),
            (B::BoolOr, Constant::Bool(true)) => return Ok(Constant::Bool(true)),
            _ => {}
        }
        let r = self.value(right)?;
        match (op, l, r) {
            (B::BoolAnd | B::BoolOr, _, Constant::Bool(r)) => Ok(Constant::Bool(r)),
            (B::Eq, l, r) => Ok(Constant::Bool(l == r)),
            (B::Ne, l, r) => Ok(Constant::Bool(l != r)),
            (B::Concat, Constant::String(l), Constant::String(r)) if l.len() + r.len() > MAX_STRING_BYTES => {
                fail(e.span, "this string is too long")
            }
            (B::Concat, Constant::String(l), Constant::String(r)) => Ok(Constant::String(l + &r)),
            (op, Constant::Int(l), Constant::Int(r)) => {
                if l.bits() > MAX_INT_BITS || r.bits() > MAX_INT_BITS {
                    return fail(e.span, "this number is too large to compute with");
                }
                match op {
                    B::Lt => Ok(Constant::Bool(l < r)),
                    B::Le => Ok(Constant::Bool(l <= r)),
                    B::Gt => Ok(Constant::Bool(l > r)),
                    B::Ge => Ok(Constant::Bool(l >= r)),
                    B::Div | B::Mod if r.is_zero() => fail(right.span, "division by zero"),
                    B::Div | B::Mod if l.sign() == Sign::Minus || r.sign() == Sign::Minus => {
                        fail(e.span, "division is not defined for negative numbers")
                    }
                    B::Shl | B::Shr => self.shift(e, op, l, r, right.span),
                    _ => Ok(Constant::Int(self.arithmetic(e, op, l, r, left.ty, right.ty))),
                }
            }
            _ => fail(e.span, "this operation has no value at compile time"),
        }
    }

    fn arithmetic(&self, e: &Expr, op: BinaryOp, l: BigInt, r: BigInt, left_ty: Ty, right_ty: Ty) -> BigInt {
        use BinaryOp as B;
        let bounds = crate::constant::range(self.representation(e.ty));
        let clamp = |v: BigInt| match &bounds {
            Some((low, high)) => v.max(low.clone()).min(high.clone()),
            None => v,
        };
        let unsigned = |v: BigInt, ty: Ty| match self.representation(ty) {
            TyKind::SignedBits(w) => wrap(&v, &TyKind::Bits(*w)),
            _ => v,
        };
        let exact = match op {
            B::Add => l + r,
            B::Sub => l - r,
            B::Mul => l * r,
            B::Div => l / r,
            B::Mod => l % r,
            B::AddSat => clamp(l + r),
            B::SubSat => clamp(l - r),
            B::And => l & r,
            B::Or => l | r,
            B::Xor => l ^ r,
            B::Concat => match self.representation(right_ty) {
                TyKind::Bits(w) | TyKind::SignedBits(w) => {
                    (unsigned(l, left_ty) << *w) | unsigned(r, right_ty)
                }
                _ => l,
            },
            _ => l,
        };
        self.wrap(exact, e.ty)
    }

    fn shift(&self, e: &Expr, op: BinaryOp, l: BigInt, r: BigInt, at: Span) -> Result<Constant, NotConstant> {
        if r.sign() == Sign::Minus {
            return Err(NotConstant {
                span: at,
                message: "a shift by a negative amount is not defined".into(),
            });
        }
        // Further shifts of fixed-width numbers come to the same as one by their whole width.
        let width = match self.representation(e.ty) {
            TyKind::Bits(w) | TyKind::SignedBits(w) => *w,
            _ => match r.to_u32().filter(|&r| r <= MAX_INT_SHIFT) {
                Some(amount) => amount,
                None => {
                    let message = format!("a shift of an `int` is limited to {MAX_INT_SHIFT} bits");
                    return Err(NotConstant { span: at, message });
                }
            },
        };
        let amount = r.to_u32().map_or(width, |r| r.min(width));
        let exact = if op == BinaryOp::Shl { l << amount } else { l >> amount };
        Ok(Constant::Int(self.wrap(exact, e.ty)))
    }
}

/// The shape of a type below new types and serializable enumerations.
pub(crate) fn representation(program: &Program, ty: Ty) -> &TyKind {
    let types = &program.types;
    let mut kind = types.kind(ty);
    loop {
        kind = match kind {
            TyKind::New(id) => types.kind(types.new_types[*id].base),
            TyKind::Enum(id) => match types.enums[*id].repr {
                Some(repr) => types.kind(repr),
                None => return kind,
            },
            _ => return kind,
        };
    }
}

/// The least and the greatest number of a fixed-width type.
pub(crate) fn range(kind: &TyKind) -> Option<(BigInt, BigInt)> {
    let one = BigInt::from(1);
    match *kind {
        TyKind::Bits(w) => Some((BigInt::ZERO, (one << w) - 1)),
        TyKind::SignedBits(0) => Some((BigInt::ZERO, BigInt::ZERO)),
        TyKind::SignedBits(w) => Some((-(BigInt::from(1) << (w - 1)), (one << (w - 1)) - 1)),
        _ => None,
    }
}
