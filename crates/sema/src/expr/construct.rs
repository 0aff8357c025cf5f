//! Constructor calls and instances.

use super::{ArgMode, Signature};
use crate::check::Checker;
use crate::codes;
use crate::context::Place;
use crate::hir::{CtorArg, Instance, InstanceId, Ty, TyKind};
use crate::scope::TypeEntity;
use millrace_syntax::ast::{self, Annotation, Argument, Declaration, Name};
use millrace_syntax::{Diagnostic, Span};

/// An instance to be made.
pub(crate) struct Construction<'a, 's> {
    /// Of what.
    pub(crate) entity: TypeEntity,
    /// The name as written.
    pub(crate) type_name: &'s Name,
    /// Type arguments as written; empty: to be found out.
    pub(crate) type_args: &'a [ast::Type],
    /// Constructor arguments.
    pub(crate) args: &'a [Argument],
    /// The name of the instance; none when it is made in place.
    pub(crate) name: Option<&'s Name>,
    /// What stands before it.
    pub(crate) annotations: &'a [Annotation],
    /// Definitions of abstract methods.
    pub(crate) initializer: Option<&'a [Declaration]>,
    /// Its place.
    pub(crate) span: Span,
    /// The type that the place wants, which may tell type arguments.
    pub(crate) expected: Option<Ty>,
}

impl<'a> Checker<'a> {
    /// Makes an instance; none after an error.
    pub(crate) fn construct(&mut self, c: Construction<'a, '_>) -> Option<InstanceId> {
        let c = &c;
        let (ty, signature) = self.constructor(c)?;
        if self.is_unknown(ty) {
            self.check_loose_args(c.args);
            return None;
        }
        self.check_placement(ty, c)?;
        if let Some(expected) = c.expected
            && matches!(self.kind(expected), TyKind::Extern(..) | TyKind::Package(..))
        {
            self.unify(expected, ty);
        }
        let outer = self.here.place;
        let args = self.check_args(&signature, c.args, ArgMode::Constructor, c.span);
        self.here.place = outer;
        let args = args?;
        let ty = self.settle(ty);
        let ty = match self.finish_type(ty) {
            Ok(ty) => ty,
            Err(_) => self.close_type(ty),
        };
        let ctor_params = signature.params.iter().map(|p| p.name.clone()).collect();
        let args = args.into_iter().map(|a| a.value.map_or(CtorArg::Omitted, CtorArg::Expr)).collect();
        let id = self.hir.instances.push(Instance {
            name: c.name.map(|n| n.to_string()),
            ty,
            args,
            ctor_params,
            methods: Vec::new(),
            annotations: c.annotations.into(),
            span: c.span,
        });
        if let TyKind::Extern(ext, types) = self.kind(ty) {
            self.check_abstract_methods(id, ext, &types, c);
        } else if let Some(first) = c.initializer {
            let at = first.first().map_or(c.span, Declaration::span);
            self.error(codes::ABSTRACT_METHOD, at, "only instances of externs can have an initialiser");
        }
        Some(id)
    }

    /// A package type with everything that could not be found out as unknown: parameters left out tell nothing.
    fn close_type(&mut self, ty: Ty) -> Ty {
        let close = |c: &mut Self, parts: Vec<Ty>| -> Vec<Ty> {
            parts.into_iter().map(|t| if c.has_free_vars(t) { c.unknown_ty() } else { t }).collect()
        };
        match self.kind(ty) {
            TyKind::Package(id, parts) => {
                let parts = close(self, parts);
                self.intern(TyKind::Package(id, parts))
            }
            TyKind::Extern(id, parts) => {
                let parts = close(self, parts);
                self.intern(TyKind::Extern(id, parts))
            }
            _ => ty,
        }
    }

