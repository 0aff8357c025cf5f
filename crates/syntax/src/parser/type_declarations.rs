//! Declarations of structures, headers, enumerations and type names (specification section 7.2).

use crate::ast::{
    Annotation, Declaration, Enum, EnumMember, Field, Path, StructKind, StructType, Type, TypeKind, Typedef,
};
use crate::intern::kw;
use crate::token::{Token, TokenKind};

use super::scope::Meaning;
use super::{Failed, Parse, Parser};

impl Parser<'_> {
    /// `struct`, `header`, `header_union` or `enum`
    pub(super) fn derived_type(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        let keyword = self.bump();
        let kind = match keyword.text {
            kw::STRUCT => StructKind::Struct,
            kw::HEADER => StructKind::Header,
            kw::HEADER_UNION => StructKind::HeaderUnion,
            _ => return self.enumeration(annotations, start),
        };
        let name = self.declared_name(Meaning::Type, "the type's name")?;
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let open = p.expect(TokenKind::LBrace)?;
            let fields = p.braced_items(open, Self::at_top_level_keyword, |p, out| {
                let start = p.peek().span;
                let annotations = p.annotations()?;
                let ty = p.ty()?;
                let name = p.name("a field's name")?;
                let ty = p.sizes_behind_name(ty)?;
                p.semicolon()?;
                out.push(Field { annotations, ty, name, span: p.since(start) });
                Ok(())
            });
            let span = p.since(start.span);
            Ok(Declaration::Struct(StructType { annotations, kind, name, type_params, fields, span }))
        })
    }

    fn enumeration(&mut self, annotations: Vec<Annotation>, start: Token) -> Parse<Declaration> {
        let is_plain = self.peek().is_name() && self.nth(1).kind == TokenKind::LBrace;
        let underlying = if is_plain { None } else { Some(self.ty()?) };
        let name = self.declared_name(Meaning::Type, "the enumeration's name")?;
        self.expect(TokenKind::LBrace)?;
        let has_values = underlying.is_some();
        let members = self.list(TokenKind::RBrace, true, |p| {
            let name = p.name("a member's name")?;
            let value = if has_values {
                p.expect(TokenKind::Assign)?;
                Some(p.expression()?)
            } else {
                None
            };
            Ok(EnumMember { name, value })
        })?;
        self.expect(TokenKind::RBrace)?;
        if members.is_empty() {
            self.complain(name.span, "an enumeration needs at least one member", None);
        }
        let span = self.since(start.span);
        Ok(Declaration::Enum(Enum { annotations, underlying, name, members, span }))
    }

    /// `typedef T N;`, `type T N;`. A structure declared in a `typedef` becomes a declaration of its own.
    pub(super) fn typedef(
        &mut self,
        annotations: Vec<Annotation>,
        start: Token,
        out: &mut Vec<Declaration>,
    ) -> Parse<()> {
        let is_new = self.bump().text == kw::TYPE;
        let first = self.peek();
        let inner = self.annotations()?;
        let derived = [kw::STRUCT, kw::HEADER, kw::HEADER_UNION, kw::ENUM];
        let is_derived = self.at(TokenKind::Word) && derived.contains(&self.peek().text);
        let ty = if is_derived && !is_new {
            let declaration = self.derived_type(inner, first)?;
            let name = declaration.name().cloned().ok_or(Failed)?;
            out.push(declaration);
            Type { span: name.span, kind: TypeKind::Name(Path { absolute: false, name }) }
        } else if inner.is_empty() {
            self.ty()?
        } else {
            return Err(self.unexpected("a type declaration"));
        };
        let name = self.declared_name(Meaning::Type, "the new type's name")?;
        self.semicolon()?;
        out.push(Declaration::Typedef(Typedef {
            annotations,
            is_new,
            ty,
            name,
            span: self.since(start.span),
        }));
        Ok(())
    }
}
