//! What is measured when no other executable is: the same that `millrace` does with a file.

use millrace_compile::{LowerError, Options, Source, Standard, check};
use millrace_describe::image::Image;
use millrace_describe::p4info::{describe, to_text};
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

/// Checks a program, and makes its P4Info or its image. What was found is rendered and printed.
pub(crate) fn run(action: &str, p4_14: bool, path: &Path) -> ExitCode {
    let standard = if p4_14 { Standard::P4_14 } else { Standard::P4_16 };
    let checked = check(Source::Path(path), standard, &Options::default());
    checked.findings.iter().for_each(|finding| eprint!("{}", checked.render(finding)));
    if checked.has_errors() {
        return ExitCode::FAILURE;
    }
    match action {
        "check" => {}
        "p4info" => drop(black_box(to_text(&describe(&checked.typed).info))),
        _ => match checked.lower() {
            Ok(program) => drop(black_box(Image::new(program, describe(&checked.typed)).to_string())),
            Err(LowerError::Found(found)) => {
                found.iter().for_each(|finding| eprint!("{}", checked.render(finding)));
                return ExitCode::FAILURE;
            }
            // A mistake of the compiler, whatever the program.
            Err(broken @ LowerError::Broken(_)) => {
                eprintln!("{broken}");
                return ExitCode::from(3);
            }
        },
    }
    ExitCode::SUCCESS
}
