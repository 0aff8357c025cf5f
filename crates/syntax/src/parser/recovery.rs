//! Going on after a syntax error.
//!
//! Lists of declarations, statements, fields and so on are parsed item by item. When an item fails, the tokens up to
//! the next `;`, a closing brace, or a keyword that begins something on a new line are skipped, and the list goes
//! on. A list whose closing brace is missing ends at a keyword that cannot be inside it.

use crate::cursor::{Cursor, Parse};
use crate::intern::{Symbol, kw};
use crate::token::{Token, TokenKind};

use super::Parser;

/// What begins a declaration that stands at the top level only.
const TOP_LEVEL: [Symbol; 9] = [
    kw::CONTROL,
    kw::PARSER,
    kw::HEADER,
    kw::HEADER_UNION,
    kw::STRUCT,
    kw::ENUM,
    kw::EXTERN,
    kw::PACKAGE,
    kw::TYPEDEF,
];

/// What begins some other declaration or a statement.
const INNER: [Symbol; 10] = [
    kw::ACTION,
    kw::TABLE,
    kw::STATE,
    kw::CONST,
    kw::IF,
    kw::SWITCH,
    kw::FOR,
    kw::RETURN,
    kw::TRANSITION,
    kw::APPLY,
];

impl Parser<'_> {
    /// Items up to a closing brace, which is taken. `ends` tells keywords at which the list counts as ended although
    /// its brace is missing.
    pub(super) fn braced_items<T>(
        &mut self,
        open: Token,
        ends: impl Fn(&Self) -> bool,
        mut item: impl FnMut(&mut Self, &mut Vec<T>) -> Parse<()>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        while !self.at(TokenKind::RBrace) && !self.at(TokenKind::Eof) && !ends(self) {
            let before = self.pos;
            if item(self, &mut items).is_err() {
                self.recover(before, false);
            } else if self.pos == before {
                // An item without tokens would never end.
                self.unexpected("`}`");
                self.recover(before, false);
            }
        }
        self.close_brace(open);
        items
    }

    /// Whether a top-level declaration begins here, on a new line.
    pub(super) fn at_top_level_keyword(&self) -> bool {
        at_top_level_keyword(self)
    }

    /// Whether something begins here that cannot stand in a block of statements.
    pub(super) fn at_block_end_keyword(&self) -> bool {
        let token = self.peek();
        let inner = [kw::ACTION, kw::TABLE];
        self.at_top_level_keyword()
            || (token.starts_line && token.kind == TokenKind::Word && inner.contains(&token.text))
            || (token.starts_line && token.is_word(kw::STATE) && self.nth(1).is_name())
    }

    /// Skips to where the next item may begin; past at least one token since `before`, the start of the failed item.
    /// A brace that the item opened is skipped to its end if `whole_braces`, else to a `;` inside.
    pub(super) fn recover(&mut self, before: usize, whole_braces: bool) {
        if self.pos == before {
            self.skip_one();
        }
        let mut open = 0usize;
        for token in &self.tokens[before..self.pos] {
            match token.kind {
                TokenKind::LBrace => open += 1,
                TokenKind::RBrace => open = open.saturating_sub(1),
                _ => {}
            }
        }
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::RBrace if open > 0 => {
                    self.bump();
                    open -= 1;
                    if open == 0 && self.peek().starts_line {
                        return;
                    }
                }
                TokenKind::Eof | TokenKind::RBrace => return,
                TokenKind::Semicolon if open > 0 && whole_braces => {
                    self.bump();
                }
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::LBrace => {
                    self.skip_one();
                    // Mostly the body of what failed. A list in an expression goes on with more.
                    let next = self.peek();
                    if next.starts_line || next.kind == TokenKind::RBrace {
                        return;
                    }
                }
                TokenKind::Word
                    if token.starts_line
                        && (TOP_LEVEL.contains(&token.text) || INNER.contains(&token.text)) =>
                {
                    return;
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Skips one token, or all of a group in braces, but no top-level declaration on a new line: there the group's
    /// closing brace is missing.
    pub(super) fn skip_one(&mut self) {
        if self.bump().kind == TokenKind::LBrace {
            self.skip_group(at_top_level_keyword);
        }
    }
}

fn at_top_level_keyword(cursor: &Cursor<'_>) -> bool {
    let token = cursor.peek();
    token.starts_line && token.kind == TokenKind::Word && TOP_LEVEL.contains(&token.text)
}
