//! Command lines as p4c and bmv2 understand them.

use crate::cli::{Diagnostics, SourceArgs, Standard};
use crate::findings::{Failure, Findings};
use crate::source::{CheckedProgram, load};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A program, and how the compilers of p4c read it.
#[derive(Debug, clap::Args)]
pub(super) struct ProgramArgs {
    /// The program
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Folder to look for included files in
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// Macro to define
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    defines: Vec<String>,
    /// Macro not to define
    #[arg(short = 'U', value_name = "NAME")]
    undefines: Vec<String>,
    /// Version of the language
    #[arg(long, visible_alias = "p4v", value_parser = standard, default_value = "p4-16")]
    std: Standard,
    /// Shows no warnings
    #[arg(long = "Wdisable", value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    no_warnings: Vec<String>,
}

impl ProgramArgs {
    /// Reads the program and checks it.
    pub(super) fn load(&self, findings: &mut Findings) -> Result<CheckedProgram, Failure> {
        if !self.no_warnings.is_empty() {
            findings.hide_warnings();
        }
        let source = SourceArgs {
            include_dirs: self.include_dirs.clone(),
            defines: self.defines.clone(),
            undefines: self.undefines.clone(),
            std: Some(self.std),
            diagnostics: Diagnostics::Full,
        };
        load(&self.file, &source, findings)
    }
}

/// The version of the language, by any of the names that p4c has for it.
fn standard(text: &str) -> Result<Standard, String> {
    match text {
        "16" | "1.2" | "p4-16" | "p4_16" => Ok(Standard::P4_16),
        "14" | "1.0" | "p4-14" | "p4_14" => Ok(Standard::P4_14),
        _ => Err("p4-16 or p4-14 is expected".into()),
    }
}

/// Where P4Info goes.
#[derive(Debug, clap::Args)]
pub(super) struct P4infoFiles {
    /// P4Info: a list of files; endings .txtpb, .txt, .json, .bin tell the form
    #[arg(long, value_name = "FILE[,FILE]", value_delimiter = ',')]
    pub(super) p4runtime_files: Vec<PathBuf>,
    /// P4Info: one file, in the form of --p4runtime-format
    #[arg(long, value_name = "FILE")]
    pub(super) p4runtime_file: Option<PathBuf>,
    /// Entries of the source, as a WriteRequest of P4Runtime: a list of files, as --p4runtime-files
    #[arg(long, value_name = "FILE[,FILE]", value_delimiter = ',')]
    pub(super) p4runtime_entries_files: Vec<PathBuf>,
    /// Entries of the source: one file, in the form of --p4runtime-format
    #[arg(long, value_name = "FILE")]
    pub(super) p4runtime_entries_file: Option<PathBuf>,
    /// The form of --p4runtime-file and --p4runtime-entries-file
    #[arg(long, value_name = "FORM", value_parser = ["binary", "json", "text"], default_value = "binary")]
    pub(super) p4runtime_format: String,
}

/// Reads options; with `status` for wrong usage, 0 for help and the version.
pub(super) fn parse<T: CommandFactory + FromArgMatches>(
    name: &'static str,
    args: Vec<OsString>,
    status: u8,
) -> Result<T, ExitCode> {
    let args = std::iter::once(OsString::from(name)).chain(args);
    let parsed = T::command().name(name).try_get_matches_from(args).and_then(|matches| {
        let mut matches = matches;
        T::from_arg_matches_mut(&mut matches)
    });
    parsed.map_err(|error| {
        // A reader that has gone has no use for it.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(status) } else { ExitCode::SUCCESS }
    })
}

/// Long options that begin with one dash, with two, as the parser wants them.
pub(super) fn with_two_dashes(args: Vec<OsString>, long: &[&str]) -> Vec<OsString> {
    let double = |arg: OsString| match arg.to_str() {
        Some(text) if long.contains(&text.split('=').next().unwrap_or(text)) => format!("-{text}").into(),
        _ => arg,
    };
    args.into_iter().map(double).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_options_get_a_dash() {
        let args = ["-Xp4c=-v", "-X", "-MF", "file", "-MFx"].map(OsString::from).to_vec();
        assert_eq!(with_two_dashes(args, &["-Xp4c", "-MF"]), ["--Xp4c=-v", "-X", "--MF", "file", "-MFx"]);
    }
}
