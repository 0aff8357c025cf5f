//! The hardware of a program in simulation: frames go through its stages one after the other.

use crate::hardware::{Hardware, Part};
use crate::model::Sim;
use crate::refusal::{Construct, Refusal};
use crate::simulate::Simulation;
use crate::stage::{Input, Output};
use crate::units::{Objects, varbit};
use millrace_midend::Verdict;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use std::sync::Arc;

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

/// The stages of a program, running.
pub struct Running {
    program: Arc<Program>,
    stages: Vec<(Part, Simulation)>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("program", &self.program.name).finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn new(hardware: Hardware, sim: Sim) -> Result<Running, Refusal> {
        let mut stages = Vec::new();
        for stage in &hardware.stages {
            let simulation = Simulation::new(&hardware, stage, sim)
                .map_err(|why| match sim {
                    Sim::InProcess => Construct::Design(why),
                    Sim::Verilator => Construct::Tool(why),
                })
                .map_err(|construct| Refusal::of(&hardware.program, construct, &stage.part.name()))?;
            stages.push((stage.part, simulation));
        }
        Ok(Running { program: hardware.program, stages })
    }

    /// Runs a stage over a frame.
    ///
    /// # Errors
    /// The program has no such stage, the entries of a table do not fit its unit, or a process that simulates has ended; the frame
    /// then has not been through it.
    pub fn run(&mut self, part: Part, frame: &dyn Frame, objects: &mut Objects<'_>) -> Result<Said, String> {
        let found = self.stages.iter_mut().find(|(other, _)| *other == part);
        let (_, simulation) = found.ok_or_else(|| format!("the program has no {}", part.name()))?;
        let input = |input, width| given(frame, input, width);
        debug_assert!(self.program.slots.iter().all(|(id, slot)| {
            // What is no input was taken for 0.
            slot.home != Home::Metadata
                || simulation.takes(Input::Slot(id))
                || frame.slot(id) == Value::zero(slot.ty)
        }));
        let outputs = simulation.run(frame.bytes(), &input, objects)?;
        Ok(said(&self.program, frame, &outputs))
    }
}

/// An input of a stage, of a frame.
pub(crate) fn given(frame: &dyn Frame, input: Input, width: u32) -> Bits {
    let number = |value: usize| Bits::new(32, value as u128);
    match input {
        Input::Length => number(frame.bytes().len()),
        Input::Cursor => number(frame.cursor()),
        Input::Rest(rest) => rest.of(frame.bytes().get(frame.cursor().div_ceil(8)..).unwrap_or(&[])),
        // What no frame tells, but the objects of the program.
        Input::Now | Input::Parameters(_) => Bits::zero(width),
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
