//! Operations that neither branch nor fail.

use super::Gen;
use super::fields::{Base, words};
use super::values::{Num, Val};
use crate::abi::DROP_SITE;
use crate::layout::TAKEN;
use crate::runtime::{Helper, Writer};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_midend::cfg::{Input, Op};
use millrace_midend::facts::HeaderPlace;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

impl Gen<'_> {
    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::Inst(inst) => self.inst(inst),
            Op::Clear(slot) => {
                let zero = self.zero(self.s.program.slots[*slot].ty);
                self.write(*slot, zero);
            }
            Op::Argument { dst, table, action, param } => self.argument(*dst, *table, *action, *param),
            Op::Hit { dst } => {
                let found = self.get(self.vars.found);
                let hit = self.not_zero(found);
                self.write(*dst, Val::Bool(hit));
            }
            Op::AtHit { table, meter } => self.at_hit(*table, *meter),
            Op::Input { dst, input } => {
                let (value, width) = match input {
                    Input::Port => (self.port(), 32),
                    Input::Out => (self.get(self.vars.out), 32),
                    Input::Now => (self.now(), 64),
                    Input::Length => (self.length(), 64),
                    Input::LengthNow => (self.length_now(), 64),
                };
                let val = self.as_type(*dst, Num::one(width, value));
                self.write(*dst, val);
            }
            Op::Reparse => self.point_all_nowhere(),
            Op::NoteParsed => {
                let bits = self.header_bits();
                self.set(self.vars.parsed, bits);
            }
            Op::Deparse { headers, keep, in_place } => {
                self.deparse(headers, *keep, *in_place);
                if !keep {
                    self.point_all_nowhere();
                }
            }
            Op::StartEmit => self.start_emit(),
            Op::Emit(header) => self.append_header(Writer::Packet, *header),
            Op::FinishEmit { keep, in_place } => {
                self.finish_emit(*keep, *in_place);
                if !keep {
                    self.point_all_nowhere();
                }
            }
            Op::SetOut(expr) => {
                let narrow = match expr {
                    Expr::ZeroExtend(inner, 32) => inner.ty(self.s.program).bits(),
                    _ => None,
                };
                let port = self.number(expr);
                let port = self.low(&port);
                self.widths.insert(port, narrow.unwrap_or(32).min(32));
                self.set_out(port);
            }
            Op::SetError => {
                let error = match self.s.program.intrinsics.get(Intrinsic::ParserError) {
                    Some(slot) => {
                        let val = self.read(slot);
                        let num = self.bits_of(val);
                        self.saturated(&num)
                    }
                    None => self.int(0),
                };
                let error = self.and(error, 0xffff);
                self.set_out(error);
            }
            Op::AddSite(slot) => {
                let val = self.read(*slot);
                let site = self.bits_of(val);
                let site = self.low(&site);
                let site = self.b.ins().ishl_imm_u(site, i64::from(DROP_SITE));
                // The class of service may stand where the site goes.
                let out = self.get(self.vars.out);
                let out = self.and(out, u64::from(u32::MAX));
                let both = self.b.ins().bor(out, site);
                self.set_out(both);
            }
            Op::AddClass(slot) => {
                let val = self.read(*slot);
                let class = self.bits_of(val);
                let class = self.low(&class);
                let class = self.b.ins().ishl_imm_u(class, i64::from(DROP_SITE));
                let out = self.get(self.vars.out);
                let both = self.b.ins().bor(out, class);
                self.set_out(both);
            }
            Op::StartSteps => {
                let zero = self.int(0);
                self.set(self.vars.steps, zero);
            }
            Op::ForgetSteps => {
                let (zero, context) = (self.int(0), self.context());
                self.store_word(zero, context, TAKEN);
            }
            Op::AddSteps => {
                let (steps, context) = (self.get(self.vars.steps), self.context());
                let before = self.load_word(types::I64, context, TAKEN);
                let taken = self.b.ins().iadd(before, steps);
                self.store_word(taken, context, TAKEN);
            }
            Op::AssertFailed(text) => {
                let host = self.host();
                let text = self.s.texts.add(text);
                let text = self.int(text);
                self.call(Helper::AssertFailed, &[host, text]);
            }
        }
    }

    /// The port to send to, or the parser's error; 32 bits.
    fn set_out(&mut self, value: Value) {
        self.set(self.vars.out, value);
    }

    /// The bits that all valid headers have together.
    fn header_bits(&mut self) -> Value {
        let mut constant = 0;
        let mut sum = None;
        for (id, header) in &self.s.program.headers {
            let place = self.facts.place(id);
            if place == HeaderPlace::Invalid {
                continue;
            }
            let varbits = header
                .fields
                .iter()
                .find(|field| matches!(self.s.program.slots[**field].ty, Type::Varbit(_)));
            let mut own = None;
            if let Some(field) = varbits {
                // The length is 0 while the header is invalid.
                let context = self.context();
                own = Some(self.load_word(types::I64, context, self.s.layout.slots[*field]));
            }
            if matches!(place, HeaderPlace::Unknown | HeaderPlace::Maybe) {
                let valid = self.is_valid(id);
                let mask = self.b.ins().ineg(valid);
                let bits = self.and(mask, u64::from(header.fixed_bits));
                own = Some(match own {
                    Some(own) => self.b.ins().iadd(own, bits),
                    None => bits,
                });
            } else {
                constant += i64::from(header.fixed_bits);
            }
            sum = match (sum, own) {
                (Some(sum), Some(own)) => Some(self.b.ins().iadd(sum, own)),
                (sum, own) => sum.or(own),
            };
        }
        match sum {
            Some(sum) => self.plus(sum, constant),
            None => self.int(constant as u64),
        }
    }

    /// The length of the packet in bytes with the headers that it has now.
    fn length_now(&mut self) -> Value {
        let bits = self.header_bits();
        let now = self.shr(bits, 3);
        let parsed = self.get(self.vars.parsed);
        let parsed = self.shr(parsed, 3);
        let len = self.length();
        let sum = self.b.ins().iadd(len, now);
        let difference = self.b.ins().isub(sum, parsed);
        let under = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, parsed);
        let zero = self.int(0);
        self.b.ins().select(under, zero, difference)
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Assign { dst, value } => {
                let val = self.eval(value);
                self.write(*dst, val);
            }
            Inst::SetValid(header) => self.set_valid(*header),
            Inst::SetInvalid(header) => self.point_nowhere(*header),
            Inst::Count { counter, index } => {
                let index = self.index(index);
                let (host, length) = (self.host(), self.length());
                let counter = self.int(u64::from(counter.as_u32()));
                self.call(Helper::Count, &[host, counter, index, length]);
            }
            Inst::CountDirect(table) => self.count_direct(*table),
            Inst::Meter { meter, index, color, dst } => {
                let index = self.index(index);
                let color = self.color(color.as_ref());
                let (host, length) = (self.host(), self.length());
                let meter = self.int(u64::from(meter.as_u32()));
                let color = self.call(Helper::Meter, &[host, meter, index, length, color]);
                let val = self.as_type(*dst, Num::one(8, color));
                self.write(*dst, val);
            }
            Inst::MeterDirect { table, color, dst } => {
                let color = self.color(color.as_ref());
                let color = self.meter_direct(*table, color);
                let val = self.as_type(*dst, Num::one(8, color));
                self.write(*dst, val);
            }
            Inst::RegisterRead { dst, register, index } => {
                let index = self.index(index);
                let host = self.host();
                let width = self.s.program.registers[*register].width;
                let register = self.int(u64::from(register.as_u32()));
                let value = self.buffer(0, 8 * millrace_midend::limbs(width) as u32);
                self.call(Helper::RegisterRead, &[host, register, index, value]);
                let num = self.fill_number(value, width);
                let val = self.as_type(*dst, num);
                self.write(*dst, val);
            }
            Inst::RegisterWrite { register, index, value } => {
                let index = self.index(index);
                let value = self.number(value);
                let value = self.spill_number(0, &value);
                let host = self.host();
                let register = self.int(u64::from(register.as_u32()));
                self.call(Helper::RegisterWrite, &[host, register, index, value]);
            }
            Inst::Hash { dst, algorithm, own, data } => {
                let hash = self.hash((*algorithm, *own), data);
                let val = self.as_type(*dst, hash);
                self.write(*dst, val);
            }
            Inst::Random { dst, low, high } => {
                let (low, high) = (self.number(low), self.number(high));
                let width = low.width;
                let (low, high) = (self.spill_number(0, &low), self.spill_number(1, &high));
                let result = self.buffer(2, 8 * millrace_midend::limbs(width) as u32);
                let (host, bits) = (self.host(), self.int(u64::from(width)));
                self.call(Helper::Random, &[host, bits, low, high, result]);
                let num = self.fill_number(result, width);
                let val = self.as_type(*dst, num);
                self.write(*dst, val);
            }
            Inst::Digest { digest, values } => {
                self.hand_over(values);
                let (host, digest) = (self.host(), self.int(u64::from(digest.as_u32())));
                self.call(Helper::Digest, &[host, digest]);
            }
            Inst::Log { format, args } => {
                self.hand_over(args);
                let text = self.s.texts.add(format);
                let (host, text) = (self.host(), self.int(text));
                self.call(Helper::Log, &[host, text]);
            }
            Inst::Extract(_)
            | Inst::ExtractVar { .. }
            | Inst::Advance { .. }
            | Inst::Lookahead { .. }
            | Inst::Emit(_)
            | Inst::Assert { .. } => debug_assert!(false, "the control-flow graph has edges for {inst:?}"),
        }
    }

    fn set_valid(&mut self, header: HeaderId) {
        let made = self.facts.made(self.s.program, header);
        match (self.facts.place(header), made) {
            (HeaderPlace::Invalid, HeaderPlace::Pointed) => self.make_header(header),
            (HeaderPlace::Invalid, _) => self.clear_fields(header),
            (HeaderPlace::Maybe, HeaderPlace::Pointed) => {
                let valid = self.is_valid(header);
                let (make, done) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(valid, done, &[], make, &[]);
                self.start(make);
                let cache = self.cache.clone();
                self.make_header(header);
                self.b.ins().jump(done, &[]);
                self.start(done);
                self.cache = cache;
                self.cache.forget(Base::Header(header));
                self.cache.forget_var(self.vars.pointer[header.index()]);
            }
            // Zeros become the fields of one that was invalid.
            (HeaderPlace::Maybe, _) => self.store_header(header),
            _ => {}
        }
    }

    /// A header of zeros in the packet's context, which its pointer leads to.
    fn make_header(&mut self, header: HeaderId) {
        let context = self.context();
        let address = self.plus(context, i64::from(self.s.layout.made[header]));
        let bytes = self.s.program.headers[header].fixed_bits / 8;
        let zero = self.int(0);
        for (at, size) in words(0, bytes) {
            self.store_raw(Base::Other, address, at, size, zero);
        }
        self.set(self.vars.pointer[header.index()], address);
        self.cache.forget(Base::Header(header));
    }

    /// An index or a length.
    fn index(&mut self, expr: &Expr) -> Value {
        let num = self.number(expr);
        self.saturated(&num)
    }

    /// The colour that a packet comes with, as a number: 0 green, 1 yellow, all else red.
    fn color(&mut self, expr: Option<&Expr>) -> Value {
        match expr {
            Some(expr) => self.index(expr),
            None => self.int(0),
        }
    }

    /// The entry (plus one) that a table hit last; 0: none.
    fn entry(&mut self, table: TableId) -> Value {
        self.get(self.vars.entries[table.index()])
    }

    fn count_direct(&mut self, table: TableId) {
        let entry = self.entry(table);
        let (host, length) = (self.host(), self.length());
        let table = self.int(u64::from(table.as_u32()));
        self.call(Helper::CountDirect, &[host, table, entry, length]);
    }

    fn meter_direct(&mut self, table: TableId, color: Value) -> Value {
        let entry = self.entry(table);
        let (host, length) = (self.host(), self.length());
        let table = self.int(u64::from(table.as_u32()));
        self.call(Helper::MeterDirect, &[host, table, entry, length, color])
    }

    /// What a table does by itself at a hit. (At a miss the helpers do nothing, and the slot keeps its value.)
    fn at_hit(&mut self, table: TableId, meter: Option<SlotId>) {
        if self.s.program.tables[table].direct_counter.as_ref().is_some_and(|counter| counter.at_hit) {
            self.count_direct(table);
        }
        if let Some(slot) = meter {
            let green = self.int(0);
            let color = self.meter_direct(table, green);
            let found = self.get(self.vars.found);
            let hit = self.not_zero(found);
            let new = self.as_type(slot, Num::one(8, color));
            let old = self.read(slot);
            let val = match (new, old) {
                (Val::Bool(new), Val::Bool(old)) => Val::Bool(self.b.ins().select(hit, new, old)),
                (new, old) => {
                    let (new, old) = (self.bits_of(new), self.bits_of(old));
                    let width = new.width;
                    let (new, old) = (self.limbs(&new), self.limbs(&old));
                    let pairs = new.into_iter().zip(old);
                    let limbs = pairs.map(|(new, old)| self.b.ins().select(hit, new, old)).collect();
                    Val::Bits(Num::limbs(width, limbs))
                }
            };
            self.write(slot, val);
        }
    }
}
