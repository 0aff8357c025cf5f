//! Operations that neither branch nor fail.

use super::emitter::Emitter;
use super::fields::plain;
use super::objects::Objects;
use super::packet::PacketAccess;
use super::slots::SlotAccess;
use super::values::{Form, Num, Val};
use super::variables::PacketVar;
use crate::abi::{self, DROP_SITE, DroppedCopies, DroppedCopy, Env, QUEUE};
use crate::layout::TAKEN;
use crate::runtime::{Helper, Texts, Writer};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FuncInstBuilder;
use millrace_midend::cfg::{Input, Op};
use millrace_midend::liveness::Set;
use millrace_midend::{limbs, type_width};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use millrace_state::messages::bits_word;
use millrace_state::{RecordLayout, argument_size, network_order};
use std::mem::offset_of;

/// Most words of a message that code hands over at once, and the number of the buffer that it has them in.
const MESSAGE_WORDS: usize = 32;
const MESSAGE_BUFFER: usize = 5;

/// Code of operations and expressions: straight-line code, or code whose paths join again at its end. It changes
/// slots and headers as the operation does; the caller tells the facts of that (`Facts::transfer`).
///
/// Each kind has a file: operations here, expressions and conditions in `expr`, hashes in `hashing`, and putting packets
/// together in `deparse`.
pub(super) struct Operations<'a> {
    pub(super) slots: SlotAccess<'a>,
    /// Records of actions, by table.
    pub(super) records: &'a [RecordLayout],
    /// What code works on itself.
    pub(super) objects: &'a crate::objects::Numbers,
    /// Texts of the program, which code refers to by number.
    pub(super) texts: &'a mut Texts,
    /// Slots that the code writes.
    pub(super) written: Set,
}

impl<'a> Operations<'a> {
    /// The next instruction.
    pub(super) fn ins(&mut self) -> FuncInstBuilder<'_, 'a> {
        self.slots.packet.e.ins()
    }

