//! From the text of one file to tokens (specification section 6.4, lexical constructs).
//!
//! The lexer knows lines, because the preprocessor works in lines; it knows no directives and no macros. It never
//! stops: what it cannot read becomes a [`TokenKind::Unknown`] token, or a diagnostic for a comment or string
//! without end.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::{Interner, Symbol};
use crate::span::{FileId, Span};
use crate::token::{Token, TokenKind};

/// Where [`Lexer::string_part`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringPart {
    /// After the closing quote.
    End,
    /// At the beginning of a line.
    Line,
    /// At the end of the file.
    NoEnd,
}

/// A position in one file's text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer {
    text: Arc<str>,
    file: FileId,
    pos: usize,
    /// No token yet on this line.
    line_start: bool,
}

impl Lexer {
    pub(crate) fn new(file: FileId, text: Arc<str>) -> Self {
        // A byte order mark is white space.
        let pos = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, file, pos, line_start: true }
    }

    /// Where the lexer stands.
    pub(crate) fn here(&self) -> Span {
        self.span_from(self.pos)
    }

    /// The next token, `Eof` at the end.
    pub(crate) fn next(&mut self, interner: &mut Interner, diagnostics: &mut Diagnostics) -> Token {
        let spaced = self.skip_space(false, diagnostics);
        self.token(spaced, interner, diagnostics)
    }

    /// The next token of the current line, none at its end; the line break is not consumed.
    pub(crate) fn next_in_line(
        &mut self,
        interner: &mut Interner,
        diagnostics: &mut Diagnostics,
    ) -> Option<Token> {
        let spaced = self.skip_space(true, diagnostics);
        match self.peek(0) {
            None | Some(b'\n') => None,
            Some(_) => Some(self.token(spaced, interner, diagnostics)),
        }
    }

    /// Skips the rest of the line, without looking at it except for comments that go on.
    pub(crate) fn skip_line(&mut self, diagnostics: &mut Diagnostics) {
        loop {
            self.skip_space(true, diagnostics);
            match self.peek(0) {
                None | Some(b'\n') => return,
                Some(b'"') => self.skip_quoted_in_line(),
                Some(_) => self.pos += 1,
            }
        }
    }

    /// The rest of the line as written, trimmed; for `#error` and the like. Comments stay in.
    pub(crate) fn rest_of_line(&mut self) -> (Span, String) {
        let start = self.pos;
        while !matches!(self.peek(0), None | Some(b'\n')) {
            self.pos += 1;
        }
        let span = self.span_from(start);
        (span, self.text[start..self.pos].trim().to_owned())
    }

    /// The name between angle brackets, if the line goes on with `<...>`.
    pub(crate) fn angled_name(&mut self, diagnostics: &mut Diagnostics) -> Option<(Span, String)> {
        self.skip_space(true, diagnostics);
        let rest = self.text[self.pos..].strip_prefix('<')?;
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let name = line[..line.find('>')?].to_owned();
        let start = self.pos;
        self.pos += name.len() + 2;
        Some((self.span_from(start), name))
    }

    /// Skips whole lines up to the next one that begins with `#`, and that `#`. False at the end of the file.
    pub(crate) fn skip_to_directive(&mut self, diagnostics: &mut Diagnostics) -> bool {
        loop {
            self.skip_space(false, diagnostics);
            match self.peek(0) {
                None => return false,
                Some(b'#') if self.line_start => {
                    self.line_start = false;
                    self.pos += 1;
                    return true;
                }
                Some(_) => {
                    self.line_start = false;
                    self.skip_line(diagnostics);
                }
            }
        }
    }

    /// Goes back to the beginning of a string that was just read, after its quote.
    pub(crate) fn reopen_string(&mut self, string: Span) {
        self.pos = string.start as usize + 1;
    }

    /// Reads on in a string: to its end, or to the beginning of a line that `stops` it.
    pub(crate) fn string_part(&mut self, out: &mut String, stops: impl Fn(&str) -> bool) -> StringPart {
        let start = self.pos;
        let part = loop {
            match self.peek(0) {
                None => break StringPart::NoEnd,
                Some(b'"') => {
                    self.pos += 1;
                    break StringPart::End;
                }
                Some(b'\\') => self.pos += 2,
                Some(b'\n') => {
                    self.pos += 1;
                    let rest = &self.text[self.pos..];
                    if stops(&rest[..rest.find('\n').unwrap_or(rest.len())]) {
                        self.line_start = true;
                        break StringPart::Line;
                    }
                }
                Some(_) => self.pos += 1,
            }
        };
        self.pos = self.pos.min(self.text.len());
        while !self.text.is_char_boundary(self.pos) {
            self.pos += 1;
        }
        out.push_str(&self.text[start..self.pos]);
        part
    }

    /// How many line breaks there are from a place up to here.
    pub(crate) fn line_breaks_since(&self, place: Span) -> usize {
        self.text[place.start as usize..self.pos].matches('\n').count()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + ahead).copied()
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(self.file, start as u32, self.pos as u32)
    }

    /// The length of a backslash and line break at a distance, 0 if there is none. White space may stand between them, as for
    /// cpp: an editor does not show it.
    fn splice(&self, ahead: usize) -> usize {
        if self.peek(ahead) != Some(b'\\') {
            return 0;
        }
        let mut length = 1;
        while matches!(self.peek(ahead + length), Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c)) {
            length += 1;
        }
        if self.peek(ahead + length) == Some(b'\n') { length + 1 } else { 0 }
    }

    /// Skips white space and comments, in the current line only if asked. True if there was any.
    fn skip_space(&mut self, in_line: bool, diagnostics: &mut Diagnostics) -> bool {
        let start = self.pos;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' if in_line => break,
                b'\n' => {
                    self.line_start = true;
                    self.pos += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.pos += 1,
                b'\\' if self.splice(0) > 0 => self.pos += self.splice(0),
                b'/' if self.peek(1) == Some(b'/') => self.skip_line_comment(),
                b'/' if self.peek(1) == Some(b'*') => {
                    if self.skip_block_comment(diagnostics) && !in_line {
                        self.line_start = true;
                    }
                }
                _ => break,
            }
        }
        self.pos > start
    }

    fn skip_line_comment(&mut self) {
        while !matches!(self.peek(0), None | Some(b'\n')) {
            self.pos += self.splice(0).max(1);
        }
    }

    /// True if the comment holds a line break.
    fn skip_block_comment(&mut self, diagnostics: &mut Diagnostics) -> bool {
        let start = self.pos;
        let body = &self.text[start + 2..];
        let length = body.find("*/");
        self.pos = length.map_or(self.text.len(), |n| start + 2 + n + 2);
        if length.is_none() {
            let span = Span::new(self.file, start as u32, start as u32 + 2);
            diagnostics.push(
                Diagnostic::error("unterminated-comment", span, "this comment has no end")
                    .with_label("begins here")
                    .with_help("end it with `*/`"),
            );
        }
        self.text[start..self.pos].contains('\n')
    }

    fn skip_quoted_in_line(&mut self) {
        self.pos += 1;
        loop {
            match self.peek(0) {
                None | Some(b'\n') => return,
                Some(b'"') => {
                    self.pos += 1;
                    return;
                }
                Some(b'\\') if !matches!(self.peek(1), None | Some(b'\n')) => self.pos += 2,
                Some(_) => self.pos += 1,
            }
        }
    }

    fn token(&mut self, spaced: bool, interner: &mut Interner, diagnostics: &mut Diagnostics) -> Token {
        let start = self.pos;
        let starts_line = std::mem::take(&mut self.line_start);
        let (kind, text) = match self.peek(0) {
            None => (TokenKind::Eof, Symbol::NONE),
            Some(b) if b.is_ascii_alphabetic() || b == b'_' => {
                let text = self.word(interner);
                (if &**interner.text(text) == "_" { TokenKind::DontCare } else { TokenKind::Word }, text)
            }
            Some(b) if b.is_ascii_digit() => (TokenKind::Int, self.word(interner)),
            Some(b'"') => self.string(interner, diagnostics),
            Some(_) => self.symbol(interner),
        };
        Token { kind, starts_line, spaced, no_expand: false, text, span: self.span_from(start) }
    }

    /// A run of letters, digits and underscores; line continuations inside are removed.
    fn word(&mut self, interner: &mut Interner) -> Symbol {
        let start = self.pos;
        let mut joined: Option<String> = None;
        loop {
            let run = self.pos;
            while self.peek(0).is_some_and(is_word_byte) {
                self.pos += 1;
            }
            let splice = self.splice(0);
            let goes_on = splice > 0 && self.peek(splice).is_some_and(is_word_byte);
            if goes_on || joined.is_some() {
                joined.get_or_insert_default().push_str(&self.text[run..self.pos]);
            }
            if !goes_on {
                break;
            }
            self.pos += splice;
        }
        match joined {
            Some(text) => interner.intern(&text),
            None => interner.intern(&self.text[start..self.pos]),
        }
    }

    fn string(&mut self, interner: &mut Interner, diagnostics: &mut Diagnostics) -> (TokenKind, Symbol) {
        let start = self.pos;
        self.pos += 1;
        loop {
            match self.peek(0) {
                Some(b'"') => {
                    self.pos += 1;
                    break;
                }
                Some(b'\\') => self.pos = (self.pos + 2).min(self.text.len()),
                Some(_) => self.pos += 1,
                None => {
                    let line_end = self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
                    self.pos = line_end;
                    let span = Span::new(self.file, start as u32, start as u32 + 1);
                    diagnostics.push(
                        Diagnostic::error("unterminated-string", span, "this string has no end")
                            .with_label("begins here")
                            .with_help("end it with `\"`"),
                    );
                    let text = format!("{}\"", self.text[start..line_end].trim_end_matches(['\\', '\r']));
                    return (TokenKind::Str, interner.intern(&text));
                }
            }
        }
        while !self.text.is_char_boundary(self.pos) {
            self.pos += 1;
        }
        (TokenKind::Str, interner.intern(&self.text[start..self.pos]))
    }

    fn symbol(&mut self, interner: &mut Interner) -> (TokenKind, Symbol) {
        let rest = &self.text.as_bytes()[self.pos..];
        // Most symbols are one character with none after it that could make it longer.
        let alone =
            !matches!(rest.get(1), Some(b'.' | b'=' | b'&' | b'|' | b'+' | b'-' | b'<' | b'>' | b'#'));
        let kind = single_symbol(rest[0])
            .filter(|_| alone)
            .or_else(|| TokenKind::SYMBOLS.iter().copied().find(|k| rest.starts_with(k.symbol().as_bytes())));
        if let Some(kind) = kind {
            self.pos += kind.symbol().len();
            return (kind, Symbol::NONE);
        }
        let rest = &self.text[self.pos..];
        let length = rest.chars().next().map_or(1, char::len_utf8);
        self.pos += length;
        (TokenKind::Unknown, interner.intern(&rest[..length]))
    }
}

