//! Expressions and references. Precedence and associativity are those of C, but for one thing: in the grammar the operands
//! of a comparison are numbers and its result is none, so `a & 1 == 0` compares `a & 1`, and `not a == 0` says that `a` is not 0.

use num_bigint::BigInt;

use crate::diagnostic::Diagnostic;
use crate::literal;
use crate::p4_14::MAX_EXPRESSION_HEIGHT;
use crate::p4_14::ast::{BinaryOp, Expr, ExprKind, Index, Reference, UnaryOp};
use crate::span::Span;
use crate::token::TokenKind;

use super::{Parse, Parser};

/// The lowest precedence of a comparison.
const COMPARISONS: u8 = 3;

/// An expression and its height in nodes.
type Tall = (Expr, usize);

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        Ok(self.binary(0, 0)?.0)
    }

    fn node(&mut self, kind: ExprKind, span: Span, height: usize) -> Parse<Tall> {
        if height > MAX_EXPRESSION_HEIGHT {
            return Err(self.too_high(span));
        }
        Ok((Expr { kind, span }, height))
    }

    fn too_high(&mut self, span: Span) -> super::Failed {
        let message = format!("this expression is more than {MAX_EXPRESSION_HEIGHT} levels high");
        self.report(Diagnostic::error("limit", span, message))
    }

    /// The width between the angle brackets of `bit<8>`.
    pub(super) fn width(&mut self) -> Parse<Expr> {
        Ok(self.unary(0)?.0)
    }

    /// The operator at hand with its precedence and the number of its tokens.
    fn operator(&self) -> Option<(BinaryOp, u8, usize)> {
        let token = self.peek();
        let joined = |kind| {
            let next = self.nth(1);
            next.kind == kind && !next.spaced && !next.starts_line
        };
        Some(match token.kind {
            TokenKind::Word if self.text(token) == "or" => (BinaryOp::Or, 1, 1),
            TokenKind::Word if self.text(token) == "and" => (BinaryOp::And, 2, 1),
            TokenKind::OrOr => (BinaryOp::Or, 1, 1),
            TokenKind::AndAnd => (BinaryOp::And, 2, 1),
            TokenKind::EqEq => (BinaryOp::Eq, COMPARISONS, 1),
            TokenKind::NotEq => (BinaryOp::Ne, COMPARISONS, 1),
            TokenKind::Gt if joined(TokenKind::Gt) => (BinaryOp::Shr, 8, 2),
            TokenKind::Lt => (BinaryOp::Lt, 4, 1),
            TokenKind::Le => (BinaryOp::Le, 4, 1),
            TokenKind::Gt => (BinaryOp::Gt, 4, 1),
            TokenKind::Ge => (BinaryOp::Ge, 4, 1),
            TokenKind::Pipe => (BinaryOp::BitOr, 5, 1),
            TokenKind::Caret => (BinaryOp::BitXor, 6, 1),
            TokenKind::Amp => (BinaryOp::BitAnd, 7, 1),
            TokenKind::Shl => (BinaryOp::Shl, 8, 1),
            TokenKind::Plus => (BinaryOp::Add, 9, 1),
            TokenKind::Minus => (BinaryOp::Sub, 9, 1),
            TokenKind::Star => (BinaryOp::Mul, 10, 1),
            TokenKind::Slash => (BinaryOp::Div, 10, 1),
            TokenKind::Percent => (BinaryOp::Mod, 10, 1),
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8, depth: usize) -> Parse<Tall> {
        let mut left = self.unary(depth)?;
        while let Some((op, precedence, tokens)) = self.operator() {
            if precedence < least {
                break;
            }
            (0..tokens).for_each(|_| {
                self.bump();
            });
            let right = self.binary(precedence + 1, depth + 1)?;
            let span = left.0.span.to(right.0.span);
            let height = left.1.max(right.1) + 1;
            left = self.node(ExprKind::Binary(op, Box::new(left.0), Box::new(right.0)), span, height)?;
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Parse<Tall> {
        let token = self.peek();
        if depth > MAX_EXPRESSION_HEIGHT {
            return Err(self.too_high(token.span));
        }
        let op = match token.kind {
            TokenKind::Word if self.text(token) == "not" => UnaryOp::Not,
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Tilde => UnaryOp::Complement,
            TokenKind::Minus => UnaryOp::Negate,
            TokenKind::Plus => {
                self.bump();
                return self.unary(depth + 1);
            }
            _ => return self.primary(depth),
        };
        self.bump();
        let (operand, height) =
            if op == UnaryOp::Not { self.binary(COMPARISONS, depth + 1)? } else { self.unary(depth + 1)? };
        let span = token.span.to(operand.span);
        self.node(ExprKind::Unary(op, Box::new(operand)), span, height + 1)
    }

    fn primary(&mut self, depth: usize) -> Parse<Tall> {
        let token = self.peek();
        let next = self.nth(1).kind;
        let kind = match token.kind {
            TokenKind::Int => self.integer()?,
            TokenKind::LParen => {
                self.bump();
                let (mut inner, height) = self.binary(0, depth + 1)?;
                self.expect(TokenKind::RParen)?;
                inner.span = self.since(token.span);
                return Ok((inner, height));
            }
            TokenKind::Word => match self.text(token) {
                "true" | "false" => {
                    let value = self.text(token) == "true";
                    self.bump();
                    ExprKind::Bool(value)
                }
                "valid" if next == TokenKind::LParen => {
                    self.bump();
                    self.bump();
                    let reference = self.reference()?;
                    self.expect(TokenKind::RParen)?;
                    ExprKind::Valid(reference)
                }
                "current" => {
                    self.bump();
                    self.expect(TokenKind::LParen)?;
                    let (offset, first) = self.binary(0, depth + 1)?;
                    self.expect(TokenKind::Comma)?;
                    let (width, second) = self.binary(0, depth + 1)?;
                    self.expect(TokenKind::RParen)?;
                    let kind = ExprKind::Current(Box::new(offset), Box::new(width));
                    return self.node(kind, self.since(token.span), first.max(second) + 1);
                }
                _ => ExprKind::Reference(self.reference()?),
            },
            _ => return Err(self.unexpected("an expression")),
        };
        self.node(kind, self.since(token.span), 1)
    }

    /// `42`, `0x2a`, `16'42`
    fn integer(&mut self) -> Parse<ExprKind> {
        let token = self.bump();
        let read =
            |p: &mut Self, token: crate::token::Token| match literal::integer(token.spelling(p.interner)) {
                // Programs write widths as in P4_16, too.
                Ok(literal) if literal.width.is_none_or(|w| !w.signed) => {
                    (literal.value, literal.width.map(|w| w.bits))
                }
                Ok(_) => {
                    p.complain(
                        token.span,
                        "a width is written with an apostrophe in P4_14, as in `8'42`",
                        None,
                    );
                    (BigInt::ZERO, None)
                }
                Err(message) => {
                    p.complain(token.span, message, None);
                    (BigInt::ZERO, None)
                }
            };
        let (value, width) = read(self, token);
        if width.is_some() {
            return Ok(ExprKind::Int { value, width: width.filter(|w| *w > 0) });
        }
        let quote = self.peek();
        if quote.kind != TokenKind::Unknown || quote.spelling(self.interner) != "'" {
            return Ok(ExprKind::Int { value, width: None });
        }
        self.bump();
        let digits = self.expect(TokenKind::Int)?;
        let width = match u32::try_from(value) {
            Ok(width) if width <= literal::MAX_LITERAL_WIDTH => width,
            _ => {
                let limit = literal::MAX_LITERAL_WIDTH;
                self.complain(token.span, format!("this width is over the limit of {limit} bits"), None);
                0
            }
        };
        let (value, _) = read(self, digits);
        Ok(ExprKind::Int { value, width: (width > 0).then_some(width) })
    }

    /// `x`, `x.f`, `x[i]`, `x[i].f`, `latest.f`
    pub(super) fn reference(&mut self) -> Parse<Reference> {
        let token = self.peek();
        let name = if self.at_word("latest") {
            self.bump();
            self.name_of(token)
        } else {
            self.name("a name")?
        };
        let index = if self.eat(TokenKind::LBracket) {
            let span = self.peek().span;
            let index = if self.eat_word("next") {
                Index::Next(span)
            } else if self.eat_word("last") {
                Index::Last(span)
            } else {
                Index::At(Box::new(self.expression()?))
            };
            self.expect(TokenKind::RBracket)?;
            Some(index)
        } else {
            None
        };
        let field = if self.eat(TokenKind::Dot) {
            let token = self.peek();
            if token.kind != TokenKind::Word {
                return Err(self.unexpected("a field's name"));
            }
            self.bump();
            Some(self.name_of(token))
        } else {
            None
        };
        Ok(Reference { name, index, field, span: self.since(token.span) })
    }
}
