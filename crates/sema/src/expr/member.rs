//! `e.member`.

use super::NamedType;
use crate::check::Checker;
use crate::codes;
use crate::hir::{Callee, Expr, ExprKind, Ty, TyKind};
use crate::scope::TypeEntity;
use crate::wording::suggest;
use millrace_syntax::ast::{self, Name};
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;

impl<'a> Checker<'a> {
    /// A member of a value or of a type.
    pub(super) fn member(&mut self, base: &'a ast::Expr, name: &'a Name, span: Span) -> Expr {
        match self.named_by(base) {
            Some(NamedType::Known(ty) | NamedType::Entity(TypeEntity::Known(ty), ..)) => {
                self.type_member(ty, name, span)
            }
            Some(NamedType::Entity(_, path, _)) => {
                let message = format!("`{}` is a type without a member `{name}`", path.name);
                self.fail(codes::UNKNOWN_MEMBER, name.span, message)
            }
            None => {
                let base = self.check_expr(base, None);
                self.value_member(base, name, span)
            }
        }
    }

    /// `E.member` of an enumeration, `error.Member`.
    fn type_member(&mut self, ty: Ty, name: &Name, span: Span) -> Expr {
        let (members, what): (Vec<String>, _) = match self.kind(ty) {
            TyKind::Unknown => return self.unknown(span),
            TyKind::Error => (self.hir.errors.clone(), "`error`".to_string()),
            TyKind::Enum(id) => {
                let e = &self.hir.types.enums[id];
                (e.members.iter().map(|m| m.name.clone()).collect(), format!("the enumeration `{}`", e.name))
            }
            _ => {
                let shown = self.show(ty);
                let message = format!("the type `{shown}` has no member `{name}`");
                return self.fail(codes::UNKNOWN_MEMBER, name.span, message);
            }
        };
        if let Some(index) = members.iter().position(|m| m == name.as_str()) {
            let is_error = matches!(self.kind(ty), TyKind::Error);
            let kind = if is_error { ExprKind::ErrorMember(index) } else { ExprKind::EnumMember(index) };
            return Expr { kind, ty, span };
        }
        let found =
            Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("{what} has no member `{name}`"))
                .with_label("no such member");
        let known = members.iter().map(String::as_str);
        let mut found = suggest(found, name.as_str(), known, "its members");
        if let TyKind::Enum(id) = self.kind(ty) {
            found = found.with_secondary(self.hir.types.enums[id].span, "declared here");
        }
        self.report(found);
        Expr { kind: ExprKind::Unknown, ty, span }
    }

    fn value_member(&mut self, base: Expr, name: &Name, span: Span) -> Expr {
        match self.kind(base.ty) {
            TyKind::Unknown => self.unknown(span),
            TyKind::Struct(id) => {
                let fields = &self.hir.types.structs[id].fields;
                match fields.iter().position(|f| f.name == name.as_str()) {
                    Some(index) => {
                        let ty = fields[index].ty;
                        self.fold(Expr { kind: ExprKind::Field(Box::new(base), index), ty, span })
                    }
                    None => {
                        self.unknown_field(base.ty, name);
                        self.unknown(span)
                    }
                }
            }
            TyKind::Stack(element, n) => self.stack_member(base, element, n, name, span),
            TyKind::ApplyResult(table) => {
                let kind = match name.as_str() {
                    "hit" => ExprKind::TableHit(table),
                    "miss" => ExprKind::TableMiss(table),
                    "action_run" => {
                        let message = "`action_run` can only be what a `switch` statement chooses by";
                        return self.fail(codes::NOT_VALUE, span, message);
                    }
                    _ => {
                        let message =
                            format!("applying a table gives `hit`, `miss` and `action_run`, but no `{name}`");
                        return self.fail(codes::UNKNOWN_MEMBER, name.span, message);
                    }
                };
                debug_assert!(
                    matches!(&base.kind, ExprKind::Call(c) if matches!(c.callee, Callee::Table(_)))
                );
                self.typed(kind, TyKind::Bool, span)
            }
            _ => {
                let shown = self.show(base.ty);
                self.fail(codes::UNKNOWN_MEMBER, name.span, format!("`{shown}` has no member `{name}`"))
            }
        }
    }

    fn stack_member(&mut self, base: Expr, element: Ty, n: u32, name: &Name, span: Span) -> Expr {
        let is_stack = self.is_header(element);
        let in_parser = self.here.place.in_parser();
        let needs_parser = |c: &mut Self| {
            let message = format!("`{name}` of a header stack has a meaning in parsers only");
            c.fail(codes::CALL_NOT_ALLOWED, span, message)
        };
        match name.as_str() {
            "size" => self.typed(ExprKind::Int(BigInt::from(n)), TyKind::Bits(32), span),
            "next" | "last" | "lastIndex" if is_stack && !in_parser => needs_parser(self),
            "next" if is_stack => Expr { kind: ExprKind::StackNext(Box::new(base)), ty: element, span },
            "last" if is_stack => Expr { kind: ExprKind::StackLast(Box::new(base)), ty: element, span },
            "lastIndex" if is_stack => {
                self.typed(ExprKind::StackLastIndex(Box::new(base)), TyKind::Bits(32), span)
            }
            _ => {
                let shown = self.show(base.ty);
                self.fail(codes::UNKNOWN_MEMBER, name.span, format!("`{shown}` has no member `{name}`"))
            }
        }
    }
}
