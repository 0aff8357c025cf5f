//! From what the file names to a program that can be run.

use millrace_chassis::{Pipeline, check_chains};
use millrace_compile::{LowerError, Options, Source as Text, Standard, check, definition};
use millrace_describe::image::{Image, MAX_IMAGE};
use millrace_describe::p4info::describe;
use millrace_device_file::{Program, Source, Std};
use millrace_syntax::{Diagnostic, read_file};
use std::path::Path;

/// Most bytes of findings in an answer.
const MAX_FINDINGS: usize = 16 << 10;

/// The program that a switch is to run.
pub(crate) fn bring(source: &Source) -> Result<Pipeline, String> {
    match source {
        Source::Image(path) => {
            let bytes =
                read_file(Path::new(path), MAX_IMAGE as u64).map_err(|error| format!("{path}: {error}"))?;
            let image = Image::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
            Pipeline::new(image, bytes).map_err(|error| format!("{path}: {error}"))
        }
        Source::Program(program) => {
            let image = compile(program)?;
            let text = image.to_string().into_bytes();
            Pipeline::new(image, text).map_err(|error| format!("{}: {error}", program.path))
        }
    }
}

fn compile(program: &Program) -> Result<Image, String> {
    let Program { path, std, include, define } = program;
    let options = Options {
        include_dirs: include.iter().map(Into::into).collect(),
        defines: define.iter().map(|text| definition(text)).collect(),
        ..Options::default()
    };
    let standard = match std {
        Std::P4_16 => Standard::P4_16,
        Std::P4_14 => Standard::P4_14,
    };
    let mut checked = check(Text::Path(Path::new(path)), standard, &options);
    check_chains(&mut checked, false);
    let render = |found: &[Diagnostic]| {
        let mut text = format!("{path} is no program that can run:\n");
        for finding in found.iter().filter(|finding| finding.is_error()) {
            let shown = checked.render(finding);
            if text.len() + shown.len() > MAX_FINDINGS {
                text += "...";
                break;
            }
            text += &shown;
        }
        text
    };
    if checked.has_errors() {
        return Err(render(&checked.findings));
    }
    let lowered = checked.lower().map_err(|error| match error {
        LowerError::Found(found) => render(&found),
        broken @ LowerError::Broken(_) => format!("{path}: {broken}"),
    })?;
    Ok(Image::new(lowered, describe(&checked.typed)))
}
