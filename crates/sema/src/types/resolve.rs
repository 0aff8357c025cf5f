//! From types as written to types.

use super::nesting::Container;
use crate::check::Checker;
use crate::codes;
use crate::declarations::StructSource;
use crate::hir::{self, ExprKind, Ty, TyKind};
use crate::limits::{MAX_INSTANTIATIONS, MAX_STACK, MAX_WIDTH};
use crate::repeated::Names;
use crate::scope::{Entity, Mark, TypeEntity};
use crate::types::size::SizeError;
use crate::wording::{count, number};
use millrace_syntax::ast::{self, Name, TypeKind};
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Which number of bits or elements is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SizeOf {
    Bits,
    SignedBits,
    Varbit,
    Stack,
}

impl<'a> Checker<'a> {
    /// The type that is written; unknown after an error.
    pub(crate) fn resolve_type(&mut self, ty: &'a ast::Type) -> Ty {
        let kind = match &ty.kind {
            TypeKind::Bool => TyKind::Bool,
            TypeKind::Error => TyKind::Error,
            TypeKind::MatchKind => TyKind::MatchKind,
            TypeKind::String => TyKind::String,
            TypeKind::Void => TyKind::Void,
            TypeKind::Int => TyKind::Int,
            TypeKind::Bits(None) => TyKind::Bits(1),
            TypeKind::Bits(Some(width)) => match self.size(width, SizeOf::Bits) {
                Some(width) => TyKind::Bits(width),
                None => TyKind::Unknown,
            },
            TypeKind::SignedBits(width) => match self.size(width, SizeOf::SignedBits) {
                Some(width) => TyKind::SignedBits(width),
                None => TyKind::Unknown,
            },
            TypeKind::Varbit(width) => match self.size(width, SizeOf::Varbit) {
                Some(width) => TyKind::Varbit(width),
                None => TyKind::Unknown,
            },
            TypeKind::DontCare => return self.fresh("_", true),
            TypeKind::Name(path) => return self.named_type(path, None, ty.span),
            TypeKind::Specialized(path, args) => return self.named_type(path, Some(args), ty.span),
            TypeKind::Stack(element, size) => {
                let element_ty = self.resolve_type(element);
                let fits = self.check_nesting(Container::Array, element_ty, element.span);
                match self.size(size, SizeOf::Stack) {
                    Some(size) if fits => TyKind::Stack(element_ty, size),
                    _ => TyKind::Unknown,
                }
            }
            TypeKind::Tuple(parts) => {
                let resolve = |part: &'a ast::Type| {
                    let ty = self.resolve_type(part);
                    if matches!(part.kind, TypeKind::DontCare) {
                        self.error(
                            codes::BAD_TYPE_HERE,
                            part.span,
                            "the type of a member cannot be left open",
                        );
                        return self.unknown_ty();
                    }
                    if self.check_nesting(Container::Tuple, ty, part.span) { ty } else { self.unknown_ty() }
                };
                TyKind::Tuple(parts.iter().map(resolve).collect())
            }
            TypeKind::List(element) => {
                let element_ty = self.resolve_type(element);
                let fits = self.check_nesting(Container::List, element_ty, element.span);
                if fits { TyKind::List(element_ty) } else { TyKind::Unknown }
            }
            TypeKind::Invalid => TyKind::Unknown,
        };
        self.intern(kind)
    }

    /// A width or number of elements: a number known here and now.
    fn size(&mut self, expr: &'a ast::Expr, of: SizeOf) -> Option<u32> {
        let value = self.constant_integer(expr, "a size")?;
        let (least, most, what) = match of {
            SizeOf::Bits => (0, MAX_WIDTH, "width of a `bit` type"),
            SizeOf::SignedBits => (1, MAX_WIDTH, "width of an `int` type"),
            SizeOf::Varbit => (0, MAX_WIDTH, "width of a `varbit` type"),
            SizeOf::Stack => (1, MAX_STACK, "number of elements"),
        };
        match value.to_u32().filter(|v| (least..=most).contains(v)) {
            Some(value) => Some(value),
            None => {
                let message =
                    format!("the {what} must be between {least} and {most}, not {}", number(&value));
                self.error(codes::BAD_SIZE, expr.span, message);
                None
            }
        }
    }

    /// The number of elements of an array.
    pub(crate) fn element_count(&mut self, expr: &'a ast::Expr) -> Option<u32> {
        self.size(expr, SizeOf::Stack)
    }

    /// The value of an expression that must be a number known here and now.
    pub(crate) fn constant_integer(&mut self, expr: &'a ast::Expr, what: &str) -> Option<BigInt> {
        let checked = self.check_expr(expr, None);
        self.integer_value(&checked, what)
    }

    /// The value of a checked expression that must be a number known here and now.
    pub(crate) fn integer_value(&mut self, expr: &hir::Expr, what: &str) -> Option<BigInt> {
        if self.is_unknown(expr.ty) {
            return None;
        }
        let checked = self.without_enum(expr.clone());
        match (&checked.kind, self.kind(checked.ty)) {
            (ExprKind::Int(value), TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_)) => {
                Some(value.clone())
            }
            (_, TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_)) => {
                let message = format!("{what} must be known at compile time");
                self.report(
                    Diagnostic::error(codes::NOT_CONSTANT, expr.span, message)
                        .with_label("its value is not known here"),
                );
                None
            }
            _ => {
                let found = self.show(checked.ty);
                self.error(
                    codes::TYPE_MISMATCH,
                    expr.span,
                    format!("{what} must be a number, not `{found}`"),
                );
                None
            }
        }
    }

    /// The type that a name stands for, with its type arguments if any are written.
    fn named_type(&mut self, path: &ast::Path, args: Option<&'a Vec<ast::Type>>, span: Span) -> Ty {
        let Some(entity) = self.type_entity(path) else { return self.unknown_ty() };
        let args: Option<Vec<Ty>> = args.map(|args| args.iter().map(|a| self.type_argument(a)).collect());
        self.apply_type(&entity, args, &path.name, span)
    }

    /// A type argument: any type that a variable may stand for.
    pub(crate) fn type_argument(&mut self, arg: &'a ast::Type) -> Ty {
        let ty = self.resolve_type(arg);
        let kind = self.kind(ty);
        if matches!(
            kind,
            TyKind::Parser(_) | TyKind::Control(_) | TyKind::Package(..) | TyKind::BlockType(..)
        ) {
            let shown = self.show(ty);
            self.error(codes::TYPE_ARGUMENTS, arg.span, format!("`{shown}` cannot be a type argument"));
            return self.unknown_ty();
        }
        ty
    }

    /// The type that a name means, if it is one.
    pub(crate) fn type_entity(&mut self, path: &ast::Path) -> Option<TypeEntity> {
        match self.scopes.lookup(path.name.as_str(), path.absolute) {
            Some((Entity::Type(entity), _)) => Some(entity.clone()),
            Some((Entity::Broken, _)) => None,
            Some((other, declared)) => {
                let message = format!("`{}` is a {}, not a type", path.name, other.noun());
                self.report(
                    Diagnostic::error(codes::WRONG_KIND, path.name.span, message)
                        .with_secondary(declared, "declared here"),
                );
                None
            }
            None => {
                self.unknown_name(&path.name, "type");
                None
            }
        }
    }

    /// The type parameters of what a name means.
    pub(crate) fn type_params(&self, entity: &TypeEntity) -> &'a [Name] {
        match entity {
            TypeEntity::Known(_) => &[],
            TypeEntity::Struct(index) => &self.decls.structs[*index].source.ast.type_params,
            TypeEntity::Extern(id) => self.decls.externs.get(id).map_or(&[], |s| &s.ast.type_params),
            TypeEntity::Block(index) => &self.decls.blocks[*index].ast.header().type_params,
            TypeEntity::BlockType(id) => self.decls.block_types.get(id).map_or(&[], |s| &s.ast.type_params),
            TypeEntity::Package(id) => self.decls.packages.get(id).map_or(&[], |s| &s.ast.type_params),
        }
    }

    fn apply_type(&mut self, entity: &TypeEntity, args: Option<Vec<Ty>>, name: &Name, span: Span) -> Ty {
        let params = self.type_params(entity);
        let args = match args {
            Some(args) if args.len() == params.len() && !params.is_empty() => args,
            None if params.is_empty() => Vec::new(),
            None => {
                let needed = count(params.len(), "type argument", "type arguments");
                let names: Vec<&str> = params.iter().map(|p| p.as_str()).collect();
                let mut found =
                    Diagnostic::error(codes::TYPE_ARGUMENTS, span, format!("`{name}` needs {needed}"))
                        .with_help(format!("write `{name}<...>`, with a type for {}", names.join(", ")));
                if let Some(first) = params.first() {
                    found = found.with_secondary(first.span, "declared here");
                }
                self.report(found);
                return self.unknown_ty();
            }
            Some(args) => {
                self.type_argument_count(name.as_str(), params, args.len(), span);
                return self.unknown_ty();
            }
        };
        if args.iter().any(|&arg| self.mentions_entity(arg, entity)) {
            let message = format!("`{name}` cannot be a type argument of itself");
            self.error(codes::RECURSION, span, message);
            return self.unknown_ty();
        }
        let generic = !args.is_empty();
        let outer = self.here.instantiated;
        self.here.instantiated = outer.or(generic.then_some(span));
        let ty = self.specialize(entity, args);
        self.here.instantiated = outer;
        ty
    }

    /// Whether something generic is part of a type.
    pub(crate) fn mentions_entity(&self, ty: Ty, entity: &TypeEntity) -> bool {
        let parts = match (self.kind(ty), entity) {
            (TyKind::Extern(id, _), TypeEntity::Extern(other)) if id == *other => return true,
            (TyKind::Struct(id), TypeEntity::Struct(index))
                if self.decls.struct_origin.get(&id) == Some(index) =>
            {
                return true;
            }
            (
                TyKind::Tuple(p) | TyKind::Extern(_, p) | TyKind::Package(_, p) | TyKind::BlockType(_, p),
                _,
            ) => p,
            (TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t), _) => vec![t],
            (TyKind::Struct(id), _) => self.hir.types.structs[id].args.clone(),
            _ => Vec::new(),
        };
        parts.into_iter().any(|t| self.mentions_entity(t, entity))
    }

    /// The type that an entity makes with the right number of type arguments.
    pub(crate) fn specialize(&mut self, entity: &TypeEntity, args: Vec<Ty>) -> Ty {
        match entity {
            TypeEntity::Known(ty) => *ty,
            TypeEntity::Struct(index) => self.struct_instance(*index, args),
            TypeEntity::Extern(id) => self.intern(TyKind::Extern(*id, args)),
            TypeEntity::Block(index) => self.block_instance(*index, args),
            TypeEntity::BlockType(id) => self.intern(TyKind::BlockType(*id, args)),
            TypeEntity::Package(id) => self.intern(TyKind::Package(*id, args)),
        }
    }

    /// Does something with only global names visible as of `mark`, and type parameters standing for types.
    pub(crate) fn with_types<R>(
        &mut self,
        mark: Mark,
        params: &'a [Name],
        args: &[Ty],
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let aside = self.scopes.leave_local_names(mark);
        self.scopes.push();
        self.declare_type_params(params, args);
        let result = work(self);
        self.scopes.pop();
        self.scopes.return_to(aside);
        result
    }

    /// Declares type parameters in the innermost scope.
    pub(crate) fn declare_type_params(&mut self, params: &'a [Name], args: &[Ty]) {
        for (param, &arg) in params.iter().zip(args) {
            self.declare(param, Entity::Type(TypeEntity::Known(arg)));
        }
    }

    /// One variable for each type parameter, equal to itself only.
    pub(crate) fn rigid_args(&mut self, params: &'a [Name]) -> Vec<Ty> {
        params.iter().map(|p| self.rigid(p.as_str())).collect()
    }

    /// One variable for each type parameter, to be found out.
    pub(crate) fn fresh_args(&mut self, params: &'a [Name]) -> Vec<Ty> {
        params.iter().map(|p| self.fresh(p.as_str(), false)).collect()
    }

    /// A structure with these type arguments.
    pub(crate) fn struct_instance(&mut self, index: usize, args: Vec<Ty>) -> Ty {
        if let Some(&ty) = self.decls.structs[index].instances.get(&args) {
            return ty;
        }
        let source = self.decls.structs[index].source;
        if self.decls.structs[index].instances.len() >= MAX_INSTANTIATIONS {
            let message =
                format!("`{}` is used with more than {MAX_INSTANTIATIONS} lists of types", source.ast.name);
            self.error(codes::TYPE_ARGUMENTS, source.ast.name.span, message);
            return self.unknown_ty();
        }
        let kind = match source.ast.kind {
            ast::StructKind::Struct => hir::StructKind::Struct,
            ast::StructKind::Header => hir::StructKind::Header,
            ast::StructKind::HeaderUnion => hir::StructKind::Union,
        };
        let params = &source.ast.type_params;
        let fields = self.with_types(source.mark, params, &args, |c| c.struct_fields(source.ast, kind));
        let weight = self.weight_of(fields.iter().map(|f| f.ty));
        let depth = self.depth_of(fields.iter().map(|f| f.ty));
        if !self.check_weight(weight) || !self.check_depth(depth) {
            return self.unknown_ty();
        }
        if kind == hir::StructKind::Header {
            self.check_whole_bytes(&fields, &source.ast.name);
        }
        let id = self.hir.types.structs.push(hir::Struct {
            kind,
            name: source.ast.name.to_string(),
            args: args.clone(),
            fields,
            annotations: source.ast.annotations.clone().into(),
            span: source.ast.span,
        });
        let ty = self.intern(TyKind::Struct(id));
        self.note_size(ty, weight, depth);
        self.decls.struct_origin.insert(id, index);
        self.decls.structs[index].instances.insert(args, ty);
        ty
    }

    /// Warns of a header that does not fill its last byte: it can be extracted and emitted only together with others that fill it.
    fn check_whole_bytes(&mut self, fields: &[hir::Field], name: &ast::Name) {
        // The size of a varbit is known with the packet; its least is 0.
        let sizes: Result<Vec<u64>, SizeError> =
            fields.iter().map(|f| Ok(self.size_in_bits(f.ty)?.0)).collect();
        let Ok(bits) = sizes.map(|sizes: Vec<u64>| sizes.into_iter().fold(0, u64::saturating_add)) else {
            return;
        };
        if bits % 8 == 0 {
            return;
        }
        let message = format!("`{name}` has {bits} bits, which do not fill {} bytes", bits.div_ceil(8));
        self.report(
            Diagnostic::warning(codes::PARTIAL_BYTE, name.span, message)
                .with_help(format!("add a field of `bit<{}>`, or is a width wrong?", 8 - bits % 8)),
        );
    }

    fn struct_fields(&mut self, ast: &'a ast::StructType, kind: hir::StructKind) -> Vec<hir::Field> {
        let container = match kind {
            hir::StructKind::Struct => Container::Struct,
            hir::StructKind::Header => Container::Header,
            hir::StructKind::Union => Container::Union,
        };
        let mut fields: Vec<hir::Field> = Vec::with_capacity(ast.fields.len());
        let mut names = Names::default();
        for field in &ast.fields {
            self.check_annotations(&field.annotations);
            if let Some(earlier) = names.take(field.name.as_str(), field.name.span) {
                self.duplicate(&field.name, earlier);
                continue;
            }
            let ty = self.resolve_type(&field.ty);
            let ty = match self.finish_type(ty) {
                Ok(ty) if !matches!(field.ty.kind, TypeKind::DontCare) => ty,
                _ if self.mentions_rigid_only(ty) => ty,
                _ => {
                    self.error(
                        codes::BAD_TYPE_HERE,
                        field.ty.span,
                        "the type of a member cannot be left open",
                    );
                    self.unknown_ty()
                }
            };
            let fits = self.check_nesting(container, ty, field.ty.span);
            let ty = if fits { ty } else { self.unknown_ty() };
            fields.push(hir::Field {
                name: field.name.to_string(),
                ty,
                annotations: field.annotations.clone().into(),
                span: field.name.span,
            });
        }
        fields
    }

    /// Whether no variable of a type was written `_`.
    fn mentions_rigid_only(&mut self, ty: Ty) -> bool {
        let kind = self.kind(ty);
        !matches!(kind, TyKind::Var(v) if matches!(self.infer.get(v), super::infer::TypeVar::Free { dont_care: true, .. }))
            && self.mentions_vars(ty)
    }

    /// The type of a structure-valued expression that names its members but not its type.
    pub(crate) fn record_type(&mut self, fields: Vec<(String, Ty)>, span: Span) -> Ty {
        if let Some(&ty) = self.decls.records.get(&fields) {
            return ty;
        }
        let members = fields.iter().map(|(name, ty)| hir::Field {
            name: name.clone(),
            ty: *ty,
            annotations: [].into(),
            span,
        });
        let id = self.hir.types.structs.push(hir::Struct {
            kind: hir::StructKind::Struct,
            name: String::new(),
            args: Vec::new(),
            fields: members.collect(),
            annotations: [].into(),
            span,
        });
        let ty = self.intern(TyKind::Struct(id));
        let weight = self.weight_of(fields.iter().map(|(_, t)| *t));
        let depth = self.depth_of(fields.iter().map(|(_, t)| *t));
        self.note_size(ty, weight, depth);
        self.decls.records.insert(fields, ty);
        ty
    }

    /// Declares a structure.
    pub(crate) fn structure(&mut self, d: &'a ast::StructType) {
        let index = self.decls.structs.len();
        let source = crate::declarations::Source { ast: d, mark: self.scopes.mark() };
        self.decls.structs.push(StructSource { source, instances: Default::default() });
        self.check_type_params(&d.type_params);
        let entity = if d.type_params.is_empty() {
            let ty = self.struct_instance(index, Vec::new());
            self.hir.type_decls.push(ty);
            TypeEntity::Known(ty)
        } else {
            let args = self.rigid_args(&d.type_params);
            self.struct_instance(index, args);
            TypeEntity::Struct(index)
        };
        self.declare(&d.name, Entity::Type(entity));
    }

    /// Says which type parameters have the same name.
    pub(crate) fn check_type_params(&mut self, params: &'a [Name]) {
        let mut names = Names::default();
        for param in params {
            if let Some(earlier) = names.take(param.as_str(), param.span) {
                self.duplicate(param, earlier);
            }
        }
    }
}
