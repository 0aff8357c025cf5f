//! Expressions that list members: `{ a, b }` and `{ f = a, g = b }`.

use crate::check::Checker;
use crate::codes;
use crate::hir::{Expr, ExprKind, StructKind, Ty, TyKind};
use crate::scope::nearest;
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
                let fields: Vec<Ty> = self.hir.types.structs[id].fields.iter().map(|f| f.ty).collect();
                self.members_as(elements, dots, &fields, ty, span)
            }
            TyKind::Tuple(parts) => self.members_as(elements, dots, &parts, ty, span),
            TyKind::List(element) => {
                let members = elements.iter().map(|e| self.check_expr_as(e, element)).collect();
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
                    elements.iter().map(|e| self.check_expr_as(e, element)).collect();
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

    fn members_as(
        &mut self,
        elements: &'a [ast::Expr],
        dots: bool,
        types: &[Ty],
        ty: Ty,
        span: Span,
    ) -> Expr {
        let wrong = if dots { elements.len() > types.len() } else { elements.len() != types.len() };
        if wrong {
            let shown = self.show(ty);
            let message =
                format!("`{shown}` has {} member(s), but {} are given", types.len(), elements.len());
            return self.fail(codes::BAD_MEMBERS, span, message);
        }
        let mut members: Vec<Expr> =
            elements.iter().zip(types).map(|(e, &t)| self.check_expr_as(e, t)).collect();
        for &missing in &types[members.len()..] {
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
        for (i, field) in fields.iter().enumerate() {
            if let Some(earlier) = fields[..i].iter().find(|f| f.name.as_str() == field.name.as_str()) {
                let message = format!("the member `{}` is given twice", field.name);
                self.report(
                    Diagnostic::error(codes::BAD_MEMBERS, field.name.span, message)
                        .with_secondary(earlier.name.span, "first given here"),
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
        let wanted: Vec<(String, Ty)> =
            self.hir.types.structs[id].fields.iter().map(|f| (f.name.clone(), f.ty)).collect();
        for field in fields {
            if !wanted.iter().any(|(n, _)| n == field.name.as_str()) {
                self.unknown_field(ty, &field.name);
                return self.unknown(span);
            }
        }
        let mut members = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for (name, field_ty) in &wanted {
            match fields.iter().find(|f| f.name.as_str() == name) {
                Some(field) => members.push(self.check_expr_as(&field.value, *field_ty)),
                None if dots.is_some() => members.push(self.default_value(*field_ty, span)),
                None => missing.push(format!("`{name}`")),
            }
        }
        if !missing.is_empty() {
            let shown = self.show(ty);
            self.report(
                Diagnostic::error(
                    codes::BAD_MEMBERS,
                    span,
                    format!("no value is given for {} of `{shown}`", missing.join(", ")),
                )
                .with_help("end the list with `...` to give the other members their default values"),
            );
            return self.unknown(span);
        }
        Expr { kind: ExprKind::Aggregate(members), ty, span }
    }

    /// Says that a structure has no such member.
    pub(crate) fn unknown_field(&mut self, ty: Ty, name: &ast::Name) {
        let shown = self.show(ty);
        let mut found =
            Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("`{shown}` has no member `{name}`"));
        if let TyKind::Struct(id) = self.kind(ty) {
            let fields = &self.hir.types.structs[id].fields;
            if let Some(near) = nearest(name.as_str(), fields.iter().map(|f| f.name.as_str())) {
                found = found.with_help(format!("`{near}` has a similar name"));
            }
            let span = self.hir.types.structs[id].span;
            found = found.with_secondary(span, "the type is declared here");
        }
        self.report(found);
    }
}
