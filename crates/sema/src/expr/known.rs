//! Which expressions are known at compile time (specification, "Compile-time known and local compile-time known values").

use crate::check::Checker;
use crate::hir::{Expr, ExprKind, VarKind};

impl Checker<'_> {
    /// Whether an expression is known at compile time, constructor parameters included.
    pub(crate) fn is_known(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::ErrorMember(_)
            | ExprKind::MatchKind(_)
            | ExprKind::EnumMember(_)
            | ExprKind::Instance(_)
            | ExprKind::InvalidHeader
            | ExprKind::Unknown => true,
            ExprKind::Var(id) => {
                self.hir.vars[*id].kind == VarKind::CtorParam || self.here.constants.contains(id)
            }
            ExprKind::Field(e, _) | ExprKind::Slice(e, _, _) | ExprKind::Unary(_, e) | ExprKind::Cast(e) => {
                self.is_known(e)
            }
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => self.is_known(a) && self.is_known(b),
            ExprKind::Mux(a, b, c) => self.is_known(a) && self.is_known(b) && self.is_known(c),
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                members.iter().all(|m| self.is_known(m))
            }
            ExprKind::This
            | ExprKind::Table(_)
            | ExprKind::StackNext(_)
            | ExprKind::StackLast(_)
            | ExprKind::StackLastIndex(_)
            | ExprKind::IsValid(_)
            | ExprKind::Call(_)
            | ExprKind::TableHit(_)
            | ExprKind::TableMiss(_) => false,
        }
    }
}
