//! A stage as hardware computes it: one graph of values, what goes in and out, and the accesses to tables and objects.

use crate::graph::{Graph, Wire};
use crate::objects::RANDOM_LATENCY;
use millrace_midend::Verdict;
use millrace_pipeline::{
    Bits, CounterId, CrcParameters, CrcWidth, DigestId, HashAlgorithm, HashId, HeaderId, MeterId, RegisterId,
    SlotId, TableId, Type, ValueSetId,
};
use std::sync::Arc;

/// A stage whose branches are gone: every value is there for every frame, and chosen where paths of the program meet.
pub(crate) struct Dataflow {
    pub(crate) graph: Graph,
    /// What goes in, by the number of [`crate::graph::Node::Input`].
    pub(crate) inputs: Vec<(Input, u32)>,
    /// Accesses to tables and objects, in the order of the program.
    pub(crate) accesses: Vec<Access>,
    /// What comes out.
    pub(crate) outputs: Vec<(Output, Wire)>,
    /// Blocks of the program with loops repeated.
    pub(crate) blocks: usize,
    /// Where its parts start.
    pub(crate) starts: Vec<Start>,
}

/// Where a parser, a state of it, a control or a deparser starts.
pub(crate) struct Start {
    pub(crate) body: String,
    pub(crate) state: Option<String>,
    /// Whether a frame gets there.
    pub(crate) enable: Wire,
}

impl Dataflow {
    /// The value of an output, if the stage says it.
    pub(crate) fn output(&self, output: Output) -> Option<Wire> {
        self.outputs.iter().find(|(of, _)| *of == output).map(|(_, wire)| *wire)
    }
}

/// What the hardware of a stage is given with a frame, but for the frame itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The bytes of the frame: 32 bits.
    Length,
    /// A slot; of a varbit its bits, the first one highest, with zeros after the last.
    Slot(SlotId),
    /// The length of a varbit: 32 bits.
    SlotLength(SlotId),
    /// Whether a header is valid.
    Valid(HeaderId),
    /// The cursor of the parser, in bits: 32 bits.
    Cursor,
    /// The time for which meters color it, in nanoseconds: 64 bits.
    Now,
    /// Of the bytes of the frame that come after the cursor it starts with; of all, where the stage parses the frame.
    Rest(Rest),
    /// The parameters of a hash, the lowest first: polynomial, initial and final value, each as wide as the hash; whether the bits of the
    /// data, and of the remainder, are turned round.
    Parameters(HashId),
}

/// What a receiver adds up of the bytes of a frame while they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rest {
    /// The sum of the bytes at even places, then of those at odd ones: 32 bits each.
    Sum,
    /// Their exclusive or: 8 bits each.
    Xor,
    /// The remainder of a CRC that starts from 0 and ends without a change.
    Crc(HashAlgorithm),
}

impl Rest {
    /// Its bits.
    pub fn width(self) -> u32 {
        match self {
            Rest::Sum => 64,
            Rest::Xor => 16,
            Rest::Crc(algorithm) => algorithm.width(),
        }
    }

    /// That of some bytes.
    pub fn of(self, bytes: &[u8]) -> Bits {
        let side = |odd: usize| bytes.iter().skip(odd).step_by(2).copied();
        match self {
            Rest::Sum => {
                let sum = |odd| Bits::new(32, side(odd).map(u128::from).sum());
                sum(0).concat(&sum(1))
            }
            Rest::Xor => {
                let xor = |odd| Bits::new(8, side(odd).fold(0, |all, byte| all ^ u128::from(byte)));
                xor(0).concat(&xor(1))
            }
            Rest::Crc(algorithm) => {
                let changed = algorithm.compute(bytes) ^ algorithm.compute(&vec![0; bytes.len()]);
                Bits::new(algorithm.width(), u128::from(changed))
            }
        }
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Rest::Sum => "sum",
            Rest::Xor => "xor",
            Rest::Crc(HashAlgorithm::Crc32) => "crc32",
            Rest::Crc(HashAlgorithm::Crc16) => "crc16",
            Rest::Crc(_) => "crc_ccitt",
        }
    }
}

