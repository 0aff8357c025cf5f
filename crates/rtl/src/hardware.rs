//! The hardware of a program: a pipeline for each stage.

use crate::convert::convert;
use crate::emit::emit;
use crate::refusal::{Construct, Refusal};
use crate::schedule::schedule;
use crate::simulate::Simulation;
use crate::stage::{Dataflow, Input, Output};
use crate::units::{Objects, varbit};
use millrace_midend::cfg::flatten;
use millrace_midend::order::may_set;
use millrace_midend::{Cancel, Meter, Plan, Step, Verdict};
use millrace_netlist::Design;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A part of a program that runs without the traffic manager in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ingress.
    Ingress,
    /// Ingress up to its first parser: for clones, which are parsed again.
    Parser,
    /// Egress, up to a clone before a deparser.
    Egress,
    /// The rest of egress after a clone before its deparser of that number, counted from 0.
    Tail(u32),
}

impl Part {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Ingress => "ingress",
            Part::Parser => "parser",
            Part::Egress => "egress",
            Part::Tail(_) => "tail",
        }
    }
}

/// The length of a cycle in picoseconds: 156.25 MHz, at which 64 bits a cycle are 10 Gbit/s.
pub const PERIOD: u32 = 6400;

/// A frame that comes to a stage, with what is known about it.
pub trait Frame {
    /// Its bytes.
    fn bytes(&self) -> &[u8];
    /// The value of a slot.
    fn slot(&self, slot: SlotId) -> Value;
    /// Whether a header is valid.
    fn is_valid(&self, header: HeaderId) -> bool;
    /// The cursor of the parser, in bits.
    fn cursor(&self) -> usize;
}

/// What a stage said about a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// How it ended.
    pub verdict: Verdict,
    /// The parser's error, or the number of the deparser.
    pub number: u32,
    /// Where the program asked for a drop.
    pub drop_site: u16,
    /// Headers and whether they are valid.
    pub valid: Vec<(HeaderId, bool)>,
    /// Slots and their values.
    pub slots: Vec<(SlotId, Value)>,
    /// The cursor of the parser, in bits.
    pub cursor: usize,
    /// The bits of valid headers after the parser.
    pub parsed_bits: u64,
    /// The frame as it was put together, where it was.
    pub bytes: Option<Vec<u8>>,
}

/// The hardware of a program.
pub struct Hardware {
    program: Arc<Program>,
    stages: Vec<Stage>,
}

/// The pipeline of a part.
struct Stage {
    part: Part,
    simulation: Simulation,
}

impl std::fmt::Debug for Hardware {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hardware").field("program", &self.program.name).finish_non_exhaustive()
    }
}

impl Hardware {
    /// The hardware of a verified program.
    ///
    /// # Errors
    /// What hardware cannot do of it.
    pub fn new(program: Arc<Program>) -> Result<Hardware, Refusal> {
        let mut stages = Vec::new();
        for part in parts_of(&program) {
            let refused = |construct| Refusal::of(&program, construct, part.name());
            let dataflow = dataflow(&program, part)?;
            let placed = schedule(&dataflow, PERIOD).map_err(refused)?;
            let (module, ports) = emit(&program, part.name(), &dataflow, &placed);
            let mut design = Design::new();
            design.add(module);
            let simulation = Simulation::new(&design, &ports, &dataflow, &placed)
                .map_err(|why| refused(Construct::Design(why)))?;
            stages.push(Stage { part, simulation });
        }
        Ok(Hardware { program, stages })
    }

    /// Runs a stage over a frame. None: the program has no such stage.
    pub fn run(&mut self, part: Part, frame: &dyn Frame, objects: &mut Objects<'_>) -> Option<Said> {
        let stage = self.stages.iter_mut().find(|stage| stage.part == part)?;
        let input = |input, width| given(frame, input, width);
        let outputs = stage.simulation.run(frame.bytes(), &input, objects);
        Some(said(&self.program, frame, &outputs))
    }
}

/// The parts that frames of a program may come to.
fn parts_of(program: &Program) -> Vec<Part> {
    let clones = may_set(program, Intrinsic::Clone);
    let mut parts = vec![Part::Ingress];
    if clones && !program.deparse_at_ingress {
        parts.push(Part::Parser);
    }
    parts.push(Part::Egress);
    if clones && !program.deparse_at_ingress {
        let deparsers = program.egress.iter().filter(|body| program.bodies[**body].kind == BodyKind::Deparser);
        parts.extend((0..deparsers.count() as u32).map(Part::Tail));
    }
    parts
}

fn dataflow(program: &Program, part: Part) -> Result<Dataflow, Refusal> {
    let mut plan = match part {
        Part::Ingress => Plan::ingress(program),
        Part::Parser => Plan::parser(program),
        Part::Egress => Plan::egress(program),
        Part::Tail(nth) => Plan::tail(program, nth),
    };
    // What becomes of the frame after egress is the traffic manager's.
    for step in &mut plan.steps {
        if let Step::Transmit { .. } = step {
            *step = Step::Stop;
        }
    }
    let cancel = Cancel::default();
    let cfg = flatten(program, &plan, &Meter::new(&cancel))
        .map_err(|refusal| Refusal::of(program, Construct::Midend(refusal.to_string()), plan.name))?;
    let kept = Kept::of(program, part);
    convert(program, &cfg, plan.start, &|slot| !kept.may_be_set(slot))
}

