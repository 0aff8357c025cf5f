//! Tokens of the text form, taken one by one.

use super::ParseError;
use crate::Bits;
use std::borrow::Cow;

/// A place in a text, and what can be taken from there.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// Where the last token starts.
    token: usize,
}

/// A character of a name that is written without quotes. A name starts with one of these that is no digit.
fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '[' | ']')
}

/// A name as it is written: in quotes if it is no word.
pub(super) fn quoted(name: &str) -> Cow<'_, str> {
    let starts = name.starts_with(starts_word);
    match starts && name.chars().all(in_word) && name != "_" {
        true => Cow::Borrowed(name),
        false => Cow::Owned(in_quotes(name)),
    }
}

/// A text in quotes.
pub(super) fn in_quotes(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0, token: 0 }
    }

    /// An error at the last token that was taken or looked for.
    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        let before = &self.text[..self.token.min(self.text.len())];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let count = |of: usize| u32::try_from(of + 1).unwrap_or(u32::MAX);
        let line = count(before.bytes().filter(|b| *b == b'\n').count());
        ParseError { line, column: count(before[start..].chars().count()), message: message.into() }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments; what follows is the token that errors are about.
    fn start(&mut self) {
        loop {
            let rest = self.rest().trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with(';') {
                break;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
        self.token = self.at;
    }

    fn take(&mut self, len: usize) -> &'t str {
        let taken = &self.rest()[..len];
        self.at += len;
        taken
    }

    /// Whether nothing is left.
    pub(super) fn ends(&mut self) -> bool {
        self.start();
        self.rest().is_empty()
    }

    /// The word that comes, without taking it.
    pub(super) fn peek(&mut self) -> &'t str {
        self.start();
        let rest = self.rest();
        &rest[..rest.find(|c: char| !in_word(c)).unwrap_or(rest.len())]
    }

    /// Takes a sign or a word if it comes.
    pub(super) fn accept(&mut self, wanted: &str) -> bool {
        let is_word = wanted.starts_with(in_word);
        let comes = match is_word {
            true => self.peek() == wanted,
            false => {
                self.start();
                self.rest().starts_with(wanted)
            }
        };
        if comes {
            self.take(wanted.len());
        }
        comes
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Result<(), ParseError> {
        match self.accept(wanted) {
            true => Ok(()),
            false => Err(self.error(format!("`{wanted}` is expected"))),
        }
    }

    /// A word of the language.
    pub(super) fn word(&mut self) -> Result<&'t str, ParseError> {
        let word = self.peek();
        match word {
            "" => Err(self.error("a word is expected")),
            _ => Ok(self.take(word.len())),
        }
    }

    /// A number of the form that the width of a value has.
    pub(super) fn number(&mut self) -> Result<u32, ParseError> {
        let word = self.peek();
        let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        match word.parse() {
            Ok(number) if is_number => {
                self.take(word.len());
                Ok(number)
            }
            _ if is_number => Err(self.error("a number is at most 32 bits long")),
            _ => Err(self.error("a number is expected")),
        }
    }

    /// A constant, if one comes.
    pub(super) fn bits(&mut self) -> Result<Option<Bits>, ParseError> {
        let word = self.peek();
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let bits = word.parse().map_err(|error| self.error(format!("{error}")))?;
        self.take(word.len());
        Ok(Some(bits))
    }

    /// A number with a prefix, such as `n12`: how ids are written.
    pub(super) fn id(&mut self, prefix: &str) -> Result<u32, ParseError> {
        let word = self.peek();
        let digits = word.strip_prefix(prefix).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        // The largest number stands for "none" in packed options.
        match digits.and_then(|digits| digits.parse().ok()).filter(|id| *id < u32::MAX) {
            Some(id) => {
                self.take(word.len());
                Ok(id)
            }
            None => Err(self.error(format!("`{prefix}` with a number is expected"))),
        }
    }

    /// A name: a word, or any text in quotes.
    pub(super) fn name(&mut self) -> Result<Cow<'t, str>, ParseError> {
        if let Some(name) = self.quoted()? {
            return Ok(name.into());
        }
        let word = self.peek();
        if word.is_empty() || word == "_" || word.starts_with(|c: char| !starts_word(c)) {
            return Err(self.error("a name is expected"));
        }
        Ok(self.take(word.len()).into())
    }

    /// A text in quotes, if one comes.
    pub(super) fn quoted(&mut self) -> Result<Option<String>, ParseError> {
        self.start();
        if !self.rest().starts_with('"') {
            return Ok(None);
        }
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.take(at + 1);
                    return Ok(Some(text));
                }
                '\n' => break,
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some(c @ ('"' | '\\')) => text.push(c),
                    Some('u') => {
                        let hex: String =
                            chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').take(8).collect();
                        let code = hex.strip_prefix('{').and_then(|hex| u32::from_str_radix(hex, 16).ok());
                        match code.and_then(char::from_u32) {
                            Some(c) => text.push(c),
                            None => return Err(self.error("an escape is written as \\u{HEX}")),
                        }
                    }
                    _ => return Err(self.error("an escape is one of \\n \\\" \\\\ \\u{HEX}")),
                },
                c => text.push(c),
            }
        }
        Err(self.error("a quoted text does not end"))
    }
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$')
}
