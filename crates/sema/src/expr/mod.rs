//! Expressions: names, literals, and the way to everything else.

mod aggregate;
mod arguments;
mod call;
mod cast;
mod construct;
mod constructor;
mod core_library;
mod known;
mod lvalue;
mod member;
mod method;
mod mismatch;
mod operators;
mod slice;

pub(crate) use arguments::{ArgMode, Param, Signature, turns};
pub(crate) use construct::Construction;
pub(crate) use member::Members;
pub(crate) use mismatch::Why;

use crate::check::Checker;
use crate::codes;
use crate::hir::{Expr, ExprKind, Ty, TyKind};
use crate::limits::MAX_WIDTH;
use crate::scope::{Entity, TypeEntity};
use millrace_syntax::ast::{self, IntLiteral, Path};
use millrace_syntax::{Diagnostic, Span};

impl<'a> Checker<'a> {
    /// Types an expression. `expected` is the type that its place wants, where that is known: it gives structure-valued
    /// expressions and `...` their meaning, and converts nothing else.
    pub(crate) fn check_expr(&mut self, e: &'a ast::Expr, expected: Option<Ty>) -> Expr {
        let span = e.span;
        if !self.effort.spend(4) {
            return self.unknown(span);
        }
        match &e.kind {
            ast::ExprKind::Int(literal) => self.int_literal(literal, span),
            ast::ExprKind::Bool(value) => self.typed(ExprKind::Bool(*value), TyKind::Bool, span),
            ast::ExprKind::String(text) => {
                self.typed(ExprKind::String(text.to_string()), TyKind::String, span)
            }
            ast::ExprKind::Dots => match expected {
                Some(ty) => self.default_value(ty, span),
                None => {
                    let message = "`...` stands for a default value, but the type is not known here";
                    self.fail(codes::MISPLACED_DOTS, span, message)
                }
            },
            ast::ExprKind::This => match self.here.this {
                Some(ty) => Expr { kind: ExprKind::This, ty, span },
                None => {
                    let message = "`this` means something only in the definition of an abstract method";
                    self.fail(codes::NOT_VALUE, span, message)
                }
            },
            ast::ExprKind::Name(path) => self.name(path, span),
            ast::ExprKind::Type(ty) => {
                self.resolve_type(ty);
                self.fail(codes::NOT_VALUE, span, "a type is not a value")
            }
            ast::ExprKind::Member(base, name) => self.member(base, name, span),
            ast::ExprKind::Index(base, index) => self.index(base, index, span),
            ast::ExprKind::Slice { base, high, low } => self.slice(base, high, low, span),
            ast::ExprKind::PlusSlice { base, low, width } => self.plus_slice(base, low, width, span),
            ast::ExprKind::Call { callee, type_args, args } => {
                self.call(callee, type_args, args, span, expected)
            }
            ast::ExprKind::Cast(ty, operand) => self.cast(ty, operand, span),
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ast::ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            ast::ExprKind::Conditional { condition, then, otherwise } => {
                self.conditional(condition, then, otherwise, span, expected)
            }
            ast::ExprKind::List(elements) => self.list(elements, span, expected),
            ast::ExprKind::Struct { fields, dots } => self.structure_value(fields, *dots, span, expected),
            ast::ExprKind::InvalidHeader => match expected {
                Some(ty) if self.is_header(ty) => Expr { kind: ExprKind::InvalidHeader, ty, span },
                Some(ty) if self.is_unknown(ty) => self.unknown(span),
                Some(ty) => {
                    let shown = self.show(ty);
                    self.fail(
                        codes::TYPE_MISMATCH,
                        span,
                        format!("`{{#}}` is a header, but `{shown}` is wanted"),
                    )
                }
                None => {
                    let found =
                        Diagnostic::error(codes::CANNOT_INFER, span, "the type of `{#}` is not known here")
                            .with_help("write the type before it: `(H){#}`");
                    self.report(found);
                    self.unknown(span)
                }
            },
            ast::ExprKind::Invalid => self.unknown(span),
        }
    }

    /// Types an expression and converts it to a type.
    pub(crate) fn check_expr_as(&mut self, e: &'a ast::Expr, ty: Ty, why: Why) -> Expr {
        let checked = self.check_expr(e, Some(ty));
        self.coerce(checked, ty, why)
    }

