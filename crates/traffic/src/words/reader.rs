//! Lines and words of a text, each with its place.

use super::handle;
use crate::plan::Handle;
use std::fmt;

/// Longest text that is read.
pub const MAX_TEXT: usize = 4 << 20;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordsError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for WordsError {}

/// Where a word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    line: usize,
    column: usize,
}

impl Place {
    pub(super) fn error(self, reason: impl Into<String>) -> WordsError {
        WordsError { line: self.line, column: self.column, reason: reason.into() }
    }
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) place: Place,
}

impl Word<'_> {
    pub(super) fn error(&self, reason: impl Into<String>) -> WordsError {
        self.place.error(reason)
    }
}

/// The words of a line, read one after the other.
pub(super) struct Line<'t> {
    words: Vec<Word<'t>>,
    at: usize,
    end: Place,
}

/// The lines of a text that have words: what comes after `#` is a comment, and a `\` at the end of a line continues it.
pub(super) fn lines(text: &str) -> Result<Vec<Line<'_>>, WordsError> {
    if text.len() > MAX_TEXT {
        let reason = format!("the text has {} bytes, at most {MAX_TEXT}", text.len());
        return Err(Place { line: 1, column: 1 }.error(reason));
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut continued = false;
    for (line, text) in (1..).zip(text.lines()) {
        let bare = text.split('#').next().unwrap_or_default();
        let (bare, continues) = match bare.trim_end().strip_suffix('\\') {
            Some(bare) => (bare, true),
            None => (bare, false),
        };
        if !continued {
            lines.push(Line { words: Vec::new(), at: 0, end: Place::default() });
        }
        let this = lines.last_mut().expect("a line was begun");
        let (mut column, mut start) = (1, None);
        for (at, c) in bare.char_indices().chain([(bare.len(), ' ')]) {
            match (c.is_whitespace(), start) {
                (false, None) => start = Some((at, column)),
                (true, Some((from, column))) => {
                    this.words.push(Word { text: &bare[from..at], place: Place { line, column } });
                    start = None;
                }
                _ => {}
            }
            column += 1;
        }
        this.end = Place { line, column: column - 1 };
        continued = continues;
    }
    lines.retain(|line| !line.words.is_empty());
    Ok(lines)
}

impl<'t> Line<'t> {
    /// The next word, if there is one.
    pub(super) fn next(&mut self) -> Option<Word<'t>> {
        let word = self.words.get(self.at).copied()?;
        self.at += 1;
        Some(word)
    }

    /// The next word, which has to be there.
    pub(super) fn need(&mut self, what: &str) -> Result<Word<'t>, WordsError> {
        self.next().ok_or_else(|| self.end.error(format!("the line ends before {what}")))
    }

    /// A word that has to come next.
    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), WordsError> {
        let word = self.need(&format!("`{keyword}`"))?;
        match word.text == keyword {
            true => Ok(()),
            false => Err(word.error(format!("`{keyword}` has to be here, not `{}`", word.text))),
        }
    }

    /// The next word as a value, by a function that says what is wrong with it.
    pub(super) fn value<V>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Result<V, String>,
    ) -> Result<V, WordsError> {
        let word = self.need(what)?;
        read(word.text).map_err(|reason| word.error(reason))
    }

    /// A whole number within limits.
    pub(super) fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, WordsError> {
        self.value(what, |word| number(word, what, least, most))
    }

    /// A whole number from 0 on.
    pub(super) fn small(&mut self, what: &str, most: u64) -> Result<u64, WordsError> {
        self.number(what, 0, most)
    }

    /// A handle, such as `1:` or `1:2`.
    pub(super) fn handle(&mut self, what: &str) -> Result<(Handle, Place), WordsError> {
        let word = self.need(what)?;
        match handle::read(word.text) {
            Ok(handle) => Ok((handle, word.place)),
            Err(reason) => Err(word.error(reason)),
        }
    }
}

pub(super) fn number(word: &str, what: &str, least: u64, most: u64) -> Result<u64, String> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse::<u64>() {
        Ok(number) if digits && (least..=most).contains(&number) => Ok(number),
        _ if digits => Err(format!("{what} is {word}, it may be {least} to {most}")),
        _ => Err(format!("`{word}` is no {what}: a number of {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_places_over_comments_and_continued_lines() {
        let text = "# all\n  one two # three\n\n\tö four \\\n five\nsix";
        let found: Vec<Vec<(&str, usize, usize)>> = lines(text)
            .unwrap()
            .iter()
            .map(|line| line.words.iter().map(|w| (w.text, w.place.line, w.place.column)).collect())
            .collect();
        let wanted = [
            vec![("one", 2, 3), ("two", 2, 7)],
            vec![("ö", 4, 2), ("four", 4, 4), ("five", 5, 2)],
            vec![("six", 6, 1)],
        ];
        assert_eq!(found, wanted);
        let mut line = lines("limit 7").unwrap().remove(0);
        line.keyword("limit").unwrap();
        assert_eq!(
            line.number("limit", 1, 5).unwrap_err().to_string(),
            "line 1, column 7: limit is 7, it may be 1 to 5"
        );
        assert_eq!(
            line.need("a limit").map(|word| word.text).unwrap_err().to_string(),
            "line 1, column 8: the line ends before a limit"
        );
        assert!(lines(&"x".repeat(MAX_TEXT + 1)).is_err());
    }
}
