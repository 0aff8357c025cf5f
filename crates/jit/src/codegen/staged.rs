//! What packets take along while they wait for the lookup of a staged table.

use super::cache::Sum;
use super::emitter::Emitter;
use super::fields::plain;
use super::hashing::sums_after;
use super::lookup::has_entries;
use super::slots::SlotAccess;
use super::values::Val;
use super::variables::{PacketVar, SlotVar};
use crate::arrival::port_slots;
use crate::layout::{CURSOR, PARSED, STEPS};
use crate::stage::{MAX_SUMS, Stage};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use millrace_frames::MAX_BATCH;
use millrace_midend::cfg::{Cfg, Term};
use millrace_midend::facts::{Cursor, Facts, HeaderPlace};
use millrace_midend::liveness::{Live, Set, has_storage};
use millrace_midend::specialise::{Node, NodeId, Specialised};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What need not be stored while packets wait, as it is constant: slots, and the bits of headers after the parser.
#[derive(Clone, Debug, Default)]
struct Constants {
    slots: FxHashMap<SlotId, i64>,
    parsed: Option<i64>,
}

/// Where the arrays of kept sums are in the stage memory.
fn sum_arrays(stage: &Stage) -> impl Iterator<Item = u32> {
    (stage.sums..).step_by(8 * MAX_BATCH)
}

/// Stores words of a packet that waits in an array of the stage memory that starts there. `offset` is that of the packet in
/// an array of `u32`.
pub(super) fn store_waiting(e: &mut Emitter<'_>, words: &[Value], memory: Value, offset: Value, start: u32) {
    if words.is_empty() {
        return;
    }
    let times = 2 * words.len() as u32;
    let offset = match times.is_power_of_two() {
        true => e.shl(offset, times.trailing_zeros()),
        false => e.ins().imul_imm_s(offset, i64::from(times)),
    };
    let address = e.ins().iadd(memory, offset);
    for (at, word) in words.iter().enumerate() {
        e.store_word(*word, address, start + 8 * at as u32);
    }
}

/// The staged tables, and the packets that wait for them.
///
/// A packet waits for a node: [`Staged::save`] writes what is live there to the context, and in the loop of the table
/// [`Staged::restore`] reads the same again. So both choose by the facts at the node's entry and by what is live there, and
/// what the code of the first knows to be constant is kept for that of the second, where one lookup waits for the node.
pub(super) struct Staged<'a> {
    cfg: &'a Cfg,
    special: &'a Specialised,
    /// The memory of staged tables, by table.
    stages: &'a [Option<Stage>],
    /// The bytes that packets that wait for each staged table take in an array of `u32`.
    waiting: FxHashMap<TableId, Variable>,
    /// Where packets that waited for a staged table go on.
    resumes: FxHashMap<TableId, Vec<NodeId>>,
    /// How many lookups have packets wait before they go on at a node.
    waits_for: FxHashMap<NodeId, usize>,
    /// What need not be stored while packets wait, by the node that they wait for.
    constants: FxHashMap<NodeId, Constants>,
    /// Sums over packets that wait for a node, with the array of the stage memory that each is in.
    kept_sums: FxHashMap<NodeId, Vec<Sum>>,
    /// Slots that hold the port of arrival under a mask, where tables are staged.
    port_slots: BTreeMap<SlotId, u64>,
}

