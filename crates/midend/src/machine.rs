//! What a code generator tells of the code that it made, for whoever asks what that code costs at most.
//!
//! It is neutral: bytes, where blocks start, and of each instruction which node of the specialised graph it was made
//! for. Instructions that have an effect (stores, calls, branches) stay in the code of their node, in their order. Those that only
//! compute a value may be moved by the code generator, so their origin says less.

use crate::cfg::Cfg;
use crate::site::Site;
use crate::specialise::{NodeId, Specialised};
use millrace_pipeline::TableId;
use std::ops::Range;

/// Most arguments of a helper.
pub const MAX_ARGUMENTS: usize = 8;

/// The code of one function, which runs a plan over a batch.
#[derive(Clone, Debug)]
pub struct MachineCode {
    /// The processor that it is for.
    pub processor: Processor,
    /// The instructions, with the tables of targets that lie among them.
    pub bytes: Vec<u8>,
    /// Where basic blocks start, in no order.
    pub block_starts: Vec<u32>,
    /// What instructions were made for, in the order of the code.
    pub origins: Vec<(Range<u32>, Origin)>,
    /// The control-flow graph of the plan.
    pub cfg: Cfg,
    /// The graph that the code was made from.
    pub graph: Specialised,
    /// Bytes of the function's frame that are used by address, in one piece; the rest is the register allocator's.
    pub frame_by_address: u32,
    /// Bytes of the contexts of a batch's packets.
    pub context_bytes: usize,
    /// Bytes of the memory of staged tables.
    pub stage_bytes: usize,
}

/// A processor that code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

/// What an instruction was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The part of the program.
    pub site: Site,
    /// The node of the specialised graph; none for what is done for the batch.
    pub node: Option<NodeId>,
    /// What it does, where that matters to its cost.
    pub does: Does,
}

/// What an instruction does, where that matters to its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Does {
    /// Nothing special.
    #[default]
    Plain,
    /// Goes on to the next packet in the loop of this number: 0, or the loop after a staged table.
    NextPacket(u32),
    /// Goes on to the line where the full bucket of an exact table goes on.
    NextLine(TableId),
    /// Goes on to the next copy of a packet for a set of ports, if there is one: the loop of
    /// [`Term::MoreCopies`](crate::cfg::Term::MoreCopies).
    NextCopy,
    /// Calls.
    Call(Callee),
}

/// Bytes that a writer of headers has room for when it starts, at most (the third argument of `writer_start`): more than the headers of usual
/// programs have, so that room is rarely made while they are written.
pub const MAX_ROOM: u64 = 2048;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A helper of the code generator.
    Helper {
        /// Its name.
        name: &'static str,
        /// Its arguments, where they are constants.
        known: [Option<u64>; MAX_ARGUMENTS],
    },
    /// The lookup of one key of a table.
    Lookup(TableId),
    /// The lookup of the keys of all packets that wait for a table.
    LookupOfAll(TableId),
}

impl MachineCode {
    /// What the instruction at an offset was made for.
    pub fn origin(&self, offset: u32) -> Option<&Origin> {
        let after = self.origins.partition_point(|(range, _)| range.start <= offset);
        let (range, origin) = self.origins.get(after.checked_sub(1)?)?;
        range.contains(&offset).then_some(origin)
    }
}
