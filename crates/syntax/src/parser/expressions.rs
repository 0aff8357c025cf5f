//! Expressions (specification section 8), by precedence climbing.
//!
//! The functions here give an expression with its height. [`Parser::node`] refuses to build a tree that would be
//! higher than [`MAX_NESTING`] together with what is around it.

use crate::MAX_NESTING;
use crate::ast::{Argument, BinaryOp, Expr, ExprKind, NamedExpr, Type, TypeKind, UnaryOp};
use crate::diagnostic::Diagnostic;
use crate::intern::kw;
use crate::literal;
use crate::span::Span;
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Failed, Height, Parse, Parser};

/// An expression and its height.
type Tall = (Expr, Height);

impl Parser<'_> {
    /// An expression.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.standalone(false, Self::conditional)
    }

    /// Parses an expression inside of something else, and takes its height into account there.
    fn standalone(&mut self, in_angles: bool, parse: fn(&mut Self) -> Parse<Tall>) -> Parse<Expr> {
        let outer = std::mem::replace(&mut self.in_angles, in_angles);
        let result = self.nested(parse);
        self.in_angles = outer;
        let (expr, height) = result?;
        self.inner_height = self.inner_height.max(height);
        Ok(expr)
    }

    /// Parses something, and says how high the expressions inside of it are.
    fn measured<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<(T, Height)> {
        let outer = std::mem::take(&mut self.inner_height);
        let result = parse(self);
        let inner = std::mem::replace(&mut self.inner_height, outer);
        Ok((result?, inner))
    }

    /// An expression that a `>` ends: the width in `bit<...>`.
    pub(super) fn width(&mut self) -> Parse<Expr> {
        self.standalone(true, Self::conditional)
    }

    /// An integer or an expression in parentheses: the priority of a table entry.
    pub(super) fn delimited_expression(&mut self) -> Parse<Expr> {
        self.standalone(false, Self::primary)
    }

    /// What an assignment or call statement begins with: a name with members, indices, slices and calls.
    pub(super) fn postfix_expression(&mut self) -> Parse<Expr> {
        self.standalone(false, Self::postfix)
    }

    fn node(&mut self, kind: ExprKind, span: Span, height: Height) -> Parse<Tall> {
        if self.depth + height.nesting > MAX_NESTING {
            return Err(self.too_deep());
        }
        self.reach(height.levels)?;
        let id = self.expr_id();
        Ok((Expr { kind, span, id }, height))
    }

    fn conditional(&mut self) -> Parse<Tall> {
        let (condition, h1) = self.binary(0)?;
        if !self.eat(TokenKind::Question) {
            return Ok((condition, h1));
        }
        let start = condition.span;
        let (then, h2) = self.nested(Self::conditional)?;
        self.expect(TokenKind::Colon)?;
        let (otherwise, h3) = self.nested(Self::conditional)?;
        let kind = ExprKind::Conditional {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        self.node(kind, self.since(start), h1.max(h2).max(h3).around())
    }

    /// Operators that bind tighter than level `above`.
    fn binary(&mut self, above: u8) -> Parse<Tall> {
        let (mut left, mut height) = self.unary()?;
        let mut chained = false;
        while let Some((op, level, tokens)) = self.infix_operator().filter(|(_, level, _)| *level > above) {
            self.pos += tokens;
            let (right, right_height) = self.nested(|p| p.binary(level))?;
            let span = left.span.to(right.span);
            height =
                if chained { height.followed_by(right_height) } else { height.max(right_height).around() };
            chained = true;
            (left, height) =
                self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), span, height)?;
        }
        Ok((left, height))
    }

    /// The infix operator at hand, its level (higher binds tighter) and its number of tokens.
    fn infix_operator(&self) -> Option<(BinaryOp, u8, usize)> {
        use TokenKind as T;
        let next = self.nth(1);
        let (op, level) = match self.peek().kind {
            T::OrOr => (BinaryOp::Or, 1),
            T::AndAnd => (BinaryOp::And, 2),
            T::EqEq => (BinaryOp::Eq, 3),
            T::NotEq => (BinaryOp::Ne, 3),
            T::Lt => (BinaryOp::Lt, 4),
            T::Le => (BinaryOp::Le, 4),
            T::Gt | T::Ge | T::ShrAssign if self.in_angles => return None,
            T::Gt if next.kind == T::Gt && !next.spaced => return Some((BinaryOp::Shr, 8, 2)),
            T::Gt => (BinaryOp::Gt, 4),
            T::Ge => (BinaryOp::Ge, 4),
            T::Pipe => (BinaryOp::BitOr, 5),
            T::Caret => (BinaryOp::BitXor, 6),
            T::Amp => (BinaryOp::BitAnd, 7),
            T::Shl => (BinaryOp::Shl, 8),
            T::Concat => (BinaryOp::Concat, 9),
            // `[low +: width]`
            T::Plus if next.kind == T::Colon => return None,
            T::Plus => (BinaryOp::Add, 9),
            T::Minus => (BinaryOp::Sub, 9),
            T::SatAdd => (BinaryOp::SatAdd, 9),
            T::SatSub => (BinaryOp::SatSub, 9),
            T::Star => (BinaryOp::Mul, 10),
            T::Slash => (BinaryOp::Div, 10),
            T::Percent => (BinaryOp::Mod, 10),
            _ => return None,
        };
        Some((op, level, 1))
    }

    fn unary(&mut self) -> Parse<Tall> {
        let token = self.peek();
        let op = match token.kind {
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Tilde => UnaryOp::Complement,
            TokenKind::Minus => UnaryOp::Negate,
            TokenKind::Plus => UnaryOp::Plus,
            TokenKind::LParen if self.at_cast() => return self.cast(),
            _ => return self.postfix(),
        };
        self.bump();
        let (operand, height) = self.nested(Self::unary)?;
        self.node(ExprKind::Unary(op, Box::new(operand)), self.since(token.span), height.around())
    }

    fn cast(&mut self) -> Parse<Tall> {
        let open = self.bump();
        let (ty, type_height) = self.measured(Self::ty)?;
        self.expect(TokenKind::RParen)?;
        let (operand, height) = self.nested(Self::unary)?;
        let height = height.max(type_height);
        let kind = ExprKind::Cast(Box::new(ty), Box::new(operand));
        self.node(kind, self.since(open.span), height.around())
    }

    fn postfix(&mut self) -> Parse<Tall> {
        let (mut base, mut height) = self.primary()?;
        while self.at_suffix(&base) {
            let start = base.span;
            let (kind, inner) = self.measured(|p| p.suffix(base))?;
            (base, height) = self.node(kind, self.since(start), height.max(inner).around())?;
        }
        Ok((base, height))
    }

    /// Whether a member access, index, call or the type arguments of one follow.
    fn at_suffix(&self, base: &Expr) -> bool {
        match self.peek().kind {
            TokenKind::Dot | TokenKind::LBracket | TokenKind::LParen => true,
            TokenKind::Lt => self.after_type_args(base).is_some(),
            _ => false,
        }
    }

    fn suffix(&mut self, base: Expr) -> Parse<ExprKind> {
        match self.peek().kind {
            TokenKind::Dot => {
                self.bump();
                Ok(ExprKind::Member(Box::new(base), self.name("a member's name")?))
            }
            TokenKind::LBracket => {
                self.bump();
                self.index(base)
            }
            TokenKind::LParen => self.call(base, Vec::new()),
            _ => {
                let start = base.span;
                let type_args = self.type_args()?;
                match base.kind {
                    ExprKind::Name(path) if self.at(TokenKind::Dot) => {
                        let kind = TypeKind::Specialized(path, type_args);
                        Ok(ExprKind::Type(Box::new(Type { kind, span: self.since(start) })))
                    }
                    _ => self.call(base, type_args),
                }
            }
        }
    }

    fn call(&mut self, callee: Expr, type_args: Vec<Type>) -> Parse<ExprKind> {
        Ok(ExprKind::Call { callee: Box::new(callee), type_args, args: self.arguments()? })
    }

    /// If the `<` at hand opens type arguments, the token after them: `(` or, after the name of a type, `.`
    fn after_type_args(&self, base: &Expr) -> Option<TokenKind> {
        let plain = match &base.kind {
            ExprKind::Name(_) => true,
            ExprKind::Member(..) => false,
            _ => return None,
        };
        let next = self.token_at(self.scan_type_args(self.pos)?).kind;
        (next == TokenKind::LParen || (plain && next == TokenKind::Dot)).then_some(next)
    }

    /// What follows an opening bracket.
    fn index(&mut self, base: Expr) -> Parse<ExprKind> {
        let base = Box::new(base);
        let first = Box::new(self.expression()?);
        let kind = if self.eat(TokenKind::Colon) {
            ExprKind::Slice { base, high: first, low: Box::new(self.expression()?) }
        } else if self.at(TokenKind::Plus) && self.nth(1).kind == TokenKind::Colon {
            self.bump();
            self.bump();
            ExprKind::PlusSlice { base, low: first, width: Box::new(self.expression()?) }
        } else {
            ExprKind::Index(base, first)
        };
        self.expect(TokenKind::RBracket)?;
        Ok(kind)
    }

    fn primary(&mut self) -> Parse<Tall> {
        let token = self.peek();
        let kind = match token.kind {
            TokenKind::Int => {
                self.bump();
                self.integer(token)
            }
            TokenKind::Str => {
                self.bump();
                ExprKind::String(literal::string(token.spelling(self.interner)).into())
            }
            TokenKind::Dots => {
                self.bump();
                ExprKind::Dots
            }
            TokenKind::InvalidHeader => {
                self.bump();
                ExprKind::InvalidHeader
            }
            TokenKind::LParen => return self.parenthesised(),
            TokenKind::LBrace => {
                let (kind, inner) = self.measured(|p| p.nested(Self::braces))?;
                return self.node(kind, self.since(token.span), inner.around());
            }
            TokenKind::Dot => ExprKind::Name(self.path("a name")?),
            TokenKind::Word => self.word(token)?,
            _ => return Err(self.unexpected("an expression")),
        };
        self.node(kind, self.since(token.span), Height::LEAF)
    }

    fn word(&mut self, token: Token) -> Parse<ExprKind> {
        let kind = match token.text {
            kw::TRUE => ExprKind::Bool(true),
            kw::FALSE => ExprKind::Bool(false),
            kw::THIS => ExprKind::This,
            kw::ERROR if self.nth(1).kind == TokenKind::Dot => {
                ExprKind::Type(Box::new(Type { kind: TypeKind::Error, span: token.span }))
            }
            _ if token.is_name() => return Ok(ExprKind::Name(self.path("a name")?)),
            _ => return Err(self.unexpected("an expression")),
        };
        self.bump();
        Ok(kind)
    }

    /// The value of an integer token; reports what is wrong with it.
    pub(super) fn integer(&mut self, token: Token) -> ExprKind {
        match literal::integer(token.spelling(self.interner)) {
            Ok(literal) => ExprKind::Int(literal),
            Err(message) => {
                self.diagnostics.push(Diagnostic::error("integer-literal", token.span, message));
                ExprKind::Invalid
            }
        }
    }

    fn parenthesised(&mut self) -> Parse<Tall> {
        let open = self.bump();
        let outer = std::mem::take(&mut self.in_angles);
        let inner = self.nested(Self::conditional);
        self.in_angles = outer;
        let (mut inner, height) = inner?;
        self.expect(TokenKind::RParen)?;
        inner.span = self.since(open.span);
        Ok((inner, height))
    }

    /// `{ a, b }` or `{ f = a, g = b, ... }`
    fn braces(&mut self) -> Parse<ExprKind> {
        self.bump();
        let has_names = self.peek().is_name() && self.nth(1).kind == TokenKind::Assign;
        if !has_names {
            let elements = self.list(TokenKind::RBrace, true, Self::expression)?;
            if self.at(TokenKind::Assign) {
                return Err(self.partly_named());
            }
            self.expect(TokenKind::RBrace)?;
            return Ok(ExprKind::List(elements));
        }
        let mut fields = Vec::new();
        let mut dots = None;
        loop {
            let token = self.peek();
            if token.kind == TokenKind::Dots {
                self.bump();
                dots = Some(token.span);
                self.eat(TokenKind::Comma);
                break;
            }
            if !(token.is_name() && self.nth(1).kind == TokenKind::Assign) {
                return Err(self.partly_named());
            }
            let name = self.name("a member's name")?;
            self.expect(TokenKind::Assign)?;
            fields.push(NamedExpr { name, value: self.expression()? });
            if !self.eat(TokenKind::Comma) || self.at(TokenKind::RBrace) {
                break;
            }
        }
        self.expect(TokenKind::RBrace)?;
        Ok(ExprKind::Struct { fields, dots })
    }

    fn partly_named(&mut self) -> Failed {
        let span = self.peek().span;
        let message = "either all members are named or none";
        self.report(
            Diagnostic::error("syntax", span, message).with_help("write `{ a = 1, b = 2 }` or `{ 1, 2 }`"),
        )
    }

    /// `(argument, ...)`
    pub(super) fn arguments(&mut self) -> Parse<Vec<Argument>> {
        self.expect(TokenKind::LParen)?;
        let args = self.list(TokenKind::RParen, false, Self::argument)?;
        self.expect(TokenKind::RParen)?;
        Ok(args)
    }

    fn argument(&mut self) -> Parse<Argument> {
        let start = self.peek();
        let mut name = None;
        if start.is_name() && self.nth(1).kind == TokenKind::Assign {
            name = Some(self.name("a parameter's name")?);
            self.bump();
        }
        let value = if self.eat(TokenKind::DontCare) { None } else { Some(self.expression()?) };
        Ok(Argument { name, value, span: self.since(start.span) })
    }

    /// Declares a name as a value where it was parsed already.
    pub(super) fn declare_value(&mut self, token: Token) {
        self.scopes.declare(token.text, Meaning::Value);
    }
}
