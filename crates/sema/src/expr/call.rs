//! Calls: of functions, actions, methods and constructors, by what the callee names.

use super::{ArgMode, NamedType, Signature};
use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::hir::{Call, Callee, Expr, ExprKind, Ty, TyKind};
use crate::scope::{Entity, FunctionRef};
use crate::wording::count;
use millrace_syntax::ast::{self, Argument, Path};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// Any call.
    pub(super) fn call(
        &mut self,
        callee: &'a ast::Expr,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        if let ast::ExprKind::Member(base, method) = &callee.kind {
            return self.method_call(base, method, type_args, args, span, expected);
        }
        if let Some(named) = self.named_by(callee) {
            return self.constructor_call(named, type_args, args, span, expected);
        }
        let ast::ExprKind::Name(path) = &callee.kind else {
            let e = self.check_expr(callee, None);
            if !self.is_unknown(e.ty) {
                self.error(codes::NOT_CALLABLE, callee.span, "this cannot be called");
            }
            return self.unknown(span);
        };
        match self.scopes.lookup(path.name.as_str(), path.absolute).map(|(e, s)| (e.clone(), s)) {
            Some((Entity::Function(_), _)) => self.function_call(path, type_args, args, span, expected),
            Some((Entity::Action(id), _)) => self.action_call(id, type_args, args, span),
            Some((Entity::Broken, _)) => self.unknown(span),
            Some((other, declared)) => {
                let message =
                    format!("`{}` is {} and cannot be called", path.name, super::article(other.noun()));
                let found = Diagnostic::error(codes::NOT_CALLABLE, callee.span, message)
                    .with_secondary(declared, "declared here");
                self.report(found);
                self.unknown(span)
            }
            None => {
                self.unknown_name(&path.name, "function or action");
                self.unknown(span)
            }
        }
    }

    /// A call of a function or extern function.
    fn function_call(
        &mut self,
        path: &'a Path,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let all = self.scopes.functions(path.name.as_str(), path.absolute);
        let ast_of = |c: &Self, f: FunctionRef| -> Option<&'a ast::Function> {
            match f {
                FunctionRef::Extern(id) => c.decls.extern_functions.get(&id).map(|s| s.ast),
                FunctionRef::Plain(index) => Some(c.decls.functions[index].source.ast),
            }
        };
        let candidates: Vec<(FunctionRef, Span, &'a [ast::Parameter])> =
            all.iter().filter_map(|&(f, s)| Some((f, s, ast_of(self, f)?.params.as_slice()))).collect();
        // A function that is being checked cannot be meant, unless it is the only one.
        let open = |f: &FunctionRef| matches!(f, FunctionRef::Plain(i) if self.decls.functions[*i].open);
        let closed: Vec<_> = candidates.iter().filter(|(f, ..)| !open(f)).copied().collect();
        let candidates = if closed.is_empty() { candidates } else { closed };
        let Some(chosen) = self.choose_overload(path.name.as_str(), &candidates, args, span) else {
            return self.unknown(span);
        };
        match chosen {
            FunctionRef::Extern(id) => {
                let Some(source) = self.decls.extern_functions.get(&id).copied() else {
                    return self.unknown(span);
                };
                self.note_deprecated(&source.ast.annotations, span);
                let Some(vars) =
                    self.call_type_args(&source.ast.type_params, type_args, path.name.as_str(), span)
                else {
                    return self.unknown(span);
                };
                let signature = self.with_types(source.mark, &source.ast.type_params, &vars, |c| Signature {
                    name: source.ast.name.to_string(),
                    params: c.read_params(&source.ast.params),
                    ret: c.resolve_type(&source.ast.return_type),
                    type_args: vars.clone(),
                    mark: Some(source.mark),
                    type_scope: vec![(&source.ast.type_params, vars.clone())],
                    span: source.ast.name.span,
                });
                self.unify_result(&signature, expected);
                let Some(checked) = self.check_args(&signature, args, ArgMode::Runtime, span) else {
                    return self.unknown_of(signature.ret, span);
                };
                if let Some(folded) = self.core_function(path.name.as_str(), source.ast, &checked, span) {
                    return folded;
                }
                let call = self.finish_call(Callee::ExternFunction(id), vars, checked, signature.ret, span);
                if !self.is_known(&call) {
                    self.extern_place(span);
                }
                call
            }
            FunctionRef::Plain(index) => self.plain_call(index, type_args, args, span, expected),
        }
    }

    fn plain_call(
        &mut self,
        index: usize,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let source = self.decls.functions[index].source;
        let name = source.ast.name.as_str();
        let Some(vars) = self.call_type_args(&source.ast.type_params, type_args, name, span) else {
            return self.unknown(span);
        };
        if self.decls.functions[index].open {
            let message = format!("`{name}` calls itself; recursion is not allowed");
            self.report(
                Diagnostic::error(codes::RECURSION, span, message)
                    .with_secondary(source.ast.name.span, "declared here"),
            );
            return self.unknown(span);
        }
        let signature = self.with_types(source.mark, &source.ast.type_params, &vars, |c| Signature {
            name: name.to_string(),
            params: c.read_params(&source.ast.params),
            ret: c.resolve_type(&source.ast.return_type),
            type_args: vars.clone(),
            mark: Some(source.mark),
            type_scope: vec![(&source.ast.type_params, vars.clone())],
            span: source.ast.name.span,
        });
        self.unify_result(&signature, expected);
        let Some(checked) = self.check_args(&signature, args, ArgMode::AnyValue, span) else {
            return self.unknown_of(signature.ret, span);
        };
        let types: Vec<Ty> = vars.iter().map(|&v| self.settle(v)).collect();
        if types.iter().any(|&t| self.contains_int(t)) {
            self.error(codes::CANNOT_INFER, span, "the width of an argument is not known");
            return self.unknown(span);
        }
        if self.here.context == CodeContext::TopLevel && self.here.abstract_depth == 0 {
            let message = "functions cannot be called at the top level";
            return self.fail(codes::CALL_NOT_ALLOWED, span, message);
        }
        let function = self.function_instance(index, types, span);
        self.finish_call(Callee::Function(function), Vec::new(), checked, signature.ret, span)
    }

    /// A call of an action.
    fn action_call(
        &mut self,
        id: crate::hir::ActionId,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
    ) -> Expr {
        let name = self.hir.actions[id].name.clone();
        if !type_args.is_empty() {
            return self.fail(
                codes::TYPE_ARGUMENTS,
                span,
                format!("the action `{name}` takes no type arguments"),
            );
        }
        if !matches!(self.here.context, CodeContext::ControlApply | CodeContext::Action) {
            let message = format!("actions cannot be called {}", self.here.context.describe());
            return self.fail(codes::CALL_NOT_ALLOWED, span, message);
        }
        let signature = self.action_signature(id);
        let outer = std::mem::replace(&mut self.here.in_argument, true);
        let checked = self.check_args(&signature, args, ArgMode::AnyValue, span);
        self.here.in_argument = outer;
        let Some(checked) = checked else { return self.unknown(span) };
        self.finish_call(Callee::Action(id), Vec::new(), checked, signature.ret, span)
    }

    /// The parameters of an action.
    pub(crate) fn action_signature(&mut self, id: crate::hir::ActionId) -> Signature<'a> {
        let action = &self.hir.actions[id];
        let (name, span, vars) = (action.name.clone(), action.span, action.params.clone());
        let source = self.decls.actions.get(&id).copied();
        let params = vars.into_iter().enumerate().map(|(i, v)| {
            let var = &self.hir.vars[v];
            let direction = match var.kind {
                crate::hir::VarKind::Param(d) => d,
                _ => crate::hir::Direction::None,
            };
            let default = source.and_then(|s| s.ast.params.get(i)).and_then(|p| p.default.as_ref());
            super::Param {
                name: var.name.clone(),
                direction,
                ty: var.ty,
                optional: false,
                default,
                span: var.span,
            }
        });
        let params = params.collect();
        let ret = self.intern(TyKind::Void);
        Signature { name, params, ret, type_args: Vec::new(), type_scope: Vec::new(), mark: None, span }
    }

    /// The type arguments of a call: those written, or variables to be found out.
    pub(crate) fn call_type_args(
        &mut self,
        params: &'a [ast::Name],
        written: &'a [ast::Type],
        name: &str,
        span: Span,
    ) -> Option<Vec<Ty>> {
        if written.is_empty() {
            return Some(self.fresh_args(params));
        }
        if written.len() != params.len() {
            self.type_argument_count(name, params, written.len(), span);
            return None;
        }
        Some(written.iter().map(|t| self.type_argument(t)).collect())
    }

    /// Reports a wrong number of type arguments.
    pub(crate) fn type_argument_count(
        &mut self,
        name: &str,
        params: &'a [ast::Name],
        given: usize,
        span: Span,
    ) {
        let verb = if given == 1 { "is" } else { "are" };
        let message = match params.len() {
            0 => format!("`{name}` takes no type arguments"),
            n => {
                let takes = count(n, "type argument", "type arguments");
                format!("`{name}` takes {takes}, but {given} {verb} given")
            }
        };
        let mut found = Diagnostic::error(codes::TYPE_ARGUMENTS, span, message);
        if let (Some(first), Some(last)) = (params.first(), params.last()) {
            let all = Span { end: last.span.end, ..first.span };
            found = found.with_secondary(all, "its type parameters");
        }
        self.report(found);
    }

    /// Lets the result of a call tell its type arguments.
    pub(crate) fn unify_result(&mut self, signature: &Signature<'a>, expected: Option<Ty>) {
        let ret = self.settle(signature.ret);
        if let Some(expected) = expected
            && let TyKind::Var(_) = self.kind(ret)
            && !signature.params.iter().any(|p| self.mentions_same_var(p.ty, ret))
        {
            self.unify(ret, expected);
        }
    }

    fn mentions_same_var(&self, ty: Ty, var: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Tuple(p) | TyKind::Extern(_, p) => p.into_iter().any(|t| self.mentions_same_var(t, var)),
            TyKind::List(t) | TyKind::Stack(t, _) => self.mentions_same_var(t, var),
            TyKind::Struct(id) => {
                self.hir.types.structs[id].args.iter().any(|&t| self.mentions_same_var(t, var))
            }
            _ => self.shallow(ty) == self.shallow(var),
        }
    }

    /// The call as an expression of its result's type.
    pub(crate) fn finish_call(
        &mut self,
        callee: Callee,
        type_args: Vec<Ty>,
        args: Vec<crate::hir::Arg>,
        ret: Ty,
        span: Span,
    ) -> Expr {
        let type_args = type_args.into_iter().map(|t| self.settle(t)).collect();
        let ty = self.finish_type(ret).unwrap_or(ret);
        Expr { kind: ExprKind::Call(Box::new(Call { callee, type_args, args, ty, span })), ty, span }
    }

    /// What an erroneous call leaves: unknown, but of the type it would have, where that is certain.
    pub(crate) fn unknown_of(&mut self, ret: Ty, span: Span) -> Expr {
        let settled = self.settle(ret);
        if self.mentions_vars(settled) {
            return self.unknown(span);
        }
        Expr { kind: ExprKind::Unknown, ty: settled, span }
    }

    /// The overload that the number and the names of the arguments choose.
    pub(crate) fn choose_overload<T: Copy>(
        &mut self,
        name: &str,
        candidates: &[(T, Span, &'a [ast::Parameter])],
        args: &'a [Argument],
        span: Span,
    ) -> Option<T> {
        if let [(only, ..)] = candidates {
            return Some(*only);
        }
        if !self.effort.spend(candidates.iter().map(|(_, _, params)| 4 + params.len()).sum()) {
            return None;
        }
        let shape = |params: &'a [ast::Parameter]| {
            params.iter().map(|p| (p.name.as_str(), p.default.is_some() || super::arguments::is_optional(p)))
        };
        let suiting: Vec<&(T, Span, &[ast::Parameter])> =
            candidates.iter().filter(|(_, _, params)| Self::suits(shape(params), args)).collect();
        let exact = suiting.iter().filter(|(_, _, params)| params.len() == args.len()).count();
        match suiting.as_slice() {
            [(only, ..)] => Some(*only),
            [] => {
                let message = format!(
                    "no declaration of `{name}` takes {}",
                    count(args.len(), "argument", "arguments")
                );
                let mut found = Diagnostic::error(codes::BAD_ARGUMENTS, span, message);
                for (_, declared, params) in candidates.iter().take(6) {
                    let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
                    found = found.with_secondary(*declared, format!("takes ({})", names.join(", ")));
                }
                self.report(found);
                self.check_loose_args(args);
                None
            }
            several if exact == 1 => {
                several.iter().find(|(_, _, params)| params.len() == args.len()).map(|(chosen, ..)| *chosen)
            }
            several => {
                let message = format!("more than one declaration of `{name}` takes these arguments");
                let mut found = Diagnostic::error(codes::AMBIGUOUS_CALL, span, message);
                for (_, declared, _) in several.iter().take(6) {
                    found = found.with_secondary(*declared, "this one does");
                }
                self.report(found);
                None
            }
        }
    }

    /// Types arguments that belong to no parameter, for what is wrong within them.
    pub(crate) fn check_loose_args(&mut self, args: &'a [Argument]) {
        let unknown = self.unknown_ty();
        args.iter().filter_map(|a| a.value.as_ref()).for_each(|v| drop(self.check_expr(v, Some(unknown))));
    }

    /// Reports a call of an extern where nothing runs.
    pub(crate) fn extern_place(&mut self, span: Span) {
        if self.here.context == CodeContext::TopLevel && self.here.abstract_depth == 0 {
            self.error(codes::CALL_NOT_ALLOWED, span, "nothing can be called at the top level");
        }
    }

    /// Warns about a use of what is annotated `@deprecated`.
    pub(crate) fn note_deprecated(&mut self, annotations: &'a [ast::Annotation], span: Span) {
        if let Some(a) = annotations.iter().find(|a| a.name.as_str() == "deprecated") {
            let why = a.string().unwrap_or_default();
            self.report(
                Diagnostic::warning(codes::DEPRECATED, span, "this is deprecated")
                    .with_note(why)
                    .with_secondary(a.span, "says so"),
            );
        }
    }

    fn constructor_call(
        &mut self,
        named: NamedType<'a>,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let NamedType::Entity(entity, path, written) = named else {
            return self.fail(codes::NOT_CALLABLE, span, "this type has no constructor");
        };
        let written = match written {
            Some(written) => written.as_slice(),
            None => type_args,
        };
        let construction = super::Construction {
            entity,
            type_name: &path.name,
            type_args: written,
            args,
            name: None,
            annotations: &[],
            initializer: None,
            span,
            expected,
        };
        match self.construct(construction) {
            Some(id) => Expr { kind: ExprKind::Instance(id), ty: self.hir.instances[id].ty, span },
            None => self.unknown(span),
        }
    }
}
