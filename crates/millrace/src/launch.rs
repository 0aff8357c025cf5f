//! Starts `millrace` under another name. What has another name is only this, so that a program that many scripts call by
//! many names is on the disk once.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Becomes `millrace` under that name: the one next to this executable, else the one in `PATH`. Returns only if there is
/// none.
pub(crate) fn launch(name: &str) -> ExitCode {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let sibling = own.ok().map(|path| path.with_file_name("millrace")).filter(|path| path.is_file());
    let program = sibling.unwrap_or_else(|| PathBuf::from("millrace"));
    let error = Command::new(&program).arg0(name).args(std::env::args_os().skip(1)).exec();
    eprintln!("{name}: cannot start {}, which does the work: {error}", program.display());
    ExitCode::from(127)
}
