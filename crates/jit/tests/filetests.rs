//! The programs in `filetests/`, each a text of the IR with directives as `millrace_filetests` has them. `; test clif [quick]` gives
//! Cranelift's IR, before it optimises, of the code from an arrival to a departure, for x86-64, whatever machine the test runs on. Tables
//! are looked up as the entries of the program allow. Numbers of values are no part of what a program means: checks leave them out.

use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_jit::{Effort, Options, listing, shapes};
use millrace_midend::Plan;
use millrace_pipeline::{text, verify};
use millrace_state::State;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let kinds = &[Kind { name: "clif", words: &[], run: clif }];
    Harness::default().folder(&Folder { path, extension: "mir", sign: ";", kinds }).run()
}

fn clif(test: &Test<'_>) -> Result<Outcome, String> {
    let effort = match test.args {
        "" => Effort::Speed,
        "quick" => Effort::Quick,
        other => return Err(format!("`{other}` is no way to compile")),
    };
    let program = text::parse(test.source).map_err(|error| error.to_string())?;
    verify(&program).map_err(|errors| errors[0].to_string())?;
    let mut state = State::new(Arc::new(program.clone())).map_err(|error| error.to_string())?;
    let options = Options { effort, shapes: shapes(&mut state), ..Options::default() };
    let listing = listing(&program, &Plan::through(&program, true), &options, Some("x86_64"));
    listing.map(|listing| Outcome::Text(plain(&listing.clif))).map_err(|error| error.to_string())
}

/// Lines without the part of the program that they are of (`@10000000`), and without blanks before them.
fn plain(clif: &str) -> String {
    let line = |line: &str| -> String {
        let line = line.trim_start();
        match line.split_once(' ') {
            Some((site, rest)) if site.starts_with('@') => rest.trim_start().to_owned(),
            _ => line.to_owned(),
        }
    };
    clif.lines().map(line).collect::<Vec<_>>().join("\n")
}
