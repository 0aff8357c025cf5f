//! A small machine that runs programs for the tests of this crate. Tables answer by a hash of their key instead of by
//! their entries, so that every action runs; meters and random numbers go by a count. What counts is that two programs
//! with one meaning behave alike on it.

use millrace_pipeline::bits::BitWriter;
use millrace_pipeline::semantics::{self, Leaf, Value, VarbitValue};
use millrace_pipeline::*;
use std::collections::HashMap;

/// All that a run lets the outside see.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) events: Vec<String>,
    pub(crate) packet: Vec<u8>,
    pub(crate) intrinsics: Vec<Value>,
    pub(crate) kept: Vec<Value>,
    pub(crate) ended: Option<&'static str>,
}

struct Machine<'a> {
    program: &'a Program,
    slots: Vec<Value>,
    valid: Vec<bool>,
    registers: HashMap<(RegisterId, u64), Bits>,
    packet: Vec<u8>,
    cursor: usize,
    events: Vec<String>,
}

enum End {
    Done,
    Rejected,
    Exited,
    /// The whole run ends: an assertion, too many steps, a packet dropped by its parser.
    Over(&'static str),
}

/// Runs ingress and egress of a verified program on one packet. `None` when it takes too many steps.
pub(crate) fn run(program: &Program, packet: &[u8]) -> Option<Seen> {
    let mut machine = Machine {
        program,
        slots: program.slots.values().map(|s| Value::zero(s.ty)).collect(),
        valid: vec![false; program.headers.len()],
        registers: HashMap::new(),
        packet: packet.to_vec(),
        cursor: 0,
        events: Vec::new(),
    };
    let ended = machine.all();
    if ended == Some("steps") {
        return None;
    }
    let value = |slot: &SlotId| machine.slots[slot.as_u32() as usize].clone();
    Some(Seen {
        intrinsics: Intrinsic::ALL
            .iter()
            .filter_map(|r| program.intrinsics.get(*r).as_ref().map(value))
            .collect(),
        kept: program.field_lists.iter().flat_map(|list| list.slots.iter().map(value)).collect(),
        events: machine.events,
        packet: machine.packet,
        ended,
    })
}

impl Machine<'_> {
    fn all(&mut self) -> Option<&'static str> {
        let p = self.program;
        if let Some(end) = self.bodies(&p.ingress) {
            return Some(end);
        }
        if p.deparse_at_ingress {
            self.valid.fill(false);
            self.cursor = 0;
        }
        for slot in &p.reset_at_egress {
            self.slots[slot.as_u32() as usize] = Value::zero(p.slots[*slot].ty);
        }
        self.bodies(&p.egress)
    }

    fn bodies(&mut self, bodies: &[BodyId]) -> Option<&'static str> {
        for id in bodies {
            let mut emitted = BitWriter::new();
            match self.body(*id, &mut emitted) {
                End::Over(why) => return Some(why),
                End::Rejected if self.program.on_reject == OnReject::Drop => return Some("rejected"),
                End::Rejected if self.program.on_reject == OnReject::PassOn => return None,
                _ => {}
            }
            if self.program.bodies[*id].kind == BodyKind::Deparser {
                // The parser may stop within a byte; what is left of it goes with the rest.
                let rest = self.packet.split_off(self.cursor.div_ceil(8).min(self.packet.len()));
                self.packet = [emitted.finish(), rest].concat();
                self.cursor = 0;
            }
        }
        None
    }

    fn body(&mut self, id: BodyId, emitted: &mut BitWriter) -> End {
        let body = &self.program.bodies[id];
        let mut at = body.entry;
        let params: Vec<SlotId> =
            self.program.actions.values().filter(|a| a.body == id).flat_map(|a| a.params.clone()).collect();
        let mut start = |slot: SlotId| {
            let Slot { ty, home, .. } = self.program.slots[slot];
            if home == Home::Local && !params.contains(&slot) {
                self.slots[slot.as_u32() as usize] = Value::zero(ty);
            }
        };
        body.for_each_slot(self.program, &mut start);
        for _ in 0..5000 {
            let block = &body.blocks[at];
            for inst in &block.insts {
                if let Err(end) = self.inst(inst, emitted) {
                    return end;
                }
            }
            at = match &block.term {
                Terminator::Goto(to) => *to,
                Terminator::Branch { cond, then, els } => {
                    if self.eval(cond).as_bool() {
                        *then
                    } else {
                        *els
                    }
                }
                Terminator::Select { keys, cases, default } => {
                    let keys: Vec<Bits> = keys.iter().map(|k| self.eval(k).as_bits()).collect();
                    cases.iter().find(|c| matches(&c.matchers, &keys)).map_or(*default, |c| c.target)
                }
                Terminator::Apply { table, hit, action, next, exit } => {
                    let end = self.apply(*table, *hit, *action);
                    match end {
                        End::Over(_) => return end,
                        End::Exited => *exit,
                        _ => *next,
                    }
                }
                Terminator::End => return End::Done,
                Terminator::Reject => return End::Rejected,
                Terminator::Exit => return End::Exited,
            };
        }
        End::Over("steps")
    }

    fn apply(&mut self, id: TableId, hit: Option<SlotId>, ran: Option<SlotId>) -> End {
        let table = &self.program.tables[id];
        let text = table.exprs().map(|e| format!("{:?} ", self.eval(e))).collect::<String>();
        let hash = HashAlgorithm::Crc32.compute(text.as_bytes());
        self.events.push(format!("apply {} {text}", table.name));
        let is_hit = !hash.is_multiple_of(3);
        let index = if is_hit { (hash / 3) as usize % table.actions.len() } else { table.default.action };
        let action = &self.program.actions[table.actions[index].action];
        for (i, param) in action.params.iter().enumerate() {
            let slot = &mut self.slots[param.as_u32() as usize];
            *slot = match self.program.slots[*param].ty {
                Type::Bits(width) => Value::Bits(Bits::new(width, u128::from(hash) * 77 + i as u128)),
                _ => Value::Bool(hash.is_multiple_of(2)),
            };
        }
        let end = self.body(action.body, &mut BitWriter::new());
        if let Some(slot) = hit {
            self.write(slot, Value::Bool(is_hit));
        }
        if let Some(slot) = ran {
            self.write(slot, Value::Bits(Bits::new(16, index as u128)));
        }
        end
    }

    fn eval(&self, expr: &Expr) -> Value {
        semantics::evaluate(expr, &|leaf| match leaf {
            Leaf::Slot(slot) => self.read(slot),
            Leaf::Valid(header) => Value::Bool(self.valid[header.as_u32() as usize]),
            Leaf::PacketLength => Value::Bits(Bits::new(32, self.packet.len() as u128)),
            Leaf::Cursor => Value::Bits(Bits::new(32, self.cursor as u128)),
        })
    }

    fn lost(&self, slot: SlotId) -> bool {
        match self.program.slots[slot].home {
            Home::Header { header, .. } => !self.valid[header.as_u32() as usize],
            _ => false,
        }
    }

    fn read(&self, slot: SlotId) -> Value {
        if self.lost(slot) {
            Value::zero(self.program.slots[slot].ty)
        } else {
            self.slots[slot.as_u32() as usize].clone()
        }
    }

    fn write(&mut self, slot: SlotId, value: Value) {
        assert!(value.fits(self.program.slots[slot].ty), "{value:?} in {}", self.program.slots[slot].name);
        if !self.lost(slot) {
            self.slots[slot.as_u32() as usize] = value;
        }
    }

    fn fail(&mut self, error: &str) -> Result<(), End> {
        let code = self.program.error_code(error).expect("an error of the program");
        let slot = self.program.intrinsics.parser_error.expect("a slot for errors");
        self.write(slot, Value::Bits(Bits::new(16, u128::from(code))));
        Err(End::Rejected)
    }

    fn extract(&mut self, header: HeaderId, varbit: u32) -> Result<(), End> {
        let layout = &self.program.headers[header];
        let mut at = self.cursor;
        let mut values = Vec::new();
        for field in &layout.fields {
            let ty = self.program.slots[*field].ty;
            let width = if let Type::Varbit(_) = ty { varbit } else { ty.fixed_bits() };
            let bits = if width == 0 { None } else { Bits::read_at(&self.packet, at, width) };
            values.push(match (ty, bits) {
                (Type::Varbit(_), None) if width == 0 => Value::Varbit(VarbitValue::EMPTY),
                (_, None) => return self.fail("PacketTooShort"),
                (Type::Bool, Some(bits)) => Value::Bool(!bits.is_zero()),
                (Type::Bits(_), Some(bits)) => Value::Bits(bits),
                (Type::Varbit(_), Some(bits)) => Value::Varbit(VarbitValue::new(bits)),
            });
            at += width as usize;
        }
        self.cursor = at;
        self.valid[header.as_u32() as usize] = true;
        for (field, value) in layout.fields.iter().zip(values) {
            self.write(*field, value);
        }
        Ok(())
    }

    fn put(&self, value: &Value, out: &mut BitWriter) {
        match value {
            Value::Varbit(varbit) => varbit.bits().into_iter().for_each(|bits| out.push(bits)),
            other => out.push(&other.as_bits()),
        }
    }

    fn put_header(&self, header: HeaderId, out: &mut BitWriter) {
        if self.valid[header.as_u32() as usize] {
            self.program.headers[header].fields.iter().for_each(|field| self.put(&self.read(*field), out));
        }
    }

    fn event(&mut self, what: &str, exprs: &[&Expr]) -> usize {
        let values: Vec<Value> = exprs.iter().map(|e| self.eval(e)).collect();
        self.events.push(format!("{what} {values:?}"));
        self.events.len()
    }

    fn inst(&mut self, inst: &Inst, emitted: &mut BitWriter) -> Result<(), End> {
        match inst {
            Inst::Assign { dst, value } => self.write(*dst, self.eval(value)),
            Inst::SetValid(header) => {
                if !std::mem::replace(&mut self.valid[header.as_u32() as usize], true) {
                    for field in &self.program.headers[*header].fields {
                        self.write(*field, Value::zero(self.program.slots[*field].ty));
                    }
                }
            }
            Inst::SetInvalid(header) => self.valid[header.as_u32() as usize] = false,
            Inst::Extract(header) => self.extract(*header, 0)?,
            Inst::ExtractVar { header, bits } => {
                let bits = self.eval(bits).as_bits().to_u64_saturating();
                let types = self.program.headers[*header].fields.iter().map(|f| self.program.slots[*f].ty);
                let room =
                    types.filter_map(|ty| if let Type::Varbit(width) = ty { Some(width) } else { None });
                if bits > room.map(u64::from).sum() {
                    return self.fail("HeaderTooShort");
                }
                if !bits.is_multiple_of(8) {
                    return self.fail("ParserInvalidArgument");
                }
                self.extract(*header, bits as u32)?;
            }
            Inst::Advance { bits } => {
                let bits = self.eval(bits).as_bits().to_u64_saturating() as usize;
                if !bits.is_multiple_of(8) {
                    return self.fail("ParserInvalidArgument");
                }
                if self.cursor + bits > self.packet.len() * 8 {
                    return self.fail("PacketTooShort");
                }
                self.cursor += bits;
            }
            Inst::Lookahead { dst, skip } => {
                let width = self.program.slots[*dst].ty.fixed_bits();
                match Bits::read_at(&self.packet, self.cursor + *skip as usize, width) {
                    Some(bits) => self.write(*dst, Value::Bits(bits)),
                    None => return self.fail("PacketTooShort"),
                }
            }
            Inst::Emit(header) => self.put_header(*header, emitted),
            Inst::Count { counter, index } => {
                self.event(&format!("{counter}"), &[index]);
            }
            Inst::CountDirect(table) => {
                self.event(&format!("direct {table}"), &[]);
            }
            Inst::Meter { meter, index, color, length, dst } => {
                let told: Vec<&Expr> = color.iter().chain(length).chain([index]).collect();
                let count = self.event(&format!("{meter}"), &told);
                self.number(*dst, count as u128);
            }
            Inst::MeterDirect { table, color, length, dst } => {
                let told: Vec<&Expr> = color.iter().chain(length).collect();
                let count = self.event(&format!("meter {table}"), &told);
                self.number(*dst, count as u128);
            }
            Inst::RegisterRead { dst, register, index } => {
                let cell = (*register, self.eval(index).as_bits().to_u64_saturating() % 4);
                let width = self.program.registers[*register].width;
                let value = self.registers.get(&cell).cloned().unwrap_or_else(|| Bits::new(width, 5));
                self.write(*dst, Value::Bits(value));
            }
            Inst::AtomicBegin { index } => {
                self.event("a section begins", &index.iter().collect::<Vec<_>>());
            }
            Inst::AtomicEnd => {
                self.event("a section ends", &[]);
            }
            Inst::RegisterWrite { register, index, value } => {
                self.event(&format!("{register}"), &[index, value]);
                let cell = (*register, self.eval(index).as_bits().to_u64_saturating() % 4);
                self.registers.insert(cell, self.eval(value).as_bits());
            }
            Inst::Hash { dst, algorithm, data, .. } => {
                let mut out = BitWriter::new();
                for item in data {
                    match item {
                        DataItem::Value(value) => self.put(&self.eval(value), &mut out),
                        DataItem::Header(header) => self.put_header(*header, &mut out),
                        DataItem::Payload => out.push_bytes(&self.packet[self.cursor.div_ceil(8)..]),
                    }
                }
                self.number(*dst, u128::from(algorithm.compute(&out.finish())));
            }
            Inst::Random { dst, low, high } => {
                let count = self.event("random", &[low, high]);
                self.number(*dst, count as u128);
            }
            Inst::Digest { digest, values } => {
                self.event(&format!("{digest}"), &values.iter().collect::<Vec<_>>());
            }
            Inst::Call { dst, args, .. } => {
                self.event("call", &args.iter().collect::<Vec<_>>());
                self.number(*dst, 0);
            }
            Inst::CallResult { dst, index } => self.number(*dst, u128::from(*index)),
            Inst::Stop { cond } => {
                if self.eval(cond).as_bool() {
                    return Err(End::Over("stop"));
                }
            }
            Inst::Log { format, args } => {
                self.event(format, &args.iter().collect::<Vec<_>>());
            }
            Inst::Assert { cond, .. } => {
                if !self.eval(cond).as_bool() {
                    return Err(End::Over("assert"));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, dst: SlotId, value: u128) {
        let width = self.program.slots[dst].ty.fixed_bits();
        self.write(dst, Value::Bits(Bits::new(width, value)));
    }
}

/// A value set matches when the lowest bits of its keys are alike.
fn matches(matchers: &[Matcher], keys: &[Bits]) -> bool {
    let mut keys = keys.iter();
    matchers.iter().all(|matcher| match matcher {
        Matcher::ValueSet(_) => {
            let (a, b) = (keys.next(), keys.next());
            a.map(|k| k.bit(0)) == b.map(|k| k.bit(0))
        }
        matcher => matcher.matches(keys.next()) == Some(true),
    })
}