    pub(super) fn e(&mut self) -> &mut Emitter<'a> {
        &mut self.slots.packet.e
    }

    pub(super) fn packet(&mut self) -> &mut PacketAccess<'a> {
        &mut self.slots.packet
    }

    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::Inst(inst) => self.inst(inst),
            Op::Clear(slot) => {
                let ty = self.slots.program.slots[*slot].ty;
                let zero = self.e().zero(ty);
                self.slots.write(*slot, zero);
            }
            Op::Argument { dst, table, action, param } => self.argument(*dst, *table, *action, *param),
            Op::Hit { dst } => {
                let found = self.packet().get(PacketVar::Found);
                let hit = self.e().not_zero(found);
                self.slots.write(*dst, Val::Bool(hit));
            }
            Op::AtHit { table, meter } => self.at_hit(*table, *meter),
            Op::Input { dst, input } => {
                let (value, width) = match input {
                    Input::Port => (self.packet().port(), 32),
                    Input::Out => (self.packet().get(PacketVar::Out), 32),
                    Input::Copy => (self.packet().get(PacketVar::Copy), 32),
                    Input::Arrival => (self.packet().arrival(), 64),
                    Input::Now => (self.packet().now(), 64),
                    Input::Length => (self.packet().length(), 64),
                    Input::LengthNow => (self.slots.length_now(), 64),
                };
                let val = self.slots.as_type(*dst, Num::one(width, value));
                self.slots.write(*dst, val);
            }
            Op::Reparse => self.slots.point_all_nowhere(),
            Op::NoteParsed => {
                let bits = self.slots.header_bits();
                self.packet().set(PacketVar::Parsed, bits);
            }
            Op::Deparse { headers, keep, growth } => {
                self.deparse(headers, *keep, *growth);
                if !keep {
                    self.slots.point_all_nowhere();
                }
            }
            Op::StartEmit => self.start_emit(),
            Op::Emit(header) => self.append_header(Writer::Packet, *header),
            Op::FinishEmit { keep, growth } => {
                self.finish_emit(*keep, *growth);
                if !keep {
                    self.slots.point_all_nowhere();
                }
            }
            Op::SetOut(expr) => {
                let narrow = match expr {
                    Expr::ZeroExtend(inner, 32) => inner.ty(self.slots.program).bits(),
                    _ => None,
                };
                let port = self.number(expr);
                let port = self.e().low(&port);
                self.e().widths.insert(port, narrow.unwrap_or(32).min(32));
                self.set_out(port);
            }
            Op::StartCopies => {
                let ports = self.packet().get(PacketVar::Out);
                self.packet().set(PacketVar::ToCome, ports);
            }
            Op::NextCopy => self.next_copy(),
            Op::DropCopy(site) => self.drop_copy(*site),
            Op::SetError => {
                let error = match self.slots.program.intrinsics.get(Intrinsic::ParserError) {
                    Some(slot) => {
                        let val = self.slots.read(slot);
                        let num = self.e().bits_of(val);
                        self.e().saturated(&num)
                    }
                    None => self.e().int(0),
                };
                let error = self.e().and(error, 0xffff);
                self.set_out(error);
            }
            Op::AddSite(slot) => {
                let site = self.number_in(*slot);
                let site = self.ins().ishl_imm_u(site, i64::from(DROP_SITE));
                // The class of service may stand where the site goes.
                let out = self.packet().get(PacketVar::Out);
                let out = self.e().and(out, u64::from(u32::MAX));
                let both = self.ins().bor(out, site);
                self.set_out(both);
            }
            Op::AddClass(slot) | Op::AddQueue(slot) => {
                let shift = if matches!(op, Op::AddClass(_)) { DROP_SITE } else { QUEUE };
                let class = self.number_in(*slot);
                let class = self.ins().ishl_imm_u(class, i64::from(shift));
                let out = self.packet().get(PacketVar::Out);
                let both = self.ins().bor(out, class);
                self.set_out(both);
            }
            Op::StartSteps => {
                let zero = self.e().int(0);
                self.packet().set(PacketVar::Steps, zero);
            }
            Op::ForgetSteps => {
                let (zero, context) = (self.e().int(0), self.packet().context());
                self.e().store_word(zero, context, TAKEN);
            }
            Op::AddSteps => {
                let (steps, context) = (self.packet().get(PacketVar::Steps), self.packet().context());
                let before = self.e().load_word(types::I64, context, TAKEN);
                let taken = self.ins().iadd(before, steps);
                self.e().store_word(taken, context, TAKEN);
            }
            Op::AssertFailed(text) => {
                let host = self.packet().host();
                let text = self.texts.add(text);
                let text = self.e().int(text);
                self.e().call(Helper::AssertFailed, &[host, text]);
            }
        }
    }

    /// An argument of the action, from the record.
    fn argument(&mut self, dst: SlotId, table: TableId, action: usize, param: usize) {
        let record = self.packet().get(PacketVar::Record);
        let num = self.argument_of(record, table, action, param);
        let val = self.slots.as_type(dst, num);
        self.slots.write(dst, val);
    }

    /// An argument of an action, from a record.
    pub(super) fn argument_of(&mut self, record: Value, table: TableId, action: usize, param: usize) -> Num {
        let program = self.slots.program;
        let param_slot = program.actions[program.tables[table].actions[action].action].params[param];
        let offset = self.records[table.index()].offsets[action][param];
        let width = type_width(program.slots[param_slot].ty);
        let at = offset as i32;
        let words: Vec<Value> = match argument_size(width).0 {
            1 => vec![self.ins().uload8(types::I64, plain(), record, at)],
            2 => vec![self.ins().uload16(types::I64, plain(), record, at)],
            4 => vec![self.ins().uload32(plain(), record, at)],
            _ => (0..limbs(width))
                .map(|i| self.e().load_word(types::I64, record, offset + 8 * i as u32))
                .collect(),
        };
        match words.as_slice() {
            [raw] => {
                self.e().widths.insert(*raw, width);
                let form = match network_order(width) {
                    true => Form::Swapped(*raw),
                    false => Form::Limbs(vec![*raw]),
                };
                Num { width, form }
            }
            _ => Num::limbs(width, words),
        }
    }

    /// The port to send to, or the parser's error; 32 bits.
    fn set_out(&mut self, value: Value) {
        self.packet().set(PacketVar::Out, value);
    }

    /// The number that a slot of at most 64 bits holds.
    fn number_in(&mut self, slot: SlotId) -> Value {
        let val = self.slots.read(slot);
        let num = self.e().bits_of(val);
        self.e().low(&num)
    }

    /// The lowest port leaves the set of those to come.
    fn next_copy(&mut self) {
        let to_come = self.packet().get(PacketVar::ToCome);
        let port = self.ins().ctz(to_come);
        self.packet().set(PacketVar::Copy, port);
        let one_less = self.e().plus(to_come, -1);
        let rest = self.ins().band(to_come, one_less);
        self.packet().set(PacketVar::ToCome, rest);
    }

    fn drop_copy(&mut self, site: Option<SlotId>) {
        let site = match site {
            Some(slot) => self.number_in(slot),
            None => self.e().int(u64::from(u16::MAX)),
        };
        let port = self.packet().get(PacketVar::Copy);
        self.note_dropped(port, site);
        let (one, out) = (self.e().int(1), self.packet().get(PacketVar::Out));
        let bit = self.ins().ishl(one, port);
        let left = self.ins().band_not(out, bit);
        self.set_out(left);
    }

    /// A copy goes to the end of those that were dropped. There is room for the copies of a whole batch, as each packet has at
    /// most one for each port of a set.
    fn note_dropped(&mut self, port: Value, site: Value) {
        let port = self.ins().ishl_imm_u(port, i64::from(DroppedCopy::PORT));
        let copy = self.ins().bor(port, site);
        let list = self.packet().env_field(offset_of!(Env, results.dropped_copies));
        let count = self.e().load_word(types::I64, list, offset_of!(DroppedCopies, count) as u32);
        let at = self.e().element(list, count, size_of::<DroppedCopy>() as u32);
        self.ins().istore32(plain(), copy, at, offset_of!(DroppedCopies, each) as i32);
        let count = self.e().plus(count, 1);
        self.e().store_word(count, list, offset_of!(DroppedCopies, count) as u32);
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Assign { dst, value } => {
                let val = self.eval(value);
                self.slots.write(*dst, val);
            }
            Inst::SetValid(header) => self.slots.set_valid(*header),
            Inst::SetInvalid(header) => self.slots.point_nowhere(*header),
            Inst::Count { counter, index } => {
                let index = self.index(index);
                self.on_objects().count(*counter, index);
            }
            Inst::CountDirect(table) => self.on_objects().count_direct(*table),
            Inst::Meter { meter, index, color, length, dst } => {
                let index = self.index(index);
                let before = color.as_ref().map(|color| self.index(color));
                let is_short =
                    length.as_ref().is_none_or(|length| type_width(length.ty(self.slots.program)) <= 32);
                let length = self.metered_bytes(length.as_ref());
                let color = self.on_objects().meter(*meter, index, before, (length, is_short));
                let val = self.slots.as_type(*dst, Num::one(8, color));
                self.slots.write(*dst, val);
            }
            Inst::MeterDirect { table, color, length, dst } => {
                let color = self.color(color.as_ref());
                let length = self.metered_bytes(length.as_ref());
                let color = self.meter_direct(*table, color, length);
                let val = self.slots.as_type(*dst, Num::one(8, color));
                self.slots.write(*dst, val);
            }
            Inst::RegisterRead { dst, register, index } => {
                let index = self.index(index);
                let num = self.on_objects().read(*register, index);
                let val = self.slots.as_type(*dst, num);
                self.slots.write(*dst, val);
            }
            Inst::RegisterWrite { register, index, value } => {
                let index = self.index(index);
                let value = self.number(value);
                self.on_objects().write(*register, index, &value);
            }
            Inst::AtomicBegin { index } => {
                let name = index.as_ref().map(|index| self.index(index));
                self.on_objects().begin_section(name);
            }
            Inst::AtomicEnd => self.on_objects().end_section(),
            Inst::Hash { dst, algorithm, own, data } => {
                let hash = self.hash((*algorithm, *own), data);
                let val = self.slots.as_type(*dst, hash);
                self.slots.write(*dst, val);
            }
            Inst::Random { dst, low, high } => {
                let (low, high) = (self.number(low), self.number(high));
                let width = low.width;
                let (low, high) = (self.e().spill_number(0, &low), self.e().spill_number(1, &high));
                let result = self.e().buffer(2, 8 * millrace_midend::limbs(width) as u32);
                let (host, bits) = (self.packet().host(), self.e().int(u64::from(width)));
                self.e().call(Helper::Random, &[host, bits, low, high, result]);
                let num = self.e().fill_number(result, width);
                let val = self.slots.as_type(*dst, num);
                self.slots.write(*dst, val);
            }
            Inst::Digest { digest, values } => self.digest(*digest, values),
            Inst::Call { dst, plugin, args, results } => self.call(*dst, *plugin, args, *results),
            Inst::CallResult { dst, index } => self.call_result(*dst, *index),
            Inst::Log { format, args } => {
                self.hand_over(args);
                let text = self.texts.add(format);
                let (host, text) = (self.packet().host(), self.e().int(text));
                self.e().call(Helper::Log, &[host, text]);
            }
            Inst::Extract(_)
            | Inst::ExtractVar { .. }
            | Inst::Advance { .. }
            | Inst::Lookahead { .. }
            | Inst::Emit(_)
            | Inst::Stop { .. }
            | Inst::Assert { .. } => debug_assert!(false, "the control-flow graph has edges for {inst:?}"),
        }
    }

    /// Code of counters, registers, accounts and atomic sections.
    pub(super) fn on_objects(&mut self) -> Objects<'_, 'a> {
        Objects { program: self.slots.program, numbers: self.objects, packet: &mut self.slots.packet }
    }

    /// Calls a plugin. Where it may change the payload, the packet may have moved after it.
    fn call(&mut self, dst: SlotId, plugin: PluginId, args: &[Expr], results: u32) {
        let words: Vec<Value> = args.iter().map(|arg| self.index(arg)).collect();
        let counts = self.e().int(words.len() as u64 | u64::from(results) << 16);
        let at = self.e().buffer(0, 8 * words.len().max(1) as u32);
        for (number, word) in words.into_iter().enumerate() {
            self.e().store_word(word, at, 8 * number as u32);
        }
        let rewrites = self.slots.program.plugins[plugin].rewrites;
        let packet = match rewrites {
            true => self.packet().moved(),
            false => self.packet_in_buffer(),
        };
        let (host, cursor) = (self.packet().host(), self.slots.cursor());
        let plugin = self.e().int(u64::from(plugin.as_u32()));
        let drop = self.e().call(Helper::Call, &[host, plugin, at, counts, packet, cursor]);
        if rewrites {
            self.packet().cache.forget_packet();
            self.packet().reload_packet();
        }
        let val = self.slots.as_type(dst, Num::one(8, drop));
        self.slots.write(dst, val);
    }

    /// Reads a result of the call before.
    fn call_result(&mut self, dst: SlotId, index: u32) {
        let (host, index) = (self.packet().host(), self.e().int(u64::from(index)));
        let result = self.e().call(Helper::CallResult, &[host, index]);
        let val = self.slots.as_type(dst, Num::one(64, result));
        self.slots.write(dst, val);
    }

    /// A packet that stays where it is, as helpers take it.
    fn packet_in_buffer(&mut self) -> Value {
        let packet = self.e().buffer(1, size_of::<abi::Moved>() as u32);
        let (data, len) = (self.packet().data(), self.packet().length());
        self.e().store_word(data, packet, offset_of!(abi::Moved, data) as u32);
        self.e().store_word(len, packet, offset_of!(abi::Moved, len) as u32);
        packet
    }

    /// An index or a length.
    pub(super) fn index(&mut self, expr: &Expr) -> Value {
        let num = self.number(expr);
        self.e().saturated(&num)
    }

    /// The colour that a packet comes with, as a number: 0 green, 1 yellow, all else red.
    fn color(&mut self, expr: Option<&Expr>) -> Value {
        match expr {
            Some(expr) => self.index(expr),
            None => self.e().int(0),
        }
    }

    /// The bytes that a packet counts for at a meter: those that the program tells it, or all.
    fn metered_bytes(&mut self, length: Option<&Expr>) -> Value {
        match length {
            Some(length) => self.index(length),
            None => self.packet().length(),
        }
    }

    /// The entry (plus one) that a table hit last; 0: none.
    fn entry(&mut self, table: TableId) -> Value {
        self.packet().get(PacketVar::Entry(table))
    }

    fn meter_direct(&mut self, table: TableId, color: Value, length: Value) -> Value {
        let entry = self.entry(table);
        let (host, time) = (self.packet().host(), self.packet().arrival());
        let table = self.e().int(u64::from(table.as_u32()));
        self.e().call(Helper::MeterDirect, &[host, table, entry, length, color, time])
    }

    /// What a table does by itself at a hit. (At a miss the helpers do nothing, and the slot keeps its value.)
    fn at_hit(&mut self, table: TableId, meter: Option<SlotId>) {
        if self.slots.program.tables[table].direct_counter.as_ref().is_some_and(|counter| counter.at_hit) {
            self.on_objects().count_direct(table);
        }
        if let Some(slot) = meter {
            let green = self.e().int(0);
            let length = self.packet().length();
            let color = self.meter_direct(table, green, length);
            let found = self.packet().get(PacketVar::Found);
            let hit = self.e().not_zero(found);
            let new = self.slots.as_type(slot, Num::one(8, color));
            let old = self.slots.read(slot);
            let val = match (new, old) {
                (Val::Bool(new), Val::Bool(old)) => Val::Bool(self.ins().select(hit, new, old)),
                (new, old) => {
                    let (new, old) = (self.e().bits_of(new), self.e().bits_of(old));
                    let width = new.width;
                    let (new, old) = (self.e().limbs(&new), self.e().limbs(&old));
                    let pairs = new.into_iter().zip(old);
                    let limbs = pairs.map(|(new, old)| self.ins().select(hit, new, old)).collect();
                    Val::Bits(Num::limbs(width, limbs))
                }
            };
            self.slots.write(slot, val);
        }
    }

    /// Sends a message: its words, as many at once as a buffer holds.
    fn digest(&mut self, digest: DigestId, exprs: &[Expr]) {
        let mut words = vec![self.e().int(u64::from(digest.as_u32()))];
        for expr in exprs {
            match self.eval(expr) {
                Val::Bool(truth) => words.push(self.ins().uextend(types::I64, truth)),
                Val::Bits(num) => {
                    words.push(self.e().int(bits_word(num.width)));
                    words.extend(self.e().limbs(&num));
                }
                Val::Varbit(pointer) => {
                    self.add_to_message(Helper::AddToMessage, &words);
                    words.clear();
                    let host = self.packet().host();
                    self.e().call(Helper::AddVarbitToMessage, &[host, pointer]);
                }
            }
            while words.len() > MESSAGE_WORDS {
                let others = words.split_off(MESSAGE_WORDS);
                self.add_to_message(Helper::AddToMessage, &words);
                words = others;
            }
        }
        self.add_to_message(Helper::Digest, &words);
    }

    /// Calls a helper that takes words of a message.
    fn add_to_message(&mut self, helper: Helper, words: &[Value]) {
        let at = self.e().words_in_memory(MESSAGE_BUFFER, words);
        let (host, count) = (self.packet().host(), self.e().int(words.len() as u64));
        self.e().call(helper, &[host, count, at]);
    }

    /// Hands values over as the arguments of a log line.
    fn hand_over(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            let host = self.packet().host();
            match self.eval(expr) {
                Val::Bool(truth) => {
                    let truth = self.ins().uextend(types::I64, truth);
                    self.e().call(Helper::ArgumentBool, &[host, truth]);
                }
                Val::Bits(num) => {
                    let width = self.e().int(u64::from(num.width));
                    let limbs = self.e().spill_number(0, &num);
                    self.e().call(Helper::ArgumentBits, &[host, width, limbs]);
                }
                Val::Varbit(pointer) => {
                    self.e().call(Helper::ArgumentVarbit, &[host, pointer]);
                }
            }
        }
    }
}
