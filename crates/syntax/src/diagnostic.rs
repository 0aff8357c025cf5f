//! What went wrong, where, and what would help.
//!
//! A [`Diagnostic`] is plain data: the front end's crates make them, the command line shows them. [`Diagnostics`]
//! collects them with a written limit, so that a damaged input cannot fill the memory with its errors.

use crate::span::Span;

/// Most errors kept; further ones are counted only. Warnings have the same limit of their own.
pub const MAX_KEPT: usize = 200;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program means something; perhaps not what its author thinks.
    Warning,
    /// The program is refused.
    Error,
}

/// One finding, with the places it is about.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A short fixed name of this kind of finding, such as `syntax` or `unknown-name`.
    pub code: &'static str,
    /// One line: what is wrong.
    pub message: String,
    /// The place it is about.
    pub primary: Span,
    /// What to write at the primary place; may be empty.
    pub label: String,
    /// Other places that matter and why.
    pub secondary: Vec<(Span, String)>,
    /// What would put it right.
    pub help: Option<String>,
    /// Further lines.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, primary: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, primary, message.into())
    }

    /// A warning.
    pub fn warning(code: &'static str, primary: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, primary, message.into())
    }

    fn new(severity: Severity, code: &'static str, primary: Span, message: String) -> Self {
        Self {
            severity,
            code,
            message,
            primary,
            label: String::new(),
            secondary: Vec::new(),
            help: None,
            notes: Vec::new(),
        }
    }

    /// Sets what is written at the primary place.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn with_secondary(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push((span, text.into()));
        self
    }

    /// Sets what would put it right.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a line.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Whether the program is refused.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Findings in the order they were made, at most [`MAX_KEPT`] errors and as many warnings.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding, or only counts it when the limit is reached.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = if diagnostic.is_error() { &mut self.errors } else { &mut self.warnings };
        *count += 1;
        if *count <= MAX_KEPT {
            self.kept.push(diagnostic);
        }
    }

    /// The kept findings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors, those not kept included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// The number of findings that were counted but not kept.
    pub fn suppressed(&self) -> usize {
        self.errors + self.warnings - self.kept.len()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, iter: I) {
        iter.into_iter().for_each(|d| self.push(d));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_up_to_the_limit_and_counts_the_rest() {
        let mut all = Diagnostics::new();
        for i in 0..MAX_KEPT + 5 {
            all.push(Diagnostic::error("test", Span::default(), format!("error {i}")));
        }
        all.push(Diagnostic::warning("test", Span::default(), "a warning still gets in"));
        assert_eq!(all.error_count(), MAX_KEPT + 5);
        assert_eq!(all.suppressed(), 5);
        assert_eq!(all.iter().count(), MAX_KEPT + 1);
        assert!(all.has_errors());
    }
}
