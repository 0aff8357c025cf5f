//! Writing values to storage.

use millrace_pipeline::{Case, Expr, HeaderId, Inst, Matcher, SlotId};

use super::Code;
use crate::fail::{Lower, internal};
use crate::storage::{Footprint, HeaderStorage, LValue, Storage};
use crate::value::{Value, zero_scalar};

impl<'a> Code<'_, 'a> {
    /// Writes a value to an l-value.
    pub(crate) fn store(&mut self, lvalue: &LValue, value: Value) -> Lower<()> {
        match lvalue {
            LValue::Storage(storage) => self.store_in(storage, value),
            LValue::Missing(_) => Ok(()),
            LValue::Value(_) => internal(self.span, "a value cannot be written to"),
            LValue::Slice(base, high, low) => {
                let Value::Scalar(part) = value else { return Ok(()) };
                let Value::Scalar(whole) = self.load(base)? else {
                    return internal(self.span, "a slice of what is no number");
                };
                let program = self.cx.ir.program();
                let whole = whole.with_slice(*high, *low, part, program);
                self.store(base, Value::Scalar(whole))
            }
            LValue::Choice(index, alternatives) => self.store_choice(index, alternatives, value),
        }
    }

    fn store_choice(&mut self, index: &Expr, alternatives: &[LValue], value: Value) -> Lower<()> {
        let scalars: Option<Vec<SlotId>> = alternatives
            .iter()
            .map(|a| match a {
                LValue::Storage(Storage::Scalar(slot)) => Some(*slot),
                _ => None,
            })
            .collect();
        match (scalars, value) {
            // Every alternative is written, all but one with what it holds.
            (Some(slots), Value::Scalar(value)) => {
                let value = self.simple_apart(value, &slots);
                let width = self.type_of(index).bits().unwrap_or(1);
                for (i, slot) in slots.into_iter().enumerate() {
                    if width < 32 && i >> width != 0 {
                        break;
                    }
                    let here = index.clone().eq(Expr::bits(width, i as u128));
                    let value = Expr::mux(here, value.clone(), Expr::Read(slot));
                    self.assign(slot, value);
                }
                Ok(())
            }
            (_, value) => {
                let value = if value.is_constant() { value } else { self.settle(value) };
                self.each_alternative(index, alternatives, &mut |code, lvalue| {
                    code.store(lvalue, value.clone())
                })
            }
        }
    }

    /// The value so that writes to these slots do not change it.
    fn simple_apart(&mut self, value: Expr, slots: &[SlotId]) -> Expr {
        let mut touched = false;
        value.for_each_read(&mut |s| touched |= slots.contains(&s));
        if touched { self.in_temp(value) } else { self.simple(value) }
    }

    /// Runs code once for each alternative, in a block that runs when the index is its number.
    pub(crate) fn each_alternative(
        &mut self,
        index: &Expr,
        alternatives: &[LValue],
        f: &mut dyn FnMut(&mut Self, &LValue) -> Lower<()>,
    ) -> Lower<()> {
        if let Some(constant) = index.as_const() {
            let at = usize::try_from(constant.to_u64_saturating()).unwrap_or(usize::MAX);
            return alternatives.get(at).map_or(Ok(()), |a| f(self, a));
        }
        let width = self.type_of(index).bits().unwrap_or(1);
        let join = self.block();
        let mut cases = Vec::new();
        let mut blocks = Vec::new();
        for i in 0..alternatives.len() {
            if width < 32 && i >> width != 0 {
                break;
            }
            let block = self.block();
            let value = millrace_pipeline::Bits::new(width, i as u128);
            cases.push(Case { matchers: vec![Matcher::Value(value)], target: block });
            blocks.push(block);
        }
        self.body.select(vec![index.clone()], cases, join);
        for (block, alternative) in blocks.into_iter().zip(alternatives) {
            self.body.switch_to(block);
            f(self, alternative)?;
            self.body.goto(join);
        }
        self.body.switch_to(join);
        Ok(())
    }

    /// Runs code for the storage or, for an element that is chosen at run time, for the storage of each that it may be.
    pub(crate) fn each_storage(
        &mut self,
        lvalue: &LValue,
        f: &mut dyn FnMut(&mut Self, &Storage) -> Lower<()>,
    ) -> Lower<()> {
        match lvalue {
            LValue::Storage(storage) => f(self, storage),
            LValue::Missing(_) => Ok(()),
            LValue::Choice(index, alternatives) => {
                self.each_alternative(index, alternatives, &mut |code, l| code.each_storage(l, f))
            }
            LValue::Slice(..) | LValue::Value(_) => internal(self.span, "storage was expected here"),
        }
    }

    /// Writes a value to storage, all at once: the value is read as it was before.
    pub(crate) fn store_in(&mut self, storage: &Storage, value: Value) -> Lower<()> {
        let several = !matches!(value, Value::Scalar(_));
        if several && !value.is_constant() {
            if value == Value::read(storage) {
                return Ok(());
            }
            let (mut written, mut read) = (Footprint::default(), Footprint::default());
            written.add_storage(storage);
            read.add_value(&value, self.cx.ir.program());
            if written.meets(&read) {
                let settled = self.settle(value);
                return self.write(storage, settled, true);
            }
        }
        self.write(storage, value, true)
    }

    /// Writes part after part. In a union that is written as a whole, the members do not invalidate each other.
    fn write(&mut self, storage: &Storage, value: Value, alone: bool) -> Lower<()> {
        match (storage, value) {
            (Storage::Unit, _) => Ok(()),
            (Storage::Scalar(slot), Value::Scalar(value)) => {
                self.assign(*slot, value);
                Ok(())
            }
            (Storage::Scalar(slot), Value::Int(number)) => {
                let width = self.cx.ir.program().slots[*slot].ty.bits().unwrap_or(1);
                self.assign(*slot, Expr::Const(millrace_pipeline::Bits::from_bigint(width, &number)));
                Ok(())
            }
            (Storage::Struct(parts), Value::Tuple(values)) => {
                parts.iter().zip(values).try_for_each(|(p, v)| self.write(p, v, true))
            }
            (Storage::Union(parts), Value::Union(values)) => {
                parts.iter().zip(values).try_for_each(|(p, v)| self.write(p, v, false))
            }
            (Storage::Header(header), Value::Header(value)) => match value.valid {
                Expr::Bool(true) => self.write_header(header, value.fields, alone),
                Expr::Bool(false) => {
                    self.make_invalid(header, alone);
                    Ok(())
                }
                valid => {
                    let (_, els) = self.branch(valid);
                    let join = self.block();
                    self.write_header(header, value.fields, alone)?;
                    self.body.goto(join);
                    self.body.switch_to(els);
                    self.make_invalid(header, alone);
                    self.continue_at(join);
                    Ok(())
                }
            },
            (Storage::Stack(stack), Value::Stack(values, next)) => {
                let missing = stack.elements.len().saturating_sub(values.len());
                stack.elements.iter().zip(values).try_for_each(|(p, v)| self.write(p, v, true))?;
                let after = stack.elements.len() - missing;
                for element in &stack.elements[after..] {
                    self.reset(element);
                }
                if let (Some(slot), Some(next)) = (stack.next, next) {
                    self.assign(slot, next);
                }
                Ok(())
            }
            _ => internal(self.span, "a value and its place differ in shape"),
        }
    }

    fn write_header(&mut self, header: &HeaderStorage, fields: Vec<Value>, alone: bool) -> Lower<()> {
        self.make_valid(header, alone);
        header.fields.iter().zip(fields).try_for_each(|(p, v)| self.write(p, v, true))
    }

    /// Makes a header valid, and the other members of its union invalid.
    pub(crate) fn make_valid(&mut self, header: &HeaderStorage, alone: bool) {
        self.push(Inst::SetValid(header.id));
        if alone {
            self.invalidate(&header.siblings);
        }
    }

    /// Makes a header invalid, and with it the whole union that it is a member of.
    pub(crate) fn make_invalid(&mut self, header: &HeaderStorage, alone: bool) {
        self.push(Inst::SetInvalid(header.id));
        if alone {
            self.invalidate(&header.siblings);
        }
    }

    /// Makes headers invalid.
    pub(crate) fn invalidate(&mut self, headers: &[HeaderId]) {
        for header in headers {
            self.push(Inst::SetInvalid(*header));
        }
    }

    /// Gives storage what an uninitialised variable has: headers invalid, all else 0.
    pub(crate) fn reset(&mut self, storage: &Storage) {
        match storage {
            Storage::Unit => {}
            Storage::Scalar(slot) => {
                let ty = self.cx.ir.program().slots[*slot].ty;
                let zero = zero_scalar(ty, |w| self.cx.empty_varbit(w));
                self.push(Inst::Assign { dst: *slot, value: zero });
            }
            Storage::Struct(members) | Storage::Union(members) => members.iter().for_each(|p| self.reset(p)),
            Storage::Header(header) => self.push(Inst::SetInvalid(header.id)),
            Storage::Stack(stack) => {
                stack.elements.iter().for_each(|p| self.reset(p));
                if let Some(next) = stack.next {
                    self.assign(next, Expr::bits(32, 0));
                }
            }
        }
    }
}
