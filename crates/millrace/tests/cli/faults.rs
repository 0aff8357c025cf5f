//! Faults of ports under a running switch, two of each kind; `tests/faults/run` makes a hundred.

use crate::common::root;
use crate::live::is_root;
use std::process::Command;

#[test]
fn faults_leak_nothing_and_every_frame_is_accounted_for() {
    if !is_root("faults_leak_nothing_and_every_frame_is_accounted_for") {
        return;
    }
    let run = root().join("tests/faults/run");
    let bin = env!("CARGO_BIN_EXE_millrace");
    let done = Command::new("python3").arg(run).args(["--repeat", "2", "--bin", bin]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let more = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains(" 0 failed"), "{said}{more}");
}
