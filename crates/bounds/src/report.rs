//! The bounds of a program as a report.

use crate::calibration::Calibration;
use crate::cost::Cost;
use crate::search::Frame;
use crate::story::Step;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The numbers of packets of a batch that a report tells of.
pub const BATCHES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Tables and objects, as they are.
    pub tables: u64,
    /// Machine code.
    pub code: u64,
    /// What the packets of a batch keep while code runs over them.
    pub packets: u64,
}

impl Memory {
    /// All of it.
    pub fn total(self) -> u64 {
        self.tables + self.code + self.packets
    }
}

/// A guaranteed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Packets in a batch.
    pub packets: u64,
    /// Packets in a second.
    pub per_second: u64,
}

/// The bounds of one plan.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// For each packet. The dearest packet in instructions need not be the one that touches most lines.
    pub each: Cost,
    /// For each batch.
    pub once: Cost,
    /// For a batch of one packet, all that is done for it: engines look up a single key in a short way.
    pub alone: Cost,
    /// Cache lines of the code's frame, once for a batch.
    pub frame_lines: u64,
    /// Cache lines of the code, once for a batch.
    pub code_lines: u64,
    /// Cache lines of code that is called, once for a batch.
    #[serde(skip)]
    pub called_lines: u64,
    /// Bytes of the code.
    pub code_bytes: u64,
    /// Time for each packet in picoseconds, on a machine that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ps_each: Option<u64>,
    /// Time for a batch of one packet in picoseconds, with the lines of code on its path, without those of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ps_alone: Option<u64>,
    /// The bound of instructions without what conditions exclude.
    pub without_conditions: u64,
    /// Paths that were looked at.
    pub paths: u64,
    /// Whether the dearest path was found. Else the bound is right, but may be too high.
    pub is_tight: bool,
    /// Whether something that is called may allocate memory: its instructions are counted, not proven.
    pub allocates: bool,
    /// What is called, with the most that a call takes.
    pub calls: BTreeMap<String, Cost>,
    /// The dearest path.
    pub steps: Vec<Step>,
    /// Its blocks, by where they start in the code.
    #[serde(skip)]
    pub blocks: Vec<u32>,
    /// What it costs in all regards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_cost: Option<Cost>,
    /// A frame that takes it.
    #[serde(skip)]
    pub frame: Option<Frame>,
    /// Frames that take the dearest paths in other regards: instructions of the code itself, cache lines.
    #[serde(skip)]
    pub other_frames: Vec<Frame>,
    /// Memory.
    pub memory: Memory,
}

impl Part {
    /// The most that a batch of so many packets costs.
    pub fn of_batch(&self, packets: u64) -> Cost {
        let frame = Cost::of_lines(self.frame_lines, 1);
        if packets == 1 {
            return self.alone + frame;
        }
        self.once + frame + self.each * packets
    }

    /// The most that it takes, in picoseconds, code and data all from memory.
    pub fn ps_of_batch(&self, packets: u64, machine: &Calibration) -> Option<u64> {
        if packets == 1 {
            let around = machine.ps(Cost::of_lines(self.frame_lines, 1)).saturating_add(machine.ps_per_batch);
            return Some(around.saturating_add(self.ps_alone?));
        }
        // Packets may take any path, so each line of code is one that a jump leads to.
        let code = Cost::of_code(self.code_lines.saturating_add(self.called_lines), 0);
        let lines = Cost::of_lines(self.frame_lines, 1) + code;
        let once = machine.ps(self.once + lines).saturating_add(machine.ps_per_batch);
        Some(once.saturating_add(self.ps_each?.saturating_mul(packets)))
    }
}

/// The bounds of a program: of one plan for bursts, or of several where packets go one by one.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// The program.
    pub program: String,
    /// Its plans, by name.
    pub parts: Vec<(String, Part)>,
    /// The machine that times hold on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Calibration>,
}

impl Bounds {
    /// The most that a batch of so many packets costs: each may pass all plans.
    pub fn of_batch(&self, packets: u64) -> Cost {
        self.parts.iter().fold(Cost::default(), |sum, (name, part)| {
            // Where packets go one by one each is a batch.
            sum + if name == "burst" { part.of_batch(packets) } else { part.of_batch(1) * packets }
        })
    }

    /// The most that it takes, in nanoseconds, rounded up.
    pub fn ns_of_batch(&self, packets: u64) -> Option<u64> {
        let machine = self.machine.as_ref()?;
        let mut sum = 0u64;
        for (name, part) in &self.parts {
            let (batches, each) = if name == "burst" { (1, packets) } else { (packets, 1) };
            sum = sum.saturating_add(part.ps_of_batch(each, machine)?.saturating_mul(batches));
        }
        Some(sum.div_ceil(1000))
    }

    /// The rate that a batch of so many packets is guaranteed, rounded down.
    pub fn rate(&self, packets: u64) -> Option<Rate> {
        let ns = self.ns_of_batch(packets)?.max(1);
        Some(Rate { packets, per_second: packets.saturating_mul(1_000_000_000) / ns })
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, part) in &self.parts {
            writeln!(f, "{} of {}", name, self.program)?;
            let Part { each, once, .. } = part;
            writeln!(
                f,
                "  each packet  {:>8} instructions  {:>6} cache lines of data",
                each.instructions, each.lines
            )?;
            writeln!(
                f,
                "  each batch   {:>8} instructions  {:>6} cache lines of data",
                once.instructions, once.lines
            )?;
            writeln!(
                f,
                "  one alone    {:>8} instructions  {:>6} cache lines of data",
                part.alone.instructions, part.alone.lines
            )?;
            writeln!(
                f,
                "               {:>8} cache lines of the frame, {} of code",
                part.frame_lines, part.code_lines
            )?;
            if part.is_tight {
                writeln!(
                    f,
                    "  the dearest path ({} looked at; without conditions {} instructions):",
                    part.paths, part.without_conditions
                )?;
                part.steps.iter().try_for_each(|step| writeln!(f, "    {step}"))?;
            } else {
                writeln!(
                    f,
                    "  the dearest path was not found among {} that were looked at: the bound is right, but may be too high",
                    part.paths
                )?;
            }
            for (callee, cost) in &part.calls {
                writeln!(
                    f,
                    "  calls {callee}: at most {} instructions, {} cache lines",
                    cost.instructions, cost.lines
                )?;
            }
            if part.allocates {
                writeln!(
                    f,
                    "  what is called may allocate memory: its instructions are counted, not proven"
                )?;
            }
            let Memory { tables, code, packets } = part.memory;
            writeln!(
                f,
                "  memory       {:>8} bytes: tables and objects {tables}, code {code}, a batch {packets}",
                part.memory.total()
            )?;
        }
        writeln!(
            f,
            "packets  instructions  cache lines{}",
            if self.machine.is_some() { "          ns   packets/s" } else { "" }
        )?;
        for packets in BATCHES {
            let cost = self.of_batch(packets);
            write!(f, "{packets:>7}  {:>12}  {:>11}", cost.instructions, cost.lines)?;
            if let (Some(ns), Some(rate)) = (self.ns_of_batch(packets), self.rate(packets)) {
                write!(f, "  {ns:>10}  {:>10}", rate.per_second)?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "Holds for every packet, with the tables as they are; what the code calls counts by contracts (docs/bounds.md)."
        )?;
        match &self.machine {
            Some(machine) => writeln!(
                f,
                "Times hold on this machine ({}) as it was measured, from cold caches, while nothing interrupts the thread.",
                machine.processor
            ),
            None => writeln!(f, "For times give the file that `millrace calibrate` makes on the machine."),
        }
    }
}
