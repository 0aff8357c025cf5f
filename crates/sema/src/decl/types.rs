//! `enum`, `typedef` and `type`.

use crate::check::Checker;
use crate::codes;
use crate::expr::Why;
use crate::hir::{self, Ty, TyKind};
use crate::repeated::Names;
use crate::scope::{Entity, TypeEntity};
use crate::types::Container;
use millrace_syntax::Diagnostic;
use millrace_syntax::ast;
use num_bigint::BigInt;

impl<'a> Checker<'a> {
    /// `enum E { ... }`, `enum bit<8> E { ... }`.
    pub(crate) fn enumeration(&mut self, d: &'a ast::Enum) {
        let repr = d.underlying.as_ref().map(|t| (self.resolve_type(t), t.span));
        let repr = repr.map(|(ty, span)| {
            if !matches!(self.kind(ty), TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Unknown) {
                let shown = self.show(ty);
                let message = format!("an enumeration is represented as `bit<W>` or `int<W>`, not `{shown}`");
                self.error(codes::BAD_UNDERLYING, span, message);
                return self.unknown_ty();
            }
            ty
        });
        let mut members: Vec<hir::EnumMember> = Vec::with_capacity(d.members.len());
        let mut names = Names::default();
        // A value may name the members before it.
        self.scopes.push();
        for member in &d.members {
            if let Some(earlier) = names.take(member.name.as_str(), member.name.span) {
                self.duplicate(&member.name, earlier);
                continue;
            }
            let value = self.member_value(d, member, repr);
            if let (Some(value), Some(repr)) = (&value, repr) {
                let kind = hir::ExprKind::Int(value.clone());
                let literal = hir::Expr { kind, ty: repr, span: member.name.span };
                self.declare(&member.name, Entity::Const(std::rc::Rc::new(literal)));
            }
            members.push(hir::EnumMember {
                name: member.name.to_string(),
                value,
                annotations: [].into(),
                span: member.name.span,
            });
        }
        self.scopes.pop();
        if members.is_empty() && d.members.is_empty() {
            self.error(codes::BAD_UNDERLYING, d.name.span, "an enumeration needs at least one member");
        }
        let id = self.hir.types.enums.push(hir::Enum {
            name: d.name.to_string(),
            repr,
            members,
            annotations: d.annotations.clone().into(),
            span: d.span,
        });
        let ty = self.intern(TyKind::Enum(id));
        self.hir.type_decls.push(ty);
        self.declare(&d.name, Entity::Type(TypeEntity::Known(ty)));
    }

    fn member_value(
        &mut self,
        d: &'a ast::Enum,
        member: &'a ast::EnumMember,
        repr: Option<Ty>,
    ) -> Option<BigInt> {
        let Some(repr) = repr else {
            if let Some(value) = &member.value {
                self.report(
                    Diagnostic::error(
                        codes::ENUM_VALUE,
                        value.span,
                        "only members of a serializable enumeration have values",
                    )
                    .with_secondary(d.name.span, "this one has no underlying type, as in `enum bit<8> ...`"),
                );
            }
            return None;
        };
        let Some(value) = &member.value else {
            let message = format!("`{}` needs a value: the enumeration has an underlying type", member.name);
            self.error(codes::ENUM_VALUE, member.name.span, message);
            return None;
        };
        let checked = self.check_expr(value, None);
        if self.is_unknown(checked.ty) || self.is_unknown(repr) {
            return None;
        }
        if checked.ty != repr && !matches!(self.kind(checked.ty), TyKind::Int | TyKind::Enum(_)) {
            let why = d.underlying.as_ref().map_or(Why::Unsaid, |t| Why::Declared(t.span));
            self.mismatch(&checked, repr, why);
            return None;
        }
        let number = self.integer_value(&checked, "the value of an enumeration's member")?;
        let kind = self.kind(repr);
        if let Some((low, high)) = crate::constant::range(&kind)
            && (number < low || number > high)
        {
            let shown = self.show(repr);
            let message = format!(
                "{} does not fit in `{shown}`, which holds {} to {}",
                crate::wording::number(&number),
                crate::wording::number(&low),
                crate::wording::number(&high)
            );
            self.error(codes::ENUM_VALUE, value.span, message);
            return None;
        }
        Some(number)
    }

    /// `typedef T N;`, `type T N;`.
    pub(crate) fn typedef(&mut self, d: &'a ast::Typedef) {
        let base = self.resolve_type(&d.ty);
        let ty = if d.is_new {
            let fine = matches!(
                self.kind(base),
                TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Bool | TyKind::New(_) | TyKind::Unknown
            );
            if !fine {
                let shown = self.show(base);
                let message = format!(
                    "`type` makes new types of `bit`, `int<W>`, `bool` and other new types, not of `{shown}`"
                );
                self.report(
                    Diagnostic::error(codes::BAD_UNDERLYING, d.ty.span, message)
                        .with_help("for another name of the same type write `typedef`"),
                );
            }
            let base = if fine { base } else { self.unknown_ty() };
            let id = self.hir.types.new_types.push(hir::NewType {
                name: d.name.to_string(),
                base,
                annotations: d.annotations.clone().into(),
                span: d.span,
            });
            let ty = self.intern(TyKind::New(id));
            self.hir.type_decls.push(ty);
            ty
        } else {
            self.check_nesting(Container::Typedef, base, d.ty.span);
            match self.finish_type(base) {
                Ok(ty) => ty,
                Err(_) => base,
            }
        };
        self.declare(&d.name, Entity::Type(TypeEntity::Known(ty)));
    }
}
