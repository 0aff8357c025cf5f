//! Random programs and random packets: both engines do the same with them, every packet is accounted for, and the passes
//! change nothing that anybody can see.

use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_differential::{Trio, out_of_steps, packets, program, set_up};
use millrace_pipeline::{Program, passes, text, verify};
use std::sync::Arc;

const PROGRAMS: u64 = 150;

/// The size of the program that grows from a seed.
fn size(seed: u64) -> usize {
    1 + seed as usize % 7
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// `DIFFERENTIAL_FIRST` and `DIFFERENTIAL_PROGRAMS` choose others.
#[test]
fn random_programs_have_one_outcome() {
    let first = number("DIFFERENTIAL_FIRST", 0);
    for seed in first..first + number("DIFFERENTIAL_PROGRAMS", PROGRAMS) {
        let program = Arc::new(program(seed, size(seed)));
        assert_eq!(verify(&program), Ok(()));
        let config = SwitchConfig { max_passes: 6, ..SwitchConfig::default() };
        // A few programs have one entry twice in a table.
        let Ok(mut trio) = Trio::new(&program, &config, set_up) else { continue };
        for (number, batch) in packets(seed, 24).chunks(1 + seed as usize % 9).enumerate() {
            match trio.packets(number as u32 % 3, batch, number as u64 * 1000) {
                Ok(outcome) if out_of_steps(&outcome, &program) => break,
                Ok(_) => {}
                Err(difference) => {
                    let mut optimised = (*program).clone();
                    passes::optimize(&mut optimised);
                    panic!(
                        "seed {seed}, batch {number} {batch:02x?}\n{difference}\n{}",
                        text::print(&optimised)
                    );
                }
            }
        }
        if let Err(difference) = trio.state() {
            panic!("seed {seed}: {difference}");
        }
    }
}

fn switch(program: Program) -> Option<Switch> {
    let config = SwitchConfig { engine: EngineKind::Interp, max_passes: 6, ..SwitchConfig::default() };
    // A few programs have one entry twice in a table.
    let mut switch = Switch::new(Arc::new(program), config).ok()?;
    set_up(&mut switch);
    Some(switch)
}

#[test]
fn every_packet_is_accounted_for() {
    let mut ran = 0;
    for seed in 0..PROGRAMS {
        let Some(mut switch) = switch(program(seed, size(seed))) else { continue };
        ran += 1;
        for (number, packet) in packets(seed, 12).iter().enumerate() {
            let (outcome, trace) = switch.inject_traced(number as u32 % 3, packet, number as u64 * 1000);
            assert!(
                !outcome.sent.is_empty() || !outcome.drops.is_empty(),
                "seed {seed}, packet {number}\n{trace}"
            );
        }
    }
    assert!(ran > PROGRAMS / 2, "{ran} programs");
}

#[test]
fn passes_change_nothing_that_shows() {
    for seed in 0..PROGRAMS {
        let plain = program(seed, size(seed));
        let mut optimized = plain.clone();
        passes::optimize(&mut optimized);
        let (Some(mut first), Some(mut second)) = (switch(plain), switch(optimized)) else { continue };
        for (number, packet) in packets(seed, 12).iter().enumerate() {
            let time_ns = number as u64 * 1000;
            let (wanted, story) = first.inject_traced(number as u32 % 3, packet, time_ns);
            let (found, other) = second.inject_traced(number as u32 % 3, packet, time_ns);
            if out_of_steps(&wanted, first.program()) || out_of_steps(&found, second.program()) {
                break;
            }
            assert_eq!(wanted, found, "seed {seed}, packet {number}\n{story}\noptimised:\n{other}");
            for (register, object) in &first.program().registers {
                for index in 0..object.size.min(16) {
                    let cell = |switch: &Switch| switch.state().register_value(register, index);
                    assert_eq!(cell(&first), cell(&second), "seed {seed}, packet {number}, {}", object.name);
                }
            }
        }
    }
}
