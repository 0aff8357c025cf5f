//! Loops. They stay loops; only those over the elements of a list are unrolled, once for each element.

use millrace_pipeline::{BinaryOp, BlockId, Expr};
use millrace_sema::hir::{self, ForCollection, Stmt};
use millrace_syntax::Span;

use super::{Code, Loop};
use crate::fail::{Lower, internal};
use crate::storage::LValue;
use crate::types;
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// `for (init; cond; update)`.
    pub(crate) fn for_loop(
        &mut self,
        init: &'a [Stmt],
        cond: &'a hir::Expr,
        update: &'a [Stmt],
        body: &'a [Stmt],
    ) -> Lower<()> {
        let span = self.span;
        self.stmts(init)?;
        self.go_back_to(span);
        let (head, step, done) = (self.block(), self.block(), self.block());
        self.continue_at(head);
        let cond = self.condition(cond)?;
        let round = self.block();
        self.body.branch(cond, round, done);
        self.body.switch_to(round);
        self.round(body, done, step)?;
        self.continue_at(step);
        self.stmts(update)?;
        self.body.goto(head);
        self.go_back_to(span);
        self.body.switch_to(done);
        Ok(())
    }

    /// The loop itself, not a statement in it, is what comes next.
    fn go_back_to(&mut self, span: Span) {
        self.span = span;
        self.stand();
    }

    fn round(&mut self, body: &'a [Stmt], breaks: BlockId, continues: BlockId) -> Lower<()> {
        self.frame_mut().loops.push(Loop { breaks, continues });
        self.stmts(body)?;
        self.frame_mut().loops.pop();
        Ok(())
    }

    /// `for (var in collection)`.
    pub(crate) fn for_in(
        &mut self,
        var: &'a hir::Expr,
        collection: &'a ForCollection,
        body: &'a [Stmt],
    ) -> Lower<()> {
        if let hir::ExprKind::Var(id) = var.kind
            && self.binding(id).is_none()
        {
            // The loop itself declares it.
            self.declare(id, None)?;
        }
        let target = self.access(var)?;
        match collection {
            ForCollection::Range(low, high) => self.for_range(&target, var, low, high, body),
            ForCollection::Elements(list) => {
                let elements = if self.is_path(list) {
                    let path = self.access(list)?;
                    self.elements(path, list)?
                } else {
                    match self.eval(list)? {
                        Value::Tuple(list) | Value::Stack(list, _) => {
                            list.into_iter().map(LValue::Value).collect()
                        }
                        _ => return internal(list.span, "a list or stack was expected here"),
                    }
                };
                let mut values = Vec::with_capacity(elements.len());
                for element in &elements {
                    // The collection is evaluated once, before the first round.
                    let value = self.load(element)?;
                    values.push(if value.is_constant() { value } else { self.settle(value) });
                }
                let done = self.block();
                for value in values {
                    let next = self.block();
                    self.store(&target, value)?;
                    self.round(body, done, next)?;
                    self.continue_at(next);
                }
                self.continue_at(done);
                Ok(())
            }
        }
    }

    /// Both ends are included, so the end is compared before the step: the step from the largest number would wrap.
    fn for_range(
        &mut self,
        target: &LValue,
        var: &'a hir::Expr,
        low: &'a hir::Expr,
        high: &'a hir::Expr,
        body: &'a [Stmt],
    ) -> Lower<()> {
        let (low_value, high_value) = self.two(low, high)?;
        let Some(width) = types::bit_width(&self.cx.hir.types, var.ty).filter(|w| *w > 0) else {
            return internal(var.span, "a loop variable of a number type was expected here");
        };
        let number = |code: &mut Self, value: Value, expr: &'a hir::Expr| -> Lower<Expr> {
            match value {
                Value::Int(n) => Ok(Expr::Const(millrace_pipeline::Bits::from_bigint(width, &n))),
                value => code.as_scalar(value, expr),
            }
        };
        let low = number(self, low_value, low)?;
        let high = number(self, high_value, high)?;
        let high = self.settle_expr(high);
        let at = self.in_temp(low);
        let Expr::Read(counter) = at else { return internal(var.span, "a counter without a slot") };
        let signed = types::is_signed(&self.cx.hir.types, var.ty);
        let le = if signed { BinaryOp::LeSigned } else { BinaryOp::Le };
        let span = self.span;
        let (head, step, more, done) = (self.block(), self.block(), self.block(), self.block());
        self.body.branch(Expr::binary(le, at.clone(), high.clone()), head, done);
        self.body.switch_to(head);
        self.store(target, Value::Scalar(at.clone()))?;
        self.round(body, done, step)?;
        self.go_back_to(span);
        self.continue_at(step);
        self.body.branch(at.clone().eq(high), done, more);
        self.body.switch_to(more);
        self.assign(counter, at.add(Expr::bits(width, 1)));
        self.body.goto(head);
        self.body.switch_to(done);
        Ok(())
    }
}
