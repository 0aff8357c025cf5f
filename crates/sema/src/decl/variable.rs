//! Constants and variables.

use crate::check::Checker;
use crate::codes;
use crate::constant::{Constant, evaluate};
use crate::expr::Why;
use crate::fold::is_literal;
use crate::hir::{Expr, Ty, TyKind, Var, VarId, VarKind};
use crate::scope::Entity;
use millrace_syntax::Diagnostic;
use millrace_syntax::ast::{self, TypeKind};
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// `const T x = e;`. One that depends on constructor parameters becomes a variable, which is given back.
    pub(crate) fn constant_declaration(&mut self, d: &'a ast::Constant) -> Option<(VarId, Expr)> {
        self.check_annotations(&d.annotations);
        self.check_closed(&d.ty);
        let ty = self.resolve_type(&d.ty);
        let fine = self.is_value_type(ty)
            || matches!(self.kind(ty), TyKind::Int | TyKind::String | TyKind::MatchKind | TyKind::Unknown);
        if !fine {
            let shown = self.show(ty);
            self.error(codes::BAD_TYPE_HERE, d.ty.span, format!("a constant cannot have the type `{shown}`"));
            self.declare_or_report_shadow(&d.name, Entity::Broken);
            return None;
        }
        let value = self.check_expr(&d.value, Some(ty));
        self.unify(ty, value.ty);
        let ty = self.finish_type(ty).unwrap_or(ty);
        let value = self.coerce(value, ty, Why::Declared(d.ty.span));
        if is_literal(&value) {
            if self.scopes.at_top_level()
                && let Ok(Constant::Int(number)) = evaluate(&self.hir, &value, &|_| None)
            {
                self.hir.constants.insert(d.name.to_string(), number);
            }
            self.declare_or_report_shadow(&d.name, Entity::Const(Rc::new(value)));
            return None;
        }
        if self.is_unknown(value.ty) || self.is_damaged(&value) {
            self.declare_or_report_shadow(&d.name, Entity::Broken);
            return None;
        }
        if !self.is_known(&value) || self.scopes.at_top_level() {
            self.report(
                Diagnostic::error(
                    codes::NOT_CONSTANT,
                    value.span,
                    format!("the value of the constant `{}` is not known at compile time", d.name),
                )
                .with_label("not known at compile time"),
            );
            self.declare_or_report_shadow(&d.name, Entity::Broken);
            return None;
        }
        let var = self.new_local(&d.name, ty, &d.annotations);
        self.here.constants.insert(var);
        self.declare_or_report_shadow(&d.name, Entity::Var(var));
        Some((var, value))
    }

    /// `T x;`, `T x = e;`
    pub(crate) fn variable_declaration(&mut self, d: &'a ast::Variable) -> (VarId, Option<Expr>) {
        self.check_annotations(&d.annotations);
        self.check_closed(&d.ty);
        let ty = self.resolve_type(&d.ty);
        let ty = self.check_variable_type(ty, &d.ty);
        let init = d.init.as_ref().map(|e| {
            let value = self.check_expr(e, Some(ty));
            self.unify(ty, value.ty);
            self.coerce(value, ty, Why::Declared(d.ty.span))
        });
        let ty = match self.finish_type(ty) {
            Ok(ty) => ty,
            Err(_) => ty,
        };
        let var = self.new_local(&d.name, ty, &d.annotations);
        self.declare_or_report_shadow(&d.name, Entity::Var(var));
        (var, init)
    }

    /// Reports a `_` in the type of a constant or variable: it stands where a type variable could be bound
    /// (specification, "Don't care types"), and no declaration of a value binds any.
    fn check_closed(&mut self, written: &'a ast::Type) {
        let mut open = vec![written];
        while let Some(ty) = open.pop() {
            match &ty.kind {
                TypeKind::DontCare => {
                    let message = "the type of a constant or variable cannot be left open";
                    self.error(codes::BAD_TYPE_HERE, ty.span, message);
                }
                TypeKind::Specialized(_, parts) | TypeKind::Tuple(parts) => open.extend(parts),
                TypeKind::Stack(element, _) | TypeKind::List(element) => open.push(element),
                _ => {}
            }
        }
    }

    /// Reports a type that no variable can have.
    pub(crate) fn check_variable_type(&mut self, ty: Ty, written: &'a ast::Type) -> Ty {
        if self.is_value_type(ty) || self.is_unknown(ty) {
            return ty;
        }
        let shown = self.show(ty);
        let mut found = Diagnostic::error(
            codes::BAD_TYPE_HERE,
            written.span,
            format!("a variable cannot have the type `{shown}`"),
        );
        if matches!(
            self.kind(ty),
            TyKind::Extern(..)
                | TyKind::Parser(_)
                | TyKind::Control(_)
                | TyKind::Package(..)
                | TyKind::BlockType(..)
        ) {
            found = found.with_help(format!("make an instance: `{shown}(...) name;`"));
        } else if self.kind(ty) == TyKind::Int {
            found = found.with_help("give it a width, as in `bit<32>`, or make it a `const`");
        }
        self.report(found);
        self.unknown_ty()
    }

    /// A new local variable.
    pub(crate) fn new_local(&mut self, name: &ast::Name, ty: Ty, annotations: &[ast::Annotation]) -> VarId {
        self.hir.vars.push(Var {
            name: name.to_string(),
            ty,
            kind: VarKind::Local,
            annotations: annotations.into(),
            span: name.span,
        })
    }

    /// Declares a name of a block, with a warning when it hides another.
    pub(crate) fn declare_or_report_shadow(&mut self, name: &ast::Name, entity: Entity) {
        self.report_shadow(name);
        self.declare(name, entity);
    }

    /// Warns about a name that hides another once it is declared in the innermost block.
    pub(crate) fn report_shadow(&mut self, name: &ast::Name) {
        if let Some((hidden, declared)) = self.scopes.hidden_by(name.as_str()) {
            let what = match hidden {
                Entity::Var(var) if self.hir.vars[*var].kind != VarKind::Local => "parameter",
                other => other.noun(),
            };
            let message = format!("`{name}` hides the {what} of the same name");
            self.report(
                Diagnostic::warning(codes::SHADOWING, name.span, message)
                    .with_secondary(declared, format!("the {what}")),
            );
        }
    }
}
