//! What the parsers of both languages have in common: the place in the tokens, the reports of errors, and going on at a
//! missing `;` or brace.

use crate::MAX_NAME_BYTES;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intern::Interner;
use crate::span::Span;
use crate::token::{Token, TokenKind};

/// The error was reported; the caller recovers or fails as well.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) type Parse<T> = Result<T, Failed>;

/// How a language speaks of tokens in errors.
#[derive(Clone, Copy)]
pub(crate) struct Wording {
    /// Whether reserved words are called keywords.
    pub(crate) has_keywords: bool,
    /// What is most likely meant by a token that stands where something else, the last argument, was expected.
    pub(crate) hint: fn(&Cursor<'_>, Token, &str) -> Option<String>,
}

/// A place in the tokens of a program.
pub(crate) struct Cursor<'a> {
    /// The last one is `Eof`.
    pub(crate) tokens: Vec<Token>,
    pub(crate) pos: usize,
    pub(crate) interner: &'a Interner,
    pub(crate) diagnostics: &'a mut Diagnostics,
    /// The token of the last error: a second one there is a consequence.
    pub(crate) last_error: Option<usize>,
    wording: Wording,
}

impl<'a> Cursor<'a> {
    /// At the first of the tokens, of which the last must be `Eof`.
    pub(crate) fn new(
        tokens: Vec<Token>,
        interner: &'a Interner,
        diagnostics: &'a mut Diagnostics,
        wording: Wording,
    ) -> Cursor<'a> {
        Cursor { tokens, pos: 0, interner, diagnostics, last_error: None, wording }
    }

    /// The token at hand.
    pub(crate) fn peek(&self) -> Token {
        self.nth(0)
    }

    /// The token `ahead` of the one at hand; `Eof` from the end on.
    pub(crate) fn nth(&self, ahead: usize) -> Token {
        self.token_at(self.pos + ahead)
    }

    pub(crate) fn token_at(&self, pos: usize) -> Token {
        self.tokens[pos.min(self.tokens.len() - 1)]
    }

    /// The token before the one at hand.
    pub(crate) fn previous(&self) -> Token {
        self.token_at(self.pos.saturating_sub(1))
    }

    pub(crate) fn at(&self, kind: TokenKind) -> bool {
        self.peek().kind == kind
    }

    pub(crate) fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::Eof {
            self.pos += 1;
        }
        token
    }

    pub(crate) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    pub(crate) fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.unexpected(&format!("`{}`", kind.symbol()))) }
    }

    /// From a token's start to the end of the last token taken.
    pub(crate) fn since(&self, start: Span) -> Span {
        start.to(self.previous().span)
    }

    /// Takes the `;` at the end of something. One that is missing at the end of a line is reported, and the parser
    /// goes on as if it were there.
    pub(crate) fn semicolon(&mut self) -> Parse<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        let next = self.peek();
        if !next.starts_line && next.kind != TokenKind::RBrace && next.kind != TokenKind::Eof {
            return Err(self.unexpected("`;`"));
        }
        let message = format!("expected `;`, found {}", self.describe(next));
        let place = self.previous().span.after();
        self.report(Diagnostic::error("syntax", place, message).with_label("expected `;`"));
        // What follows is not a consequence.
        self.last_error = None;
        Ok(())
    }

    /// Takes the closing brace, or reports that it is missing and goes on without.
    pub(crate) fn close_brace(&mut self, open: Token) {
        if self.eat(TokenKind::RBrace) {
            return;
        }
        let token = self.peek();
        let message = format!("expected `}}`, found {}", self.describe(token));
        self.report(
            Diagnostic::error("syntax", token.span, message)
                .with_label("expected `}`")
                .with_secondary(open.span, "to close this one"),
        );
    }

    /// After an opening brace: skips to after the one that closes it, or to where `ends` says that it is missing.
    pub(crate) fn skip_group(&mut self, ends: impl Fn(&Self) -> bool) {
        let mut depth = 1usize;
        while depth > 0 {
            match self.bump().kind {
                TokenKind::LBrace => depth += 1,
                TokenKind::RBrace => depth -= 1,
                TokenKind::Eof => return,
                _ => {}
            }
            if ends(self) {
                return;
            }
        }
    }

    /// Reports that something else was expected than the token at hand.
    pub(crate) fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.peek();
        let message = format!("expected {expected}, found {}", self.describe(token));
        let mut diagnostic = Diagnostic::error("syntax", token.span, message);
        diagnostic.label = format!("expected {expected}");
        diagnostic.help = (self.wording.hint)(self, token, expected);
        self.report(diagnostic)
    }

    /// Reports a name that is too long: what is declared once may be part of many names.
    pub(crate) fn check_name(&mut self, token: Token) -> Parse<()> {
        let bytes = self.interner.text(token.text).len();
        if bytes <= MAX_NAME_BYTES {
            return Ok(());
        }
        let message = format!("this name has {bytes} bytes, more than {MAX_NAME_BYTES}");
        Err(self.report(Diagnostic::error("limit", token.span, message)))
    }

    pub(crate) fn describe(&self, token: Token) -> String {
        match token.kind {
            TokenKind::Eof => "the end of the program".into(),
            TokenKind::Word if self.wording.has_keywords && token.text.is_reserved() => {
                format!("keyword `{}`", token.spelling(self.interner))
            }
            TokenKind::Str => "a string".into(),
            _ => {
                let text: String = token.spelling(self.interner).chars().take(80).collect();
                format!("`{}`", text.escape_default())
            }
        }
    }

    /// Reports an error, unless it only follows from the one before.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        if self.last_error != Some(self.pos) {
            self.last_error = Some(self.pos);
            self.diagnostics.push(diagnostic);
        }
        Failed
    }

    /// Reports an error that does not keep the parser from going on.
    pub(crate) fn complain(&mut self, span: Span, message: impl Into<String>, help: Option<&str>) {
        let mut diagnostic = Diagnostic::error("syntax", span, message);
        diagnostic.help = help.map(str::to_owned);
        self.diagnostics.push(diagnostic);
    }
}
