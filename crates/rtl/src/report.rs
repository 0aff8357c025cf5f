//! What the hardware of a program is like, in numbers.

use crate::target::Target;
use millrace_printable::counted;
use std::fmt;

/// About the hardware of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The program.
    pub program: String,
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// What it is for.
    pub target: Target,
    /// Its stages.
    pub stages: Vec<StageReport>,
    /// The units of its tables.
    pub tables: Vec<TableReport>,
    /// The units of its objects.
    pub objects: Vec<ObjectReport>,
    /// Objects that have no unit: their ports are ports of the stages.
    pub outside: Vec<OutsideReport>,
}

/// About the unit of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReport {
    /// The object.
    pub object: String,
    /// The stage that has the unit.
    pub stage: String,
    /// What it is.
    pub kind: &'static str,
    /// The words that software reads or writes, and their bits.
    pub words: u64,
    /// Bits of a word.
    pub word_bits: u32,
    /// Bits of memory, or of registers where members are compared.
    pub storage_bits: u64,
    /// Accesses of the program, and the ports that they share.
    pub accesses: usize,
    /// Ports.
    pub ports: usize,
    /// The fewest cycles from one frame to the next for its sake.
    pub interval: u32,
    /// Cycles that a write of software waits at most.
    pub wait: u32,
}

/// About an object without a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideReport {
    /// The object.
    pub object: String,
    /// The stages that ask it.
    pub stages: Vec<String>,
    /// Why it has none, with the limit that it exceeds.
    pub why: String,
    /// It has no cells: there is nothing to keep.
    pub is_empty: bool,
}

/// About the unit of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub table: String,
    /// How it finds an entry.
    pub kind: &'static str,
    /// Bits of the key.
    pub key_bits: u32,
    /// Entries that the program declares it with.
    pub declared: u64,
    /// Entries that the unit holds.
    pub capacity: u64,
    /// Bits of memory, or of registers where entries are compared.
    pub storage_bits: u64,
}

/// Bytes of the shortest frame of Ethernet.
pub(crate) const SHORTEST: u32 = 64;
/// Bits of a link that it takes, with preamble and gap.
pub(crate) const SHORTEST_ON_LINK: u64 = (SHORTEST as u64 + 20) * 8;

/// Frames a second of 64 bytes each, with preamble and gap, at 64 bits in each cycle of so many picoseconds.
pub fn line_rate(period_ps: u32) -> u64 {
    64_000_000_000_000 / (SHORTEST_ON_LINK * u64::from(period_ps.max(1)))
}

/// Frames a second that an interval allows.
pub(crate) fn frames(period_ps: u32, interval: u32) -> u64 {
    1_000_000_000_000 / (u64::from(period_ps.max(1)) * u64::from(interval.max(1)))
}

/// About the pipeline of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The name of its module.
    pub name: String,
    /// Cycles from a frame to what is said of it: the same for all frames.
    pub latency: u32,
    /// The fewest cycles from one frame to the next, such that each sees what the one before has written to registers.
    pub interval: u32,
    /// Picoseconds that its slowest cycle takes, by the estimates of the target; more than the cycle has if one operation does.
    pub longest_ps: u32,
    /// Bytes of a frame that it sees.
    pub window: u32,
    /// Values that are computed.
    pub values: usize,
    /// Bits of registers.
    pub registers: u64,
    /// Blocks of the program that it came from, with loops repeated.
    pub blocks: usize,
    /// Accesses to tables and objects.
    pub accesses: Vec<AccessReport>,
    /// When it is known whether a frame gets to the parts of the program, in their order.
    pub starts: Vec<StartReport>,
}

/// When it is known whether a frame gets to a parser, a state of it, a control or a deparser. States of a loop are there as often as the
/// loop is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartReport {
    /// The parser, control or deparser.
    pub body: String,
    /// The state; none: the start of all of it.
    pub state: Option<String>,
    /// The cycle.
    pub cycle: u32,
}

