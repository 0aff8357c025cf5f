//! Folding: an expression whose parts are all literals becomes a literal.

use crate::check::Checker;
use crate::constant::{Constant, evaluate};
use crate::hir::{Expr, ExprKind, Ty, TyKind};
use crate::limits::{MAX_INT_BITS, MAX_STRING_BYTES};
use millrace_syntax::Span;

/// Whether an expression is a literal through and through.
pub(crate) fn is_literal(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_)
        | ExprKind::Bool(_)
        | ExprKind::String(_)
        | ExprKind::ErrorMember(_)
        | ExprKind::MatchKind(_)
        | ExprKind::EnumMember(_)
        | ExprKind::InvalidHeader => true,
        ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => members.iter().all(is_literal),
        _ => false,
    }
}

/// The number of members of a literal, those of members included; 0 of what has none.
pub(crate) fn literal_nodes(e: &Expr) -> usize {
    match &e.kind {
        ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
            members.iter().map(|m| literal_nodes(m).saturating_add(1)).fold(0, usize::saturating_add)
        }
        _ => 0,
    }
}

impl Checker<'_> {
    /// The literal that an expression over literals comes to; anything else as it is.
    pub(crate) fn fold(&mut self, e: Expr) -> Expr {
        let ready = match &e.kind {
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Field(a, _) | ExprKind::Slice(a, _, _) => {
                is_literal(a)
            }
            ExprKind::Binary(_, a, b) => is_literal(a) && is_literal(b) && small(a) && small(b),
            ExprKind::Index(a, b) => is_literal(a) && is_literal(b),
            ExprKind::Mux(a, b, c) => is_literal(a) && is_literal(b) && is_literal(c),
            _ => false,
        };
        if !ready {
            return e;
        }
        match evaluate(&self.hir, &e, &|_| None) {
            Ok(value) => {
                if let Constant::Int(number) = &value {
                    // What it takes to compute it, and to keep it.
                    self.effort.spend(number.bits() as usize / 8);
                }
                self.literal(value, e.ty, e.span).unwrap_or(e)
            }
            Err(_) => e,
        }
    }

    /// A constant as a literal of a type.
    fn literal(&mut self, value: Constant, ty: Ty, span: Span) -> Option<Expr> {
        let kind = match value {
            Constant::Int(value) => ExprKind::Int(value),
            Constant::Bool(value) => ExprKind::Bool(value),
            Constant::String(value) => ExprKind::String(value),
            Constant::Error(index) => ExprKind::ErrorMember(index),
            Constant::MatchKind(index) => ExprKind::MatchKind(index),
            Constant::EnumMember(index) => ExprKind::EnumMember(index),
            Constant::InvalidHeader => ExprKind::InvalidHeader,
            Constant::Instance(_) => return None,
            Constant::Aggregate(members) => {
                let types: Vec<Ty> = match self.kind(ty) {
                    TyKind::Tuple(parts) => parts,
                    TyKind::List(t) => vec![t; members.len()],
                    TyKind::Stack(t, _) => vec![t; members.len()],
                    TyKind::Struct(id) => self.hir.types.structs[id].fields.iter().map(|f| f.ty).collect(),
                    _ => return None,
                };
                let members: Option<Vec<Expr>> =
                    members.into_iter().zip(types).map(|(m, t)| self.literal(m, t, span)).collect();
                match self.kind(ty) {
                    TyKind::Stack(..) => ExprKind::StackLiteral(members?),
                    _ => ExprKind::Aggregate(members?),
                }
            }
        };
        Some(Expr { kind, ty, span })
    }
}

/// Whether a number is small enough to compute with at compile time.
fn small(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(value) => value.bits() <= MAX_INT_BITS,
        ExprKind::String(text) => text.len() <= MAX_STRING_BYTES / 2,
        _ => true,
    }
}
