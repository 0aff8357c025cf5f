//! Parsers and controls (specification sections 13 and 14).

use crate::ast::{
    Annotation, Block, BlockType, Control, Declaration, Name, Parser as ParserDeclaration, ParserState,
    Select, SelectCase, Stmt, Transition, ValueSet,
};
use crate::intern::kw;
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Parse, Parser};

/// A local element of a parser.
enum ParserElement {
    Local(Declaration),
    State(ParserState),
}

impl Parser<'_> {
    /// `parser P(...);` or `parser P(...) { ... }`
    pub(super) fn parser(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        let name = self.declared_name(Meaning::Type, "the parser's name")?;
        self.scoped(|p| {
            let header = p.block_header(annotations, name, start)?;
            if p.eat(TokenKind::Semicolon) {
                return Ok(Declaration::ParserType(BlockType { span: p.since(start.span), ..header }));
            }
            let constructor_params = if p.at(TokenKind::LParen) { p.parameters()? } else { Vec::new() };
            let open = p.block_open()?;
            let elements = p.braced_items(open, Self::at_top_level_keyword, |p, out| {
                let seen_state = out.iter().any(|e| matches!(e, ParserElement::State(_)));
                out.push(p.parser_element(seen_state)?);
                Ok(())
            });
            let (mut locals, mut states) = (Vec::new(), Vec::new());
            for element in elements {
                match element {
                    ParserElement::Local(local) => locals.push(local),
                    ParserElement::State(state) => states.push(state),
                }
            }
            if states.is_empty() {
                p.complain(
                    header.name.span,
                    "a parser needs at least one state",
                    Some("add `state start { ... }`"),
                );
            }
            Ok(Declaration::Parser(ParserDeclaration {
                header,
                constructor_params,
                locals,
                states,
                span: p.since(start.span),
            }))
        })
    }

    /// Type parameters and parameters of a parser, control or package.
    pub(super) fn block_header(
        &mut self,
        annotations: Vec<Annotation>,
        name: Name,
        start: Token,
    ) -> Parse<BlockType> {
        let type_params = self.type_params()?;
        let params = self.parameters()?;
        Ok(BlockType { annotations, name, type_params, params, span: self.since(start.span) })
    }

    fn block_open(&mut self) -> Parse<Token> {
        if self.at(TokenKind::LBrace) { Ok(self.bump()) } else { Err(self.unexpected("`{` or `;`")) }
    }

    fn parser_element(&mut self, seen_state: bool) -> Parse<ParserElement> {
        let start = self.peek();
        let annotations = self.annotations()?;
        if self.at_word(kw::STATE) && self.nth(1).is_name() && self.nth(2).kind == TokenKind::LBrace {
            return Ok(ParserElement::State(self.state(annotations, start)?));
        }
        let local = if self.at_word(kw::VALUE_SET) {
            self.value_set(annotations, start)?
        } else {
            self.local_declaration(annotations, start, "a state or a declaration")?
        };
        if seen_state {
            self.complain(local.span(), "declarations in a parser stand before its states", None);
        }
        Ok(ParserElement::Local(local))
    }

    fn value_set(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        self.expect(TokenKind::Lt)?;
        let ty = self.ty()?;
        self.expect(TokenKind::Gt)?;
        self.expect(TokenKind::LParen)?;
        let size = self.expression()?;
        self.expect(TokenKind::RParen)?;
        let name = self.declared_name(Meaning::Value, "the value set's name")?;
        self.semicolon()?;
        Ok(Declaration::ValueSet(ValueSet { annotations, ty, size, name, span: self.since(start.span) }))
    }

    fn state(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<ParserState> {
        self.bump();
        let name = self.name("the state's name")?;
        let open = self.expect(TokenKind::LBrace)?;
        self.scopes.push();
        let mut transition = None;
        let statements = self.braced_items(open, Self::at_block_end_keyword, |p, out: &mut Vec<Stmt>| {
            if p.at_word(kw::TRANSITION) {
                transition = Some(p.transition()?);
                if !p.at(TokenKind::RBrace) && !p.at_block_end_keyword() {
                    return Err(p.unexpected("`}`: nothing follows a transition"));
                }
                return Ok(());
            }
            let statement = p.statement_or_declaration()?;
            p.check_parser_statement(&statement);
            out.push(statement);
            Ok(())
        });
        self.scopes.pop();
        Ok(ParserState { annotations, name, statements, transition, span: self.since(start.span) })
    }

    fn transition(&mut self) -> Parse<Transition> {
        self.bump();
        if self.at_word(kw::SELECT) {
            return Ok(Transition::Select(self.select()?));
        }
        let state = self.name("a state's name or `select`")?;
        self.semicolon()?;
        Ok(Transition::To(state))
    }

    fn select(&mut self) -> Parse<Select> {
        let start = self.bump();
        self.expect(TokenKind::LParen)?;
        let subjects = self.list(TokenKind::RParen, false, Self::expression)?;
        self.expect(TokenKind::RParen)?;
        let open = self.expect(TokenKind::LBrace)?;
        let cases = self.braced_items(open, Self::at_block_end_keyword, |p, out| {
            let start = p.peek().span;
            let keyset = p.keyset()?;
            p.expect(TokenKind::Colon)?;
            let state = p.name("a state's name")?;
            p.semicolon()?;
            out.push(SelectCase { keyset, state, span: p.since(start) });
            Ok(())
        });
        Ok(Select { subjects, cases, span: self.since(start.span) })
    }

    /// `control C(...);` or `control C(...) { ... }`
    pub(super) fn control(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        self.bump();
        let name = self.declared_name(Meaning::Type, "the control's name")?;
        self.scoped(|p| {
            let header = p.block_header(annotations, name, start)?;
            if p.eat(TokenKind::Semicolon) {
                return Ok(Declaration::ControlType(BlockType { span: p.since(start.span), ..header }));
            }
            let constructor_params = if p.at(TokenKind::LParen) { p.parameters()? } else { Vec::new() };
            let open = p.block_open()?;
            let mut apply: Option<Block> = None;
            let locals = p.braced_items(open, Self::at_top_level_keyword, |p, out| {
                if p.at_word(kw::APPLY) && matches!(p.nth(1).kind, TokenKind::LBrace | TokenKind::At) {
                    let word = p.bump();
                    let annotations = p.annotations()?;
                    let body = p.block(annotations)?;
                    if apply.is_some() {
                        p.complain(word.span, "a control has one `apply` block", None);
                    }
                    apply.get_or_insert(body);
                    return Ok(());
                }
                let local = p.control_local()?;
                if apply.is_some() {
                    p.complain(
                        local.span(),
                        "declarations in a control stand before its `apply` block",
                        None,
                    );
                }
                out.push(local);
                Ok(())
            });
            let apply = apply.unwrap_or_else(|| {
                let span = p.previous().span;
                p.complain(header.name.span, "a control needs an `apply` block", Some("add `apply { ... }`"));
                Block { annotations: Vec::new(), statements: Vec::new(), span }
            });
            Ok(Declaration::Control(Control {
                header,
                constructor_params,
                locals,
                apply,
                span: p.since(start.span),
            }))
        })
    }

    fn control_local(&mut self) -> Parse<Declaration> {
        let start = self.peek();
        let annotations = self.annotations()?;
        match self.peek() {
            t if t.is_word(kw::ACTION) => self.action(annotations, start),
            t if t.is_word(kw::TABLE) => self.table(annotations, start),
            _ => self.local_declaration(annotations, start, "a declaration or `apply`"),
        }
    }

    /// A constant, variable or instantiation in a parser or control.
    fn local_declaration(
        &mut self,
        annotations: Vec<Annotation>,
        start: Token,
        what: &str,
    ) -> Parse<Declaration> {
        if self.at_word(kw::CONST) {
            return Ok(Declaration::Constant(self.constant(annotations, start)?));
        }
        if self.at_variable() {
            let variable = self.variable(annotations, start)?;
            if self.at(TokenKind::LParen) || self.at(TokenKind::Lt) {
                let name = variable.name.span;
                self.complain(name, "a function is declared at the top level only", None);
                return Err(super::Failed);
            }
            self.semicolon()?;
            return Ok(Declaration::Variable(variable));
        }
        let instantiates =
            self.scan_type(self.pos).is_some_and(|at| self.token_at(at).kind == TokenKind::LParen);
        if instantiates { self.instantiation(annotations, start) } else { Err(self.unexpected(what)) }
    }
}
