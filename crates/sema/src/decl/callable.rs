//! What has code that is called: functions, actions and the definitions of abstract methods.

use super::ParamOf;
use crate::check::Checker;
use crate::codes;
use crate::context::{CodeContext, Here};
use crate::declarations::{FunctionSource, Source};
use crate::hir::{self, ActionId, FunctionId, Stmt, Ty, TyKind, VarId};
use crate::limits::{MAX_INSTANTIATION_DEPTH, MAX_INSTANTIATIONS};
use crate::scope::{Entity, FunctionRef};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};

/// Parameters, result and code of a function.
type Checked = (Vec<VarId>, Ty, Vec<Stmt>);

impl<'a> Checker<'a> {
    /// Surroundings for code of its own, which keep only how deep generic declarations are nested.
    pub(crate) fn enter(&mut self, context: CodeContext) -> Here {
        let here = Here {
            context,
            abstract_depth: self.here.abstract_depth,
            instantiation_depth: self.here.instantiation_depth,
            ..Here::default()
        };
        std::mem::replace(&mut self.here, here)
    }

    /// `T f(...) { ... }` at the top level.
    pub(crate) fn function(&mut self, d: &'a ast::Function) {
        self.check_signature(d, ParamOf::Function);
        let index = self.decls.functions.len();
        let source = Source { ast: d, mark: self.scopes.mark() };
        self.decls.functions.push(FunctionSource { source, instances: Default::default(), open: false });
        self.declare_function(d, FunctionRef::Plain(index));
        if d.type_params.is_empty() {
            self.function_instance(index, Vec::new(), d.name.span);
        } else {
            let args = self.rigid_args(&d.type_params);
            self.abstractly(|c| {
                c.decls.functions[index].open = true;
                c.function_body(index, &args);
                c.decls.functions[index].open = false;
            });
        }
    }

    /// Checks a generic declaration for its findings alone: everything it makes is thrown away,
    /// except types and the values of annotations.
    pub(crate) fn abstractly(&mut self, work: impl FnOnce(&mut Self)) {
        let types = std::mem::take(&mut self.hir.types);
        let saved = self.hir.clone();
        self.hir.types = types;
        let blocks = self.decls.blocks.clone();
        self.here.abstract_depth += 1;
        work(self);
        self.here.abstract_depth -= 1;
        let types = std::mem::take(&mut self.hir.types);
        let annotation_values = std::mem::take(&mut self.hir.annotation_values);
        self.hir = saved;
        (self.hir.types, self.hir.annotation_values) = (types, annotation_values);
        self.decls.blocks = blocks;
    }

    /// The function that a declaration makes with these type arguments.
    pub(crate) fn function_instance(&mut self, index: usize, args: Vec<Ty>, span: Span) -> FunctionId {
        if self.here.abstract_depth > 0 {
            // What calls it is thrown away.
            return FunctionId::from_u32(0);
        }
        if let Some(&id) = self.decls.functions[index].instances.get(&args) {
            return id;
        }
        let ast = self.decls.functions[index].source.ast;
        let ret = self.intern(TyKind::Void);
        let id = self.hir.functions.push(hir::Function {
            name: ast.name.to_string(),
            params: Vec::new(),
            ret,
            body: Vec::new(),
            span: ast.name.span,
        });
        let too_many = self.decls.functions[index].instances.len() >= MAX_INSTANTIATIONS;
        if too_many || self.here.instantiation_depth >= MAX_INSTANTIATION_DEPTH {
            let message = format!("`{}` is used with too many types", ast.name);
            self.error(codes::TYPE_ARGUMENTS, span, message);
            return id;
        }
        self.decls.functions[index].instances.insert(args.clone(), id);
        self.decls.functions[index].open = true;
        self.here.instantiation_depth += 1;
        let (params, ret, body) = self.function_body(index, &args);
        self.here.instantiation_depth -= 1;
        self.decls.functions[index].open = false;
        let function = &mut self.hir.functions[id];
        (function.params, function.ret, function.body) = (params, ret, body);
        id
    }