fn single_symbol(byte: u8) -> Option<TokenKind> {
    Some(match byte {
        b'(' => TokenKind::LParen,
        b')' => TokenKind::RParen,
        b'{' => TokenKind::LBrace,
        b'}' => TokenKind::RBrace,
        b'[' => TokenKind::LBracket,
        b']' => TokenKind::RBracket,
        b'<' => TokenKind::Lt,
        b'>' => TokenKind::Gt,
        b';' => TokenKind::Semicolon,
        b',' => TokenKind::Comma,
        b':' => TokenKind::Colon,
        b'.' => TokenKind::Dot,
        b'=' => TokenKind::Assign,
        b'@' => TokenKind::At,
        b'+' => TokenKind::Plus,
        b'-' => TokenKind::Minus,
        b'!' => TokenKind::Not,
        _ => return None,
    })
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Reads a text as exactly one token; none if it is more or less than that.
pub(crate) fn single_token(text: &str, interner: &mut Interner) -> Option<(TokenKind, Symbol)> {
    let mut ignored = Diagnostics::new();
    let mut lexer = Lexer::new(FileId::default(), text.into());
    let token = lexer.next(interner, &mut ignored);
    let whole = lexer.pos == text.len() && ignored.is_empty() && token.kind != TokenKind::Eof;
    whole.then_some((token.kind, token.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> (Vec<(TokenKind, String)>, Diagnostics) {
        let (mut interner, mut diagnostics) = (Interner::new(), Diagnostics::new());
        let mut lexer = Lexer::new(FileId(0), text.into());
        let mut all = Vec::new();
        loop {
            let token = lexer.next(&mut interner, &mut diagnostics);
            if token.kind == TokenKind::Eof {
                return (all, diagnostics);
            }
            all.push((token.kind, token.spelling(&interner).to_string()));
        }
    }

    fn texts(text: &str) -> Vec<String> {
        lex(text).0.into_iter().map(|(_, t)| t).collect()
    }

    #[test]
    fn longest_symbols_win() {
        assert_eq!(texts("a|+|=b|+|c|-|d|e"), ["a", "|+|=", "b", "|+|", "c", "|-|", "d", "|", "e"]);
        assert_eq!(texts("a&&&b&&c&d"), ["a", "&&&", "b", "&&", "c", "&", "d"]);
        assert_eq!(texts("1..9 ... .x"), ["1", "..", "9", "...", ".", "x"]);
        assert_eq!(texts("a<<=b<<c<=d"), ["a", "<<=", "b", "<<", "c", "<=", "d"]);
        assert_eq!(
            texts("f<g<h>>x a>>=1 a>=1"),
            ["f", "<", "g", "<", "h", ">", ">", "x", "a", ">>=", "1", "a", ">=", "1"]
        );
        assert_eq!(texts("{#} { # }"), ["{#}", "{", "#", "}"]);
        assert_eq!(texts("x[a+:b]"), ["x", "[", "a", "+", ":", "b", "]"]);
    }

    #[test]
    fn words_numbers_and_dont_care() {
        let (tokens, _) = lex("_ _x 8w0xFF_00 0b1");
        assert_eq!(
            tokens.iter().map(|t| t.0).collect::<Vec<_>>(),
            [TokenKind::DontCare, TokenKind::Word, TokenKind::Int, TokenKind::Int]
        );
    }

    #[test]
    fn comments_and_continuations_separate_or_join() {
        assert_eq!(texts("bi/**/t // x\\\nstill comment\nok"), ["bi", "t", "ok"]);
        assert_eq!(texts("ab\\\ncd \\\r\n e"), ["abcd", "e"]);
        assert_eq!(texts("ab\\ \t\ncd \\ \r\n e // x \\ \nf"), ["abcd", "e"]);
        let (tokens, found) = lex("a /* no end");
        assert_eq!((tokens.len(), found.error_count()), (1, 1));
    }

    #[test]
    fn strings_may_hold_quotes_and_lines() {
        assert_eq!(texts(r#""a \" b" c"#), [r#""a \" b""#, "c"]);
        assert_eq!(texts("\"two\nlines\""), ["\"two\nlines\""]);
        let (tokens, found) = lex("\"no end\nnext");
        assert_eq!(tokens.len(), 2);
        assert_eq!(found.error_count(), 1);
        assert_eq!(lex("\"\\é").1.error_count(), 1);
    }

    #[test]
    fn strange_characters_are_tokens_of_their_own() {
        let (tokens, _) = lex("a § ' b");
        assert_eq!(tokens.iter().filter(|t| t.0 == TokenKind::Unknown).count(), 2);
    }

    #[test]
    fn one_token_only() {
        let mut interner = Interner::new();
        assert_eq!(single_token("8w5", &mut interner).map(|t| t.0), Some(TokenKind::Int));
        assert_eq!(single_token("a b", &mut interner), None);
        assert_eq!(single_token("", &mut interner), None);
    }
}
