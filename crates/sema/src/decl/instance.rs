//! Declared instances and the definitions of abstract methods.

use crate::check::Checker;
use crate::codes;
use crate::context::{CodeContext, Here};
use crate::expr::Construction;
use crate::hir::{self, ExternId, FunctionId, InstanceId, Ty, TyKind};
use crate::scope::Entity;
use crate::wording::suggest;
use foldhash::HashSet;
use millrace_syntax::Diagnostic;
use millrace_syntax::ast::{self, Declaration, TypeKind};

impl<'a> Checker<'a> {
    /// `T(args) x;`; its name is declared in the innermost scope.
    pub(crate) fn instance_declaration(&mut self, d: &'a ast::Instantiation) -> Option<InstanceId> {
        self.check_annotations(&d.annotations);
        let made = self.make_instance(d);
        let entity = match made {
            Some(id) => Entity::Instance(id),
            None => Entity::Broken,
        };
        self.declare_or_report_shadow(&d.name, entity);
        made
    }

    fn make_instance(&mut self, d: &'a ast::Instantiation) -> Option<InstanceId> {
        let mut written = &d.ty;
        let mut sizes = Vec::new();
        while let TypeKind::Stack(element, size) = &written.kind {
            sizes.push(size.as_ref());
            written = element;
        }
        let (path, type_args) = match &written.kind {
            TypeKind::Name(path) => (path, &[][..]),
            TypeKind::Specialized(path, args) => (path, args.as_slice()),
            _ => {
                self.resolve_type(&d.ty);
                let message = "only externs, parsers, controls and packages have instances";
                self.error(codes::NOT_CALLABLE, d.ty.span, message);
                return None;
            }
        };
        let entity = match self.type_entity(path) {
            Some(entity) => entity,
            None => {
                self.check_loose_args(&d.args);
                return None;
            }
        };
        let id = self.construct(Construction {
            entity,
            type_name: &path.name,
            type_args,
            args: &d.args,
            name: Some(&d.name),
            annotations: &d.annotations,
            initializer: d.initializer.as_deref(),
            span: d.name.span,
            expected: None,
        })?;
        for size in sizes.into_iter().rev() {
            let ty = self.hir.instances[id].ty;
            if !matches!(self.kind(ty), TyKind::Extern(..) | TyKind::Stack(..)) {
                self.error(
                    codes::INSTANCE_NOT_ALLOWED,
                    d.ty.span,
                    "only externs can be instantiated as an array",
                );
                return None;
            }
            let n = self.element_count(size)?;
            self.hir.instances[id].ty = self.intern(TyKind::Stack(ty, n));
        }
        Some(id)
    }

    /// Checks the definitions of an instance's abstract methods.
    pub(crate) fn check_abstract_methods(
        &mut self,
        id: InstanceId,
        ext: ExternId,
        types: &[Ty],
        c: &Construction<'a, '_>,
    ) {
        let Some(source) = self.decls.externs.get(&ext).copied() else { return };
        let object = source.ast.name.as_str();
        let wanted: Vec<&'a ast::Method> = source.ast.methods.iter().filter(|m| m.is_abstract).collect();
        let declarations = match c.initializer {
            Some(declarations) => declarations,
            None => {
                let needed = |m: &&&ast::Method| !m.annotations.iter().any(|a| a.name.as_str() == "optional");
                if let Some(first) = wanted.iter().find(needed) {
                    self.missing_method(first.name.as_str(), object, first.name.span, c.span);
                }
                return;
            }
        };
        if wanted.is_empty() {
            let message = format!("`{object}` has no abstract methods to define");
            self.report(
                Diagnostic::error(codes::ABSTRACT_METHOD, c.span, message)
                    .with_secondary(source.ast.name.span, "declared here"),
            );
            return;
        }
        self.scopes.push();
        let mut defined: Vec<(String, FunctionId)> = Vec::new();
        for declaration in declarations {
            match declaration {
                Declaration::Instantiation(inner) => {
                    self.instance_declaration(inner);
                }
                Declaration::Function(f) => {
                    let Some(&method) = wanted.iter().find(|m| m.name.as_str() == f.name.as_str()) else {
                        let message = format!("`{object}` has no abstract method `{}`", f.name);
                        let found = Diagnostic::error(codes::ABSTRACT_METHOD, f.name.span, message)
                            .with_secondary(source.ast.name.span, "declared here");
                        let known = wanted.iter().map(|m| m.name.as_str());
                        self.report(suggest(found, f.name.as_str(), known, "its abstract methods"));
                        continue;
                    };
                    if defined.iter().any(|(n, _)| n == f.name.as_str()) {
                        let earlier = declarations.iter().find_map(|d| match d {
                            Declaration::Function(g) if g.name.as_str() == f.name.as_str() => {
                                Some(g.name.span)
                            }
                            _ => None,
                        });
                        self.duplicate(&f.name, earlier.unwrap_or(f.name.span));
                        continue;
                    }
                    let function =
                        self.define_method(id, f, method, types, &source.ast.type_params, source.mark);
                    defined.push((f.name.to_string(), function));
                }
                other => {
                    let message = "an initialiser holds functions and instances only";
                    self.error(codes::ABSTRACT_METHOD, other.span(), message);
                }
            }
        }
        self.scopes.pop();
        for method in wanted {
            let optional = method.annotations.iter().any(|a| a.name.as_str() == "optional");
            if !optional && !defined.iter().any(|(n, _)| n == method.name.as_str()) {
                self.missing_method(method.name.as_str(), object, method.name.span, c.span);
            }
        }
        self.hir.instances[id].methods = defined;
    }

