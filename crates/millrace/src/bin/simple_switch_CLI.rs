//! `simple_switch_CLI`: `millrace shell` under the name that bmv2's scripts call.

#![allow(non_snake_case, reason = "the name of bmv2's tool")]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // The one beside this executable, else the one in `PATH`.
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let beside = own.ok().map(|path| path.with_file_name("millrace")).filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from("millrace"));
    let error = Command::new(&program).arg("shell").args(std::env::args_os().skip(1)).exec();
    eprintln!("simple_switch_CLI: cannot start {}, which does the work: {error}", program.display());
    ExitCode::from(127)
}
