//! The instructions that a benchmark executes, counted under valgrind: they do not depend on what else the machine does.

use std::path::Path;
use std::process::Command;

/// Names a command in the environment that runs a program and its arguments and says `Collected : N` on standard error. It takes the
/// place of valgrind for programs of another processor (`tests/arm/instructions`).
const COUNTER: &str = "MILLRACE_COUNTER";

/// The instructions of the program that calls this, run again with these arguments; none without valgrind.
pub fn instructions(args: &[&str]) -> Option<u64> {
    let this = std::env::current_exe().ok()?;
    match std::env::var(COUNTER) {
        Ok(counter) => by_counter(&counter, &this, args),
        Err(_) => by_valgrind(&this, args),
    }
}

fn by_counter(counter: &str, this: &Path, args: &[&str]) -> Option<u64> {
    let mut words = counter.split_whitespace();
    let output = Command::new(words.next()?).args(words).arg(this).args(args).output().ok()?;
    collected(&output.stderr)
}

fn by_valgrind(this: &Path, args: &[&str]) -> Option<u64> {
    let file = std::env::temp_dir().join(format!("instructions.{}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())])
        .arg(this)
        .args(args)
        .output()
        .ok()?;
    let _ = std::fs::remove_file(file);
    collected(&output.stderr)
}

fn collected(said: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(said).into_owned();
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1))?;
    collected.trim().parse().ok()
}
