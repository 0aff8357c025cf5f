//! From program text, or an image, to a program that can be run.

use crate::cli::SourceArgs;
use crate::findings::{Failure, Findings};
use millrace_compile::{Checked, LowerError, Options, Source, Standard, check};
use millrace_control::image::{Image, MAX_IMAGE};
use millrace_control::p4info::describe;
use millrace_pipeline::Program;
use millrace_sema::hir;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// A program that the checker found right.
pub(crate) struct CheckedProgram(Checked);

/// A program from a file, whose content tells what it is.
pub(crate) enum Loaded {
    /// The text of a program, which the checker found right.
    Source(Box<CheckedProgram>),
    /// An image.
    Image(Image),
}

/// Reads a program or an image from a file; what is wrong is shown.
pub(crate) fn load_any(path: &Path, args: &SourceArgs, findings: &mut Findings) -> Result<Loaded, Failure> {
    match image_bytes(path).map_err(|error| Failure::failed(path.display(), error))? {
        Some(bytes) => {
            Image::read(&bytes).map(Loaded::Image).map_err(|error| Failure::failed(path.display(), error))
        }
        None => load(path, args, findings).map(|checked| Loaded::Source(Box::new(checked))),
    }
}

/// The bytes of a file that is meant to be an image.
fn image_bytes(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    // What cannot be opened, the front end says; what is no file cannot be read twice.
    let Some(mut file) =
        File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))
    else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    (&mut file).take(4096).read_to_end(&mut bytes)?;
    if !Image::looks_like(&bytes) {
        return Ok(None);
    }
    // One byte more than an image may have, so that a longer one is refused.
    file.take(MAX_IMAGE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

impl Loaded {
    /// The verified program.
    pub(crate) fn program(self, findings: &mut Findings) -> Result<Arc<Program>, Failure> {
        match self {
            Loaded::Source(checked) => checked.lower(findings),
            Loaded::Image(image) => Ok(image.program),
        }
    }

    /// The program with its description.
    pub(crate) fn image(self, findings: &mut Findings) -> Result<Image, Failure> {
        match self {
            Loaded::Source(checked) => checked.image(findings),
            Loaded::Image(image) => Ok(image),
        }
    }

    /// The image, if it was one.
    pub(crate) fn as_image(&self) -> Option<&Image> {
        match self {
            Loaded::Source(_) => None,
            Loaded::Image(image) => Some(image),
        }
    }

    /// Its P4Info, as protobuf text.
    pub(crate) fn p4info(&self) -> String {
        match self {
            Loaded::Source(checked) => describe(checked.typed()).to_string(),
            Loaded::Image(image) => image.p4info.clone(),
        }
    }
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
    fn typed(&self) -> &hir::Program {
        &self.0.typed
    }

    /// Lowers it to an image.
    pub(crate) fn image(&self, findings: &mut Findings) -> Result<Image, Failure> {
        Ok(Image::new(self.lower(findings)?, &describe(self.typed())))
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
