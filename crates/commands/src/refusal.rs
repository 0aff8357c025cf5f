//! Why a piece of a control text was refused, and where it stands.

use millrace_syntax::{Diagnostic, SourceMap, Span};
use std::fmt;
use std::ops::Range;

/// Most refusals that loading one text collects; then it stops reading.
pub const MAX_REFUSALS: usize = 50;

/// One thing that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it stands, in bytes of the text.
    pub at: Range<usize>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What would put it right.
    pub help: Option<String>,
}

impl Refusal {
    /// Without help.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Refusal {
        Refusal { at, message: message.into(), help: None }
    }

    /// With what would put it right.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Refusal {
        Refusal { help: Some(help.into()), ..self }
    }

    /// With help if there is any.
    #[must_use]
    pub fn with_help_if(self, help: Option<String>) -> Refusal {
        Refusal { help, ..self }
    }

    /// The line it stands in, from 1.
    pub fn line(&self, text: &str) -> usize {
        let before = text.as_bytes().get(..self.at.start).unwrap_or(text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, " ({help})"))
    }
}

/// Refusals as diagnostics over the text, to be shown as those of a program are. `code` is the short name of the kind of
/// finding.
///
/// A text that is too large for a [`SourceMap`] is represented by its lines that matter.
pub fn diagnostics(
    name: &str,
    text: &str,
    refusals: &[Refusal],
    code: &'static str,
) -> (SourceMap, Vec<Diagnostic>) {
    let mut map = SourceMap::new();
    let whole = map.add(name, text, None);
    let made = refusals
        .iter()
        .map(|refusal| {
            let at = clamp(&refusal.at, text);
            let (span, note) = match whole {
                Some(file) => (Span::new(file, at.start as u32, at.end as u32), None),
                None => one_line(&mut map, name, text, &at, refusal.line(text)),
            };
            let mut diagnostic = Diagnostic::error(code, span, refusal.message.clone());
            diagnostic.help = refusal.help.clone();
            diagnostic.notes.extend(note);
            diagnostic
        })
        .collect();
    (map, made)
}

/// The line of a place as a text of its own, with empty ones before it so that its number is right, and as a note.
fn one_line(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    at: &Range<usize>,
    line: usize,
) -> (Span, Option<String>) {
    let start = text[..at.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at.start..].find('\n').map_or(text.len(), |newline| at.start + newline);
    let before = line.saturating_sub(1);
    let mut padded = "\n".repeat(before);
    padded.push_str(&text[start..end]);
    let Some(file) = map.add(name, padded, None) else { return (Span::default(), None) };
    let place = |byte: usize| (byte - start + before) as u32;
    (Span::new(file, place(at.start), place(at.end.min(end))), Some(text[start..end].trim_end().to_owned()))
}

/// A range that lies within the text and on its characters.
fn clamp(at: &Range<usize>, text: &str) -> Range<usize> {
    let place = |mut byte: usize| {
        byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    };
    let start = place(at.start);
    start..place(at.end).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_ranges_stay_inside() {
        let text = "one\ntwo\nthrée";
        assert_eq!(Refusal::new(0..1, "").line(text), 1);
        assert_eq!(Refusal::new(4..5, "").line(text), 2);
        assert_eq!(Refusal::new(400..500, "").line(text), 3);
        assert_eq!(clamp(&(12..99), text), 11..14);
        let (map, made) = diagnostics("f", text, &[Refusal::new(4..7, "bad").with_help("good")], "entry");
        assert_eq!(map.text(made[0].primary), "two");
        assert_eq!(map.location(made[0].primary).line, 2);
        assert_eq!(made[0].help.as_deref(), Some("good"));
    }

    #[test]
    fn a_text_too_large_to_be_kept_still_shows_its_line() {
        let text = "filling the file\n".repeat(millrace_syntax::MAX_FILE_BYTES / 16) + "here it is\n";
        let at = text.len() - 6..text.len() - 4;
        let (map, made) = diagnostics("big", &text, &[Refusal::new(at, "bad")], "entry");
        assert_eq!(map.text(made[0].primary), "it");
        let place = map.location(made[0].primary);
        assert_eq!((place.line as usize, place.column), (millrace_syntax::MAX_FILE_BYTES / 16 + 1, 6));
        assert_eq!(made[0].notes, ["here it is"]);
    }
}
