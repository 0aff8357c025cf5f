//! Slots: reading and writing them where they are.

use super::fields::Base;
use super::values::{Form, Num, Val};
use super::{Gen, SlotVar};
use crate::layout::slot_bytes;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_midend::facts::HeaderPlace;
use millrace_midend::limbs;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

impl Gen<'_> {
    /// The value of a slot.
    pub(super) fn read(&mut self, slot: SlotId) -> Val {
        if let Home::Header { header, offset } = self.s.program.slots[slot].home {
            match self.facts.place(header) {
                HeaderPlace::Invalid => return self.zero(self.s.program.slots[slot].ty),
                HeaderPlace::At(at) => {
                    let data = self.data();
                    return self.read_in_place(Base::Packet, data, 8 * at + offset, slot);
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let pointer = self.pointer(header);
                    return self.read_in_place(Base::Header(header), pointer, offset, slot);
                }
                HeaderPlace::Stored | HeaderPlace::Unknown => {}
            }
        }
        self.read_storage(slot)
    }

    /// The value of a type with all bits 0.
    pub(super) fn zero(&mut self, ty: Type) -> Val {
        match ty {
            Type::Bool => Val::Bool(self.b.ins().iconst(types::I8, 0)),
            Type::Bits(width) => Val::Bits(Num::constant(Bits::zero(width))),
            Type::Varbit(_) => Val::Varbit(self.int(crate::runtime::empty_varbit() as u64)),
        }
    }

    pub(super) fn read_in_place(&mut self, base: Base, address: Value, bit: u32, slot: SlotId) -> Val {
        match self.s.program.slots[slot].ty {
            Type::Bits(width) | Type::Varbit(width) => Val::Bits(self.load_bits(base, address, bit, width)),
            Type::Bool => {
                let num = self.load_bits(base, address, bit, 1);
                let limb = self.low(&num);
                Val::Bool(self.not_zero(limb))
            }
        }
    }

    fn read_storage(&mut self, slot: SlotId) -> Val {
        if let Some(val) = self.cache.values.get(&slot) {
            return val.clone();
        }
        let ty = self.s.program.slots[slot].ty;
        match (self.slots[slot], ty) {
            (Some(SlotVar::Flag(variable)), _) => Val::Bool(self.get(variable)),
            (Some(SlotVar::One(variable)), Type::Bits(width)) => {
                Val::Bits(Num::one(width, self.get(variable)))
            }
            (Some(SlotVar::Two(low, high)), Type::Bits(width)) => {
                let limbs = vec![self.get(low), self.get(high)];
                Val::Bits(Num::limbs(width, limbs))
            }
            (_, Type::Bits(width)) => {
                let context = self.context();
                let at = self.s.layout.slots[slot];
                let limbs = (0..limbs(width))
                    .map(|i| self.load_word(types::I64, context, at + 8 * i as u32))
                    .collect();
                Val::Bits(Num::limbs(width, limbs))
            }
            _ => {
                let context = self.context();
                Val::Varbit(self.plus(context, i64::from(self.s.layout.slots[slot])))
            }
        }
    }

    /// Gives a slot a value of its type; lost while it is a field of an invalid header.
    pub(super) fn write(&mut self, slot: SlotId, val: Val) {
        if let Home::Header { header, offset } = self.s.program.slots[slot].home {
            match self.facts.place(header) {
                HeaderPlace::Invalid => return,
                HeaderPlace::At(at) => {
                    let data = self.data();
                    return self.write_in_place(Base::Packet, data, 8 * at + offset, &val);
                }
                HeaderPlace::Pointed => {
                    let pointer = self.pointer(header);
                    return self.write_in_place(Base::Header(header), pointer, offset, &val);
                }
                HeaderPlace::Maybe => {
                    // Zeros stay zeros.
                    let (val, pointer) = (self.if_valid(header, val), self.pointer(header));
                    return self.write_in_place(Base::Header(header), pointer, offset, &val);
                }
                HeaderPlace::Stored => {}
                HeaderPlace::Unknown => {
                    let val = self.if_valid(header, val);
                    return self.set_storage(slot, val);
                }
            }
        }
        self.set_storage(slot, val);
    }

    pub(super) fn write_in_place(&mut self, base: Base, address: Value, bit: u32, val: &Val) {
        match val {
            Val::Bits(num) => self.store_bits(base, address, bit, num),
            Val::Bool(truth) => {
                let limb = self.b.ins().uextend(types::I64, *truth);
                self.store_bits(base, address, bit, &Num::one(1, limb));
            }
            Val::Varbit(_) => {}
        }
    }

    /// A value, or of an invalid header 0.
    fn if_valid(&mut self, header: HeaderId, val: Val) -> Val {
        let valid = self.is_valid(header);
        match val {
            Val::Bool(truth) => {
                let valid = self.b.ins().ireduce(types::I8, valid);
                Val::Bool(self.b.ins().band(truth, valid))
            }
            Val::Bits(num) => {
                let mask = self.b.ins().ineg(valid);
                let limbs = self.limbs(&num);
                let limbs = limbs.into_iter().map(|limb| self.b.ins().band(limb, mask)).collect();
                Val::Bits(Num::limbs(num.width, limbs))
            }
            Val::Varbit(pointer) => {
                let empty = self.int(crate::runtime::empty_varbit() as u64);
                let is_valid = self.not_zero(valid);
                Val::Varbit(self.b.ins().select(is_valid, pointer, empty))
            }
        }
    }

    /// Writes a slot's own storage.
    pub(super) fn set_storage(&mut self, slot: SlotId, val: Val) {
        match (self.slots[slot], &val) {
            (Some(SlotVar::Flag(variable)), Val::Bool(truth)) => self.set(variable, *truth),
            (Some(SlotVar::One(variable)), Val::Bits(num)) => {
                let limb = self.low(num);
                self.set(variable, limb);
            }
            (Some(SlotVar::Two(low, high)), Val::Bits(num)) => {
                let limbs = self.limbs(num);
                self.set(low, limbs[0]);
                self.set(high, limbs[1]);
            }
            (Some(SlotVar::Memory), Val::Bits(num)) => {
                let context = self.context();
                let at = self.s.layout.slots[slot];
                for (i, limb) in self.limbs(num).into_iter().enumerate() {
                    self.store_word(limb, context, at + 8 * i as u32);
                }
                return;
            }
            (Some(SlotVar::Memory), Val::Varbit(from)) => {
                let context = self.context();
                let to = self.plus(context, i64::from(self.s.layout.slots[slot]));
                self.call(Helper::CopyVarbit, &[to, *from]);
                return;
            }
            _ => debug_assert!(false, "{val:?} for {:?}", self.s.program.slots[slot]),
        }
        self.cache.values.insert(slot, val);
    }

    /// Sets a slot's own storage to 0, false or empty.
    pub(super) fn clear_storage(&mut self, slot: SlotId) {
        let ty = self.s.program.slots[slot].ty;
        match (self.slots[slot], ty) {
            (Some(SlotVar::Memory), Type::Bits(width)) if width > 1024 => {
                let context = self.context();
                let to = self.plus(context, i64::from(self.s.layout.slots[slot]));
                let bytes = self.int(u64::from(slot_bytes(ty)));
                self.call(Helper::Zero, &[to, bytes]);
            }
            (Some(SlotVar::Memory), Type::Varbit(_)) => {
                let context = self.context();
                let zero = self.int(0);
                self.store_word(zero, context, self.s.layout.slots[slot]);
            }
            _ => {
                let zero = self.zero(ty);
                self.set_storage(slot, zero);
            }
        }
    }

    /// A header's fields get storage of their own, where they are only in the packet.
    pub(super) fn store_header(&mut self, header: HeaderId) {
        if matches!(self.facts.place(header), HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Maybe)
        {
            for field in &self.s.program.headers[header].fields {
                let val = self.read(*field);
                self.set_storage(*field, val);
            }
        }
    }

    /// The storage of a header's fields becomes 0.
    pub(super) fn clear_fields(&mut self, header: HeaderId) {
        for field in &self.s.program.headers[header].fields {
            self.clear_storage(*field);
        }
    }

    /// Where a header is that is [`HeaderPlace::Pointed`] or [`HeaderPlace::Maybe`].
    pub(super) fn pointer(&mut self, header: HeaderId) -> Value {
        self.get(self.vars.pointer[header.index()])
    }

    /// A header's own pointer says where it is.
    pub(super) fn point_to(&mut self, header: HeaderId) {
        let pointer = match self.facts.place(header) {
            HeaderPlace::At(at) => {
                let data = self.data();
                self.plus(data, i64::from(at))
            }
            // The condition on the edge told what was unknown.
            HeaderPlace::Invalid | HeaderPlace::Unknown => self.zeros(),
            HeaderPlace::Pointed | HeaderPlace::Maybe | HeaderPlace::Stored => return,
        };
        self.set(self.vars.pointer[header.index()], pointer);
        self.cache.forget(Base::Header(header));
    }

    /// A pointer that is kept in memory is always right, and leads to the zeros while its header is invalid, so that edges
    /// need not set it. This is for a header that is where the state says now.
    pub(super) fn point_early(&mut self, header: HeaderId) {
        if self.vars.pointer[header.index()].is_kept() {
            self.point_to(header);
        }
    }

    /// As [`Gen::point_early`], for a header that is invalid.
    pub(super) fn point_nowhere(&mut self, header: HeaderId) {
        let pointer = self.vars.pointer[header.index()];
        if pointer.is_kept() {
            let zeros = self.zeros();
            self.set(pointer, zeros);
            self.cache.forget(Base::Header(header));
        }
    }

    /// The same for all headers.
    pub(super) fn point_all_nowhere(&mut self) {
        self.s.program.headers.keys().for_each(|header| self.point_nowhere(header));
    }

    /// A slot of the packet's context becomes the slot's storage.
    pub(super) fn storage_from_context(&mut self, slot: SlotId) {
        let context = self.context();
        let at = self.s.layout.slots[slot];
        match self.slots[slot] {
            Some(SlotVar::Flag(variable)) => {
                let word = self.load_word(types::I64, context, at);
                let flag = self.b.ins().ireduce(types::I8, word);
                self.set(variable, flag);
            }
            Some(SlotVar::One(variable)) => {
                let word = self.load_word(types::I64, context, at);
                self.set(variable, word);
            }
            Some(SlotVar::Two(low, high)) => {
                let word = self.load_word(types::I64, context, at);
                self.set(low, word);
                let word = self.load_word(types::I64, context, at + 8);
                self.set(high, word);
            }
            Some(SlotVar::Memory) | None => {}
        }
    }

    /// A slot's value goes to the packet's context.
    pub(super) fn storage_to_context(&mut self, slot: SlotId) {
        let in_memory = matches!(self.slots[slot], Some(SlotVar::Memory));
        let place = match self.s.program.slots[slot].home {
            Home::Header { header, .. } => self.facts.place(header),
            Home::Metadata | Home::Local => HeaderPlace::Stored,
        };
        if in_memory {
            match place {
                HeaderPlace::Invalid => self.clear_storage(slot),
                HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let val = self.read(slot);
                    self.set_storage(slot, val);
                }
                HeaderPlace::Stored | HeaderPlace::Unknown => {}
            }
            return;
        }
        let context = self.context();
        let at = self.s.layout.slots[slot];
        match self.read(slot) {
            Val::Bool(truth) => {
                let word = self.b.ins().uextend(types::I64, truth);
                self.store_word(word, context, at);
            }
            Val::Bits(num) => {
                for (i, limb) in self.limbs(&num).into_iter().enumerate() {
                    self.store_word(limb, context, at + 8 * i as u32);
                }
            }
            Val::Varbit(_) => {}
        }
    }

    /// Bits as a value of a slot's type: cut or zero-extended, or a truth value.
    pub(super) fn as_type(&mut self, slot: SlotId, num: Num) -> Val {
        match self.s.program.slots[slot].ty {
            Type::Bool => {
                let limbs = self.limbs(&num);
                let mut any = limbs[0];
                for limb in &limbs[1..] {
                    any = self.b.ins().bor(any, *limb);
                }
                let zero = self.int(0);
                Val::Bool(self.b.ins().icmp(IntCC::NotEqual, any, zero))
            }
            Type::Bits(width) | Type::Varbit(width) => Val::Bits(self.resize(num, width)),
        }
    }

    /// Cut, or widened with zeros.
    pub(super) fn resize(&mut self, num: Num, width: u32) -> Num {
        if num.width == width {
            return num;
        }
        if let Form::Const(bits) = &num.form {
            return Num::constant(bits.zero_extend(width));
        }
        let mut all = self.limbs(&num);
        while all.len() < limbs(width) {
            all.push(self.int(0));
        }
        if width > num.width { Num::limbs(width, all) } else { self.cut(width, all) }
    }
}
