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

/// Comparisons as borrows are what they were.
#[test]
fn borrows_do_the_same() {
    let comparisons = |design: &Design| {
        let nodes = design.modules.values().flat_map(|module| module.nodes.values());
        nodes.filter(|node| matches!(node.op, Op::Binary(BinaryOp::Lt | BinaryOp::LtSigned, ..))).count()
    };
    let (mut before, mut after) = (0, 0);
    for seed in 0..seeds() {
        let mut design = arbitrary::design(seed, size(seed));
        passes::optimize(&mut design);
        let mut borrowed = design.clone();
        passes::borrows(&mut borrowed);
        assert_eq!(verify(&borrowed), Ok(()), "seed {seed}\n{design}\n{borrowed}");
        before += comparisons(&design);
        after += comparisons(&borrowed);
        let mut stimulus = Stimulus::new(&design, Rng::new(!seed));
        let cycles = (0..50).map(|_| stimulus.next_cycle()).collect();
        let (wanted, got) = (tools::simulated(&design, &cycles), tools::simulated(&borrowed, &cycles));
        for (cycle, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
            assert_eq!(got, wanted, "seed {seed}, cycle {cycle}\n{design}\n{borrowed}");
        }
    }
    assert!(before > after, "{before} comparisons, {after} of them left");
}

/// Chains of registers as memories do the same from the first cycle on, also where a reset comes in between.
#[test]
fn delay_lines_do_the_same() {
    let mut made = 0;
    for seed in 0..seeds() {
        let mut design = arbitrary::design(seed, size(seed));
        // Outputs of the top some cycles later, each by another number, and some of them looked at on their way.
        let top = design.top().unwrap();
        let module = &mut design.modules[top];
        let outputs: Vec<(OutputId, NodeId)> =
            module.outputs.iter().filter_map(|(id, output)| Some((id, output.value.expand()?))).collect();
        for (number, (output, value)) in outputs.into_iter().enumerate() {
            let (cycles, width) = ((seed as usize + 3 * number) % 40, module.width(value));
            let mut later = value;
            for cycle in 0..cycles {
                let name = format!("wait{number}_{cycle}");
                let next = later.into();
                let register =
                    Register { name, width, reset: None, next, enable: None.into(), place: None.into() };
                let register = module.registers.push(register);
                later = module.nodes.push(Node { op: Op::Register(register), width, place: None.into() });
            }
            module.outputs[output].value = later.into();
        }
        assert_eq!(verify(&design), Ok(()), "seed {seed}\n{design}");
        let mut delayed = design.clone();
        passes::delay_lines(&mut delayed);
        assert_eq!(verify(&delayed), Ok(()), "seed {seed}\n{design}\n{delayed}");
        let memories =
            |design: &Design| design.modules.values().map(|module| module.memories.len()).sum::<usize>();
        made += memories(&delayed).saturating_sub(memories(&design));
        let mut stimulus = Stimulus::new(&design, Rng::new(!seed));
        let cycles = (0..90).map(|_| stimulus.next_cycle()).collect();
        let (wanted, got) = (tools::simulated(&design, &cycles), tools::simulated(&delayed, &cycles));
        for (cycle, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
            assert_eq!(got, wanted, "seed {seed}, cycle {cycle}\n{design}\n{delayed}");
        }
    }
    assert!(made as u64 > seeds() / 4, "{made} memories");
}
