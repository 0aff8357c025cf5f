//! `p4c-bm2-ss`: a P4 program to P4Info and a file for the switch, which here is an image.

use super::options::{P4infoFiles, ProgramArgs, parse};
use crate::findings::{Failure, Findings};
use crate::output::tell_line;
use crate::p4info::Form;
use clap::{ArgAction, Parser};
use millrace_describe::image::Image;
use millrace_p4runtime::InitialEntries;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compiles a P4 program for the switch of Millrace: an image, in place of the JSON of bmv2.
#[derive(Debug, Parser)]
#[command(version, infer_long_args = false, args_override_self = true)]
struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Where to write the image; nowhere if not given
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    described: P4infoFiles,
    /// The architecture, which must be the program's
    #[arg(long)]
    arch: Option<String>,
    /// The target: bmv2
    #[arg(long, value_parser = ["bmv2"])]
    target: Option<String>,
    /// Takes warnings for errors
    #[arg(long = "Werror", value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    warnings_are_errors: Vec<String>,
    #[command(flatten)]
    ignored: Ignored,
}

/// What is taken so that scripts run, and changes nothing.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without effect")]
struct Ignored {
    /// Externs are always in the image
    #[arg(long)]
    emit_externs: bool,
    /// There is no separate preprocessor
    #[arg(long)]
    nocpp: bool,
    /// The code is the same
    #[arg(long)]
    ndebug: bool,
    /// Parsers are inlined as is best
    #[arg(long)]
    parser_inline_opt: bool,
    /// Loops are unrolled where they must be
    #[arg(long = "loopsUnroll")]
    loops_unroll: bool,
    /// The switch optimises when it loads
    #[arg(short = 'O', value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    optimise: Option<String>,
    /// Diagnostics of Millrace have other names
    #[arg(long = "Wwarn", value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    warn: Vec<String>,
    /// Diagnostics of Millrace have other names
    #[arg(long = "Winfo", value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    info: Vec<String>,
    /// All errors are shown, up to the limit of Millrace
    #[arg(long = "maxErrorCount", value_name = "N")]
    max_errors: Option<u64>,
    /// A debugging aid of p4c
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,
    /// A debugging aid of p4c
    #[arg(short = 'T', value_name = "LEVEL")]
    log_level: Vec<String>,
    /// A debugging aid of p4c
    #[arg(long, value_name = "PASSES")]
    top4: Vec<String>,
    /// A debugging aid of p4c
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
}

pub(super) fn main(args: Vec<OsString>) -> ExitCode {
    main_of("p4c-bm2-ss", args)
}

/// The same under another name: what was made for which architecture, the program says.
pub(super) fn main_of(name: &'static str, args: Vec<OsString>) -> ExitCode {
    match parse::<Args>(name, args, 1) {
        Ok(args) => compile(&args),
        Err(status) => status,
    }
}

/// Compiles; 1 for a wrong program.
fn compile(args: &Args) -> ExitCode {
    let mut findings = Findings::new();
    match make(args, &mut findings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show();
            ExitCode::FAILURE
        }
    }
}

fn make(args: &Args, findings: &mut Findings) -> Result<(), Failure> {
    let checked = args.program.load(findings)?;
    if !args.warnings_are_errors.is_empty() && findings.has_warnings() {
        return Err(Failure::Failed("warnings are errors (--Werror)".into()));
    }
    let image = checked.image(findings)?;
    let made_for = &image.program.architecture;
    if let Some(arch) = args.arch.as_ref().filter(|arch| *arch != made_for) {
        return Err(Failure::Failed(format!("the program is for {made_for}, not for {arch} (--arch)")));
    }
    let mut files = Vec::new();
    for path in &args.described.p4runtime_files {
        files.push((path, form_of_file(path)?));
    }
    if let Some(path) = &args.described.p4runtime_file {
        files.push((path, form_of_name(&args.described.p4runtime_format)));
    }
    for (path, form) in files {
        let bytes = form.write(&image.p4info).map_err(Failure::Failed)?;
        write(path, &bytes)?;
    }
    write_entries(&args.described, &image)?;
    args.output.as_deref().map_or(Ok(()), |path| write(path, image.to_string().as_bytes()))
}

/// Writes the entries of the source.
fn write_entries(described: &P4infoFiles, image: &Image) -> Result<(), Failure> {
    let listed = described.p4runtime_entries_files.iter().map(|path| Ok((path, form_of_file(path)?)));
    let form = form_of_name(&described.p4runtime_format);
    let single = described.p4runtime_entries_file.iter().map(|path| Ok((path, form)));
    let files = listed.chain(single).collect::<Result<Vec<_>, Failure>>()?;
    if files.is_empty() {
        return Ok(());
    }
    let entries = InitialEntries::of(image).map_err(Failure::Failed)?;
    for (path, form) in files {
        let bytes = match form {
            Form::Text => entries.to_text().into_bytes(),
            Form::Json => entries.to_json().map_err(Failure::Failed)?.into_bytes(),
            Form::Binary => entries.to_binary(),
        };
        write(path, &bytes)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| Failure::failed(path.display(), error))
}

/// The form of P4Info that the ending of a file stands for.
fn form_of_file(path: &Path) -> Result<Form, Failure> {
    if path.extension().is_some_and(|ending| ending == "txt") {
        tell_line("warning: the ending .txt is deprecated, use .txtpb");
    }
    Form::by_ending(path).ok_or_else(|| {
        Failure::Failed(format!(
            "{}: the form is not known by the ending: .txtpb, .txt, .json and .bin are",
            path.display()
        ))
    })
}

/// The form that `--p4runtime-format` names.
fn form_of_name(name: &str) -> Form {
    match name {
        "text" => Form::Text,
        "json" => Form::Json,
        _ => Form::Binary,
    }
}
