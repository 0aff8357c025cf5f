//! Names of keys for the control plane (specification, "Control plane names", "Keys").
//!
//! The specification suggests the text of the expression. Where it leaves the form open, or p4c and bmv2 (and with them
//! P4Info, runtime commands and STF) say something else, the name is theirs: numbers keep the base that they are written
//! in, fields are named by their `@name`, and the validity of a header is `h.$valid$`.

use crate::annotation::name_of;
use crate::check::Checker;
use crate::constant::wrap;
use crate::hir::{self, TyKind};
use crate::scope::Entity;
use millrace_syntax::ast::{Expr, ExprKind, IntLiteral, Name, TypeKind};
use num_bigint::BigInt;
use num_traits::Signed;

impl Checker<'_> {
    /// The name of a key that has no `@name`, for the kinds of expressions that have one; none for the others. `typed` is
    /// what became of the expression: it knows the fields.
    pub(super) fn key_name(&self, e: &Expr, typed: &hir::Expr) -> Option<String> {
        match (&e.kind, &typed.kind) {
            (ExprKind::Call { callee, .. }, hir::ExprKind::IsValid(header)) => match &callee.kind {
                ExprKind::Member(base, _) => Some(format!("{}.$valid$", self.part_name(base, Some(header))?)),
                _ => None,
            },
            _ => self.part_name(e, Some(typed)),
        }
    }

    fn part_name(&self, e: &Expr, typed: Option<&hir::Expr>) -> Option<String> {
        use hir::ExprKind as H;
        let typed = typed.map(without_casts);
        let kind = typed.map(|t| &t.kind);
        Some(match &e.kind {
            ExprKind::Name(path) => match self.scopes.lookup(path.name.as_str(), path.absolute) {
                Some((Entity::Const(value), _)) => match &value.kind {
                    H::Int(value) => value.to_string(),
                    H::Bool(value) => value.to_string(),
                    _ => path.name.to_string(),
                },
                _ if path.absolute => format!(".{}", path.name),
                _ => path.name.to_string(),
            },
            ExprKind::Type(ty) => match &ty.kind {
                TypeKind::Name(path) => path.name.to_string(),
                TypeKind::Error => "error".into(),
                _ => return None,
            },
            ExprKind::This => "this".into(),
            ExprKind::Member(base, name) => {
                let below = match kind {
                    Some(
                        H::Field(below, _)
                        | H::StackNext(below)
                        | H::StackLast(below)
                        | H::StackLastIndex(below),
                    ) => Some(below.as_ref()),
                    _ => None,
                };
                let base = self.part_name(base, below)?;
                let name = self.field_name(name, kind);
                match name.strip_prefix('.') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("{base}.{name}"),
                }
            }
            ExprKind::Index(base, index) => {
                let (below, at) = match kind {
                    Some(H::Index(below, at)) => (Some(below.as_ref()), Some(at.as_ref())),
                    Some(H::Field(below, _)) => (Some(below.as_ref()), None),
                    _ => (None, None),
                };
                format!("{}[{}]", self.part_name(base, below)?, self.part_name(index, at)?)
            }
            ExprKind::Slice { base, high, low } => {
                let base = self.part_name(base, sliced(kind))?;
                format!("{base}[{}:{}]", self.part_name(high, None)?, self.part_name(low, None)?)
            }
            ExprKind::PlusSlice { base, low, width } => {
                let (low, width) = (number(low)?, number(width)?);
                let base = self.part_name(base, sliced(kind))?;
                format!("{base}[{}:{low}]", &low + width - BigInt::from(1))
            }
            ExprKind::Int(literal) => in_its_base(literal),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Call { callee, args, .. } if args.is_empty() => match &callee.kind {
                ExprKind::Member(base, name) => format!("{}.{name}()", self.part_name(base, None)?),
                _ => return None,
            },
            ExprKind::Binary(op, left, right) if op.symbol() == "&" => {
                let (a, b) = match kind {
                    Some(H::Binary(hir::BinaryOp::And, a, b)) => (Some(a.as_ref()), Some(b.as_ref())),
                    _ => (None, None),
                };
                format!("{} & {}", self.part_name(left, a)?, self.part_name(right, b)?)
            }
            _ => return None,
        })
    }

    /// The name of a member: its `@name` if it is a field that has one.
    fn field_name(&self, written: &Name, kind: Option<&hir::ExprKind>) -> String {
        let given = match kind {
            Some(hir::ExprKind::Field(base, index)) => match self.kind(base.ty) {
                TyKind::Struct(id) => self.hir.types.structs[id].fields.get(*index),
                _ => None,
            },
            _ => None,
        };
        given.and_then(|field| name_of(&field.annotations)).unwrap_or_else(|| written.to_string())
    }
}

/// Implied casts leave no trace in a name; written ones have none anyway.
fn without_casts(mut e: &hir::Expr) -> &hir::Expr {
    while let hir::ExprKind::Cast(inner) = &e.kind {
        e = inner;
    }
    e
}

fn sliced(kind: Option<&hir::ExprKind>) -> Option<&hir::Expr> {
    match kind {
        Some(hir::ExprKind::Slice(base, ..)) => Some(base),
        _ => None,
    }
}

fn number(e: &Expr) -> Option<BigInt> {
    match &e.kind {
        ExprKind::Int(literal) => Some(literal.value.clone()),
        _ => None,
    }
}

/// A number as it is written, but for its width: `8w0x3648` is `0x48`.
fn in_its_base(literal: &IntLiteral) -> String {
    let value = match literal.width {
        Some(width) if width.signed => wrap(&literal.value, &TyKind::SignedBits(width.bits)),
        Some(width) => wrap(&literal.value, &TyKind::Bits(width.bits)),
        None => literal.value.clone(),
    };
    let (prefix, radix) = match literal.radix {
        2 => ("0b", 2),
        8 => ("0o", 8),
        16 => ("0x", 16),
        _ => ("", 10),
    };
    let sign = if value.is_negative() { "-" } else { "" };
    format!("{sign}{prefix}{}", value.abs().to_str_radix(radix))
}
