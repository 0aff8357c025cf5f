//! Statements (specification section 12).

use crate::ast::{
    Annotation, BinaryOp, Block, Constant, Expr, ExprKind, ForCollection, ForInLoop, ForLoop, Stmt, StmtKind,
    SwitchCase, Variable,
};
use crate::diagnostic::Diagnostic;
use crate::intern::kw;
use crate::span::Span;
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Parse, Parser};

impl Parser<'_> {
    /// `{ ... }`; annotations were parsed already.
    pub(super) fn block(&mut self, annotations: Vec<Annotation>) -> Parse<Block> {
        self.nested(|p| {
            let open = p.expect(TokenKind::LBrace)?;
            let statements = p.scoped(|p| Ok(p.statements(open)))?;
            Ok(Block { annotations, statements, span: p.since(open.span) })
        })
    }

    fn statements(&mut self, open: Token) -> Vec<Stmt> {
        self.braced_items(open, Self::at_block_end_keyword, |p, out| {
            out.push(p.statement_or_declaration()?);
            Ok(())
        })
    }

    /// A statement, variable or constant.
    pub(super) fn statement_or_declaration(&mut self) -> Parse<Stmt> {
        let start = self.peek();
        let annotations = self.annotations()?;
        let kind = if self.at_word(kw::CONST) {
            StmtKind::Constant(self.constant(annotations, start)?)
        } else if self.at_variable() {
            let variable = self.variable(annotations, start)?;
            self.semicolon()?;
            StmtKind::Variable(variable)
        } else {
            return self.annotated_statement(annotations, start);
        };
        Ok(Stmt { kind, span: self.since(start.span) })
    }

    /// A statement, not a declaration: the body of an `if` or `for`.
    fn statement(&mut self) -> Parse<Stmt> {
        let start = self.peek();
        let annotations = self.annotations()?;
        if self.at_word(kw::CONST) || self.at_variable() {
            let span = self.peek().span;
            self.complain(span, "a declaration cannot stand here", Some("put it in a block: `{ ... }`"));
            return self.statement_or_declaration();
        }
        self.annotated_statement(annotations, start)
    }

    fn annotated_statement(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Stmt> {
        let token = self.peek();
        let takes_annotations = token.kind == TokenKind::LBrace || token.is_word(kw::FOR);
        if let (Some(first), false) = (annotations.first(), takes_annotations) {
            self.complain(first.span, "a statement of this kind takes no annotations", None);
        }
        let kind = self.nested(|p| p.statement_kind(annotations, token))?;
        Ok(Stmt { kind, span: self.since(start.span) })
    }

    fn statement_kind(&mut self, annotations: Vec<Annotation>, token: Token) -> Parse<StmtKind> {
        match token.kind {
            TokenKind::Semicolon => {
                self.bump();
                return Ok(StmtKind::Empty);
            }
            TokenKind::LBrace if self.nth(1).is_name() && self.nth(2).kind == TokenKind::Comma => {
                let message = "a list cannot be assigned to";
                let found = Diagnostic::error("syntax", token.span, message);
                let failed = self.report(found.with_help("assign to its members one by one"));
                self.skip_one();
                return Err(failed);
            }
            TokenKind::LBrace => return Ok(StmtKind::Block(self.block(annotations)?)),
            TokenKind::Word => {}
            _ => return self.assignment_or_call(),
        }
        let simple = match token.text {
            kw::IF => return self.if_statement(),
            kw::SWITCH => return self.switch(),
            kw::FOR => return self.for_loop(annotations),
            kw::RETURN => {
                self.bump();
                let has_value = !self.at(TokenKind::Semicolon) && !self.at(TokenKind::RBrace);
                StmtKind::Return(if has_value { Some(self.expression()?) } else { None })
            }
            kw::BREAK => {
                self.bump();
                StmtKind::Break
            }
            kw::CONTINUE => {
                self.bump();
                StmtKind::Continue
            }
            kw::EXIT => {
                self.bump();
                StmtKind::Exit
            }
            _ => return self.assignment_or_call(),
        };
        self.semicolon()?;
        Ok(simple)
    }

    fn assignment_or_call(&mut self) -> Parse<StmtKind> {
        let kind = self.assignment_or_call_without_semicolon()?;
        if let StmtKind::Call(call) = &kind
            && self.peek().is_name()
            && !self.peek().starts_line
        {
            let span = call.span;
            self.bump();
            let span = self.since(span);
            self.complain(
                span,
                "an instantiation cannot stand among statements",
                Some("declare it outside of the block"),
            );
            if self.at(TokenKind::Assign) && self.nth(1).kind == TokenKind::LBrace {
                self.bump();
                self.skip_one();
            }
        }
        self.semicolon()?;
        Ok(kind)
    }

    fn assignment_or_call_without_semicolon(&mut self) -> Parse<StmtKind> {
        let token = self.peek();
        let begins = token.is_name()
            || matches!(token.kind, TokenKind::Dot | TokenKind::LParen)
            || token.is_word(kw::THIS);
        if !begins {
            return Err(self.unexpected("a statement"));
        }
        let target = self.postfix_expression()?;
        if let Some(op) = self.assignment_operator() {
            if !is_lvalue(&target) {
                self.complain(target.span, "this cannot be assigned to", None);
            }
            self.bump();
            let value = self.expression()?;
            return Ok(StmtKind::Assign { op, target, value });
        }
        match &target.kind {
            ExprKind::Call { callee, .. } => {
                if !is_lvalue(callee) {
                    self.complain(callee.span, "this cannot be called in a statement", None);
                }
                Ok(StmtKind::Call(target))
            }
            _ => Err(self.unexpected("`=`, another assignment operator or `(`")),
        }
    }

    /// The assignment operator at hand: none inside for `=`.
    fn assignment_operator(&self) -> Option<Option<BinaryOp>> {
        Some(match self.peek().kind {
            TokenKind::Assign => None,
            TokenKind::MulAssign => Some(BinaryOp::Mul),
            TokenKind::DivAssign => Some(BinaryOp::Div),
            TokenKind::ModAssign => Some(BinaryOp::Mod),
            TokenKind::AddAssign => Some(BinaryOp::Add),
            TokenKind::SubAssign => Some(BinaryOp::Sub),
            TokenKind::SatAddAssign => Some(BinaryOp::SatAdd),
            TokenKind::SatSubAssign => Some(BinaryOp::SatSub),
            TokenKind::ShlAssign => Some(BinaryOp::Shl),
            TokenKind::ShrAssign => Some(BinaryOp::Shr),
            TokenKind::AndAssign => Some(BinaryOp::BitAnd),
            TokenKind::OrAssign => Some(BinaryOp::BitOr),
            TokenKind::XorAssign => Some(BinaryOp::BitXor),
            _ => return None,
        })
    }

    fn if_statement(&mut self) -> Parse<StmtKind> {
        let levels = self.levels;
        let chain = self.if_chain();
        self.levels = levels;
        chain
    }

    /// `if (c) s else if (d) t else u`: no branch is inside of the one before, to who writes them.
    fn if_chain(&mut self) -> Parse<StmtKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let start = self.bump().span;
            self.expect(TokenKind::LParen)?;
            let condition = self.expression()?;
            self.expect(TokenKind::RParen)?;
            branches.push((start, condition, Box::new(self.scoped(Self::statement)?)));
            if !self.eat_word(kw::ELSE) {
                break;
            }
            if !self.at_word(kw::IF) {
                otherwise = Some(Box::new(self.scoped(Self::statement)?));
                break;
            }
            self.reach(1)?;
            self.levels += 1;
        }
        let mut made = None;
        for (start, condition, then) in branches.into_iter().rev() {
            let otherwise = made.map(Box::new).or(otherwise.take());
            let kind = StmtKind::If { condition, then, otherwise };
            made = Some(Stmt { kind, span: self.since(start) });
        }
        match made {
            Some(first) => Ok(first.kind),
            None => Err(self.unexpected("`if`")),
        }
    }

    fn switch(&mut self) -> Parse<StmtKind> {
        self.bump();
        self.expect(TokenKind::LParen)?;
        let subject = self.expression()?;
        self.expect(TokenKind::RParen)?;
        let open = self.expect(TokenKind::LBrace)?;
        let cases = self.braced_items(open, Self::at_block_end_keyword, |p, out| {
            out.push(p.switch_case()?);
            Ok(())
        });
        Ok(StmtKind::Switch { subject, cases })
    }

    fn switch_case(&mut self) -> Parse<SwitchCase> {
        let start = self.peek();
        let label = if self.eat_word(kw::DEFAULT) {
            None
        } else if start.kind == TokenKind::LBrace {
            return Err(self.unexpected("a label"));
        } else {
            Some(self.expression()?)
        };
        let label_span = self.since(start.span);
        self.expect(TokenKind::Colon)?;
        let body = if self.at(TokenKind::LBrace) || self.at(TokenKind::At) {
            let annotations = self.annotations()?;
            Some(self.block(annotations)?)
        } else {
            None
        };
        Ok(SwitchCase { label, label_span, body })
    }

    fn for_loop(&mut self, annotations: Vec<Annotation>) -> Parse<StmtKind> {
        self.bump();
        self.expect(TokenKind::LParen)?;
        self.nested(|p| p.scoped(|p| p.for_head(annotations)))
    }

    /// What follows `for (`.
    fn for_head(&mut self, annotations: Vec<Annotation>) -> Parse<StmtKind> {
        let start = self.peek();
        let first = self.annotations()?;
        if self.at_variable() {
            let variable = self.variable(first, start)?;
            if variable.init.is_none() && self.eat_word(kw::IN) {
                return self.for_in(annotations, variable);
            }
            let init = Stmt { kind: StmtKind::Variable(variable), span: self.since(start.span) };
            return self.for_rest(annotations, vec![init]);
        }
        if let Some(first) = first.first() {
            self.complain(first.span, "only a declaration takes annotations here", None);
        }
        let mut init = Vec::new();
        if self.peek().is_name() && self.nth(1).is_word(kw::IN) {
            let message = "the variable of this loop has no type";
            let found = Diagnostic::error("syntax", self.peek().span, message);
            return Err(self.report(found.with_help("declare it here: `for (bit<8> x in ...)`")));
        }
        if !self.at(TokenKind::Semicolon) {
            init.push(self.simple_statement()?);
        }
        self.for_rest(annotations, init)
    }

    /// What follows `for (T x in`.
    fn for_in(&mut self, annotations: Vec<Annotation>, variable: Variable) -> Parse<StmtKind> {
        let low = self.expression()?;
        let collection = if self.eat(TokenKind::DotDot) {
            ForCollection::Range(low, self.expression()?)
        } else {
            ForCollection::Expr(low)
        };
        self.expect(TokenKind::RParen)?;
        let body = self.scoped(Self::statement)?;
        Ok(StmtKind::ForIn(Box::new(ForInLoop { annotations, variable, collection, body })))
    }

    /// What follows the first statement in `for (`.
    fn for_rest(&mut self, annotations: Vec<Annotation>, mut init: Vec<Stmt>) -> Parse<StmtKind> {
        while !init.is_empty() && self.eat(TokenKind::Comma) {
            let start = self.peek();
            let first = self.annotations()?;
            init.push(if self.at_variable() {
                let kind = StmtKind::Variable(self.variable(first, start)?);
                Stmt { kind, span: self.since(start.span) }
            } else {
                self.simple_statement()?
            });
        }
        self.expect(TokenKind::Semicolon)?;
        let condition = self.expression()?;
        self.expect(TokenKind::Semicolon)?;
        let update = self.list(TokenKind::RParen, false, Self::simple_statement)?;
        self.expect(TokenKind::RParen)?;
        let body = self.scoped(Self::statement)?;
        Ok(StmtKind::For(Box::new(ForLoop { annotations, init, condition, update, body })))
    }

    /// An assignment or call in the head of a `for`.
    fn simple_statement(&mut self) -> Parse<Stmt> {
        let start = self.peek().span;
        let kind = self.assignment_or_call_without_semicolon()?;
        Ok(Stmt { kind, span: self.since(start) })
    }

    /// `T x` or `T x = e`, without the `;`.
    pub(super) fn variable(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Variable> {
        let ty = self.ty()?;
        let named = self.peek();
        let name = self.name("a variable's name")?;
        let ty = self.sizes_behind_name(ty)?;
        let init = if self.eat(TokenKind::Assign) { Some(self.expression()?) } else { None };
        // After its own initial value, which may use an outer one of the same name.
        self.declare_value(named);
        Ok(Variable { annotations, ty, name, init, span: self.since(start.span) })
    }

    /// `const T x = e;`
    pub(super) fn constant(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Constant> {
        self.expect_word(kw::CONST)?;
        let ty = self.ty()?;
        let name = self.declared_name(Meaning::Value, "the constant's name")?;
        self.expect(TokenKind::Assign)?;
        let value = self.expression()?;
        self.semicolon()?;
        Ok(Constant { annotations, ty, name, value, span: self.since(start.span) })
    }

    /// Reports statements that cannot stand directly in a parser state, blocks looked into.
    pub(super) fn check_parser_statement(&mut self, statement: &Stmt) {
        let what = match &statement.kind {
            StmtKind::Switch { .. } => "a `switch`",
            StmtKind::Return(_) => "a `return`",
            StmtKind::Exit => "an `exit`",
            StmtKind::Block(block) => {
                return block.statements.iter().for_each(|s| self.check_parser_statement(s));
            }
            _ => return,
        };
        let span: Span = statement.span;
        self.complain(span, format!("{what} cannot stand in a parser state"), None);
    }
}

/// Whether an expression has the form of an l-value: a name with members, indices and slices.
fn is_lvalue(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::This | ExprKind::Type(_) | ExprKind::Invalid => true,
        ExprKind::Member(base, _)
        | ExprKind::Index(base, _)
        | ExprKind::Slice { base, .. }
        | ExprKind::PlusSlice { base, .. } => is_lvalue(base),
        _ => false,
    }
}
