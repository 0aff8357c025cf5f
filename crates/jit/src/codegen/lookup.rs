//! Looking a table up: by loads, without a call (see [`Shape`]), or by a call; and what the result means.

use super::Shared;
use super::emitter::Emitter;
use super::fields::plain;
use super::packet::PacketAccess;
use super::variables::PacketVar;
use crate::abi::{Env, MISSED, Shape, TableEnv};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type as ClifType, Value, types};
use cranelift_frontend::FuncInstBuilder;
use millrace_midend::machine::{Callee, Does, Origin};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::{Program, TableId};
use millrace_state::{Line, LookupCounts, RecordLayout, Spread};
use std::mem::offset_of;

/// Whether a table has direct objects: a hit then gives an entry too.
pub(super) fn has_entries(program: &Program, table: TableId) -> bool {
    let table = &program.tables[table];
    table.direct_counter.is_some() || table.direct_meter.is_some()
}

/// How tables are looked up: the same for the whole function.
pub(super) struct Lookups<'a> {
    program: &'a Program,
    shapes: &'a [Shape],
    records: &'a [RecordLayout],
    count_lookups: bool,
    is_quick: bool,
    loads_in_order: bool,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(shared: &Shared<'a>) -> Lookups<'a> {
        Lookups {
            program: shared.program,
            shapes: shared.looked_up.shapes,
            records: shared.records,
            count_lookups: shared.looked_up.are_counted,
            is_quick: shared.is_quick,
            loads_in_order: shared.looked_up.loads_in_order,
        }
    }

    /// The code of lookups of one table.
    pub(super) fn of<'g>(&'g self, packet: &'g mut PacketAccess<'a>, table: TableId) -> TableLookup<'g, 'a> {
        TableLookup { lookups: self, packet, table }
    }
}

/// Code of lookups of one table. It leaves the result in the variables of the packet: the record of the action, whether it
/// was a hit, and the entry where the table has direct objects.
pub(super) struct TableLookup<'g, 'a> {
    lookups: &'g Lookups<'a>,
    packet: &'g mut PacketAccess<'a>,
    table: TableId,
}

