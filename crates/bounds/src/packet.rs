//! A packet of which only its way through the program is known: its slots as bits of what came in.
//!
//! Each operation does what the interpreter does, on literals instead of bits. What depends on more than the packet and the
//! tables (registers, meters, hashes, random numbers, the clock) is bits of which nothing is known, so that every packet that can
//! be is one of these, and some that cannot be are too.

use crate::choice::{Choice, Choices};
use crate::circuit::{Circuit, Lit, Word};
use millrace_midend::cfg::{Input, Op};
use millrace_midend::{Start, type_width};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;
use std::rc::Rc;

/// Bytes of a packet whose bits are told apart; of those beyond nothing is known.
pub(crate) const MAX_BYTES: usize = 1024;
/// Widest number whose bits are told apart: of a wider one nothing is known, nor of what is computed of it.
const MAX_WIDTH: u32 = 2048;

/// What came in: the same for all paths.
pub(crate) struct Arrival {
    /// The bits of the frame, in the order of the wire.
    pub(crate) bits: Word,
    /// Its length in bytes, 32 bits.
    pub(crate) length: Word,
    /// The port, 32 bits.
    pub(crate) port: Word,
    /// The time of arrival, and that at which the batch is worked on.
    arrival: Word,
    now: Word,
}

impl Arrival {
    /// Any frame of at most so many bytes.
    pub(crate) fn new(circuit: &mut Circuit, most: u64) -> Arrival {
        let arrival = Arrival {
            bits: circuit.fresh_word(8 * MAX_BYTES),
            length: circuit.fresh_word(32),
            port: circuit.fresh_word(32),
            arrival: circuit.fresh_word(64),
            now: circuit.fresh_word(64),
        };
        let most = circuit.number(32, most);
        let fits = !circuit.less(&most, &arrival.length);
        circuit.require(&[fits]);
        arrival
    }
}

/// A packet at a point of its way.
#[derive(Clone)]
pub(crate) struct Packet {
    /// None: nothing is known. The value that a field keeps while its header is invalid has no meaning.
    slots: Vec<Option<Rc<[Lit]>>>,
    valid: Vec<Lit>,
    cursor: Rc<[Lit]>,
    length: Rc<[Lit]>,
    out: Rc<[Lit]>,
    /// The set of ports that copies are to come for, and the set of the one that the copy at hand is for.
    to_come: Rc<[Lit]>,
    copy: Rc<[Lit]>,
    /// How many copies have come.
    copies: usize,
    /// Steps of the body.
    steps: u32,
    /// Whether its bytes are still those that came in.
    is_as_it_came: bool,
    /// What the latest lookup gave.
    found: Option<Rc<Choice>>,
    /// What is taken for granted.
    pub(crate) taken: Vec<Lit>,
}

/// What operations need besides the packet.
pub(crate) struct World<'a> {
    pub(crate) program: &'a Program,
    pub(crate) circuit: Circuit,
    pub(crate) arrival: Arrival,
    pub(crate) choices: Choices<'a>,
}

impl Packet {
    /// A packet before a plan.
    pub(crate) fn new(world: &mut World<'_>, start: Start) -> Packet {
        let program = world.program;
        let no = world.circuit.constant(false);
        let slots = program.slots.values().map(|slot| match start {
            Start::Arrival => known_width(slot.ty).map(|width| vec![no; width as usize].into()),
            Start::Unparsed | Start::Context => None,
        });
        let slots = slots.collect();
        let valid = match start {
            Start::Context => world.circuit.fresh_word(program.headers.len()),
            Start::Arrival | Start::Unparsed => vec![no; program.headers.len()],
        };
        let cursor = match start {
            Start::Context => world.circuit.fresh_word(32),
            Start::Arrival | Start::Unparsed => vec![no; 32],
        };
        Packet {
            slots,
            valid,
            cursor: cursor.into(),
            length: world.arrival.length.clone().into(),
            out: vec![no; 32].into(),
            to_come: vec![no; 32].into(),
            copy: vec![no; 32].into(),
            copies: 0,
            steps: 0,
            is_as_it_came: true,
            found: None,
            taken: Vec::new(),
        }
    }

