//! Operators.

use millrace_pipeline::{self as ir, Bits, Expr};
use millrace_sema::hir::{self, BinaryOp, UnaryOp};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::Code;
use crate::fail::{Lower, internal};
use crate::types;
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// A unary operation.
    pub(crate) fn unary(&mut self, op: UnaryOp, value: Value, expr: &'a hir::Expr) -> Lower<Value> {
        let op = match op {
            UnaryOp::Not => ir::UnaryOp::Not,
            UnaryOp::BitNot => ir::UnaryOp::BitNot,
            UnaryOp::Neg => ir::UnaryOp::Neg,
        };
        match value {
            Value::Unit => Ok(Value::Unit),
            Value::Scalar(e) => Ok(Value::Scalar(Expr::unary(op, e))),
            Value::Int(n) if op == ir::UnaryOp::Neg => Ok(Value::Int(-n)),
            _ => internal(expr.span, "a number or truth value was expected here"),
        }
    }

    /// A binary operation on values; `a` and `b` are the expressions that they come from.
    pub(crate) fn operate(
        &mut self,
        op: BinaryOp,
        left: Value,
        right: Value,
        a: &'a hir::Expr,
        b: &'a hir::Expr,
    ) -> Lower<Value> {
        match op {
            BinaryOp::Eq => return Ok(Value::Scalar(self.equality(left, right)?)),
            BinaryOp::Ne => return Ok(Value::Scalar(self.equality(left, right)?.not())),
            BinaryOp::Concat => {
                return Ok(match (left, right) {
                    (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(a.concat(b)),
                    (Value::Unit, other) | (other, _) => other,
                });
            }
            _ => {}
        }
        let signed = types::is_signed(&self.cx.hir.types, a.ty);
        let (left, right) = match (left, right) {
            (Value::Int(x), Value::Int(y)) => return self.operate_int(op, x, y, a.span),
            (Value::Unit, _) => {
                return Ok(match op {
                    BinaryOp::Le | BinaryOp::Ge => Value::Scalar(Expr::Bool(true)),
                    BinaryOp::Lt | BinaryOp::Gt => Value::Scalar(Expr::Bool(false)),
                    _ => Value::Unit,
                });
            }
            // An `int` next to a number of fixed width has that width, but for shifts.
            (Value::Int(x), Value::Scalar(y)) if !matches!(op, BinaryOp::Shl | BinaryOp::Shr) => {
                let width = self.type_of(&y).bits().unwrap_or(1);
                (Expr::Const(Bits::from_bigint(width, &x)), Value::Scalar(y))
            }
            (left, right) => (self.as_scalar(left, a)?, right),
        };
        let right = match (op, right) {
            (BinaryOp::Shl | BinaryOp::Shr, Value::Int(amount)) => {
                // More than any width is as good as any more.
                let amount = amount.to_u32().unwrap_or(u32::MAX);
                Expr::bits(32, u128::from(amount))
            }
            (_, Value::Int(n)) => Expr::Const(Bits::from_bigint(self.type_of(&left).bits().unwrap_or(1), &n)),
            (_, right) => self.as_scalar(right, b)?,
        };
        use ir::BinaryOp as I;
        let (op, swap) = match op {
            BinaryOp::Add => (I::Add, false),
            BinaryOp::Sub => (I::Sub, false),
            BinaryOp::Mul => (I::Mul, false),
            BinaryOp::Div => (I::Div, false),
            BinaryOp::Mod => (I::Mod, false),
            BinaryOp::AddSat => (if signed { I::AddSatSigned } else { I::AddSat }, false),
            BinaryOp::SubSat => (if signed { I::SubSatSigned } else { I::SubSat }, false),
            BinaryOp::And => (I::And, false),
            BinaryOp::Or => (I::Or, false),
            BinaryOp::Xor => (I::Xor, false),
            BinaryOp::Shl => (I::Shl, false),
            BinaryOp::Shr => (if signed { I::ShrSigned } else { I::Shr }, false),
            BinaryOp::Lt => (if signed { I::LtSigned } else { I::Lt }, false),
            BinaryOp::Le => (if signed { I::LeSigned } else { I::Le }, false),
            BinaryOp::Gt => (if signed { I::LtSigned } else { I::Lt }, true),
            BinaryOp::Ge => (if signed { I::LeSigned } else { I::Le }, true),
            BinaryOp::BoolAnd => (I::BoolAnd, false),
            BinaryOp::BoolOr => (I::BoolOr, false),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Concat => {
                return internal(a.span, "an operator met twice");
            }
        };
        Ok(Value::Scalar(if swap { Expr::binary(op, right, left) } else { Expr::binary(op, left, right) }))
    }

    fn equality(&mut self, left: Value, right: Value) -> Lower<Expr> {
        let fit = |code: &Self, n: &BigInt, e: &Expr| {
            Value::Scalar(Expr::Const(Bits::from_bigint(code.type_of(e).bits().unwrap_or(1), n)))
        };
        let (left, right) = match (left, right) {
            (Value::Int(n), Value::Scalar(e)) => (fit(self, &n, &e), Value::Scalar(e)),
            (Value::Scalar(e), Value::Int(n)) => {
                let n = fit(self, &n, &e);
                (Value::Scalar(e), n)
            }
            both => both,
        };
        let scalars = matches!((&left, &right), (Value::Scalar(_), _) | (_, Value::Scalar(_)));
        let equal = Value::equal(&left, &right);
        let most = ir::limits::MAX_EXPR_DEPTH / 2;
        if !scalars && equal.depth() > most {
            let message =
                format!("the values compared here are nested so deep that it takes more than {most} levels");
            return crate::fail::fail(crate::fail::code::LIMIT, self.span, message);
        }
        Ok(equal)
    }

    /// `int` at run time is only ever a constant that depended on a constructor parameter.
    fn operate_int(
        &mut self,
        op: BinaryOp,
        a: BigInt,
        b: BigInt,
        span: millrace_syntax::Span,
    ) -> Lower<Value> {
        let zero = BigInt::ZERO;
        let shift = || b.to_u32().filter(|s| *s <= ir::limits::MAX_WIDTH);
        Ok(match op {
            BinaryOp::Add | BinaryOp::AddSat => Value::Int(a + b),
            BinaryOp::Sub | BinaryOp::SubSat => Value::Int(a - b),
            BinaryOp::Mul => Value::Int(a * b),
            BinaryOp::Div if b != zero => Value::Int(a / b),
            BinaryOp::Mod if b.is_positive() => Value::Int(a % b),
            BinaryOp::And => Value::Int(a & b),
            BinaryOp::Or => Value::Int(a | b),
            BinaryOp::Xor => Value::Int(a ^ b),
            BinaryOp::Shl | BinaryOp::Shr => match shift() {
                Some(amount) if op == BinaryOp::Shl => Value::Int(a << amount),
                Some(amount) => Value::Int(a >> amount),
                None => return crate::fail::fail(crate::fail::code::CONSTANT, span, "this shift is too far"),
            },
            BinaryOp::Lt => Value::Scalar(Expr::Bool(a < b)),
            BinaryOp::Le => Value::Scalar(Expr::Bool(a <= b)),
            BinaryOp::Gt => Value::Scalar(Expr::Bool(a > b)),
            BinaryOp::Ge => Value::Scalar(Expr::Bool(a >= b)),
            _ => return crate::fail::fail(crate::fail::code::CONSTANT, span, "this has no value"),
        })
    }
}
