//! Paths to storage: what an l-value refers to, and reading it.

use millrace_pipeline::Expr;
use millrace_sema::hir::{self, ExprKind};

use super::Code;
use crate::fail::{Lower, internal};
use crate::objects::Binding;
use crate::storage::{LValue, Storage};
use crate::types;
use crate::value::{Value, choose};

impl<'a> Code<'_, 'a> {
    /// Whether an expression is a path to a variable, which [`Code::access`] follows without reading all of it.
    pub(crate) fn is_path(&self, expr: &'a hir::Expr) -> bool {
        match &expr.kind {
            ExprKind::Var(_) => true,
            ExprKind::Field(base, _) => self.is_path(base),
            ExprKind::Index(base, _) | ExprKind::StackNext(base) | ExprKind::StackLast(base) => {
                self.is_path(base)
            }
            _ => false,
        }
    }

    /// What a path refers to. Indices are evaluated now; so are the checks of `next` and `last`.
    pub(crate) fn access(&mut self, expr: &'a hir::Expr) -> Lower<LValue> {
        match &expr.kind {
            ExprKind::Var(var) => match self.binding(*var) {
                Some(Binding::Storage(storage)) => Ok(LValue::Storage(storage.clone())),
                Some(Binding::Value(value)) => Ok(LValue::Value(value.clone())),
                _ => {
                    let name = &self.cx.hir.vars[*var].name;
                    internal(expr.span, format!("`{name}` has no storage here"))
                }
            },
            ExprKind::Field(base, index) => {
                let base = self.access(base)?;
                self.member(base, *index, expr)
            }
            ExprKind::Index(base, index) => {
                if let Ok(millrace_sema::Constant::Int(at)) = self.cx.constant(index, self.scope()) {
                    let base = self.access(base)?;
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    // An element that is known takes nothing of the others: a stack of hundreds may be filled one by one.
                    if let LValue::Storage(Storage::Stack(stack)) = &base {
                        let element = stack.elements.get(at).cloned();
                        return Ok(element.map_or(LValue::Missing(expr.ty), LValue::Storage));
                    }
                    return Ok(self
                        .elements(base, expr)?
                        .into_iter()
                        .nth(at)
                        .unwrap_or(LValue::Missing(expr.ty)));
                }
                let base = self.access(base)?;
                let elements = self.elements(base, expr)?;
                let index = self.scalar(index)?;
                // The index must not change before the element is used.
                let index = self.settle_expr(index);
                Ok(LValue::Choice(index, elements))
            }
            ExprKind::StackNext(base) => {
                let (elements, next) = self.stack(base)?;
                let inside = next.clone().lt(Expr::bits(32, elements.len() as u128));
                self.require(inside, "StackOutOfBounds")?;
                Ok(LValue::Choice(next, elements))
            }
            ExprKind::StackLast(base) => {
                let (elements, next) = self.stack(base)?;
                let last = self.simple(next.sub(Expr::bits(32, 1)));
                let inside = last.clone().lt(Expr::bits(32, elements.len() as u128));
                self.require(inside, "StackOutOfBounds")?;
                Ok(LValue::Choice(last, elements))
            }
            ExprKind::Slice(base, high, low) => Ok(LValue::Slice(Box::new(self.access(base)?), *high, *low)),
            // An l-value of another type over the same bits.
            ExprKind::Cast(base) => self.access(base),
            _ => Ok(LValue::Value(self.eval(expr)?)),
        }
    }

    /// A stack's elements and `nextIndex`.
    pub(crate) fn stack(&mut self, expr: &'a hir::Expr) -> Lower<(Vec<LValue>, Expr)> {
        let base = self.access(expr)?;
        let next = match &base {
            LValue::Storage(Storage::Stack(stack)) => stack.next.map(Expr::Read),
            LValue::Value(Value::Stack(_, next)) => next.clone(),
            _ => None,
        };
        let Some(next) = next else { return internal(expr.span, "a header stack was expected here") };
        Ok((self.elements(base, expr)?, next))
    }

    /// The member of a structure, header or union.
    pub(crate) fn member(&mut self, base: LValue, index: usize, expr: &'a hir::Expr) -> Lower<LValue> {
        match base {
            LValue::Storage(storage) => match storage.member(index) {
                Some(member) => Ok(LValue::Storage(member.clone())),
                None => internal(expr.span, "no such member"),
            },
            LValue::Value(value) => match value.member(index) {
                Some(member) => Ok(LValue::Value(member)),
                None => internal(expr.span, "no such member"),
            },
            LValue::Choice(at, alternatives) => {
                let members: Lower<Vec<LValue>> =
                    alternatives.into_iter().map(|a| self.member(a, index, expr)).collect();
                Ok(LValue::Choice(at, members?))
            }
            LValue::Missing(ty) => match types::members(&self.cx.hir.types, ty).get(index) {
                Some((_, ty)) => Ok(LValue::Missing(*ty)),
                None => Ok(LValue::Missing(expr.ty)),
            },
            LValue::Slice(..) => internal(expr.span, "a slice has no members"),
        }
    }

    /// The elements of a stack, array or tuple.
    pub(crate) fn elements(&mut self, base: LValue, expr: &'a hir::Expr) -> Lower<Vec<LValue>> {
        match base {
            LValue::Storage(Storage::Stack(stack)) => {
                // To choose one of them takes a few expressions for each.
                self.cx.budget.visits += 4 * stack.elements.len();
                self.cx.budget.check(expr.span)?;
                Ok(stack.elements.iter().cloned().map(LValue::Storage).collect())
            }
            LValue::Storage(Storage::Struct(members)) => {
                Ok(members.iter().cloned().map(LValue::Storage).collect())
            }
            LValue::Value(Value::Stack(elements, _) | Value::Tuple(elements)) => {
                Ok(elements.into_iter().map(LValue::Value).collect())
            }
            LValue::Choice(index, alternatives) => {
                let mut columns: Vec<Vec<LValue>> = Vec::new();
                for alternative in alternatives {
                    for (i, element) in self.elements(alternative, expr)?.into_iter().enumerate() {
                        if columns.len() <= i {
                            columns.push(Vec::new());
                        }
                        columns[i].push(element);
                    }
                }
                Ok(columns.into_iter().map(|column| LValue::Choice(index.clone(), column)).collect())
            }
            LValue::Missing(_) => Ok(Vec::new()),
            _ => internal(expr.span, "elements were expected here"),
        }
    }

    /// What an l-value holds now.
    pub(crate) fn load(&mut self, lvalue: &LValue) -> Lower<Value> {
        match lvalue {
            LValue::Storage(storage) => {
                let value = Value::read(storage);
                self.count_parts(&value);
                Ok(value)
            }
            LValue::Value(value) => {
                self.count_parts(value);
                Ok(value.clone())
            }
            LValue::Missing(ty) => self.cx.zero(*ty, self.span),
            LValue::Slice(base, high, low) => {
                let Value::Scalar(whole) = self.load(base)? else {
                    return internal(self.span, "a slice of what is no number");
                };
                Ok(Value::Scalar(whole.slice(*high, *low, self.cx.ir.program())))
            }
            LValue::Choice(index, alternatives) => {
                let values: Lower<Vec<Value>> = alternatives.iter().map(|a| self.load(a)).collect();
                let values = values?;
                let Some(first) = values.first() else {
                    return internal(self.span, "a stack without elements");
                };
                let outside = self.zero_like(&first.clone());
                Ok(choose(index, values, outside, self.cx.ir.program()))
            }
        }
    }

    /// Counts the parts of a value that is read as a whole.
    fn count_parts(&mut self, value: &Value) {
        if !matches!(value, Value::Scalar(_)) {
            let mut parts = 0;
            value.for_each(&mut |_| parts += 1);
            self.cx.budget.visits += parts;
        }
    }

    /// 0, false, invalid in the shape of a value.
    pub(crate) fn zero_like(&mut self, value: &Value) -> Value {
        let mut all = |values: &[Value]| values.iter().map(|v| self.zero_like(v)).collect::<Vec<_>>();
        match value {
            Value::Scalar(e) => {
                let ty = self.type_of(e);
                Value::Scalar(crate::value::zero_scalar(ty, |w| self.cx.empty_varbit(w)))
            }
            Value::Tuple(members) => Value::Tuple(all(members)),
            Value::Union(members) => Value::Union(all(members)),
            Value::Header(header) => Value::header(Expr::Bool(false), all(&header.fields)),
            Value::Stack(elements, next) => {
                Value::Stack(all(elements), next.as_ref().map(|_| Expr::bits(32, 0)))
            }
            other => other.clone(),
        }
    }
}
