//! Text from outside, as it may go to a terminal.
//!
//! Names come from programs, interfaces, files and servers, and a terminal does what control characters in them say: it moves,
//! deletes what was written, answers as if somebody had typed. So what a terminal gets goes through here, and shows
//! them as `\u001b`, which is also how JSON has them. What messages say of numbers is here, too ([`counted`]).

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

/// Whether a terminal would do something with a character, or with the order of those after it, other than to show it.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Text of several lines: line feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_control(c) && c != '\n' && c != '\t')
}

/// Text of one line: what would begin another is shown too, so that nobody can forge one.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

fn escaped(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match hides(c) {
            // Writing to a string cannot fail. All of them have at most four digits.
            true => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// As [`printable`], for text with colours of ours: what sets colours (`ESC [ ... m`) stays.
pub fn printable_coloured(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        shown.push_str(&printable(&rest[..at]));
        let parameters =
            rest[at + 2..].find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len() - at - 2);
        let end = at + 2 + parameters;
        match rest[end..].starts_with('m') {
            true => shown.push_str(&rest[at..=end]),
            false => shown.push_str(&printable(&rest[at..end])),
        }
        rest = &rest[if rest[end..].starts_with('m') { end + 1 } else { end }..];
    }
    shown.push_str(&printable(rest));
    shown
}

/// A number with its word, which stands in the plural unless the number is 1.
pub fn counted(number: impl Display, one: &str) -> String {
    let number = number.to_string();
    let end = match (number.as_str(), one.ends_with("ch")) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {one}{end}")
}

/// Writes text in such a form. Bytes that are no text become the replacement character.
#[derive(Debug)]
pub struct Printable<W>(
    /// Where the text goes.
    pub W,
);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(printable(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_something_is_told_in_the_singular() {
        for (number, one, told) in [
            (0, "byte", "0 bytes"),
            (1, "switch", "1 switch"),
            (11, "switch", "11 switches"),
            (1, "port", "1 port"),
        ] {
            assert_eq!(counted(number, one), told);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("größer 漢字", "größer 漢字"),
            ("\x1b[2Jgone", "\\u001b[2Jgone"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("a\rb\x08\x7f\0", "a\\u000db\\u0008\\u007f\\u0000"),
            ("\u{9b}2J", "\\u009b2J"),
            ("abc\u{202e}fed\u{2066}", "abc\\u202efed\\u2066"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert!(matches!(printable("as it is\n"), Cow::Borrowed(_)));
        assert_eq!(printable_line("one\ntwo"), "one\\u000atwo");
    }

    #[test]
    fn colours_stay_and_nothing_else() {
        assert_eq!(
            printable_coloured("\x1b[31mred\x1b[0m \x1b[1;38;5;9mx"),
            "\x1b[31mred\x1b[0m \x1b[1;38;5;9mx"
        );
        assert_eq!(printable_coloured("\x1b[2Jx\x1b[31"), "\\u001b[2Jx\\u001b[31");
        assert_eq!(printable_coloured("\x1b\x1b[0m\x1b[m"), "\\u001b\x1b[0m\x1b[m");
        assert_eq!(printable_coloured("\x1b[1\x1b[2m\r"), "\\u001b[1\x1b[2m\\u000d");
    }

    #[test]
    fn a_writer_lets_nothing_through() {
        let mut out = Vec::new();
        let text = "\x1b[2J x\n";
        write!(Printable(&mut out), "{text}").unwrap();
        Printable(&mut out).write_all(b"\xff").unwrap();
        assert_eq!(out, "\\u001b[2J x\n\u{fffd}".as_bytes());
    }
}
