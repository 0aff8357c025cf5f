//! What is wrong with a chain.

use std::fmt;
use std::io;
use std::ops::Range;

/// Why a chain cannot be used.
#[derive(Debug)]
pub enum InputError {
    /// Its text is wrong.
    Text(TextError),
    /// A line of a list is wrong.
    List {
        /// The file, or the list as it is in the chain.
        list: String,
        /// The number of the entry, or of the line of a file, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The operating system refused something.
    System {
        /// What was to be done to what, as in `open flows.json`.
        action: String,
        /// Its answer.
        error: io::Error,
    },
    /// The memory for tables or flows is not to be had.
    Memory,
    /// A chain is of a port that there is not, or that has one already.
    Port(String),
}

impl InputError {
    pub(crate) fn system(action: impl Into<String>, error: io::Error) -> InputError {
        InputError::System { action: action.into(), error }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Text(error) => error.fmt(f),
            InputError::List { list, line, message } => write!(f, "{list}, entry {line}: {message}"),
            InputError::System { action, error } => write!(f, "cannot {action}: {error}"),
            InputError::Memory => f.write_str("there is no memory for the tables of the chain"),
            InputError::Port(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for InputError {}

impl From<TextError> for InputError {
    fn from(error: TextError) -> InputError {
        InputError::Text(error)
    }
}

/// What is wrong with a text, and where. It is shown with the line of the text and carets below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong.
    pub message: String,
    /// The text.
    pub text: String,
    /// The bytes of it that are meant.
    pub at: Range<usize>,
}

impl TextError {
    pub(crate) fn new(text: &str, at: Range<usize>, message: impl Into<String>) -> TextError {
        TextError { message: message.into(), text: text.to_owned(), at }
    }

    /// The same as a place of a text that this one is a part of, from byte `offset` on.
    pub(crate) fn within(self, text: &str, offset: usize) -> TextError {
        let at = self.at.start + offset..self.at.end + offset;
        TextError { message: self.message, text: text.to_owned(), at }
    }
}

/// Most characters of the line that are shown on each side of the place.
const SHOWN: usize = 60;

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, rest) = self.text.split_at_checked(self.at.start).unwrap_or((&self.text, ""));
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let before: Vec<char> = before[line_start..].chars().collect();
        let before: String = before[before.len().saturating_sub(SHOWN)..].iter().collect();
        let meant = self.text.get(self.at.clone()).unwrap_or("").lines().next().unwrap_or("");
        let after: String =
            rest.lines().next().unwrap_or("").chars().take(meant.chars().count() + SHOWN).collect();
        let plain = |text: &str| text.replace(char::is_control, " ");
        let carets = "^".repeat(meant.chars().count().max(1));
        write!(f, "{}\n  {}{}\n", self.message, plain(&before), plain(&after))?;
        write!(f, "  {}{carets}", " ".repeat(before.chars().count()))
    }
}

impl std::error::Error for TextError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_are_below_the_place() {
        let error = TextError::new("one\ntwo üwo", 8..12, "three was expected");
        assert_eq!(error.to_string(), "three was expected\n  two üwo\n      ^^^");
        let error = TextError::new("one", 3..3, "more was expected");
        assert_eq!(error.to_string(), "more was expected\n  one\n     ^");
    }
}
