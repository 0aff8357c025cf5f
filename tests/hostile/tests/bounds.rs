//! Hostile programs of small size, compiled without optimisation. `cargo run --release -p millrace-hostile -- run` does the
//! same with all of them in full size.

use std::process::Command;

/// What is quadratic and would take minutes at full size takes longer than it may at this one.
const BYTES: &str = "20000";
/// Far below each limit of what can be doubled, and far beyond.
const DOUBLINGS: &str = "8,29";
/// Without optimisation the same takes so many times the time.
const SLOWER: &str = "5";
/// Hardware is made by crates that tests optimise, too: sizes at which much is made, and at which limits refuse most.
const HARDWARE_BYTES: [&str; 2] = ["3000", "30000"];

fn all_pass(options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-hostile"))
        .args(["run", "--slower", SLOWER])
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.ends_with(" passed, 0 failed, 0 skipped")), "{text}");
}

#[test]
fn each_program_is_accepted_or_refused_in_time() {
    all_pass(&["--bytes", BYTES, "--doublings", DOUBLINGS]);
}

#[test]
fn each_program_is_hardware_or_refused_in_time() {
    for bytes in HARDWARE_BYTES {
        all_pass(&["--hardware", "--only", "hardware-", "--bytes", bytes]);
    }
}

/// A stack of headers has an edge to each of its elements, on each of which the same is known of all of them; after each of thousands of
/// assignments one value more is known.
#[test]
fn each_program_has_machine_code_and_bounds_or_is_refused_in_time() {
    let doubled = ["--only", "code-,x2-structs-compared,x2-loops-calls", "--doublings", "13,14"];
    all_pass(&[&["--code", "--bytes", "1000000"], &doubled[..]].concat());
}
