//! Command lines as p4c and bmv2 understand them.

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

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
