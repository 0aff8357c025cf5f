//! Types as written (specification section 7).

use crate::MAX_NESTING;
use crate::ast::{Expr, Name, Type, TypeKind};
use crate::intern::kw;
use crate::span::Span;
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
            let ty = Type { kind, span: p.since(start) };
            let sizes = p.sizes()?;
            Ok(sizes.into_iter().fold(ty, |ty, (size, end)| stack(ty, size, start.to(end))))
        })
    }

    /// `[n]`... after the name of a variable, field or instance: p4c takes the sizes of an array there too.
    pub(super) fn sizes_behind_name(&mut self, ty: Type) -> Parse<Type> {
        let sizes = self.sizes()?;
        let span = ty.span;
        // Of `T x[2][3]` the elements are `T[3]`.
        Ok(sizes.into_iter().rev().fold(ty, |ty, (size, _)| stack(ty, size, span)))
    }

    /// `[n]`..., each with the place of its end.
    fn sizes(&mut self) -> Parse<Vec<(Expr, Span)>> {
        let mut sizes = Vec::new();
        while self.eat(TokenKind::LBracket) {
            if self.depth + sizes.len() >= MAX_NESTING {
                return Err(self.too_deep());
            }
            let size = self.expression()?;
            self.expect(TokenKind::RBracket)?;
            sizes.push((size, self.previous().span));
        }
        Ok(sizes)
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
                            let span = self.since(token.span);
                            self.complain(span, "`list` takes one type argument", None);
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
        // More than the grammar says, which wants parentheses around all but integers: p4c takes `bit<W + 1>`.
        let width = self.width()?;
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

fn stack(element: Type, size: Expr, span: Span) -> Type {
    Type { kind: TypeKind::Stack(Box::new(element), Box::new(size)), span }
}
