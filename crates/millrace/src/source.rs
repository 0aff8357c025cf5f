//! From program text to a program that can be run.

use crate::cli::{SourceArgs, Standard};
use crate::findings::{Failure, Findings};
use millrace_lower::lower;
use millrace_p4_14::{LIBRARY, translate};
use millrace_pipeline::{Program, verify};
use millrace_sema::{check, hir};
use millrace_syntax::{Diagnostic, Options, Parsed, SourceMap, p4_14, parse_path, parse_text};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

/// A program that the checker found right.
pub(crate) struct CheckedProgram {
    pub(crate) typed: hir::Program,
    sources: SourceMap,
    name: String,
}

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
    let name = path.file_stem().map_or_else(|| "program".into(), |stem| stem.to_string_lossy().into_owned());
    match args.std {
        Standard::P4_16 => finish(parse_path(path, &options), name, findings),
        Standard::P4_14 => finish_14(p4_14::parse_path(path, &options), name, findings),
    }
}

/// Reads and checks a program from a text.
pub(crate) fn load_text(name: &str, text: &str, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    let stem =
        Path::new(name).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    finish(parse_text(name, text, &Options::default()), stem, findings)
}

/// `NAME` defines 1, `NAME=VALUE` the value.
fn definition(text: &str) -> (String, String) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text.to_owned(), "1".to_owned()),
    }
}

/// Checks a P4_14 program by way of P4_16.
fn finish_14(
    mut parsed: p4_14::Parsed,
    name: String,
    findings: &mut Findings,
) -> Result<CheckedProgram, Failure> {
    let library = parsed.library(LIBRARY);
    let p4_14::Parsed { program, sources, mut diagnostics } = parsed;
    let translated = translate(&program, library);
    // After syntax errors names are missing that were only not understood.
    if !diagnostics.has_errors() {
        diagnostics.extend(translated.diagnostics);
    }
    finish(Parsed { program: translated.program, sources, diagnostics }, name, findings)
}

fn finish(parsed: Parsed, name: String, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    let Parsed { program, sources, diagnostics } = parsed;
    let mut errors = diagnostics.has_errors();
    let mut suppressed = diagnostics.suppressed();
    diagnostics.iter().for_each(|diagnostic| findings.show(diagnostic, &sources));
    let checked = check(&program);
    // After syntax errors the checker would report what it could not see.
    if !errors {
        errors = checked.diagnostics.has_errors();
        suppressed += checked.diagnostics.suppressed();
        checked.diagnostics.iter().for_each(|diagnostic| findings.show(diagnostic, &sources));
    }
    if errors || !findings.list().is_empty() {
        findings.summary(suppressed);
    }
    if errors {
        return Err(Failure::Found);
    }
    Ok(CheckedProgram { typed: checked.program, sources, name })
}

impl CheckedProgram {
    /// Lowers it to a verified program.
    pub(crate) fn lower(&self, findings: &mut Findings) -> Result<Arc<Program>, Failure> {
        let program = match lower(&self.typed, &self.name) {
            Ok(program) => program,
            Err(diagnostics) => return Err(self.found(&diagnostics, findings)),
        };
        // Engines rely on what the verifier checks; a program that breaks a rule is our mistake, and is not run.
        if let Err(errors) = verify(&program) {
            let listed = errors.iter().map(|error| format!("\n  {error}")).collect::<String>();
            return Err(Failure::Failed(format!(
                "the compiled program breaks rules of the IR (a bug):{listed}"
            )));
        }
        Ok(Arc::new(program))
    }

    fn found(&self, diagnostics: &[Diagnostic], findings: &mut Findings) -> Failure {
        diagnostics.iter().for_each(|diagnostic| findings.show(diagnostic, &self.sources));
        findings.summary(0);
        Failure::Found
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
