//! Cache lines of the code of what is called.
//!
//! They are counted as instructions are (`tests/bounds/tests/contracts.rs`). How code lies in lines changes with each build of the
//! switch, so each figure is a quarter above the largest count of two builds, and by two lines at least.

use super::Contract;
use crate::cost::Cost;
use millrace_midend::machine::Callee;
use millrace_pipeline::Program;

/// Lines that a jump leads to, and lines after the one before.
type Lines = (u64, u64);

/// Numbers of at most so many bits are kept without memory of their own.
const IN_PLACE: u64 = 128;

/// A contract with the lines of code of a call.
pub(super) fn with_code(contract: Contract, callee: &Callee, engine: &str) -> Contract {
    let Contract { mut once, mut alone, .. } = contract;
    match callee {
        Callee::Helper { name, known } => {
            let known = |at: usize| known.get(at).copied().flatten();
            let lines = of(helper(name, known, contract.allocates));
            once += lines;
            alone += lines;
        }
        Callee::Lookup(_) => {
            let lines = of(lookup(engine, false));
            once += lines;
            alone += lines;
        }
        Callee::LookupOfAll(_) => {
            once += of(lookup(engine, true));
            alone += of(lookup(engine, false));
        }
    }
    Contract { once, alone, ..contract }
}

/// What the members of a group are chosen with comes after the lookup.
pub(super) fn of_group(program: &Program, table: millrace_pipeline::TableId) -> Cost {
    let has_groups = program.tables[table].profile.is_some();
    if has_groups { of((12, 20)) } else { Cost::default() }
}

fn of((jumps, follows): Lines) -> Cost {
    Cost::of_code(jumps, follows)
}

fn lookup(engine: &str, is_of_many: bool) -> Lines {
    match (engine, is_of_many) {
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
