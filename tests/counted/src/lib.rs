//! The instructions that a benchmark executes, counted under valgrind: they do not depend on what else the machine does.

use std::process::Command;

/// The instructions of the program that calls this, run again with these arguments; none without valgrind.
pub fn instructions(args: &[&str]) -> Option<u64> {
    let this = std::env::current_exe().ok()?;
    let file = std::env::temp_dir().join(format!("instructions.{}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())])
        .arg(this)
        .args(args)
        .output()
        .ok()?;
    let _ = std::fs::remove_file(file);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1))?;
    collected.trim().parse().ok()
}
