//! Statements.

mod assign;
mod loops;
mod switch;

use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::expr::Why;
use crate::hir::{Expr, ExprKind, Stmt, StmtKind};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// Statements in the innermost scope.
    pub(crate) fn statements(&mut self, statements: &'a [ast::Stmt]) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(statements.len());
        for statement in statements {
            self.statement(statement, &mut out);
        }
        out
    }

    /// A block in a scope of its own.
    pub(crate) fn block_statements(&mut self, block: &'a ast::Block) -> Vec<Stmt> {
        self.check_annotations(&block.annotations);
        self.scopes.push();
        let out = self.statements(&block.statements);
        self.scopes.pop();
        out
    }

    /// One statement as a list, in a scope of its own.
    fn scoped(&mut self, statement: &'a ast::Stmt) -> Vec<Stmt> {
        if let ast::StmtKind::Block(block) = &statement.kind {
            return self.block_statements(block);
        }
        self.scopes.push();
        let mut out = Vec::new();
        self.statement(statement, &mut out);
        self.scopes.pop();
        out
    }

    fn statement(&mut self, statement: &'a ast::Stmt, out: &mut Vec<Stmt>) {
        let span = statement.span;
        let kind = match &statement.kind {
            ast::StmtKind::Empty => return,
            ast::StmtKind::Assign { op, target, value } => match self.assignment(*op, target, value, span) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::Call(call) => match self.call_statement(call) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::If { condition, then, otherwise } => {
                let cond = self.check_condition(condition);
                let then = self.scoped(then);
                let els = otherwise.as_ref().map(|s| self.scoped(s)).unwrap_or_default();
                StmtKind::If { cond, then, els }
            }
            ast::StmtKind::Block(block) => StmtKind::Block(self.block_statements(block)),
            ast::StmtKind::Return(value) => match self.return_statement(value.as_ref(), span) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::Break | ast::StmtKind::Continue => {
                let is_break = matches!(statement.kind, ast::StmtKind::Break);
                if self.here.loops == 0 {
                    let word = if is_break { "break" } else { "continue" };
                    let message = format!("`{word}` has a meaning in loops only");
                    self.error(codes::STATEMENT_NOT_ALLOWED, span, message);
                    return;
                }
                if is_break { StmtKind::Break } else { StmtKind::Continue }
            }
            ast::StmtKind::Exit => {
                if self.here.context.in_parser()
                    || matches!(self.here.context, CodeContext::Function | CodeContext::AbstractMethod)
                {
                    let message = format!("`exit` is not allowed {}", self.here.context.describe());
                    self.error(codes::STATEMENT_NOT_ALLOWED, span, message);
                }
                StmtKind::Exit
            }
            ast::StmtKind::Switch { subject, cases } => match self.switch(subject, cases, span) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::For(l) => self.for_loop(l),
            ast::StmtKind::ForIn(l) => match self.for_in_loop(l) {
                Some(kind) => kind,
                None => return,
            },
            ast::StmtKind::Variable(d) => {
                let (var, init) = self.variable_declaration(d);
                StmtKind::Var(var, init)
            }
            ast::StmtKind::Constant(d) => match self.constant_declaration(d) {
                Some((var, value)) => StmtKind::Var(var, Some(value)),
                None => return,
            },
        };
        out.push(Stmt { kind, span });
    }

    /// A call for its effects. One that has none leaves nothing.
    fn call_statement(&mut self, call: &'a ast::Expr) -> Option<StmtKind> {
        let e = self.check_expr(call, None);
        match e.kind {
            ExprKind::Call(call) => Some(StmtKind::Call(call)),
            ExprKind::Instance(_) => {
                self.error(codes::INSTANCE_NOT_ALLOWED, e.span, "an instance by itself does nothing here");
                None
            }
            _ => None,
        }
    }

    fn return_statement(&mut self, value: Option<&'a ast::Expr>, span: Span) -> Option<StmtKind> {
        if self.here.context.in_parser() {
            self.error(codes::STATEMENT_NOT_ALLOWED, span, "`return` is not allowed in a parser");
            return None;
        }
        match (self.here.ret, value) {
            (Some(ty), Some(value)) => {
                let why = self.here.result.map_or(Why::Unsaid, Why::Result);
                Some(StmtKind::Return(Some(self.check_expr_as(value, ty, why))))
            }
            (None, None) => Some(StmtKind::Return(None)),
            (Some(ty), None) => {
                let shown = self.show(ty);
                self.error(codes::BAD_RETURN, span, format!("`return` must give a `{shown}` here"));
                Some(StmtKind::Return(None))
            }
            (None, Some(value)) => {
                let unknown = self.unknown_ty();
                self.check_expr(value, Some(unknown));
                self.report(
                    Diagnostic::error(codes::BAD_RETURN, value.span, "nothing can be returned here")
                        .with_label("the surrounding code returns no value"),
                );
                None
            }
        }
    }

    /// A variable as an expression.
    pub(crate) fn var_expr(&self, var: crate::hir::VarId, span: Span) -> Expr {
        Expr { kind: ExprKind::Var(var), ty: self.hir.vars[var].ty, span }
    }
}
