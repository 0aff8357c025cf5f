//! The parser of P4_14: recursive descent over the grammar of section 17.4 of the specification.
//!
//! The words of P4_14 are no keywords: which of them begins something is known by where it stands, so that a header
//! type may be called `exact`. Only the reserved words of section 17.4 name nothing.
//!
//! Pragmas are lines. They are taken out before parsing and handed to the declaration that they stand before.

mod declarations;
mod expressions;
mod flow;
mod objects;

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::Interner;
use crate::span::Span;
use crate::token::{Token, TokenKind};

use super::ast::{Name, Pragma, Program};

/// The error was reported; the caller recovers or fails as well.
#[derive(Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

/// Words that begin a declaration.
const DECLARATIONS: [&str; 16] = [
    "header_type",
    "header",
    "metadata",
    "field_list",
    "field_list_calculation",
    "calculated_field",
    "parser_value_set",
    "parser",
    "parser_exception",
    "counter",
    "meter",
    "register",
    "action",
    "action_profile",
    "action_selector",
    "table",
];

/// Words that name nothing (specification section 17.4).
///
/// `switch` is one too, but nothing begins with it, and programs call tables so.
const RESERVED: [&str; 11] = [
    "apply",
    "current",
    "default",
    "else",
    "hit",
    "if",
    "last",
    "latest",
    "parse_error",
    "payload",
    "select",
];

/// Parses a whole program. The last token must be `Eof`.
pub(super) fn parse(tokens: Vec<Token>, interner: &Interner, diagnostics: &mut Diagnostics) -> Program {
    let (tokens, pragmas) = split_pragmas(tokens, interner);
    let mut parser =
        Parser { tokens, pragmas, pos: 0, interner, diagnostics, last_error: None, statements: 0 };
    Program { declarations: parser.program() }
}

/// Takes the lines that begin with `@pragma` out. The others are keyed by the token that they stand before.
fn split_pragmas(tokens: Vec<Token>, interner: &Interner) -> (Vec<Token>, HashMap<usize, Vec<Pragma>>) {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut pragmas: HashMap<usize, Vec<Pragma>> = HashMap::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let begins = token.kind == TokenKind::At
            && rest.peek().is_some_and(|next| next.spelling(interner) == "pragma" && !next.starts_line);
        if !begins {
            kept.push(token);
            continue;
        }
        rest.next();
        let mut words = Vec::new();
        let mut span = token.span;
        while let Some(word) = rest.next_if(|word| !word.starts_line && word.kind != TokenKind::Eof) {
            span = span.to(word.span);
            words.push(Name { text: word.spelling(interner).into(), span: word.span });
        }
        if !words.is_empty() {
            let name = words.remove(0);
            pragmas.entry(kept.len()).or_default().push(Pragma { name, words, span });
        }
    }
    (kept, pragmas)
}

struct Parser<'a> {
    tokens: Vec<Token>,
    pragmas: HashMap<usize, Vec<Pragma>>,
    pos: usize,
    interner: &'a Interner,
    diagnostics: &'a mut Diagnostics,
    /// The token of the last error: a second one there is a consequence.
    last_error: Option<usize>,
    /// How many statements are being parsed inside each other.
    statements: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Token {
        self.nth(0)
    }

    fn nth(&self, ahead: usize) -> Token {
        self.tokens[(self.pos + ahead).min(self.tokens.len() - 1)]
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.peek().kind == kind
    }

    fn text(&self, token: Token) -> &str {
        if token.kind == TokenKind::Word { token.spelling(self.interner) } else { "" }
    }

    fn at_word(&self, word: &str) -> bool {
        self.text(self.peek()) == word
    }

    fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::Eof {
            self.pos += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.unexpected(&format!("`{}`", kind.symbol()))) }
    }

    /// From a token's start to the end of the last token taken.
    fn since(&self, start: Span) -> Span {
        start.to(self.nth_back().span)
    }

    fn nth_back(&self) -> Token {
        self.tokens[self.pos.saturating_sub(1)]
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Err(self.unexpected(what));
        }
        if RESERVED.contains(&self.text(token)) {
            let message = format!("expected {what}, found the reserved word `{}`", self.text(token));
            return Err(self.report(Diagnostic::error("syntax", token.span, message)));
        }
        self.bump();
        Ok(self.name_of(token))
    }

    fn name_of(&self, token: Token) -> Name {
        Name { text: self.interner.text(token.text).clone(), span: token.span }
    }

    /// The `;` at the end of something. One missing at the end of a line is reported, and parsing goes on behind it.
    fn semicolon(&mut self) -> Parse<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        let next = self.peek();
        if !next.starts_line && next.kind != TokenKind::RBrace && next.kind != TokenKind::Eof {
            return Err(self.unexpected("`;`"));
        }
        let message = format!("expected `;`, found {}", self.describe(next));
        let place = self.nth_back().span.after();
        self.report(Diagnostic::error("syntax", place, message).with_label("expected `;`"));
        self.last_error = None;
        Ok(())
    }

    fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.peek();
        let message = format!("expected {expected}, found {}", self.describe(token));
        let label = format!("expected {expected}");
        self.report(Diagnostic::error("syntax", token.span, message).with_label(label))
    }

    fn describe(&self, token: Token) -> String {
        match token.kind {
            TokenKind::Eof => "the end of the program".into(),
            TokenKind::Str => "a string".into(),
            _ => {
                let text: String = token.spelling(self.interner).chars().take(80).collect();
                format!("`{}`", text.escape_default())
            }
        }
    }

    /// Reports an error, unless it only follows from the one before.
    fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        if self.last_error != Some(self.pos) {
            self.last_error = Some(self.pos);
            self.diagnostics.push(diagnostic);
        }
        Failed
    }

    /// Reports an error that does not keep the parser from going on.
    fn complain(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("syntax", span, message));
    }

    /// `{ items }`: an item that fails is skipped up to the next `;`, brace or declaration.
    fn braced(&mut self, mut item: impl FnMut(&mut Self) -> Parse<()>) -> Parse<()> {
        let open = self.expect(TokenKind::LBrace)?;
        while !self.at(TokenKind::RBrace) && !self.at(TokenKind::Eof) && !self.at_declaration() {
            let before = self.pos;
            if item(self).is_err() || self.pos == before {
                if self.pos == before {
                    self.unexpected("`}`");
                    self.bump();
                }
                self.recover();
            }
        }
        if !self.eat(TokenKind::RBrace) {
            let token = self.peek();
            let message = format!("expected `}}`, found {}", self.describe(token));
            self.report(
                Diagnostic::error("syntax", token.span, message)
                    .with_label("expected `}`")
                    .with_secondary(open.span, "to close this one"),
            );
        }
        Ok(())
    }

    /// Skips to behind the next `;`, or behind a group in braces, or to a closing brace.
    fn recover(&mut self) {
        while !self.at(TokenKind::Eof) && !self.at_declaration() {
            match self.peek().kind {
                TokenKind::RBrace => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::LBrace => {
                    self.skip_group();
                    return;
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn skip_group(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.bump().kind {
                TokenKind::LBrace => depth += 1,
                TokenKind::RBrace => depth -= 1,
                TokenKind::Eof => return,
                _ => {}
            }
            if depth == 0 || self.at_declaration() {
                return;
            }
        }
    }

    /// Whether a declaration begins here: its word first on a line, then a name.
    fn at_declaration(&self) -> bool {
        let token = self.peek();
        let word = self.text(token);
        token.starts_line
            && self.nth(1).kind == TokenKind::Word
            && (word == "control" || DECLARATIONS.contains(&word))
    }
}

#[cfg(test)]
mod tests;
