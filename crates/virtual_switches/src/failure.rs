//! Why something is not done.

use millrace_device_file::Problems;
use std::fmt;

/// Why something is not done, in words for whoever asked for it.
#[derive(Debug)]
pub enum Failure {
    /// The text of a file is wrong.
    File(Box<Problems>),
    /// There is no such switch, link or program that the client may see.
    NotFound(String),
    /// It cannot be done as it was asked for: the program, the entries, a port.
    Invalid(String),
    /// A limit is reached.
    Limit(String),
    /// It was right, and the system or the device could not do it. What was done before it is named.
    Failed {
        /// In words.
        reason: String,
        /// Changes that were done.
        done: Vec<String>,
    },
}

impl Failure {
    pub(crate) fn failed(reason: impl fmt::Display) -> Failure {
        Failure::Failed { reason: reason.to_string(), done: Vec::new() }
    }

    /// Something of a switch is wrong.
    pub(crate) fn of_switch(name: &str, reason: impl fmt::Display) -> Failure {
        Failure::Invalid(format!("switch {name}: {reason}"))
    }

    pub(crate) fn no_switch(name: &str) -> Failure {
        Failure::NotFound(format!("there is no switch `{}`", short(name)))
    }
}

/// Most characters of a text of a client that an answer repeats.
const MAX_REPEATED: usize = 64;

/// A text of a client as an answer repeats it.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_REPEATED) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::File(problems) => match problems.problems.len() + problems.more {
                1 => f.write_str("the file has a mistake"),
                many => write!(f, "the file has {many} mistakes"),
            },
            Failure::NotFound(reason) | Failure::Invalid(reason) | Failure::Limit(reason) => {
                f.write_str(reason)
            }
            Failure::Failed { reason, done } if done.is_empty() => f.write_str(reason),
            Failure::Failed { reason, done } => {
                write!(f, "{reason}; done before it: {}", done.join("; "))
            }
        }
    }
}

impl std::error::Error for Failure {}
