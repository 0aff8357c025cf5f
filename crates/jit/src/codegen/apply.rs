//! Applying tables: keys, lookups, and the loops of staged tables.

use super::Gen;
use super::ahead::Wanted;
use super::cache::Cache;
use super::fields::plain;
use super::lookup::has_entries;
use super::staged::store_waiting;
use super::values::Num;
use super::variables::PacketVar;
use crate::compiled::JitError;
use crate::stage::Stage;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Switch;
use millrace_midend::Site;
use millrace_midend::limbs;
use millrace_midend::machine::{Callee, Does, Origin};
use millrace_midend::specialise::NodeId;
use millrace_pipeline::*;

impl Gen<'_> {
    /// The limbs of a table's key: its fields as one number, the first field highest.
    fn key(&mut self, table: TableId) -> Vec<Value> {
        let keys = &self.program.tables[table].keys;
        let nums: Vec<Num> = keys.iter().map(|key| self.ops.number(&key.value)).collect();
        let width: u32 = nums.iter().map(|num| num.width).sum();
        let mut words: Vec<Option<Value>> = vec![None; limbs(width)];
        let mut above = width;
        for num in &nums {
            above -= num.width;
            let own = self.e().limbs(num);
            let moved = self.e().move_up(&own, above, above + num.width);
            let moved = self.e().limbs(&moved);
            let first = (above / 64) as usize;
            for (at, limb) in moved.into_iter().enumerate().skip(first) {
                words[at] = Some(match words[at] {
                    None => limb,
                    Some(word) => self.ins().bor(word, limb),
                });
            }
        }
        words.into_iter().map(|word| word.unwrap_or_else(|| self.e().int(0))).collect()
    }

    fn selector_inputs(&mut self, table: TableId) -> Vec<Num> {
        let inputs = &self.program.tables[table].selector_inputs;
        inputs.iter().map(|input| self.ops.number(input)).collect()
    }

    pub(super) fn lookup(&mut self, table: TableId, next: NodeId) {
        if self.staged.waits(table, self.ops.slots.facts.phase) {
            return self.wait(table, next);
        }
        let key = self.key(table);
        if let Some(found) = self.of_table(table).by_loads(&key) {
            self.of_table(table).found(found);
            return self.jump_to(next);
        }
        let keys = self.e().words_in_memory(0, &key);
        let inputs = self.selector_inputs(table);
        let inputs = if inputs.is_empty() { self.e().int(0) } else { self.e().numbers_in_memory(1, &inputs) };
        // The action slot, the entry, and which packet it is.
        let results = self.e().buffer(2, 12);
        let has_entries = has_entries(self.program, table);
        let entries = if has_entries { self.e().plus(results, 4) } else { self.e().int(0) };
        let one = self.e().int(1);
        let packets = match self.program.tables[table].idle_timeout {
            true => {
                let before_end = self.packet().get(PacketVar::BeforeEnd);
                self.ins().istore32(plain(), before_end, results, 8);
                self.e().plus(results, 8)
            }
            false => self.e().int(0),
        };
        let callee = Callee::Lookup(table);
        self.of_table(table).by_call(keys, inputs, one, results, [entries, packets], callee);
        let found = self.ins().uload32(plain(), results, 0);
        if has_entries {
            let entry = self.ins().uload32(plain(), results, 4);
            self.packet().set(PacketVar::Entry(table), entry);
        }
        self.of_table(table).found(found);
        self.jump_to(next);
    }

    /// Goes to the action that the record names.
    pub(super) fn dispatch(&mut self, _: TableId, actions: &[NodeId]) {
        if let [only] = actions {
            return self.jump_to(*only);
        }
        let record = self.packet().get(PacketVar::Record);
        if let [first, second] = actions {
            let (first, second) = (self.edge(*first), self.edge(*second));
            let index = self.e().load_word(types::I32, record, 0);
            let zero = self.ins().iconst(types::I32, 0);
            let is_other = self.ins().icmp(IntCC::NotEqual, index, zero);
            self.ins().brif(is_other, second, &[], first, &[]);
            return;
        }
        let index = self.ins().uload32(plain(), record, 0);
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
            switch.emit(&mut self.e().b, index, last);
        }
    }

    /// The packet waits for the lookup of the whole batch.
    fn wait(&mut self, table: TableId, next: NodeId) {
        let Some((stage, filled)) = self.staged.of(table) else { return };
        let key = self.key(table);
        if stage.is_far {
            self.of_table(table).ask_for(&key);
        }
        let memory = self.packet().loop_env.stage;
        let offset = self.e().b.use_var(filled);
        let address = self.ins().iadd(memory, offset);
        let inputs = self.selector_inputs(table);
        let inputs: Vec<Value> = inputs.iter().flat_map(|num| self.e().limbs(num)).collect();
        match key.as_slice() {
            [key] if stage.by_loads => {
                self.ins().istore32(plain(), *key, address, stage.keys as i32);
            }
            _ => store_waiting(self.e(), &key, memory, offset, stage.keys),
        }
        store_waiting(self.e(), &inputs, memory, offset, stage.inputs);
        // Which packet waits.
        let before_end = self.packet().get(PacketVar::BeforeEnd);
        self.ins().istore32(plain(), before_end, address, stage.waiting as i32);
        if let Some(resume) = self.staged.resume_number(table, next) {
            let resume = self.e().int(resume as u64);
            self.ins().istore32(plain(), resume, address, stage.resume as i32);
        }
        let done = self.walk.ends[&self.ops.slots.facts.phase];
        let slots = &mut self.ops.slots;
        slots.conform(&self.special.nodes[next].entry);
        self.staged.save(slots, next, &self.live[next]);
        self.staged.save_sums(slots, next, stage, memory, offset);
        let offset = self.e().plus(offset, 4);
        self.e().b.def_var(filled, offset);
        self.ins().jump(done, &[]);
        self.packet().cache = Cache::default();
    }

    /// The lookup of a staged table for all packets that wait, and the loop in which they go on.
    pub(super) fn stage(&mut self, table: TableId) -> Result<(), JitError> {
        let Some((stage, filled)) = self.staged.of(table) else { return Ok(()) };
        let origin = Origin { site: Site::Table(table), ..Origin::default() };
        self.e().set_origin(origin);
        let bytes = self.e().b.use_var(filled);
        let (some, first, next, done) =
            (self.e().new_block(), self.e().new_block(), self.e().new_block(), self.e().new_block());
        let any = self.e().not_zero(bytes);
        self.ins().brif(any, some, &[], done, &[]);
        self.e().start(some);
        if !stage.by_loads {
            self.lookup_of_all(table, stage, bytes);
        }
        self.packet().load_loop_env();
        let memory = self.packet().loop_env.stage;
        // The loop, its condition at the end, from the first waiting packet to the end of the last.
        let at = self.e().b.declare_var(types::I64);
        self.e().b.def_var(at, memory);
        let end = self.ins().iadd(memory, bytes);
        let wanted = Wanted::of(self.program, self.cfg, self.ops.objects, (table, stage));
        let last = self.e().plus(end, -4);
        self.ins().jump(first, &[]);
        self.e().b.switch_to_block(first);
        self.packet().cache = Cache::default();
        let address = self.e().b.use_var(at);
        let before_end = self.ins().sload32(plain(), address, stage.waiting as i32);
        self.packet().set(PacketVar::BeforeEnd, before_end);
        self.packet().find_context();
        self.packet().find_packet();
        wanted.ask_for(&mut self.ops, &self.lookups, stage, (address, last));
        let found = if stage.by_loads {
            let key = self.ins().uload32(plain(), address, stage.keys as i32);
            self.of_table(table).by_loads(&[key])
        } else {
            if has_entries(self.program, table) {
                let entry = self.ins().uload32(plain(), address, stage.entries as i32);
                self.packet().set(PacketVar::Entry(table), entry);
            }
            Some(self.ins().uload32(plain(), address, stage.slots as i32))
        };
        // Never: a stage is by loads only where the shape of its table is.
        let found = found.ok_or_else(|| JitError::Codegen("a staged table without loads".into()))?;
        self.of_table(table).found(found);
        let phase = stage.phase;
        self.walk.ends.insert(phase, next);
        let resumes = self.staged.take_resumes(table);
        self.resume(&resumes, address, stage);

        self.nodes(phase)?;
        self.e().set_origin(Origin { does: Does::NextPacket(phase), ..origin });
        self.start_anew(next);
        let address = self.e().b.use_var(at);
        let address = self.e().plus(address, 4);
        self.e().b.def_var(at, address);
        let more = self.ins().icmp(IntCC::NotEqual, address, end);
        self.ins().brif(more, first, &[], done, &[]);
        self.e().b.seal_block(first);
        self.e().set_origin(origin);
        self.start_anew(done);
        Ok(())
    }

    /// Calls for the lookup of all keys that wait, which take so many bytes in an array of `u32`.
    fn lookup_of_all(&mut self, table: TableId, stage: &Stage, bytes: Value) {
        self.packet().load_loop_env();
        let memory = self.packet().loop_env.stage;
        let [keys, inputs, slots] = [stage.keys, stage.inputs, stage.slots].map(i64::from);
        let (keys, inputs, slots) =
            (self.e().plus(memory, keys), self.e().plus(memory, inputs), self.e().plus(memory, slots));
        let entries = match has_entries(self.program, table) {
            true => self.e().plus(memory, i64::from(stage.entries)),
            false => self.e().int(0),
        };
        let number = self.e().shr(bytes, 2);
        let packets = match self.program.tables[table].idle_timeout {
            true => self.e().plus(memory, i64::from(stage.waiting)),
            false => self.e().int(0),
        };
        let callee = Callee::LookupOfAll(table);
        self.of_table(table).by_call(keys, inputs, number, slots, [entries, packets], callee);
    }

    /// Goes on where the packet waited.
    fn resume(&mut self, resumes: &[NodeId], address: Value, stage: &Stage) {
        let mut targets = Vec::new();
        for _ in resumes {
            targets.push(self.e().new_block());
        }
        match targets.as_slice() {
            [] => {
                let next = self.walk.ends.values().copied().next();
                if let Some(next) = next {
                    self.ins().jump(next, &[]);
                }
            }
            [only] => {
                self.ins().jump(*only, &[]);
            }
            [others @ .., last] => {
                let number = self.ins().uload32(plain(), address, stage.resume as i32);
                let mut switch = Switch::new();
                for (at, block) in others.iter().enumerate() {
                    switch.set_entry(at as u128, *block);
                }
                switch.emit(&mut self.e().b, number, *last);
            }
        }
        for (block, node) in targets.into_iter().zip(resumes) {
            self.start_anew(block);
            let slots = &mut self.ops.slots;
            self.staged.restore(slots, *node, &self.live[*node]);
            self.staged.restore_sums(slots, *node, stage, address);
            self.jump_to(*node);
        }
    }
}