    fn function_body(&mut self, index: usize, args: &[Ty]) -> Checked {
        let source = self.decls.functions[index].source;
        let outer = self.enter(CodeContext::Function);
        let result =
            self.with_types(source.mark, &source.ast.type_params, args, |c| c.callable_body(source.ast));
        self.here = outer;
        result
    }

    /// Checks parameters and code in the current surroundings.
    pub(crate) fn callable_body(&mut self, d: &'a ast::Function) -> Checked {
        self.scopes.push();
        let params = self.declare_params(&d.params, ParamOf::Function);
        let ret = self.resolve_type(&d.return_type);
        let is_void = self.kind(ret) == TyKind::Void;
        self.here.ret = (!is_void).then_some(ret);
        self.here.result = Some(d.return_type.span);
        let body = match &d.body {
            Some(body) => self.check_body(body),
            None => Vec::new(),
        };
        self.scopes.pop();
        if !is_void && d.body.is_some() && !always_leaves(&body) && !self.is_unknown(ret) {
            let shown = self.show(ret);
            let end =
                d.body.as_ref().map_or(d.span, |b| Span { start: b.span.end.saturating_sub(1), ..b.span });
            self.report(
                Diagnostic::error(
                    codes::MISSING_RETURN,
                    d.name.span,
                    format!("`{}` does not return a `{shown}` on every path", d.name),
                )
                .with_secondary(end, "the end can be reached without `return`"),
            );
        }
        (params, ret, body)
    }

    /// `action a(...) { ... }` at the top level.
    pub(crate) fn global_action(&mut self, d: &'a ast::Action) {
        self.action(d);
    }

    /// An action; its name is declared in the innermost scope.
    pub(crate) fn action(&mut self, d: &'a ast::Action) -> ActionId {
        let id = self.hir.actions.push(hir::Action {
            name: d.name.to_string(),
            params: Vec::new(),
            body: Vec::new(),
            control: self.here.control,
            annotations: d.annotations.clone().into(),
            span: d.name.span,
        });
        self.decls.actions.insert(id, Source { ast: d, mark: self.scopes.mark() });
        let constants = self.here.constants.clone();
        let control = self.here.control;
        let outer = self.enter(CodeContext::Action);
        self.here.constants = constants;
        self.here.control = control;
        self.scopes.push();
        let params = self.declare_params(&d.params, ParamOf::Action);
        let mut seen_data = false;
        for param in &d.params {
            let is_data = param.direction == ast::Direction::None;
            if seen_data && !is_data {
                let message = "parameters with a direction must stand before those without";
                self.error(codes::BAD_DIRECTION, param.span, message);
                break;
            }
            seen_data |= is_data;
        }
        let body = self.check_body(&d.body);
        self.scopes.pop();
        self.here = outer;
        let action = &mut self.hir.actions[id];
        (action.params, action.body) = (params, body);
        self.declare_or_report_shadow(&d.name, Entity::Action(id));
        id
    }

    /// The code of a body, in a scope of its own below the parameters.
    fn check_body(&mut self, body: &'a ast::Block) -> Vec<Stmt> {
        self.check_annotations(&body.annotations);
        self.statements(&body.statements)
    }
}

/// Whether code never reaches its end.
pub(crate) fn always_leaves(body: &[Stmt]) -> bool {
    use hir::StmtKind as S;
    body.iter().any(|stmt| match &stmt.kind {
        S::Return(_) | S::Exit => true,
        S::Block(inner) => always_leaves(inner),
        S::If { then, els, .. } => always_leaves(then) && always_leaves(els),
        S::SwitchAction { cases, default, .. } => {
            default.as_ref().is_some_and(|d| always_leaves(d)) && cases.iter().all(|c| always_leaves(&c.body))
        }
        S::SwitchValue { cases, default, .. } => {
            default.as_ref().is_some_and(|d| always_leaves(d)) && cases.iter().all(|c| always_leaves(&c.body))
        }
        _ => false,
    })
}
