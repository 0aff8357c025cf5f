//! Tables (specification section 14.2).

use crate::ast::{
    ActionRef, Annotation, Declaration, Entry, KeyElement, Table, TableProperty, TablePropertyValue,
};
use crate::intern::kw;
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Parse, Parser};

impl Parser<'_> {
    /// `table t { ... }`
    pub(super) fn table(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.expect_word(kw::TABLE)?;
        let name = self.declared_name(Meaning::Value, "the table's name")?;
        let open = self.expect(TokenKind::LBrace)?;
        let properties = self.braced_items(open, Self::at_table_end_keyword, |p, out| {
            out.push(p.table_property()?);
            Ok(())
        });
        Ok(Declaration::Table(Table { annotations, name, properties, span: self.since(start.span) }))
    }

    fn at_table_end_keyword(&self) -> bool {
        let token = self.peek();
        let ends = [kw::ACTION, kw::TABLE];
        self.at_top_level_keyword()
            || (token.starts_line && token.kind == TokenKind::Word && ends.contains(&token.text))
            || (token.is_word(kw::APPLY) && matches!(self.nth(1).kind, TokenKind::LBrace | TokenKind::At))
    }

    fn table_property(&mut self) -> Parse<TableProperty> {
        let start = self.peek();
        let annotations = self.annotations()?;
        let is_const = self.eat_word(kw::CONST);
        let name = self.name("a table property")?;
        self.expect(TokenKind::Assign)?;
        let which = &*name.text;
        if matches!(which, "key" | "actions") && is_const {
            self.complain(name.span, format!("`{which}` is constant already"), Some("remove `const`"));
        }
        let value = match which {
            "key" => TablePropertyValue::Key(self.property_items(Self::key_element)?),
            "actions" => TablePropertyValue::Actions(self.property_items(Self::listed_action)?),
            "entries" => TablePropertyValue::Entries(self.property_items(Self::entry)?),
            _ => {
                let value = self.expression()?;
                self.semicolon()?;
                TablePropertyValue::Expr(value)
            }
        };
        Ok(TableProperty { annotations, is_const, name, value, span: self.since(start.span) })
    }

    /// `{ item item ... }`
    fn property_items<T>(&mut self, item: fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let open = self.expect(TokenKind::LBrace)?;
        Ok(self.braced_items(open, Self::at_table_end_keyword, |p, out| {
            out.push(item(p)?);
            Ok(())
        }))
    }

    fn key_element(&mut self) -> Parse<KeyElement> {
        let start = self.peek().span;
        let expr = self.expression()?;
        self.expect(TokenKind::Colon)?;
        let match_kind = self.name("a match kind")?;
        let annotations = self.annotations()?;
        self.semicolon()?;
        Ok(KeyElement { expr, match_kind, annotations, span: self.since(start) })
    }

    fn listed_action(&mut self) -> Parse<ActionRef> {
        let annotations = self.annotations()?;
        let action = self.action_ref(annotations)?;
        self.semicolon()?;
        Ok(action)
    }

    fn action_ref(&mut self, annotations: Vec<Annotation>) -> Parse<ActionRef> {
        let start = self.peek().span;
        let action = self.path("an action's name")?;
        let args = if self.at(TokenKind::LParen) { Some(self.arguments()?) } else { None };
        Ok(ActionRef { annotations, action, args, span: self.since(start) })
    }

    fn entry(&mut self) -> Parse<Entry> {
        let start = self.peek().span;
        let is_const = self.eat_word(kw::CONST);
        let priority = if self.at_word(kw::PRIORITY) && self.nth(1).kind == TokenKind::Assign {
            self.bump();
            self.bump();
            // An integer or an expression in parentheses.
            let priority = match self.peek().kind {
                TokenKind::Int | TokenKind::LParen => self.delimited_expression()?,
                _ => return Err(self.unexpected("a priority: an integer, or an expression in parentheses")),
            };
            self.expect(TokenKind::Colon)?;
            Some(priority)
        } else {
            None
        };
        let keyset = self.keyset()?;
        self.expect(TokenKind::Colon)?;
        let action = self.action_ref(Vec::new())?;
        let annotations = self.annotations()?;
        self.semicolon()?;
        Ok(Entry { is_const, priority, keyset, action, annotations, span: self.since(start) })
    }
}
