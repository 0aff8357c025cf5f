//! Operations that neither branch nor fail.

use super::bytes::Written;
use super::env::{Env, Place, slot_width};
use super::expr::Value;
use super::{Converter, Step};
use crate::graph::Wire;
use crate::refusal::Construct;
use crate::stage::{Input, Unit};
use millrace_midend::cfg::Op;
use millrace_pipeline::*;

impl Converter<'_> {
    /// Does an operation on a path that is taken where `cond` holds.
    pub(super) fn op(&mut self, op: &Op, cond: Wire, env: &mut Env) -> Step<()> {
        match op {
            Op::Inst(inst) => self.inst(inst, cond, env)?,
            Op::Clear(slot) => {
                let (ty, place) = (self.program.slots[*slot].ty, self.cells.slot(*slot));
                env.cells[place] = match slot_width(ty) {
                    width if width <= crate::limits::MAX_VALUE => self.graph.number(width, 0),
                    // What reads it is refused.
                    _ => self.graph.bool(false),
                };
                if let Type::Varbit(_) = ty {
                    env.cells[place + 1] = self.graph.number(32, 0);
                }
            }
            Op::Argument { dst, table, action, param } => {
                self.argument(*dst, (*table, *action, *param), env)?
            }
            Op::Hit { dst } => {
                let hit = env.cells[self.cells.last_hit()];
                self.write(*dst, Value::Bits(hit), env)?;
            }
            Op::AtHit { table, meter } => self.at_hit(*table, *meter, cond, env)?,
            Op::NoteParsed => {
                let bits = self.header_bits(env)?;
                let place = self.cells.parsed();
                env.cells[place] = bits;
            }
            Op::Deparse { headers, .. } => {
                self.start_emit(env);
                for header in headers {
                    self.emit(*header, env)?;
                }
                self.finish_emit(env)?;
            }
            Op::StartEmit => self.start_emit(env),
            Op::Emit(header) => self.emit(*header, env)?,
            Op::FinishEmit { .. } => self.finish_emit(env)?,
            Op::SetOut(expr) => {
                let value = self.bits(expr, env)?;
                let place = self.cells.out();
                env.cells[place] = self.graph.zero_extend(value, 32);
            }
            Op::SetError => {
                let error = match self.program.intrinsics.get(Intrinsic::ParserError) {
                    Some(slot) => env.cells[self.cells.slot(slot)],
                    None => self.graph.number(32, 0),
                };
                let place = self.cells.out();
                env.cells[place] = self.graph.zero_extend(error, 32);
            }
            Op::AddSite(slot) => {
                let site = env.cells[self.cells.slot(*slot)];
                let place = self.cells.site();
                env.cells[place] = self.graph.zero_extend(site, 16);
            }
            // Loops have bounds here: no step is counted when the frame comes.
            Op::StartSteps | Op::ForgetSteps | Op::AddSteps => {}
            Op::AssertFailed(text) => {
                let line = format!("assertion failed: {text}");
                self.access(Unit::Log(line.into()), cond, Vec::new(), 0);
            }
            Op::Input { .. } | Op::Reparse => {
                return Err(Construct::Operation("what the switch does between stages"));
            }
            Op::StartCopies | Op::NextCopy | Op::DropCopy(_) | Op::AddClass(_) | Op::AddQueue(_) => {
                return Err(Construct::Operation("copies of a frame within a stage"));
            }
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, cond: Wire, env: &mut Env) -> Step<()> {
        match inst {
            Inst::Assign { dst, value } => {
                let value = self.value(value, env)?;
                self.write(*dst, value, env)?;
            }
            // The fields of an invalid header are kept as 0.
            Inst::SetValid(header) => env.cells[self.cells.valid(*header)] = self.graph.bool(true),
            Inst::SetInvalid(header) => self.set_invalid(*header, env),
            Inst::Count { counter, index } => {
                let inputs = vec![self.number(index, env)?, self.length(env)];
                self.access(Unit::Count(*counter), cond, inputs, 0);
            }
            Inst::CountDirect(table) => self.count_direct(*table, cond, env),
            Inst::Meter { meter, index, color, length, dst } => {
                let index = self.number(index, env)?;
                let told = self.metered(color.as_ref(), length.as_ref(), env)?;
                let now = self.now();
                let access = self.access(Unit::Meter(*meter), cond, vec![index, told.0, told.1, now], 8);
                let color = self.graph.answer(access, 0, 8);
                self.write(*dst, Value::Bits(color), env)?;
            }
            Inst::MeterDirect { table, color, length, dst } => {
                let told = self.metered(color.as_ref(), length.as_ref(), env)?;
                self.meter_direct(*table, told, *dst, cond, env)?;
            }
            Inst::RegisterRead { dst, register, index } => {
                let index = self.number(index, env)?;
                let width = self.program.registers[*register].width;
                let access = self.access(Unit::RegisterRead(*register), cond, vec![index], width);
                let read = self.graph.answer(access, 0, width);
                self.write(*dst, Value::Bits(read), env)?;
            }
            Inst::RegisterWrite { register, index, value } => {
                let inputs = vec![self.number(index, env)?, self.number(value, env)?];
                self.access(Unit::RegisterWrite(*register), cond, inputs, 0);
            }
            // All accesses to an object happen in the order of the frames.
            Inst::AtomicBegin { .. } | Inst::AtomicEnd => {}
            Inst::Hash { dst, algorithm, own, data } => {
                let hash = self.hash(*algorithm, *own, data, env)?;
                self.write(*dst, Value::Bits(hash), env)?;
            }
            Inst::Random { dst, low, high } => {
                let inputs = vec![self.number(low, env)?, self.number(high, env)?];
                let width = self.graph.width(inputs[0].0);
                let access = self.access(Unit::Random, cond, inputs, width);
                let drawn = self.graph.answer(access, 0, width);
                self.write(*dst, Value::Bits(drawn), env)?;
            }
            Inst::Digest { digest, values } => {
                let values = values.iter().map(|value| self.told(value, env)).collect::<Step<Vec<_>>>()?;
                self.access(Unit::Digest(*digest), cond, values, 0);
            }
            Inst::Log { format, args } => {
                let values = args.iter().map(|value| self.told(value, env)).collect::<Step<Vec<_>>>()?;
                self.access(Unit::Log(format.as_str().into()), cond, values, 0);
            }
            Inst::Call { plugin, .. } => {
                return Err(Construct::Plugin(self.program.plugins[*plugin].name.clone()));
            }
            Inst::CallResult { .. } => return Err(Construct::Operation("the result of a plugin")),
            Inst::Extract(_)
            | Inst::ExtractVar { .. }
            | Inst::Advance { .. }
            | Inst::Lookahead { .. }
            | Inst::Emit(_)
            | Inst::Stop { .. }
            | Inst::Assert { .. } => return Err(Construct::Operation("a branch within a block")),
        }
        Ok(())
    }

    pub(super) fn set_invalid(&mut self, header: HeaderId, env: &mut Env) {
        env.cells[self.cells.valid(header)] = self.graph.bool(false);
        for field in &self.program.headers[header].fields {
            let (ty, place) = (self.program.slots[*field].ty, self.cells.slot(*field));
            if slot_width(ty) <= crate::limits::MAX_VALUE {
                env.cells[place] = self.graph.number(slot_width(ty), 0);
            }
            if let Type::Varbit(_) = ty {
                env.cells[place + 1] = self.graph.number(32, 0);
            }
        }
    }

    fn argument(
        &mut self,
        dst: SlotId,
        (table, action, param): (TableId, usize, usize),
        env: &mut Env,
    ) -> Step<()> {
        let listed = &self.program.tables[table].actions[action];
        let params = &self.program.actions[listed.action].params;
        let before: u32 = params[..param].iter().map(|other| slot_width(self.program.slots[*other].ty)).sum();
        let ty = self.program.slots[dst].ty;
        if let Type::Varbit(_) = ty {
            return Err(Construct::Operation("action data of varying length"));
        }
        let data = env.cells[self.cells.data(table)];
        let value = self.graph.slice(data, before + slot_width(ty) - 1, before);
        self.write(dst, Value::Bits(value), env)
    }

    /// The time for which meters color a frame.
    fn now(&mut self) -> (Wire, Type) {
        let known = self.inputs.iter().position(|(input, _)| *input == Input::Now);
        let now = match known {
            Some(number) => self.graph.input(number as u32, 64),
            None => self.input(Input::Now, 64),
        };
        (now, Type::Bits(64))
    }

    fn length(&mut self, env: &Env) -> (Wire, Type) {
        (env.cells[self.cells.length()], Type::Bits(32))
    }

    /// Bytes and color of a frame at a meter.
    fn metered(
        &mut self,
        color: Option<&Expr>,
        length: Option<&Expr>,
        env: &Env,
    ) -> Step<((Wire, Type), (Wire, Type))> {
        let bytes = match length {
            Some(length) => self.number(length, env)?,
            None => self.length(env),
        };
        let color = match color {
            Some(color) => self.number(color, env)?,
            None => (self.graph.number(2, 0), Type::Bits(2)),
        };
        Ok((bytes, color))
    }

    fn at_hit(&mut self, table: TableId, meter: Option<SlotId>, cond: Wire, env: &mut Env) -> Step<()> {
        let described = &self.program.tables[table];
        if described.direct_counter.as_ref().is_some_and(|counter| counter.at_hit) {
            self.count_direct(table, cond, env);
        }
        let Some(dst) = meter else { return Ok(()) };
        // At a miss the slot stays as it is.
        let (hit, before) = (env.cells[self.cells.hit(table)], self.read(dst, env)?);
        let told = self.metered(None, None, env)?;
        self.meter_direct(table, told, dst, cond, env)?;
        if let (Value::Bits(metered), Value::Bits(before)) = (self.read(dst, env)?, before) {
            let place = self.cells.slot(dst);
            env.cells[place] = self.graph.mux(hit, metered, before);
        }
        Ok(())
    }

    fn count_direct(&mut self, table: TableId, cond: Wire, env: &Env) {
        let (hit, entry) = (env.cells[self.cells.hit(table)], env.cells[self.cells.entry(table)]);
        let enable = self.graph.and(cond, hit);
        let bytes = self.length(env);
        self.access(Unit::CountDirect(table), enable, vec![(entry, Type::Bits(32)), bytes], 0);
    }

    fn meter_direct(
        &mut self,
        table: TableId,
        (bytes, color): ((Wire, Type), (Wire, Type)),
        dst: SlotId,
        cond: Wire,
        env: &mut Env,
    ) -> Step<()> {
        let (hit, entry) = (env.cells[self.cells.hit(table)], env.cells[self.cells.entry(table)]);
        let enable = self.graph.and(cond, hit);
        let inputs = vec![(entry, Type::Bits(32)), bytes, color, self.now()];
        let access = self.access(Unit::MeterDirect(table), enable, inputs, 8);
        let (color, green) = (self.graph.answer(access, 0, 8), self.graph.number(8, 0));
        let color = self.graph.mux(hit, color, green);
        self.write(dst, Value::Bits(color), env)
    }

    /// The bits that all valid headers have together.
    fn header_bits(&mut self, env: &Env) -> Step<Wire> {
        let none = self.graph.number(32, 0);
        let mut sum = none;
        for (id, header) in &self.program.headers {
            let valid = env.cells[self.cells.valid(id)];
            let mut bits = self.graph.number(32, u64::from(header.fixed_bits));
            for field in &header.fields {
                if let Value::Varbit(_, length) = self.read(*field, env)? {
                    bits = self.graph.add(bits, length);
                }
            }
            let bits = self.graph.mux(valid, bits, none);
            sum = self.graph.add(sum, bits);
        }
        Ok(sum)
    }

    fn start_emit(&mut self, env: &mut Env) {
        env.emitted = Place::start(None, &mut self.graph);
        let place = self.cells.packet();
        env.cells[place] = self.graph.number(8, 0);
    }

    fn emit(&mut self, header: HeaderId, env: &mut Env) -> Step<()> {
        let place = self.cells.packet();
        let so_far = env.cells[place];
        let nothing =
            env.emitted.cases.as_ref().is_some_and(|cases| cases.len() == 1 && cases.contains_key(&0));
        let bits = (!nothing).then_some(so_far);
        let mut written = Written { bits, end: env.emitted.clone() };
        self.append_header(&mut written, header, env)?;
        env.emitted = written.end;
        if let Some(bits) = written.bits {
            env.cells[place] = bits;
        }
        Ok(())
    }

    /// The packet is what was emitted, then what is after the cursor.
    fn finish_emit(&mut self, env: &mut Env) -> Step<()> {
        if !self.graph.is_false(env.cells[self.cells.deparsed()]) {
            return Err(Construct::SecondDeparser);
        }
        let (deparsed, bits, payload) =
            (self.cells.deparsed(), self.cells.packet_bits(), self.cells.payload());
        let g = &mut self.graph;
        env.cells[deparsed] = g.bool(true);
        env.cells[bits] = env.emitted.wire;
        env.cells[payload] = env.cursor.wire;
        // Its bytes: those emitted and those after the cursor, the last one filled up.
        let length = self.cells.length();
        let three = g.number(32, 3);
        let whole = g.binary(crate::graph::Binary::Shl, env.cells[length], three);
        let rest = g.binary(crate::graph::Binary::Sub, whole, env.cursor.wire);
        let all = g.add(rest, env.emitted.wire);
        let seven = g.number(32, 7);
        let up = g.add(all, seven);
        env.cells[length] = g.binary(crate::graph::Binary::Shr, up, three);
        env.cursor = Place::start(None, g);
        Ok(())
    }
}
