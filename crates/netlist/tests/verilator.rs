//! What is printed is what is simulated: random designs in the simulator and in models that Verilator makes of their
//! SystemVerilog, every output in every cycle. And Verilator has nothing to say about the text.
//!
//! Verilator takes a while for each model, so many designs are instances in one. `MILLRACE_VERILATED=1000` takes more of them.

#[allow(dead_code)]
mod common;

use common::{Stimulus, size, tools};
use millrace_netlist::arbitrary::{self, Rng};
use millrace_netlist::*;

/// Designs in one model.
const TOGETHER: u64 = 20;

fn count() -> u64 {
    std::env::var("MILLRACE_VERILATED").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

/// A design whose top has an instance of the top of each of some random designs, with all their ports.
fn together(seeds: std::ops::Range<u64>, optimized: bool) -> Design {
    let mut all = Design::new();
    let mut tops = Vec::new();
    for seed in seeds {
        let mut design = arbitrary::design(seed, size(seed));
        if optimized {
            passes::optimize(&mut design);
        }
        let mut ids = Vec::new();
        let top = design.top().unwrap().as_u32() as usize;
        for module in design.modules.values() {
            let mut module = module.clone();
            module.name = format!("d{seed}.{}", module.name);
            for instance in module.instances.values_mut() {
                instance.module = ids[instance.module.as_u32() as usize];
            }
            ids.push(all.add(module));
        }
        tops.push(ids[top]);
    }
    let mut m = ModuleBuilder::new("harness");
    let mut outputs = Vec::new();
    for (at, top) in tops.iter().enumerate() {
        let instance = m.instance(&all, *top, &format!("d{at}"));
        for (port, n) in all.modules[*top].inputs.values().zip(0..) {
            let input = m.input(&format!("d{at}i{n}"), port.width);
            m.connect(instance, &port.name, input);
        }
        for (port, n) in all.modules[*top].outputs.values().zip(0..) {
            outputs.push((format!("d{at}o{n}"), m.output_of(instance, &port.name)));
        }
    }
    for (name, value) in outputs {
        m.output(&name, value);
    }
    all.add(m.finish());
    all
}

fn compare(seeds: std::ops::Range<u64>, optimized: bool) {
    let name = format!("{}-{optimized}", seeds.start);
    let design = together(seeds, optimized);
    verify(&design).unwrap();
    tools::lint(&design, &format!("lint-{name}")).unwrap_or_else(|said| panic!("{said}"));
    let mut stimulus = Stimulus::new(&design, Rng::new(7));
    let cycles: tools::Cycles = (0..200).map(|_| stimulus.next_cycle()).collect();
    let wanted = tools::simulated(&design, &cycles);
    let got =
        tools::verilated(&design, &format!("model-{name}"), &cycles).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(got.len(), wanted.len(), "cycles");
    let top = &design.modules[design.top().unwrap()];
    for (cycle, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
        for (port, (got, wanted)) in top.outputs.values().zip(got.iter().zip(wanted)) {
            assert_eq!(got, wanted, "cycle {cycle}, {}", port.name);
        }
    }
}

#[test]
fn verilator_and_simulator() {
    if tools::has("verilator") {
        (0..count()).step_by(TOGETHER as usize).for_each(|seed| compare(seed..seed + TOGETHER, false));
    }
}

#[test]
fn verilator_and_simulator_optimised() {
    if tools::has("verilator") {
        (0..count())
            .step_by(TOGETHER as usize)
            .for_each(|seed| compare(seed + 10_000..seed + 10_000 + TOGETHER, true));
    }
}