    /// Types a condition.
    pub(crate) fn check_condition(&mut self, e: &'a ast::Expr) -> Expr {
        let bool_ty = self.intern(TyKind::Bool);
        self.check_expr_as(e, bool_ty, Why::Condition)
    }

    /// An expression of a basic type.
    pub(crate) fn typed(&mut self, kind: ExprKind, ty: TyKind, span: Span) -> Expr {
        Expr { kind, ty: self.intern(ty), span }
    }

    fn int_literal(&mut self, literal: &IntLiteral, span: Span) -> Expr {
        self.effort.spend(literal.value.bits() as usize / 8);
        let Some(width) = literal.width else {
            return self.typed(ExprKind::Int(literal.value.clone()), TyKind::Int, span);
        };
        let least = u32::from(width.signed);
        if width.bits < least || width.bits > MAX_WIDTH {
            let message =
                format!("the width of a number must be between {least} and {MAX_WIDTH}, not {}", width.bits);
            return self.fail(codes::BAD_SIZE, span, message);
        }
        let kind = if width.signed { TyKind::SignedBits(width.bits) } else { TyKind::Bits(width.bits) };
        let ty = self.intern(kind);
        self.number_of_type(literal.value.clone(), ty, span)
    }

    /// What a name means as a value.
    fn name(&mut self, path: &'a Path, span: Span) -> Expr {
        let name = &path.name;
        let Some((entity, declared)) = self.scopes.lookup(name.as_str(), path.absolute) else {
            self.unknown_name(name, "value");
            return self.unknown(span);
        };
        match entity.clone() {
            Entity::Var(id) => Expr { kind: ExprKind::Var(id), ty: self.hir.vars[id].ty, span },
            Entity::Const(value) => {
                if !self.check_copies(&value, span) {
                    return self.unknown(span);
                }
                let mut value = Expr::clone(&value);
                value.span = span;
                value
            }
            Entity::Instance(id) => {
                Expr { kind: ExprKind::Instance(id), ty: self.hir.instances[id].ty, span }
            }
            Entity::Table(id) => self.typed(ExprKind::Table(id), TyKind::Table(id), span),
            Entity::MatchKind(index) => self.typed(ExprKind::MatchKind(index), TyKind::MatchKind, span),
            Entity::Broken => self.unknown(span),
            entity @ (Entity::Action(_) | Entity::Function(_)) => {
                let message = format!("`{name}` is {} and not a value", article(entity.noun()));
                self.report(
                    Diagnostic::error(codes::NOT_VALUE, span, message)
                        .with_secondary(declared, "declared here"),
                );
                self.unknown(span)
            }
            Entity::Type(_) => {
                self.report(
                    Diagnostic::error(codes::NOT_VALUE, span, format!("`{name}` is a type and not a value"))
                        .with_label("an expression is expected here")
                        .with_secondary(declared, "declared here"),
                );
                self.unknown(span)
            }
        }
    }

    /// The type that an expression names, if it names one.
    pub(crate) fn named_by(&mut self, e: &'a ast::Expr) -> Option<NamedType<'a>> {
        match &e.kind {
            ast::ExprKind::Type(ty) => match &ty.kind {
                ast::TypeKind::Specialized(path, args) => {
                    Some(NamedType::Entity(self.type_entity(path)?, path, Some(args)))
                }
                ast::TypeKind::Name(path) => Some(NamedType::Entity(self.type_entity(path)?, path, None)),
                _ => Some(NamedType::Known(self.resolve_type(ty))),
            },
            ast::ExprKind::Name(path) => match self.scopes.lookup(path.name.as_str(), path.absolute) {
                Some((Entity::Type(entity), _)) => Some(NamedType::Entity(entity.clone(), path, None)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A type that an expression names.
pub(crate) enum NamedType<'a> {
    /// A type that is not a name.
    Known(Ty),
    /// A name, with type arguments where they are written.
    Entity(TypeEntity, &'a Path, Option<&'a Vec<ast::Type>>),
}

/// A noun with its indefinite article.
pub(crate) fn article(noun: &str) -> String {
    let an = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if an { "an" } else { "a" })
}
