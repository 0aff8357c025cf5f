//! What was found wrong: shown on standard error as it is found, kept for the JSON object.

use crate::cli::Diagnostics;
use crate::output::{has_colour, is_quiet, tell_coloured, tell_line};
use millrace_commands::Refusal;
use millrace_syntax::{Diagnostic, Severity, SourceMap, render, render_lines};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The findings say it.
    Found,
    /// This says it: something could not be read, opened or written.
    Failed(String),
    /// The command line asks for what there is not.
    Usage(String),
    /// The command itself has said it, in JSON too.
    Told,
}

impl Failure {
    pub(crate) fn failed(what: impl Display, error: impl Display) -> Failure {
        Failure::Failed(format!("{what}: {error}"))
    }

    pub(crate) fn show(&self) {
        match self {
            Failure::Failed(message) => tell_line(format_args!("error: {message}")),
            Failure::Usage(message) => {
                tell_line(format_args!("error: {message}\n\nFor more information, try '--help'."))
            }
            Failure::Found | Failure::Told => {}
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Refuses an option `NAME=VALUE` that is given twice for one name: which of the two is meant nobody knows.
pub(crate) fn once_each<'n>(option: &str, names: impl Iterator<Item = &'n String>) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(Failure::Usage(format!("{option}: `{}` is given twice", name.escape_debug())));
        }
    }
    Ok(())
}

/// The findings of a command.
#[derive(Debug)]
pub(crate) struct Findings {
    shown: Vec<Value>,
    errors: usize,
    warnings: usize,
    colour: bool,
    form: Diagnostics,
    /// Whether warnings are neither shown nor counted.
    without_warnings: bool,
}

impl Findings {
    pub(crate) fn new() -> Findings {
        Findings {
            shown: Vec::new(),
            errors: 0,
            warnings: 0,
            colour: has_colour(),
            form: Diagnostics::Full,
            without_warnings: is_quiet(),
        }
    }

    /// From now on shows findings in this form.
    pub(crate) fn set_form(&mut self, form: Diagnostics) {
        self.form = form;
    }

    /// From now on shows errors only.
    pub(crate) fn hide_warnings(&mut self) {
        self.without_warnings = true;
    }

    /// Whether there were warnings.
    pub(crate) fn has_warnings(&self) -> bool {
        self.warnings > 0
    }

    /// Shows a diagnostic on standard error.
    pub(crate) fn show(&mut self, diagnostic: &Diagnostic, sources: &SourceMap) {
        if self.without_warnings && diagnostic.severity == Severity::Warning {
            return;
        }
        match self.form {
            Diagnostics::Full => tell_coloured(render(diagnostic, sources, self.colour)),
            Diagnostics::Gcc => tell_coloured(render_lines(diagnostic, sources)),
        }
        let place = sources.location(diagnostic.primary);
        let severity = match diagnostic.severity {
            Severity::Error => {
                self.errors += 1;
                "error"
            }
            Severity::Warning => {
                self.warnings += 1;
                "warning"
            }
        };
        self.shown.push(json!({
            "severity": severity,
            "code": diagnostic.code,
            "message": diagnostic.message,
            "file": *place.file,
            "line": place.line,
            "column": place.column,
            "help": diagnostic.help,
            "notes": diagnostic.notes,
        }));
    }

    /// Shows what was refused of a control text.
    pub(crate) fn refused(
        &mut self,
        name: &str,
        text: &str,
        refusals: &[Refusal],
        code: &'static str,
    ) -> Failure {
        let (sources, diagnostics) = millrace_commands::diagnostics(name, text, refusals, code);
        diagnostics.iter().for_each(|diagnostic| self.show(diagnostic, &sources));
        self.summary(0);
        Failure::Found
    }

    /// Says on standard error how much was found, `suppressed` of it not shown.
    pub(crate) fn summary(&self, suppressed: usize) {
        let count = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            many => Some(format!("{many} {what}s")),
        };
        let parts = [
            count(self.errors, "error"),
            count(self.warnings, "warning"),
            (suppressed > 0).then(|| format!("{suppressed} more not shown")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            tell_line(parts.join(", "));
        }
    }

    /// The findings for JSON.
    pub(crate) fn list(&self) -> &[Value] {
        &self.shown
    }

    /// What a command that failed prints with `--json`.
    pub(crate) fn as_json(&self, failure: &Failure) -> Value {
        let error = match failure {
            Failure::Failed(message) | Failure::Usage(message) => Some(message),
            Failure::Found | Failure::Told => None,
        };
        json!({ "ok": false, "error": error, "diagnostics": self.shown })
    }
}
