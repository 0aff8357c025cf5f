//! From program text, or an image, to a program that can be run.

use crate::cli::SourceArgs;
use crate::findings::{Failure, Findings};
use millrace_chassis::check_chains;
use millrace_compile::{Checked, LowerError, Options, Source, Standard, check, definition};
use millrace_describe::image::{Image, MAX_IMAGE};
use millrace_describe::p4info::describe;
use millrace_messages::config::P4Info;
use millrace_pipeline::Program;
use millrace_printable::printable;
use millrace_sema::hir;
use millrace_syntax::{MAX_FILE_BYTES, Severity, SourceMap};
use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a program that are looked at to recognise its language.
const MAX_RECOGNISED: u64 = 1 << 20;

/// A program that the checker found right.
pub(crate) struct CheckedProgram(Checked);

/// A program from a file, whose content tells what it is.
pub(crate) enum Loaded {
    /// The text of a program, which the checker found right.
    Source(Box<CheckedProgram>),
    /// An image.
    Image(Box<Image>),
}

/// The path that stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// The name of what comes from there: quoted includes are looked for in the folder at hand.
const INPUT_NAME: &str = "<stdin>";

/// Reads a program or an image from a file or from standard input; what is wrong is shown.
pub(crate) fn load_any(path: &Path, args: &SourceArgs, findings: &mut Findings) -> Result<Loaded, Failure> {
    if path == Path::new(STANDARD_INPUT) {
        return load_input(args, findings);
    }
    match image_bytes(path).map_err(|error| Failure::failed(path.display(), error))? {
        Some(bytes) => {
            let image = Image::read(&bytes).map_err(|error| Failure::failed(path.display(), error))?;
            no_options_of_text(args, path.display())?;
            Ok(Loaded::Image(Box::new(image)))
        }
        None => load(path, args, findings).map(|checked| Loaded::Source(Box::new(checked))),
    }
}

fn load_input(args: &SourceArgs, findings: &mut Findings) -> Result<Loaded, Failure> {
    findings.set_form(args.diagnostics);
    match read_input(args)? {
        Input::Image(image) => {
            no_options_of_text(args, "standard input")?;
            Ok(Loaded::Image(image))
        }
        Input::Source(checked) => {
            show_all(*checked, findings).map(|checked| Loaded::Source(Box::new(checked)))
        }
    }
}

/// What comes from standard input.
enum Input {
    Image(Box<Image>),
    Source(Box<Checked>),
}

fn read_input(args: &SourceArgs) -> Result<Input, Failure> {
    // One byte more than the longest of both, so that a longer one is refused by its own limit.
    const LONGEST: usize = if MAX_IMAGE > MAX_FILE_BYTES { MAX_IMAGE } else { MAX_FILE_BYTES };
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed("standard input", error))?;
    if Image::looks_like(&bytes) {
        let image = Image::read(&bytes).map_err(|error| Failure::failed("standard input", error))?;
        return Ok(Input::Image(Box::new(image)));
    }
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Failure::failed("standard input", format!("longer than {MAX_FILE_BYTES} bytes")));
    }
    let text = String::from_utf8_lossy(&bytes);
    let standard = args.std.map_or_else(|| Standard::of(Path::new(INPUT_NAME), &text), Into::into);
    let checked = check(Source::Text(INPUT_NAME, &text), standard, &options(args));
    Ok(Input::Source(Box::new(checked)))
}

/// Options that say how a text is read would change nothing of a program that is compiled already.
fn no_options_of_text(args: &SourceArgs, name: impl Display) -> Result<(), Failure> {
    let SourceArgs { include_dirs, defines, undefines, std, .. } = args;
    let given = [
        ("-I", !include_dirs.is_empty()),
        ("-D", !defines.is_empty()),
        ("-U", !undefines.is_empty()),
        ("--std", std.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "`{option}` is for the text of a program: {name} is an image, which is compiled already"
        ))),
        None => Ok(()),
    }
}

