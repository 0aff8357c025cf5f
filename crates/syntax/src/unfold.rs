//! A program after preprocessing, as text.

use crate::intern::Interner;
use crate::preprocess::{Preprocessed, preprocess_file};
use crate::span::{SourceMap, Span};
use crate::token::TokenKind;
use crate::{Diagnostics, Options};
use std::fmt::Write;
use std::path::Path;

/// Most empty lines that are written instead of a line mark.
const MAX_EMPTY: u32 = 8;

/// A program whose directives were followed and whose macros were expanded.
#[derive(Clone, Debug)]
pub struct Unfolded {
    /// Its text, with marks (`# 12 "FILE"`) that say where lines come from. Comments are gone.
    pub text: String,
    /// The files that it was read from, the program first.
    pub sources: SourceMap,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
}

/// Preprocesses a file. That it cannot be read is a diagnostic too.
pub fn unfold_path(path: impl AsRef<Path>, options: &Options) -> Unfolded {
    let Preprocessed { tokens, interner, sources, diagnostics } =
        preprocess_file(path.as_ref().to_owned(), options);
    let mut out = Out { text: String::new(), line: 0, file: String::new() };
    let mut before: Option<Span> = None;
    for token in tokens.iter().filter(|token| token.kind != TokenKind::Eof) {
        let spelling = spelling(&interner, token.text, token.kind);
        let is_beside =
            before.is_some_and(|before| before.after() == Span { end: token.span.start, ..token.span });
        if token.starts_line {
            out.go_to(&sources, token.span);
        } else if token.spaced || !is_beside && would_join(&out.text, spelling) {
            out.text.push(' ');
        }
        out.text.push_str(spelling);
        before = Some(token.span);
    }
    out.text.push('\n');
    Unfolded { text: out.text, sources, diagnostics }
}

fn spelling(interner: &Interner, text: crate::intern::Symbol, kind: TokenKind) -> &str {
    match kind.symbol() {
        "" => interner.text(text),
        symbol => symbol,
    }
}

/// Whether a word after a text, or a symbol, could be read as one with what is there: parts of an expansion stood side by
/// side and were no single word.
fn would_join(text: &str, next: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match (text.chars().next_back(), next.chars().next()) {
        (Some(last), Some(first)) => is_word(last) == is_word(first),
        _ => false,
    }
}

/// The text so far, and the place in the sources that its last line has.
struct Out {
    text: String,
    line: u32,
    file: String,
}

impl Out {
    /// Begins the line that a place has.
    fn go_to(&mut self, sources: &SourceMap, span: Span) {
        let place = sources.location(span);
        if !self.text.is_empty() {
            self.text.push('\n');
            self.line += 1;
        }
        let line = place.line;
        match line.checked_sub(self.line) {
            Some(empty) if *place.file == *self.file && empty <= MAX_EMPTY => {
                (0..empty).for_each(|_| self.text.push('\n'));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = writeln!(self.text, "# {line} \"{}\"", place.file);
                self.file = place.file.to_string();
            }
        }
        self.line = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_text;

    /// The program that the text gives is the one that the file gives.
    #[test]
    fn the_text_is_the_same_program() {
        let folder = std::env::temp_dir().join(format!("millrace-unfold-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("program.p4");
        let source = "#include <core.p4>\n#define WIDTH(n) bit<n>\n#define JOIN(a, b) a##b\n\n/* gone */\n\n\n\n\n\n\n\n\n\n\
                      const WIDTH(8) JOIN(x, y) = 8w1 + -1; // gone\n#if 0\nnothing\n#endif\nconst bool b = xy>=1;\n";
        std::fs::write(&path, source).unwrap();
        let unfolded = unfold_path(&path, &Options::default());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!unfolded.diagnostics.has_errors());
        let text = &unfolded.text;
        let tail: Vec<&str> = text.lines().rev().take(5).collect();
        let mark = format!("# 15 \"{}\"", path.display());
        assert_eq!(tail, ["const bool b = xy>=1;", "", "", "", "const bit<8> xy = 8w1 + -1;"], "{text}");
        assert!(text.contains(&mark), "{text}");
        let [again, first] =
            [text.as_str(), source].map(|text| parse_text("program.p4", text, &Options::default()));
        assert!(!again.diagnostics.has_errors(), "{:?}", again.diagnostics);
        assert_eq!(again.program.declarations.len(), first.program.declarations.len());
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        assert!(unfold_path("/nowhere/program.p4", &Options::default()).diagnostics.has_errors());
    }
}
