//! Telling types from expressions without parsing them.
//!
//! All functions here start at a token position and give the position after what they found, or none. They report
//! nothing, change nothing and look at most [`MAX_LOOKAHEAD`] tokens ahead, so a hostile input cannot make
//! parsing quadratic.

use crate::intern::kw;
use crate::token::TokenKind;

use super::scope::Meaning;
use super::{Parser, is_builtin_type};

/// Most tokens looked at ahead.
const MAX_LOOKAHEAD: usize = 2048;

/// Most type arguments inside each other that are looked through.
const MAX_TYPE_DEPTH: u32 = 32;

impl Parser<'_> {
    /// A type, `T[n]` included.
    pub(super) fn scan_type(&self, at: usize) -> Option<usize> {
        self.scan_type_until(at, self.pos + MAX_LOOKAHEAD, 0)
    }

    /// Type arguments in angle brackets.
    pub(super) fn scan_type_args(&self, at: usize) -> Option<usize> {
        self.scan_args_until(at, self.pos + MAX_LOOKAHEAD, 0)
    }

    fn scan_type_until(&self, at: usize, end: usize, depth: u32) -> Option<usize> {
        if at >= end || depth > MAX_TYPE_DEPTH {
            return None;
        }
        let token = self.token_at(at);
        let mut next = at + 1;
        if token.is_word(kw::BIT) || token.is_word(kw::INT) || token.is_word(kw::VARBIT) {
            if self.token_at(next).kind == TokenKind::Lt {
                next = self.scan_width(next + 1, end)?;
            }
        } else if token.is_word(kw::TUPLE)
            || (token.is_word(kw::LIST) && self.token_at(next).kind == TokenKind::Lt)
        {
            next = self.scan_args_until(next, end, depth)?;
        } else if token.kind == TokenKind::DontCare && depth > 0 {
            return Some(next);
        } else if !is_builtin_type(token) {
            let absolute = token.kind == TokenKind::Dot;
            let name = self.token_at(at + usize::from(absolute));
            next = at + usize::from(absolute) + 1;
            let meaning = if absolute {
                self.scopes.top_level_meaning(name.text)
            } else {
                self.scopes.meaning(name.text)
            };
            if !name.is_name() || meaning == Some(Meaning::Value) {
                return None;
            }
            if self.token_at(next).kind == TokenKind::Lt {
                next = self.scan_args_until(next, end, depth)?;
            }
        }
        while self.token_at(next).kind == TokenKind::LBracket {
            next = self.scan_balanced(next)?;
        }
        Some(next)
    }

    fn scan_args_until(&self, at: usize, end: usize, depth: u32) -> Option<usize> {
        let mut next = self.scan_kind(at, TokenKind::Lt)?;
        if self.token_at(next).kind == TokenKind::Gt {
            return Some(next + 1);
        }
        loop {
            next = self.scan_type_until(next, end, depth + 1)?;
            match self.token_at(next).kind {
                TokenKind::Comma => next += 1,
                TokenKind::Gt => return Some(next + 1),
                _ => return None,
            }
        }
    }

    /// The expression in `bit<...>`, and the `>` after it.
    fn scan_width(&self, at: usize, end: usize) -> Option<usize> {
        let mut next = at;
        while next < end {
            next = match self.token_at(next).kind {
                TokenKind::Gt => return (next > at).then_some(next + 1),
                TokenKind::LParen | TokenKind::LBracket => self.scan_balanced(next)?,
                TokenKind::Eof
                | TokenKind::Semicolon
                | TokenKind::LBrace
                | TokenKind::RBrace
                | TokenKind::RParen
                | TokenKind::RBracket
                | TokenKind::Assign => return None,
                _ => next + 1,
            };
        }
        None
    }

    fn scan_kind(&self, at: usize, kind: TokenKind) -> Option<usize> {
        (self.token_at(at).kind == kind).then_some(at + 1)
    }

    /// A bracketed group, whichever bracket it begins with.
    pub(super) fn scan_balanced(&self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        for next in at..at + MAX_LOOKAHEAD {
            match self.token_at(next).kind {
                TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace => depth += 1,
                TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace if depth == 1 => {
                    return Some(next + 1);
                }
                TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace => {
                    depth = depth.checked_sub(1)?
                }
                TokenKind::Eof => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether a variable declaration begins here: a type with a name after it.
    pub(super) fn at_variable(&self) -> bool {
        if self.at_builtin_type() {
            return true;
        }
        self.scan_type(self.pos).is_some_and(|next| self.token_at(next).is_name())
    }

    /// Whether the `(` here opens a cast `(T) e`.
    pub(super) fn at_cast(&self) -> bool {
        let first = self.nth(1);
        if is_builtin_type(first) {
            return !(first.is_word(kw::ERROR) && self.nth(2).kind == TokenKind::Dot);
        }
        let Some(close) = self.scan_type(self.pos + 1) else { return false };
        if self.token_at(close).kind != TokenKind::RParen {
            return false;
        }
        let next = self.token_at(close + 1);
        match next.kind {
            TokenKind::Word => {
                next.is_name() || [kw::TRUE, kw::FALSE, kw::THIS, kw::ERROR].contains(&next.text)
            }
            TokenKind::Int
            | TokenKind::Str
            | TokenKind::LParen
            | TokenKind::LBrace
            | TokenKind::InvalidHeader
            | TokenKind::Dots
            | TokenKind::Not
            | TokenKind::Tilde => true,
            // Infix operators too: a cast only when the name is known to be a type.
            TokenKind::Minus | TokenKind::Plus | TokenKind::Dot => {
                let absolute = first.kind == TokenKind::Dot;
                let name = if absolute { self.nth(2).text } else { first.text };
                let meaning =
                    if absolute { self.scopes.top_level_meaning(name) } else { self.scopes.meaning(name) };
                meaning == Some(Meaning::Type)
            }
            _ => false,
        }
    }
}
