//! What has no body: extern objects and functions, packages, parser types and control types.

use super::ParamOf;
use crate::check::Checker;
use crate::codes;
use crate::declarations::Source;
use crate::expr::Signature;
use crate::hir::{self, BlockTypeId, Direction, Ty, TyKind};
use crate::scope::{Entity, FunctionRef, TypeEntity};
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};

fn params_of(params: &[ast::Parameter]) -> Vec<(String, Direction)> {
    let direction = |d| match d {
        ast::Direction::None => Direction::None,
        ast::Direction::In => Direction::In,
        ast::Direction::Out => Direction::Out,
        ast::Direction::InOut => Direction::InOut,
    };
    params.iter().map(|p| (p.name.to_string(), direction(p.direction))).collect()
}

impl<'a> Checker<'a> {
    /// `extern E { ... }`.
    pub(crate) fn extern_object(&mut self, d: &'a ast::ExternObject) {
        let mut methods = Vec::new();
        let mut numbers = Vec::new();
        for (i, method) in d.methods.iter().enumerate() {
            if method.return_type.is_none() {
                continue;
            }
            numbers.push(i);
            methods.push(hir::Method {
                name: method.name.to_string(),
                params: params_of(&method.params),
                is_abstract: method.is_abstract,
                annotations: method.annotations.clone().into(),
            });
        }
        let id = self.hir.externs.push(hir::Extern {
            name: d.name.to_string(),
            methods,
            annotations: d.annotations.clone().into(),
            span: d.span,
        });
        self.decls.externs.insert(id, Source { ast: d, mark: self.scopes.mark() });
        self.decls.methods.insert(id, numbers);
        self.check_type_params(&d.type_params);
        let args = self.rigid_args(&d.type_params);
        self.here.abstract_depth += 1;
        self.with_types(self.scopes.mark(), &d.type_params, &args, |c| c.check_methods(d));
        self.here.abstract_depth -= 1;
        // After its methods: they cannot name the object itself.
        self.declare(&d.name, Entity::Type(TypeEntity::Extern(id)));
    }

    fn check_methods(&mut self, d: &'a ast::ExternObject) {
        let mut before: HashMap<&str, Vec<&ast::Method>> = HashMap::new();
        for method in &d.methods {
            self.check_annotations(&method.annotations);
            self.check_type_params(&method.type_params);
            let rigid = self.rigid_args(&method.type_params);
            self.scopes.push();
            self.declare_type_params(&method.type_params, &rigid);
            let is_constructor = method.return_type.is_none();
            if is_constructor && method.name.as_str() != d.name.as_str() {
                let message = format!(
                    "`{}` has no return type, and only the constructor `{}` has none",
                    method.name, d.name
                );
                self.error(codes::BAD_RETURN, method.name.span, message);
            }
            if !is_constructor && method.name.as_str() == d.name.as_str() {
                let message = "the constructor has no return type";
                self.error(codes::BAD_RETURN, method.name.span, message);
            }
            let of = if is_constructor { ParamOf::ExternConstructor } else { ParamOf::Extern };
            self.check_params(&method.params, of);
            if let Some(ret) = &method.return_type {
                self.check_result_type(ret, of);
            }
            self.scopes.pop();
            let same = |m: &&&ast::Method| {
                m.return_type.is_none() == is_constructor && same_parameters(&m.params, &method.params)
            };
            let overloads = before.entry(method.name.as_str()).or_default();
            if !self.effort.spend(4 * overloads.len()) {
                return;
            }
            let earlier = overloads.iter().find(same).map(|m| m.name.span);
            overloads.push(method);
            if let Some(earlier) = earlier {
                self.duplicate(&method.name, earlier);
            }
        }
    }

    /// Reports a type that no function or method can return.
    pub(crate) fn check_result_type(&mut self, ret: &'a ast::Type, of: ParamOf) -> Ty {
        let ty = self.resolve_type(ret);
        let fine = self.is_value_type(ty)
            || matches!(self.kind(ty), TyKind::Void | TyKind::Unknown | TyKind::Var(_) | TyKind::String)
            || (of == ParamOf::Extern && matches!(self.kind(ty), TyKind::Extern(..)));
        if !fine {
            let shown = self.show(ty);
            self.error(codes::BAD_TYPE_HERE, ret.span, format!("`{shown}` cannot be returned"));
        }
        ty
    }

    /// `extern T f(...);`
    pub(crate) fn extern_function(&mut self, d: &'a ast::Function) {
        self.check_signature(d, ParamOf::Extern);
        let id = self.hir.extern_functions.push(hir::ExternFunction {
            name: d.name.to_string(),
            params: params_of(&d.params),
            annotations: d.annotations.clone().into(),
            span: d.span,
        });
        self.decls.extern_functions.insert(id, Source { ast: d, mark: self.scopes.mark() });
        self.declare_function(d, FunctionRef::Extern(id));
    }

