//! Expressions that list members: `{ a, b }` and `{ f = a, g = b }`.

use super::Why;
use crate::check::Checker;
use crate::codes;
use crate::decl::has_call;
use crate::hir::{Expr, ExprKind, StructKind, Ty, TyKind};
use crate::repeated::Names;
use crate::wording::{count, suggest};
use foldhash::HashMap;
use millrace_syntax::ast::{self, NamedExpr};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// `{ a, b, ... }`.
    pub(super) fn list(&mut self, elements: &'a [ast::Expr], span: Span, expected: Option<Ty>) -> Expr {
        let is_dots = |e: &ast::Expr| matches!(e.kind, ast::ExprKind::Dots);
        let (elements, dots) = match elements.split_last() {
            Some((last, rest)) if is_dots(last) => (rest, true),
            _ => (elements, false),
        };
        if let Some(misplaced) = elements.iter().find(|e| is_dots(e)) {
            return self.fail(codes::MISPLACED_DOTS, misplaced.span, "`...` must be the last element");
        }
        let expected = expected.map(|ty| self.settle(ty)).filter(|&ty| !self.has_free_vars(ty));
        let Some(ty) = expected else { return self.tuple_of(elements, dots, span) };
        match self.kind(ty) {
            TyKind::Struct(id) if self.hir.types.structs[id].kind != StructKind::Union => {
                let fields = self.members_wanted(id);
                self.members_as(elements, dots, &fields, ty, span)
            }
            TyKind::Tuple(parts) => {
                let parts: Vec<(Ty, Why)> = parts.into_iter().map(|t| (t, Why::Unsaid)).collect();
                self.members_as(elements, dots, &parts, ty, span)
            }
            TyKind::List(element) => {
                let members = elements.iter().map(|e| self.check_expr_as(e, element, Why::Unsaid)).collect();
                Expr { kind: ExprKind::Aggregate(members), ty, span }
            }
            TyKind::Stack(element, n) => {
                if elements.len() > n as usize {
                    let message =
                        format!("{} elements are given, but `{}` has room for {n}", elements.len(), {
                            self.show(ty)
                        });
                    return self.fail(codes::BAD_MEMBERS, span, message);
                }
                let full = elements.len() == n as usize;
                let mut members: Vec<Expr> =
                    elements.iter().map(|e| self.check_expr_as(e, element, Why::Unsaid)).collect();
                if dots && !self.is_header(element) {
                    while members.len() < n as usize {
                        members.push(self.default_value(element, span));
                    }
                } else if !full && !dots {
                    let message = format!("{} of {n} elements are given", elements.len());
                    return self.fail(codes::BAD_MEMBERS, span, message);
                }
                Expr { kind: ExprKind::StackLiteral(members), ty, span }
            }
            TyKind::Unknown => {
                elements.iter().for_each(|e| drop(self.check_expr(e, Some(ty))));
                self.unknown(span)
            }
            _ if dots => self.no_members(ty, span),
            _ => self.tuple_of(elements, dots, span),
        }
    }

    /// A tuple of whatever types its elements have.
    fn tuple_of(&mut self, elements: &'a [ast::Expr], dots: bool, span: Span) -> Expr {
        if dots {
            let message = "`...` stands for default values, but the type is not known here";
            return self.fail(codes::MISPLACED_DOTS, span, message);
        }
        let members: Vec<Expr> = elements.iter().map(|e| self.check_expr(e, None)).collect();
        if members.iter().any(|m| self.is_unknown(m.ty)) {
            return self.unknown(span);
        }
        let parts = members.iter().map(|m| m.ty).collect();
        let ty = self.intern(TyKind::Tuple(parts));
        Expr { kind: ExprKind::Aggregate(members), ty, span }
    }

    /// Reports `{ ..., ... }` for a type that has no members.
    fn no_members(&mut self, ty: Ty, span: Span) -> Expr {
        let shown = self.show(ty);
        let message = format!("expected `{shown}`, found a list of members");
        self.fail(codes::TYPE_MISMATCH, span, message)
    }

    fn members_as(
        &mut self,
        elements: &'a [ast::Expr],
        dots: bool,
        types: &[(Ty, Why)],
        ty: Ty,
        span: Span,
    ) -> Expr {
        let wrong = if dots { elements.len() > types.len() } else { elements.len() != types.len() };
        if wrong {
            let shown = self.show(ty);
            let (has, given) = (count(types.len(), "member", "members"), elements.len());
            let verb = if given == 1 { "is" } else { "are" };
            let message = format!("`{shown}` has {has}, but {given} {verb} given");
            let mut found = Diagnostic::error(codes::BAD_MEMBERS, span, message);
            if let TyKind::Struct(id) = self.kind(ty) {
                found = found.with_secondary(self.hir.types.structs[id].span, "the type is declared here");
            }
            if given < types.len() {
                let rest = "end the list with `...` to give the other members their default values";
                found = found.with_help(rest);
            }
            self.report(found);
            return self.unknown(span);
        }
        let mut members: Vec<Expr> =
            elements.iter().zip(types).map(|(e, &(t, why))| self.check_expr_as(e, t, why)).collect();
        for &(missing, _) in &types[members.len()..] {
            members.push(self.default_value(missing, span));
        }
        Expr { kind: ExprKind::Aggregate(members), ty, span }
    }

    /// `{ f = a, ... }`.
    pub(super) fn structure_value(
        &mut self,
        fields: &'a [NamedExpr],
        dots: Option<Span>,
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let mut names = Names::default();
        for field in fields {
            if let Some(earlier) = names.take(field.name.as_str(), field.name.span) {
                let message = format!("the member `{}` is given twice", field.name);
                self.report(
                    Diagnostic::error(codes::BAD_MEMBERS, field.name.span, message)
                        .with_secondary(earlier, "first given here"),
                );
                return self.unknown(span);
            }
        }
        let expected = expected.map(|ty| self.settle(ty)).filter(|&ty| !self.has_free_vars(ty));
        let id = match expected.map(|ty| (ty, self.kind(ty))) {
            Some((ty, TyKind::Struct(id))) if self.hir.types.structs[id].kind != StructKind::Union => {
                (ty, id)
            }
            Some((ty, TyKind::Unknown)) => {
                fields.iter().for_each(|f| drop(self.check_expr(&f.value, Some(ty))));
                return self.unknown(span);
            }
            Some((ty, _)) if dots.is_some() => return self.no_members(ty, span),
            _ if dots.is_some() => {
                let message = "`...` stands for default values, but the type is not known here";
                return self.fail(codes::MISPLACED_DOTS, span, message);
            }
            _ => {
                let members: Vec<Expr> = fields.iter().map(|f| self.check_expr(&f.value, None)).collect();
                if members.iter().any(|m| self.is_unknown(m.ty)) {
                    return self.unknown(span);
                }
                let types = fields.iter().zip(&members).map(|(f, m)| (f.name.to_string(), m.ty)).collect();
                let ty = self.record_type(types, span);
                return Expr { kind: ExprKind::Aggregate(members), ty, span };
            }
        };
        let (ty, id) = id;
        let fields_of = &self.hir.types.structs[id].fields;
        let wanted: Vec<(String, Ty, Span)> =
            fields_of.iter().map(|f| (f.name.clone(), f.ty, f.span)).collect();
        for field in fields {
            if self.field_number(id, field.name.as_str()).is_none() {
                self.unknown_field(ty, &field.name);
                return self.unknown(span);
            }
        }
        let given: HashMap<&str, &'a NamedExpr> = fields.iter().map(|f| (f.name.as_str(), f)).collect();
        let turns: HashMap<&str, usize> =
            fields.iter().enumerate().map(|(turn, f)| (f.name.as_str(), turn)).collect();
        let turn_of = |name: &str| turns.get(name).copied().unwrap_or(fields.len());
        let mut members = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for (name, field_ty, declared) in &wanted {
            match given.get(name.as_str()) {
                Some(field) => {
                    members.push(self.check_expr_as(&field.value, *field_ty, Why::Member(*declared)))
                }
                None if dots.is_some() => members.push(self.default_value(*field_ty, span)),
                None => missing.push(format!("`{name}`")),
            }
        }
        if !missing.is_empty() {
            let shown = self.show(ty);
            let declared = self.hir.types.structs[id].span;
            self.report(
                Diagnostic::error(
                    codes::BAD_MEMBERS,
                    span,
                    format!("no value is given for {} of `{shown}`", missing.join(", ")),
                )
                .with_secondary(declared, "the type is declared here")
                .with_help("end the list with `...` to give the other members their default values"),
            );
            return self.unknown(span);
        }
        let turns = wanted.iter().map(|(name, ..)| turn_of(name)).collect();
        Expr { kind: in_turn(members, turns), ty, span }
    }

    /// Says that a structure has no such member.
    pub(crate) fn unknown_field(&mut self, ty: Ty, name: &ast::Name) {
        let shown = self.show(ty);
        let mut found =
            Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("`{shown}` has no member `{name}`"))
                .with_label("no such member");
        if let TyKind::Struct(id) = self.kind(ty) {
            let s = &self.hir.types.structs[id];
            found = found.with_secondary(s.span, "the type is declared here");
            if self.is_shown() {
                let members = s.fields.iter().map(|f| f.name.as_str());
                found = suggest(found, name.as_str(), members, "its members");
            }
        }
        self.report(found);
    }
}

/// The members of a structure, which are evaluated in the order in which they are written: by the turn of each.
pub(super) fn in_turn(members: Vec<Expr>, turns: Vec<usize>) -> ExprKind {
    if turns.is_sorted() || !members.iter().any(has_call) {
        return ExprKind::Aggregate(members);
    }
    let mut written: Vec<(usize, (usize, Expr))> =
        turns.into_iter().zip(members.into_iter().enumerate()).collect();
    written.sort_by_key(|(turn, _)| *turn);
    ExprKind::InTurn(written.into_iter().map(|(_, member)| member).collect())
}