/// The metadata that may be other than 0 at the start of a stage.
struct Kept(FxHashSet<SlotId>);

impl Kept {
    /// Before ingress: what the switch tells, and what a pass before may have kept. Before egress also what ingress may write.
    fn of(program: &Program, part: Part) -> Kept {
        let told = Intrinsic::ALL.iter().filter_map(|role| program.intrinsics.get(*role));
        let mut kept: FxHashSet<SlotId> =
            told.chain(program.field_lists.iter().flat_map(|list| list.slots.iter().copied())).collect();
        let bodies: Vec<BodyId> = match part {
            Part::Ingress | Part::Parser => Vec::new(),
            Part::Egress => program.ingress.clone(),
            Part::Tail(_) => program.ingress.iter().chain(&program.egress).copied().collect(),
        };
        if !bodies.is_empty() {
            kept.extend(program.actions.values().flat_map(|action| action.params.iter().copied()));
            kept.extend(program.tables.values().filter_map(|table| table.direct_meter.as_ref()?.at_hit));
            let of_actions = program.actions.values().map(|action| action.body);
            for body in bodies.into_iter().chain(of_actions) {
                for block in program.bodies[body].blocks.values() {
                    kept.extend(block.insts.iter().filter_map(Inst::dst));
                    if let Terminator::Apply { hit, action, .. } = &block.term {
                        kept.extend(hit.iter().chain(action).copied());
                    }
                }
            }
        }
        Kept(kept)
    }

    fn may_be_set(&self, slot: SlotId) -> bool {
        self.0.contains(&slot)
    }
}

/// An input of a stage, of a frame.
fn given(frame: &dyn Frame, input: Input, width: u32) -> Bits {
    let number = |value: usize| Bits::new(32, value as u128);
    match input {
        Input::Length => number(frame.bytes().len()),
        Input::Cursor => number(frame.cursor()),
        Input::Valid(header) => Bits::new(1, u128::from(frame.is_valid(header))),
        Input::SlotLength(slot) => match frame.slot(slot) {
            Value::Varbit(varbit) => number(varbit.len() as usize),
            _ => number(0),
        },
        Input::Slot(slot) => match frame.slot(slot) {
            Value::Varbit(varbit) => match varbit.bits() {
                Some(bits) if bits.width() < width => bits.concat(&Bits::zero(width - bits.width())),
                Some(bits) => bits.clone(),
                None => Bits::zero(width),
            },
            value => value.as_bits().zero_extend(width),
        },
    }
}

/// What the outputs of a stage say.
fn said(program: &Program, frame: &dyn Frame, outputs: &[(Output, Bits)]) -> Said {
    let mut said = Said {
        verdict: Verdict::StepLimit,
        number: 0,
        drop_site: 0,
        valid: Vec::new(),
        slots: Vec::new(),
        cursor: frame.cursor(),
        parsed_bits: 0,
        bytes: None,
    };
    let (mut deparsed, mut emitted, mut emitted_bits, mut payload) = (false, Bits::zero(8), 0, 0);
    let mut lengths = Vec::new();
    for (output, bits) in outputs {
        let number = bits.to_u64_saturating();
        match output {
            Output::Verdict => said.verdict = Output::verdict(number),
            Output::Number => said.number = number as u32,
            Output::DropSite => said.drop_site = number as u16,
            Output::Slot(slot) => {
                let value = match program.slots[*slot].ty {
                    Type::Bool => Value::Bool(!bits.is_zero()),
                    // The bits of a varbit, until its length is known.
                    Type::Bits(_) | Type::Varbit(_) => Value::Bits(bits.clone()),
                };
                said.slots.push((*slot, value));
            }
            Output::SlotLength(slot) => lengths.push((*slot, number)),
            Output::Valid(header) => said.valid.push((*header, number != 0)),
            Output::Cursor => said.cursor = number as usize,
            Output::ParsedBits => said.parsed_bits = number,
            Output::Deparsed => deparsed = number != 0,
            Output::Emitted => emitted = bits.clone(),
            Output::EmittedLength => emitted_bits = number as u32,
            Output::PayloadFrom => payload = number as usize,
        }
    }
    for (slot, value) in &mut said.slots {
        if let (Type::Varbit(_), Value::Bits(bits)) = (program.slots[*slot].ty, &*value) {
            let length = lengths.iter().find(|(other, _)| other == slot).map_or(0, |(_, length)| *length);
            *value = varbit(bits, length);
        }
    }
    if deparsed {
        said.bytes = Some(put_together(&emitted, emitted_bits, frame.bytes(), payload));
    }
    said
}

/// The new headers, then the frame from a bit on, filled up to whole bytes.
fn put_together(emitted: &Bits, emitted_bits: u32, frame: &[u8], payload: usize) -> Vec<u8> {
    let mut writer = bits::BitWriter::new();
    let width = emitted.width();
    if let Some(low) = width.checked_sub(emitted_bits).filter(|_| emitted_bits > 0) {
        writer.push(&emitted.slice(width - 1, low));
    }
    let whole = payload.div_ceil(8);
    let partial = (whole * 8 - payload) as u32;
    if partial > 0
        && let Some(bits) = Bits::read_at(frame, payload, partial)
    {
        writer.push(&bits);
    }
    writer.push_bytes(frame.get(whole..).unwrap_or(&[]));
    writer.finish()
}