/// What the hardware of a stage says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// The [`Verdict`]: 4 bits.
    Verdict,
    /// The parser's error or the number of the deparser: 32 bits.
    Number,
    /// Where the program asked for a drop: 16 bits.
    DropSite,
    /// As of [`Input::Slot`].
    Slot(SlotId),
    /// As of [`Input::SlotLength`].
    SlotLength(SlotId),
    /// As of [`Input::Valid`].
    Valid(HeaderId),
    /// The cursor after the stage.
    Cursor,
    /// Bits of valid headers after the parser: 32 bits.
    ParsedBits,
    /// Whether the frame was put together again.
    Deparsed,
    /// The new headers, the first bit highest.
    Emitted,
    /// Their length in bits: 32 bits.
    EmittedLength,
    /// The bit of the old frame that comes after them: 32 bits.
    PayloadFrom,
}

/// A table or object, and what is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Looks up a table: its keys, then the hash of its action selector. [`LookupAnswer`] says what it answers.
    Lookup(TableId),
    /// Asks whether keys are a member of a value set: 1 bit.
    Member(ValueSetId),
    /// Notes that a frame has hit an entry of a table whose entries have idle timeouts: entry.
    Hit(TableId),
    /// Counts: index, bytes.
    Count(CounterId),
    /// Counts in an entry: entry, bytes.
    CountDirect(TableId),
    /// Meters: index, bytes, color, time; answers with 8 bits.
    Meter(MeterId),
    /// Meters in an entry: entry, bytes, color, time; answers with 8 bits.
    MeterDirect(TableId),
    /// Reads a register: index.
    RegisterRead(RegisterId),
    /// Writes a register: index, value.
    RegisterWrite(RegisterId),
    /// Draws a number: lowest, highest.
    Random,
    /// Sends a message: its values.
    Digest(DigestId),
    /// Sends a line: its values.
    Log(Arc<str>),
}

/// One access, at most one for a frame.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) unit: Unit,
    /// Whether the frame makes it.
    pub(crate) enable: Wire,
    /// What it is made with. A varbit has its length above its bits.
    pub(crate) inputs: Vec<(Wire, Type)>,
    /// The bits of the answer; 0: none.
    pub(crate) answer: u32,
    /// Cycles from the request to the answer, registers of the unit included.
    pub(crate) latency: u32,
}

/// Where things are in the answer of a table, from its lowest bit on.
pub struct LookupAnswer;

impl LookupAnswer {
    /// Whether an entry matched.
    pub const HIT: u32 = 0;
    /// The index of the action, 16 bits.
    pub const ACTION: u32 = 1;
    /// The entry, 32 bits; 0 at a miss.
    pub const ENTRY: u32 = 17;
    /// The action data, one parameter after the other, the first one lowest.
    pub const DATA: u32 = 49;
}

/// The bits of the parameters of a CRC of so many bits.
pub(crate) fn parameters_width(width: u32) -> u32 {
    3 * width + 2
}

/// The parameters of a CRC as a word: polynomial lowest, start, what is added in the end, whether the bits of bytes are turned round,
/// and those of the result.
pub(crate) fn crc_parameters(of: CrcParameters) -> Bits {
    let width = match of.width {
        CrcWidth::Sixteen => 16,
        CrcWidth::ThirtyTwo => 32,
    };
    let number = |value: u32| Bits::new(width, value.into());
    let bit = |value: bool| Bits::new(1, value.into());
    let numbers = number(of.final_xor).concat(&number(of.initial)).concat(&number(of.polynomial));
    bit(of.remainder_reflected).concat(&bit(of.data_reflected)).concat(&numbers)
}

/// The bits of the length of a varbit next to the bits of the varbit.
pub(crate) const LENGTH_BITS: u32 = 32;

/// The bits of an access's input of that type.
pub(crate) fn input_width(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) => width,
        Type::Varbit(width) => width + LENGTH_BITS,
    }
}

impl Output {
    /// The verdict that an output stands for.
    pub(crate) fn verdict(number: u64) -> Verdict {
        u32::try_from(number).ok().and_then(Verdict::from_number).unwrap_or(Verdict::StepLimit)
    }
}

