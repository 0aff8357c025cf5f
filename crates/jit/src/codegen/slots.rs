//! Slots: reading and writing them where they are, and all of them from and to the packet's context.

use super::Shared;
use super::emitter::Emitter;
use super::fields::{Base, plain};
use super::lookup::has_entries;
use super::packet::PacketAccess;
use super::values::{Num, Val};
use super::variables::{PacketVar, SlotVar};
use crate::layout::{CURSOR, Layout, PARSED, slot_bytes};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value, types};
use cranelift_frontend::FuncInstBuilder;
use millrace_midend::facts::{Facts, HeaderPlace};
use millrace_midend::limbs;
use millrace_midend::liveness::{Live, Set, has_storage};
use millrace_pipeline::entity::{EntityRef, SecondaryMap};
use millrace_pipeline::*;

/// The program's slots and headers at a point of the code.
///
/// `facts` say where headers are ([`HeaderPlace`]), and so where the value of a field is: in the packet, or in its slot's
/// own storage, which is a variable of `vars` or lies in the context. Code that moves a header changes both.
pub(super) struct SlotAccess<'a> {
    pub(super) packet: PacketAccess<'a>,
    pub(super) program: &'a Program,
    pub(super) layout: &'a Layout,
    pub(super) facts: Facts,
    pub(super) vars: SecondaryMap<SlotId, Option<SlotVar>>,
    /// Slots that go to the context where storage does.
    spilled: &'a [SlotId],
    /// Zeros, where headers point that are invalid ([`HeaderPlace::Maybe`]).
    pub(super) zeros: Option<StackSlot>,
    /// Whether the code is to be made in a short time.
    is_quick: bool,
}

