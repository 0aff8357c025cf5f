//! What the hardware of a program is like, in numbers.

use std::fmt;

/// About the hardware of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The program.
    pub program: String,
    /// The length of a cycle in picoseconds.
    pub period_ps: u32,
    /// Its stages.
    pub stages: Vec<StageReport>,
    /// The units of its tables.
    pub tables: Vec<TableReport>,
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

/// About the pipeline of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageReport {
    /// The name of its module.
    pub name: String,
    /// Cycles from a frame to what is said of it: the same for all frames.
    pub latency: u32,
    /// The fewest cycles from one frame to the next, such that each sees what the one before has written to registers.
    pub interval: u32,
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
        writeln!(f, "{}: a pipeline for each stage, for {megahertz:.2} MHz", self.program)?;
        for stage in &self.stages {
            let ns = f64::from(stage.latency) * f64::from(self.period_ps) / 1e3;
            writeln!(f, "\n{}", stage.name)?;
            writeln!(f, "  latency     {} cycles ({ns:.1} ns)", stage.latency)?;
            writeln!(f, "  interval    {} (cycles between frames)", stage.interval)?;
            writeln!(f, "  window      {} bytes of a frame", stage.window)?;
            writeln!(f, "  values      {}, from {} blocks", stage.values, stage.blocks)?;
            writeln!(f, "  registers   {} bits", stage.registers)?;
            for access in &stage.accesses {
                let AccessReport { kind, object, cycle, latency, asked_bits, answered_bits } = access;
                writeln!(
                    f,
                    "  cycle {cycle:>4}  {kind} {object}: {asked_bits} bits, answer {answered_bits} bits after {latency}"
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
                "  {table}: {kind}, key {key_bits} bits, {capacity} of {declared} entries{less}, {storage_bits} bits"
            )?;
        }
        Ok(())
    }
}
