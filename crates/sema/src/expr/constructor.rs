//! Constructors: which one a call means, with which type arguments.

use super::{Construction, Param, Signature};
use crate::check::Checker;
use crate::codes;
use crate::declarations::Source;
use crate::hir::{Direction, ExternId, Ty, TyKind, VarId};
use crate::scope::{Entity, TypeEntity};
use millrace_syntax::ast::{self, Name};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// Declares something with a constructor. Several may have one name when their constructors' parameters differ.
    pub(crate) fn declare_constructible(&mut self, name: &'a Name, entity: TypeEntity) {
        let others = self.scopes.global_types(name.as_str());
        let mine = self.constructor_params(&entity);
        for (other, span) in &others {
            let differ = match (mine, self.constructor_params(other)) {
                (Some(a), Some(b)) => !crate::decl::same_parameters(a, b),
                _ => false,
            };
            if !differ {
                self.duplicate(name, *span);
                return;
            }
        }
        if others.is_empty() || !self.scopes.at_top_level() {
            self.declare(name, Entity::Type(entity));
        } else {
            self.scopes.declare_overload(&name.text, Entity::Type(entity), name.span);
        }
    }

    /// The constructor's parameters of what can be overloaded by them.
    fn constructor_params(&self, entity: &TypeEntity) -> Option<&'a [ast::Parameter]> {
        match entity {
            TypeEntity::Known(ty) => match self.kind(*ty) {
                TyKind::Parser(id) => {
                    self.decls.parsers.get(&id).map(|s| s.ast.constructor_params.as_slice())
                }
                TyKind::Control(id) => {
                    self.decls.controls.get(&id).map(|s| s.ast.constructor_params.as_slice())
                }
                _ => None,
            },
            TypeEntity::Block(index) => Some(self.decls.blocks[*index].ast.constructor_params()),
            TypeEntity::Package(id) => self.decls.packages.get(id).map(|s| s.ast.params.as_slice()),
            _ => None,
        }
    }

    /// Of several parsers, controls or packages with one name, the one that the arguments choose.
    pub(super) fn choose_type_overload(&mut self, c: &Construction<'a, '_>) -> Option<TypeEntity> {
        let all = self.scopes.global_types(c.type_name.as_str());
        if all.len() < 2 || self.constructor_params(&c.entity).is_none() {
            return Some(c.entity.clone());
        }
        let candidates: Vec<(usize, Span, &'a [ast::Parameter])> = all
            .iter()
            .enumerate()
            .filter_map(|(i, (entity, span))| Some((i, *span, self.constructor_params(entity)?)))
            .collect();
        let chosen = self.choose_overload(c.type_name.as_str(), &candidates, c.args, c.span)?;
        all.get(chosen).map(|(entity, _)| entity.clone())
    }

    /// The type to be instantiated and its constructor.
    pub(super) fn constructor(&mut self, c: &Construction<'a, '_>) -> Option<(Ty, Signature<'a>)> {
        let params = self.type_params(&c.entity);
        let types = match c.type_args {
            [] => self.fresh_args(params),
            written if written.len() == params.len() => {
                written.iter().map(|t| self.type_argument(t)).collect()
            }
            written => {
                self.type_argument_count(c.type_name.as_str(), params, written.len(), c.span);
                return None;
            }
        };
        if types.iter().any(|&ty| self.mentions_entity(ty, &c.entity)) {
            let message = format!("`{}` cannot be a type argument of itself", c.type_name);
            self.error(codes::RECURSION, c.span, message);
            return None;
        }
        let types = match c.entity {
            TypeEntity::Block(index) => self.infer_block_types(index, types, c)?,
            _ => types,
        };
        let ty = self.specialize(&c.entity, types.clone());
        self.check_open_blocks(ty, c)?;
        match self.kind(ty) {
            TyKind::Unknown => None,
            TyKind::Extern(id, known) => Some((ty, self.extern_constructor(id, known, c)?)),
            TyKind::Package(id, known) => {
                let source = self.decls.packages.get(&id).copied()?;
                let params = &source.ast.type_params;
                let read =
                    self.with_types(source.mark, params, &known, |c| c.read_params(&source.ast.params));
                let span = source.ast.name.span;
                Some((ty, self.constructor_signature(c, read, (source.mark, params, known), span)))
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
                self.report(
                    Diagnostic::error(
                        codes::NOT_CALLABLE,
                        c.span,
                        format!("`{shown}` cannot be instantiated"),
                    )
                    .with_help(format!("declare a variable: `{shown} name;`")),
                );
                None
            }
        }
    }

    fn extern_constructor(
        &mut self,
        id: ExternId,
        known: Vec<Ty>,
        c: &Construction<'a, '_>,
    ) -> Option<Signature<'a>> {
        let source: Source<'a, ast::ExternObject> = self.decls.externs.get(&id).copied()?;
        let name = &source.ast.name;
        self.note_deprecated(&source.ast.annotations, c.span);
        let methods = source.ast.methods.iter().enumerate();
        let constructors: Vec<(usize, Span, &'a [ast::Parameter])> = methods
            .filter(|(_, m)| m.return_type.is_none() && m.name.as_str() == name.as_str())
            .map(|(i, m)| (i, m.name.span, m.params.as_slice()))
            .collect();
        if constructors.is_empty() {
            let message = format!("`{name}` has no constructor");
            self.report(
                Diagnostic::error(codes::BAD_ARGUMENTS, c.span, message)
                    .with_secondary(name.span, "declared here"),
            );
            return None;
        }
        let chosen = self.choose_overload(name.as_str(), &constructors, c.args, c.span)?;
        let ast = &source.ast.methods[chosen];
        let params = &source.ast.type_params;
        let read = self.with_types(source.mark, params, &known, |c| c.read_params(&ast.params));
        Some(self.constructor_signature(c, read, (source.mark, params, known), ast.name.span))
    }

    fn constructor_signature(
        &mut self,
        c: &Construction<'a, '_>,
        params: Vec<Param<'a>>,
        (mark, type_params, types): (u32, &'a [Name], Vec<Ty>),
        span: Span,
    ) -> Signature<'a> {
        Signature {
            name: c.type_name.to_string(),
            params,
            ret: self.intern(TyKind::Void),
            type_args: types.clone(),
            mark: Some(mark),
            type_scope: vec![(type_params, types)],
            span,
        }
    }

    fn block_constructor(
        &mut self,
        c: &Construction<'a, '_>,
        vars: Vec<VarId>,
        ast: &'a [ast::Parameter],
        mark: u32,
    ) -> Signature<'a> {
        let param = |(i, v): (usize, VarId)| {
            let var = &self.hir.vars[v];
            Param {
                name: var.name.clone(),
                direction: Direction::None,
                ty: var.ty,
                optional: false,
                default: ast.get(i).and_then(|p| p.default.as_ref()),
                span: var.span,
            }
        };
        let params = vars.into_iter().enumerate().map(param).collect();
        let span = ast.first().map_or(c.type_name.span, |p| p.span);
        self.constructor_signature(c, params, (mark, &[], Vec::new()), span)
    }

    /// The type arguments of a parser or control: those written, and those that its arguments or the type that its place
    /// wants tell.
    fn infer_block_types(
        &mut self,
        index: usize,
        types: Vec<Ty>,
        c: &Construction<'a, '_>,
    ) -> Option<Vec<Ty>> {
        let (ast, mark) = (self.decls.blocks[index].ast, self.decls.blocks[index].mark);
        let params = &ast.header().type_params;
        if types.iter().any(|&t| self.has_free_vars(t)) {
            let (apply, constructor) = self.with_types(mark, params, &types, |c| {
                (c.read_params(&ast.header().params), c.read_params(ast.constructor_params()))
            });
            if let Some(wanted) = c.expected.and_then(|ty| self.apply_shape(ty)) {
                for (param, (_, wanted, _)) in apply.iter().zip(wanted) {
                    self.unify(param.ty, wanted);
                }
            }
            for (i, arg) in c.args.iter().enumerate() {
                let param = match &arg.name {
                    Some(name) => constructor.iter().find(|p| p.name == name.as_str()),
                    None => constructor.get(i),
                };
                if let (Some(param), Some(value)) = (param, &arg.value) {
                    let value = self.check_expr(value, None);
                    self.unify(param.ty, value.ty);
                }
            }
        }
        let mut found = Vec::with_capacity(types.len());
        for (param, ty) in params.iter().zip(types) {
            match self.finish_type(ty) {
                Ok(ty) => found.push(ty),
                Err(_) => {
                    let message =
                        format!("the type argument `{param}` of `{}` cannot be found out", c.type_name);
                    self.report(
                        Diagnostic::error(codes::CANNOT_INFER, c.span, message)
                            .with_secondary(param.span, "declared here"),
                    );
                    return None;
                }
            }
        }
        Some(found)
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
}
