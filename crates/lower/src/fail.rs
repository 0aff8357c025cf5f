//! How lowering fails: with one diagnostic, at the place in the source that it is about.

use millrace_syntax::{Diagnostic, Span};

/// The result of lowering something.
pub(crate) type Lower<T> = Result<T, Box<Diagnostic>>;

/// Kinds of findings.
pub(crate) mod code {
    /// A construct that this place of the pipeline cannot hold.
    pub(crate) const PLACE: &str = "not-here";
    /// A written limit is exceeded.
    pub(crate) const LIMIT: &str = "limit";
    /// A value must be known at compile time.
    pub(crate) const CONSTANT: &str = "not-constant";
    /// The architecture does not allow that.
    pub(crate) const ARCHITECTURE: &str = "architecture";
    /// The package, its blocks or an extern belong to another architecture.
    pub(crate) const FOREIGN: &str = "foreign";
    /// A chain of plugins that the program asks for.
    pub(crate) const CHAIN: &str = "chain";
    /// There is nothing to lower.
    pub(crate) const NO_MAIN: &str = "no-main";
    /// A program sets what only the switch sets.
    pub(crate) const READ_ONLY: &str = "read-only";
    /// A list of fields to keep has no field.
    pub(crate) const EMPTY_LIST: &str = "empty-field-list";
    /// A register that is read and then written, by several workers.
    pub(crate) const SHARED_REGISTER: &str = "shared-register";
    /// Random numbers of several workers.
    pub(crate) const OWN_RANDOM: &str = "own-random";
    /// The typed program contradicts itself: a fault of the compiler, not of the source.
    pub(crate) const INTERNAL: &str = "internal";
}

/// Fails.
pub(crate) fn fail<T>(code: &'static str, span: Span, message: impl Into<String>) -> Lower<T> {
    Err(Box::new(Diagnostic::error(code, span, message)))
}

/// Fails with what the checker should have excluded.
pub(crate) fn internal<T>(span: Span, message: impl Into<String>) -> Lower<T> {
    let mut diagnostic = Diagnostic::error(code::INTERNAL, span, message);
    diagnostic.notes.push("this is a fault in Millrace, not in the program".into());
    Err(Box::new(diagnostic))
}
