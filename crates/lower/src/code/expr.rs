//! Expressions.

use millrace_pipeline::{Expr, Type};
use millrace_sema::Constant;
use millrace_sema::hir::{self, BinaryOp, ExprKind};

use super::Code;
use crate::fail::{Lower, internal};
use crate::limits::EXPR_PIECE;
use crate::survey;
use crate::types::{self, ERROR_BITS, Shape};
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// The value of an expression. Its effects happen now; the value is read where it is used.
    pub(crate) fn eval(&mut self, expr: &'a hir::Expr) -> Lower<Value> {
        if let Some(value) = self.early.get(&std::ptr::from_ref(expr)) {
            return Ok(value.clone());
        }
        self.descend(expr.span)?;
        let mut value = self.eval_kind(expr)?;
        if self.nesting.is_multiple_of(EXPR_PIECE)
            && let Value::Scalar(e) = value
        {
            value = Value::Scalar(self.simple(e));
        }
        self.ascend();
        Ok(value)
    }

    fn eval_kind(&mut self, expr: &'a hir::Expr) -> Lower<Value> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(number) => self.cx.constant_value(&Constant::Int(number.clone()), expr.ty, span),
            ExprKind::Bool(b) => Ok(Value::Scalar(Expr::Bool(*b))),
            ExprKind::String(text) => Ok(Value::Text(text.clone())),
            ExprKind::ErrorMember(member) => {
                Ok(Value::Scalar(Expr::bits(ERROR_BITS, u128::from(self.cx.error_code(*member)))))
            }
            ExprKind::EnumMember(member) => {
                Ok(Value::Scalar(Expr::Const(self.cx.enum_bits(expr.ty, *member))))
            }
            ExprKind::MatchKind(_) => Ok(Value::Unit),
            ExprKind::Var(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::StackNext(_)
            | ExprKind::StackLast(_) => {
                if !self.is_path(expr)
                    && let ExprKind::Field(base, index) = &expr.kind
                {
                    return match self.eval(base)?.member(*index) {
                        Some(value) => Ok(value),
                        None => internal(span, "no such member"),
                    };
                }
                let lvalue = self.access(expr)?;
                let value = self.load(&lvalue)?;
                self.note_read(&value, span);
                Ok(value)
            }
            ExprKind::StackLastIndex(stack) => {
                let (_, next) = self.stack(stack)?;
                Ok(Value::Scalar(next.sub(Expr::bits(32, 1))))
            }
            ExprKind::Slice(base, high, low) => {
                let value = self.scalar(base)?;
                Ok(Value::Scalar(value.slice(*high, *low, self.cx.ir.program())))
            }
            ExprKind::Unary(op, operand) => {
                let value = self.eval(operand)?;
                self.unary(*op, value, expr)
            }
            ExprKind::Binary(op @ (BinaryOp::BoolAnd | BinaryOp::BoolOr), a, b) => self.lazy(*op, a, b),
            ExprKind::Binary(op, a, b) => {
                let (left, right) = self.two(a, b)?;
                self.operate(*op, left, right, a, b)
            }
            ExprKind::Mux(cond, then, els) => self.mux(cond, then, els, expr),
            ExprKind::Cast(operand) => {
                let value = self.eval(operand)?;
                self.cast(value, operand.ty, expr.ty, span)
            }
            ExprKind::Aggregate(members) => {
                let values = self.eval_all(members)?;
                Ok(match self.cx.shape(expr.ty) {
                    Shape::Header(_) => Value::header(Expr::Bool(true), values),
                    _ => Value::Tuple(values),
                })
            }
            ExprKind::InTurn(members) => {
                let values = self.eval_all(members.iter().map(|(_, member)| member))?;
                let mut placed: Vec<(usize, Value)> =
                    members.iter().map(|(place, _)| *place).zip(values).collect();
                placed.sort_by_key(|(place, _)| *place);
                let values = placed.into_iter().map(|(_, value)| value).collect();
                Ok(match self.cx.shape(expr.ty) {
                    Shape::Header(_) => Value::header(Expr::Bool(true), values),
                    _ => Value::Tuple(values),
                })
            }
            ExprKind::StackLiteral(elements) => {
                let mut values = self.eval_all(elements)?;
                let Shape::Stack(element, n) = self.cx.shape(expr.ty) else {
                    return Ok(Value::Stack(values, None));
                };
                while values.len() < n as usize {
                    values.push(self.cx.zero(element, span)?);
                }
                let has_next = matches!(self.cx.shape(element), Shape::Header(_) | Shape::Union(_));
                Ok(Value::Stack(values, has_next.then(|| Expr::bits(32, 0))))
            }
            ExprKind::InvalidHeader => self.cx.zero(expr.ty, span),
            ExprKind::IsValid(header) => {
                let value = if self.is_path(header) {
                    let lvalue = self.access(header)?;
                    self.load(&lvalue)?
                } else {
                    self.eval(header)?
                };
                Ok(Value::Scalar(value.validity()))
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::TableHit(table) => Ok(Value::Scalar(self.table_hit(*table, span)?)),
            ExprKind::TableMiss(table) => Ok(Value::Scalar(self.table_hit(*table, span)?.not())),
            ExprKind::Instance(_) | ExprKind::This | ExprKind::Table(_) | ExprKind::Unknown => {
                internal(span, "this is no value at run time")
            }
        }
    }

    /// `&&` and `||`: the right side runs only when the left does not decide.
    fn lazy(&mut self, op: BinaryOp, a: &'a hir::Expr, b: &'a hir::Expr) -> Lower<Value> {
        let left = self.scalar(a)?;
        let and = op == BinaryOp::BoolAnd;
        if let Expr::Bool(known) = left
            && known != and
        {
            return Ok(Value::Scalar(left));
        }
        if !survey::has_effects(b) {
            let right = self.scalar(b)?;
            return Ok(Value::Scalar(if and { left.and(right) } else { left.or(right) }));
        }
        let result = self.temp(Type::Bool);
        self.assign(result, left.clone());
        let (more, join) = (self.block(), self.block());
        let (then, els) = if and { (more, join) } else { (join, more) };
        self.body.branch(Expr::Read(result), then, els);
        self.body.switch_to(more);
        let right = self.scalar(b)?;
        self.assign(result, right);
        self.continue_at(join);
        Ok(Value::Scalar(Expr::Read(result)))
    }

    /// `cond ? then : els`: only one of them runs.
    fn mux(
        &mut self,
        cond: &'a hir::Expr,
        then: &'a hir::Expr,
        els: &'a hir::Expr,
        expr: &'a hir::Expr,
    ) -> Lower<Value> {
        let chosen = self.scalar(cond)?;
        if let Expr::Bool(known) = chosen {
            return self.eval(if known { then } else { els });
        }
        if !survey::has_effects(then) && !survey::has_effects(els) {
            let (a, b) = (self.eval(then)?, self.eval(els)?);
            let chosen = if matches!(a, Value::Scalar(_)) { chosen } else { self.simple(chosen) };
            return Ok(Value::mux(&chosen, a, b));
        }
        let result = self.temp_storage(expr.ty)?;
        let (_, other) = self.branch(chosen);
        let join = self.block();
        let value = self.eval(then)?;
        self.store_in(&result, value)?;
        self.body.goto(join);
        self.body.switch_to(other);
        let value = self.eval(els)?;
        self.store_in(&result, value)?;
        self.continue_at(join);
        Ok(Value::read(&result))
    }

    /// The width of a type of numbers, `bit<0>` counting as 1.
    pub(crate) fn width(&self, ty: hir::Ty) -> u32 {
        types::bit_width(&self.cx.hir.types, ty).unwrap_or(1).max(1)
    }
}
