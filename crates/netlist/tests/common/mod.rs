//! What tests share: random designs, and the tools that they are compared with.

pub(crate) mod synthesis;
pub(crate) mod tools;

use millrace_netlist::arbitrary::Rng;
use millrace_netlist::{Bits, Design};

/// How many designs: more with `MILLRACE_SEEDS=100000` in the environment.
pub(crate) fn seeds() -> u64 {
    std::env::var("MILLRACE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// The size of a design.
pub(crate) fn size(seed: u64) -> usize {
    5 + (seed % 60) as usize
}

/// Random inputs of the top of a design, cycle by cycle.
pub(crate) struct Stimulus {
    rng: Rng,
    widths: Vec<u32>,
    cycle: u32,
}

impl Stimulus {
    pub(crate) fn new(design: &Design, rng: Rng) -> Stimulus {
        let module = &design.modules[design.top().expect("a top module")];
        Stimulus { rng, widths: module.inputs.values().map(|port| port.width).collect(), cycle: 0 }
    }

    /// The inputs of a cycle, and whether the reset is active.
    pub(crate) fn next_cycle(&mut self) -> (Vec<Bits>, bool) {
        self.cycle += 1;
        let values = self.widths.iter().map(|width| self.rng.bits(*width)).collect();
        (values, self.cycle > 3 && self.rng.one_in(8))
    }
}
