//! The programs in `filetests/`, with directives as `millrace_filetests` has them. `test lower` gives the IR of a program, or the
//! messages of its errors. Every program that is lowered must pass the verifier, and again after all passes.

use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_syntax::{Options, parse_path};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    Harness::default()
        .folder(&Folder {
            path: Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"),
            extension: "p4",
            sign: "//",
            kinds: &[Kind { name: "lower", words: &[], run: lower }],
        })
        .run()
}

fn lower(test: &Test<'_>) -> Result<Outcome, String> {
    let parsed = parse_path(test.path, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    if let Some(d) = parsed.diagnostics.iter().chain(&checked.diagnostics).find(|d| d.is_error()) {
        return Err(format!("{} at {}", d.message, parsed.sources.location(d.primary)));
    }
    let mut program = match millrace_lower::lower(&checked.program, "case") {
        Ok(program) => program,
        Err(list) => return Ok(Outcome::Errors(list.iter().map(|d| d.message.clone()).collect())),
    };
    if let Err(errors) = millrace_pipeline::verify(&program) {
        return Err(format!("{}\n{program}", errors[0]));
    }
    let text = program.to_string();
    millrace_pipeline::passes::optimize(&mut program);
    match millrace_pipeline::verify(&program) {
        Ok(()) => Ok(Outcome::Text(text)),
        Err(errors) => Err(format!("after the passes: {}\n{program}", errors[0])),
    }
}
