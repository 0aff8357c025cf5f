//! Names of keys for the control plane (specification, "Control plane names", "Keys").

use millrace_syntax::ast::{Expr, ExprKind, TypeKind};
use num_bigint::BigInt;

/// The name of a key that has no `@name`: the expression as it would be written, for the kinds of expressions that have
/// one. None for the others.
pub(super) fn key_name(e: &Expr) -> Option<String> {
    Some(match &e.kind {
        ExprKind::Name(path) if path.absolute => format!(".{}", path.name),
        ExprKind::Name(path) => path.name.to_string(),
        ExprKind::Type(ty) => match &ty.kind {
            TypeKind::Name(path) => path.name.to_string(),
            TypeKind::Error => "error".into(),
            _ => return None,
        },
        ExprKind::This => "this".into(),
        ExprKind::Member(base, name) => format!("{}.{name}", key_name(base)?),
        ExprKind::Index(base, index) => format!("{}[{}]", key_name(base)?, key_name(index)?),
        ExprKind::Slice { base, high, low } => {
            format!("{}[{}:{}]", key_name(base)?, key_name(high)?, key_name(low)?)
        }
        ExprKind::PlusSlice { base, low, width } => {
            let (low, width) = (number(low)?, number(width)?);
            format!("{}[{}:{low}]", key_name(base)?, &low + width - BigInt::from(1))
        }
        ExprKind::Int(literal) => literal.value.to_string(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Call { callee, args, .. } if args.is_empty() => match &callee.kind {
            ExprKind::Member(base, name) => format!("{}.{name}()", key_name(base)?),
            _ => return None,
        },
        ExprKind::Binary(op, left, right) if op.symbol() == "&" => {
            format!("{} & {}", key_name(left)?, key_name(right)?)
        }
        _ => return None,
    })
}

fn number(e: &Expr) -> Option<BigInt> {
    match &e.kind {
        ExprKind::Int(literal) => Some(literal.value.clone()),
        _ => None,
    }
}
