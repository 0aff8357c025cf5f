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

use foldhash::{HashMap, HashMapExt};
use std::ops::{Deref, DerefMut};

use crate::cursor::{Cursor, Failed, Parse, Wording};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::Interner;
use crate::token::{Token, TokenKind};

use super::ast::{Name, Pragma, Program};

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
    let wording = Wording { has_keywords: false, hint: |_, _, _| None };
    let cursor = Cursor::new(tokens, interner, diagnostics, wording);
    let mut parser = Parser { cursor, pragmas, statements: 0, branches: 0 };
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
    cursor: Cursor<'a>,
    pragmas: HashMap<usize, Vec<Pragma>>,
    /// How many statements are being parsed inside each other.
    statements: usize,
    /// How many branches of `if` and `else if` are around what is being parsed.
    branches: usize,
}

impl<'a> Deref for Parser<'a> {
    type Target = Cursor<'a>;

    fn deref(&self) -> &Cursor<'a> {
        &self.cursor
    }
}

impl DerefMut for Parser<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl Parser<'_> {
    fn text(&self, token: Token) -> &str {
        word(self, token)
    }

    fn at_word(&self, word: &str) -> bool {
        self.text(self.peek()) == word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
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
        self.check_name(token)?;
        self.bump();
        Ok(self.name_of(token))
    }

    fn name_of(&self, token: Token) -> Name {
        Name { text: self.interner.text(token.text).clone(), span: token.span }
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
        self.close_brace(open);
        Ok(())
    }

    /// Skips to after the next `;`, or after a group in braces, or to a closing brace.
    fn recover(&mut self) {
        while !self.at(TokenKind::Eof) && !self.at_declaration() {
            match self.peek().kind {
                TokenKind::RBrace => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::LBrace => {
                    self.bump();
                    if !self.at_declaration() {
                        self.skip_group(at_declaration);
                    }
                    return;
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn at_declaration(&self) -> bool {
        at_declaration(self)
    }
}

/// Whether a declaration begins here: its word first on a line, then a name.
fn at_declaration(cursor: &Cursor<'_>) -> bool {
    let token = cursor.peek();
    let word = word(cursor, token);
    token.starts_line
        && cursor.nth(1).kind == TokenKind::Word
        && (word == "control" || DECLARATIONS.contains(&word))
}

/// The text of a word; of another token none.
fn word<'c>(cursor: &'c Cursor<'_>, token: Token) -> &'c str {
    if token.kind == TokenKind::Word { token.spelling(cursor.interner) } else { "" }
}

#[cfg(test)]
mod tests;