    /// Takes a condition for granted; says whether it is not plainly false.
    pub(crate) fn take(&mut self, circuit: &Circuit, condition: Lit) -> bool {
        match circuit.known(condition) {
            Some(known) => known,
            None if self.taken.contains(&!condition) => false,
            None => {
                if !self.taken.contains(&condition) {
                    self.taken.push(condition);
                }
                true
            }
        }
    }

    /// What the latest lookup gave.
    pub(crate) fn found(&self) -> Option<Rc<Choice>> {
        self.found.clone()
    }

    /// Looks a table up.
    pub(crate) fn lookup(&mut self, world: &mut World<'_>, table: TableId) {
        let keys: Vec<Word> =
            world.program.tables[table].keys.iter().map(|key| self.eval(world, &key.value)).collect();
        self.found = Some(world.choices.of(&mut world.circuit, table, keys));
    }

    /// Whether copies are to come.
    pub(crate) fn more_copies(&self, circuit: &mut Circuit) -> Lit {
        circuit.any(self.to_come.iter().copied())
    }

    /// The lowest port leaves the set of those to come. Each copy takes one, so after `n` copies none of the lowest `n` ports is left:
    /// said so, for the number of copies to be bounded where the set is not known.
    fn next_copy(&mut self, circuit: &mut Circuit) {
        let none = circuit.constant(false);
        let (mut lower, mut copy, mut rest) = (none, Vec::new(), Vec::new());
        self.copies += 1;
        for (number, port) in self.to_come.iter().enumerate() {
            copy.push(circuit.and(*port, !lower));
            rest.push(if number < self.copies { none } else { circuit.and(*port, lower) });
            lower = circuit.or(lower, *port);
        }
        (self.copy, self.to_come) = (copy.into(), rest.into());
    }

    /// Counts steps; says whether there were as many left.
    pub(crate) fn step(&mut self, steps: u32) -> bool {
        self.steps = self.steps.saturating_add(steps);
        self.steps <= limits::MAX_STEPS
    }

    /// Whether so many bits come after the cursor.
    pub(crate) fn has_room(&self, circuit: &mut Circuit, bits: &[Lit]) -> Lit {
        let wide = |circuit: &Circuit, word: &[Lit], up: usize| {
            let mut wide = vec![circuit.constant(false); up];
            wide.extend(word);
            wide.resize(40, circuit.constant(false));
            wide
        };
        let have = wide(circuit, &self.length, 3);
        let no = circuit.constant(false);
        let (cursor, bits) = (wide(circuit, &self.cursor, 0), wide(circuit, bits, 0));
        let need = circuit.add(&cursor, &bits, no).0;
        !circuit.less(&have, &need)
    }

    /// Moves the cursor.
    pub(crate) fn advance(&mut self, circuit: &mut Circuit, bits: &[Lit]) {
        let no = circuit.constant(false);
        let mut by = bits.to_vec();
        by.resize(32, no);
        self.cursor = circuit.add(&self.cursor, &by, no).0.into();
    }

    /// Bits of the packet, `skip` after the cursor.
    fn bits_at(&self, world: &mut World<'_>, skip: u32, width: u32) -> Word {
        let at = world.circuit.known_word(&self.cursor).map(|at| at + u64::from(skip));
        let range = at.map(|at| at as usize..at as usize + width as usize);
        let found = range.filter(|_| self.is_as_it_came).and_then(|range| world.arrival.bits.get(range));
        match found {
            // The wire has the highest bit first.
            Some(found) => found.iter().rev().copied().collect(),
            None => world.circuit.fresh_word(width as usize),
        }
    }

