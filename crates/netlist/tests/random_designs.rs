//! Random designs: they are well formed, print and parse back, and the simulator does what the reference does.

#[allow(dead_code)]
mod common;

use common::{Stimulus, seeds, size, tools};
use millrace_netlist::arbitrary::reference::Reference;
use millrace_netlist::arbitrary::{self, Rng};
use millrace_netlist::*;

#[test]
fn print_and_parse() {
    for seed in 0..seeds() {
        let design = arbitrary::design(seed, size(seed));
        assert_eq!(verify(&design), Ok(()), "seed {seed}\n{design}");
        let printed = text::print(&design);
        let parsed = text::parse(&printed).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{printed}"));
        assert!(parsed == design, "seed {seed}\n{printed}\n{parsed}");
    }
}

#[test]
fn simulator_and_reference() {
    for seed in 0..seeds() {
        let design = arbitrary::design(seed, size(seed));
        compare(seed, &design);
    }
}

/// Both do the same with random inputs, in each output of each cycle and in all registers.
fn compare(seed: u64, design: &Design) {
    let module = &design.modules[design.top().unwrap()];
    let mut sim = Simulator::new(design).unwrap();
    let mut reference = Reference::new(design);
    let mut stimulus = Stimulus::new(design, Rng::new(!seed));
    for cycle in 0..30 {
        let (inputs, reset) = stimulus.next_cycle();
        for ((id, port), value) in module.inputs.iter().zip(inputs) {
            // An input that nothing reads is not there.
            if let Some(signal) = sim.input(&port.name) {
                sim.set(signal, &value);
            }
            reference.set(id, value);
        }
        sim.set_reset(reset);
        for (id, port) in &module.outputs {
            let signal = sim.output(&port.name).unwrap();
            let (got, wanted) = (sim.get(signal), reference.get(id));
            assert_eq!(got, wanted, "seed {seed}, cycle {cycle}, output {}\n{design}", port.name);
        }
        sim.step();
        reference.step(reset);
    }
}

#[test]
fn optimised_designs_do_the_same() {
    for seed in 0..seeds() {
        let design = arbitrary::design(seed, size(seed));
        let mut optimised = design.clone();
        passes::optimize(&mut optimised);
        assert_eq!(verify(&optimised), Ok(()), "seed {seed}\n{design}\n{optimised}");
        let mut stimulus = Stimulus::new(&design, Rng::new(!seed));
        let cycles = (0..50).map(|_| stimulus.next_cycle()).collect();
        let (wanted, got) = (tools::simulated(&design, &cycles), tools::simulated(&optimised, &cycles));
        for (cycle, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
            assert_eq!(got, wanted, "seed {seed}, cycle {cycle}\n{design}\n{optimised}");
        }
    }
}
