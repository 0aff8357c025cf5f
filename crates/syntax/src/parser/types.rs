//! Types as written (specification section 7).

use crate::ast::{Name, Type, TypeKind};
use crate::intern::kw;
use crate::token::TokenKind;

use super::scope::Meaning;
use super::{Parse, Parser};

impl Parser<'_> {
    /// A type, `void` not included.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        let ty = self.ty_or_void()?;
        if matches!(ty.kind, TypeKind::Void) {
            self.complain(ty.span, "`void` is not a type of values", None);
        }
        Ok(ty)
    }

    /// A type, or `void` where it is the type of a result or a type argument.
    pub(super) fn ty_or_void(&mut self) -> Parse<Type> {
        self.nested(|p| {
            let start = p.peek().span;
            let kind = p.type_without_sizes()?;
            let mut ty = Type { kind, span: p.since(start) };
            let mut height = 0;
            while p.eat(TokenKind::LBracket) {
                height += 1;
                if p.depth + height > crate::MAX_NESTING {
                    return Err(p.too_deep());
                }
                let size = p.expression()?;
                p.expect(TokenKind::RBracket)?;
                ty = Type { kind: TypeKind::Stack(Box::new(ty), Box::new(size)), span: p.since(start) };
            }
            Ok(ty)
        })
    }

    fn type_without_sizes(&mut self) -> Parse<TypeKind> {
        let token = self.peek();
        if token.kind == TokenKind::Word {
            let simple = match token.text {
                kw::BOOL => Some(TypeKind::Bool),
                kw::ERROR => Some(TypeKind::Error),
                kw::MATCH_KIND => Some(TypeKind::MatchKind),
                kw::STRING => Some(TypeKind::String),
                kw::VOID => Some(TypeKind::Void),
                _ => None,
            };
            if let Some(kind) = simple {
                self.bump();
                return Ok(kind);
            }
            match token.text {
                kw::BIT | kw::INT | kw::VARBIT => return self.sized_type(),
                kw::TUPLE => {
                    self.bump();
                    return Ok(TypeKind::Tuple(self.type_args()?));
                }
                kw::LIST if self.nth(1).kind == TokenKind::Lt => {
                    self.bump();
                    let mut args = self.type_args()?;
                    return match (args.pop(), args.is_empty()) {
                        (Some(element), true) => Ok(TypeKind::List(Box::new(element))),
                        _ => {
                            self.complain(self.since(token.span), "`list` takes one type argument", None);
                            Ok(TypeKind::Invalid)
                        }
                    };
                }
                _ => {}
            }
        }
        if !(token.is_name() || token.kind == TokenKind::Dot) {
            return Err(self.unexpected("a type"));
        }
        let path = self.path("a type's name")?;
        if self.at(TokenKind::Lt) {
            return Ok(TypeKind::Specialized(path, self.type_args()?));
        }
        Ok(TypeKind::Name(path))
    }

    /// `bit`, `int`, `bit<8>`, `int<(W)>`, `varbit<320>`
    fn sized_type(&mut self) -> Parse<TypeKind> {
        let keyword = self.bump();
        if !self.eat(TokenKind::Lt) {
            return match keyword.text {
                kw::BIT => Ok(TypeKind::Bits(None)),
                kw::INT => Ok(TypeKind::Int),
                _ => Err(self.unexpected("`<`")),
            };
        }
        let width = match self.peek().kind {
            TokenKind::Int | TokenKind::LParen => self.delimited_expression()?,
            _ => return Err(self.unexpected("a width: an integer, or an expression in parentheses")),
        };
        self.expect(TokenKind::Gt)?;
        let width = Box::new(width);
        Ok(match keyword.text {
            kw::BIT => TypeKind::Bits(Some(width)),
            kw::INT => TypeKind::SignedBits(width),
            _ => TypeKind::Varbit(width),
        })
    }

    /// `<T, ...>`
    pub(super) fn type_args(&mut self) -> Parse<Vec<Type>> {
        self.expect(TokenKind::Lt)?;
        let args = self.list(TokenKind::Gt, false, |p| {
            let token = p.peek();
            if token.kind == TokenKind::DontCare {
                p.bump();
                return Ok(Type { kind: TypeKind::DontCare, span: token.span });
            }
            p.ty_or_void()
        })?;
        self.expect(TokenKind::Gt)?;
        Ok(args)
    }

    /// `<T, ...>` or nothing, in a declaration: the names are types from now on.
    pub(super) fn type_params(&mut self) -> Parse<Vec<Name>> {
        if !self.eat(TokenKind::Lt) {
            return Ok(Vec::new());
        }
        let mut params = vec![self.declared_name(Meaning::Type, "a type parameter's name")?];
        while self.eat(TokenKind::Comma) {
            params.push(self.declared_name(Meaning::Type, "a type parameter's name")?);
        }
        self.expect(TokenKind::Gt)?;
        Ok(params)
    }
}
