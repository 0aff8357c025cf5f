//! From program text to a program that can be run.

use crate::cli::SourceArgs;
use crate::findings::{Failure, Findings};
use millrace_compile::{Checked, LowerError, Options, Source, Standard, check};
use millrace_pipeline::Program;
use millrace_sema::hir;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

/// A program that the checker found right.
pub(crate) struct CheckedProgram(Checked);

/// Reads and checks a program from a file; what is wrong is shown.
pub(crate) fn load(
    path: &Path,
    args: &SourceArgs,
    findings: &mut Findings,
) -> Result<CheckedProgram, Failure> {
    let options = Options {
        include_dirs: args.include_dirs.clone(),
        defines: args.defines.iter().map(|define| definition(define)).collect(),
        ..Options::default()
    };
    show(check(Source::Path(path), args.std.into(), &options), findings)
}

/// Reads and checks a program from a text.
pub(crate) fn load_text(name: &str, text: &str, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    show(check(Source::Text(name, text), Standard::P4_16, &Options::default()), findings)
}

/// `NAME` defines 1, `NAME=VALUE` the value.
fn definition(text: &str) -> (String, String) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text.to_owned(), "1".to_owned()),
    }
}

fn show(checked: Checked, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    checked.findings.iter().for_each(|found| findings.show(found, &checked.sources));
    if !findings.list().is_empty() {
        findings.summary(checked.suppressed);
    }
    if checked.has_errors() { Err(Failure::Found) } else { Ok(CheckedProgram(checked)) }
}

impl CheckedProgram {
    /// The typed program.
    pub(crate) fn typed(&self) -> &hir::Program {
        &self.0.typed
    }

    /// Lowers it to a verified program.
    pub(crate) fn lower(&self, findings: &mut Findings) -> Result<Arc<Program>, Failure> {
        self.0.lower().map_err(|error| match error {
            LowerError::Found(found) => {
                found.iter().for_each(|diagnostic| findings.show(diagnostic, &self.0.sources));
                findings.summary(0);
                Failure::Found
            }
            broken @ LowerError::Broken(_) => Failure::Failed(broken.to_string()),
        })
    }
}

/// Writes to a file, or to standard output.
pub(crate) fn write_output(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path {
        Some(path) => std::fs::write(path, text).map_err(|error| Failure::failed(path.display(), error)),
        None => match std::io::stdout().lock().write_all(text.as_bytes()) {
            // A reader that has seen enough is no error, a full disk is.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::failed("standard output", error))
            }
            _ => Ok(()),
        },
    }
}
