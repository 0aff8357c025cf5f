//! What is called from compiled code takes at most so much: the contract of each helper, and of each lookup by a call.
//!
//! The figures are for the optimised build on x86-64, with what the formula says they depend on. They are not derived from the code
//! of helpers: `tests/bounds` counts it instruction by instruction in that build, and fails when what a batch takes with all that it
//! calls is above the bound. A helper without a contract gives no bound.

use crate::cost::Cost;
use crate::knowledge::Knowledge;
use millrace_midend::machine::Callee;
use millrace_pipeline::{Program, TableId};

/// What a call takes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    /// For each call.
    pub once: Cost,
    /// For each key that a lookup of many looks up.
    pub each: Cost,
    /// Whether memory may be allocated: then the figure was counted, and is not proven.
    pub allocates: bool,
}

const fn fixed(instructions: u64, lines: u64) -> Contract {
    let each = Cost { instructions: 0, own: 0, lines: 0 };
    Contract { once: Cost { instructions, own: 0, lines }, each, allocates: false }
}

/// Most bytes that a helper is given whose number is not known where it is called.
const MOST_BYTES: u64 = millrace_pipeline::limits::MAX_PAYLOAD as u64;

/// The contract of what is called; none: there is none.
pub(crate) fn contract(callee: &Callee, program: &Program, knowledge: &Knowledge) -> Option<Contract> {
    match callee {
        Callee::Helper { name, known } => helper(name, known),
        Callee::Lookup(table) => lookup(program, knowledge, *table, false),
        Callee::LookupOfAll(table) => lookup(program, knowledge, *table, true),
    }
}

fn helper(name: &str, known: &[Option<u64>]) -> Option<Contract> {
    let known = |at: usize| known.get(at).copied().flatten();
    let limbs = |bits: u64| bits.div_ceil(64);
    let allocating = |contract: Contract| Contract { allocates: true, ..contract };
    Some(match name {
        "count" => fixed(40, 6),
        "count_direct" => fixed(40, 6),
        "meter" | "meter_direct" => fixed(220, 8),
        "register_read" | "register_write" => fixed(90, 8),
        "hash" => {
            let bytes = known(3).unwrap_or(MOST_BYTES);
            fixed(80 + 12 * bytes, 6 + bytes.div_ceil(8))
        }
        "zero" => fixed(60 + known(1).unwrap_or(MOST_BYTES) / 8, 2 + known(1).unwrap_or(MOST_BYTES) / 64),
        "random" => fixed(400 + 40 * limbs(known(1)?), 8),
        "argument_bool" => allocating(fixed(260, 6)),
        "argument_bits" => allocating(fixed(260 + 20 * limbs(known(1)?), 8)),
        "digest" => allocating(fixed(900, 20)),
        "put_in_front" => allocating(fixed(400, 12)),
        "atomic_begin" | "atomic_end" => fixed(60, 6),
        _ => return None,
    })
}

/// A lookup by a call. What it takes grows with the steps that its engine needs as it is built.
fn lookup(program: &Program, knowledge: &Knowledge, table: TableId, of_all: bool) -> Option<Contract> {
    let described = &program.tables[table];
    let lookup = &knowledge.tables[table].lookup;
    let (probes, lines) = (u64::from(lookup.probes), u64::from(lookup.lines));
    if described.profile.is_some() || described.idle_timeout {
        return None;
    }
    let width: u32 =
        described.keys.iter().map(|key| millrace_midend::type_width(key.value.ty(program))).sum();
    let limbs = u64::from(width.div_ceil(64));
    let (once, each) = match lookup.engine {
        "none" => (40, 4),
        "single" => (40, 6),
        "direct" => (60, 12),
        "dir24" => (120, 12 + 10 * probes),
        "exact" => (140, 40 + 24 * probes + 8 * limbs),
        "wide" => (260, 60 + 60 * probes + 8 * limbs),
        "acl" => (400, 60 + 60 * probes),
        _ => return None,
    };
    // Of entries that have something of their own, the array from entries to slots is read after the lookup.
    let has_entries = described.direct_counter.is_some() || described.direct_meter.is_some();
    let each = each + if has_entries { 30 } else { 0 };
    let each = Cost { instructions: each, own: 0, lines: lines + 2 * limbs.div_ceil(8) + 2 };
    let once = Cost { instructions: once, own: 0, lines: 12 };
    Some(match of_all {
        true => Contract { once, each, allocates: false },
        false => Contract { once: once + each, each: Cost::default(), allocates: false },
    })
}
