//! Instructions: one effect each.

use crate::context::Context;
use crate::interp::{Interp, World, of_type};
use crate::observe::{Event, Observer};
use crate::parser::{self, ParserFailure};
use crate::phv::push_value;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{Color, DigestMessage, format_log};

/// Why the body does not go on after an instruction.
pub(crate) enum Failure {
    /// The parser rejects.
    Parser(ParserFailure),
    /// An assertion does not hold.
    Assert,
    /// The packet is to be dropped for a plugin.
    Stop,
}

impl From<ParserFailure> for Failure {
    fn from(failure: ParserFailure) -> Failure {
        Failure::Parser(failure)
    }
}

impl Interp {
    pub(crate) fn step<O: Observer + ?Sized>(
        &self,
        inst: &Inst,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) -> Result<(), Failure> {
        match inst {
            Inst::Assign { dst, value } => self.write(*dst, self.eval(value, context), context, world),
            Inst::SetValid(header) => {
                let changed = !context.phv.is_valid(*header);
                context.phv.set_valid(self.program(), *header);
                world.observer.event(Event::Validity { header: *header, valid: true, changed }, &context.phv);
            }
            Inst::SetInvalid(header) => {
                let changed = context.phv.is_valid(*header);
                context.phv.set_invalid(*header);
                world
                    .observer
                    .event(Event::Validity { header: *header, valid: false, changed }, &context.phv);
            }
            Inst::Extract(header) => {
                let bits = parser::extract(self.program(), context, *header, 0)?;
                world.observer.event(Event::Extracted { header: *header, bits }, &context.phv);
            }
            Inst::ExtractVar { header, bits } => {
                let varbit = self.number(bits, context);
                let bits = parser::extract(self.program(), context, *header, varbit)?;
                world.observer.event(Event::Extracted { header: *header, bits }, &context.phv);
            }
            Inst::Advance { bits } => {
                let bits = parser::advance(context, self.number(bits, context))?;
                world.observer.event(Event::Advanced { bits }, &context.phv);
            }
            Inst::Lookahead { dst, skip } => {
                let bits = parser::lookahead(context, *skip, self.width(*dst))?;
                self.write_bits(*dst, bits, context, world);
            }
            Inst::Emit(header) => {
                context.phv.write_header(self.program(), *header, &mut context.emitted);
                if context.phv.is_valid(*header) {
                    world.observer.event(Event::Emitted(*header), &context.phv);
                }
            }
            Inst::Count { counter, index } => {
                let index = self.number(index, context);
                world.state.count(*counter, index, context.length() as u64);
                world.observer.event(Event::Counted { counter: *counter, index }, &context.phv);
            }
            Inst::CountDirect(table) => self.count_direct(*table, context, world),
            Inst::Meter { meter, index, color, length, dst } => {
                let (index, before) = (self.number(index, context), self.color(color.as_ref(), context));
                let bytes = self.metered_bytes(length.as_ref(), context);
                let color = world.state.meter(*meter, index, world.now_ns, bytes, before);
                let name = &self.program().meters[*meter].name;
                world.observer.event(Event::Metered { name, color }, &context.phv);
                self.write_bits(*dst, Bits::new(8, color as u128), context, world);
            }
            Inst::MeterDirect { table, color, length, dst } => {
                let before = self.color(color.as_ref(), context);
                let bytes = self.metered_bytes(length.as_ref(), context);
                self.meter_direct(*table, (before, bytes), *dst, context, world);
            }
            Inst::RegisterRead { dst, register, index } => {
                let index = self.number(index, context);
                let value = world.state.register_read(*register, index);
                let event = Event::Register { register: *register, index, value: &value, written: false };
                world.observer.event(event, &context.phv);
                self.write_bits(*dst, value, context, world);
            }
            Inst::RegisterWrite { register, index, value } => {
                let (index, value) = (self.number(index, context), self.eval(value, context).as_bits());
                world.state.register_write(*register, index, &value);
                let event = Event::Register { register: *register, index, value: &value, written: true };
                world.observer.event(event, &context.phv);
            }
            Inst::AtomicBegin { index } => {
                let index = index.as_ref().map(|index| self.number(index, context));
                world.state.begin_atomic(index);
            }
            Inst::AtomicEnd => world.state.end_atomic(),
            Inst::Hash { dst, algorithm, own, data } => {
                let data = self.hashed(data, context);
                let hash = match own {
                    Some(own) => world.state.own_hash(*own).compute(&data),
                    None => algorithm.compute(&data),
                };
                let hash = Bits::new(self.width(*dst), u128::from(hash));
                self.write_bits(*dst, hash, context, world);
            }
            Inst::Random { dst, low, high } => {
                let (low, high) = (self.eval(low, context).as_bits(), self.eval(high, context).as_bits());
                let drawn = world.state.random(&low, &high);
                self.write_bits(*dst, drawn, context, world);
            }
            Inst::Digest { digest, values } => {
                let values: Vec<Value> = values.iter().map(|value| self.eval(value, context)).collect();
                world.observer.event(Event::Digest { digest: *digest, values: &values }, &context.phv);
                world.effects.send(&DigestMessage { digest: *digest, values });
            }
            Inst::Call { dst, plugin, args, results } => {
                let args: Vec<u64> = args.iter().map(|arg| self.number(arg, context)).collect();
                let drop = context.call(*plugin, &args, *results, world.state, world.effects);
                let name = &self.program().plugins[*plugin].name;
                let results = &context.results;
                let event = Event::Called { name, args: &args, results, drop };
                world.observer.event(event, &context.phv);
                self.write_bits(*dst, Bits::new(8, u128::from(drop)), context, world);
            }
            Inst::CallResult { dst, index } => {
                let result = context.results.get(*index as usize).copied().unwrap_or(0);
                self.write_bits(*dst, Bits::new(64, u128::from(result)), context, world);
            }
            Inst::Stop { cond } => {
                if self.eval(cond, context).as_bool() {
                    return Err(Failure::Stop);
                }
            }
            Inst::Log { format, args } => {
                let args: Vec<Value> = args.iter().map(|arg| self.eval(arg, context)).collect();
                let line = format_log(format, &args);
                world.observer.event(Event::Log(&line), &context.phv);
                world.effects.say(line);
            }
            Inst::Assert { cond, text } => {
                if !self.eval(cond, context).as_bool() {
                    world.observer.event(Event::AssertFailed(text), &context.phv);
                    world.effects.say(format!("assertion failed: {text}"));
                    return Err(Failure::Assert);
                }
            }
        }
        Ok(())
    }

