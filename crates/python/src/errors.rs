//! From errors of the crates below to Python's exceptions.

use crate::records;
use millrace_commands::{Refusal, nearest};
use millrace_state::WriteError;
use millrace_syntax::{Diagnostic, Severity, SourceMap, render};
use pyo3::CastError;
use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use std::fmt::Display;
use std::path::Path;

/// The exceptions as Python has them.
pub(crate) mod raised {
    pyo3::import_exception!(millrace.errors, MillraceError);
    pyo3::import_exception!(millrace.errors, CompileError);
    pyo3::import_exception!(millrace.errors, CommandError);
    pyo3::import_exception!(millrace.errors, UnknownNameError);
    pyo3::import_exception!(millrace.errors, WriteError);
}

/// Why something that came from Python was not taken.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// It is of a type that has no place there.
    Type(String),
    /// Its value does not fit.
    Value(String),
    /// Asking it raised an exception, or a name was wrong.
    Raised(PyErr),
}

impl Wrong {
    /// Says what the value was for.
    pub(crate) fn about(self, what: impl Display) -> Wrong {
        match self {
            Wrong::Type(message) => Wrong::Type(format!("{what}: {message}")),
            Wrong::Value(message) => Wrong::Value(format!("{what}: {message}")),
            raised @ Wrong::Raised(_) => raised,
        }
    }
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Wrong {
        Wrong::Raised(error)
    }
}

impl From<CastError<'_, '_>> for Wrong {
    fn from(error: CastError<'_, '_>) -> Wrong {
        Wrong::Raised(error.into())
    }
}

impl From<Wrong> for PyErr {
    fn from(wrong: Wrong) -> PyErr {
        match wrong {
            Wrong::Type(message) => PyTypeError::new_err(message),
            Wrong::Value(message) => raised::WriteError::new_err(message),
            Wrong::Raised(error) => error,
        }
    }
}

/// A refusal by the objects of a program. A name that is nearly right is put right.
pub(crate) fn refused(error: WriteError) -> PyErr {
    match &error {
        WriteError::Unknown { name, known, .. } => {
            let near = nearest(name, known.iter().map(String::as_str));
            let help = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
            raised::UnknownNameError::new_err(format!("{error}{help}"))
        }
        WriteError::Ambiguous { .. } => raised::UnknownNameError::new_err(error.to_string()),
        WriteError::Index { .. } => PyIndexError::new_err(error.to_string()),
        _ => raised::WriteError::new_err(error.to_string()),
    }
}

/// Something that a switch refused.
pub(crate) fn failed(error: impl Display) -> PyErr {
    raised::MillraceError::new_err(error.to_string())
}

/// A file that cannot be read: `FileNotFoundError`, `PermissionError`, ...
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> PyErr {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, reason, path.to_string_lossy().into_owned())),
        None => PyOSError::new_err(format!("{}: {reason}", path.display())),
    }
}

/// A finding as plain data.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    severity: &'static str,
    code: &'static str,
    message: String,
    file: String,
    line: u32,
    column: u32,
    help: Option<String>,
    notes: Vec<String>,
    text: String,
}

impl Found {
    pub(crate) fn new(diagnostic: &Diagnostic, sources: &SourceMap) -> Found {
        let place = sources.location(diagnostic.primary);
        Found {
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: diagnostic.code,
            message: diagnostic.message.clone(),
            file: place.file.to_string(),
            line: place.line,
            column: place.column,
            help: diagnostic.help.clone(),
            notes: diagnostic.notes.clone(),
            text: render(diagnostic, sources, false),
        }
    }

    fn is_error(&self) -> bool {
        self.severity == "error"
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Found { severity, code, message, file, line, column, help, notes, text } = self;
        let fields = (severity, code, message, file, line, column, help, notes, text);
        Ok(records::make(py, "Diagnostic", fields)?.unbind())
    }
}

/// Findings as a list of `Diagnostic`.
pub(crate) fn to_list(py: Python<'_>, found: Vec<Found>) -> PyResult<Vec<Py<PyAny>>> {
    found.into_iter().map(|one| one.into_python(py)).collect()
}

/// `CompileError` for a program with these findings.
pub(crate) fn compile_error(py: Python<'_>, found: Vec<Found>) -> PyErr {
    let text: String = found.iter().filter(|one| one.is_error()).map(|one| one.text.as_str()).collect();
    match to_list(py, found) {
        Ok(list) => raised::CompileError::new_err((text, list)),
        Err(error) => error,
    }
}

/// `CommandError` for a text of commands or P4Runtime JSON of which this was refused.
pub(crate) fn command_error(py: Python<'_>, name: &str, text: &str, refusals: &[Refusal]) -> PyErr {
    let (sources, diagnostics) = millrace_commands::diagnostics(name, text, refusals, "entry");
    let found: Vec<Found> = diagnostics.iter().map(|one| Found::new(one, &sources)).collect();
    let shown: String = found.iter().map(|one| one.text.as_str()).collect();
    match to_list(py, found) {
        Ok(list) => raised::CommandError::new_err((shown, list)),
        Err(error) => error,
    }
}
