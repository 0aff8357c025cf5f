//! Random P4_16 programs: the front end takes them, their IR survives being written and read, and both engines do the
//! same with them.

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_differential::{Trio, out_of_steps, set_up};
use millrace_generator::{Generated, generate};
use millrace_pipeline::{Program, passes, text, verify};
use millrace_syntax::{Options, parse_text, render};
use std::sync::Arc;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Programs on which something was wrong once.
const KNOWN: [u64; 1] = [
    // A condition in a chain of others: code after it used what only one way through it had loaded.
    111_549,
];

/// `GENERATOR_FIRST` and `GENERATOR_PROGRAMS` choose others.
#[test]
fn random_programs_have_one_meaning() {
    let first = number("GENERATOR_FIRST", 0);
    let mut forwarded = 0;
    for seed in KNOWN.into_iter().chain(first..first + number("GENERATOR_PROGRAMS", 60)) {
        let generated = generate(seed, 1 + seed as usize % 6);
        let program = compile(seed, &generated.source);
        let read = text::parse(&text::print(&program)).expect("what was printed can be read");
        assert!(read == *program, "seed {seed}: the IR is another one after its text");
        forwarded += run(seed, &generated, &program);
    }
    assert!(forwarded > 0, "no packet came out");
}

fn compile(seed: u64, source: &str) -> Arc<Program> {
    let parsed = parse_text("random.p4", source, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let found: Vec<String> = (parsed.diagnostics.iter().chain(checked.diagnostics.iter()))
        .filter(|found| found.is_error())
        .map(|found| render(found, &parsed.sources, false))
        .collect();
    assert!(found.is_empty(), "seed {seed}:\n{}\n{source}", found.join("\n"));
    let lowered = millrace_lower::lower(&checked.program, "random").unwrap_or_else(|found| {
        let found: Vec<String> = found.iter().map(|found| render(found, &parsed.sources, false)).collect();
        panic!("seed {seed}:\n{}\n{source}", found.join("\n"))
    });
    assert_eq!(verify(&lowered), Ok(()), "seed {seed}\n{source}");
    Arc::new(lowered)
}

/// Runs the packets through all paths; says how many came out.
fn run(seed: u64, generated: &Generated, program: &Arc<Program>) -> usize {
    let Generated { source, commands, packets } = generated;
    let config = SwitchConfig { max_passes: 6, ..SwitchConfig::default() };
    let prepare = |switch: &mut Switch| {
        set_up(switch);
        for command in commands {
            // Random entries are there twice now and then.
            let _ = millrace_control::entries::load(switch, command);
        }
    };
    let mut trio =
        Trio::new(program, &config, prepare).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut forwarded = 0;
    for (number, batch) in packets.chunks(1 + seed as usize % 9).enumerate() {
        match trio.packets(number as u32 % 3, batch, number as u64 * 1000) {
            Ok(outcome) if out_of_steps(&outcome, program) => return forwarded,
            Ok(outcome) => forwarded += outcome.outputs().count(),
            Err(difference) => {
                let mut optimised = (**program).clone();
                passes::optimize(&mut optimised);
                panic!(
                    "seed {seed}, batch {number} {batch:02x?}\n{difference}\n{source}\n{commands:#?}\n{}",
                    text::print(&optimised)
                );
            }
        }
    }
    trio.state().unwrap_or_else(|difference| panic!("seed {seed}: {difference}\n{source}"));
    forwarded
}
