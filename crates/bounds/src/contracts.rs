//! What is called from compiled code takes at most so much: the contract of each helper, and of each lookup by a call.
//!
//! The figures are those of the optimised build on x86-64, as functions of what the work depends on: bytes, limbs, probes. They are
//! counted, instruction by instruction: `tests/bounds` has a program for each helper and each match engine, brings it to
//! what its contract depends on, and fails when a call takes more than is said here. The probes and lines of an engine are those that
//! `tables` says and holds its engines to. A helper without a contract gives no bound.

mod code;
mod helpers;
mod lookups;

use crate::cost::Cost;
use crate::knowledge::Knowledge;
use millrace_midend::machine::Callee;
use millrace_pipeline::Program;

/// What a call takes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    /// For each call.
    pub once: Cost,
    /// For each key that a lookup of many looks up.
    pub each: Cost,
    /// A lookup of many that are one: engines have a short way for one key.
    pub alone: Cost,
    /// Whether memory may be allocated. Then the figure holds for the calls of a batch together, as room that grows is made for many
    /// calls at once; and what the allocator does is counted, and not proven.
    pub allocates: bool,
}

impl Contract {
    /// A call whose lines may each be asked for when the one before has come.
    fn fixed(instructions: u64, lines: u64) -> Contract {
        let once = Cost { instructions, ..Cost::of_lines(lines, lines) };
        Contract { once, alone: once, ..Contract::default() }
    }

    fn allocating(instructions: u64, lines: u64) -> Contract {
        Contract { allocates: true, ..Contract::fixed(instructions, lines) }
    }

    /// The most that it takes for so many keys.
    pub fn of_keys(&self, keys: u64) -> Cost {
        if keys == 1 { self.alone } else { self.once + self.each * keys }
    }
}

/// The contract of what is called; none: there is none.
pub(crate) fn contract(callee: &Callee, program: &Program, knowledge: &Knowledge) -> Option<Contract> {
    let found = match callee {
        Callee::Helper { name, known } => helpers::helper(name, known, program, knowledge)?,
        Callee::Lookup(table) => {
            let one = lookups::lookup(program, knowledge, *table)?.alone;
            Contract { once: one, alone: one, ..Contract::default() }
        }
        Callee::LookupOfAll(table) => lookups::lookup(program, knowledge, *table)?,
    };
    Some(code::with_code(found, callee, program, knowledge))
}
