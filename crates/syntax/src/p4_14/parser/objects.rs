//! Stateful objects, actions and tables (specification sections 7 to 12).

use crate::p4_14::ast::{
    Action, ActionCall, ActionProfile, ActionSelector, Binding, Counter, Expr, ExprKind, Meter, Name, Pragma,
    Read, Register, Table, Unit,
};
use crate::token::TokenKind;

use super::{Parse, Parser};

impl Parser<'_> {
    /// `: e;`
    fn expression_attribute(&mut self) -> Parse<Option<Expr>> {
        self.expect(TokenKind::Colon)?;
        let value = self.expression()?;
        self.semicolon()?;
        Ok(Some(value))
    }

    /// `: name;`
    fn name_attribute(&mut self, what: &str) -> Parse<Name> {
        self.expect(TokenKind::Colon)?;
        let name = self.name(what)?;
        self.semicolon()?;
        Ok(name)
    }

    fn unit(&mut self) -> Parse<Option<Unit>> {
        self.expect(TokenKind::Colon)?;
        let unit = match self.text(self.peek()) {
            "packets" => Unit::Packets,
            "bytes" => Unit::Bytes,
            "packets_and_bytes" => Unit::Both,
            _ => return Err(self.unexpected("`packets`, `bytes` or `packets_and_bytes`")),
        };
        self.bump();
        self.semicolon()?;
        Ok(Some(unit))
    }

    /// The word of an attribute, which is taken.
    fn attribute(&mut self, known: &str) -> Parse<String> {
        let word = self.text(self.peek()).to_owned();
        if word.is_empty() {
            return Err(self.unexpected(known));
        }
        self.bump();
        Ok(word)
    }

    /// Reports that a word, just taken, is no attribute.
    fn no_attribute(&mut self, known: &str) -> super::Failed {
        self.pos -= 1;
        self.unexpected(known)
    }

    pub(super) fn counter(&mut self) -> Parse<Counter> {
        const KNOWN: &str = "`type`, `direct`, `static`, `instance_count`, `min_width` or `saturating`";
        let start = self.bump();
        let name = self.name("a counter's name")?;
        let (mut unit, mut binding, mut instances, mut min_width) = (None, None, None, None);
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "type" => unit = p.unit()?,
                "direct" => binding = Some(Binding::Direct(p.name_attribute("a table")?)),
                "static" => binding = Some(Binding::Static(p.name_attribute("a table")?)),
                "instance_count" => instances = p.expression_attribute()?,
                "min_width" => min_width = p.expression_attribute()?,
                "saturating" => p.semicolon()?,
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        Ok(Counter { name, unit, binding, instances, min_width, span: self.since(start.span) })
    }

    pub(super) fn meter(&mut self) -> Parse<Meter> {
        const KNOWN: &str = "`type`, `result`, `direct`, `static` or `instance_count`";
        let start = self.bump();
        let name = self.name("a meter's name")?;
        let (mut unit, mut result, mut binding, mut instances) = (None, None, None, None);
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "type" => unit = p.unit()?,
                "result" => {
                    p.expect(TokenKind::Colon)?;
                    result = Some(p.reference()?);
                    p.semicolon()?;
                }
                "direct" => binding = Some(Binding::Direct(p.name_attribute("a table")?)),
                "static" => binding = Some(Binding::Static(p.name_attribute("a table")?)),
                "instance_count" => instances = p.expression_attribute()?,
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        Ok(Meter { name, unit, result, binding, instances, span: self.since(start.span) })
    }

    pub(super) fn register(&mut self) -> Parse<Register> {
        const KNOWN: &str = "`width`, `layout`, `direct`, `static`, `instance_count` or `attributes`";
        let start = self.bump();
        let name = self.name("a register's name")?;
        let (mut width, mut layout, mut binding, mut instances) = (None, None, None, None);
        let (mut signed, mut saturating) = (false, false);
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "width" => width = p.expression_attribute()?,
                "layout" => layout = Some(p.name_attribute("a header type")?),
                "direct" => binding = Some(Binding::Direct(p.name_attribute("a table")?)),
                "static" => binding = Some(Binding::Static(p.name_attribute("a table")?)),
                "instance_count" => instances = p.expression_attribute()?,
                "attributes" => {
                    p.expect(TokenKind::Colon)?;
                    p.attributes(&mut signed, &mut saturating)?;
                    p.semicolon()?;
                }
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        let span = self.since(start.span);
        Ok(Register { name, width, layout, binding, instances, signed, saturating, span })
    }

    pub(super) fn action(&mut self, pragmas: Vec<Pragma>) -> Parse<Action> {
        let start = self.bump();
        let name = self.name("an action's name")?;
        self.expect(TokenKind::LParen)?;
        let mut params = Vec::new();
        while !self.at(TokenKind::RParen) {
            params.push(self.name("a parameter's name")?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::RParen)?;
        let mut body = Vec::new();
        self.braced(|p| {
            body.push(p.action_statement()?);
            p.semicolon()
        })?;
        Ok(Action { pragmas, name, params, body, span: self.since(start.span) })
    }

    /// A call, or `field = e`, which programs write for `modify_field(field, e)`.
    fn action_statement(&mut self) -> Parse<ActionCall> {
        let start = self.peek();
        if matches!(self.nth(1).kind, TokenKind::LParen) {
            return self.action_call();
        }
        let field = self.reference()?;
        if !self.at(TokenKind::Assign) {
            return Err(self.unexpected(if field.plain().is_some() { "`(`" } else { "`=`" }));
        }
        let assign = self.bump();
        let value = self.expression()?;
        let name = Name { text: "modify_field".into(), span: assign.span };
        let field = Expr { span: field.span, kind: ExprKind::Reference(field) };
        Ok(ActionCall { name, args: vec![field, value], span: self.since(start.span) })
    }

    fn action_call(&mut self) -> Parse<ActionCall> {
        let start = self.peek();
        let name = self.name("an action")?;
        self.expect(TokenKind::LParen)?;
        let mut args = Vec::new();
        while !self.at(TokenKind::RParen) {
            args.push(self.expression()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::RParen)?;
        Ok(ActionCall { name, args, span: self.since(start.span) })
    }

    /// `{ a; b; }`: the specification has no separator, its examples have semicolons.
    fn action_list(&mut self) -> Parse<Vec<Name>> {
        let mut actions = Vec::new();
        self.braced(|p| {
            actions.push(p.name("an action")?);
            if !p.eat(TokenKind::Semicolon) {
                p.eat(TokenKind::Comma);
            }
            Ok(())
        })?;
        Ok(actions)
    }

    pub(super) fn action_profile(&mut self) -> Parse<ActionProfile> {
        const KNOWN: &str = "`actions`, `size` or `dynamic_action_selection`";
        let start = self.bump();
        let name = self.name("an action profile's name")?;
        let (mut actions, mut size, mut selector) = (Vec::new(), None, None);
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "actions" => actions.extend(p.action_list()?),
                "size" => size = p.expression_attribute()?,
                "dynamic_action_selection" => selector = Some(p.name_attribute("an action selector")?),
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        Ok(ActionProfile { name, actions, size, selector, span: self.since(start.span) })
    }

    pub(super) fn action_selector(&mut self) -> Parse<ActionSelector> {
        const KNOWN: &str = "`selection_key`, `selection_mode` or `selection_type`";
        let start = self.bump();
        let name = self.name("an action selector's name")?;
        let mut key = None;
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "selection_key" => key = Some(p.name_attribute("a field list calculation")?),
                // How members are chosen when some fail: not for the program to see.
                "selection_mode" | "selection_type" => drop(p.name_attribute("a word")?),
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        Ok(ActionSelector { name, key, span: self.since(start.span) })
    }

    pub(super) fn table(&mut self, pragmas: Vec<Pragma>) -> Parse<Table> {
        const KNOWN: &str = "`reads`, `actions`, `action_profile`, `size`, `min_size`, `max_size`, \
                             `support_timeout` or `default_action`";
        let start = self.bump();
        let name = self.name("a table's name")?;
        let (mut reads, mut actions, mut profile, mut default) = (Vec::new(), Vec::new(), None, None);
        let (mut size, mut min_size, mut max_size, mut timeout) = (None, None, None, false);
        self.braced(|p| {
            match p.attribute(KNOWN)?.as_str() {
                "reads" => p.braced(|p| {
                    reads.push(p.read()?);
                    Ok(())
                })?,
                "actions" => actions.extend(p.action_list()?),
                "action_profile" => profile = Some(p.name_attribute("an action profile")?),
                "size" => size = p.expression_attribute()?,
                "min_size" => min_size = p.expression_attribute()?,
                "max_size" => max_size = p.expression_attribute()?,
                "support_timeout" => {
                    p.expect(TokenKind::Colon)?;
                    timeout = match p.text(p.peek()) {
                        "true" => true,
                        "false" => false,
                        _ => return Err(p.unexpected("`true` or `false`")),
                    };
                    p.bump();
                    p.semicolon()?;
                }
                "const" if p.at_word("default_action") => {
                    p.bump();
                    default = Some((p.default_action()?, true));
                }
                "default_action" => default = Some((p.default_action()?, false)),
                _ => return Err(p.no_attribute(KNOWN)),
            }
            Ok(())
        })?;
        let size = size.or(max_size).or(min_size);
        let span = self.since(start.span);
        Ok(Table { pragmas, name, reads, actions, profile, size, timeout, default, span })
    }

    /// `: a;` or `: a(e, ...);`
    fn default_action(&mut self) -> Parse<ActionCall> {
        self.expect(TokenKind::Colon)?;
        let call = if self.nth(1).kind == TokenKind::LParen {
            self.action_call()?
        } else {
            let name = self.name("an action")?;
            let span = name.span;
            ActionCall { name, args: Vec::new(), span }
        };
        self.semicolon()?;
        Ok(call)
    }

    fn read(&mut self) -> Parse<Read> {
        let start = self.peek();
        let field = self.reference()?;
        let mask = if self.eat_word("mask") { Some(self.expression()?) } else { None };
        self.expect(TokenKind::Colon)?;
        let kind = self.name("a kind of match")?;
        let span = self.since(start.span);
        self.semicolon()?;
        Ok(Read { field, mask, kind, span })
    }
}
