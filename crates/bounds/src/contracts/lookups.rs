//! The contracts of lookups, by match engine. What a lookup takes grows with the steps that its engine needs as it is built.

use super::Contract;
use crate::cost::Cost;
use crate::knowledge::Knowledge;
use millrace_pipeline::{Program, TableId};

/// Instructions of a lookup: of one key alone, of a batch once, and of each of its keys.
struct Counted {
    alone: u64,
    once: u64,
    each: u64,
}

pub(super) fn lookup(program: &Program, knowledge: &Knowledge, table: TableId) -> Option<Contract> {
    let described = &program.tables[table];
    let lookup = &knowledge.tables[table].lookup;
    let (probes, lines) = (u64::from(lookup.probes), u64::from(lookup.lines));
    let width = |ty| u64::from(millrace_midend::type_width(ty));
    let bits: u64 = described.keys.iter().map(|key| width(key.value.ty(program))).sum();
    let limbs = bits.div_ceil(64);
    // Steps after the first.
    let more = probes.saturating_sub(1);
    let mut counted = match lookup.engine {
        "none" => Counted { alone: 43, once: 44, each: 4 },
        "single" => Counted { alone: 52, once: 52, each: 6 },
        "direct" => Counted { alone: 50, once: 60, each: 12 },
        "dir24" => Counted { alone: 220, once: 300, each: 30 + 20 * probes },
        "exact" => match limbs {
            0 | 1 => Counted { alone: 189 + 26 * more, once: 400, each: 56 + 26 * more },
            2 => Counted { alone: 226 + 34 * more, once: 390, each: 80 + 34 * more },
            _ => Counted {
                alone: 180 + 5 * limbs + (30 + 6 * limbs) * more,
                once: 640,
                each: 82 + 5 * limbs + (40 + 4 * limbs) * more,
            },
        },
        "wide" if limbs <= 2 => {
            Counted { alone: 147 + 53 * more, once: 3260 + 340 * more, each: 70 + 30 * more }
        }
        "wide" => Counted { alone: 151 + 66 * more, once: 3260 + 340 * more, each: 130 + 50 * more },
        "acl" => acl(probes, lines, limbs),
        _ => return None,
    };
    if described.direct_counter.is_some() || described.direct_meter.is_some() {
        // Of entries that have something of their own, the array from entries to slots is read after the lookup.
        counted = Counted { alone: counted.alone + 136, once: counted.once + 125, each: counted.each + 28 };
    }
    if described.idle_timeout {
        counted = Counted { alone: counted.alone + 80, once: counted.once + 40, each: counted.each + 60 };
    }
    let mut lines = lines + 2 * limbs.div_ceil(8) + 2;
    if described.profile.is_some() {
        // The inputs as numbers, their hash, and the member that it selects.
        let inputs: u64 =
            described.selector_inputs.iter().map(|input| width(input.ty(program)).div_ceil(8)).sum();
        let each = 1500 + 60 * inputs;
        counted = Counted { alone: counted.alone + each, once: counted.once, each: counted.each + each };
        lines += 16;
    }
    // The steps of a lookup wait for one another; so do the engine, its arrays, and what belongs to the entry that is found.
    let waits = probes + 4;
    let of = |instructions, lines, waits| Cost { instructions, ..Cost::of_lines(lines, waits) };
    Some(Contract {
        once: of(counted.once, 12, 12),
        each: of(counted.each, lines, waits.min(lines)),
        alone: of(counted.alone, lines + 12, (waits + 4).min(lines + 12)),
        allocates: false,
    })
}

/// An access list. A step is the class on an axis, a row, or a rule that is checked; each of the latter also touches two lines at
/// least, so that lines beyond the number of steps tell how many there are at most.
fn acl(probes: u64, lines: u64, limbs: u64) -> Counted {
    let rules = probes.min(lines.saturating_sub(probes) / 2);
    let of_rules = |each: u64| rules * (each + 8 * limbs);
    Counted {
        alone: 494.max(400 + 22 * probes + of_rules(9)),
        once: 520 + 22 * probes,
        each: 10 + 9 * probes + of_rules(10),
    }
}