impl Unit {
    /// A word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Unit::Lookup(_) => "table",
            Unit::Member(_) => "value_set",
            Unit::Hit(_) => "hit",
            Unit::Count(_) | Unit::CountDirect(_) => "count",
            Unit::Meter(_) | Unit::MeterDirect(_) => "meter",
            Unit::RegisterRead(_) => "read",
            Unit::RegisterWrite(_) => "write",
            Unit::Random => "random",
            Unit::Digest(_) => "digest",
            Unit::Log(_) => "log",
        }
    }

    /// The cycles from a request to its answer where no unit of hardware says another number.
    pub fn latency(&self) -> u32 {
        match self {
            Unit::Lookup(_) | Unit::Member(_) => 3,
            Unit::RegisterRead(_) => 2,
            Unit::Meter(_) | Unit::MeterDirect(_) => METER_LATENCY,
            Unit::Random => RANDOM_LATENCY,
            Unit::Hit(_)
            | Unit::Count(_)
            | Unit::CountDirect(_)
            | Unit::RegisterWrite(_)
            | Unit::Digest(_)
            | Unit::Log(_) => 1,
        }
    }

    /// Whether it has an answer.
    pub(crate) fn answers(&self) -> bool {
        match self {
            Unit::Lookup(_) | Unit::Member(_) | Unit::Random => true,
            Unit::Meter(_) | Unit::MeterDirect(_) | Unit::RegisterRead(_) => true,
            Unit::Hit(_) | Unit::Count(_) | Unit::CountDirect(_) => false,
            Unit::RegisterWrite(_) | Unit::Digest(_) | Unit::Log(_) => false,
        }
    }

    /// The object that it is an access to; accesses to one object happen in the order of the program.
    pub(crate) fn object(&self) -> ObjectKey {
        match self {
            Unit::Lookup(table) => ObjectKey::Table(*table),
            Unit::Member(set) => ObjectKey::ValueSet(*set),
            Unit::Hit(table) => ObjectKey::Hits(*table),
            Unit::Count(counter) => ObjectKey::Counter(*counter),
            Unit::CountDirect(table) => ObjectKey::DirectCounter(*table),
            Unit::Meter(meter) => ObjectKey::Meter(*meter),
            Unit::MeterDirect(table) => ObjectKey::DirectMeter(*table),
            Unit::RegisterRead(register) | Unit::RegisterWrite(register) => ObjectKey::Register(*register),
            Unit::Random => ObjectKey::Random,
            Unit::Digest(_) | Unit::Log(_) => ObjectKey::Messages,
        }
    }

    /// The cycles from a request to the next one of the same frame to the same object.
    pub(crate) fn apart(&self, next: &Unit) -> u32 {
        match (self, next) {
            // Copies that nothing here writes.
            (Unit::Lookup(_) | Unit::Member(_) | Unit::RegisterRead(_), Unit::RegisterRead(_))
            | (Unit::Lookup(_) | Unit::Member(_), _)
            | (Unit::RegisterWrite(_), Unit::RegisterRead(_)) => 0,
            // An answer has all that was written before the cycle in which it comes.
            (Unit::RegisterRead(_), _) => self.latency(),
            (Unit::Meter(_) | Unit::MeterDirect(_), _) => METER_INTERVAL,
            _ => 1,
        }
    }
}

/// An object, or what stands for several that share a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectKey {
    Table(TableId),
    ValueSet(ValueSetId),
    /// Which entries of a table were hit.
    Hits(TableId),
    Counter(CounterId),
    DirectCounter(TableId),
    Meter(MeterId),
    DirectMeter(TableId),
    Register(RegisterId),
    /// The generator of random numbers.
    Random,
    /// Digests and lines.
    Messages,
    /// The parameters of a hash.
    Hash(HashId),
}

/// The cycles from a request to a meter to its answer.
pub(crate) const METER_LATENCY: u32 = 7;
/// The cycles from a request to a meter to the next that may be to the same cell.
pub(crate) const METER_INTERVAL: u32 = 2;
