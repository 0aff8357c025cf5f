//! What `p4c` makes of the preprocessor alone: the text before the compiler, and rules for `make`.

use crate::findings::{Failure, Findings};
use crate::output::say;
use clap::ArgAction;
use millrace_compile::definition;
use millrace_syntax::{Options, SourceFile, Unfolded, builtin_include, unfold_path};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of the preprocessor.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Preprocessor")]
pub(super) struct PreprocessorArgs {
    /// Writes what the preprocessor makes to NAME.p4i in the folder for the output, and ends
    #[arg(short = 'E')]
    only: bool,
    /// Writes a rule for make that names the files that were read, and ends
    #[arg(long = "M")]
    rule_only: bool,
    /// Writes such a rule next to the image, to NAME.d
    #[arg(long = "MD")]
    rule: bool,
    /// Where to write the rule
    #[arg(long = "MF", value_name = "FILE")]
    rule_file: Option<PathBuf>,
    /// What the rule is for, in place of NAME.o
    #[arg(long = "MT", alias = "MQ", value_name = "TARGET", action = ArgAction::Append)]
    targets: Vec<String>,
    /// A rule without a recipe for each included file too, for when one goes away
    #[arg(long = "MP")]
    phony: bool,
    /// Without effect: a file that is missing is an error
    #[arg(long = "MG")]
    missing: bool,
}

/// Whether a file is one that is built in, and not on the disk.
fn is_builtin(file: &SourceFile) -> bool {
    let name = file.name.strip_prefix(BUILTIN);
    name.and_then(builtin_include).is_some_and(|text| *text == *file.text) || file.name.starts_with('<')
}

/// Before the names of files that are built in.
const BUILTIN: &str = "p4include/";

/// Options of them that have one dash.
pub(super) const ONE_DASH: [&str; 7] = ["-M", "-MD", "-MF", "-MT", "-MQ", "-MP", "-MG"];

impl PreprocessorArgs {
    /// Does what they ask for; says whether that is all.
    pub(super) fn run(
        &self,
        source: &Path,
        output: &Path,
        include_dirs: &[OsString],
        defines: &[OsString],
    ) -> Result<bool, Failure> {
        if !self.only && !self.rule_only && !self.rule {
            return Ok(false);
        }
        let define = |define: &OsString| definition(&define.to_string_lossy());
        let defines: Vec<(String, String)> = defines.iter().map(define).collect();
        let include_dirs = include_dirs.iter().map(PathBuf::from).collect();
        let unfolded = unfold_path(source, &Options { include_dirs, defines, ..Options::default() });
        let mut findings = Findings::new();
        unfolded.diagnostics.iter().for_each(|found| findings.show(found, &unfolded.sources));
        findings.summary(unfolded.diagnostics.suppressed());
        if unfolded.diagnostics.has_errors() {
            return Err(Failure::Found);
        }
        let sibling =
            |ending: &str| output.join(source.with_extension(ending).file_name().unwrap_or_default());
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|error| Failure::failed(path.display(), error))
        };
        if self.rule || self.rule_only {
            let rule = self.rule_text(source, &unfolded);
            match &self.rule_file {
                Some(file) => write(file, &rule)?,
                None if self.rule_only => say(rule),
                None => write(&sibling("d"), &rule)?,
            }
        }
        if self.only && !self.rule_only {
            write(&sibling("p4i"), &unfolded.text)?;
        }
        Ok(self.only || self.rule_only)
    }

    /// `router.o: router.p4 headers.p4`; what is built in is no file.
    fn rule_text(&self, source: &Path, unfolded: &Unfolded) -> String {
        let target =
            || source.with_extension("o").file_name().unwrap_or_default().to_string_lossy().into_owned();
        let targets = if self.targets.is_empty() { vec![target()] } else { self.targets.clone() };
        let mut files: Vec<&str> = Vec::new();
        for file in unfolded.sources.files() {
            if !is_builtin(file) && !files.contains(&&*file.name) {
                files.push(&file.name);
            }
        }
        let quoted = |files: &[&str]| files.iter().map(|file| file.replace(' ', "\\ ")).collect::<Vec<_>>();
        let mut text = format!("{}: {}\n", targets.join(" "), quoted(&files).join(" "));
        if self.phony {
            quoted(&files[1.min(files.len())..]).iter().for_each(|file| text += &format!("\n{file}:\n"));
        }
        text
    }
}
