//! What is known at the end of a node becomes what the next one expects; packets that wait take it along.

use super::values::{Num, Val};
use super::{Cache, Gen, SlotVar};
use crate::layout::{CURSOR, PARSED, STEPS};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, InstructionData, Opcode, Value, types};
use millrace_midend::cfg::{Leave, Spill, Term};
use millrace_midend::facts::{Cursor, Facts, HeaderPlace};
use millrace_midend::liveness::{Set, has_storage};
use millrace_midend::specialise::NodeId;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

/// What need not be stored while packets wait, as it is constant: slots, and the bits of headers after the parser.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    slots: FxHashMap<SlotId, i64>,
    parsed: Option<i64>,
}

impl Gen<'_> {
    /// Turns what the current facts say into what other, more general ones say.
    pub(super) fn conform(&mut self, wanted: &Facts) {
        for header in self.s.program.headers.keys() {
            let (from, to) = (self.facts.place(header), wanted.place(header));
            if self.is_as_wanted(header, to) {
                continue;
            }
            match to {
                HeaderPlace::Pointed | HeaderPlace::Maybe => self.point_to(header),
                HeaderPlace::Stored => self.store_header(header),
                HeaderPlace::Unknown => {
                    let flag = self.is_valid(header);
                    self.set(self.vars.valid[header.index()], flag);
                    match from {
                        HeaderPlace::Invalid => self.clear_fields(header),
                        _ => self.store_header(header),
                    }
                }
                HeaderPlace::Invalid | HeaderPlace::At(_) => {
                    debug_assert!(false, "{from:?} does not become {to:?}")
                }
            }
        }
        if let (Cursor::At(at), Cursor::Byte | Cursor::Bit) = (self.facts.cursor, wanted.cursor) {
            let at = self.int(u64::from(at));
            self.set(self.vars.cursor, at);
        }
    }

    /// Whether the current facts are what others say without code.
    pub(super) fn conforms(&self, wanted: &Facts) -> bool {
        let mut headers = self.s.program.headers.keys();
        let is_cursor = match (self.facts.cursor, wanted.cursor) {
            (Cursor::At(_), to) => matches!(to, Cursor::At(_)),
            _ => true,
        };
        is_cursor && headers.all(|header| self.is_as_wanted(header, wanted.place(header)))
    }

    /// Whether nothing is to be done for a header to be at a place.
    fn is_as_wanted(&self, header: HeaderId, to: HeaderPlace) -> bool {
        match (self.facts.place(header), to) {
            (from, to) if from == to => true,
            // The condition on the edge told; while a header may be either, its fields are in storage.
            (HeaderPlace::Unknown, HeaderPlace::Stored | HeaderPlace::Invalid)
            | (HeaderPlace::Maybe, HeaderPlace::Invalid) => true,
            (_, HeaderPlace::Pointed | HeaderPlace::Maybe) => self.vars.pointer[header.index()].is_kept(),
            _ => false,
        }
    }

    /// The cursor in bits.
    pub(super) fn cursor(&mut self) -> Value {
        match self.facts.cursor {
            Cursor::At(at) => self.int(u64::from(at)),
            Cursor::Byte | Cursor::Bit => self.get(self.vars.cursor),
        }
    }

    /// All storage as it is before the program.
    pub(super) fn start_from_nothing(&mut self) {
        let zero = self.int(0);
        self.set(self.vars.cursor, zero);
        self.set(self.vars.parsed, zero);
        self.set(self.vars.out, zero);
        for table in self.s.program.tables.keys() {
            self.set(self.vars.entries[table.index()], zero);
        }
        self.point_all_nowhere();
        for slot in self.s.program.slots.keys() {
            if self.matters_at_start(slot) {
                self.clear_storage(slot);
            }
        }
    }

    /// All storage from the packet's context.
    pub(super) fn load_context(&mut self) {
        let context = self.context();
        let cursor = self.load_word(types::I64, context, CURSOR);
        self.set(self.vars.cursor, cursor);
        let parsed = self.load_word(types::I64, context, PARSED);
        self.set(self.vars.parsed, parsed);
        let none = self.int(0);
        self.set(self.vars.out, none);
        for header in self.s.program.headers.keys() {
            let at = self.s.layout.valid_at(header) as i32;
            let valid = self.b.ins().uload8(types::I64, super::fields::plain(), context, at);
            self.set(self.vars.valid[header.index()], valid);
        }
        for table in self.s.program.tables.keys() {
            let at = self.s.layout.entry_at(table) as i32;
            let entry = self.b.ins().uload32(super::fields::plain(), context, at);
            self.set(self.vars.entries[table.index()], entry);
        }
        self.point_all_nowhere();
        for slot in self.s.program.slots.keys() {
            if self.matters_at_start(slot) {
                self.storage_from_context(slot);
            }
        }
    }

    /// Whether a slot has to have its value before the program; without haste Cranelift finds out.
    fn matters_at_start(&self, slot: SlotId) -> bool {
        let entry = self.special.entry;
        let matters = || self.live[entry].slots.contains(slot.index());
        !self.s.is_quick
            || matches!(self.slots[slot], Some(SlotVar::Memory))
            || matters() && has_storage(self.s.program, &self.special.nodes[entry].entry, slot)
    }

    /// All storage to the packet's context.
    pub(super) fn spill(&mut self) {
        let context = self.context();
        let cursor = self.cursor();
        self.store_word(cursor, context, CURSOR);
        let parsed = self.get(self.vars.parsed);
        self.store_word(parsed, context, PARSED);
        for header in self.s.program.headers.keys() {
            let valid = self.is_valid(header);
            self.b.ins().istore8(
                super::fields::plain(),
                valid,
                context,
                self.s.layout.valid_at(header) as i32,
            );
        }
        for (id, table) in &self.s.program.tables {
            if table.direct_counter.is_some() || table.direct_meter.is_some() {
                let entry = self.get(self.vars.entries[id.index()]);
                let at = self.s.layout.entry_at(id) as i32;
                self.b.ins().istore32(super::fields::plain(), entry, context, at);
            }
        }
        let unpacked = self.unpack();
        for slot in self.s.spilled {
            match self.s.program.slots[*slot].home {
                Home::Header { header, .. } if unpacked.contains(header.index()) => {}
                _ => self.storage_to_context(*slot),
            }
        }
    }

    /// In code that is made in a short time, headers that are in a packet go to the context by a call each. Gives those.
    fn unpack(&mut self) -> Set {
        let mut unpacked = Set::default();
        if !self.s.is_quick {
            return unpacked;
        }
        for header in self.s.program.headers.keys() {
            let from = match self.facts.place(header) {
                HeaderPlace::At(at) => {
                    let data = self.data();
                    self.plus(data, i64::from(at))
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => self.pointer(header),
                HeaderPlace::Invalid | HeaderPlace::Stored | HeaderPlace::Unknown => continue,
            };
            let (host, number, context) = (self.host(), self.int(u64::from(header.as_u32())), self.context());
            self.call(Helper::Unpack, &[host, number, from, context]);
            unpacked.insert(header.index());
        }
        unpacked
    }

    /// Whether a header is valid, as `I64`.
    pub(super) fn is_valid(&mut self, header: HeaderId) -> Value {
        match self.facts.place(header) {
            HeaderPlace::Invalid => self.int(0),
            HeaderPlace::Unknown => self.get(self.vars.valid[header.index()]),
            HeaderPlace::Maybe => {
                let (pointer, zeros) = (self.pointer(header), self.zeros());
                let valid = self.b.ins().icmp(IntCC::NotEqual, pointer, zeros);
                self.b.ins().uextend(types::I64, valid)
            }
            HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => self.int(1),
        }
    }

    /// Goes to `otherwise` with these arguments unless a header is valid; goes on where it is.
    pub(super) fn enter_if_valid(&mut self, header: HeaderId, otherwise: Block, args: &[BlockArg]) {
        if matches!(self.facts.place(header), HeaderPlace::Unknown | HeaderPlace::Maybe) {
            let valid = self.is_valid(header);
            let inside = self.b.create_block();
            self.b.ins().brif(valid, inside, &[], otherwise, args);
            self.start(inside);
        }
    }

    /// The packet is done.
    pub(super) fn leave(&mut self, leave: &Leave) {
        match leave.spill {
            Spill::Nothing => {}
            Spill::Metadata => {
                self.facts.places.fill(HeaderPlace::Invalid);
                self.spill();
            }
            Spill::Everything => self.spill(),
        }
        let out = match leave.out {
            Some(out) => self.int(u64::from(out)),
            None => self.get(self.vars.out),
        };
        let both = match leave.verdict as u64 {
            0 => out,
            verdict => {
                let upper = self.int(verdict << 32);
                self.b.ins().bor(out, upper)
            }
        };
        let outcome = self.outcome();
        self.store_word(both, outcome, 0);
        let next = self.next[&self.facts.phase];
        self.b.ins().jump(next, &[]);
        self.cache = Cache::default();
    }

    /// What a node needs goes to the packet's context, where another loop finds it. What is not live, or known there, does
    /// not.
    pub(super) fn save(&mut self, node: NodeId) {
        let entry = self.special.nodes[node].entry.clone();
        self.facts = entry.clone();
        let live = self.live[node].clone();
        if !matches!(entry.cursor, Cursor::At(_)) {
            let (cursor, context) = (self.cursor(), self.context());
            self.store_word(cursor, context, CURSOR);
        }
        // With one way to wait it shows there what is constant.
        let mut constants = Constants::default();
        let alone = self.waits_for.get(&node) == Some(&1);
        if live.parsed {
            let parsed = self.get(self.vars.parsed);
            constants.parsed = self.constant(parsed).filter(|_| alone);
            if constants.parsed.is_none() {
                let context = self.context();
                self.store_word(parsed, context, PARSED);
            }
        }
        if live.out {
            let (out, outcome) = (self.get(self.vars.out), self.outcome());
            self.store_word(out, outcome, 0);
        }
        if live.steps {
            let (steps, context) = (self.get(self.vars.steps), self.context());
            self.store_word(steps, context, STEPS);
        }
        for header in self.s.program.headers.keys() {
            match self.facts.place(header) {
                HeaderPlace::Unknown => {
                    let (valid, context) = (self.is_valid(header), self.context());
                    let at = self.s.layout.valid_at(header) as i32;
                    self.b.ins().istore8(super::fields::plain(), valid, context, at);
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let (pointer, context) = (self.pointer(header), self.context());
                    self.store_word(pointer, context, self.s.layout.pointer_at(header));
                }
                HeaderPlace::Invalid | HeaderPlace::At(_) | HeaderPlace::Stored => {}
            }
        }
        let staged = self.stage_of_phase(entry.phase);
        for table in self.s.program.tables.keys() {
            if live.entries.contains(table.index()) && staged != Some(table) && self.has_entries(table) {
                let (entry, context) = (self.get(self.vars.entries[table.index()]), self.context());
                let at = self.s.layout.entry_at(table) as i32;
                self.b.ins().istore32(super::fields::plain(), entry, context, at);
            }
        }
        for slot in self.saved(&entry, &live.slots) {
            let constant = match self.slots[slot] {
                Some(SlotVar::One(_) | SlotVar::Flag(_)) if alone => match self.read(slot) {
                    Val::Bits(num) => {
                        let limb = self.low(&num);
                        self.constant(limb)
                    }
                    Val::Bool(truth) => self.constant(truth),
                    Val::Varbit(_) => None,
                },
                _ => None,
            };
            match constant {
                Some(number) => {
                    constants.slots.insert(slot, number);
                }
                None => self.storage_to_context(slot),
            }
        }
        self.constants.insert(node, constants);
    }

    /// The number that a value always is.
    fn constant(&self, value: Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    /// The slots that a packet takes along to a node.
    fn saved(&self, entry: &Facts, live: &millrace_midend::liveness::Set) -> Vec<SlotId> {
        let wanted = |slot: &SlotId| {
            live.contains(slot.index())
                && has_storage(self.s.program, entry, *slot)
                && !entry.constants.contains_key(slot)
                && !self.port_slots.contains_key(slot)
        };
        self.s.program.slots.keys().filter(wanted).collect()
    }

    /// The reverse of [`Gen::save`].
    pub(super) fn restore(&mut self, node: NodeId) {
        let entry = self.special.nodes[node].entry.clone();
        self.facts = entry.clone();
        let live = self.live[node].clone();
        if !matches!(entry.cursor, Cursor::At(_)) {
            let context = self.context();
            let cursor = self.load_word(types::I64, context, CURSOR);
            self.set(self.vars.cursor, cursor);
        }
        let constants = self.constants.remove(&node).unwrap_or_default();
        if live.parsed {
            let parsed = match constants.parsed {
                Some(number) => self.int(number as u64),
                None => {
                    let context = self.context();
                    self.load_word(types::I64, context, PARSED)
                }
            };
            self.set(self.vars.parsed, parsed);
        }
        if live.out {
            let outcome = self.outcome();
            let out = self.load_word(types::I64, outcome, 0);
            self.set(self.vars.out, out);
        }
        if live.steps {
            let context = self.context();
            let steps = self.load_word(types::I64, context, STEPS);
            self.set(self.vars.steps, steps);
        }
        self.point_all_nowhere();
        for header in self.s.program.headers.keys() {
            match self.facts.place(header) {
                HeaderPlace::Unknown => {
                    let context = self.context();
                    let at = self.s.layout.valid_at(header) as i32;
                    let valid = self.b.ins().uload8(types::I64, super::fields::plain(), context, at);
                    self.set(self.vars.valid[header.index()], valid);
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let context = self.context();
                    let pointer = self.load_word(types::I64, context, self.s.layout.pointer_at(header));
                    self.set(self.vars.pointer[header.index()], pointer);
                }
                HeaderPlace::At(_) => self.point_early(header),
                HeaderPlace::Invalid | HeaderPlace::Stored => {}
            }
        }
        let staged = self.stage_of_phase(entry.phase);
        for table in self.s.program.tables.keys() {
            if !live.entries.contains(table.index()) || staged == Some(table) {
                continue;
            }
            let value = match self.has_entries(table) {
                true => {
                    let context = self.context();
                    let at = self.s.layout.entry_at(table) as i32;
                    self.b.ins().uload32(super::fields::plain(), context, at)
                }
                false => self.int(0),
            };
            self.set(self.vars.entries[table.index()], value);
        }
        for slot in self.saved(&entry, &live.slots) {
            match constants.slots.get(&slot) {
                Some(number) => {
                    let number = self.int(*number as u64);
                    self.set_number(slot, number);
                }
                None => self.storage_from_context(slot),
            }
        }
        for (slot, mask) in self.port_slots.clone() {
            if live.slots.contains(slot.index()) && !entry.constants.contains_key(&slot) {
                let port = self.port();
                let number = self.and(port, mask);
                self.set_number(slot, number);
            }
        }
        for (slot, value) in &entry.constants {
            if live.slots.contains(slot.index()) && has_storage(self.s.program, &entry, *slot) {
                let number = self.int(*value);
                self.set_number(*slot, number);
            }
        }
    }

    /// A number of its width becomes the value of a slot.
    fn set_number(&mut self, slot: SlotId, number: Value) {
        let width = millrace_midend::type_width(self.s.program.slots[slot].ty);
        let val = match self.s.program.slots[slot].ty {
            Type::Bool => Val::Bool(self.b.ins().ireduce(types::I8, number)),
            Type::Bits(_) | Type::Varbit(_) => Val::Bits(Num::one(width, number)),
        };
        self.set_storage(slot, val);
    }

    fn stage_of_phase(&self, phase: u32) -> Option<TableId> {
        let mut stages = self.s.stages.iter().enumerate();
        let found = stages.find(|(_, stage)| stage.as_ref().is_some_and(|stage| stage.phase == phase));
        found.map(|(table, _)| TableId::new(table))
    }

    /// The staged tables that nodes look up, in the order of their loops.
    pub(super) fn staged_in_order(&self) -> Vec<TableId> {
        let mut staged: Vec<(u32, TableId)> = Vec::new();
        for node in &self.special.order {
            if let Term::Lookup { table, .. } = &self.special.nodes[*node].term
                && let Some(stage) = &self.s.stages[table.index()]
                && self.s.waits(*table, self.special.nodes[*node].entry.phase)
                && !staged.contains(&(stage.phase, *table))
            {
                staged.push((stage.phase, *table));
            }
        }
        staged.sort_unstable();
        staged.into_iter().map(|(_, table)| table).collect()
    }
}