/// How the command line wants sources to be read.
fn options(args: &SourceArgs) -> Options {
    Options {
        include_dirs: args.include_dirs.clone(),
        defines: args.defines.iter().map(|define| definition(define)).collect(),
        undefines: args.undefines.clone(),
        ..Options::default()
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
            Loaded::Image(image) => Ok(*image),
        }
    }

    /// The image, if it was one.
    pub(crate) fn as_image(&self) -> Option<&Image> {
        match self {
            Loaded::Source(_) => None,
            Loaded::Image(image) => Some(image),
        }
    }

    /// Its P4Info.
    pub(crate) fn p4info(self) -> P4Info {
        match self {
            Loaded::Source(checked) => describe(checked.typed()).info,
            Loaded::Image(image) => image.p4info,
        }
    }
}

/// Reads and checks a program from a file; what is wrong is shown.
pub(crate) fn load(
    path: &Path,
    args: &SourceArgs,
    findings: &mut Findings,
) -> Result<CheckedProgram, Failure> {
    findings.set_form(args.diagnostics);
    show_all(read(path, args), findings)
}

/// Finds all that is wrong with a program or image, from a file or from standard input, for so many workers, and shows it.
pub(crate) fn find_all(
    path: &Path,
    args: &SourceArgs,
    workers: u32,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let mut checked = if path == Path::new(STANDARD_INPUT) {
        match read_input(args)? {
            Input::Image(_) => return no_options_of_text(args, "standard input"),
            Input::Source(checked) => *checked,
        }
    } else {
        match image_bytes(path).map_err(|error| Failure::failed(path.display(), error))? {
            Some(bytes) => {
                Image::read(&bytes).map_err(|error| Failure::failed(path.display(), error))?;
                return no_options_of_text(args, path.display());
            }
            None => read(path, args),
        }
    };
    findings.set_form(args.diagnostics);
    checked.find_all();
    check_chains(&mut checked, true);
    if workers > 1 {
        checked.find_for_workers();
    }
    show(checked, findings).map(drop)
}

fn read(path: &Path, args: &SourceArgs) -> Checked {
    let standard = args.std.map_or_else(|| recognised(path), Into::into);
    let mut checked = check(Source::Path(path), standard, &options(args));
    // Who writes the other language sees why its words are not understood.
    if (args.std, standard) == (None, Standard::P4_14)
        && let Some(first) = checked.findings.iter_mut().find(|found| found.severity == Severity::Error)
    {
        first.notes.push(
            "it is read as P4_14, as its declarations look like that; `--std p4-16` says otherwise".into(),
        );
    }
    checked
}

/// The language of a file, by its name or its beginning.
fn recognised(path: &Path) -> Standard {
    let mut text = Vec::new();
    // A pipe cannot be read twice, and what cannot be opened, the front end says.
    if let Ok(file) = File::open(path)
        && file.metadata().is_ok_and(|meta| meta.is_file())
        && file.take(MAX_RECOGNISED).read_to_end(&mut text).is_err()
    {
        text.clear();
    }
    Standard::of(path, &String::from_utf8_lossy(&text))
}

/// Reads and checks a program from a text.
pub(crate) fn load_text(name: &str, text: &str, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    show_all(check(Source::Text(name, text), Standard::P4_16, &Options::default()), findings)
}

fn show_all(mut checked: Checked, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
    check_chains(&mut checked, false);
    show(checked, findings)
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

    /// The typed program, with the texts that it is of.
    pub(crate) fn understood(&self) -> (&hir::Program, &SourceMap) {
        (self.typed(), &self.0.sources)
    }

    /// Lowers it to an image.
    pub(crate) fn image(&self, findings: &mut Findings) -> Result<Image, Failure> {
        Ok(Image::new(self.lower(findings)?, describe(self.typed())))
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
    write_bytes(path, text.as_bytes())
}

/// As [`write_output`], of what need not be text.
pub(crate) fn write_bytes(path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    match path {
        Some(path) => std::fs::write(path, bytes).map_err(|error| Failure::failed(path.display(), error)),
        None => match write_stdout(bytes) {
            // A reader that has seen enough is no error, a full disk is.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::failed("standard output", error))
            }
            _ => Ok(()),
        },
    }
}

/// As it is for a program that reads it; a terminal shows what it would obey.
fn write_stdout(bytes: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match std::str::from_utf8(bytes) {
        Ok(text) if stdout.is_terminal() => stdout.write_all(printable(text).as_bytes())?,
        _ => stdout.write_all(bytes)?,
    }
    stdout.flush()
}
