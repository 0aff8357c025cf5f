//! Hostile programs of small size, compiled without optimisation. `cargo run --release -p millrace-hostile -- run` does the
//! same with all of them in full size.

use std::process::Command;

/// What is quadratic takes as long at this size as it may take at full size when optimised.
const BYTES: &str = "40000";
/// Far below each limit of what can be doubled, and far beyond.
const DOUBLINGS: &str = "8,29";
/// Without optimisation the same takes so many times the time.
const SLOWER: &str = "20";

#[test]
fn each_program_is_accepted_or_refused_in_time() {
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-hostile"))
        .args(["run", "--bytes", BYTES, "--doublings", DOUBLINGS, "--slower", SLOWER])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.ends_with(" passed, 0 failed, 0 skipped")), "{text}");
}
