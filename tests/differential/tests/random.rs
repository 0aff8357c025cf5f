//! Random programs and random packets.

use millrace_differential::{Trio, packets, program, set_up};
use millrace_pipeline::{passes, text, verify};
use millrace_switch::{DropReason, Outcome, Switch, SwitchConfig};
use std::sync::Arc;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// `DIFFERENTIAL_FIRST` and `DIFFERENTIAL_PROGRAMS` choose others.
#[test]
fn random_programs_have_one_outcome() {
    let first = number("DIFFERENTIAL_FIRST", 0);
    for seed in first..first + number("DIFFERENTIAL_PROGRAMS", 150) {
        let program = Arc::new(program(seed, 1 + seed as usize % 7));
        assert_eq!(verify(&program), Ok(()));
        let config = SwitchConfig { max_passes: 6, ..SwitchConfig::default() };
        // A few programs have one entry twice in a table.
        let Ok(mut trio) = Trio::new(&program, &config, set_up) else { continue };
        for (number, batch) in packets(seed, 24).chunks(1 + seed as usize % 9).enumerate() {
            match trio.packets(number as u32 % 3, batch, number as u64 * 1000) {
                Ok(outcome) if out_of_steps(&outcome, &trio.interp) => break,
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

/// How many steps a way has is what passes may change.
fn out_of_steps(outcome: &Outcome, switch: &Switch) -> bool {
    outcome.drops.iter().any(|drop| {
        drop.reason == DropReason::StepLimit
            || drop.reason.label(switch.program()) == "parser_error:ParserTimeout"
    })
}
