//! Sets of values in `select` cases and table entries (specification section 8.16).

use crate::ast::{Keyset, KeysetKind};
use crate::intern::kw;
use crate::token::TokenKind;

use super::{Parse, Parser};

impl Parser<'_> {
    /// A keyset up to the `:` after it.
    pub(super) fn keyset(&mut self) -> Parse<Keyset> {
        let start = self.peek().span;
        // `(a) + b:` and `(T) a:` begin with a parenthesis too; a tuple ends at the colon.
        let is_tuple = self.at(TokenKind::LParen)
            && self.scan_balanced(self.pos).is_none_or(|next| self.token_at(next).kind == TokenKind::Colon);
        if !is_tuple {
            return self.simple_keyset();
        }
        self.bump();
        let mut members = vec![self.simple_keyset()?];
        while self.eat(TokenKind::Comma) {
            members.push(self.simple_keyset()?);
        }
        self.expect(TokenKind::RParen)?;
        let span = self.since(start);
        match members.pop() {
            Some(single) if members.is_empty() => Ok(Keyset { kind: single.kind, span }),
            last => {
                members.extend(last);
                Ok(Keyset { kind: KeysetKind::Tuple(members), span })
            }
        }
    }

    fn simple_keyset(&mut self) -> Parse<Keyset> {
        let start = self.peek().span;
        let kind = if self.eat_word(kw::DEFAULT) {
            KeysetKind::Default
        } else if self.eat(TokenKind::DontCare) {
            KeysetKind::DontCare
        } else {
            let first = self.expression()?;
            if self.eat(TokenKind::Mask) {
                KeysetKind::Mask(first, self.expression()?)
            } else if self.eat(TokenKind::DotDot) {
                KeysetKind::Range(first, self.expression()?)
            } else {
                KeysetKind::Value(first)
            }
        };
        Ok(Keyset { kind, span: self.since(start) })
    }
}
