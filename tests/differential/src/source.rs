//! The programs of the repository.

use millrace_pipeline::{Program, verify};
use millrace_syntax::{Options, Parsed, parse_path, parse_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Compiles a program from its text.
///
/// # Panics
/// It is wrong: these are the project's own.
pub fn compile(name: &str, text: &str) -> Arc<Program> {
    lower(name, parse_text(name, text, &Options::default()))
}

/// Compiles a program from a file.
///
/// # Panics
/// It is wrong: these are the project's own.
pub fn compile_path(path: &Path) -> Arc<Program> {
    let name = path.file_stem().map_or_else(|| "program".into(), |stem| stem.to_string_lossy().into_owned());
    lower(&name, parse_path(path, &Options::default()))
}

fn lower(name: &str, parsed: Parsed) -> Arc<Program> {
    let checked = millrace_sema::check(&parsed.program);
    assert!(!parsed.diagnostics.has_errors() && !checked.diagnostics.has_errors(), "{name} has errors");
    let program = millrace_lower::lower_from(&checked.program, name, Some(&parsed.sources));
    let program = program.unwrap_or_else(|errors| panic!("{name}: {} errors", errors.len()));
    assert_eq!(verify(&program), Ok(()), "{name}");
    Arc::new(program)
}

/// Every program of the repository in P4_16 that has an STF test next to it, with the test. (Tests of the command line run those in P4_14.)
///
/// # Panics
/// The folders cannot be read.
pub fn programs_with_tests() -> Vec<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["programs", "tests/programs"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder of programs") {
            let test = entry.expect("a folder that can be read").path();
            let program = test.with_extension("p4");
            let is_older = test.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("_14"));
            if test.extension().is_some_and(|extension| extension == "stf") && program.exists() && !is_older {
                found.push((program, test));
            }
        }
    }
    found.sort();
    found
}
