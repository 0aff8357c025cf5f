//! Top-level declarations other than types (specification sections 7.2.9 to 7.2.13, 10, 11 and 14.1).

use crate::ast::{
    Action, Annotation, Declaration, Direction, ExternObject, Function, Instantiation, Method, NameList,
    Parameter, Type,
};
use crate::intern::{Symbol, kw};
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Failed, Parse, Parser};

impl Parser<'_> {
    /// All declarations.
    pub(super) fn program(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        while !self.at(TokenKind::Eof) {
            let before = self.pos;
            if self.eat(TokenKind::Semicolon) {
                continue;
            }
            if self.declaration(&mut declarations).is_err() {
                self.recover(before, true);
                // At this level no brace is open.
                self.eat(TokenKind::RBrace);
            }
        }
        declarations
    }

    fn declaration(&mut self, out: &mut Vec<Declaration>) -> Parse<()> {
        let start = self.peek();
        let annotations = self.annotations()?;
        let token = self.peek();
        let next = self.nth(1);
        let word = if token.kind == TokenKind::Word { token.text } else { Symbol::NONE };
        let declaration = match word {
            kw::CONST => Declaration::Constant(self.constant(annotations, start)?),
            kw::EXTERN => self.extern_declaration(annotations, start)?,
            kw::ACTION => self.action(annotations, start)?,
            kw::PARSER => self.parser(annotations, start)?,
            kw::CONTROL => self.control(annotations, start)?,
            kw::PACKAGE => self.package(annotations, start)?,
            kw::STRUCT | kw::HEADER | kw::HEADER_UNION | kw::ENUM => self.derived_type(annotations, start)?,
            kw::TYPEDEF => return self.typedef(annotations, start, out),
            kw::TYPE if next.kind == TokenKind::Word || next.kind == TokenKind::Dot => {
                return self.typedef(annotations, start, out);
            }
            kw::ERROR if next.kind == TokenKind::LBrace => {
                Declaration::Errors(self.name_list(annotations, start, false)?)
            }
            kw::MATCH_KIND if next.kind == TokenKind::LBrace => {
                Declaration::MatchKinds(self.name_list(annotations, start, true)?)
            }
            kw::TABLE => {
                let table = self.table(annotations, start)?;
                self.complain(table.span(), "a table is declared inside a control", None);
                return Ok(());
            }
            _ if token.is_name() || token.kind == TokenKind::Dot || self.at_builtin_type() => {
                self.function_or_instantiation(annotations, start)?
            }
            _ => return Err(self.unexpected("a declaration")),
        };
        out.push(declaration);
        Ok(())
    }

    /// What begins with a type: a function or an instantiation.
    fn function_or_instantiation(
        &mut self,
        annotations: Vec<Annotation>,
        start: Token,
    ) -> Parse<Declaration> {
        let behind_type = self.scan_type(self.pos).map(|at| self.token_at(at).kind);
        if behind_type == Some(TokenKind::LParen) {
            return self.instantiation(annotations, start);
        }
        let return_type = self.ty_or_void()?;
        let next = self.nth(1).kind;
        if self.peek().is_name() && matches!(next, TokenKind::Semicolon | TokenKind::Assign) {
            let span = self.peek().span;
            self.bump();
            self.complain(span, "a variable cannot be declared at the top level", Some("declare a `const`"));
            return Err(Failed);
        }
        Ok(Declaration::Function(self.function(annotations, return_type, start, true)?))
    }

    /// A function from its name on, with a body or without.
    fn function(
        &mut self,
        annotations: Vec<Annotation>,
        return_type: Type,
        start: Token,
        has_body: bool,
    ) -> Parse<Function> {
        let name = self.declared_name(Meaning::Value, "a function's name")?;
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let params = p.parameters()?;
            let body = if has_body {
                Some(p.block(Vec::new())?)
            } else {
                p.semicolon()?;
                None
            };
            let span = p.since(start.span);
            Ok(Function { annotations, return_type, name, type_params, params, body, span })
        })
    }

    /// `T(args) x;` or `T(args) x = { ... };`
    pub(super) fn instantiation(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        let ty = self.ty()?;
        let args = self.arguments()?;
        let name = self.declared_name(Meaning::Value, "the instance's name")?;
        let ty = self.sizes_behind_name(ty)?;
        let initializer = if self.eat(TokenKind::Assign) {
            let open = self.expect(TokenKind::LBrace)?;
            let members = self.nested(|p| {
                p.scoped(|p| {
                    Ok(p.braced_items(open, Self::at_top_level_keyword, |p, out| {
                        let start = p.peek();
                        let annotations = p.annotations()?;
                        out.push(p.function_or_instantiation(annotations, start)?);
                        Ok(())
                    }))
                })
            })?;
            Some(members)
        } else {
            None
        };
        self.semicolon()?;
        let span = self.since(start.span);
        Ok(Declaration::Instantiation(Instantiation { annotations, ty, args, name, initializer, span }))
    }

    /// `action a(...) { ... }`
    pub(super) fn action(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        let name = self.declared_name(Meaning::Value, "the action's name")?;
        self.scoped(|p| {
            let params = p.parameters()?;
            let body = p.block(Vec::new())?;
            Ok(Declaration::Action(Action { annotations, name, params, body, span: p.since(start.span) }))
        })
    }

    fn package(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        let name = self.declared_name(Meaning::Type, "the package's name")?;
        let mut header = self.scoped(|p| p.block_header(annotations, name, start))?;
        self.semicolon()?;
        header.span = self.since(start.span);
        Ok(Declaration::Package(header))
    }

    fn extern_declaration(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        let is_object = self.peek().is_name()
            && match self.nth(1).kind {
                TokenKind::LBrace => true,
                TokenKind::Lt => self
                    .scan_type_args(self.pos + 1)
                    .is_some_and(|at| self.token_at(at).kind == TokenKind::LBrace),
                _ => false,
            };
        if !is_object {
            let return_type = self.ty_or_void()?;
            return Ok(Declaration::ExternFunction(self.function(annotations, return_type, start, false)?));
        }
        let object = self.peek();
        let name = self.declared_name(Meaning::Type, "the extern's name")?;
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let open = p.expect(TokenKind::LBrace)?;
            let methods = p.braced_items(open, Self::at_top_level_keyword, |p, out| {
                out.push(p.scoped(|p| p.method(object))?);
                Ok(())
            });
            let span = p.since(start.span);
            Ok(Declaration::ExternObject(ExternObject { annotations, name, type_params, methods, span }))
        })
    }

    /// A constructor or method of the extern object named by a token.
    fn method(&mut self, object: Token) -> Parse<Method> {
        let start = self.peek();
        let annotations = self.annotations()?;
        let is_abstract = self.eat_word(kw::ABSTRACT);
        let is_constructor = !is_abstract && self.peek().is_name() && self.nth(1).kind == TokenKind::LParen;
        let return_type = if is_constructor {
            if self.peek().text != object.text {
                let token = self.peek();
                let message = format!(
                    "`{}` has no return type, and is no constructor of `{}`",
                    token.spelling(self.interner),
                    object.spelling(self.interner)
                );
                self.complain(token.span, message, Some("a method that returns nothing is `void`"));
            }
            None
        } else {
            Some(self.ty_or_void()?)
        };
        let name = self.name("a method's name")?;
        let type_params = self.type_params()?;
        let params = self.parameters()?;
        self.semicolon()?;
        let span = self.since(start.span);
        Ok(Method { annotations, is_abstract, return_type, name, type_params, params, span })
    }

    /// `error { A, B }` or `match_kind { a, b }`
    fn name_list(
        &mut self,
        annotations: Vec<Annotation>,
        start: Token,
        trailing_comma: bool,
    ) -> Parse<NameList> {
        self.bump();
        self.expect(TokenKind::LBrace)?;
        let names = self.list(TokenKind::RBrace, trailing_comma, |p| p.name("a name"))?;
        self.expect(TokenKind::RBrace)?;
        Ok(NameList { annotations, names, span: self.since(start.span) })
    }

    /// `(parameter, ...)`: the names are values from now on.
    pub(super) fn parameters(&mut self) -> Parse<Vec<Parameter>> {
        self.expect(TokenKind::LParen)?;
        let params = self.list(TokenKind::RParen, false, Self::parameter)?;
        self.expect(TokenKind::RParen)?;
        Ok(params)
    }

    fn parameter(&mut self) -> Parse<Parameter> {
        let start = self.peek();
        let annotations = self.annotations()?;
        let direction = match self.peek() {
            t if t.is_word(kw::IN) => Direction::In,
            t if t.is_word(kw::OUT) => Direction::Out,
            t if t.is_word(kw::INOUT) => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.ty()?;
        let name = self.declared_name(Meaning::Value, "a parameter's name")?;
        let default = if self.eat(TokenKind::Assign) { Some(self.expression()?) } else { None };
        Ok(Parameter { annotations, direction, ty, name, default, span: self.since(start.span) })
    }
}
