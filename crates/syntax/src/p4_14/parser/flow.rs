//! Parser functions, parser exceptions and control functions (specification sections 4 and 13).

use crate::diagnostic::Diagnostic;
use crate::p4_14::ast::{
    ApplyCase, ApplyLabel, Case, CaseValue, Control, ParserException, ParserState, ParserStmt, Pragma,
    Return, Stmt, Target,
};
use crate::p4_14::{MAX_ELSE_IFS, MAX_STATEMENT_DEPTH};
use crate::token::TokenKind;

use super::{Parse, Parser};

impl Parser<'_> {
    pub(super) fn parser_state(&mut self, pragmas: Vec<Pragma>) -> Parse<ParserState> {
        let start = self.bump();
        let name = self.name("a parser function's name")?;
        let (mut statements, mut ending) = (Vec::new(), None);
        self.braced(|p| {
            if ending.is_some() {
                return Err(p.unexpected("`}` after `return`"));
            }
            match p.text(p.peek()) {
                "return" | "parse_error" => ending = Some(p.ending()?),
                _ => statements.push(p.parser_statement()?),
            }
            Ok(())
        })?;
        let span = self.since(start.span);
        if ending.is_none() && self.last_error.is_none() {
            self.complain(span, format!("parser function `{name}` has no `return`"), None);
        }
        Ok(ParserState { pragmas, name, statements, ending, span })
    }

    fn parser_statement(&mut self) -> Parse<ParserStmt> {
        let start = self.peek();
        let called = self.nth(1).kind == TokenKind::LParen;
        let statement = match self.text(start) {
            "extract" if called => {
                self.bump();
                self.bump();
                let header = self.reference()?;
                self.expect(TokenKind::RParen)?;
                ParserStmt::Extract(header, self.since(start.span))
            }
            "set_metadata" if called => {
                self.bump();
                self.bump();
                let field = self.reference()?;
                self.expect(TokenKind::Comma)?;
                let value = self.expression()?;
                self.expect(TokenKind::RParen)?;
                ParserStmt::Set(field, value, self.since(start.span))
            }
            "" => return Err(self.unexpected("`extract`, `set_metadata` or `return`")),
            _ => {
                let field = self.reference()?;
                if !self.eat(TokenKind::Assign) {
                    return Err(self.unexpected("`extract`, `set_metadata` or `return`"));
                }
                let value = self.expression()?;
                ParserStmt::Set(field, value, self.since(start.span))
            }
        };
        self.semicolon()?;
        Ok(statement)
    }

    fn ending(&mut self) -> Parse<Return> {
        let start = self.peek();
        if !self.at_word("return") || self.nth(1).kind != TokenKind::Word {
            let target = self.target()?;
            self.semicolon()?;
            return Ok(Return::To(target));
        }
        self.bump();
        if !self.eat_word("select") {
            let target = Target::Named(self.name("a parser or control function")?);
            self.semicolon()?;
            return Ok(Return::To(target));
        }
        self.expect(TokenKind::LParen)?;
        let mut subjects = vec![self.expression()?];
        while self.eat(TokenKind::Comma) {
            subjects.push(self.expression()?);
        }
        self.expect(TokenKind::RParen)?;
        let mut cases = Vec::new();
        self.braced(|p| {
            cases.push(p.case()?);
            Ok(())
        })?;
        Ok(Return::Select { subjects, cases, span: self.since(start.span) })
    }

    /// A function, or `parse_error e`.
    fn target(&mut self) -> Parse<Target> {
        if self.eat_word("parse_error") {
            return Ok(Target::Error(self.name("a parser exception")?));
        }
        Ok(Target::Named(self.name("a parser or control function")?))
    }

    fn case(&mut self) -> Parse<Case> {
        let start = self.peek();
        let mut values = Vec::new();
        if !self.eat_word("default") {
            loop {
                let value = self.expression()?;
                let mask = if self.eat_word("mask") { Some(self.expression()?) } else { None };
                values.push(CaseValue { value, mask });
                if !self.eat(TokenKind::Comma) {
                    break;
                }
            }
        }
        self.expect(TokenKind::Colon)?;
        let target = self.target()?;
        let span = self.since(start.span);
        self.semicolon()?;
        Ok(Case { values, target, span })
    }

    pub(super) fn parser_exception(&mut self) -> Parse<ParserException> {
        let start = self.bump();
        let name = self.name("a parser exception's name")?;
        let (mut statements, mut target, mut ended) = (Vec::new(), None, false);
        self.braced(|p| {
            if ended {
                return Err(p.unexpected("`}`"));
            }
            if p.eat_word("return") {
                target = Some(p.name("a control function")?);
                ended = true;
                return p.semicolon();
            }
            if p.at_word("parser_drop") {
                p.bump();
                ended = true;
                return p.semicolon();
            }
            statements.push(p.parser_statement()?);
            Ok(())
        })?;
        let span = self.since(start.span);
        if !ended {
            self.complain(span, format!("parser exception `{name}` neither returns nor drops"), None);
        }
        Ok(ParserException { name, statements, target, span })
    }

    pub(super) fn control(&mut self) -> Parse<Control> {
        let start = self.bump();
        let name = self.name("a control function's name")?;
        let body = self.statements()?;
        Ok(Control { name, body, span: self.since(start.span) })
    }

    fn statements(&mut self) -> Parse<Vec<Stmt>> {
        self.nested(|p| {
            let mut body = Vec::new();
            p.braced(|p| {
                body.push(p.statement()?);
                Ok(())
            })?;
            Ok(body)
        })
    }

    /// What follows a condition or `else`. The grammar has a block there; that one statement may stand without braces is an
    /// extension that programs use.
    fn branch(&mut self) -> Parse<Vec<Stmt>> {
        if self.at(TokenKind::LBrace) {
            return self.statements();
        }
        self.nested(|p| Ok(vec![p.statement()?]))
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Parse<Vec<Stmt>>) -> Parse<Vec<Stmt>> {
        if self.statements >= MAX_STATEMENT_DEPTH {
            let span = self.peek().span;
            let message = format!("more than {MAX_STATEMENT_DEPTH} statements are nested here");
            return Err(self.report(Diagnostic::error("limit", span, message)));
        }
        self.statements += 1;
        let result = inner(self);
        self.statements -= 1;
        result
    }

    fn statement(&mut self) -> Parse<Stmt> {
        let start = self.peek();
        match self.text(start) {
            "if" => self.if_statement(),
            "apply" => {
                self.bump();
                self.expect(TokenKind::LParen)?;
                let table = self.name("a table")?;
                self.expect(TokenKind::RParen)?;
                let mut cases = Vec::new();
                if self.at(TokenKind::LBrace) {
                    self.braced(|p| {
                        cases.push(p.apply_case()?);
                        Ok(())
                    })?;
                    self.eat(TokenKind::Semicolon);
                } else {
                    self.semicolon()?;
                }
                Ok(Stmt::Apply { table, cases, span: self.since(start.span) })
            }
            _ => {
                let control = self.name("a statement")?;
                self.expect(TokenKind::LParen)?;
                self.expect(TokenKind::RParen)?;
                let span = self.since(start.span);
                self.semicolon()?;
                Ok(Stmt::Call { control, span })
            }
        }
    }

    /// `if (c) { ... } else if (d) { ... } else { ... }`. A chain is no nesting to who reads it; the tree nests, so it has a
    /// limit of its own.
    fn if_statement(&mut self) -> Parse<Stmt> {
        let around = self.branches;
        let chain = self.if_chain();
        self.branches = around;
        chain
    }

    fn if_chain(&mut self) -> Parse<Stmt> {
        let first = self.peek();
        let mut chain = Vec::new();
        let mut otherwise = Vec::new();
        while self.at_word("if") {
            let start = self.bump();
            self.expect(TokenKind::LParen)?;
            let condition = self.expression()?;
            self.expect(TokenKind::RParen)?;
            let then = self.branch()?;
            chain.push((start, condition, then));
            self.branches += 1;
            if self.branches > MAX_ELSE_IFS {
                let message =
                    format!("more than {MAX_ELSE_IFS} branches of `if`, one after or inside the other");
                return Err(self.report(Diagnostic::error("limit", first.span, message)));
            }
            if !self.eat_word("else") {
                break;
            }
            if !self.at_word("if") {
                otherwise = self.branch()?;
                break;
            }
        }
        let mut made: Option<Stmt> = None;
        for (start, condition, then) in chain.into_iter().rev() {
            let otherwise = made.take().map_or_else(|| std::mem::take(&mut otherwise), |inner| vec![inner]);
            made = Some(Stmt::If { condition, then, otherwise, span: self.since(start.span) });
        }
        made.ok_or_else(|| self.unexpected("`if`"))
    }

    fn apply_case(&mut self) -> Parse<ApplyCase> {
        let start = self.peek();
        let mut labels = vec![self.apply_label()?];
        // Several labels for one block are an extension that programs use.
        while self.eat(TokenKind::Comma) {
            labels.push(self.apply_label()?);
        }
        let body = self.statements()?;
        Ok(ApplyCase { labels, body, span: self.since(start.span) })
    }

    fn apply_label(&mut self) -> Parse<ApplyLabel> {
        let token = self.peek();
        let label = match self.text(token) {
            "hit" => ApplyLabel::Hit(token.span),
            "miss" => ApplyLabel::Miss(token.span),
            "default" => ApplyLabel::Default(token.span),
            _ => return Ok(ApplyLabel::Action(self.name("an action, `hit`, `miss` or `default`")?)),
        };
        self.bump();
        Ok(label)
    }
}
