//! Every program in `tests/accept` is accepted, and what comes out is sound. Every program in `tests/reject` gives exactly the
//! findings that its comments announce (see `millrace_marked`). Each is a test with its name.

use millrace_filetests::{Harness, files};
use millrace_marked::{differences, unannounced_codes};
use millrace_sema::{check, hir};
use millrace_syntax::{Options, parse_path, render};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    Harness::default()
        .each("accept", files(&folder("accept"), "p4"), is_accepted)
        .each("reject", files(&folder("reject"), "p4"), gets_the_announced_findings)
        .test("every_code_is_tested", every_code_is_tested)
        .run()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn is_accepted(path: &Path) -> Result<(), String> {
    let parsed = parse_path(path, &Options::default());
    let checked = check(&parsed.program);
    let errors = parsed.diagnostics.iter().chain(&checked.diagnostics).filter(|d| d.is_error());
    let errors: Vec<String> = errors.map(|d| render(d, &parsed.sources, false)).collect();
    none("errors", &errors)?;
    none("broken", &hir::verify(&checked.program))
}

fn gets_the_announced_findings(path: &Path) -> Result<(), String> {
    let parsed = parse_path(path, &Options::default());
    assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
    let checked = check(&parsed.program);
    none("other findings", &differences(path, &parsed.sources, checked.diagnostics.iter()))
}

fn every_code_is_tested() -> Result<(), String> {
    let codes = unannounced_codes(include_str!("../src/codes.rs"), folder("reject"));
    if codes.is_empty() { Ok(()) } else { Err(format!("no test has {codes:?}")) }
}

fn none(what: &str, found: &[String]) -> Result<(), String> {
    if found.is_empty() { Ok(()) } else { Err(format!("{what}:\n{}", found.join("\n"))) }
}
