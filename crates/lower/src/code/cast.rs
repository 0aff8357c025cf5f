//! Conversions between types.

use millrace_pipeline::{Bits, Expr, Type};
use millrace_sema::hir::{Ty, TyKind};
use millrace_syntax::Span;

use super::Code;
use crate::fail::{Lower, internal};
use crate::types::{self, INT_BITS, Shape};
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// A value as one of another type.
    pub(crate) fn cast(&mut self, value: Value, from: Ty, to: Ty, span: Span) -> Lower<Value> {
        if from == to {
            return Ok(value);
        }
        let target = self.cx.shape(to);
        match (value, target) {
            (Value::Int(n), Shape::Scalar(Type::Bits(w))) => {
                Ok(Value::Scalar(Expr::Const(Bits::from_bigint(w, &n))))
            }
            (Value::Int(n), Shape::Scalar(Type::Bool)) => Ok(Value::Scalar(Expr::Bool(n != 0.into()))),
            (value @ Value::Int(_), Shape::CompileTime) => Ok(value),
            (Value::Scalar(e), Shape::CompileTime) => {
                let signed = types::is_signed(&self.cx.hir.types, from);
                Ok(match e {
                    Expr::Const(bits) if signed => Value::Int(bits.to_bigint_signed()),
                    Expr::Const(bits) => Value::Int(bits.to_biguint().into()),
                    e => {
                        let program = self.cx.ir.program();
                        let width = e.ty(program).bits().unwrap_or(1).max(INT_BITS);
                        Value::Scalar(if signed {
                            e.sext_to(width, program)
                        } else {
                            e.zext_to(width, program)
                        })
                    }
                })
            }
            (_, Shape::Unit) => Ok(Value::Unit),
            (Value::Unit, _) => self.cx.zero(to, span),
            (Value::Scalar(e), Shape::Scalar(ty)) => Ok(Value::Scalar(self.cast_scalar(e, from, ty))),
            (Value::Tuple(values), Shape::Struct | Shape::Header(_) | Shape::List) => {
                let (old, new) = (self.member_types(from, values.len()), self.member_types(to, values.len()));
                let mut members = Vec::with_capacity(values.len());
                for (i, value) in values.into_iter().enumerate() {
                    let (Some(old), Some(new)) = (old.get(i), new.get(i)) else {
                        return internal(span, "a conversion between types of different size");
                    };
                    members.push(self.cast(value, *old, *new, span)?);
                }
                Ok(match self.cx.shape(to) {
                    Shape::Header(_) => Value::header(Expr::Bool(true), members),
                    _ => Value::Tuple(members),
                })
            }
            (Value::Tuple(values), Shape::Stack(element, n)) => {
                let old = self.member_types(from, values.len());
                let mut members = Vec::with_capacity(n as usize);
                for (i, value) in values.into_iter().enumerate().take(n as usize) {
                    let old = old.get(i).copied().unwrap_or(element);
                    members.push(self.cast(value, old, element, span)?);
                }
                while members.len() < n as usize {
                    members.push(self.cx.zero(element, span)?);
                }
                let has_next = matches!(self.cx.shape(element), Shape::Header(_) | Shape::Union(_));
                Ok(Value::Stack(members, has_next.then(|| Expr::bits(32, 0))))
            }
            (value, _) => Ok(value),
        }
    }

    fn member_types(&self, ty: Ty, n: usize) -> Vec<Ty> {
        match self.cx.hir.types.kind(ty) {
            TyKind::List(element) | TyKind::Stack(element, _) => vec![*element; n],
            TyKind::New(id) => self.member_types(self.cx.hir.types.new_types[*id].base, n),
            _ => types::members(&self.cx.hir.types, ty).into_iter().map(|(_, ty)| ty).collect(),
        }
    }

    fn cast_scalar(&mut self, e: Expr, from: Ty, to: Type) -> Expr {
        let program = self.cx.ir.program();
        match (e.ty(program), to) {
            (Type::Bool, Type::Bits(w)) => e.bool_to_bits().zext_to(w, program),
            (Type::Bits(_), Type::Bool) => e.bits_to_bool(program),
            (Type::Bits(_), Type::Bits(w)) if types::is_signed(&self.cx.hir.types, from) => {
                e.sext_to(w, program)
            }
            (Type::Bits(_), Type::Bits(w)) => e.zext_to(w, program),
            _ => e,
        }
    }
}