    /// Reads a header at the cursor, which has room; of one with a field of varying length, that field has `varying` bits.
    pub(crate) fn extract(&mut self, world: &mut World<'_>, header: HeaderId, varying: Option<&[Lit]>) {
        let described = &world.program.headers[header];
        let mut after_varying = false;
        for field in &described.fields {
            let slot = &world.program.slots[*field];
            let Home::Header { offset, .. } = slot.home else { continue };
            let value = match (slot.ty, known_width(slot.ty)) {
                (Type::Varbit(_), _) => {
                    after_varying = true;
                    None
                }
                (_, Some(width)) if !after_varying => Some(self.bits_at(world, offset, width)),
                _ => None,
            };
            self.slots[field.index()] = value.map(Rc::from);
        }
        self.valid[header.index()] = world.circuit.constant(true);
        let fixed = world.circuit.number(32, u64::from(described.fixed_bits));
        self.advance(&mut world.circuit, &fixed);
        if let Some(bits) = varying {
            self.advance(&mut world.circuit, bits);
        }
    }

    /// Reads bits after the cursor.
    pub(crate) fn lookahead(&mut self, world: &mut World<'_>, dst: SlotId, skip: u32) {
        let width = type_width(world.program.slots[dst].ty);
        let bits = self.bits_at(world, skip, width);
        self.write(world, dst, Some(bits));
    }

    fn is_there(&self, circuit: &Circuit, program: &Program, slot: SlotId) -> Lit {
        match program.slots[slot].home {
            Home::Header { header, .. } => self.valid[header.index()],
            Home::Metadata | Home::Local => circuit.constant(true),
        }
    }

    fn write(&mut self, world: &mut World<'_>, dst: SlotId, value: Option<Word>) {
        let there = self.is_there(&world.circuit, world.program, dst);
        let width = known_width(world.program.slots[dst].ty);
        let value = match (value, width) {
            (Some(mut value), Some(width)) => {
                value.resize(width as usize, world.circuit.constant(false));
                match world.circuit.known(there) {
                    Some(true) => Some(value.into()),
                    Some(false) => return,
                    None => {
                        let old = self.slots[dst.index()].clone();
                        old.map(|old| world.circuit.choose_word(there, &value, &old).into())
                    }
                }
            }
            _ => None,
        };
        self.slots[dst.index()] = value;
    }

    fn read(&mut self, world: &mut World<'_>, slot: SlotId) -> Word {
        let width = type_width(world.program.slots[slot].ty) as usize;
        let there = self.is_there(&world.circuit, world.program, slot);
        let value = match &self.slots[slot.index()] {
            Some(value) => Rc::clone(value),
            None => {
                let fresh: Rc<[Lit]> = world.circuit.fresh_word(width.max(1)).into();
                // It keeps that value, where values of its type have a fixed width.
                if known_width(world.program.slots[slot].ty).is_some() {
                    self.slots[slot.index()] = Some(Rc::clone(&fresh));
                }
                fresh
            }
        };
        value.iter().map(|bit| world.circuit.and(there, *bit)).collect()
    }

    /// An expression that is a truth value.
    pub(crate) fn truth(&mut self, world: &mut World<'_>, expr: &Expr) -> Lit {
        let word = self.eval(world, expr);
        world.circuit.any(word)
    }

