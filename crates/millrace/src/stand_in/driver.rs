//! `p4c`: the driver of the compilers, which puts what it makes into a folder.

use super::compiler;
use super::dependencies::{self, PreprocessorArgs};
use super::options::{P4infoFiles, parse, with_two_dashes};
use crate::output::{say_line, tell_line};
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compiles a P4 program for the switch of Millrace; the image is NAME.json in the folder for the output.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true, args_override_self = true)]
struct Args {
    /// The program
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The folder for the output
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// The target: bmv2
    #[arg(short = 'b', long, default_value = "bmv2")]
    target: String,
    /// The architecture
    #[arg(short, long, default_value = "v1model")]
    arch: String,
    /// Version of the language
    #[arg(short = 'x', long, default_value = "p4-16")]
    std: String,
    /// Prints the version
    #[arg(short = 'V', long)]
    version: bool,
    /// Prints the targets
    #[arg(long, visible_alias = "target-help")]
    help_targets: bool,
    /// Prints what would be called
    #[arg(long, alias = "###")]
    test_only: bool,
    /// Folder to look for included files in
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<OsString>,
    /// Macro to define
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    defines: Vec<OsString>,
    /// Option for the compiler
    #[arg(long = "Xp4c", value_name = "ARG", allow_hyphen_values = true)]
    compiler: Vec<OsString>,
    /// Option for the preprocessor: -I, -D and -U
    #[arg(long = "Xpreprocessor", value_name = "ARG", allow_hyphen_values = true)]
    preprocessor: Vec<OsString>,
    #[command(flatten)]
    front: PreprocessorArgs,
    #[command(flatten)]
    described: P4infoFiles,
    /// Shows no warnings
    #[arg(long = "Wdisable", value_name = "CODE", num_args = 0..=1, default_missing_value = "")]
    no_warnings: Vec<String>,
    /// Takes warnings for errors
    #[arg(long = "Werror", value_name = "CODE", num_args = 0..=1, default_missing_value = "")]
    warnings_are_errors: Vec<String>,
    #[command(flatten)]
    ignored: Ignored,
}

/// What is taken so that scripts run, and changes nothing.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without effect")]
struct Ignored {
    /// All is done in one step
    #[arg(short = 'c', long)]
    compile: bool,
    /// There is no separate preprocessor
    #[arg(short = 'e')]
    skip_preprocessor: bool,
    /// There is no assembler after the compiler
    #[arg(short = 'S')]
    run_till_assembler: bool,
    /// The code is the same
    #[arg(short = 'g')]
    debug_info: bool,
    /// A debugging aid of p4c
    #[arg(short = 'v', long)]
    debug: bool,
    /// The code is the same
    #[arg(long)]
    ndebug: bool,
    /// Parsers are inlined as is best
    #[arg(long)]
    parser_inline_opt: bool,
    /// There is no assembler after the compiler
    #[arg(long = "Xassembler", value_name = "ARG", allow_hyphen_values = true)]
    assembler: Vec<OsString>,
    /// There is no linker after the compiler
    #[arg(long = "Xlinker", value_name = "ARG", allow_hyphen_values = true)]
    linker: Vec<OsString>,
}

/// Options that have one dash.
const ONE_DASH: [&str; 5] = ["-Xp4c", "-Xpreprocessor", "-Xassembler", "-Xlinker", "-###"];

pub(super) fn main(args: Vec<OsString>) -> ExitCode {
    let one_dash = [&ONE_DASH[..], &dependencies::ONE_DASH].concat();
    match parse::<Args>("p4c", with_two_dashes(args, &one_dash), 2) {
        Ok(args) => drive(args),
        Err(status) => status,
    }
}

fn drive(args: Args) -> ExitCode {
    if args.version {
        say_line(format_args!("p4c {} (Millrace)", env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    if args.help_targets {
        say_line("Supported targets in \"target, arch\" tuple:\nbmv2-v1model\nbmv2-psa\nbmv2-pna");
        return ExitCode::SUCCESS;
    }
    if args.target != "bmv2" {
        tell_line(format_args!("p4c: error: Unknown backend: {}-{}", args.target, args.arch));
        return ExitCode::from(2);
    }
    let Some(file) = &args.file else {
        tell_line("p4c: error: no input pathname was specified.");
        return ExitCode::from(2);
    };
    let Some(stem) = file.file_stem().filter(|_| file.is_file()) else {
        tell_line(format_args!("\nERROR: the input file \"{}\" does not exist.", file.display()));
        return ExitCode::FAILURE;
    };
    let mut image = args.output.join(stem);
    image.as_mut_os_string().push(".json");
    let call = compiler_call(&args, file.into(), image.into());
    if args.test_only {
        let words = call.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
        say_line(format_args!("p4c-bm2-ss {}", words.join(" ")));
        return ExitCode::SUCCESS;
    }
    if let Err(error) = std::fs::create_dir_all(&args.output) {
        tell_line(format_args!("error: {}: {error}", args.output.display()));
        return ExitCode::FAILURE;
    }
    match args.front.run(file, &args.output, &args.include_dirs, &args.defines) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => compiler::main(call),
        Err(failure) => {
            failure.show();
            ExitCode::FAILURE
        }
    }
}

/// The command line of the compiler.
fn compiler_call(args: &Args, file: OsString, image: OsString) -> Vec<OsString> {
    let mut call: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: OsString| call.extend([name.into(), value]);
    args.include_dirs.iter().for_each(|folder| option("-I", folder.clone()));
    args.defines.iter().for_each(|define| option("-D", define.clone()));
    option("--std", args.std.replace("P4₁₆", "p4-16").replace("P4₁₄", "p4-14").into());
    option("--arch", args.arch.clone().into());
    option("-o", image);
    let P4infoFiles {
        p4runtime_files,
        p4runtime_file,
        p4runtime_entries_files,
        p4runtime_entries_file,
        p4runtime_format,
    } = &args.described;
    let entries = |file: &PathBuf| file.as_os_str().to_owned();
    p4runtime_entries_files.iter().for_each(|file| option("--p4runtime-entries-files", entries(file)));
    p4runtime_entries_file.iter().for_each(|file| option("--p4runtime-entries-file", entries(file)));
    p4runtime_files.iter().for_each(|file| option("--p4runtime-files", file.as_os_str().into()));
    p4runtime_file.iter().for_each(|file| option("--p4runtime-file", file.as_os_str().into()));
    option("--p4runtime-format", p4runtime_format.into());
    call.extend(args.no_warnings.iter().map(|code| format!("--Wdisable={code}").into()));
    call.extend(args.warnings_are_errors.iter().map(|code| format!("--Werror={code}").into()));
    call.extend(args.preprocessor.iter().chain(&args.compiler).cloned());
    call.push(file);
    call
}