    fn define_method(
        &mut self,
        instance: InstanceId,
        f: &'a ast::Function,
        method: &'a ast::Method,
        types: &[Ty],
        params: &'a [ast::Name],
        mark: u32,
    ) -> FunctionId {
        let constants: HashSet<_> = self.here.constants.clone();
        let outer: Here = self.enter(CodeContext::AbstractMethod);
        self.here.constants = constants;
        self.here.this = Some(self.hir.instances[instance].ty);
        let (vars, ret, body) = self.callable_body(f);
        self.here = outer;
        let (wanted, wanted_ret) = self.with_types(mark, params, types, |c| {
            let wanted = c.read_params(&method.params);
            let ret = match &method.return_type {
                Some(ty) => c.resolve_type(ty),
                None => c.intern(TyKind::Void),
            };
            (wanted, ret)
        });
        let have: Vec<(hir::Direction, Ty)> = vars
            .iter()
            .map(|&v| match self.hir.vars[v].kind {
                hir::VarKind::Param(d) => (d, self.hir.vars[v].ty),
                _ => (hir::Direction::None, self.hir.vars[v].ty),
            })
            .collect();
        let same = |c: &Self, a: Ty, b: Ty| a == b || c.is_unknown(a) || c.is_unknown(b);
        // Optional parameters may be left out of the definition.
        let names: Vec<&str> = f.params.iter().map(|p| p.name.as_str()).collect();
        let kept: Vec<_> =
            wanted.iter().filter(|w| !w.optional || names.contains(&w.name.as_str())).collect();
        let fits = kept.len() == have.len()
            && kept.iter().zip(&have).all(|(w, (d, t))| w.direction == *d && same(self, w.ty, *t))
            && same(self, wanted_ret, ret);
        if !fits {
            let wanted: Vec<(hir::Direction, Ty)> = wanted.iter().map(|w| (w.direction, w.ty)).collect();
            let (wanted, had) = (self.show_params(&wanted), self.show_params(&have));
            let (wanted_ret, had_ret) = (self.show(wanted_ret), self.show(ret));
            self.report(
                Diagnostic::error(
                    codes::ABSTRACT_METHOD,
                    f.name.span,
                    format!("this definition of `{}` does not have the signature of the declaration", f.name),
                )
                .with_secondary(method.name.span, "declared here")
                .with_note(format!("wanted: {wanted_ret} {}({wanted})", f.name))
                .with_note(format!("found: {had_ret} {}({had})", f.name)),
            );
        }
        self.hir.functions.push(hir::Function {
            name: f.name.to_string(),
            params: vars,
            ret,
            body,
            span: f.name.span,
        })
    }
}