    /// The value of an expression; a truth value is one bit.
    pub(crate) fn eval(&mut self, world: &mut World<'_>, expr: &Expr) -> Word {
        match expr {
            Expr::Const(bits) => world.circuit.word(bits),
            Expr::Bool(truth) => vec![world.circuit.constant(*truth)],
            Expr::Read(slot) => self.read(world, *slot),
            Expr::IsValid(header) => vec![self.valid[header.index()]],
            Expr::PacketLength => self.length.to_vec(),
            Expr::Cursor => self.cursor.to_vec(),
            Expr::Unary(op, operand) => {
                let word = self.eval(world, operand);
                match op {
                    UnaryOp::Not => vec![!world.circuit.any(word)],
                    UnaryOp::BitNot => word.into_iter().map(|bit| !bit).collect(),
                    UnaryOp::Neg => {
                        let zero = world.circuit.number(word.len(), 0);
                        world.circuit.sub(&zero, &word).0
                    }
                }
            }
            Expr::Binary(op, left, right) => {
                // One bit is told of numbers that are compared.
                let is_told = known_width(left.ty(world.program)).is_some();
                if expr.ty(world.program) == Type::Bool && !is_told {
                    return vec![world.circuit.fresh()];
                }
                let (left, right) = (self.eval(world, left), self.eval(world, right));
                binary(&mut world.circuit, *op, left, right)
            }
            Expr::Mux(cond, then, els) => {
                let cond = self.truth(world, cond);
                let (then, els) = (self.eval(world, then), self.eval(world, els));
                world.circuit.choose_word(cond, &then, &els)
            }
            Expr::Slice(operand, high, low) => {
                if known_width(operand.ty(world.program)).is_none() {
                    return world.circuit.fresh_word((high - low + 1) as usize);
                }
                let word = self.eval(world, operand);
                let no = world.circuit.constant(false);
                (*low..=*high).map(|at| word.get(at as usize).copied().unwrap_or(no)).collect()
            }
            Expr::Concat(high, low) => {
                let mut word = self.eval(world, low);
                word.extend(self.eval(world, high));
                word
            }
            Expr::ZeroExtend(operand, width) => {
                let mut word = self.eval(world, operand);
                word.resize(*width as usize, world.circuit.constant(false));
                word
            }
            Expr::SignExtend(operand, width) => {
                let mut word = self.eval(world, operand);
                let sign = word.last().copied().unwrap_or(world.circuit.constant(false));
                word.resize(*width as usize, sign);
                word
            }
            Expr::BoolToBits(operand) => vec![self.truth(world, operand)],
        }
    }

    /// Does an operation.
    pub(crate) fn op(&mut self, world: &mut World<'_>, op: &Op) {
        match op {
            Op::Inst(inst) => self.inst(world, inst),
            Op::Clear(slot) => {
                let width = known_width(world.program.slots[*slot].ty);
                self.slots[slot.index()] = width.map(|width| world.circuit.number(width as usize, 0).into());
            }
            Op::Argument { dst, table, action, param } => {
                let width = type_width(world.program.slots[*dst].ty) as usize;
                let value = self.found.clone().filter(|found| found.table == *table);
                let value = value
                    .and_then(|found| world.choices.argument(&mut world.circuit, &found, *action, *param));
                let value = value.unwrap_or_else(|| world.circuit.fresh_word(width));
                self.write(world, *dst, Some(value));
            }
            Op::Hit { dst } => {
                let hit = self.found.as_ref().map(|found| found.hit);
                let hit = hit.unwrap_or_else(|| world.circuit.fresh());
                self.write(world, *dst, Some(vec![hit]));
            }
            Op::AtHit { meter, .. } => {
                if let Some(slot) = meter {
                    let hit = self.found.as_ref().map(|found| found.hit);
                    let hit = hit.unwrap_or_else(|| world.circuit.fresh());
                    let old = self.read(world, *slot);
                    let color = color(&mut world.circuit, old.len());
                    let value = world.circuit.choose_word(hit, &color, &old);
                    self.write(world, *slot, Some(value));
                }
            }
            Op::Input { dst, input } => {
                let value = match input {
                    Input::Port => world.arrival.port.clone(),
                    Input::Arrival => world.arrival.arrival.clone(),
                    Input::Now => world.arrival.now.clone(),
                    Input::Length => self.length.to_vec(),
                    Input::LengthNow => world.circuit.fresh_word(32),
                    Input::Out => self.out.to_vec(),
                    Input::Copy => number_of(&mut world.circuit, &self.copy),
                };
                self.write(world, *dst, Some(value));
            }
            Op::Deparse { keep, .. } | Op::FinishEmit { keep, .. } => {
                if !keep {
                    self.valid.fill(world.circuit.constant(false));
                }
                self.is_as_it_came = false;
                self.length = world.circuit.fresh_word(32).into();
                self.cursor = world.circuit.number(32, 0).into();
            }
            Op::Reparse => {
                self.valid.fill(world.circuit.constant(false));
                self.cursor = world.circuit.number(32, 0).into();
            }
            Op::SetOut(expr) => {
                let mut out = self.eval(world, expr);
                out.resize(32, world.circuit.constant(false));
                self.out = out.into();
            }
            Op::StartCopies => (self.to_come, self.copies) = (self.out.clone(), 0),
            Op::NextCopy => self.next_copy(&mut world.circuit),
            Op::DropCopy(_) => {
                let left = self.out.iter().zip(self.copy.iter());
                self.out = left.map(|(port, copy)| world.circuit.and(*port, !*copy)).collect();
            }
            Op::StartSteps => self.steps = 0,
            Op::NoteParsed
            | Op::StartEmit
            | Op::Emit(_)
            | Op::SetError
            | Op::AddSite(_)
            | Op::AddClass(_)
            | Op::AddQueue(_)
            | Op::ForgetSteps
            | Op::AddSteps
            | Op::AssertFailed(_) => {}
        }
    }

