//! The hardware of programs as Verilator makes models of it, next to the simulator of this project: every output, in every cycle.
//!
//! Verilator takes seconds for a design, so two programs are taken here. All of the repository, and as many random ones as asked for:
//!
//!     MILLRACE_VERILATED_PROGRAMS=200 MILLRACE_VERILATED_ALL=1 cargo test --release -p millrace-differential --test verilated -- --nocapture

use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_differential::{compile_path, memory, program, programs_with_tests};
use millrace_pipeline::Program;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::{Effort, Hardware, Options, Pair};
use millrace_stf::{parse, run_on};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Cycles of each design.
const CYCLES: u32 = 200;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn has_verilator() -> bool {
    let found = Command::new("verilator").arg("--version").output().is_ok();
    if !found {
        println!("skipped, there is no verilator (Debian: verilator)");
    }
    found
}

/// Runs each stage of a program in both, with random inputs; gives the pairs.
fn compare(name: &str, program: Arc<Program>, (seed, effort): (u64, Effort)) -> Vec<Pair> {
    let Ok(hardware) = Hardware::new(program, Options::default()) else { return Vec::new() };
    let mut pairs = Vec::new();
    for (part, design) in hardware.designs() {
        let mut rng = Rng::new(seed);
        let mut pair =
            Pair::new(&design, effort).unwrap_or_else(|why| panic!("{name}, {}: {why}", part.name()));
        for cycle in 0..CYCLES {
            pair.set_inputs(&mut || rng.next_u64());
            if let Some((port, ours, theirs)) = pair.difference() {
                panic!("{name}, {}, cycle {cycle}: {port} is {ours}, in Verilator {theirs}", part.name());
            }
            pair.step();
        }
        pairs.push(pair);
    }
    pairs
}

#[test]
fn programs_of_the_repository_are_equal_in_every_cycle() {
    if !has_verilator() {
        return;
    }
    let all = number("MILLRACE_VERILATED_ALL", 0) == 1;
    let mut designs = 0;
    for (path, _) in programs_with_tests() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if all || name == "l2_switch.p4" {
            for mut pair in compare(&name, compile_path(&path), (1, Effort::Fast)) {
                let (ours, theirs) = pair.speed(Duration::from_millis(300));
                println!("{name}: {ours:.0} cycles a second in process, {theirs:.0} by Verilator");
                designs += 1;
            }
        }
    }
    assert!(designs >= 2, "{designs} designs");
}

#[test]
fn random_programs_are_equal_in_every_cycle() {
    if !has_verilator() {
        return;
    }
    let mut designs = 0;
    let first = number("DIFFERENTIAL_FIRST", 0);
    for seed in first..first + number("MILLRACE_VERILATED_PROGRAMS", 1) {
        let program = Arc::new(program(seed, 1 + seed as usize % 7));
        let compared = compare(&format!("seed {seed}"), program, (seed, Effort::Quick)).len();
        println!("seed {seed}: {compared} designs are equal");
        designs += compared;
    }
    println!("{designs} designs");
    assert!(designs > 0);
}

/// Frames through models of Verilator have the outcomes that the interpreter gives them.
#[test]
fn a_switch_of_models_is_the_interpreter() {
    if !has_verilator() {
        return;
    }
    let config = |engine| SwitchConfig { engine, ..SwitchConfig::default() };
    let (path, test) =
        programs_with_tests().into_iter().find(|(path, _)| path.ends_with("l2_switch.p4")).unwrap();
    let program = compile_path(&path);
    let text = std::fs::read_to_string(test).unwrap();
    let parsed = parse(&text).unwrap();
    let run = |engine| {
        let mut switch = Switch::new(Arc::clone(&program), config(engine)).unwrap();
        let mut outcomes = Vec::new();
        let report = run_on(&mut switch, &text, &parsed, |outcome| outcomes.push(outcome.clone()));
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        assert_eq!(switch.engine_name(), if engine == EngineKind::Interp { "interp" } else { "rtl" });
        (outcomes, memory(&switch))
    };
    assert_eq!(run(EngineKind::Interp), run(EngineKind::Verilated));
}