impl<'a> TableLookup<'_, 'a> {
    /// The next instruction.
    fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.packet.e.ins()
    }

    fn e(&mut self) -> &mut Emitter<'a> {
        &mut self.packet.e
    }

    pub(super) fn has_entries(&self) -> bool {
        has_entries(self.lookups.program, self.table)
    }

    /// A field of what the environment says of the table.
    fn field(&mut self, field: usize) -> Value {
        self.packet.table_field(self.table, field)
    }

    /// The action slot of a key; the entry goes to its variable where the table has entries. None for a table that is looked
    /// up by calls.
    pub(super) fn by_loads(&mut self, key: &[Value]) -> Option<Value> {
        let result = match (self.shape(), key) {
            (Shape::Call, _) => return None,
            // The slot of the default action.
            (Shape::NoKey, _) => self.e().int(0),
            (Shape::Direct, [key]) => {
                let base = self.field(offset_of!(TableEnv, base));
                self.e().load_element(base, *key, 4)
            }
            (Shape::Two { low, bytes }, [key]) => self.in_two_levels(*key, low, bytes),
            (Shape::Lines(_), [_] | [_, _]) if self.lookups.is_quick => self.in_lines_by_call(key),
            (Shape::Lines(_), [_]) => self.in_lines(key, Line::ONE),
            (Shape::Lines(_), [_, _]) => self.in_lines(key, Line::TWO),
            _ => return None,
        };
        if !self.has_entries() {
            return Some(result);
        }
        let next = self.e().plus(result, 1);
        let entry = self.ins().select(result, next, result);
        self.packet.set(PacketVar::Entry(self.table), entry);
        // A miss is entry 0, whose slot is 0.
        Some(self.slot_of(result))
    }

    /// Asks for what the lookup of a key loads first, where that is known here: it comes while other packets are
    /// parsed, and the lookup of the batch does not wait for it.
    pub(super) fn ask_for(&mut self, key: &[Value]) {
        let address = match (self.shape(), key) {
            (Shape::Two { low, bytes }, [key]) => {
                let base = self.field(offset_of!(TableEnv, base));
                let index = self.e().shr(*key, low);
                self.e().element(base, index, bytes)
            }
            (Shape::Lines(_), [_] | [_, _]) => self.line_of(key),
            _ => return,
        };
        self.e().prefetch(address);
    }

    fn shape(&self) -> Shape {
        self.lookups.shapes.get(self.table.index()).copied().unwrap_or_default()
    }

    fn in_two_levels(&mut self, key: Value, low: u32, word: u32) -> Value {
        let base = self.field(offset_of!(TableEnv, base));
        let index = self.e().shr(key, low);
        let first = self.load_before_fallback(base, index, word);
        if low == 0 {
            return self.or_fallback(first);
        }
        let (deeper, done) = (self.e().new_block(), self.e().new_block());
        let result = self.e().b.append_block_param(done, types::I64);
        let mark = 1 << (8 * word - 1);
        let marked = self.e().and(first, mark);
        self.e().b.set_cold_block(deeper);
        self.ins().brif(marked, deeper, &[], done, &[first.into()]);
        self.e().start(deeper);
        let second = self.field(offset_of!(TableEnv, second));
        let group = self.e().and(first, mark - 1);
        let start = self.e().shl(group, low);
        let below = self.e().and(key, (1 << low) - 1);
        let index = self.ins().iadd(start, below);
        let found = self.load_before_fallback(second, index, word);
        self.ins().jump(done, &[found.into()]);
        self.e().start(done);
        self.or_fallback(result)
    }

    /// As [`Emitter::load_element`]; what is loaded later in the code is loaded later.
    fn load_before_fallback(&mut self, base: Value, index: Value, word: u32) -> Value {
        if self.lookups.loads_in_order {
            return self.e().load_element(base, index, word);
        }
        let address = self.e().element(base, index, word);
        let ty = ClifType::int_with_byte_size(word as u16).unwrap_or(types::I32);
        let found = self.ins().atomic_load(ty, plain(), address);
        self.ins().uextend(types::I64, found)
    }

    /// A word of two levels, or in place of 0 what the prefix of length 0 leads to ([`TableEnv::fallback`]).
    fn or_fallback(&mut self, word: Value) -> Value {
        // An address that another lookup has loaded is not taken for this one, so neither is what it found there, which was before
        // this word.
        let field = self.packet.table_address(self.table, offset_of!(TableEnv, fallback));
        let address = self.ins().atomic_load(types::I64, plain(), field);
        let fallback = self.e().load_word(types::I64, address, 0);
        let is_zero = self.e().is_zero(word);
        self.ins().select(is_zero, fallback, word)
    }

    /// As [`TableLookup::in_lines`], in less code.
    fn in_lines_by_call(&mut self, key: &[Value]) -> Value {
        let lines = self.field(offset_of!(TableEnv, base));
        let spread = self.field(offset_of!(TableEnv, second));
        let limbs = self.e().int(key.len() as u64);
        let high = key.last().copied().unwrap_or(limbs);
        self.e().call(Helper::InLines, &[lines, spread, limbs, key[0], high])
    }

    /// In the line of the key's bucket, and seldom in others where a full one goes on.
    fn in_lines(&mut self, key: &[Value], layout: Line) -> Value {
        let (line, more, done) = (self.e().new_block(), self.e().new_block(), self.e().new_block());
        let address = self.e().b.append_block_param(line, types::I64);
        let number = self.e().b.append_block_param(more, types::I64);
        let result = self.e().b.append_block_param(done, types::I64);
        let wanted = self.in_vector(key);
        let first = self.line_of(key);
        self.ins().jump(line, &[first.into()]);

        self.e().b.switch_to_block(line);
        // Acquires what the slots in use hold.
        let control = self.e().plus(address, i64::from(Line::CONTROL));
        let control = self.ins().atomic_load(types::I32, plain(), control);
        let equal = self.equal_slots(address, wanted, layout);
        let hit = self.ins().band(equal, control);
        // On a miss this is the word after the results, which the caller ignores.
        let guard = self.ins().iconst(types::I32, 1 << layout.slots);
        let some = self.ins().bor(hit, guard);
        let slot = self.ins().ctz(some);
        let slot = self.ins().uextend(types::I64, slot);
        let word = self.e().element(address, slot, 4);
        let word = self.ins().uload32(plain(), word, layout.results as i32);
        let zero = self.e().int(0);
        let found = self.ins().select(hit, word, zero);
        let goes_on = self.ins().ushr_imm_u(control, i64::from(Line::SLOT_BITS));
        let none = self.ins().iconst(types::I32, 0);
        let goes_on = self.ins().select(hit, none, goes_on);
        let goes_on = self.ins().uextend(types::I64, goes_on);
        self.e().b.set_cold_block(more);
        self.ins().brif(goes_on, more, &[goes_on.into()], done, &[found.into()]);

        self.e().start(more);
        let (around, table) = (self.e().origin(), self.table);
        self.e().set_origin(Origin { does: Does::NextLine(table), ..around });
        let buckets = self.spread(offset_of!(Spread, buckets));
        let number = self.ins().iadd(number, buckets);
        let number = self.e().plus(number, -1);
        let base = self.field(offset_of!(TableEnv, base));
        let next = self.e().element(base, number, Line::BYTES);
        self.ins().jump(line, &[next.into()]);
        self.e().set_origin(around);
        self.e().b.seal_block(line);
        self.e().start(done);
        result
    }

    /// A bit for each slot of a line that has the key, in use or not.
    fn equal_slots(&mut self, line: Value, wanted: Value, layout: Line) -> Value {
        let limbs = layout.limbs * layout.slots;
        let mut all = None;
        for pair in 0..limbs.div_ceil(2) {
            let two = self.ins().load(types::I64X2, plain(), line, 16 * pair as i32);
            let same = self.ins().icmp(IntCC::Equal, two, wanted);
            let bits = if layout.limbs == 1 {
                let bits = self.ins().vhigh_bits(types::I32, same);
                // The last pair of an odd number of keys ends in results.
                if 2 * pair + 1 == limbs { self.ins().band_imm_u(bits, 1) } else { bits }
            } else {
                let both = self.ins().vall_true(same);
                self.ins().uextend(types::I32, both)
            };
            let bits = self.ins().ishl_imm_u(bits, i64::from(pair * 2 / layout.limbs));
            all = Some(match all {
                None => bits,
                Some(all) => self.ins().bor(all, bits),
            });
        }
        all.unwrap_or(line)
    }

    /// A key as it lies in a pair of limbs; of one limb twice.
    fn in_vector(&mut self, key: &[Value]) -> Value {
        let vector = self.ins().splat(types::I64X2, key[0]);
        match key {
            [_, high] => self.ins().insertlane(vector, *high, 1),
            _ => vector,
        }
    }

    /// The line where a key belongs, see [`Spread`].
    fn line_of(&mut self, key: &[Value]) -> Value {
        let seed = self.spread(offset_of!(Spread, seeds));
        let factor = self.spread(offset_of!(Spread, seeds) + 8);
        let hash = match key {
            [limb] => {
                let mixed = self.ins().bxor(*limb, seed);
                self.ins().imul(mixed, factor)
            }
            _ => key.iter().fold(seed, |hash, limb| {
                let mixed = self.ins().bxor(hash, *limb);
                let (low, high) = (self.ins().imul(mixed, factor), self.ins().umulhi(mixed, factor));
                self.ins().bxor(low, high)
            }),
        };
        let buckets = self.spread(offset_of!(Spread, buckets));
        let high = self.e().shr(hash, 32);
        let scaled = self.ins().imul(high, buckets);
        let bucket = self.e().shr(scaled, 32);
        let base = self.field(offset_of!(TableEnv, base));
        self.e().element(base, bucket, Line::BYTES)
    }

    fn spread(&mut self, field: usize) -> Value {
        let spread = self.field(offset_of!(TableEnv, second));
        self.e().load_word(types::I64, spread, field as u32)
    }

    /// The action slot of an entry, through the array in pieces of [`TableEnv::starts`].
    fn slot_of(&mut self, entry: Value) -> Value {
        let starts = self.field(offset_of!(TableEnv, starts));
        let start = self.e().piece_start(starts, entry);
        self.e().load_element(start, entry, 4)
    }

    /// Calls [`TableEnv::lookup`]; the last two arguments may be null.
    pub(super) fn by_call(
        &mut self,
        keys: Value,
        inputs: Value,
        count: Value,
        slots: Value,
        [entries, packets]: [Value; 2],
        callee: Callee,
    ) {
        let lookup = self.field(offset_of!(TableEnv, lookup));
        let argument = self.field(offset_of!(TableEnv, table));
        let host = self.packet.host();
        self.e().call_address(
            callee,
            lookup,
            &[host, argument, keys, inputs, count, slots, entries, packets],
        );
    }

    /// The lookup gave an action slot. What a default group selected has a record of its own and is a miss.
    pub(super) fn found(&mut self, slot: Value) {
        let profile = self.lookups.program.tables[self.table].profile;
        let (slot, found) = match profile.and_then(|id| self.lookups.program.profiles[id].selector.as_ref()) {
            Some(_) => {
                let mask = self.e().int(u64::from(!MISSED));
                let plain = self.ins().band(slot, mask);
                let hit = self.ins().icmp(IntCC::Equal, plain, slot);
                let zero = self.e().int(0);
                (plain, self.ins().select(hit, slot, zero))
            }
            None => (slot, slot),
        };
        self.packet.set(PacketVar::Found, found);
        if self.lookups.count_lookups {
            self.count_lookup(found);
        }
        let record = self.record_of(slot);
        self.packet.set(PacketVar::Record, record);
    }

    /// The record of an action slot.
    pub(super) fn record_of(&mut self, slot: Value) -> Value {
        let records = self.field(offset_of!(TableEnv, records));
        let stride = self.lookups.records[self.table.index()].stride;
        let offset = match stride.is_power_of_two() {
            true => self.e().shl(slot, stride.trailing_zeros()),
            false => {
                let stride = self.e().int(u64::from(stride));
                self.ins().imul(slot, stride)
            }
        };
        self.ins().iadd(records, offset)
    }

    /// Counts a lookup that gave an action slot.
    fn count_lookup(&mut self, slot: Value) {
        let counts = self.packet.env_field(offset_of!(Env, lookups));
        let at = self.table.index() * size_of::<LookupCounts>();
        self.e().add_one(counts, at + offset_of!(LookupCounts, lookups));
        let (missed, done) = (self.e().new_block(), self.e().new_block());
        self.e().b.set_cold_block(missed);
        self.ins().brif(slot, done, &[], missed, &[]);
        self.e().start(missed);
        self.e().add_one(counts, at + offset_of!(LookupCounts, misses));
        self.ins().jump(done, &[]);
        self.e().start(done);
    }
}
