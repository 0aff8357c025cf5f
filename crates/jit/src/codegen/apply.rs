//! Applying tables: keys, lookups, action data, and the loops of staged tables.

use super::values::{Form, Num};
use super::{Cache, Gen, plain};
use crate::abi::{Env, MISSED, TableEnv};
use crate::compiled::JitError;
use crate::site::location;
use crate::stage::Stage;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Switch;
use millrace_midend::Site;
use millrace_midend::specialise::NodeId;
use millrace_midend::{limbs, type_width};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use millrace_state::{LookupCounts, argument_size, network_order};
use std::mem::offset_of;

impl Gen<'_> {
    /// The limbs of a table's key: its fields as one number, the first field highest.
    fn key(&mut self, table: TableId) -> Vec<Value> {
        let keys = &self.s.program.tables[table].keys;
        let nums: Vec<Num> = keys.iter().map(|key| self.number(&key.value)).collect();
        let width: u32 = nums.iter().map(|num| num.width).sum();
        let mut words: Vec<Option<Value>> = vec![None; limbs(width)];
        let mut above = width;
        for num in &nums {
            above -= num.width;
            let own = self.limbs(num);
            let moved = self.move_up(&own, above, above + num.width);
            let moved = self.limbs(&moved);
            let first = (above / 64) as usize;
            for (at, limb) in moved.into_iter().enumerate().skip(first) {
                words[at] = Some(match words[at] {
                    None => limb,
                    Some(word) => self.b.ins().bor(word, limb),
                });
            }
        }
        words.into_iter().map(|word| word.unwrap_or_else(|| self.int(0))).collect()
    }

    fn selector_inputs(&mut self, table: TableId) -> Vec<Num> {
        let inputs = &self.s.program.tables[table].selector_inputs;
        inputs.iter().map(|input| self.number(input)).collect()
    }

    pub(super) fn has_entries(&self, table: TableId) -> bool {
        let table = &self.s.program.tables[table];
        table.direct_counter.is_some() || table.direct_meter.is_some()
    }

    pub(super) fn lookup(&mut self, table: TableId, next: NodeId) {
        if self.s.waits(table, self.facts.phase) {
            return self.wait(table, next);
        }
        let key = self.key(table);
        if let Some(found) = self.by_loads(table, &key) {
            self.found(table, found);
            return self.jump_to(next);
        }
        let keys = self.words_in_memory(0, &key);
        let inputs = self.selector_inputs(table);
        let inputs = if inputs.is_empty() { self.int(0) } else { self.numbers_in_memory(1, &inputs) };
        let results = self.buffer(2, 8);
        let has_entries = self.has_entries(table);
        let entries = if has_entries { self.plus(results, 4) } else { self.int(0) };
        let one = self.int(1);
        self.call_lookup(table, keys, inputs, one, results, entries);
        let found = self.b.ins().uload32(plain(), results, 0);
        if has_entries {
            let entry = self.b.ins().uload32(plain(), results, 4);
            self.set(self.vars.entries[table.index()], entry);
        }
        self.found(table, found);
        self.jump_to(next);
    }

    fn words_in_memory(&mut self, buffer: usize, words: &[Value]) -> Value {
        let address = self.buffer(buffer, 8 * words.len() as u32);
        for (at, word) in words.iter().enumerate() {
            self.store_word(*word, address, 8 * at as u32);
        }
        address
    }

    /// A field of what the environment says of a table; the same for the whole batch.
    pub(super) fn table_field(&mut self, table: TableId, field: usize) -> Value {
        let tables = self.loop_env.tables;
        let at = table.index() * size_of::<TableEnv>() + field;
        self.b.ins().load(types::I64, plain(), tables, at as i32)
    }

    fn call_lookup(
        &mut self,
        table: TableId,
        keys: Value,
        inputs: Value,
        count: Value,
        slots: Value,
        entries: Value,
    ) {
        let lookup = self.table_field(table, offset_of!(TableEnv, lookup));
        let argument = self.table_field(table, offset_of!(TableEnv, table));
        let host = self.host();
        self.call_address(lookup, &[host, argument, keys, inputs, count, slots, entries]);
    }

    /// The lookup gave an action slot. What a default group selected has a record of its own and is a miss.
    fn found(&mut self, table: TableId, slot: Value) {
        let profile = self.s.program.tables[table].profile;
        let (slot, found) = match profile.and_then(|id| self.s.program.profiles[id].selector.as_ref()) {
            Some(_) => {
                let mask = self.int(u64::from(!MISSED));
                let plain = self.b.ins().band(slot, mask);
                let hit = self.b.ins().icmp(IntCC::Equal, plain, slot);
                let zero = self.int(0);
                (plain, self.b.ins().select(hit, slot, zero))
            }
            None => (slot, slot),
        };
        self.set(self.vars.found, found);
        if self.s.count_lookups {
            self.count_lookup(table, found);
        }
        let records = self.table_field(table, offset_of!(TableEnv, records));
        let stride = self.s.records[table.index()].stride;
        let offset = match stride.is_power_of_two() {
            true => self.shl(slot, stride.trailing_zeros()),
            false => {
                let stride = self.int(u64::from(stride));
                self.b.ins().imul(slot, stride)
            }
        };
        let record = self.b.ins().iadd(records, offset);
        self.set(self.vars.record, record);
    }

    /// Counts a lookup that gave an action slot.
    fn count_lookup(&mut self, table: TableId, slot: Value) {
        let counts = self.env_field(offset_of!(Env, lookups));
        let at = table.index() * size_of::<LookupCounts>();
        self.add_one(counts, at + offset_of!(LookupCounts, lookups));
        let (missed, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(missed);
        self.b.ins().brif(slot, done, &[], missed, &[]);
        self.start(missed);
        self.add_one(counts, at + offset_of!(LookupCounts, misses));
        self.b.ins().jump(done, &[]);
        self.start(done);
    }

    fn add_one(&mut self, base: Value, at: usize) {
        let count = self.load_word(types::I64, base, at as u32);
        let count = self.plus(count, 1);
        self.store_word(count, base, at as u32);
    }

    /// Goes to the action that the record names.
    pub(super) fn dispatch(&mut self, _: TableId, actions: &[NodeId]) {
        if let [only] = actions {
            return self.jump_to(*only);
        }
        let record = self.get(self.vars.record);
        if let [first, second] = actions {
            let (first, second) = (self.edge(*first), self.edge(*second));
            let index = self.load_word(types::I32, record, 0);
            let zero = self.b.ins().iconst(types::I32, 0);
            let is_other = self.b.ins().icmp(IntCC::NotEqual, index, zero);
            self.b.ins().brif(is_other, second, &[], first, &[]);
            return;
        }
        let index = self.b.ins().uload32(plain(), record, 0);
        let mut switch = Switch::new();
        let mut last = None;
        for (at, action) in actions.iter().enumerate() {
            let block = self.edge(*action);
            if at + 1 < actions.len() {
                switch.set_entry(at as u128, block);
            }
            last = Some(block);
        }
        if let Some(last) = last {
            switch.emit(&mut self.b, index, last);
        }
    }

    /// An argument of the action, from the record.
    pub(super) fn argument(&mut self, dst: SlotId, table: TableId, action: usize, param: usize) {
        let offset = self.s.records[table.index()].offsets[action][param];
        let record = self.get(self.vars.record);
        let width = type_width(self.s.program.slots[dst].ty);
        let at = offset as i32;
        let words: Vec<Value> = match argument_size(width).0 {
            1 => vec![self.b.ins().uload8(types::I64, plain(), record, at)],
            2 => vec![self.b.ins().uload16(types::I64, plain(), record, at)],
            4 => vec![self.b.ins().uload32(plain(), record, at)],
            _ => {
                (0..limbs(width)).map(|i| self.load_word(types::I64, record, offset + 8 * i as u32)).collect()
            }
        };
        let num = match words.as_slice() {
            [raw] => {
                self.widths.insert(*raw, width);
                let form = match network_order(width) {
                    true => Form::Swapped(*raw),
                    false => Form::Limbs(vec![*raw]),
                };
                Num { width, form }
            }
            _ => Num::limbs(width, words),
        };
        let val = self.as_type(dst, num);
        self.write(dst, val);
    }

    /// The packet waits for the lookup of the whole batch.
    fn wait(&mut self, table: TableId, next: NodeId) {
        let Some(stage) = self.s.stages[table.index()].clone() else { return };
        let Some(filled) = self.waiting.get(&table).copied() else { return };
        let key = self.key(table);
        if stage.is_far {
            self.ask_for(table, &key);
        }
        let memory = self.loop_env.stage;
        let offset = self.b.use_var(filled);
        let address = self.b.ins().iadd(memory, offset);
        let inputs = self.selector_inputs(table);
        let inputs: Vec<Value> = inputs.iter().flat_map(|num| self.limbs(num)).collect();
        self.store_waiting(&key, memory, offset, stage.keys);
        self.store_waiting(&inputs, memory, offset, stage.inputs);
        // Which packet waits.
        let before_end = self.get(self.vars.before_end);
        self.b.ins().istore32(plain(), before_end, address, stage.waiting as i32);
        let resumes = self.resumes.get(&table).cloned().unwrap_or_default();
        if resumes.len() > 1 {
            let resume = resumes.iter().position(|node| *node == next).unwrap_or(0);
            let resume = self.int(resume as u64);
            self.b.ins().istore32(plain(), resume, address, stage.resume as i32);
        }
        let done = self.next[&self.facts.phase];
        let wanted = self.special.nodes[next].entry.clone();
        self.conform(&wanted);
        self.save(next);
        self.save_sums(next, &stage, memory, offset);
        let offset = self.plus(offset, 4);
        self.b.def_var(filled, offset);
        self.b.ins().jump(done, &[]);
        self.cache = Cache::default();
    }

    /// Words of a packet that waits, in an array of the stage memory that starts there. `offset` is that in an array of
    /// `u32`.
    fn store_waiting(&mut self, words: &[Value], memory: Value, offset: Value, start: u32) {
        if words.is_empty() {
            return;
        }
        let times = 2 * words.len() as u32;
        let offset = match times.is_power_of_two() {
            true => self.shl(offset, times.trailing_zeros()),
            false => self.b.ins().imul_imm_s(offset, i64::from(times)),
        };
        let address = self.b.ins().iadd(memory, offset);
        for (at, word) in words.iter().enumerate() {
            self.store_word(*word, address, start + 8 * at as u32);
        }
    }

    /// The lookup of a staged table for all packets that wait, and the loop in which they go on.
    pub(super) fn stage(&mut self, table: TableId) -> Result<(), JitError> {
        let Some(stage) = self.s.stages[table.index()].clone() else { return Ok(()) };
        let Some(filled) = self.waiting.get(&table).copied() else { return Ok(()) };
        self.b.set_srcloc(location(Site::Table(table)));
        let bytes = self.b.use_var(filled);
        let (some, first, next, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block(), self.b.create_block());
        let any = self.not_zero(bytes);
        self.b.ins().brif(any, some, &[], done, &[]);
        self.start(some);
        let has_entries = self.has_entries(table);
        self.load_loop_env();
        let memory = self.loop_env.stage;
        let [keys, inputs, slots] = [stage.keys, stage.inputs, stage.slots].map(i64::from);
        let (keys, inputs, slots) =
            (self.plus(memory, keys), self.plus(memory, inputs), self.plus(memory, slots));
        let entries = if has_entries { self.plus(memory, i64::from(stage.entries)) } else { self.int(0) };
        let number = self.shr(bytes, 2);
        self.call_lookup(table, keys, inputs, number, slots, entries);
        self.load_loop_env();
        let memory = self.loop_env.stage;
        // The loop, its condition at the end, from the first waiting packet to the end of the last.
        let at = self.b.declare_var(types::I64);
        self.b.def_var(at, memory);
        let end = self.b.ins().iadd(memory, bytes);
        self.b.ins().jump(first, &[]);
        self.b.switch_to_block(first);
        self.cache = Cache::default();
        let address = self.b.use_var(at);
        let before_end = self.b.ins().sload32(plain(), address, stage.waiting as i32);
        self.set(self.vars.before_end, before_end);
        self.find_context();
        match self.s.stays {
            true => self.load_packet(),
            false => self.reload_packet(),
        }
        let found = self.b.ins().uload32(plain(), address, stage.slots as i32);
        if has_entries {
            let entry = self.b.ins().uload32(plain(), address, stage.entries as i32);
            self.set(self.vars.entries[table.index()], entry);
        }
        self.found(table, found);
        let phase = stage.phase;
        self.next.insert(phase, next);
        let resumes = self.resumes.remove(&table).unwrap_or_default();
        self.resume(&resumes, address, &stage);

        self.nodes(phase)?;
        self.start_anew(next);
        let address = self.b.use_var(at);
        let address = self.plus(address, 4);
        self.b.def_var(at, address);
        let more = self.b.ins().icmp(IntCC::NotEqual, address, end);
        self.b.ins().brif(more, first, &[], done, &[]);
        self.b.seal_block(first);
        self.start_anew(done);
        Ok(())
    }

    /// Goes on where the packet waited.
    fn resume(&mut self, resumes: &[NodeId], address: Value, stage: &Stage) {
        let mut targets = Vec::new();
        for _ in resumes {
            targets.push(self.b.create_block());
        }
        match targets.as_slice() {
            [] => {
                let next = self.next.values().copied().next();
                if let Some(next) = next {
                    self.b.ins().jump(next, &[]);
                }
            }
            [only] => {
                self.b.ins().jump(*only, &[]);
            }
            [others @ .., last] => {
                let number = self.b.ins().uload32(plain(), address, stage.resume as i32);
                let mut switch = Switch::new();
                for (at, block) in others.iter().enumerate() {
                    switch.set_entry(at as u128, *block);
                }
                switch.emit(&mut self.b, number, *last);
            }
        }
        for (block, node) in targets.into_iter().zip(resumes) {
            self.start_anew(block);
            self.facts = self.special.nodes[*node].entry.clone();
            self.restore(*node);
            self.restore_sums(*node, stage, address);
            self.jump_to(*node);
        }
    }
}
