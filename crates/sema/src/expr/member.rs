//! `e.member`.

use super::NamedType;
use crate::check::Checker;
use crate::codes;
use crate::hir::{Callee, EnumId, Expr, ExprKind, StructId, Ty, TyKind};
use crate::scope::TypeEntity;
use crate::wording::suggest;
use millrace_syntax::ast::{self, Name};
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;

/// What has members with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Members {
    /// A structure, header or header union.
    Struct(StructId),
    /// An enumeration.
    Enum(EnumId),
    /// The type `error`.
    Errors,
    /// The match kinds.
    MatchKinds,
}

/// From so many members on their names are looked up in a map.
const MANY_MEMBERS: usize = 16;

impl Checker<'_> {
    /// The number of a field of a structure.
    pub(crate) fn field_number(&mut self, id: StructId, name: &str) -> Option<usize> {
        self.member_number(Members::Struct(id), name)
    }

    /// The number of a member. All members must be there.
    pub(crate) fn member_number(&mut self, of: Members, name: &str) -> Option<usize> {
        let types = &self.hir.types;
        let few = match of {
            Members::Struct(id) => types.structs[id].fields.len() < MANY_MEMBERS,
            Members::Enum(id) => types.enums[id].members.len() < MANY_MEMBERS,
            Members::Errors => self.hir.errors.len() < MANY_MEMBERS,
            Members::MatchKinds => self.hir.match_kinds.len() < MANY_MEMBERS,
        };
        if few {
            return match of {
                Members::Struct(id) => types.structs[id].fields.iter().position(|f| f.name == name),
                Members::Enum(id) => types.enums[id].members.iter().position(|m| m.name == name),
                Members::Errors => self.hir.errors.iter().position(|n| n == name),
                Members::MatchKinds => self.hir.match_kinds.iter().position(|n| n == name),
            };
        }
        if !self.member_numbers.contains_key(&of) {
            let names = self.member_names(of).into_iter().enumerate().map(|(i, name)| (name, i));
            self.member_numbers.insert(of, names.collect());
        }
        self.member_numbers.get(&of)?.get(name).copied()
    }

    /// The names of members in order.
    pub(crate) fn member_names(&self, of: Members) -> Vec<String> {
        match of {
            Members::Struct(id) => self.hir.types.structs[id].fields.iter().map(|f| f.name.clone()).collect(),
            Members::Enum(id) => self.hir.types.enums[id].members.iter().map(|m| m.name.clone()).collect(),
            Members::Errors => self.hir.errors.clone(),
            Members::MatchKinds => self.hir.match_kinds.clone(),
        }
    }
}

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
        let (members, what) = match self.kind(ty) {
            TyKind::Unknown => return self.unknown(span),
            TyKind::Error => (Members::Errors, "`error`".to_string()),
            TyKind::Enum(id) => {
                (Members::Enum(id), format!("the enumeration `{}`", self.hir.types.enums[id].name))
            }
            _ => {
                let shown = self.show(ty);
                let message = format!("the type `{shown}` has no member `{name}`");
                return self.fail(codes::UNKNOWN_MEMBER, name.span, message);
            }
        };
        if let Some(index) = self.member_number(members, name.as_str()) {
            let is_error = matches!(self.kind(ty), TyKind::Error);
            let kind = if is_error { ExprKind::ErrorMember(index) } else { ExprKind::EnumMember(index) };
            return Expr { kind, ty, span };
        }
        let found =
            Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("{what} has no member `{name}`"))
                .with_label("no such member");
        let known = self.member_names(members);
        let mut found = match self.is_shown() {
            true => suggest(found, name.as_str(), known.iter().map(String::as_str), "its members"),
            false => found,
        };
        if let TyKind::Enum(id) = self.kind(ty) {
            found = found.with_secondary(self.hir.types.enums[id].span, "declared here");
        }
        self.report(found);
        Expr { kind: ExprKind::Unknown, ty, span }
    }

    fn value_member(&mut self, base: Expr, name: &Name, span: Span) -> Expr {
        match self.kind(base.ty) {
            TyKind::Unknown => self.unknown(span),
            TyKind::Struct(id) => match self.field_number(id, name.as_str()) {
                Some(index) => {
                    let ty = self.hir.types.structs[id].fields[index].ty;
                    self.fold(Expr { kind: ExprKind::Field(Box::new(base), index), ty, span })
                }
                None => {
                    self.unknown_field(base.ty, name);
                    self.unknown(span)
                }
            },
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
        let in_parser = self.here.context.in_parser();
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
