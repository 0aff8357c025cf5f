//! Cache lines of the code of what is called.
//!
//! They are counted as instructions are (`tests/bounds/tests/contracts.rs`). How code lies in lines changes with each build of the
//! switch, so each figure is a quarter above the largest count of two builds, and by two lines at least.

use super::Contract;
use super::helpers::IN_PLACE;
use crate::cost::Cost;
use crate::knowledge::Knowledge;
use millrace_midend::machine::Callee;
use millrace_pipeline::Program;

/// Lines that a jump leads to, and lines after the one before.
type Lines = (u64, u64);

/// A contract with the lines of code of a call.
pub(super) fn with_code(
    contract: Contract,
    callee: &Callee,
    program: &Program,
    knowledge: &Knowledge,
) -> Contract {
    let (once, alone) = match callee {
        Callee::Helper { name, known } => {
            let lines = of(helper(name, |at| known.get(at).copied().flatten(), contract.allocates));
            (lines, lines)
        }
        Callee::Lookup(table) | Callee::LookupOfAll(table) => {
            let is_of_all = matches!(callee, Callee::LookupOfAll(_));
            let engine = knowledge.tables[*table].lookup.engine;
            // What the members of a group are chosen with comes after the lookup.
            let of_group = if program.tables[*table].profile.is_some() { OF_GROUP } else { (0, 0) };
            let [once, alone] = [is_of_all, false].map(|is_of_all| of(lookup(engine, is_of_all)));
            (once + of(of_group), alone + of(of_group))
        }
    };
    Contract { once: contract.once + once, alone: contract.alone + alone, ..contract }
}

/// To choose the member of a group.
const OF_GROUP: Lines = (12, 20);

fn of((jumps, follows): Lines) -> Cost {
    Cost::of_code(jumps, follows)
}

fn lookup(engine: &str, is_of_all: bool) -> Lines {
    match (engine, is_of_all) {
        ("acl", false) => (36, 88),
        ("acl", true) => (38, 96),
        (_, false) => (18, 30),
        (_, true) => (30, 118),
    }
}

fn helper(name: &str, known: impl Fn(usize) -> Option<u64>, allocates: bool) -> Lines {
    let is_wide = |bits: Option<u64>| bits.is_none_or(|bits| bits > IN_PLACE);
    match name {
        "count" | "count_direct" | "zero" | "atomic_begin" | "atomic_end" | "copy_varbit"
        | "varbits_equal" | "ask_shared" => (6, 8),
        "add_to_message" | "digest" => (7, 8),
        "register_read" | "register_write" | "meter" => (8, 16),
        "meter_direct" => (9, 18),
        "read_bits" | "read_varbit" => (6, 14),
        "hash" | "writer_hash" => (11, 14),
        "writer_bits" => (10, 12),
        "put_in_front" | "writer_finish" if !allocates => (8, 10),
        "writer_varbit" => (15, 24),
        "writer_start" => (32, 30),
        "random" if !is_wide(known(1)) => (56, 72),
        "wide" if !is_wide(known(1)) => (30, 34),
        // What makes room.
        _ => (120, 158),
    }
}
