//! From a program's text to a switch that runs it.

use crate::errors::{self, Found, compile_error, failed, unreadable};
use millrace_compile::{LowerError, Options, Source, Standard, definition};
use millrace_dataplane::{Switch, SwitchConfig};
use millrace_describe::p4info::{describe, to_text};
use millrace_pipeline::Program;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::path::PathBuf;
use std::sync::Arc;

/// The stack of the thread that compiles, in bytes: nested programs need some, and Python's threads may have little.
const STACK_BYTES: usize = 16 << 20;

/// The text of a program, or where it is, and how to read it.
#[derive(Debug)]
pub(crate) struct Text {
    source: Where,
    standard: Standard,
    options: Options,
}

#[derive(Debug)]
enum Where {
    Path(PathBuf),
    Text { name: String, text: String },
}

/// A program that runs, and what was found while it was compiled.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) switch: Switch,
    pub(crate) program: Arc<Program>,
    pub(crate) p4info: String,
    pub(crate) warnings: Vec<Found>,
}

/// Why there is no switch.
enum Failure {
    Found(Vec<Found>),
    Failed(String),
}

impl Text {
    /// The options as Python gives them: folders, macros (a dict or a list of `NAME` and `NAME=VALUE`), the language.
    pub(crate) fn options(
        include: Option<Vec<PathBuf>>,
        defines: Option<&Bound<'_, PyAny>>,
        std: &str,
    ) -> PyResult<(Standard, Options)> {
        let standard = match std {
            "p4-16" => Standard::P4_16,
            "p4-14" => Standard::P4_14,
            other => {
                let message = format!("std is \"p4-16\" or \"p4-14\", not \"{other}\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let defines = defines.map_or_else(|| Ok(Vec::new()), macros)?;
        let options = Options { include_dirs: include.unwrap_or_default(), defines, ..Options::default() };
        Ok((standard, options))
    }

    pub(crate) fn in_file(path: PathBuf, (standard, options): (Standard, Options)) -> PyResult<Text> {
        // A file that cannot be read is the exception that Python has for it.
        std::fs::File::open(&path).map_err(|error| unreadable(&path, &error))?;
        Ok(Text { source: Where::Path(path), standard, options })
    }

    pub(crate) fn named(name: String, text: String, (standard, options): (Standard, Options)) -> Text {
        Text { source: Where::Text { name, text }, standard, options }
    }

    fn check(&self) -> millrace_compile::Checked {
        let source = match &self.source {
            Where::Path(path) => Source::Path(path),
            Where::Text { name, text } => Source::Text(name, text),
        };
        millrace_compile::check(source, self.standard, &self.options)
    }

    /// What is wrong with the program, and what it may mean otherwise than its author thinks.
    fn findings(&self) -> Vec<Found> {
        let mut checked = self.check();
        checked.find_all();
        checked.findings.iter().map(|one| Found::new(one, &checked.sources)).collect()
    }

    /// Compiles the program, on a thread with a stack of its own, while other Python threads run.
    pub(crate) fn start(self, py: Python<'_>, config: SwitchConfig) -> PyResult<Started> {
        let compile = || {
            let checked = self.check();
            let found = |more: &[millrace_syntax::Diagnostic]| -> Vec<Found> {
                checked.findings.iter().chain(more).map(|one| Found::new(one, &checked.sources)).collect()
            };
            if checked.has_errors() {
                return Err(Failure::Found(found(&[])));
            }
            let program = checked.lower().map_err(|error| match error {
                LowerError::Found(more) => Failure::Found(found(&more)),
                broken @ LowerError::Broken(_) => Failure::Failed(broken.to_string()),
            })?;
            let switch = Switch::new(Arc::clone(&program), config);
            let switch = switch.map_err(|error| Failure::Failed(error.to_string()))?;
            let p4info = to_text(&describe(&checked.typed).info);
            Ok(Started { switch, program, p4info, warnings: found(&[]) })
        };
        on_a_large_stack(py, compile)?.map_err(|failure| match failure {
            Failure::Found(found) => compile_error(py, found),
            Failure::Failed(message) => failed(message),
        })
    }
}

/// Looks for mistakes in a P4 program without running it.
///
/// Give the path of a file, or the text itself as `source`. Returns what was found, errors and warnings, as `Diagnostic`
/// objects in the order of their places; an empty list for a program without a flaw. `include`, `defines` and `std` are as
/// for `Switch`. Raises `OSError` when the file cannot be read.
#[pyfunction]
#[pyo3(signature = (program = None, *, source = None, name = "program.p4", include = None, defines = None, std = "p4-16"))]
pub(crate) fn check(
    py: Python<'_>,
    program: Option<PathBuf>,
    source: Option<String>,
    name: &str,
    include: Option<Vec<PathBuf>>,
    defines: Option<&Bound<'_, PyAny>>,
    std: &str,
) -> PyResult<Vec<Py<PyAny>>> {
    let options = Text::options(include, defines, std)?;
    let text = match (program, source) {
        (Some(path), None) => Text::in_file(path, options)?,
        (None, Some(source)) => Text::named(name.to_owned(), source, options),
        _ => return Err(PyTypeError::new_err("check() takes the path of a program, or its text as source=")),
    };
    errors::to_list(py, on_a_large_stack(py, || text.findings())?)
}

/// Macros: a dict of names and values, where `None` is 1 as on a command line, or a list of `NAME` and `NAME=VALUE`.
fn macros(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    if let Ok(dict) = given.cast::<PyDict>() {
        let value = |value: &Bound<'_, PyAny>| match value.is_none() {
            true => Ok("1".to_owned()),
            false => value.str().and_then(|text| text.extract()),
        };
        return dict.iter().map(|(name, body)| Ok((name.extract()?, value(&body)?))).collect();
    }
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("defines are a dict or a list"));
    }
    let given: Vec<String> = given.extract()?;
    Ok(given.iter().map(|text| definition(text)).collect())
}

fn on_a_large_stack<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            let thread = thread.map_err(|error| failed(format!("no thread to compile on: {error}")))?;
            thread.join().map_err(|_| failed("the compiler failed (a bug)"))
        })
    })
}