    /// Reads a function's signature once with its type parameters standing for themselves.
    pub(crate) fn check_signature(&mut self, d: &'a ast::Function, of: ParamOf) {
        self.check_type_params(&d.type_params);
        let args = self.rigid_args(&d.type_params);
        self.here.abstract_depth += 1;
        self.with_types(self.scopes.mark(), &d.type_params, &args, |c| {
            c.check_params(&d.params, of);
            c.check_result_type(&d.return_type, of);
        });
        self.here.abstract_depth -= 1;
    }

    /// Declares a function. An extern one must not have the parameters of another; of others only a call has to be clear
    /// (specification, "Extern objects", on overloading).
    pub(crate) fn declare_function(&mut self, d: &'a ast::Function, function: FunctionRef) {
        let others = self.scopes.functions(d.name.as_str(), true);
        self.effort.spend(4 * others.len());
        for (other, span) in others {
            let params = match other {
                FunctionRef::Extern(id) => {
                    self.decls.extern_functions.get(&id).map(|s| s.ast.params.as_slice())
                }
                FunctionRef::Plain(index) => {
                    self.decls.functions.get(index).map(|f| f.source.ast.params.as_slice())
                }
            };
            if other == function || !params.is_some_and(|p| same_parameters(p, &d.params)) {
                continue;
            }
            if d.body.is_none() {
                self.duplicate(&d.name, span);
                return;
            }
            let message = format!(
                "no call can tell this `{}` from the one before: the parameters are the same",
                d.name
            );
            self.report(
                Diagnostic::warning(codes::AMBIGUOUS_OVERLOAD, d.name.span, message)
                    .with_secondary(span, "the one before"),
            );
        }
        self.declare(&d.name, Entity::Function(function));
    }

    /// `package P(...);`
    pub(crate) fn package(&mut self, d: &'a ast::BlockType) {
        let id = self.hir.packages.push(hir::Package {
            name: d.name.to_string(),
            params: d.params.iter().map(|p| p.name.to_string()).collect(),
            annotations: d.annotations.clone().into(),
            span: d.span,
        });
        self.decls.packages.insert(id, Source { ast: d, mark: self.scopes.mark() });
        self.check_block_type_params(d, ParamOf::Package);
        self.declare_constructible(&d.name, TypeEntity::Package(id));
    }

    /// `parser P(...);`, `control C(...);`
    pub(crate) fn block_type(&mut self, d: &'a ast::BlockType, is_parser: bool) {
        let id = self.hir.block_types.push(hir::BlockType {
            name: d.name.to_string(),
            is_parser,
            annotations: d.annotations.clone().into(),
            span: d.span,
        });
        self.decls.block_types.insert(id, Source { ast: d, mark: self.scopes.mark() });
        self.check_block_type_params(d, if is_parser { ParamOf::Parser } else { ParamOf::Control });
        self.declare(&d.name, Entity::Type(TypeEntity::BlockType(id)));
    }

    fn check_block_type_params(&mut self, d: &'a ast::BlockType, of: ParamOf) {
        self.check_type_params(&d.type_params);
        let args = self.rigid_args(&d.type_params);
        self.here.abstract_depth += 1;
        self.with_types(self.scopes.mark(), &d.type_params, &args, |c| c.check_params(&d.params, of));
        self.here.abstract_depth -= 1;
    }

    /// The `apply` of a parser type or control type with these type arguments.
    pub(crate) fn block_type_signature(&mut self, id: BlockTypeId, args: &[Ty]) -> Signature<'a> {
        let span = self.hir.block_types[id].span;
        let name = self.hir.block_types[id].name.clone();
        let ret = self.intern(TyKind::Void);
        let source = self.decls.block_types.get(&id).copied();
        let params = match source {
            Some(source) => self.with_types(source.mark, &source.ast.type_params, args, |c| {
                c.read_params(&source.ast.params)
            }),
            None => Vec::new(),
        };
        Signature {
            name,
            params,
            ret,
            type_args: Vec::new(),
            type_scope: Vec::new(),
            mark: source.map(|s| s.mark),
            span,
        }
    }

    /// Reports an instance that has initialisers for what is not abstract, and abstract methods without any.
    pub(crate) fn missing_method(&mut self, name: &str, object: &str, declared: Span, span: Span) {
        self.report(
            Diagnostic::error(
                codes::ABSTRACT_METHOD,
                span,
                format!("the abstract method `{name}` of `{object}` is not defined"),
            )
            .with_secondary(declared, "declared here")
            .with_help(format!("define it after the instance: `= {{ ... {name}(...) {{ ... }} }};`")),
        );
    }
}

/// Whether calls cannot tell two declarations apart: same number and names of parameters.
pub(crate) fn same_parameters(a: &[ast::Parameter], b: &[ast::Parameter]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.name.as_str() == y.name.as_str())
}
