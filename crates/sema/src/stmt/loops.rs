//! `for`.

use crate::check::Checker;
use crate::codes;
use crate::expr::Why;
use crate::hir::{ForCollection, StmtKind, TyKind};
use crate::scope::Entity;
use millrace_syntax::Diagnostic;
use millrace_syntax::ast;

impl<'a> Checker<'a> {
    /// `for (init; condition; update) body`.
    pub(super) fn for_loop(&mut self, l: &'a ast::ForLoop) -> StmtKind {
        self.check_annotations(&l.annotations);
        self.scopes.push();
        let init = self.statements(&l.init);
        let cond = self.check_condition(&l.condition);
        let update = self.statements(&l.update);
        self.here.loops += 1;
        let body = self.scoped(&l.body);
        self.here.loops -= 1;
        self.scopes.pop();
        StmtKind::For { init, cond, update, body }
    }

    /// `for (T x in collection) body`.
    pub(super) fn for_in_loop(&mut self, l: &'a ast::ForInLoop) -> Option<StmtKind> {
        self.check_annotations(&l.annotations);
        let d = &l.variable;
        let ty = self.resolve_type(&d.ty);
        let ty = self.check_variable_type(ty, &d.ty);
        let collection = match &l.collection {
            ast::ForCollection::Range(low, high) => {
                let numeric = matches!(
                    self.kind(ty),
                    TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Unknown | TyKind::Var(_)
                );
                if !numeric {
                    let shown = self.show(ty);
                    let message = format!("a `{shown}` cannot run over a range of numbers");
                    self.error(codes::TYPE_MISMATCH, d.ty.span, message);
                }
                let why = Why::Declared(d.ty.span);
                let low = self.check_expr_as(low, ty, why);
                let high = self.check_expr_as(high, ty, why);
                Some(ForCollection::Range(low, high))
            }
            ast::ForCollection::Expr(e) => {
                let elements = self.check_expr(e, None);
                match self.kind(elements.ty) {
                    TyKind::Unknown => None,
                    TyKind::Stack(element, _) | TyKind::List(element) => {
                        let fits = element == ty || self.is_unknown(ty) || self.is_unknown(element);
                        if !fits {
                            let (want, have) = (self.show(ty), self.show(element));
                            self.report(
                                Diagnostic::error(
                                    codes::TYPE_MISMATCH,
                                    e.span,
                                    format!("the elements are `{have}`, but the variable is `{want}`"),
                                )
                                .with_secondary(d.ty.span, "the variable"),
                            );
                        }
                        Some(ForCollection::Elements(elements))
                    }
                    TyKind::Tuple(parts) => {
                        let list = self.intern(TyKind::List(ty));
                        let fits = parts.iter().all(|&p| p == ty);
                        let elements = if fits { elements } else { self.coerce(elements, list, Why::Unsaid) };
                        Some(ForCollection::Elements(elements))
                    }
                    _ => {
                        let shown = self.show(elements.ty);
                        let message = format!("`for` cannot run over a `{shown}`");
                        self.error(codes::TYPE_MISMATCH, e.span, message);
                        None
                    }
                }
            }
        };
        self.scopes.push();
        let var = self.new_local(&d.name, ty, &d.annotations);
        self.declare(&d.name, Entity::Var(var));
        self.here.loops += 1;
        let body = self.scoped(&l.body);
        self.here.loops -= 1;
        self.scopes.pop();
        let var = self.var_expr(var, d.name.span);
        Some(StmtKind::ForIn { var, collection: collection?, body })
    }
}