impl<'a> Staged<'a> {
    pub(super) fn new(
        program: &Program,
        cfg: &'a Cfg,
        special: &'a Specialised,
        stages: &'a [Option<Stage>],
    ) -> Staged<'a> {
        let mut staged = Staged {
            cfg,
            special,
            stages,
            waiting: FxHashMap::default(),
            resumes: FxHashMap::default(),
            waits_for: FxHashMap::default(),
            constants: FxHashMap::default(),
            kept_sums: FxHashMap::default(),
            port_slots: BTreeMap::new(),
        };
        for node in &special.order {
            let Node { term, entry, .. } = &special.nodes[*node];
            if let Term::Lookup { table, next } = term
                && staged.waits(*table, entry.phase)
            {
                *staged.waits_for.entry(*next).or_default() += 1;
                let resumes = staged.resumes.entry(*table).or_default();
                if !resumes.contains(next) {
                    resumes.push(*next);
                }
            }
        }
        if staged.any() {
            staged.port_slots = port_slots(program, cfg);
        }
        staged
    }

    /// Whether packets wait for any table.
    pub(super) fn any(&self) -> bool {
        !self.waits_for.is_empty()
    }

    /// Whether a staged table has memory that is far away.
    pub(super) fn is_far(&self, table: TableId) -> bool {
        self.stages[table.index()].as_ref().is_some_and(|stage| stage.is_far)
    }

    /// Whether packets of a phase wait for the lookup of a table: it is staged, and its loop has not passed.
    pub(super) fn waits(&self, table: TableId, phase: u32) -> bool {
        self.stages[table.index()].as_ref().is_some_and(|stage| stage.phase > phase)
    }

    /// The nodes where packets go on that waited, of each table.
    pub(super) fn resumed(&self) -> impl Iterator<Item = NodeId> {
        self.resumes.values().flatten().copied()
    }

    /// The memory of a staged table, and the bytes of the packets that wait for it.
    pub(super) fn of(&self, table: TableId) -> Option<(&'a Stage, Variable)> {
        let stages: &'a [Option<Stage>] = self.stages;
        Some((stages[table.index()].as_ref()?, *self.waiting.get(&table)?))
    }

    /// The number by which a packet that waits says where it goes on; none where all packets go on at one node.
    pub(super) fn resume_number(&self, table: TableId, next: NodeId) -> Option<usize> {
        let resumes = self.resumes.get(&table).filter(|resumes| resumes.len() > 1)?;
        Some(resumes.iter().position(|node| *node == next).unwrap_or(0))
    }

    /// The nodes where packets go on, once: in the order of their numbers.
    pub(super) fn take_resumes(&mut self, table: TableId) -> Vec<NodeId> {
        self.resumes.remove(&table).unwrap_or_default()
    }

    /// Starts to count the packets that wait for a table.
    pub(super) fn count(&mut self, e: &mut Emitter<'_>, table: TableId) {
        let count = e.b.declare_var(types::I64);
        let zero = e.int(0);
        e.b.def_var(count, zero);
        self.waiting.insert(table, count);
    }

    /// The staged tables that nodes look up, in the order of their loops.
    pub(super) fn in_order(&self) -> Vec<TableId> {
        let mut staged: Vec<(u32, TableId)> = Vec::new();
        for node in &self.special.order {
            if let Term::Lookup { table, .. } = &self.special.nodes[*node].term
                && let Some(stage) = &self.stages[table.index()]
                && self.waits(*table, self.special.nodes[*node].entry.phase)
                && !staged.contains(&(stage.phase, *table))
            {
                staged.push((stage.phase, *table));
            }
        }
        staged.sort_unstable();
        staged.into_iter().map(|(_, table)| table).collect()
    }

    /// What a node needs goes to the packet's context, where another loop finds it. What is not live, or known there, does
    /// not.
    pub(super) fn save(&mut self, slots: &mut SlotAccess<'_>, node: NodeId, live: &Live) {
        let entry = &self.special.nodes[node].entry;
        slots.facts = entry.clone();
        if !matches!(entry.cursor, Cursor::At(_)) {
            let (cursor, context) = (slots.cursor(), slots.packet.context());
            slots.e().store_word(cursor, context, CURSOR);
        }
        // With one path to wait it shows there what is constant.
        let mut constants = Constants::default();
        let alone = self.waits_for.get(&node) == Some(&1);
        if live.parsed {
            let parsed = slots.packet.get(PacketVar::Parsed);
            constants.parsed = slots.e().constant(parsed).filter(|_| alone);
            if constants.parsed.is_none() {
                let context = slots.packet.context();
                slots.e().store_word(parsed, context, PARSED);
            }
        }
        if live.out {
            let (out, outcome) = (slots.packet.get(PacketVar::Out), slots.packet.outcome());
            slots.e().store_word(out, outcome, 0);
        }
        if live.steps {
            let (steps, context) = (slots.packet.get(PacketVar::Steps), slots.packet.context());
            slots.e().store_word(steps, context, STEPS);
        }
        for header in slots.program.headers.keys() {
            match slots.facts.place(header) {
                HeaderPlace::Unknown => {
                    let (valid, context) = (slots.is_valid(header), slots.packet.context());
                    let at = slots.layout.valid_at(header) as i32;
                    slots.ins().istore8(plain(), valid, context, at);
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let (pointer, context) = (slots.pointer(header), slots.packet.context());
                    let at = slots.layout.pointer_at(header);
                    slots.e().store_word(pointer, context, at);
                }
                HeaderPlace::Invalid | HeaderPlace::At(_) | HeaderPlace::Stored => {}
            }
        }
        let staged = self.stage_of_phase(entry.phase);
        for table in slots.program.tables.keys() {
            if live.entries.contains(table.index())
                && staged != Some(table)
                && has_entries(slots.program, table)
            {
                let (entry, context) = (slots.packet.get(PacketVar::Entry(table)), slots.packet.context());
                let at = slots.layout.entry_at(table) as i32;
                slots.ins().istore32(plain(), entry, context, at);
            }
        }
        for slot in self.saved(slots.program, entry, &live.slots) {
            let constant = match slots.vars[slot] {
                Some(SlotVar::One(_) | SlotVar::Flag(_)) if alone => match slots.read(slot) {
                    Val::Bits(num) => {
                        let limb = slots.e().low(&num);
                        slots.e().constant(limb)
                    }
                    Val::Bool(truth) => slots.e().constant(truth),
                    Val::Varbit(_) => None,
                },
                _ => None,
            };
            match constant {
                Some(number) => {
                    constants.slots.insert(slot, number);
                }
                None => slots.storage_to_context(slot),
            }
        }
        self.constants.insert(node, constants);
    }

    /// The reverse of [`Staged::save`].
    pub(super) fn restore(&mut self, slots: &mut SlotAccess<'_>, node: NodeId, live: &Live) {
        let entry = &self.special.nodes[node].entry;
        slots.facts = entry.clone();
        if !matches!(entry.cursor, Cursor::At(_)) {
            let context = slots.packet.context();
            let cursor = slots.e().load_word(types::I64, context, CURSOR);
            slots.packet.set(PacketVar::Cursor, cursor);
        }
        let constants = self.constants.remove(&node).unwrap_or_default();
        if live.parsed {
            let parsed = match constants.parsed {
                Some(number) => slots.e().int(number as u64),
                None => {
                    let context = slots.packet.context();
                    slots.e().load_word(types::I64, context, PARSED)
                }
            };
            slots.packet.set(PacketVar::Parsed, parsed);
        }
        if live.out {
            let outcome = slots.packet.outcome();
            let out = slots.e().load_word(types::I64, outcome, 0);
            slots.packet.set(PacketVar::Out, out);
        }
        if live.steps {
            let context = slots.packet.context();
            let steps = slots.e().load_word(types::I64, context, STEPS);
            slots.packet.set(PacketVar::Steps, steps);
        }
        slots.point_all_nowhere();
        for header in slots.program.headers.keys() {
            match slots.facts.place(header) {
                HeaderPlace::Unknown => {
                    let context = slots.packet.context();
                    let at = slots.layout.valid_at(header) as i32;
                    let valid = slots.ins().uload8(types::I64, plain(), context, at);
                    slots.packet.set(PacketVar::Valid(header), valid);
                }
                HeaderPlace::Pointed | HeaderPlace::Maybe => {
                    let context = slots.packet.context();
                    let at = slots.layout.pointer_at(header);
                    let pointer = slots.e().load_word(types::I64, context, at);
                    slots.packet.set(PacketVar::Pointer(header), pointer);
                }
                HeaderPlace::At(_) => slots.point_early(header),
                HeaderPlace::Invalid | HeaderPlace::Stored => {}
            }
        }
        let staged = self.stage_of_phase(entry.phase);
        for table in slots.program.tables.keys() {
            if !live.entries.contains(table.index()) || staged == Some(table) {
                continue;
            }
            let value = match has_entries(slots.program, table) {
                true => {
                    let context = slots.packet.context();
                    let at = slots.layout.entry_at(table) as i32;
                    slots.ins().uload32(plain(), context, at)
                }
                false => slots.e().int(0),
            };
            slots.packet.set(PacketVar::Entry(table), value);
        }
        for slot in self.saved(slots.program, entry, &live.slots) {
            match constants.slots.get(&slot) {
                Some(number) => {
                    let number = slots.e().int(*number as u64);
                    slots.set_number(slot, number);
                }
                None => slots.storage_from_context(slot),
            }
        }
        for (&slot, &mask) in &self.port_slots {
            if live.slots.contains(slot.index()) && !entry.constants.contains_key(&slot) {
                let port = slots.packet.port();
                let number = slots.e().and(port, mask);
                slots.set_number(slot, number);
            }
        }
        for (slot, value) in &entry.constants {
            if live.slots.contains(slot.index()) && has_storage(slots.program, entry, *slot) {
                let number = slots.e().int(*value);
                slots.set_number(*slot, number);
            }
        }
    }

    /// The slots that a packet takes along to a node.
    fn saved(&self, program: &Program, entry: &Facts, live: &Set) -> Vec<SlotId> {
        let wanted = |slot: &SlotId| {
            live.contains(slot.index())
                && has_storage(program, entry, *slot)
                && !entry.constants.contains_key(slot)
                && !self.port_slots.contains_key(slot)
        };
        program.slots.keys().filter(wanted).collect()
    }

    /// Keeps the sums over a packet that starts to wait for a node, where one path leads to it and a checksum comes
    /// after it.
    pub(super) fn save_sums(
        &mut self,
        slots: &mut SlotAccess<'_>,
        node: NodeId,
        stage: &Stage,
        memory: Value,
        offset: Value,
    ) {
        if slots.packet.cache.sums.is_empty()
            || self.waits_for.get(&node) != Some(&1)
            || !sums_after(self.cfg, self.special, node)
        {
            return;
        }
        let sums: Vec<Sum> =
            std::mem::take(&mut slots.packet.cache.sums).into_iter().take(MAX_SUMS).collect();
        let offset = slots.e().shl(offset, 1);
        let address = slots.ins().iadd(memory, offset);
        for (sum, at) in sums.iter().zip(sum_arrays(stage)) {
            slots.e().store_word(sum.total, address, at);
        }
        self.kept_sums.insert(node, sums);
    }

    /// The reverse of [`Staged::save_sums`]; `address` is the packet's in an array of `u32`.
    pub(super) fn restore_sums(
        &mut self,
        slots: &mut SlotAccess<'_>,
        node: NodeId,
        stage: &Stage,
        address: Value,
    ) {
        let Some(sums) = self.kept_sums.remove(&node) else { return };
        let memory = slots.packet.loop_env.stage;
        let offset = slots.ins().isub(address, memory);
        let address = slots.ins().iadd(address, offset);
        for (mut sum, at) in sums.into_iter().zip(sum_arrays(stage)) {
            sum.total = slots.e().load_word(types::I64, address, at);
            slots.packet.cache.sums.push(sum);
        }
    }

    fn stage_of_phase(&self, phase: u32) -> Option<TableId> {
        let mut stages = self.stages.iter().enumerate();
        let found = stages.find(|(_, stage)| stage.as_ref().is_some_and(|stage| stage.phase == phase));
        found.map(|(table, _)| TableId::new(table))
    }
}
