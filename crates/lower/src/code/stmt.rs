//! Statements.

use millrace_pipeline::{BodyKind, Expr};
use millrace_sema::Constant;
use millrace_sema::hir::{self, Stmt, StmtKind};

use super::Code;
use crate::fail::{Lower, code, fail, internal};
use crate::storage::LValue;
use crate::survey;
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// Statements in order. What follows a jump is left out.
    pub(crate) fn stmts(&mut self, stmts: &'a [Stmt]) -> Lower<()> {
        for stmt in stmts {
            if !self.reachable() {
                break;
            }
            self.stmt(stmt)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Lower<()> {
        self.span = stmt.span;
        self.stand();
        self.descend(stmt.span)?;
        self.stmt_kind(stmt)?;
        self.ascend();
        Ok(())
    }

    fn stmt_kind(&mut self, stmt: &'a Stmt) -> Lower<()> {
        match &stmt.kind {
            StmtKind::Assign { lhs, rhs } => self.assignment(lhs, rhs),
            StmtKind::AssignOp { op, lhs, rhs } => {
                let target = self.access(lhs)?;
                let mut left = self.load(&target)?;
                if survey::has_effects(rhs) {
                    left = self.settle(left);
                }
                let right = self.eval(rhs)?;
                let value = self.operate(*op, left, right, lhs, rhs)?;
                self.store(&target, value)
            }
            StmtKind::Call(call) => self.call(call).map(|_| ()),
            StmtKind::Var(var, init) => self.declare(*var, init.as_ref()),
            StmtKind::Instance(instance) => self.object(*instance).map(|_| ()),
            StmtKind::If { cond, then, els } => {
                if let Ok(Constant::Bool(known)) = self.cx.constant(cond, self.scope()) {
                    return self.stmts(if known { then } else { els });
                }
                let cond = self.scalar(cond)?;
                let (_, other) = self.branch(cond);
                let join = self.block();
                self.stmts(then)?;
                self.body.goto(join);
                self.body.switch_to(other);
                self.stmts(els)?;
                self.continue_at(join);
                Ok(())
            }
            StmtKind::Block(stmts) => self.stmts(stmts),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    let result = self.frame().result.clone();
                    let value = self.eval(value)?;
                    if let Some(storage) = result {
                        self.store_in(&storage, value)?;
                    }
                }
                let ret = self.frame().ret;
                self.body.goto(ret);
                Ok(())
            }
            StmtKind::Exit => {
                if self.body.kind() == BodyKind::Parser {
                    return fail(code::PLACE, stmt.span, "`exit` cannot be used in a parser");
                }
                let target = self.exit_target()?;
                self.body.goto(target);
                Ok(())
            }
            StmtKind::SwitchAction { table, cases, default } => {
                self.switch_action(*table, cases, default.as_deref(), stmt.span)
            }
            StmtKind::SwitchValue { value, cases, default } => {
                self.switch_value(value, cases, default.as_deref())
            }
            StmtKind::For { init, cond, update, body } => self.for_loop(init, cond, update, body),
            StmtKind::ForIn { var, collection, body } => self.for_in(var, collection, body),
            StmtKind::Break | StmtKind::Continue => {
                let Some(inner) = self.frame().loops.last().copied() else {
                    return internal(stmt.span, "a jump without a loop");
                };
                let target =
                    if matches!(stmt.kind, StmtKind::Break) { inner.breaks } else { inner.continues };
                self.body.goto(target);
                Ok(())
            }
        }
    }

    fn assignment(&mut self, lhs: &'a hir::Expr, rhs: &'a hir::Expr) -> Lower<()> {
        let mut target = self.access(lhs)?;
        if let LValue::Choice(index, alternatives) = target {
            // An index that the right side may change keeps its value.
            let index = if survey::has_effects(rhs) { self.settle_expr(index) } else { index };
            target = LValue::Choice(index, alternatives);
        }
        let value = self.eval(rhs)?;
        self.store(&target, value)
    }

    /// A condition that is true or false where the code runs.
    pub(crate) fn condition(&mut self, cond: &'a hir::Expr) -> Lower<Expr> {
        match self.eval(cond)? {
            Value::Scalar(e) => Ok(e),
            _ => internal(cond.span, "a condition was expected here"),
        }
    }
}
