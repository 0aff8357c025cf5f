//! What can be assigned to (specification, "L-values").

use crate::check::Checker;
use crate::codes;
use crate::hir::{Direction, Expr, ExprKind, VarId, VarKind};
use millrace_syntax::{Diagnostic, Span};

/// Why something cannot be assigned to.
enum Obstacle {
    Var(VarId, &'static str),
    Other(Span, &'static str),
}

impl Checker<'_> {
    /// Whether an expression can be assigned to.
    pub(crate) fn is_assignable(&self, e: &Expr) -> bool {
        self.obstacle(e).is_none()
    }

    /// Reports an expression that cannot be assigned to.
    pub(crate) fn check_lvalue(&mut self, e: &Expr) -> bool {
        let Some(obstacle) = self.obstacle(e) else { return true };
        let found = Diagnostic::error(codes::NOT_LVALUE, e.span, "this cannot be assigned to");
        let found = match obstacle {
            Obstacle::Var(id, why) => {
                let var = &self.hir.vars[id];
                let mut found = found
                    .with_label(format!("`{}` is {why}", var.name))
                    .with_secondary(var.span, "declared here");
                if matches!(var.kind, VarKind::Param(_)) {
                    found = found.with_help("make it `inout`, or set a variable");
                }
                found
            }
            Obstacle::Other(span, why) if span == e.span => found.with_label(why),
            Obstacle::Other(span, why) => found.with_secondary(span, why),
        };
        self.report(found);
        false
    }

    fn obstacle(&self, e: &Expr) -> Option<Obstacle> {
        match &e.kind {
            ExprKind::Unknown => None,
            ExprKind::Var(id) => match self.hir.vars[*id].kind {
                VarKind::Param(Direction::Out | Direction::InOut) => None,
                VarKind::Param(Direction::In) => Some(Obstacle::Var(*id, "an `in` parameter")),
                VarKind::Param(Direction::None) => Some(Obstacle::Var(*id, "a parameter without direction")),
                VarKind::CtorParam => Some(Obstacle::Var(*id, "a constructor parameter")),
                VarKind::Local if self.here.constants.contains(id) => Some(Obstacle::Var(*id, "a constant")),
                VarKind::Local => None,
            },
            ExprKind::Field(base, _) | ExprKind::Slice(base, _, _) | ExprKind::Index(base, _) => {
                self.obstacle(base)
            }
            ExprKind::StackNext(base) | ExprKind::StackLast(base) => self.obstacle(base),
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::EnumMember(_)
            | ExprKind::ErrorMember(_)
            | ExprKind::MatchKind(_) => Some(Obstacle::Other(e.span, "this is a constant")),
            ExprKind::Call(_) => Some(Obstacle::Other(e.span, "this is the result of a call")),
            _ => Some(Obstacle::Other(e.span, "this is a value without a place")),
        }
    }
}