    fn inst(&mut self, world: &mut World<'_>, inst: &Inst) {
        match inst {
            Inst::Assign { dst, value } => {
                let width = known_width(world.program.slots[*dst].ty);
                let value = width.map(|_| self.eval(world, value));
                self.write(world, *dst, value);
            }
            Inst::SetValid(header) => {
                let before = self.valid[header.index()];
                for field in &world.program.headers[*header].fields {
                    let kept = &self.slots[field.index()];
                    self.slots[field.index()] = match (kept, world.circuit.known(before)) {
                        (_, Some(false)) => {
                            let width = known_width(world.program.slots[*field].ty);
                            width.map(|width| world.circuit.number(width as usize, 0).into())
                        }
                        (Some(kept), _) => {
                            Some(kept.iter().map(|bit| world.circuit.and(before, *bit)).collect())
                        }
                        (None, _) => None,
                    };
                }
                self.valid[header.index()] = world.circuit.constant(true);
            }
            Inst::SetInvalid(header) => self.valid[header.index()] = world.circuit.constant(false),
            Inst::Meter { dst, .. } | Inst::MeterDirect { dst, .. } => {
                let width = type_width(world.program.slots[*dst].ty) as usize;
                let value = color(&mut world.circuit, width);
                self.write(world, *dst, Some(value));
            }
            Inst::Hash { dst, algorithm, .. } => {
                let width = type_width(world.program.slots[*dst].ty);
                let own = algorithm.width().min(width) as usize;
                let value = world.circuit.fresh_word(own);
                self.write(world, *dst, Some(value));
            }
            Inst::Call { plugin, .. } => {
                if world.program.plugins[*plugin].rewrites {
                    self.is_as_it_came = false;
                    self.length = world.circuit.fresh_word(32).into();
                }
                self.forget(world, inst);
            }
            other => self.forget(world, other),
        }
    }

    /// Nothing is known of what an instruction writes.
    fn forget(&mut self, world: &mut World<'_>, inst: &Inst) {
        if let Some(dst) = inst.dst() {
            let fresh = world.circuit.fresh_word(type_width(world.program.slots[dst].ty) as usize);
            self.write(world, dst, Some(fresh));
        }
    }

    /// Whether a number matches.
    pub(crate) fn matches(world: &mut World<'_>, matcher: &Matcher, keys: &[Word]) -> Lit {
        let circuit = &mut world.circuit;
        let yes = circuit.constant(true);
        let key: &[Lit] = keys.first().map_or(&[], |key| key);
        match matcher {
            Matcher::Any => yes,
            Matcher::Value(value) => {
                let value = circuit.word(value);
                circuit.equal(key, &value)
            }
            Matcher::Mask(value, mask) => {
                let differs: Word = (0..mask.width().min(key.len() as u32))
                    .filter(|at| mask.bit(*at))
                    .map(|at| key[at as usize] ^ value.bit(at))
                    .collect();
                !circuit.any(differs)
            }
            Matcher::Range(low, high) => {
                let (low, high) = (circuit.word(low), circuit.word(high));
                let (under, over) = (circuit.less(key, &low), circuit.less(&high, key));
                circuit.and(!under, !over)
            }
            Matcher::RangeSigned(low, high) => {
                let (low, high) = (circuit.word(low), circuit.word(high));
                let (under, over) = (circuit.less_signed(key, &low), circuit.less_signed(&high, key));
                circuit.and(!under, !over)
            }
            Matcher::ValueSet(_) => circuit.fresh(),
        }
    }
}

