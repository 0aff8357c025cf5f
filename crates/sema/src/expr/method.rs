//! Calls of methods: those that the language gives to headers, stacks, tables, parsers and controls, and those of externs.

use super::{ArgMode, NamedType, Param, Signature};
use crate::check::Checker;
use crate::codes;
use crate::context::CodeContext;
use crate::hir::{Callee, Direction, Expr, ExprKind, ExternId, Local, StructKind, Ty, TyKind};
use crate::scope::TypeEntity;
use crate::types::SizeError;
use crate::wording::suggest;
use millrace_syntax::ast::{self, Argument, Name};
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl<'a> Checker<'a> {
    /// `base.method(args)`.
    pub(super) fn method_call(
        &mut self,
        base: &'a ast::Expr,
        method: &'a Name,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        if let Some(named) = self.named_by(base) {
            return self.type_method(named, base, method, args, span);
        }
        let outer = self.here.unevaluated;
        self.here.unevaluated = outer || is_size_method(method.as_str());
        let receiver = self.check_expr(base, None);
        self.here.unevaluated = outer;
        if self.is_unknown(receiver.ty) {
            self.check_loose_args(args);
            return self.unknown(span);
        }
        if is_size_method(method.as_str()) && !matches!(self.kind(receiver.ty), TyKind::Extern(..)) {
            return self.size_method(receiver.ty, method, args, span);
        }
        if let TyKind::Extern(id, types) = self.kind(receiver.ty) {
            return self.extern_method(receiver, id, &types, method, type_args, args, span, expected);
        }
        if !type_args.is_empty() {
            return self.fail(codes::TYPE_ARGUMENTS, span, format!("`{method}` takes no type arguments"));
        }
        match (self.kind(receiver.ty), method.as_str()) {
            (TyKind::Table(id), "apply") => self.table_apply(id, args, span),
            (TyKind::Parser(_) | TyKind::Control(_) | TyKind::BlockType(..), "apply") => {
                self.block_apply(receiver, args, span)
            }
            (TyKind::Struct(id), name) if self.hir.types.structs[id].kind != StructKind::Struct => {
                let is_header = self.hir.types.structs[id].kind == StructKind::Header;
                match name {
                    "isValid" => {
                        self.no_args(method, args);
                        self.typed(ExprKind::IsValid(Box::new(receiver)), TyKind::Bool, span)
                    }
                    "setValid" | "setInvalid" if is_header => {
                        self.no_args(method, args);
                        if !self.check_lvalue(&receiver) {
                            return self.unknown(span);
                        }
                        let receiver = Box::new(receiver);
                        let callee = if name == "setValid" {
                            Callee::SetValid(receiver)
                        } else {
                            Callee::SetInvalid(receiver)
                        };
                        self.void_call(callee, span)
                    }
                    _ if is_header => {
                        self.unknown_method(receiver.ty, method, &["isValid", "setValid", "setInvalid"])
                    }
                    _ => self.unknown_method(receiver.ty, method, &["isValid"]),
                }
            }
            (TyKind::Stack(element, _), "push_front" | "pop_front") if self.is_header(element) => {
                self.stack_method(receiver, method, args, span)
            }
            (TyKind::Stack(element, _), _) if self.is_header(element) => {
                self.unknown_method(receiver.ty, method, &["push_front", "pop_front"])
            }
            (TyKind::Table(_) | TyKind::Parser(_) | TyKind::Control(_) | TyKind::BlockType(..), _) => {
                self.unknown_method(receiver.ty, method, &["apply"])
            }
            _ => self.unknown_method(receiver.ty, method, &[]),
        }
    }

    fn unknown_method(&mut self, ty: Ty, method: &Name, known: &[&str]) -> Expr {
        let shown = self.show(ty);
        let message = format!("`{shown}` has no method `{method}`");
        let mut found =
            Diagnostic::error(codes::UNKNOWN_MEMBER, method.span, message).with_label("no such method");
        let declared = match self.kind(ty) {
            TyKind::Struct(id) if self.decls.struct_origin.contains_key(&id) => {
                Some(self.hir.types.structs[id].span)
            }
            TyKind::Extern(id, _) => Some(self.hir.externs[id].span),
            _ => None,
        };
        if let Some(declared) = declared {
            found = found.with_secondary(declared, "the type is declared here");
        }
        self.report(suggest(found, method.as_str(), known.iter().copied(), "its methods"));
        self.unknown(method.span)
    }

    fn no_args(&mut self, method: &Name, args: &'a [Argument]) {
        if let Some(first) = args.first() {
            self.error(codes::BAD_ARGUMENTS, first.span, format!("`{method}` takes no arguments"));
        }
    }

    fn void_call(&mut self, callee: Callee, span: Span) -> Expr {
        let void = self.intern(TyKind::Void);
        self.finish_call(callee, Vec::new(), Vec::new(), void, span)
    }

    /// A method called on a type: the size methods, and direct application.
    fn type_method(
        &mut self,
        named: NamedType<'a>,
        base: &'a ast::Expr,
        method: &'a Name,
        args: &'a [Argument],
        span: Span,
    ) -> Expr {
        if method.as_str() == "apply"
            && let NamedType::Entity(entity, path, written) = &named
        {
            return self.direct_application(entity.clone(), &path.name, *written, args, span);
        }
        if let NamedType::Entity(TypeEntity::Extern(_), ..) = &named {
            let message = "methods are called on instances of an extern, not on the extern itself";
            return self.fail(codes::NOT_VALUE, base.span, message);
        }
        let ty = match named {
            NamedType::Known(ty) | NamedType::Entity(TypeEntity::Known(ty), ..) => ty,
            NamedType::Entity(entity, _, Some(written)) => {
                let types: Vec<Ty> = written.iter().map(|t| self.type_argument(t)).collect();
                if types.len() != self.type_params(&entity).len() {
                    return self.fail(codes::TYPE_ARGUMENTS, base.span, "wrong number of type arguments");
                }
                self.specialize(&entity, types)
            }
            NamedType::Entity(_, path, None) => {
                let message = format!("`{}` needs type arguments", path.name);
                return self.fail(codes::TYPE_ARGUMENTS, base.span, message);
            }
        };
        if is_size_method(method.as_str()) {
            return self.size_method(ty, method, args, span);
        }
        if self.is_unknown(ty) {
            return self.unknown(span);
        }
        let shown = self.show(ty);
        self.fail(codes::UNKNOWN_MEMBER, method.span, format!("the type `{shown}` has no method `{method}`"))
    }

    fn size_method(&mut self, ty: Ty, method: &Name, args: &'a [Argument], span: Span) -> Expr {
        self.no_args(method, args);
        match self.size_in_bits(ty) {
            Ok((least, most)) => {
                let bits = if method.as_str().starts_with("min") { least } else { most };
                let size = if method.as_str().ends_with("Bytes") { bits.div_ceil(8) } else { bits };
                self.typed(ExprKind::Int(BigInt::from(size)), TyKind::Int, span)
            }
            Err(SizeError::Unknown) => self.unknown(span),
            Err(SizeError::Generic) if self.here.abstract_depth > 0 => {
                let ty = self.intern(TyKind::Int);
                Expr { kind: ExprKind::Unknown, ty, span }
            }
            Err(_) => {
                let shown = self.show(ty);
                self.fail(codes::NO_BIT_SIZE, span, format!("values of `{shown}` have no size in bits"))
            }
        }
    }

    fn stack_method(&mut self, stack: Expr, method: &Name, args: &'a [Argument], span: Span) -> Expr {
        let int = self.intern(TyKind::Int);
        let params = [(("count"), false)];
        let what = format!("`{method}`");
        let Some(bound) = self.bind(&what, method.span, params.into_iter(), args, span) else {
            return self.unknown(span);
        };
        if !self.check_lvalue(&stack) {
            return self.unknown(span);
        }
        let Some(value) = bound.first().copied().flatten().and_then(|a| a.value.as_ref()) else {
            return self.fail(codes::BAD_ARGUMENTS, span, format!("`{method}` needs a number"));
        };
        let checked = self.check_expr(value, Some(int));
        let Some(count) = self.integer_value(&checked, "the number of elements") else {
            return self.unknown(span);
        };
        let Some(count) = count.to_u32() else {
            return self.fail(codes::BAD_SIZE, value.span, "the number of elements is out of bounds");
        };
        let stack = Box::new(stack);
        let callee = match method.as_str() {
            "push_front" => Callee::PushFront(stack, count),
            _ => Callee::PopFront(stack, count),
        };
        self.void_call(callee, span)
    }

    fn table_apply(&mut self, id: crate::hir::TableId, args: &'a [Argument], span: Span) -> Expr {
        if let Some(first) = args.first() {
            self.error(codes::BAD_ARGUMENTS, first.span, "applying a table takes no arguments");
        }
        if self.here.table == Some(id) {
            return self.fail(codes::RECURSION, span, "a table cannot apply itself");
        }
        if self.here.context != CodeContext::ControlApply {
            let message = format!("tables cannot be applied {}", self.here.context.describe());
            return self.fail(codes::CALL_NOT_ALLOWED, span, message);
        }
        if self.here.in_argument {
            let message = "a table cannot be applied in an argument of an action";
            return self.fail(codes::CALL_NOT_ALLOWED, span, message);
        }
        let ty = self.intern(TyKind::ApplyResult(id));
        self.finish_call(Callee::Table(id), Vec::new(), Vec::new(), ty, span)
    }

    /// `apply` of a parser or control.
    fn block_apply(&mut self, receiver: Expr, args: &'a [Argument], span: Span) -> Expr {
        let (is_parser, signature) = match self.kind(receiver.ty) {
            TyKind::Parser(id) => {
                let source = self.decls.parsers.get(&id).copied();
                let params = self.hir.parsers[id].params.clone();
                let name = self.hir.parsers[id].name.clone();
                let ast = source.map(|s| s.ast.header.params.as_slice()).unwrap_or(&[]);
                (
                    true,
                    self.block_signature(
                        name,
                        params,
                        ast,
                        source.map(|s| s.mark),
                        self.hir.parsers[id].span,
                    ),
                )
            }
            TyKind::Control(id) => {
                let source = self.decls.controls.get(&id).copied();
                let params = self.hir.controls[id].params.clone();
                let name = self.hir.controls[id].name.clone();
                let ast = source.map(|s| s.ast.header.params.as_slice()).unwrap_or(&[]);
                (
                    false,
                    self.block_signature(
                        name,
                        params,
                        ast,
                        source.map(|s| s.mark),
                        self.hir.controls[id].span,
                    ),
                )
            }
            TyKind::BlockType(id, types) => {
                (self.hir.block_types[id].is_parser, self.block_type_signature(id, &types))
            }
            _ => return self.unknown(span),
        };
        let wanted = if is_parser { CodeContext::ParserState } else { CodeContext::ControlApply };
        if self.here.context != wanted {
            let what = if is_parser { "parsers" } else { "controls" };
            let message = format!("{what} cannot be applied {}", self.here.context.describe());
            return self.fail(codes::CALL_NOT_ALLOWED, span, message);
        }
        let Some(checked) = self.check_args(&signature, args, ArgMode::Runtime, span) else {
            return self.unknown(span);
        };
        self.finish_call(Callee::Apply(Box::new(receiver)), Vec::new(), checked, signature.ret, span)
    }

    fn block_signature(
        &mut self,
        name: String,
        vars: Vec<crate::hir::VarId>,
        ast: &'a [ast::Parameter],
        mark: Option<u32>,
        span: Span,
    ) -> Signature<'a> {
        let params = vars.into_iter().enumerate().map(|(i, v)| {
            let var = &self.hir.vars[v];
            let direction = match var.kind {
                crate::hir::VarKind::Param(d) => d,
                _ => Direction::None,
            };
            let ast = ast.get(i);
            Param {
                name: var.name.clone(),
                direction,
                ty: var.ty,
                optional: ast.is_some_and(super::arguments::is_optional),
                default: ast.and_then(|p| p.default.as_ref()),
                span: var.span,
            }
        });
        let params = params.collect();
        let ret = self.intern(TyKind::Void);
        Signature { name, params, ret, type_args: Vec::new(), type_scope: Vec::new(), mark, span }
    }

    /// `C.apply(...)`: an instance of its own for this call (specification, "Direct type invocation").
    fn direct_application(
        &mut self,
        entity: TypeEntity,
        name: &'a Name,
        written: Option<&'a Vec<ast::Type>>,
        args: &'a [Argument],
        span: Span,
    ) -> Expr {
        let outer = self.here.context;
        let locals = match outer {
            CodeContext::ParserState => CodeContext::ParserLocals,
            CodeContext::ControlApply => CodeContext::ControlLocals,
            _ => {
                let message = format!("nothing can be applied {}", outer.describe());
                return self.fail(codes::CALL_NOT_ALLOWED, span, message);
            }
        };
        let entity = match written {
            None => entity,
            Some(written) => {
                let types: Vec<Ty> = written.iter().map(|t| self.type_argument(t)).collect();
                if types.len() != self.type_params(&entity).len() {
                    let message = format!("wrong number of type arguments for `{name}`");
                    return self.fail(codes::TYPE_ARGUMENTS, span, message);
                }
                TypeEntity::Known(self.specialize(&entity, types))
            }
        };
        self.here.context = locals;
        let made = self.construct(super::Construction {
            entity,
            type_name: name,
            type_args: &[],
            args: &[],
            name: Some(name),
            annotations: &[],
            initializer: None,
            span,
            expected: None,
        });
        self.here.context = outer;
        let Some(id) = made else {
            self.check_loose_args(args);
            return self.unknown(span);
        };
        let ty = self.hir.instances[id].ty;
        if !matches!(self.kind(ty), TyKind::Parser(_) | TyKind::Control(_)) {
            let shown = self.show(ty);
            return self.fail(codes::NOT_CALLABLE, span, format!("`{shown}` cannot be applied"));
        }
        self.here.implied.push(Local::Instance(id));
        let receiver = Expr { kind: ExprKind::Instance(id), ty, span: name.span };
        self.block_apply(receiver, args, span)
    }

    /// A method of an extern object.
    #[allow(clippy::too_many_arguments)]
    fn extern_method(
        &mut self,
        receiver: Expr,
        id: ExternId,
        types: &[Ty],
        method: &'a Name,
        type_args: &'a [ast::Type],
        args: &'a [Argument],
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let Some(source) = self.decls.externs.get(&id).copied() else { return self.unknown(span) };
        let numbers = self.decls.methods.get(&id).cloned().unwrap_or_default();
        let candidates: Vec<(usize, Span, &'a [ast::Parameter])> = numbers
            .iter()
            .enumerate()
            .filter(|&(_, &i)| source.ast.methods[i].name.as_str() == method.as_str())
            .map(|(n, &i)| (n, source.ast.methods[i].name.span, source.ast.methods[i].params.as_slice()))
            .collect();
        if candidates.is_empty() {
            self.check_loose_args(args);
            let mut names: Vec<&str> = numbers.iter().map(|&i| source.ast.methods[i].name.as_str()).collect();
            names.dedup();
            return self.unknown_method(receiver.ty, method, &names);
        }
        let Some(number) = self.choose_overload(method.as_str(), &candidates, args, span) else {
            return self.unknown(span);
        };
        let ast = &source.ast.methods[numbers[number]];
        self.note_deprecated(&ast.annotations, span);
        let Some(vars) = self.call_type_args(&ast.type_params, type_args, method.as_str(), span) else {
            return self.unknown(span);
        };
        let signature = self.with_types(source.mark, &source.ast.type_params, types, |c| {
            c.scopes.push();
            c.declare_type_params(&ast.type_params, &vars);
            let params = c.read_params(&ast.params);
            let ret = match &ast.return_type {
                Some(ty) => c.resolve_type(ty),
                None => c.intern(TyKind::Void),
            };
            c.scopes.pop();
            Signature {
                name: format!("{}.{}", source.ast.name, ast.name),
                params,
                ret,
                type_args: vars.clone(),
                mark: Some(source.mark),
                type_scope: vec![(&source.ast.type_params, types.to_vec()), (&ast.type_params, vars.clone())],
                span: ast.name.span,
            }
        });
        self.unify_result(&signature, expected);
        let Some(checked) = self.check_args(&signature, args, ArgMode::Runtime, span) else {
            return self.unknown_of(signature.ret, span);
        };
        if signature.params.iter().zip(&checked).any(|(p, a)| self.is_unknown(p.ty) && a.value.is_some()) {
            let message = format!("the type of a parameter of `{}` was left open with `_`", signature.name);
            return self.fail(codes::CANNOT_INFER, span, message);
        }
        let found: Vec<Ty> = vars.iter().map(|&v| self.settle(v)).collect();
        if !self.core_method(source.ast.name.as_str(), method, &found, &checked, span) {
            return self.unknown_of(signature.ret, span);
        }
        self.extern_place(span);
        self.finish_call(Callee::ExternMethod(Box::new(receiver), number), vars, checked, signature.ret, span)
    }
}

fn is_size_method(name: &str) -> bool {
    matches!(name, "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes")
}
