//! Random programs over one, two and four workers: each flow gets what the interpreter makes of its packets, in order, and what
//! all flows share holds what the interpreter's holds.
//!
//! `WORKERS_FIRST` and `WORKERS_PROGRAMS` choose others: `WORKERS_PROGRAMS=500 cargo test -p millrace-generator --test workers`.

mod flows;
mod lanes;
mod shared;

use flows::{FLOWS, Flow, Made, label};
use lanes::{Batches, Queues};
use millrace_dataplane::{EngineKind, KnownPorts, PortId, Switch, SwitchConfig};
use millrace_differential::{memory, out_of_steps, set_up};
use millrace_frames::MAX_BATCH;
use millrace_generator::{Generated, generate};
use millrace_pipeline::{Inst, Program, verify};
use millrace_syntax::{Options, parse_text, render};
use std::sync::Arc;

/// Ports that there are; random programs ask for others too.
const PORTS: std::ops::Range<PortId> = 0..16;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("WORKERS_FIRST", 0);
    first..first + number("WORKERS_PROGRAMS", 12)
}

fn compile(seed: u64, source: &str) -> Arc<Program> {
    let parsed = parse_text("random.p4", source, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let found = parsed.diagnostics.iter().chain(checked.diagnostics.iter()).filter(|found| found.is_error());
    let found: Vec<String> = found.map(|found| render(found, &parsed.sources, false)).collect();
    assert!(found.is_empty(), "seed {seed}:\n{}\n{source}", found.join("\n"));
    let lowered = millrace_lower::lower(&checked.program, "random");
    let program = lowered.unwrap_or_else(|errors| panic!("seed {seed}: {} errors\n{source}", errors.len()));
    assert_eq!(verify(&program), Ok(()), "seed {seed}\n{source}");
    Arc::new(program)
}

/// A program with its entries.
struct Subject {
    seed: u64,
    source: String,
    commands: Vec<String>,
    program: Arc<Program>,
}

impl Subject {
    fn new(seed: u64, source: String, commands: Vec<String>) -> Subject {
        let program = compile(seed, &source);
        Subject { seed, source, commands, program }
    }

    fn switch(&self, engine: EngineKind) -> Switch {
        let ports = KnownPorts::Only(PORTS.collect());
        let config = SwitchConfig { engine, ports, max_passes: 6, ..SwitchConfig::default() };
        let switch = Switch::new(Arc::clone(&self.program), config);
        let mut switch = switch.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        set_up(&mut switch);
        for command in &self.commands {
            // Random entries are there twice now and then.
            let _ = millrace_control::entries::load(&mut switch, command);
        }
        switch
    }

    /// What the interpreter makes of the flows, one after the other, in batches of so many packets; none: a packet took too many
    /// steps, of which engines count different ones.
    fn interpreted(&self, flows: &[Flow], batch: usize) -> Option<(Made, Switch)> {
        let mut switch = self.switch(EngineKind::Interp);
        let mut made = Made::default();
        for flow in flows {
            for packets in flow.packets.chunks(batch) {
                let outcome =
                    switch.inject_batch(packets.iter().map(|packet| (flow.port, packet.as_slice())), 0);
                if out_of_steps(&outcome, &self.program) {
                    return None;
                }
                made.add(outcome);
            }
        }
        Some((made, switch))
    }

    /// Whether what a packet finds in a register may be what another one has left there.
    fn reads_registers(&self) -> bool {
        let blocks = self.program.bodies.values().flat_map(|body| body.blocks.values());
        blocks.flat_map(|block| &block.insts).any(|inst| matches!(inst, Inst::RegisterRead { .. }))
    }

    /// All that is remembered, but for registers where packets of several flows write them: any of these may be the last.
    fn remembered(&self, switch: &Switch, flows: usize) -> Vec<String> {
        let names: Vec<String> =
            self.program.registers.values().map(|register| format!("{}[", register.name)).collect();
        let is_register = |line: &String| names.iter().any(|name| line.starts_with(name.as_str()));
        memory(switch).into_iter().filter(|line| flows == 1 || !is_register(line)).collect()
    }
}

#[test]
fn random_programs_give_each_flow_the_same_with_any_number_of_workers() {
    let (mut ran, mut alone, mut spread) = (0, 0, 0);
    for seed in seeds() {
        let Generated { source, commands, packets } = generate(seed, 1 + seed as usize % 6);
        let subject = Subject::new(seed, source, commands);
        // What flows tell each other through registers has no one order: then all packets are of one flow.
        let of_one = subject.reads_registers();
        let flows = if of_one { flows::one(&packets) } else { flows::by_hash(seed, &packets) };
        let Some((wanted, reference)) = subject.interpreted(&flows, 1) else { continue };
        // What starts again is overtaken by what comes in one batch with it; and what a packet leaves in a register on its way out
        // finds those that have come in with it on theirs.
        let in_bursts = subject.interpreted(&flows, MAX_BATCH);
        let goes_in_bursts = !of_one && in_bursts.is_some_and(|(made, _)| made.by_flow() == wanted.by_flow());
        ran += 1;
        alone += usize::from(of_one);
        for workers in [1, 2, 4] {
            let batches = if goes_in_bursts { Batches::Random(seed) } else { Batches::Single };
            let mut runs = vec![Queues::Each(batches)];
            if goes_in_bursts {
                runs.push(Queues::One);
            }
            spread += runs.len() - 1;
            for queues in runs {
                let (found, after) = lanes::run(subject.switch(EngineKind::Fastest), &flows, workers, queues);
                let case = format!("seed {seed}, {workers} workers, {queues:?}");
                found.check(&wanted, &case, &subject.source);
                flows::same_counts(reference.counters(), after.counters(), &case);
                assert_eq!(
                    subject.remembered(&after, flows.len()),
                    subject.remembered(&reference, flows.len()),
                    "{case}\n{}",
                    subject.source
                );
            }
        }
    }
    println!("{ran} programs, {alone} of them with one flow; {spread} runs spread in software");
    assert!(ran > 0 && spread > 0);
}

/// Registers that each packet changes by an operation whose order makes no difference, counters and meters: what is left is the
/// same whichever worker has had which packet, and at which time.
#[test]
fn what_flows_share_adds_up_with_any_number_of_workers() {
    for seed in seeds() {
        let (source, commands) = shared::program(seed);
        let subject = Subject::new(seed, source, commands);
        let flows = shared::flows(seed, FLOWS);
        let (wanted, reference) = subject.interpreted(&flows, 1).expect("few steps");
        assert!(!wanted.is_empty(), "seed {seed}: no packet came out");
        for workers in [1, 2, 4] {
            for queues in [Queues::Each(Batches::Random(seed)), Queues::One] {
                let (found, after) = lanes::run(subject.switch(EngineKind::Fastest), &flows, workers, queues);
                let case = format!("seed {seed}, {workers} workers, {queues:?}");
                found.check(&wanted, &case, &subject.source);
                flows::same_counts(reference.counters(), after.counters(), &case);
                assert_eq!(memory(&after), memory(&reference), "{case}\n{}", subject.source);
            }
        }
    }
}

#[test]
fn labels_are_found_again() {
    assert_eq!(label(&flows::labelled(&[1, 2], 3, 260)), Some((3, 260)));
    assert_eq!(label(&[0; 20]), None);
}
