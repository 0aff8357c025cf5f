//! Controls.

use super::ParamOf;
use crate::check::Checker;
use crate::context::CodeContext;
use crate::declarations::{BlockAst, Source};
use crate::hir::{self, Ty, TyKind};
use crate::scope::TypeEntity;
use millrace_syntax::ast;

impl<'a> Checker<'a> {
    /// `control C(...)(...) { ... }`
    pub(crate) fn control(&mut self, d: &'a ast::Control) {
        self.block(BlockAst::Control(d));
    }

    /// A control whose type parameters, if any, are in scope.
    pub(super) fn new_control(&mut self, d: &'a ast::Control, declare: bool) -> Ty {
        let id = self.hir.controls.push(hir::Control {
            name: d.header.name.to_string(),
            params: Vec::new(),
            ctor_params: Vec::new(),
            locals: Vec::new(),
            body: Vec::new(),
            annotations: d.header.annotations.clone().into(),
            span: d.header.name.span,
        });
        let ty = self.intern(TyKind::Control(id));
        self.decls.controls.insert(id, Source { ast: d, mark: self.scopes.mark() });
        if declare {
            self.declare_constructible(&d.header.name, TypeEntity::Known(ty));
        }
        self.begin_elaboration();
        self.decls.open_controls.push(id);
        let outer = self.enter(CodeContext::ControlLocals);
        self.here.control = Some(id);
        self.scopes.push();
        self.hir.controls[id].params = self.declare_params(&d.header.params, ParamOf::Control);
        self.hir.controls[id].ctor_params =
            self.declare_params(&d.constructor_params, ParamOf::ControlConstructor);
        self.scopes.push();
        let mut locals = Vec::new();
        for local in &d.locals {
            self.local_declaration(local, &mut locals);
        }
        self.here.context = CodeContext::ControlApply;
        self.scopes.push();
        self.check_annotations(&d.apply.annotations);
        let body = self.statements(&d.apply.statements);
        self.scopes.pop();
        locals.append(&mut self.here.implied);
        self.scopes.pop();
        self.scopes.pop();
        self.here = outer;
        self.decls.open_controls.pop();
        self.end_elaboration(ty, &locals);
        let control = &mut self.hir.controls[id];
        (control.locals, control.body) = (locals, body);
        ty
    }
}
