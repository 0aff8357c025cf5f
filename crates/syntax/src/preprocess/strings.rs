//! Directives inside of a string.
//!
//! The C preprocessor ends a string at the end of its line. The string of P4 may have several lines, so all but the first
//! are lines like others to the preprocessor, and it carries out the directives in them: in their place, and in place of
//! a group that is left out, there are empty lines. Programs rely on that to write constraints for several targets.
//!
//! Here this holds for conditions, definitions, `#error` and `#warning`. Other lines with `#` are text, and so is the name
//! of a macro.

use crate::diagnostic::Diagnostic;
use crate::lexer::StringPart;
use crate::token::{Token, TokenKind};

use super::Preprocessor;

const CARRIED_OUT: &[&str] =
    &["if", "ifdef", "ifndef", "elif", "else", "endif", "define", "undef", "error", "warning"];

impl Preprocessor {
    /// Whether a string that was just read has lines that are directives.
    pub(super) fn has_directives(&self, string: Token) -> bool {
        string.spelling(&self.interner).split('\n').skip(1).any(is_directive)
    }

    /// The string once more, its directives obeyed.
    pub(super) fn string_with_directives(&mut self, string: Token) -> Token {
        let mut text = String::from("\"");
        let mut span = string.span;
        if let Some(file) = self.files.last_mut() {
            file.lexer.reopen_string(string.span);
        }
        while let Some(file) = self.files.last_mut() {
            let part = file.lexer.string_part(&mut text, is_directive);
            let here = file.lexer.here();
            span.end = here.end;
            match part {
                StringPart::End => break,
                StringPart::Line => {
                    let hash = file.lexer.next(&mut self.interner, &mut self.diagnostics);
                    debug_assert_eq!(hash.kind, TokenKind::Hash);
                    self.directive(hash);
                    let Some(file) = self.files.last() else { break };
                    let lines = file.lexer.line_breaks_since(here);
                    text.extend(std::iter::repeat_n('\n', lines));
                }
                StringPart::NoEnd => {
                    text.push('"');
                    let mut at = string.span;
                    at.end = at.start + 1;
                    self.diagnostics.push(
                        Diagnostic::error("unterminated-string", at, "this string has no end")
                            .with_label("begins here")
                            .with_help("end it with `\"`"),
                    );
                    break;
                }
            }
        }
        Token { text: self.interner.intern(&text), span, ..string }
    }
}

/// Whether a line of a string is a directive that is carried out.
fn is_directive(line: &str) -> bool {
    let name = line.trim_start().strip_prefix('#').map(str::trim_start);
    let end = |name: &str| name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    name.is_some_and(|name| CARRIED_OUT.contains(&&name[..end(name)]))
}