/// The width of a type whose values have a fixed one that is told apart.
fn known_width(ty: Type) -> Option<u32> {
    match ty {
        Type::Bool => Some(1),
        Type::Bits(width) if width <= MAX_WIDTH => Some(width),
        Type::Bits(_) | Type::Varbit(_) => None,
    }
}

/// A colour: 0, 1 or 2.
fn color(circuit: &mut Circuit, width: usize) -> Word {
    let mut value = circuit.fresh_word(width.min(2));
    if let [low, high] = value[..] {
        circuit.require(&[!low, !high]);
    }
    value.resize(width, circuit.constant(false));
    value
}

fn binary(circuit: &mut Circuit, op: BinaryOp, a: Word, b: Word) -> Word {
    let no = circuit.constant(false);
    let width = a.len();
    let by_bit = |circuit: &mut Circuit, gate: fn(&mut Circuit, Lit, Lit) -> Lit| -> Word {
        a.iter().zip(&b).map(|(a, b)| gate(circuit, *a, *b)).collect()
    };
    match op {
        BinaryOp::Add => circuit.add(&a, &b, no).0,
        BinaryOp::Sub => circuit.sub(&a, &b).0,
        BinaryOp::Mul => circuit.mul(&a, &b).unwrap_or_else(|| circuit.fresh_word(width)),
        BinaryOp::AddSat => {
            let (sum, carry) = circuit.add(&a, &b, no);
            sum.into_iter().map(|bit| circuit.or(carry, bit)).collect()
        }
        BinaryOp::SubSat => {
            let (difference, no_borrow) = circuit.sub(&a, &b);
            difference.into_iter().map(|bit| circuit.and(no_borrow, bit)).collect()
        }
        BinaryOp::And => by_bit(circuit, Circuit::and),
        BinaryOp::Or => by_bit(circuit, Circuit::or),
        BinaryOp::Xor => by_bit(circuit, Circuit::xor),
        BinaryOp::Shl => circuit.shift(&a, &b, true, no),
        BinaryOp::Shr => circuit.shift(&a, &b, false, no),
        BinaryOp::ShrSigned => {
            let sign = a.last().copied().unwrap_or(no);
            circuit.shift(&a, &b, false, sign)
        }
        BinaryOp::Eq => vec![circuit.equal(&a, &b)],
        BinaryOp::Ne => vec![!circuit.equal(&a, &b)],
        BinaryOp::Lt => vec![circuit.less(&a, &b)],
        BinaryOp::Le => vec![!circuit.less(&b, &a)],
        BinaryOp::LtSigned => vec![circuit.less_signed(&a, &b)],
        BinaryOp::LeSigned => vec![!circuit.less_signed(&b, &a)],
        BinaryOp::BoolAnd | BinaryOp::BoolOr => {
            let (a, b) = (circuit.any(a), circuit.any(b));
            vec![if op == BinaryOp::BoolAnd { circuit.and(a, b) } else { circuit.or(a, b) }]
        }
        BinaryOp::Div | BinaryOp::Mod | BinaryOp::AddSatSigned | BinaryOp::SubSatSigned => {
            circuit.fresh_word(width)
        }
    }
}
/// The number of the only one of 32 bits that is set.
fn number_of(circuit: &mut Circuit, one: &[Lit]) -> Vec<Lit> {
    let none = circuit.constant(false);
    let bit = |circuit: &mut Circuit, bit: usize| {
        circuit
            .any(one.iter().enumerate().filter(|(number, _)| number >> bit & 1 != 0).map(|(_, port)| *port))
    };
    (0..32).map(|number| if number < 5 { bit(circuit, number) } else { none }).collect()
}
