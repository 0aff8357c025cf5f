//! Which expressions are known at compile time (specification, "Compile-time known and local compile-time known values").

use crate::check::Checker;
use crate::hir::{Call, Callee, Direction, Expr, ExprKind, TyKind, VarKind};

impl Checker<'_> {
    /// Whether an expression is known at compile time, constructor parameters included.
    pub(crate) fn is_known(&self, e: &Expr) -> bool {
        self.is_made_of(e, false)
    }

    /// Whether an expression may be passed for a parameter without direction: it is known at compile time, or is one
    /// itself.
    pub(crate) fn is_undirected(&self, e: &Expr) -> bool {
        self.is_made_of(e, true)
    }

    fn is_made_of(&self, e: &Expr, undirected: bool) -> bool {
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
                let kind = self.hir.vars[*id].kind;
                kind == VarKind::CtorParam
                    || self.here.constants.contains(id)
                    || (undirected && kind == VarKind::Param(Direction::None))
            }
            ExprKind::Field(e, _) | ExprKind::Slice(e, _, _) | ExprKind::Unary(_, e) | ExprKind::Cast(e) => {
                self.is_made_of(e, undirected)
            }
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
                self.is_made_of(a, undirected) && self.is_made_of(b, undirected)
            }
            ExprKind::Mux(a, b, c) => {
                self.is_made_of(a, undirected)
                    && self.is_made_of(b, undirected)
                    && self.is_made_of(c, undirected)
            }
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                members.iter().all(|m| self.is_made_of(m, undirected))
            }
            ExprKind::InTurn(members) => members.iter().all(|(_, m)| self.is_made_of(m, undirected)),
            ExprKind::Call(call) => self.is_pure_call(call, undirected),
            ExprKind::This
            | ExprKind::Table(_)
            | ExprKind::StackNext(_)
            | ExprKind::StackLast(_)
            | ExprKind::StackLastIndex(_)
            | ExprKind::IsValid(_)
            | ExprKind::TableHit(_)
            | ExprKind::TableMiss(_) => false,
        }
    }

    /// Whether part of an expression had an error, so that nothing can be said about the whole.
    pub(crate) fn is_damaged(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Unknown => true,
            ExprKind::Field(a, _)
            | ExprKind::Slice(a, _, _)
            | ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::IsValid(a)
            | ExprKind::StackNext(a)
            | ExprKind::StackLast(a)
            | ExprKind::StackLastIndex(a) => self.is_damaged(a),
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => self.is_damaged(a) || self.is_damaged(b),
            ExprKind::Mux(a, b, c) => self.is_damaged(a) || self.is_damaged(b) || self.is_damaged(c),
            ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => {
                members.iter().any(|m| self.is_damaged(m))
            }
            ExprKind::InTurn(members) => members.iter().any(|(_, m)| self.is_damaged(m)),
            _ => self.is_unknown(e.ty),
        }
    }

    /// Calls of extern functions that make objects, and of those annotated `@pure`, with known arguments.
    fn is_pure_call(&self, call: &Call, undirected: bool) -> bool {
        let Callee::ExternFunction(id) = call.callee else { return false };
        let makes_object = matches!(self.kind(call.ty), TyKind::Extern(..));
        let pure = self.hir.extern_functions[id].annotations.iter().any(|a| a.name.as_str() == "pure");
        (makes_object || pure)
            && call.args.iter().all(|a| a.value.as_ref().is_none_or(|v| self.is_made_of(v, undirected)))
    }
}