impl<'a> SlotAccess<'a> {
    pub(super) fn new(
        shared: &Shared<'a>,
        packet: PacketAccess<'a>,
        vars: SecondaryMap<SlotId, Option<SlotVar>>,
        facts: Facts,
    ) -> SlotAccess<'a> {
        SlotAccess {
            packet,
            program: shared.program,
            layout: shared.layout,
            facts,
            vars,
            spilled: shared.spilled,
            zeros: None,
            is_quick: shared.is_quick,
        }
    }

    /// The next instruction.
    pub(super) fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.packet.e.ins()
    }

    pub(super) fn e(&mut self) -> &mut Emitter<'a> {
        &mut self.packet.e
    }

    /// The value of a slot.
    pub(super) fn read(&mut self, slot: SlotId) -> Val {
        let ty = self.program.slots[slot].ty;
        if let Home::Header { header, offset } = self.program.slots[slot].home {
            match self.facts.place(header) {
                HeaderPlace::Invalid => return self.e().zero(ty),
                HeaderPlace::At(at) => {
                    let data = self.packet.data();
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

    pub(super) fn read_in_place(&mut self, base: Base, address: Value, bit: u32, slot: SlotId) -> Val {
        match self.program.slots[slot].ty {
            Type::Bits(width) | Type::Varbit(width) => {
                Val::Bits(self.packet.load_bits(base, address, bit, width))
            }
            Type::Bool => {
                let num = self.packet.load_bits(base, address, bit, 1);
                let limb = self.e().low(&num);
                Val::Bool(self.e().not_zero(limb))
            }
        }
    }

    fn read_storage(&mut self, slot: SlotId) -> Val {
        if let Some(val) = self.packet.cache.values.get(&slot) {
            return val.clone();
        }
        let ty = self.program.slots[slot].ty;
        match (self.vars[slot], ty) {
            (Some(SlotVar::Flag(variable)), _) => Val::Bool(self.packet.get_var(variable)),
            (Some(SlotVar::One(variable)), Type::Bits(width)) => {
                Val::Bits(Num::one(width, self.packet.get_var(variable)))
            }
            (Some(SlotVar::Two(low, high)), Type::Bits(width)) => {
                let limbs = vec![self.packet.get_var(low), self.packet.get_var(high)];
                Val::Bits(Num::limbs(width, limbs))
            }
            (_, Type::Bits(width)) => {
                let context = self.packet.context();
                let at = self.layout.slots[slot];
                let limbs = (0..limbs(width))
                    .map(|i| self.e().load_word(types::I64, context, at + 8 * i as u32))
                    .collect();
                Val::Bits(Num::limbs(width, limbs))
            }
            _ => Val::Varbit(self.in_context(slot)),
        }
    }

    /// Gives a slot a value of its type; lost while it is a field of an invalid header.
    pub(super) fn write(&mut self, slot: SlotId, val: Val) {
        if let Home::Header { header, offset } = self.program.slots[slot].home {
            match self.facts.place(header) {
                HeaderPlace::Invalid => return,
                HeaderPlace::At(at) => {
                    let data = self.packet.data();
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

    fn write_in_place(&mut self, base: Base, address: Value, bit: u32, val: &Val) {
        match val {
            Val::Bits(num) => self.packet.store_bits(base, address, bit, num),
            Val::Bool(truth) => {
                let limb = self.ins().uextend(types::I64, *truth);
                self.packet.store_bits(base, address, bit, &Num::one(1, limb));
            }
            Val::Varbit(_) => {}
        }
    }

    /// A value, or of an invalid header 0.
    fn if_valid(&mut self, header: HeaderId, val: Val) -> Val {
        let valid = self.is_valid(header);
        match val {
            Val::Bool(truth) => {
                let valid = self.ins().ireduce(types::I8, valid);
                Val::Bool(self.ins().band(truth, valid))
            }
            Val::Bits(num) => {
                let mask = self.ins().ineg(valid);
                let limbs = self.e().limbs(&num);
                let limbs = limbs.into_iter().map(|limb| self.ins().band(limb, mask)).collect();
                Val::Bits(Num::limbs(num.width, limbs))
            }
            Val::Varbit(pointer) => {
                let empty = self.e().int(crate::runtime::empty_varbit() as u64);
                let is_valid = self.e().not_zero(valid);
                Val::Varbit(self.ins().select(is_valid, pointer, empty))
            }
        }
    }

    /// Writes a slot's own storage.
    pub(super) fn set_storage(&mut self, slot: SlotId, val: Val) {
        match (self.vars[slot], &val) {
            (Some(SlotVar::Flag(variable)), Val::Bool(truth)) => self.packet.set_var(variable, *truth),
            (Some(SlotVar::One(variable)), Val::Bits(num)) => {
                let limb = self.e().low(num);
                self.packet.set_var(variable, limb);
            }
            (Some(SlotVar::Two(low, high)), Val::Bits(num)) => {
                let limbs = self.e().limbs(num);
                self.packet.set_var(low, limbs[0]);
                self.packet.set_var(high, limbs[1]);
            }
            (Some(SlotVar::Memory), Val::Bits(num)) => {
                let context = self.packet.context();
                let at = self.layout.slots[slot];
                for (i, limb) in self.e().limbs(num).into_iter().enumerate() {
                    self.e().store_word(limb, context, at + 8 * i as u32);
                }
                return;
            }
            (Some(SlotVar::Memory), Val::Varbit(from)) => {
                let to = self.in_context(slot);
                self.e().call(Helper::CopyVarbit, &[to, *from]);
                return;
            }
            _ => debug_assert!(false, "{val:?} for {:?}", self.program.slots[slot]),
        }
        self.packet.cache.values.insert(slot, val);
    }

    /// Sets a slot's own storage to 0, false or empty.
    pub(super) fn clear_storage(&mut self, slot: SlotId) {
        let ty = self.program.slots[slot].ty;
        match (self.vars[slot], ty) {
            (Some(SlotVar::Memory), Type::Bits(width)) if width > 1024 => {
                let to = self.in_context(slot);
                let bytes = self.e().int(u64::from(slot_bytes(ty)));
                self.e().call(Helper::Zero, &[to, bytes]);
            }
            (Some(SlotVar::Memory), Type::Varbit(_)) => {
                let context = self.packet.context();
                let zero = self.e().int(0);
                let at = self.layout.slots[slot];
                self.e().store_word(zero, context, at);
            }
            _ => {
                let zero = self.e().zero(ty);
                self.set_storage(slot, zero);
            }
        }
    }

    /// The address of a slot in the packet's context.
    pub(super) fn in_context(&mut self, slot: SlotId) -> Value {
        let context = self.packet.context();
        let at = self.layout.slots[slot];
        self.e().plus(context, i64::from(at))
    }

    /// A slot of the packet's context becomes the slot's storage.
    pub(super) fn storage_from_context(&mut self, slot: SlotId) {
        let context = self.packet.context();
        let at = self.layout.slots[slot];
        match self.vars[slot] {
            Some(SlotVar::Flag(variable)) => {
                let word = self.e().load_word(types::I64, context, at);
                let flag = self.ins().ireduce(types::I8, word);
                self.packet.set_var(variable, flag);
            }
            Some(SlotVar::One(variable)) => {
                let word = self.e().load_word(types::I64, context, at);
                self.packet.set_var(variable, word);
            }
            Some(SlotVar::Two(low, high)) => {
                let word = self.e().load_word(types::I64, context, at);
                self.packet.set_var(low, word);
                let word = self.e().load_word(types::I64, context, at + 8);
                self.packet.set_var(high, word);
            }
            Some(SlotVar::Memory) | None => {}
        }
    }

    /// A slot's value goes to the packet's context.
    pub(super) fn storage_to_context(&mut self, slot: SlotId) {
        let in_memory = matches!(self.vars[slot], Some(SlotVar::Memory));
        let place = match self.program.slots[slot].home {
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
        let context = self.packet.context();
        let at = self.layout.slots[slot];
        match self.read(slot) {
            Val::Bool(truth) => {
                let word = self.ins().uextend(types::I64, truth);
                self.e().store_word(word, context, at);
            }
            Val::Bits(num) => {
                for (i, limb) in self.e().limbs(&num).into_iter().enumerate() {
                    self.e().store_word(limb, context, at + 8 * i as u32);
                }
            }
            Val::Varbit(_) => {}
        }
    }

    /// Bits as a value of a slot's type: cut or zero-extended, or a truth value.
    pub(super) fn as_type(&mut self, slot: SlotId, num: Num) -> Val {
        match self.program.slots[slot].ty {
            Type::Bool => {
                let limbs = self.e().limbs(&num);
                let mut any = limbs[0];
                for limb in &limbs[1..] {
                    any = self.ins().bor(any, *limb);
                }
                let zero = self.e().int(0);
                Val::Bool(self.ins().icmp(IntCC::NotEqual, any, zero))
            }
            Type::Bits(width) | Type::Varbit(width) => Val::Bits(self.e().resize(num, width)),
        }
    }

    /// A number of its width becomes the value of a slot.
    pub(super) fn set_number(&mut self, slot: SlotId, number: Value) {
        let width = millrace_midend::type_width(self.program.slots[slot].ty);
        let val = match self.program.slots[slot].ty {
            Type::Bool => Val::Bool(self.ins().ireduce(types::I8, number)),
            Type::Bits(_) | Type::Varbit(_) => Val::Bits(Num::one(width, number)),
        };
        self.set_storage(slot, val);
    }

    /// All storage as it is before the program, of which that is live there.
    pub(super) fn start_from_nothing(&mut self, live: &Live) {
        let zero = self.e().int(0);
        self.packet.set(PacketVar::Cursor, zero);
        self.packet.set(PacketVar::Parsed, zero);
        self.packet.set(PacketVar::Out, zero);
        for table in self.program.tables.keys() {
            self.packet.set(PacketVar::Entry(table), zero);
        }
        self.point_all_nowhere();
        for slot in self.program.slots.keys() {
            if self.matters_at_start(slot, live) {
                self.clear_storage(slot);
            }
        }
    }

    /// All storage from the packet's context, of which that is live at the start.
    pub(super) fn load_context(&mut self, live: &Live) {
        let context = self.packet.context();
        let cursor = self.e().load_word(types::I64, context, CURSOR);
        self.packet.set(PacketVar::Cursor, cursor);
        let parsed = self.e().load_word(types::I64, context, PARSED);
        self.packet.set(PacketVar::Parsed, parsed);
        let none = self.e().int(0);
        self.packet.set(PacketVar::Out, none);
        for header in self.program.headers.keys() {
            let at = self.layout.valid_at(header) as i32;
            let valid = self.ins().uload8(types::I64, plain(), context, at);
            self.packet.set(PacketVar::Valid(header), valid);
        }
        for table in self.program.tables.keys() {
            let at = self.layout.entry_at(table) as i32;
            let entry = self.ins().uload32(plain(), context, at);
            self.packet.set(PacketVar::Entry(table), entry);
        }
        self.point_all_nowhere();
        for slot in self.program.slots.keys() {
            if self.matters_at_start(slot, live) {
                self.storage_from_context(slot);
            }
        }
    }

    /// Whether a slot has to have its value before the program; without haste Cranelift finds out.
    fn matters_at_start(&self, slot: SlotId, live: &Live) -> bool {
        !self.is_quick
            || matches!(self.vars[slot], Some(SlotVar::Memory))
            || live.slots.contains(slot.index()) && has_storage(self.program, &self.facts, slot)
    }

    /// All storage to the packet's context.
    pub(super) fn spill(&mut self) {
        let context = self.packet.context();
        let cursor = self.cursor();
        self.e().store_word(cursor, context, CURSOR);
        let parsed = self.packet.get(PacketVar::Parsed);
        self.e().store_word(parsed, context, PARSED);
        for header in self.program.headers.keys() {
            let valid = self.is_valid(header);
            let at = self.layout.valid_at(header) as i32;
            self.ins().istore8(plain(), valid, context, at);
        }
        for id in self.program.tables.keys() {
            if has_entries(self.program, id) {
                let entry = self.packet.get(PacketVar::Entry(id));
                let at = self.layout.entry_at(id) as i32;
                self.ins().istore32(plain(), entry, context, at);
            }
        }
        let unpacked = self.unpack();
        for slot in self.spilled {
            match self.program.slots[*slot].home {
                Home::Header { header, .. } if unpacked.contains(header.index()) => {}
                _ => self.storage_to_context(*slot),
            }
        }
    }

    /// In code that is made in a short time, headers that are in a packet go to the context by a call each. Gives those.
    fn unpack(&mut self) -> Set {
        let mut unpacked = Set::default();
        if !self.is_quick {
            return unpacked;
        }
        for header in self.program.headers.keys() {
            let from = match self.facts.place(header) {
                HeaderPlace::At(at) => {
                    let data = self.packet.data();
                    self.e().plus(data, i64::from(at))
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => self.pointer(header),
                HeaderPlace::Invalid | HeaderPlace::Stored | HeaderPlace::Unknown => continue,
            };
            let (host, number, context) =
                (self.packet.host(), self.e().int(u64::from(header.as_u32())), self.packet.context());
            self.e().call(Helper::Unpack, &[host, number, from, context]);
            unpacked.insert(header.index());
        }
        unpacked
    }
}
