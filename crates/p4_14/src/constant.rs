//! Expressions whose value is known at compile time (specification section 1.5.1).

use millrace_syntax::p4_14::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use millrace_syntax::{Diagnostic, Diagnostics};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::codes;

/// The most bits that a constant is shifted by.
const MAX_SHIFT: u32 = 4096;

/// The value, exact; none if the expression is no constant.
pub(crate) fn evaluate(e: &Expr) -> Option<BigInt> {
    Some(match &e.kind {
        ExprKind::Int { value, .. } => value.clone(),
        ExprKind::Unary(UnaryOp::Negate, e) => -evaluate(e)?,
        ExprKind::Unary(UnaryOp::Complement, e) => -evaluate(e)? - 1,
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (evaluate(a)?, evaluate(b)?);
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div if !b.is_zero() => a / b,
                BinaryOp::Mod if !b.is_zero() => a % b,
                BinaryOp::Shl => a << b.to_u32().filter(|n| *n <= MAX_SHIFT)?,
                BinaryOp::Shr => a >> b.to_u32().filter(|n| *n <= MAX_SHIFT)?,
                BinaryOp::BitAnd => a & b,
                BinaryOp::BitOr => a | b,
                BinaryOp::BitXor => a ^ b,
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// The fewest bits that hold a value; a negative one has a bit more for its sign (specification section 1.5.1).
pub(crate) fn bits(value: &BigInt) -> u32 {
    let magnitude = u32::try_from(value.magnitude().bits()).unwrap_or(u32::MAX).max(1);
    if value.is_negative() { magnitude.saturating_add(1) } else { magnitude }
}

/// A number between bounds, or a finding.
pub(crate) fn number(e: &Expr, least: u32, most: u32, found: &mut Diagnostics) -> Option<u32> {
    let Some(value) = evaluate(e) else {
        let message = "a number that is known at compile time is expected here";
        found.push(Diagnostic::error(codes::NOT_CONSTANT, e.span, message));
        return None;
    };
    match value.to_u32() {
        Some(value) if (least..=most).contains(&value) => Some(value),
        _ => {
            let message = format!("a number from {least} to {most} is expected here, this is {value}");
            found.push(Diagnostic::error(codes::BAD_SIZE, e.span, message));
            None
        }
    }
}
