//! Looking tables up by loads, without a call: see [`Shape`].

use super::{Gen, plain};
use crate::abi::{Shape, TableEnv};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_pipeline::TableId;
use millrace_pipeline::entity::EntityRef;
use millrace_state::{Line, Spread};
use std::mem::offset_of;

impl Gen<'_> {
    /// The action slot of a key; the entry goes to its variable where the table has entries. None for a table that is looked
    /// up by calls.
    pub(super) fn by_loads(&mut self, table: TableId, key: &[Value]) -> Option<Value> {
        let result = match (self.shape(table), key) {
            (Shape::Call, _) => return None,
            (Shape::Direct, [key]) => {
                let base = self.table_field(table, offset_of!(TableEnv, base));
                self.load_element(base, *key, 4)
            }
            (Shape::Two { low, bytes }, [key]) => self.in_two_levels(table, *key, low, bytes),
            (Shape::Lines(_), [_] | [_, _]) if self.s.is_quick => self.in_lines_by_call(table, key),
            (Shape::Lines(_), [_]) => self.in_lines(table, key, Line::ONE),
            (Shape::Lines(_), [_, _]) => self.in_lines(table, key, Line::TWO),
            _ => return None,
        };
        if !self.has_entries(table) {
            return Some(result);
        }
        let next = self.plus(result, 1);
        let entry = self.b.ins().select(result, next, result);
        self.set(self.vars.entries[table.index()], entry);
        // A miss is entry 0, whose slot is 0.
        Some(self.slot_of(table, result))
    }

    /// Asks for what the lookup of a key loads first, where that is known here: it comes while other packets are
    /// parsed, and the lookup of the batch does not wait for it.
    pub(super) fn ask_for(&mut self, table: TableId, key: &[Value]) {
        let address = match (self.shape(table), key) {
            (Shape::Two { low, bytes }, [key]) => {
                let base = self.table_field(table, offset_of!(TableEnv, base));
                let index = self.shr(*key, low);
                self.element(base, index, bytes)
            }
            (Shape::Lines(_), [_] | [_, _]) => self.line_of(table, key),
            _ => return,
        };
        self.prefetch(address);
    }

    fn shape(&self, table: TableId) -> Shape {
        self.s.shapes.get(table.index()).copied().unwrap_or_default()
    }

    fn in_two_levels(&mut self, table: TableId, key: Value, low: u32, word: u32) -> Value {
        let base = self.table_field(table, offset_of!(TableEnv, base));
        let index = self.shr(key, low);
        let first = self.load_element(base, index, word);
        if low == 0 {
            return first;
        }
        let (deeper, done) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(done, types::I64);
        let mark = 1 << (8 * word - 1);
        let marked = self.and(first, mark);
        self.b.set_cold_block(deeper);
        self.b.ins().brif(marked, deeper, &[], done, &[first.into()]);
        self.start(deeper);
        let second = self.table_field(table, offset_of!(TableEnv, second));
        let group = self.and(first, mark - 1);
        let start = self.shl(group, low);
        let below = self.and(key, (1 << low) - 1);
        let index = self.b.ins().iadd(start, below);
        let found = self.load_element(second, index, word);
        self.b.ins().jump(done, &[found.into()]);
        self.start(done);
        result
    }

    /// As [`Gen::in_lines`], in less code.
    fn in_lines_by_call(&mut self, table: TableId, key: &[Value]) -> Value {
        let lines = self.table_field(table, offset_of!(TableEnv, base));
        let spread = self.table_field(table, offset_of!(TableEnv, second));
        let limbs = self.int(key.len() as u64);
        let high = key.last().copied().unwrap_or(limbs);
        self.call(Helper::InLines, &[lines, spread, limbs, key[0], high])
    }

    /// In the line of the key's bucket, and seldom in others where a full one goes on.
    fn in_lines(&mut self, table: TableId, key: &[Value], layout: Line) -> Value {
        let (line, more, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let address = self.b.append_block_param(line, types::I64);
        let number = self.b.append_block_param(more, types::I64);
        let result = self.b.append_block_param(done, types::I64);
        let wanted = self.in_vector(key);
        let first = self.line_of(table, key);
        self.b.ins().jump(line, &[first.into()]);

        self.b.switch_to_block(line);
        // Acquires what the slots in use hold.
        let control = self.plus(address, i64::from(Line::CONTROL));
        let control = self.b.ins().atomic_load(types::I32, plain(), control);
        let equal = self.equal_slots(address, wanted, layout);
        let hit = self.b.ins().band(equal, control);
        // On a miss this is the word after the results, which the caller ignores.
        let guard = self.b.ins().iconst(types::I32, 1 << layout.slots);
        let some = self.b.ins().bor(hit, guard);
        let slot = self.b.ins().ctz(some);
        let slot = self.b.ins().uextend(types::I64, slot);
        let word = self.element(address, slot, 4);
        let word = self.b.ins().uload32(plain(), word, layout.results as i32);
        let zero = self.int(0);
        let found = self.b.ins().select(hit, word, zero);
        let goes_on = self.b.ins().ushr_imm_u(control, i64::from(Line::SLOT_BITS));
        let none = self.b.ins().iconst(types::I32, 0);
        let goes_on = self.b.ins().select(hit, none, goes_on);
        let goes_on = self.b.ins().uextend(types::I64, goes_on);
        self.b.set_cold_block(more);
        self.b.ins().brif(goes_on, more, &[goes_on.into()], done, &[found.into()]);

        self.start(more);
        let buckets = self.spread(table, offset_of!(Spread, buckets));
        let number = self.b.ins().iadd(number, buckets);
        let number = self.plus(number, -1);
        let base = self.table_field(table, offset_of!(TableEnv, base));
        let next = self.element(base, number, Line::BYTES);
        self.b.ins().jump(line, &[next.into()]);
        self.b.seal_block(line);
        self.start(done);
        result
    }

    /// A bit for each slot of a line that has the key, in use or not.
    fn equal_slots(&mut self, line: Value, wanted: Value, layout: Line) -> Value {
        let limbs = layout.limbs * layout.slots;
        let mut all = None;
        for pair in 0..limbs.div_ceil(2) {
            let two = self.b.ins().load(types::I64X2, plain(), line, 16 * pair as i32);
            let same = self.b.ins().icmp(IntCC::Equal, two, wanted);
            let bits = if layout.limbs == 1 {
                let bits = self.b.ins().vhigh_bits(types::I32, same);
                // The last pair of an odd number of keys ends in results.
                if 2 * pair + 1 == limbs { self.b.ins().band_imm_u(bits, 1) } else { bits }
            } else {
                let both = self.b.ins().vall_true(same);
                self.b.ins().uextend(types::I32, both)
            };
            let bits = self.b.ins().ishl_imm_u(bits, i64::from(pair * 2 / layout.limbs));
            all = Some(match all {
                None => bits,
                Some(all) => self.b.ins().bor(all, bits),
            });
        }
        all.unwrap_or(line)
    }

    /// A key as it lies in a pair of limbs; of one limb twice.
    fn in_vector(&mut self, key: &[Value]) -> Value {
        let vector = self.b.ins().splat(types::I64X2, key[0]);
        match key {
            [_, high] => self.b.ins().insertlane(vector, *high, 1),
            _ => vector,
        }
    }

    /// The line where a key belongs, see [`Spread`].
    fn line_of(&mut self, table: TableId, key: &[Value]) -> Value {
        let seed = self.spread(table, offset_of!(Spread, seeds));
        let factor = self.spread(table, offset_of!(Spread, seeds) + 8);
        let hash = match key {
            [limb] => {
                let mixed = self.b.ins().bxor(*limb, seed);
                self.b.ins().imul(mixed, factor)
            }
            _ => key.iter().fold(seed, |hash, limb| {
                let mixed = self.b.ins().bxor(hash, *limb);
                let (low, high) = (self.b.ins().imul(mixed, factor), self.b.ins().umulhi(mixed, factor));
                self.b.ins().bxor(low, high)
            }),
        };
        let buckets = self.spread(table, offset_of!(Spread, buckets));
        let high = self.shr(hash, 32);
        let scaled = self.b.ins().imul(high, buckets);
        let bucket = self.shr(scaled, 32);
        let base = self.table_field(table, offset_of!(TableEnv, base));
        self.element(base, bucket, Line::BYTES)
    }

    fn spread(&mut self, table: TableId, field: usize) -> Value {
        let spread = self.table_field(table, offset_of!(TableEnv, second));
        self.load_word(types::I64, spread, field as u32)
    }

    /// The action slot of an entry, through the array in pieces of [`TableEnv::starts`].
    fn slot_of(&mut self, table: TableId, entry: Value) -> Value {
        let starts = self.table_field(table, offset_of!(TableEnv, starts));
        let at_least = self.b.ins().bor_imm_u(entry, 63);
        let zeros = self.b.ins().clz(at_least);
        let piece = self.b.ins().bxor_imm_u(zeros, 63);
        let start = self.element(starts, piece, 8);
        let start = self.load_word(types::I64, start, 0);
        self.load_element(start, entry, 4)
    }

    /// An element of an array of words of 1, 2 or 4 bytes.
    fn load_element(&mut self, base: Value, index: Value, word: u32) -> Value {
        let address = self.element(base, index, word);
        match word {
            1 => self.b.ins().uload8(types::I64, plain(), address, 0),
            2 => self.b.ins().uload16(types::I64, plain(), address, 0),
            _ => self.b.ins().uload32(plain(), address, 0),
        }
    }

    /// Where an element of an array of elements of a power of two of bytes lies.
    fn element(&mut self, base: Value, index: Value, bytes: u32) -> Value {
        let offset = self.shl(index, bytes.trailing_zeros());
        self.b.ins().iadd(base, offset)
    }
}
