//! Declarations of headers, field lists and calculations (specification sections 2 and 3), and the way through a
//! program.

use crate::p4_14::ast::{
    CalculatedField, Calculation, CalculationRule, Declaration, Field, FieldList, FieldListEntry, HeaderType,
    Instance, InstanceKind, Pragma, ValueSet,
};
use crate::token::TokenKind;

use super::{DECLARATIONS, Failed, Parse, Parser};

impl Parser<'_> {
    pub(super) fn program(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        while !self.at(TokenKind::Eof) {
            let before = self.pos;
            if self.eat(TokenKind::Semicolon) {
                continue;
            }
            match self.declaration() {
                Ok(declaration) => declarations.push(declaration),
                Err(Failed) => {
                    if self.pos == before {
                        self.bump();
                    }
                    self.recover();
                    // At this level no brace is open.
                    self.eat(TokenKind::RBrace);
                }
            }
        }
        declarations
    }

    fn declaration(&mut self) -> Parse<Declaration> {
        let pos = self.pos;
        let pragmas = self.pragmas.remove(&pos).unwrap_or_default();
        let word = self.text(self.peek()).to_owned();
        Ok(match word.as_str() {
            "header_type" => Declaration::HeaderType(self.header_type()?),
            "header" => Declaration::Instance(self.instance(InstanceKind::Header)?),
            "metadata" => Declaration::Instance(self.instance(InstanceKind::Metadata)?),
            "field_list" => Declaration::FieldList(self.field_list()?),
            "field_list_calculation" => Declaration::Calculation(self.calculation()?),
            "calculated_field" => Declaration::CalculatedField(self.calculated_field()?),
            "parser_value_set" => Declaration::ValueSet(self.value_set(pragmas)?),
            "parser" => Declaration::ParserState(self.parser_state(pragmas)?),
            "parser_exception" => Declaration::ParserException(self.parser_exception()?),
            "counter" => Declaration::Counter(self.counter()?),
            "meter" => Declaration::Meter(self.meter()?),
            "register" => Declaration::Register(self.register()?),
            "action" => Declaration::Action(self.action(pragmas)?),
            "action_profile" => Declaration::ActionProfile(self.action_profile()?),
            "action_selector" => Declaration::ActionSelector(self.action_selector()?),
            "table" => Declaration::Table(self.table(pragmas)?),
            "control" => Declaration::Control(self.control()?),
            _ => {
                let expected = format!("a declaration (`{}`, `control`)", DECLARATIONS.join("`, `"));
                return Err(self.unexpected(&expected));
            }
        })
    }

    fn header_type(&mut self) -> Parse<HeaderType> {
        let start = self.bump();
        let name = self.name("a header type's name")?;
        let (mut fields, mut length, mut max_length) = (Vec::new(), None, None);
        self.braced(|p| {
            if p.eat_word("fields") {
                return p.braced(|p| {
                    fields.push(p.field()?);
                    Ok(())
                });
            }
            let slot = match p.text(p.peek()) {
                "length" => &mut length,
                "max_length" => &mut max_length,
                _ => return Err(p.unexpected("`fields`, `length` or `max_length`")),
            };
            p.bump();
            p.expect(TokenKind::Colon)?;
            *slot = Some(p.expression()?);
            p.semicolon()
        })?;
        Ok(HeaderType { name, fields, length, max_length, span: self.since(start.span) })
    }

    fn field(&mut self) -> Parse<Field> {
        let start = self.peek();
        let (mut signed, mut saturating) = (false, false);
        let (name, width);
        if self.nth(1).kind == TokenKind::Lt {
            // `bit<8> x;`, as later versions of the language have it.
            signed = match self.text(start) {
                "bit" => false,
                "int" => true,
                _ => return Err(self.unexpected("`bit` or `int`")),
            };
            self.bump();
            self.bump();
            width = Some(self.width()?);
            self.expect(TokenKind::Gt)?;
            name = self.name("a field's name")?;
        } else {
            name = self.name("a field's name")?;
            self.expect(TokenKind::Colon)?;
            width = if self.eat(TokenKind::Star) { None } else { Some(self.expression()?) };
        }
        if self.eat(TokenKind::LParen) {
            self.attributes(&mut signed, &mut saturating)?;
            self.expect(TokenKind::RParen)?;
        }
        let span = self.since(start.span);
        self.semicolon()?;
        Ok(Field { name, width, signed, saturating, span })
    }

    /// `signed, saturating` in any order.
    pub(super) fn attributes(&mut self, signed: &mut bool, saturating: &mut bool) -> Parse<()> {
        loop {
            match self.text(self.peek()) {
                "signed" => *signed = true,
                "saturating" => *saturating = true,
                _ => return Err(self.unexpected("`signed` or `saturating`")),
            }
            self.bump();
            if !self.eat(TokenKind::Comma) {
                return Ok(());
            }
        }
    }

    fn instance(&mut self, kind: InstanceKind) -> Parse<Instance> {
        let start = self.bump();
        let ty = self.name("a header type")?;
        let name = self.name("the instance's name")?;
        let size = if self.eat(TokenKind::LBracket) {
            let size = self.expression()?;
            self.expect(TokenKind::RBracket)?;
            Some(size)
        } else {
            None
        };
        let mut initial = Vec::new();
        if self.at(TokenKind::LBrace) {
            self.braced(|p| {
                let name = p.name("a field's name")?;
                p.expect(TokenKind::Colon)?;
                let value = p.expression()?;
                initial.push((name, value));
                p.semicolon()
            })?;
        } else {
            self.semicolon()?;
        }
        let span = self.since(start.span);
        if kind == InstanceKind::Header && !initial.is_empty() {
            self.complain(span, "only metadata has initial values", None);
            initial.clear();
        }
        Ok(Instance { kind, ty, name, size, initial, span })
    }

    fn field_list(&mut self) -> Parse<FieldList> {
        let start = self.bump();
        let name = self.name("a field list's name")?;
        let mut entries = Vec::new();
        self.braced(|p| {
            let token = p.peek();
            entries.push(if p.eat_word("payload") {
                FieldListEntry::Payload(token.span)
            } else if token.kind == TokenKind::Word {
                FieldListEntry::Reference(p.reference()?)
            } else {
                FieldListEntry::Value(p.expression()?)
            });
            p.semicolon()
        })?;
        Ok(FieldList { name, entries, span: self.since(start.span) })
    }

    fn calculation(&mut self) -> Parse<Calculation> {
        let start = self.bump();
        let name = self.name("a calculation's name")?;
        let (mut inputs, mut algorithms, mut output_width) = (Vec::new(), Vec::new(), None);
        self.braced(|p| {
            if p.eat_word("input") {
                return p.braced(|p| {
                    inputs.push(p.name("a field list")?);
                    p.semicolon()
                });
            }
            if p.eat_word("algorithm") {
                if p.at(TokenKind::LBrace) {
                    return p.braced(|p| {
                        algorithms.push(p.name("an algorithm")?);
                        p.semicolon()
                    });
                }
                p.expect(TokenKind::Colon)?;
                algorithms.push(p.name("an algorithm")?);
                return p.semicolon();
            }
            if p.eat_word("output_width") {
                p.expect(TokenKind::Colon)?;
                output_width = Some(p.expression()?);
                return p.semicolon();
            }
            Err(p.unexpected("`input`, `algorithm` or `output_width`"))
        })?;
        Ok(Calculation { name, inputs, algorithms, output_width, span: self.since(start.span) })
    }

    fn calculated_field(&mut self) -> Parse<CalculatedField> {
        let start = self.bump();
        let field = self.reference()?;
        let mut rules = Vec::new();
        self.braced(|p| {
            let rule = p.peek();
            let update = match p.text(rule) {
                "update" => true,
                "verify" => false,
                _ => return Err(p.unexpected("`verify` or `update`")),
            };
            p.bump();
            let calculation = p.name("a calculation")?;
            let condition = if p.eat_word("if") {
                p.expect(TokenKind::LParen)?;
                let condition = p.expression()?;
                p.expect(TokenKind::RParen)?;
                Some(condition)
            } else {
                None
            };
            rules.push(CalculationRule { update, calculation, condition, span: p.since(rule.span) });
            p.semicolon()
        })?;
        Ok(CalculatedField { field, rules, span: self.since(start.span) })
    }

    fn value_set(&mut self, pragmas: Vec<Pragma>) -> Parse<ValueSet> {
        let start = self.bump();
        let name = self.name("a value set's name")?;
        self.semicolon()?;
        Ok(ValueSet { pragmas, name, span: self.since(start.span) })
    }
}
