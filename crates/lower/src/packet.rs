//! The externs of the core library: `packet_in`, `packet_out`, `verify`, `static_assert`.

use millrace_pipeline::{BodyKind, Expr, Home, Inst, Type};
use millrace_sema::hir::{self, Arg, Call, ExprKind, Ty, TyKind};

use crate::code::Code;
use crate::fail::{Lower, code, fail, internal};
use crate::storage::{HeaderStorage, LValue, Storage};
use crate::types::{self, Shape};
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// A method of `packet_in`.
    pub(crate) fn packet_in(
        &mut self,
        receiver: &'a hir::Expr,
        method: usize,
        call: &'a Call,
    ) -> Lower<Value> {
        if self.body.kind() != BodyKind::Parser {
            return fail(code::PLACE, call.span, "only parsers read the packet");
        }
        match (self.method_name(receiver, method), call.args.as_slice()) {
            ("extract", [header]) => self.extract(header, None),
            ("extract", [header, bits]) => self.extract(header, bits.value.as_ref()),
            ("lookahead", []) => {
                let ty = call.type_args.first().copied().unwrap_or(call.ty);
                let mut skip = 0;
                self.lookahead(ty, &mut skip, call)
            }
            ("advance", [Arg { value: Some(bits), .. }]) => {
                let bits = self.scalar(bits)?.zext_to(32, self.cx.ir.program());
                self.push(Inst::Advance { bits });
                Ok(Value::Unit)
            }
            ("length", []) => Ok(Value::Scalar(Expr::PacketLength)),
            (name, _) => internal(call.span, format!("`packet_in` has no method `{name}`")),
        }
    }

    fn method_name(&self, receiver: &'a hir::Expr, method: usize) -> &'a str {
        match self.cx.hir.types.kind(receiver.ty) {
            TyKind::Extern(id, _) => {
                let methods = &self.cx.hir.externs[*id].methods;
                methods.get(method).map_or("", |m| m.name.as_str())
            }
            _ => "",
        }
    }

    fn extract(&mut self, header: &'a Arg, bits: Option<&'a hir::Expr>) -> Lower<Value> {
        let (lvalue, stack) = match &header.value {
            Some(expr) => (self.access(expr)?, self.advancing_stack(expr)?),
            None => {
                // `_`: the header is read into storage that nothing names.
                let storage = self.cx.allocate(header.ty, "discarded", Home::Local, self.span)?;
                (LValue::Storage(storage), None)
            }
        };
        let bits = match bits {
            Some(bits) => {
                let bits = self.scalar(bits)?.zext_to(32, self.cx.ir.program());
                Some(self.simple(bits))
            }
            None => None,
        };
        let next = stack.clone();
        self.each_storage(&lvalue, &mut |code, storage| {
            let Storage::Header(header) = storage else {
                return fail(crate::fail::code::PLACE, code.span, "only headers can be extracted");
            };
            code.extract_header(header, bits.clone())?;
            if let Some(next) = &next
                && let Expr::Read(slot) = next
            {
                let moved = next.clone().add(Expr::bits(32, 1));
                code.push(Inst::Assign { dst: *slot, value: moved });
            }
            Ok(())
        })?;
        Ok(Value::Unit)
    }

    /// `nextIndex` of the stack when a header is extracted to `stack.next`, or to a member of the union there.
    fn advancing_stack(&mut self, expr: &'a hir::Expr) -> Lower<Option<Expr>> {
        match &expr.kind {
            ExprKind::StackNext(stack) => Ok(Some(self.stack(stack)?.1)),
            ExprKind::Field(base, _) => self.advancing_stack(base),
            _ => Ok(None),
        }
    }

    fn extract_header(&mut self, header: &HeaderStorage, bits: Option<Expr>) -> Lower<()> {
        let program = self.cx.ir.program();
        let varbit =
            program.headers[header.id].fields.iter().any(|f| matches!(program.slots[*f].ty, Type::Varbit(_)));
        match (varbit, bits) {
            (false, None) => self.push(Inst::Extract(header.id)),
            (true, Some(bits)) => self.push(Inst::ExtractVar { header: header.id, bits }),
            (true, None) => {
                return fail(
                    code::PLACE,
                    self.span,
                    "a header with a `varbit` field is extracted with the length of that field as second argument",
                );
            }
            (false, Some(_)) => {
                return fail(
                    code::PLACE,
                    self.span,
                    "this header has no `varbit` field whose length could be given",
                );
            }
        }
        self.invalidate(&header.siblings);
        Ok(())
    }

    /// `lookahead<T>()`: reads the scalars of T one after the other.
    fn lookahead(&mut self, ty: Ty, skip: &mut u32, call: &Call) -> Lower<Value> {
        match self.cx.shape(ty) {
            Shape::Unit => Ok(Value::Unit),
            Shape::Scalar(Type::Bits(w)) => {
                let dst = self.temp(Type::Bits(w));
                self.push(Inst::Lookahead { dst, skip: *skip });
                *skip = skip.saturating_add(w);
                Ok(Value::Scalar(Expr::Read(dst)))
            }
            Shape::Scalar(Type::Bool) => {
                let dst = self.temp(Type::Bits(1));
                self.push(Inst::Lookahead { dst, skip: *skip });
                *skip = skip.saturating_add(1);
                Ok(Value::Scalar(Expr::Read(dst).eq(Expr::bits(1, 1))))
            }
            Shape::Struct | Shape::Header(_) => {
                let mut values = Vec::new();
                for (_, member) in types::members(&self.cx.hir.types, ty) {
                    values.push(self.lookahead(member, skip, call)?);
                }
                Ok(match self.cx.shape(ty) {
                    Shape::Header(_) => Value::header(Expr::Bool(true), values),
                    _ => Value::Tuple(values),
                })
            }
            Shape::Stack(_, n) if n as usize > crate::limits::MAX_SLOTS => {
                let limit = crate::limits::MAX_SLOTS;
                fail(code::LIMIT, call.span, format!("`lookahead` reads at most {limit} scalars"))
            }
            Shape::Stack(element, n) => {
                let mut values = Vec::new();
                for _ in 0..n {
                    values.push(self.lookahead(element, skip, call)?);
                }
                let has_next = matches!(self.cx.shape(element), Shape::Header(_));
                Ok(Value::Stack(values, has_next.then(|| Expr::bits(32, 0))))
            }
            _ => fail(code::PLACE, call.span, "`lookahead` needs a type of fixed size"),
        }
    }

    /// A method of `packet_out`.
    pub(crate) fn packet_out(
        &mut self,
        receiver: &'a hir::Expr,
        method: usize,
        call: &'a Call,
    ) -> Lower<Value> {
        if self.body.kind() != BodyKind::Deparser {
            return fail(code::PLACE, call.span, "only deparsers write the packet");
        }
        match (self.method_name(receiver, method), call.args.as_slice()) {
            ("emit", [Arg { value: Some(value), .. }]) => {
                self.emit(value)?;
                Ok(Value::Unit)
            }
            (name, _) => internal(call.span, format!("`packet_out` has no method `{name}`")),
        }
    }

    fn emit(&mut self, expr: &'a hir::Expr) -> Lower<()> {
        match &expr.kind {
            ExprKind::Aggregate(members) if matches!(self.cx.shape(expr.ty), Shape::Struct) => {
                members.iter().try_for_each(|e| self.emit(e))
            }
            ExprKind::Cast(inner) if matches!(inner.kind, ExprKind::Aggregate(_)) => self.emit(inner),
            _ if self.is_path(expr) => {
                let lvalue = self.access(expr)?;
                self.emit_lvalue(&lvalue, expr)
            }
            _ => {
                let value = self.eval(expr)?;
                self.emit_lvalue(&LValue::Value(value), expr)
            }
        }
    }

    fn emit_lvalue(&mut self, lvalue: &LValue, expr: &'a hir::Expr) -> Lower<()> {
        if let LValue::Value(value) = lvalue {
            let storage = self.temp_storage(expr.ty)?;
            self.store_in(&storage, value.clone())?;
            return self.emit_storage(&storage);
        }
        self.each_storage(lvalue, &mut |code, storage| code.emit_storage(storage))
    }

    fn emit_storage(&mut self, storage: &Storage) -> Lower<()> {
        match storage {
            Storage::Header(header) => self.emit_header(header.id),
            Storage::Struct(members) | Storage::Union(members) => {
                members.iter().try_for_each(|p| self.emit_storage(p))
            }
            Storage::Stack(stack) => stack.elements.iter().try_for_each(|p| self.emit_storage(p)),
            Storage::Unit => Ok(()),
            Storage::Scalar(_) => fail(code::PLACE, self.span, "only headers can be emitted"),
        }
    }

    /// `verify(condition, error)`.
    pub(crate) fn verify(&mut self, call: &'a Call) -> Lower<Value> {
        let [Arg { value: Some(cond), .. }, Arg { value: Some(error), .. }] = call.args.as_slice() else {
            return internal(call.span, "`verify` takes a condition and an error");
        };
        if self.body.kind() != BodyKind::Parser {
            return fail(code::PLACE, call.span, "`verify` can be called in parsers only");
        }
        let (holds, error) = self.two(cond, error)?;
        let holds = self.as_scalar(holds, cond)?;
        let error = self.as_scalar(error, cond)?;
        let (good, bad) = (self.block(), self.block());
        self.body.branch(holds, good, bad);
        self.body.switch_to(bad);
        let slot = self.cx.ir.intrinsic(millrace_pipeline::Intrinsic::ParserError);
        self.assign(slot, error);
        self.body.reject();
        self.body.switch_to(good);
        Ok(Value::Unit)
    }

    /// An extern function: one of the core library, or of the architecture.
    pub(crate) fn call_extern_function(&mut self, name: &str, call: &'a Call) -> Lower<Value> {
        match name {
            "verify" => self.verify(call),
            // Checked at compile time.
            "static_assert" => Ok(Value::Scalar(Expr::Bool(true))),
            _ => self.arch_function(name, call),
        }
    }
}
