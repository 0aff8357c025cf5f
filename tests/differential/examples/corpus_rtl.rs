//! STF tests of a folder (of p4c: `testdata/p4_16_samples`, `testdata/p4_14_samples`) on simulated hardware: how many pass, which
//! programs hardware cannot have and why, and which fail though the interpreter passes.
//!
//!     cargo run --release -p millrace-differential --example corpus_rtl -- FOLDER...

use millrace_compile::{Source, Standard, check};
use millrace_dataplane::{EngineKind, SwitchConfig};
use millrace_stf::{parse, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What became of one test.
enum Became {
    Passed,
    /// Hardware cannot have the program.
    Refused(String),
    Failed(String),
    /// The interpreter fails too, or the program is wrong.
    Unfit,
}

fn main() -> ExitCode {
    let (mut passed, mut unfit, mut failed) = (0, 0, Vec::new());
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for folder in std::env::args().skip(1) {
        for test in tests(Path::new(&folder)) {
            let name = test.display().to_string();
            let began = Instant::now();
            match one(&test) {
                Became::Passed => passed += 1,
                Became::Unfit => unfit += 1,
                Became::Refused(why) => {
                    let construct = why.split(", in ").next().unwrap_or(&why).to_owned();
                    refused.entry(construct).or_default().push(name.clone());
                }
                Became::Failed(why) => failed.push(format!("{name}: {why}")),
            }
            slowest.push((began.elapsed(), name));
        }
    }
    let sum: usize = refused.values().map(Vec::len).sum();
    for (why, tests) in &refused {
        println!("refused {}: {why}\n    {}", tests.len(), tests.join("\n    "));
    }
    failed.iter().for_each(|line| println!("FAILED {line}"));
    slowest.sort();
    for (time, name) in slowest.iter().rev().take(5) {
        println!("{:.1} s {name}", time.as_secs_f64());
    }
    let all = passed + sum + failed.len();
    println!(
        "{passed} of {all} pass ({:.1} %), {sum} refused, {} fail; {unfit} do not pass in the interpreter",
        100.0 * passed as f64 / all.max(1) as f64,
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The tests with a program next to them.
fn tests(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut tests: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|ending| ending == "stf") && path.with_extension("p4").exists()
        })
        .collect();
    tests.sort();
    tests
}

fn one(test: &Path) -> Became {
    let path = test.with_extension("p4");
    let (Ok(source), Ok(text)) = (std::fs::read_to_string(&path), std::fs::read_to_string(test)) else {
        return Became::Unfit;
    };
    let checked = check(Source::Path(&path), Standard::of(&path, &source), &Default::default());
    let (false, Ok(statements)) = (checked.has_errors(), parse(&text)) else { return Became::Unfit };
    let Ok(program) = checked.lower() else { return Became::Unfit };
    let with = |engine| {
        let config = SwitchConfig { engine, ..SwitchConfig::default() };
        run(&text, &statements, program.clone(), config)
    };
    match with(EngineKind::Interp) {
        Ok(report) if report.is_success() => {}
        _ => return Became::Unfit,
    }
    match with(EngineKind::Rtl) {
        Ok(report) if report.log.iter().any(|line| line.contains("the interpreter goes on")) => {
            Became::Failed(report.log.join("; "))
        }
        Ok(report) if report.is_success() => Became::Passed,
        Ok(report) => Became::Failed(
            report.failures.first().map_or_else(String::new, |failure| failure.kind.to_string()),
        ),
        Err(error) => Became::Refused(error.to_string()),
    }
}
