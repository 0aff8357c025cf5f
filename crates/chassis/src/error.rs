//! Why a program cannot be run.

use std::fmt;

/// Why somebody's program does not run, with a sentence for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// The kind of reason.
    pub why: Why,
    /// What is to be told.
    pub message: String,
}

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is no program, or none that this switch can run.
    Invalid,
    /// Nobody waits for it any more.
    Cancelled,
    /// [`crate::MAX_WAITING_PROGRAMS`] wait already.
    TooMany,
    /// The compiler broke one of its own rules.
    Broken,
}

impl ProgramError {
    pub(crate) fn new(why: Why, message: impl Into<String>) -> ProgramError {
        ProgramError { why, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ProgramError {
        ProgramError::new(Why::Invalid, message)
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProgramError {}
