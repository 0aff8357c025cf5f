//! Counters, registers and accounts without calls: code that does on their memory what `millrace_tables` does.
//!
//! A worker counts in memory of its own, and a register of at most 64 bits is one word, so neither needs a lock. An account has one
//! while several workers share it: then its environment is null, and the code calls.

use super::emitter::Emitter;
use super::fields::plain;
use super::packet::PacketAccess;
use super::values::Num;
use super::variables::PacketVar;
use crate::abi::{Env, ObjectEnv, ObjectsEnv};
use crate::objects::{Numbers, Object};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FuncInstBuilder;
use millrace_pipeline::*;
use millrace_state::{AccountCell, REFUSED_BYTES};
use std::mem::offset_of;

/// Bytes of a counter: packets, then bytes, 64 bits each.
pub(super) const COUNTER_BYTES: u32 = 16;

/// Code that works on objects, or calls for them.
pub(super) struct Objects<'g, 'a> {
    pub(super) packet: &'g mut PacketAccess<'a>,
    pub(super) program: &'a Program,
    pub(super) numbers: &'a Numbers,
}

impl<'a> Objects<'_, 'a> {
    /// The next instruction.
    fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.packet.e.ins()
    }

    fn e(&mut self) -> &mut Emitter<'a> {
        &mut self.packet.e
    }

    /// What the environment says of an object; none where it has to be called for.
    pub(super) fn object(&mut self, object: Object, field: usize) -> Option<Value> {
        let number = *self.numbers.get(&object)?;
        let objects = self.packet.env_field(offset_of!(Env, objects) + offset_of!(ObjectsEnv, each));
        let at = number * size_of::<ObjectEnv>() + field;
        Some(self.ins().load(types::I64, plain(), objects, at as i32))
    }

    /// Code that runs where a condition is not 0. It reads no variables, as what is remembered of them would hold on its path alone.
    fn when(&mut self, condition: Value, work: impl FnOnce(&mut Self)) {
        let (works, done) = (self.e().new_block(), self.e().new_block());
        self.ins().brif(condition, works, &[], done, &[]);
        self.e().start(works);
        work(self);
        self.ins().jump(done, &[]);
        self.e().start(done);
    }

    /// Counts a packet at a counter of an array.
    pub(super) fn count(&mut self, counter: CounterId, index: Value) {
        let length = self.packet.length();
        let Some(starts) = self.object(Object::Counter(counter), offset_of!(ObjectEnv, base)) else {
            let (host, counter) = (self.packet.host(), self.e().int(u64::from(counter.as_u32())));
            self.e().call(Helper::Count, &[host, counter, index, length]);
            return;
        };
        let size = self.program.counters[counter].size;
        let is_there = self.is_below(index, size);
        self.when(is_there, |objects| objects.add_packet(starts, index, length));
    }

    /// Counts a packet at the entry that a table hit last, if it did.
    pub(super) fn count_direct(&mut self, table: TableId) {
        let entry = self.packet.get(PacketVar::Entry(table));
        let length = self.packet.length();
        let Some(starts) = self.object(Object::DirectCounter(table), offset_of!(ObjectEnv, base)) else {
            let (host, table) = (self.packet.host(), self.e().int(u64::from(table.as_u32())));
            self.e().call(Helper::CountDirect, &[host, table, entry, length]);
            return;
        };
        self.when(entry, |objects| {
            let index = objects.e().plus(entry, -1);
            objects.add_packet(starts, index, length);
        });
    }

    /// Adds a packet to a counter of this worker, which is there.
    fn add_packet(&mut self, starts: Value, index: Value, length: Value) {
        let start = self.e().piece_start(starts, index);
        let cell = self.e().element(start, index, COUNTER_BYTES);
        self.e().add_one(cell, 0);
        self.add_to(cell, 8, length);
    }

    fn add_to(&mut self, base: Value, at: usize, more: Value) {
        let count = self.e().load_word(types::I64, base, at as u32);
        let count = self.ins().iadd(count, more);
        self.e().store_word(count, base, at as u32);
    }

    /// Whether an index is below a size.
    fn is_below(&mut self, index: Value, size: u64) -> Value {
        let size = self.e().int(size);
        self.ins().icmp(IntCC::UnsignedLessThan, index, size)
    }

    /// Where the cell of a register is, and whether there is one; none of a register that has to be called for.
    fn register_cell(&mut self, register: RegisterId, index: Value) -> Option<(Value, Value)> {
        let cells = self.object(Object::Register(register), offset_of!(ObjectEnv, base))?;
        let is_there = self.is_below(index, self.program.registers[register].size);
        Some((self.e().element(cells, index, 8), is_there))
    }

    /// The value of a cell of a register.
    pub(super) fn read(&mut self, register: RegisterId, index: Value) -> Num {
        let width = self.program.registers[register].width;
        let Some((cell, is_there)) = self.register_cell(register, index) else {
            let (host, register) = (self.packet.host(), self.e().int(u64::from(register.as_u32())));
            let value = self.e().buffer(0, 8 * millrace_midend::limbs(width) as u32);
            self.e().call(Helper::RegisterRead, &[host, register, index, value]);
            return self.e().fill_number(value, width);
        };
        let (reads, done) = (self.e().new_block(), self.e().new_block());
        let value = self.e().b.append_block_param(done, types::I64);
        let zero = self.e().int(0);
        self.ins().brif(is_there, reads, &[], done, &[zero.into()]);
        self.e().start(reads);
        let found = self.e().load_word(types::I64, cell, 0);
        self.ins().jump(done, &[found.into()]);
        self.e().start(done);
        self.e().widths.insert(value, width);
        Num::one(width, value)
    }

    /// Writes a cell of a register.
    pub(super) fn write(&mut self, register: RegisterId, index: Value, number: &Num) {
        let Some((cell, is_there)) = self.register_cell(register, index) else {
            let value = self.e().spill_number(0, number);
            let (host, register) = (self.packet.host(), self.e().int(u64::from(register.as_u32())));
            self.e().call(Helper::RegisterWrite, &[host, register, index, value]);
            return;
        };
        let value = self.e().low(number);
        self.when(is_there, |objects| objects.e().store_word(value, cell, 0));
    }

    /// The colour of a packet of so many bytes that comes with a colour; none: green.
    pub(super) fn meter(
        &mut self,
        meter: MeterId,
        index: Value,
        before: Option<Value>,
        (length, is_short): (Value, bool),
    ) -> Value {
        if before.is_none()
            && let Some(color) = self.ask_account(meter, index, (length, is_short))
        {
            return color;
        }
        let before = before.unwrap_or_else(|| self.e().int(0));
        let (host, time) = (self.packet.host(), self.packet.arrival());
        let meter = self.e().int(u64::from(meter.as_u32()));
        self.e().call(Helper::Meter, &[host, meter, index, length, before, time])
    }

    /// An atomic section begins: with a name, if it has one.
    pub(super) fn begin_section(&mut self, name: Option<Value>) {
        let (host, is_named) = (self.packet.host(), self.e().int(name.is_some().into()));
        let name = name.unwrap_or(is_named);
        self.call_for_section(Helper::AtomicBegin, &[host, is_named, name]);
    }

    pub(super) fn end_section(&mut self) {
        let host = self.packet.host();
        self.call_for_section(Helper::AtomicEnd, &[host]);
    }

    /// Calls where sections have to wait for those of other workers.
    fn call_for_section(&mut self, helper: Helper, args: &[Value]) {
        let has_sections =
            self.packet.env_field(offset_of!(Env, objects) + offset_of!(ObjectsEnv, has_sections));
        self.when(has_sections, |objects| _ = objects.e().call(helper, args));
    }

    /// Asks an account for a packet of so many bytes: 0 green, 2 red. It is what `millrace_tables::Account::admit` does, which says
    /// why no sum leaves 64 bits. A length of more than 32 bits, whose cost might, goes the other path.
    ///
    /// Without parameters all fields of an account are 0, so the credit is full with 0, each packet costs 0, and all pass: no test asks.
    fn ask_account(
        &mut self,
        meter: MeterId,
        index: Value,
        (length, is_short): (Value, bool),
    ) -> Option<Value> {
        let cells = self.object(Object::Account(meter), offset_of!(ObjectEnv, base))?;
        let refused = self.object(Object::Account(meter), offset_of!(ObjectEnv, refused))?;
        let (host, now) = (self.packet.host(), self.packet.arrival());
        let size = self.program.meters[meter].size;
        let id = self.e().int(u64::from(meter.as_u32()));
        let [inside, asks, calls, red, done] = std::array::from_fn(|_| self.e().new_block());
        self.e().b.set_cold_block(calls);
        let color = self.e().b.append_block_param(done, types::I64);
        let green = self.e().int(0);

        let is_there = self.is_below(index, size);
        self.ins().brif(is_there, inside, &[], done, &[green.into()]);

        self.e().start(inside);
        let mut here = self.e().not_zero(cells);
        if !is_short {
            let fits = self.is_below(length, 1 << 32);
            here = self.ins().band(here, fits);
        }
        self.ins().brif(here, asks, &[], calls, &[]);

        self.e().start(asks);
        let cell = self.e().element(cells, index, AccountCell::BYTES as u32);
        let tests = self.ins().uload16(types::I64, plain(), cell, AccountCell::TESTS as i32);
        let smax = self.ins().uload16(types::I64, plain(), cell, AccountCell::SMAX as i32);
        let bag = self.ins().uload32(plain(), cell, AccountCell::BAG as i32);
        let window = self.e().load_word(types::I64, cell, AccountCell::WINDOW as u32);
        let last = self.e().load_word(types::I64, cell, AccountCell::LAST as u32);
        // Time that runs backwards stands still.
        let latest = self.ins().umax(now, last);
        let elapsed = self.ins().isub(latest, last);
        let grown = self.ins().umin(elapsed, window);
        let gain = self.ins().imul(smax, grown);
        let full = self.ins().imul(smax, window);
        let mut held = [0, 8].map(|at| {
            let credit = self.e().load_word(types::I64, cell, (AccountCell::CREDITS + at) as u32);
            let sum = self.ins().iadd(credit, gain);
            self.ins().umin(sum, full)
        });
        let costs = [(length, 0), (smax, 1)].map(|(bytes, bit)| {
            let cost = self.ins().imul(bytes, bag);
            let is_tested = self.e().shr(tests, bit);
            let is_tested = self.e().and(is_tested, 1);
            let mask = self.ins().ineg(is_tested);
            self.ins().band(cost, mask)
        });
        let passes = [0, 1].map(|of| self.ins().icmp(IntCC::UnsignedLessThanOrEqual, costs[of], held[of]));
        let passes = self.ins().band(passes[0], passes[1]);
        let zero = self.e().int(0);
        for (held, cost) in held.iter_mut().zip(costs) {
            let taken = self.ins().select(passes, cost, zero);
            *held = self.ins().isub(*held, taken);
        }
        for (at, credit) in [(0, held[0]), (8, held[1])] {
            self.e().store_word(credit, cell, (AccountCell::CREDITS + at) as u32);
        }
        self.e().store_word(latest, cell, AccountCell::LAST as u32);
        let one = self.e().int(1);
        let counted = [(AccountCell::PACKETS, one), (AccountCell::COUNTED, length)];
        for (at, more) in counted {
            let more = self.ins().select(passes, more, zero);
            self.add_to(cell, at, more);
        }
        self.ins().brif(passes, done, &[zero.into()], red, &[]);

        self.e().start(red);
        let bytes = self.e().int(REFUSED_BYTES as u64);
        let offset = self.ins().imul(index, bytes);
        let counts = self.ins().iadd(refused, offset);
        self.e().add_one(counts, 0);
        self.add_to(counts, 8, length);
        let two = self.e().int(2);
        self.ins().jump(done, &[two.into()]);

        self.e().start(calls);
        let green = self.e().int(0);
        let helper = if is_short { Helper::AskShared } else { Helper::Meter };
        let called = self.e().call(helper, &[host, id, index, length, green, now]);
        self.ins().jump(done, &[called.into()]);
        self.e().start(done);
        self.e().widths.insert(color, 8);
        Some(color)
    }
}