    /// The type to be instantiated and its constructor.
    fn constructor(&mut self, c: &Construction<'a, '_>) -> Option<(Ty, Signature<'a>)> {
        let params = self.type_params(&c.entity);
        let types = match c.type_args {
            [] => self.fresh_args(params),
            written if written.len() == params.len() => {
                written.iter().map(|t| self.type_argument(t)).collect()
            }
            written => {
                let message = if params.is_empty() {
                    format!("`{}` takes no type arguments", c.type_name)
                } else {
                    format!(
                        "`{}` takes {} type argument(s), but {} are given",
                        c.type_name,
                        params.len(),
                        written.len()
                    )
                };
                self.error(codes::TYPE_ARGUMENTS, c.span, message);
                return None;
            }
        };
        if let TypeEntity::Block(_) = c.entity {
            for (param, &ty) in params.iter().zip(&types) {
                if self.has_free_vars(ty) {
                    let message = format!("the type argument `{param}` of `{}` must be written", c.type_name);
                    self.report(
                        Diagnostic::error(codes::CANNOT_INFER, c.span, message)
                            .with_secondary(param.span, "declared here"),
                    );
                    return None;
                }
            }
        }
        let ty = self.specialize(&c.entity, types.clone());
        self.check_open_blocks(ty, c)?;
        match self.kind(ty) {
            TyKind::Unknown => None,
            TyKind::Extern(id, known) => {
                let source = self.decls.externs.get(&id).copied()?;
                self.note_deprecated(&source.ast.annotations, c.span);
                let constructors: Vec<(usize, Span, &'a [ast::Parameter])> = source
                    .ast
                    .methods
                    .iter()
                    .enumerate()
                    .filter(|(_, m)| m.return_type.is_none() && m.name.as_str() == source.ast.name.as_str())
                    .map(|(i, m)| (i, m.name.span, m.params.as_slice()))
                    .collect();
                if constructors.is_empty() {
                    let message = format!("`{}` has no constructor", source.ast.name);
                    self.report(
                        Diagnostic::error(codes::BAD_ARGUMENTS, c.span, message)
                            .with_secondary(source.ast.name.span, "declared here"),
                    );
                    return None;
                }
                let chosen = self.choose_overload(source.ast.name.as_str(), &constructors, c.args, c.span)?;
                let ast = &source.ast.methods[chosen];
                let params = self
                    .with_types(source.mark, &source.ast.type_params, &known, |c| c.read_params(&ast.params));
                Some((ty, self.constructor_signature(c, params, types, source.mark, ast.name.span)))
            }
            TyKind::Package(id, known) => {
                let source = self.decls.packages.get(&id).copied()?;
                let params = self.with_types(source.mark, &source.ast.type_params, &known, |c| {
                    c.read_params(&source.ast.params)
                });
                // What an omitted parameter would tell stays open.
                let signature =
                    self.constructor_signature(c, params, Vec::new(), source.mark, source.ast.name.span);
                Some((ty, signature))
            }
            TyKind::Parser(id) => {
                let source = self.decls.parsers.get(&id).copied()?;
                let vars = self.hir.parsers[id].ctor_params.clone();
                Some((ty, self.block_constructor(c, vars, &source.ast.constructor_params, source.mark)))
            }
            TyKind::Control(id) => {
                let source = self.decls.controls.get(&id).copied()?;
                let vars = self.hir.controls[id].ctor_params.clone();
                Some((ty, self.block_constructor(c, vars, &source.ast.constructor_params, source.mark)))
            }
            TyKind::BlockType(..) => {
                let message = format!("`{}` is only a signature: it has no body to instantiate", c.type_name);
                self.error(codes::INSTANCE_NOT_ALLOWED, c.span, message);
                None
            }
            _ => {
                let shown = self.show(ty);
                self.error(codes::NOT_CALLABLE, c.span, format!("`{shown}` cannot be instantiated"));
                None
            }
        }
    }

    fn constructor_signature(
        &mut self,
        c: &Construction<'a, '_>,
        params: Vec<super::Param<'a>>,
        type_args: Vec<Ty>,
        mark: u32,
        span: Span,
    ) -> Signature<'a> {
        let ret = self.intern(TyKind::Void);
        Signature { name: c.type_name.to_string(), params, ret, type_args, mark: Some(mark), span }
    }

    fn block_constructor(
        &mut self,
        c: &Construction<'a, '_>,
        vars: Vec<crate::hir::VarId>,
        ast: &'a [ast::Parameter],
        mark: u32,
    ) -> Signature<'a> {
        let params = vars
            .into_iter()
            .enumerate()
            .map(|(i, v)| {
                let var = &self.hir.vars[v];
                super::Param {
                    name: var.name.clone(),
                    direction: crate::hir::Direction::None,
                    ty: var.ty,
                    optional: false,
                    default: ast.get(i).and_then(|p| p.default.as_ref()),
                    span: var.span,
                }
            })
            .collect();
        let span = ast.first().map_or(c.type_name.span, |p| p.span);
        self.constructor_signature(c, params, Vec::new(), mark, span)
    }

    /// Reports a parser or control that contains itself.
    fn check_open_blocks(&mut self, ty: Ty, c: &Construction<'a, '_>) -> Option<()> {
        let open = match self.kind(ty) {
            TyKind::Parser(id) => self.decls.open_parsers.contains(&id),
            TyKind::Control(id) => self.decls.open_controls.contains(&id),
            _ => false,
        };
        if !open {
            return Some(());
        }
        let message = format!("`{}` cannot contain an instance of itself", c.type_name);
        self.error(codes::RECURSION, c.span, message);
        None
    }

    /// Which instances may be made here (specification, appendix "Restrictions on compile time and run time calls").
    fn check_placement(&mut self, ty: Ty, c: &Construction<'a, '_>) -> Option<()> {
        let place = self.here.place;
        let named = c.name.is_some();
        let allowed = match self.kind(ty) {
            TyKind::Package(..) => place == Place::TopLevel,
            TyKind::Parser(_) => match place {
                Place::TopLevel => !named,
                Place::ParserLocals => true,
                _ => false,
            },
            TyKind::Control(_) => match place {
                Place::TopLevel => !named,
                Place::ControlLocals => true,
                _ => false,
            },
            _ => match place {
                Place::TopLevel | Place::ParserLocals | Place::ControlLocals | Place::Table => true,
                Place::AbstractMethod
                | Place::ParserState
                | Place::ControlApply
                | Place::Action
                | Place::Function => false,
            },
        };
        if allowed {
            return Some(());
        }
        let shown = self.show(ty);
        let message = format!("`{shown}` cannot be instantiated {}", place.describe());
        self.error(codes::INSTANCE_NOT_ALLOWED, c.span, message);
        None
    }
}