/// About an access to a table or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// What is done.
    pub kind: &'static str,
    /// The table or object.
    pub object: String,
    /// The cycle of the stage in which it is asked for.
    pub cycle: u32,
    /// Cycles until the answer.
    pub latency: u32,
    /// Bits of the request.
    pub asked_bits: u32,
    /// Bits of the answer.
    pub answered_bits: u32,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megahertz = 1e6 / f64::from(self.period_ps.max(1));
        writeln!(
            f,
            "{}: a pipeline for each stage, for {megahertz:.2} MHz, {}",
            self.program,
            self.target.about()
        )?;
        for stage in &self.stages {
            let ns = f64::from(stage.latency) * f64::from(self.period_ps) / 1e3;
            writeln!(f, "\n{}", stage.name)?;
            writeln!(f, "  latency     {} ({ns:.1} ns)", counted(stage.latency, "cycle"))?;
            let millions = frames(self.period_ps, stage.interval) as f64 / 1e6;
            writeln!(
                f,
                "  interval    {} between frames ({millions:.2} million frames a second)",
                counted(stage.interval, "cycle")
            )?;
            let ns = f64::from(stage.longest_ps) / 1e3;
            let late = if stage.longest_ps > self.period_ps { ", longer than the cycle" } else { "" };
            writeln!(f, "  operations  {ns:.1} ns in the slowest cycle, by estimate{late}")?;
            writeln!(f, "  window      {} of a frame", counted(stage.window, "byte"))?;
            writeln!(f, "  values      {}, from {}", stage.values, counted(stage.blocks, "block"))?;
            writeln!(f, "  registers   {}", counted(stage.registers, "bit"))?;
            for access in &stage.accesses {
                let AccessReport { kind, object, cycle, latency, asked_bits, answered_bits } = access;
                writeln!(
                    f,
                    "  cycle {cycle:>4}  {kind} {object}: {}, answer {} after {latency}",
                    counted(*asked_bits, "bit"),
                    counted(*answered_bits, "bit")
                )?;
            }
        }
        if !self.tables.is_empty() {
            writeln!(f, "\ntables")?;
        }
        for TableReport { table, kind, key_bits, declared, capacity, storage_bits } in &self.tables {
            let less = if capacity < declared { ", fewer than the program declares" } else { "" };
            writeln!(
                f,
                "  {table}: {kind}, key {}, {capacity} of {}{less}, {}",
                counted(*key_bits, "bit"),
                match declared {
                    1 => "1 entry".to_owned(),
                    many => format!("{many} entries"),
                },
                counted(*storage_bits, "bit")
            )?;
        }
        if !self.objects.is_empty() {
            writeln!(f, "\nobjects")?;
        }
        for object in &self.objects {
            let millions = frames(self.period_ps, object.interval) as f64 / 1e6;
            let ObjectReport {
                object,
                stage,
                kind,
                words,
                word_bits,
                storage_bits,
                accesses,
                ports,
                interval,
                wait,
            } = object;
            writeln!(
                f,
                "  {object}: {kind} of {stage}, {} of {}, {}, {} at {}, interval {interval} ({millions:.2} million frames a second), \
                 writes of software wait {} at most",
                counted(*words, "word"),
                counted(*word_bits, "bit"),
                counted(*storage_bits, "bit"),
                match accesses {
                    1 => "1 access".to_owned(),
                    many => format!("{many} accesses"),
                },
                counted(*ports, "port"),
                counted(*wait, "cycle")
            )?;
        }
        if !self.outside.is_empty() {
            writeln!(f, "\nobjects without a unit, whose ports are ports of the stages")?;
        }
        for OutsideReport { object, stages, why, .. } in &self.outside {
            writeln!(f, "  {object}, asked by {}: {why}", stages.join(" and "))?;
        }
        Ok(())
    }
}
