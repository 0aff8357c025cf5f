//! Headers, unions and stacks: validity, pushing and popping.

use millrace_pipeline::{Expr, Inst};
use millrace_sema::hir;

use super::Code;
use crate::fail::{Lower, internal};
use crate::storage::Storage;
use crate::value::Value;

impl<'a> Code<'_, 'a> {
    /// `setValid` and `setInvalid`.
    pub(crate) fn set_validity(&mut self, header: &'a hir::Expr, valid: bool) -> Lower<Value> {
        let lvalue = self.access(header)?;
        self.each_storage(&lvalue, &mut |code, storage| match (storage, valid) {
            (Storage::Header(header), true) => {
                code.make_valid(header, true);
                Ok(())
            }
            (Storage::Header(header), false) => {
                code.make_invalid(header, true);
                Ok(())
            }
            (Storage::Union(_), false) => {
                code.reset(storage);
                Ok(())
            }
            _ => internal(code.span, "only headers are valid or invalid"),
        })?;
        Ok(Value::Unit)
    }

    /// `stack.push_front(n)`: the elements move up, the first `n` become invalid.
    pub(crate) fn push_front(&mut self, stack: &'a hir::Expr, n: u32) -> Lower<Value> {
        let lvalue = self.access(stack)?;
        self.each_storage(&lvalue, &mut |code, storage| {
            let Storage::Stack(stack) = storage else {
                return internal(code.span, "a stack was expected here");
            };
            let size = stack.elements.len();
            let n = (n as usize).min(size);
            for i in (n..size).rev() {
                code.store_in(&stack.elements[i], Value::read(&stack.elements[i - n]))?;
            }
            for element in &stack.elements[..n] {
                code.reset(element);
            }
            if let Some(next) = stack.next {
                let size = Expr::bits(32, size as u128);
                let room = size.clone().sub(Expr::bits(32, n as u128));
                let fits = Expr::Read(next).le(room);
                let moved = Expr::Read(next).add(Expr::bits(32, n as u128));
                code.push(Inst::Assign { dst: next, value: Expr::mux(fits, moved, size) });
            }
            Ok(())
        })?;
        Ok(Value::Unit)
    }

    /// `stack.pop_front(n)`: the elements move down, the last `n` become invalid.
    pub(crate) fn pop_front(&mut self, stack: &'a hir::Expr, n: u32) -> Lower<Value> {
        let lvalue = self.access(stack)?;
        self.each_storage(&lvalue, &mut |code, storage| {
            let Storage::Stack(stack) = storage else {
                return internal(code.span, "a stack was expected here");
            };
            let size = stack.elements.len();
            let n = (n as usize).min(size);
            for i in n..size {
                code.store_in(&stack.elements[i - n], Value::read(&stack.elements[i]))?;
            }
            for element in &stack.elements[size - n..] {
                code.reset(element);
            }
            if let Some(next) = stack.next {
                let n = Expr::bits(32, n as u128);
                let enough = n.clone().le(Expr::Read(next));
                let moved = Expr::Read(next).sub(n);
                code.push(Inst::Assign { dst: next, value: Expr::mux(enough, moved, Expr::bits(32, 0)) });
            }
            Ok(())
        })?;
        Ok(Value::Unit)
    }
}
