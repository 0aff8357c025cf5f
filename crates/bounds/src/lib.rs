//! What a packet costs at most in a compiled program: instructions, cache lines, memory and time.
//!
//! ```text
//! midend::machine::MachineCode  what a code generator tells: bytes, blocks, for which node each instruction was made
//!   decode      bytes as instructions: where they lead, what they touch
//!   graph       blocks and loops
//!   addresses   which addresses are a known distance apart; levels: which accesses wait for one another
//!   touched     the lines of blocks that were not touched before
//!   machine     the loop over packets without its way back; cost of blocks and of what they call (contracts)
//!   way         where packets can go, in the code and in the program at once
//!   circuit     numbers as literals of a SAT solver
//!   packet      a packet on its way: its slots as bits of what came in; choice: what lookups give
//!   search      the dearest path whose conditions do not exclude each other, and a frame that takes it
//! ```
//!
//! [`analyse`] promises: no packet makes the code execute more instructions, or touch more cache lines of data, than it says,
//! for the tables as they are. What it takes for granted is written in docs/dev/program-bounds.md. It never runs code, depends on no code
//! generator, and gives an error with its place where there is no bound ([`NoBound`]).

mod addresses;
mod calibration;
mod choice;
mod circuit;
mod contracts;
mod copies;
mod cost;
mod decode;
mod error;
mod graph;
mod knowledge;
mod levels;
mod machine;
mod packet;
mod report;
mod search;
mod story;
mod touched;
mod way;

pub use calibration::{Calibration, CalibrationError};
pub use contracts::Contract;
pub use cost::Cost;
pub use error::NoBound;
pub use knowledge::Knowledge;
pub use report::{BATCHES, Bounds, Memory, Part, Rate};
pub use search::Frame;
pub use story::Step;

use contracts::contract;
use machine::{Batch, Blocks, Machine};
use millrace_midend::Start;
use millrace_midend::machine::{Callee, Does, MachineCode};
use millrace_pipeline::Program;
use search::{Effort, Search, Worst};
use std::cell::Cell;

/// A plan of a program, and the code that it was compiled to.
pub struct Input<'a> {
    /// The program as it was compiled.
    pub program: &'a Program,
    /// Its code.
    pub code: &'a MachineCode,
    /// Where packets come from.
    pub start: Start,
    /// The longest frame, in bytes.
    pub longest: u64,
}

/// Bounds what a packet costs in a plan.
///
/// # Errors
/// There is no bound, with the place.
pub fn analyse(
    input: &Input<'_>,
    knowledge: &Knowledge,
    calibration: Option<&Calibration>,
) -> Result<Part, NoBound> {
    let Input { program, code, start, longest } = *input;
    let effort = Cell::new(Effort::FULL);
    let search = |machine: &Machine<'_>, weight: &dyn Fn(Cost) -> u64| -> Result<Worst, NoBound> {
        let found = Search::new(program, machine, knowledge, longest, weight).run(start, effort.get())?;
        if found.way.is_none() {
            effort.set(Effort::LITTLE);
        }
        Ok(found)
    };
    // The code of a batch counts once and whole: its packets may take all paths. That of one packet is the code of its path.
    let ps = calibration.map(|calibration| |cost: Cost| calibration.ps(cost));
    let ps_of_batch = calibration.map(|calibration| |cost: Cost| calibration.ps(cost.without_code()));
    let blocks = Blocks::new(code)?;
    let dearest = |batch| -> Result<(Machine<'_>, Dearest), NoBound> {
        let time: Option<&dyn Fn(Cost) -> u64> = match batch {
            Batch::OfOne => ps.as_ref().map(|ps| ps as _),
            Batch::OfMany => ps_of_batch.as_ref().map(|ps| ps as _),
        };
        let machine = Machine::new(program, code, &blocks, knowledge, batch)?;
        let dearest = Dearest {
            instructions: search(&machine, &|cost| cost.instructions)?,
            own: search(&machine, &|cost| cost.own)?,
            lines: search(&machine, &|cost| cost.lines)?,
            time: time.map(|ps| search(&machine, ps)).transpose()?,
        };
        Ok((machine, dearest))
    };
    let (machine, each) = dearest(Batch::OfMany)?;
    let (single, alone) = dearest(Batch::OfOne)?;
    let others = [&each.own, &each.lines, &alone.instructions, &alone.own, &alone.lines];
    let instructions = &each.instructions;
    let way = instructions.way.as_ref();
    Ok(Part {
        each: each.cost(),
        once: machine.once.without_code(),
        frame_lines: lines_of(machine.graph.frame_bytes()) + 1,
        code_lines: lines_of(machine.graph.bytes()),
        called_lines: machine.calls.values().fold(0, |sum, call| sum.saturating_add(call.code_lines())),
        code_bytes: code.bytes.len() as u64,
        ps_each: each.time.as_ref().map(|time| time.weight),
        alone: single.once.without_code() + alone.cost(),
        ps_alone: alone
            .time
            .as_ref()
            .map(|time| time.weight.saturating_add(ps.map_or(0, |ps| ps(single.once)))),
        without_conditions: instructions.without_conditions,
        paths: instructions.paths as u64,
        is_tight: way.is_some(),
        allocates: machine.allocates,
        calls: machine.calls.clone(),
        steps: way.map(|way| story::tell(program, &machine, &way.moves)).unwrap_or_default(),
        blocks: way.map(|way| offsets(&machine, way)).unwrap_or_default(),
        way_cost: way.map(|way| way.cost),
        frame: way.and_then(|way| way.frame.clone()),
        other_frames: others.into_iter().filter_map(|worst| worst.way.as_ref()?.frame.clone()).collect(),
        memory: Memory {
            tables: knowledge.memory,
            code: code.bytes.len() as u64,
            packets: (code.context_bytes + code.stage_bytes) as u64,
        },
    })
}

/// The dearest paths, by what they are dear in.
struct Dearest {
    instructions: Worst,
    own: Worst,
    lines: Worst,
    time: Option<Worst>,
}

impl Dearest {
    /// What no packet exceeds.
    fn cost(&self) -> Cost {
        let [instructions, own, lines] =
            [&self.instructions, &self.own, &self.lines].map(|found| found.weight);
        Cost { instructions, own, lines, ..Cost::default() }
    }
}

/// What is called at an offset of the code, and what it takes at most; no contract: there is no bound. None: nothing that is known is
/// called there.
pub fn call_at(input: &Input<'_>, knowledge: &Knowledge, at: u32) -> Option<(Callee, Option<Contract>)> {
    match input.code.origin(at)?.does {
        Does::Call(callee) => Some((callee, contract(&callee, input.program, knowledge))),
        _ => None,
    }
}

/// Where the blocks of a way start in the code.
fn offsets(machine: &Machine<'_>, way: &search::Path) -> Vec<u32> {
    let start = |block: &usize| machine.graph.blocks[*block].instructions.first().map_or(0, |first| first.at);
    way.blocks.iter().map(start).collect()
}

/// The cache lines that some bytes may touch.
fn lines_of(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes - 1).div_ceil(u64::from(cost::LINE)) + 1 }
}
