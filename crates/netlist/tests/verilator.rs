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

/// Lookup tables for the registers of [`pins`]: those that the reset of the design sets to 0, too, have one for each of their bits.
const PIN_TABLES: u32 = 600;

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
            if seed % 2 == 1 {
                passes::borrows(&mut design);
            }
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
    compare_design(&together(seeds, optimized), &name);
}

fn compare_design(design: &Design, name: &str) {
    verify(design).unwrap();
    tools::lint(design, &format!("lint-{name}")).unwrap_or_else(|said| panic!("{said}"));
    let mut stimulus = Stimulus::new(design, Rng::new(7));
    let cycles: tools::Cycles = (0..200).map(|_| stimulus.next_cycle()).collect();
    let wanted = tools::simulated(design, &cycles);
    let got =
        tools::verilated(design, &format!("model-{name}"), &cycles).unwrap_or_else(|said| panic!("{said}"));
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

/// Registers of 16 bits that are kept or reset by all kinds of signals, each by its inverse, too.
fn pins() -> Design {
    let mut m = ModuleBuilder::new("pins");
    let inputs = ["p", "q", "s"].map(|name| m.input(name, 1));
    let [p, q, s] = [0, 1, 2].map(|at| m.delayed(&format!("bit{at}"), inputs[at], None));
    let (a, b) = (m.input("a", 4), m.input("b", 4));
    let held = m.delayed("held", a, Some(5));
    let both = m.concat(&[p, a, q]);
    let both = m.delayed("both", both, None);
    let word = m.input("word", 16);
    let not_q = m.not(q);
    let mut signals = vec![p, s, m.bit(held, 2), m.bit(both, 3), m.bit(both, 5)];
    signals.extend([
        m.and(p, q),
        m.and(p, not_q),
        m.or(p, s),
        m.xor(p, q),
        m.eq(p, q),
        m.eq(a, b),
        m.lt(a, b),
    ]);
    signals.extend([m.reduce_and(held), m.reduce_or(held), m.mux(p, q, s)]);
    let inner = m.and(q, s);
    let inner = m.not(inner);
    signals.push(m.or(p, inner));
    for (at, signal) in signals.into_iter().enumerate() {
        for (kind, signal) in [("is", signal), ("not", m.not(signal))] {
            let zero = m.number(16, 0);
            let mut outputs = Vec::new();
            for (way, start) in [("start", Some(0)), ("plain", None)] {
                let (high, low) = (m.mux(signal, zero, word), m.mux(signal, word, zero));
                outputs.push(m.delayed(&format!("{kind}{at}_{way}_high"), high, start));
                outputs.push(m.delayed(&format!("{kind}{at}_{way}_low"), low, start));
                let (kept, output) = m.register(&format!("{kind}{at}_{way}_kept"), 16, start);
                let next = m.mux(signal, output, word);
                m.set_next(kept, next);
                outputs.push(output);
                let (enabled, output) = m.register(&format!("{kind}{at}_{way}_enabled"), 16, start);
                m.set_next(enabled, word);
                m.set_enable(enabled, signal);
                outputs.push(output);
            }
            // Parts of a word with signals of their own.
            let part = m.slice(word, 0, 8);
            let none = m.number(8, 0);
            let (one, other) = (m.mux(signal, part, none), m.mux(q, none, part));
            let parts = m.concat(&[one, other, p]);
            outputs.push(m.delayed(&format!("{kind}{at}_parts"), parts, None));
            let all = m.concat(&outputs);
            m.output(&format!("{kind}{at}"), all);
        }
    }
    // Registers of which nothing but the inverse is used.
    let (one, two) = (m.input("one", 1), m.input("two", 2));
    let (one, two) = (m.delayed("one_held", one, None), m.delayed("two_held", two, None));
    let (second, zero) = (m.bit(two, 1), m.number(16, 0));
    for (at, signal) in [one, second].into_iter().enumerate() {
        let low = m.mux(signal, word, zero);
        let low = m.delayed(&format!("inverse{at}"), low, None);
        m.output(&format!("inverse{at}"), low);
    }
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// Signals at pins of flip-flops are what they were, and no flip-flop has gates of its own for them.
#[test]
fn signals_at_pins() {
    let design = pins();
    if tools::has("verilator") {
        compare_design(&design, "pins");
    }
    if !tools::has("yosys") {
        return;
    }
    for (name, command) in
        [("pins-xc7", "synth_xilinx -flatten -noiopad -noclkbuf"), ("pins-ecp5", "synth_ecp5")]
    {
        let script = format!("{command} -top TOP; check -assert; tee -o /dev/stdout stat");
        let said = tools::yosys(&design, name, &script).unwrap_or_else(|said| panic!("{said}"));
        // The last list is that of this script.
        let list = said.rsplit("Number of cells:").next().unwrap_or_default();
        let cells = list.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let is_logic = words.next().is_some_and(|cell| cell.starts_with("LUT") || cell == "INV");
            words.next()?.parse::<u32>().ok().filter(|_| is_logic)
        });
        let count: u32 = cells.sum();
        assert!(count > 0 && count < PIN_TABLES, "{command}: {count} lookup tables: {said}");
    }
}

/// Words of C++, of SystemC and of the language's own package are taken: programs have variables of such names.
#[test]
fn words_of_other_languages_are_no_names() {
    if !tools::has("verilator") {
        return;
    }
    let words = "std process mailbox semaphore randomize queue map list vector set stack pair string char double float new delete \
        operator template public private this int long short bool true false NULL nullptr abort uint8_t uint64_t sc_in sensitive \
        catch throw try friend mutable inline using namespace typename explicit";
    let mut design = Design::new();
    let mut m = ModuleBuilder::new("words");
    for word in words.split_ascii_whitespace() {
        let input = m.input(word, 4);
        let (register, value) = m.register(word, 4, Some(0));
        m.set_next(register, input);
        m.output(word, value);
    }
    design.add(m.finish());
    tools::lint(&design, "words").unwrap();
}