    /// Adds the packet to the direct counter of the entry that the table hit last; nothing at a miss.
    pub(crate) fn count_direct<O: Observer + ?Sized>(
        &self,
        table: TableId,
        context: &Context,
        world: &mut World<'_, O>,
    ) {
        if let Some(entry) = context.hit(table) {
            world.state.count_direct(table, entry, context.length() as u64);
        }
    }

    /// Meters the packet at the direct meter of the entry that the table hit last; green at a miss.
    pub(crate) fn meter_direct<O: Observer + ?Sized>(
        &self,
        table: TableId,
        (before, bytes): (Color, u64),
        dst: SlotId,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) {
        let color = match context.hit(table) {
            Some(entry) => world.state.meter_direct(table, entry, world.now_ns, bytes, before),
            None => Color::Green,
        };
        let name = self.program().tables[table].direct_meter.as_ref().map_or("", |meter| meter.name.as_str());
        world.observer.event(Event::Metered { name, color }, &context.phv);
        self.write_bits(dst, Bits::new(8, color as u128), context, world);
    }

    /// The bytes that a packet counts for at a meter: those that the program tells it, or all.
    fn metered_bytes(&self, length: Option<&Expr>, context: &Context) -> u64 {
        length.map_or(context.length() as u64, |length| self.number(length, context))
    }

    /// The colour that a packet comes with: 0 green, 1 yellow, 2 and above red; green when the meter is colour-blind.
    fn color(&self, expr: Option<&Expr>, context: &Context) -> Color {
        match expr.map_or(0, |expr| self.number(expr, context)) {
            0 => Color::Green,
            1 => Color::Yellow,
            _ => Color::Red,
        }
    }

    /// The bytes that a hash sees: the items one after another, filled up with zero bits.
    fn hashed(&self, data: &[DataItem], context: &Context) -> Vec<u8> {
        let mut writer = bits::BitWriter::new();
        for item in data {
            match item {
                DataItem::Value(expr) => push_value(&self.eval(expr, context), &mut writer),
                DataItem::Header(header) => context.phv.write_header(self.program(), *header, &mut writer),
                DataItem::Payload => context.write_payload(&mut writer),
            }
        }
        writer.finish()
    }

    /// An unsigned number: an index or a length. What does not fit 64 bits is the largest.
    fn number(&self, expr: &Expr, context: &Context) -> u64 {
        self.eval(expr, context).as_bits().to_u64_saturating()
    }

    fn width(&self, slot: SlotId) -> u32 {
        match self.program().slots[slot].ty {
            Type::Bool => 1,
            Type::Bits(width) | Type::Varbit(width) => width,
        }
    }

    fn write_bits<O: Observer + ?Sized>(
        &self,
        slot: SlotId,
        bits: Bits,
        context: &mut Context,
        world: &mut World<'_, O>,
    ) {
        let value = of_type(self.program().slots[slot].ty, Value::Bits(bits));
        self.write(slot, value, context, world);
    }
}
