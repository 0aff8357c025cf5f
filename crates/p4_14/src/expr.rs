//! Expressions. All values of one are extended to the width of the widest, which is at least that of where the result goes
//! (docs/semantics.md); then the expression is evaluated, and the result is converted.

use indexmap::IndexMap;
use millrace_syntax::Span;
use millrace_syntax::ast::{BinaryOp, Expr, ExprKind as Made, Text, UnaryOp};
use millrace_syntax::p4_14::ast::{self as p14, ExprKind};
use num_bigint::BigInt;

use crate::codes;
use crate::constant;
use crate::field_ref::Header;
use crate::model::Kind;
use crate::names::PACKET;
use crate::translate::Translator;
use crate::value::{Number, Value};

/// The most bits that `current` looks ahead.
const MAX_AHEAD: u32 = 65_536;

/// The greatest height of an expression whose arguments are put in place.
const MAX_HEIGHT: usize = 48;

/// What a parameter of an action stands for.
#[derive(Clone, Debug)]
pub(crate) enum Argument<'a, 's> {
    /// Data of a table entry, in a parameter of that name; the type is none while it is being found out.
    Data(Text, Option<Number>),
    /// An expression of the calling action.
    Given(&'a p14::Expr, &'s Scope<'a, 's>),
}

/// Where an expression stands.
#[derive(Clone, Debug)]
pub(crate) enum Scope<'a, 's> {
    /// In an action: its parameters.
    Action(IndexMap<&'a str, Argument<'a, 's>>),
    /// In a parser function: the header extracted last.
    Parser(Option<Header>),
    /// Anywhere else.
    Outside,
}

impl Scope<'_, '_> {
    pub(crate) fn latest(&self) -> Option<&Header> {
        match self {
            Scope::Parser(latest) => latest.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn in_parser(&self) -> bool {
        matches!(self, Scope::Parser(_))
    }
}

/// What an expression looks at: the type in which it is evaluated.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    width: u32,
    /// There is a field or parameter that is signed.
    signed: bool,
    /// There is one that is not.
    unsigned: bool,
    /// There are constants below 0.
    negative: bool,
}

impl<'a> Translator<'a> {
    /// The value of an expression, evaluated with at least `least` bits.
    pub(crate) fn value(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, least: u32) -> Value {
        if let Some(value) = constant::evaluate(e) {
            let width = match &e.kind {
                ExprKind::Int { width, .. } => *width,
                _ => None,
            };
            return Value::Const { value, width, span: e.span };
        }
        match &e.kind {
            ExprKind::Bool(_) | ExprKind::Valid(_) => Value::Bool(self.condition(e, scope)),
            ExprKind::Unary(UnaryOp::Not, _) => Value::Bool(self.condition(e, scope)),
            ExprKind::Binary(op, ..) if is_condition(*op) => Value::Bool(self.condition(e, scope)),
            ExprKind::Unary(..) | ExprKind::Binary(..) => {
                let mut extent = Extent { width: least.max(1), ..Extent::default() };
                self.muted += 1;
                self.extent(e, scope, &mut extent);
                self.muted -= 1;
                let ty = extent.ty();
                match self.computed(e, scope, ty) {
                    Some(expr) => Value::Num { expr, width: ty.width, signed: ty.signed },
                    None => Value::Error(e.span),
                }
            }
            _ => self.leaf(e, scope),
        }
    }

    /// A field, parameter or piece of the packet.
    fn leaf(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Value {
        match &e.kind {
            ExprKind::Reference(reference) => {
                if let (Scope::Action(params), Some(name)) = (scope, reference.plain())
                    && let Some(argument) = params.get(name.as_str())
                {
                    return match argument {
                        Argument::Data(name, Some(ty)) => {
                            let expr = self.tree.var(name.clone(), e.span);
                            Value::Num { expr, width: ty.width, signed: ty.signed }
                        }
                        Argument::Data(name, None) => Value::Param { name: name.clone(), span: e.span },
                        Argument::Given(e, scope) => self.value(e, scope, 0),
                    };
                }
                if self.asks_validity(reference) {
                    // The pseudo-field of validity as a number of one bit.
                    let valid = self.validity(reference, scope);
                    let one = self.tree.number(&1.into(), 1, false, e.span);
                    let zero = self.tree.number(&0.into(), 1, false, e.span);
                    let expr = self.tree.conditional(valid, one, zero, e.span);
                    return Value::Num { expr, width: 1, signed: false };
                }
                match self.field_ref(reference, scope) {
                    Some(reference) => self.read(&reference),
                    None => Value::Error(e.span),
                }
            }
            ExprKind::Current(offset, width) => self.current(offset, width, e.span, scope),
            _ => Value::Error(e.span),
        }
    }

    /// `current(offset, width)`
    fn current(&mut self, offset: &p14::Expr, width: &p14::Expr, span: Span, scope: &Scope<'a, '_>) -> Value {
        if !scope.in_parser() {
            self.error(codes::PARSER, span, "`current` means something in a parser only");
            return Value::Error(span);
        }
        let mut found = std::mem::take(&mut self.found);
        let offset = constant::number(offset, 0, MAX_AHEAD, &mut found);
        let width = constant::number(width, 1, MAX_AHEAD, &mut found);
        self.found = found;
        let (Some(offset), Some(width)) = (offset, width) else { return Value::Error(span) };
        let ahead = self.lookahead(offset + width, span);
        let expr = if offset == 0 { ahead } else { self.slice(ahead, width - 1, 0, span) };
        Value::Num { expr, width, signed: false }
    }

    /// `packet.lookahead<bit<width>>()`
    pub(crate) fn lookahead(&mut self, width: u32, span: Span) -> Expr {
        let callee = self.tree.path(&[PACKET, "lookahead"], span);
        let ty = self.tree.ty(width, false, span);
        self.tree.call(callee, vec![ty], Vec::new(), span)
    }

    pub(crate) fn slice(&mut self, base: Expr, high: u32, low: u32, span: Span) -> Expr {
        let (high, low) = (self.tree.int(high, span), self.tree.int(low, span));
        let kind = Made::Slice { base: Box::new(base), high: Box::new(high), low: Box::new(low) };
        self.tree.expr(kind, span)
    }

    /// Finds the widest value, and whether all are signed.
    fn extent(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, extent: &mut Extent) {
        if !self.count_statement(e.span) {
            return;
        }
        if constant::evaluate(e).is_some() {
            let value = self.value(e, scope, 0);
            extent.width = extent.width.max(value.width());
            extent.negative |= matches!(&value, Value::Const { value, .. } if *value < BigInt::ZERO);
            return;
        }
        match &e.kind {
            ExprKind::Unary(_, e) => self.extent(e, scope, extent),
            ExprKind::Binary(_, a, b) => {
                self.extent(a, scope, extent);
                self.extent(b, scope, extent);
            }
            ExprKind::Reference(reference) => {
                if let (Scope::Action(params), Some(name)) = (scope, reference.plain())
                    && let Some(Argument::Given(e, scope)) = params.get(name.as_str())
                {
                    return self.extent(e, scope, extent);
                }
                extent.leaf(&self.leaf(e, scope));
            }
            _ => extent.leaf(&self.leaf(e, scope)),
        }
    }

    /// An expression evaluated in a type.
    fn computed(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, ty: Number) -> Option<Expr> {
        // An argument may be an expression over arguments, and so on: bounded like what is written out.
        if !self.count_statement(e.span) {
            return None;
        }
        if self.height >= MAX_HEIGHT {
            let message =
                format!("with its arguments put in place this expression is over {MAX_HEIGHT} levels high");
            self.error(codes::LIMIT, e.span, message);
            return None;
        }
        self.height += 1;
        let made = self.computed_inside(e, scope, ty);
        self.height -= 1;
        made
    }

    fn computed_inside(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, ty: Number) -> Option<Expr> {
        if let Some(value) = constant::evaluate(e) {
            return Some(self.tree.number(&value, ty.width, ty.signed, e.span));
        }
        match &e.kind {
            ExprKind::Unary(op @ (UnaryOp::Negate | UnaryOp::Complement), inner) => {
                let inner = self.computed(inner, scope, ty)?;
                let mut made = self.tree.unary(*op, inner);
                made.span = e.span;
                Some(made)
            }
            ExprKind::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), a, b) => {
                let a = self.computed(a, scope, ty)?;
                let b = self.shift_amount(b, scope, ty.width)?;
                Some(self.tree.binary(*op, a, b, e.span))
            }
            ExprKind::Binary(op @ (BinaryOp::Div | BinaryOp::Mod), a, b) => {
                // P4_16 divides numbers known at compile time only.
                let (Some(_), Some(_)) = (constant::evaluate(a), constant::evaluate(b)) else {
                    let message = format!("`{}` is for constants only", op.symbol());
                    self.type_error(e.span, &message);
                    return None;
                };
                self.type_error(e.span, "this division has no result");
                None
            }
            ExprKind::Binary(op, a, b) if !is_condition(*op) => {
                let (a, b) = (self.computed(a, scope, ty), self.computed(b, scope, ty));
                Some(self.tree.binary(*op, a?, b?, e.span))
            }
            ExprKind::Reference(reference) => {
                if let (Scope::Action(params), Some(name)) = (scope, reference.plain())
                    && let Some(Argument::Given(e, scope)) = params.get(name.as_str())
                {
                    return self.computed(e, scope, ty);
                }
                self.computed_leaf(e, scope, ty)
            }
            ExprKind::Current(..) => self.computed_leaf(e, scope, ty),
            _ => {
                self.type_error(e.span, "a number is expected here, this is a truth value");
                None
            }
        }
    }

    fn computed_leaf(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>, ty: Number) -> Option<Expr> {
        match self.leaf(e, scope) {
            Value::Error(_) => None,
            Value::Varbit { expr } => {
                self.type_error(expr.span, "a field of varying length cannot be computed with");
                None
            }
            value => Some(self.convert(value, ty)),
        }
    }

    /// How far to shift a number of so many bits: a number that is never negative.
    pub(crate) fn shift_amount(
        &mut self,
        e: &'a p14::Expr,
        scope: &Scope<'a, '_>,
        width: u32,
    ) -> Option<Expr> {
        Some(match self.value(e, scope, 0) {
            Value::Const { value, span, .. } => {
                if value < BigInt::ZERO {
                    self.error(codes::BAD_SIZE, span, "a shift by a negative number");
                    return None;
                }
                let width = constant::bits(&value);
                self.tree.number(&value, width, false, span)
            }
            Value::Num { expr, width, signed } => {
                self.cast(expr, Number { width, signed }, Number::unsigned(width))
            }
            Value::Error(_) => return None,
            // A parameter: it can shift by all bits that there are.
            value => self.convert(value, Number::unsigned((u32::BITS - width.leading_zeros()).max(8))),
        })
    }

    /// A condition.
    pub(crate) fn condition(&mut self, e: &'a p14::Expr, scope: &Scope<'a, '_>) -> Expr {
        match &e.kind {
            ExprKind::Bool(value) => self.tree.expr(Made::Bool(*value), e.span),
            ExprKind::Valid(reference) => self.validity(reference, scope),
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let inner = self.condition(inner, scope);
                let mut made = self.tree.unary(UnaryOp::Not, inner);
                made.span = e.span;
                made
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let (a, b) = (self.condition(a, scope), self.condition(b, scope));
                self.tree.binary(*op, a, b, e.span)
            }
            ExprKind::Binary(op, a, b) if is_condition(*op) => {
                let mut extent = Extent { width: 1, ..Extent::default() };
                self.muted += 1;
                self.extent(a, scope, &mut extent);
                self.extent(b, scope, &mut extent);
                self.muted -= 1;
                let ty = extent.ty();
                match (self.computed(a, scope, ty), self.computed(b, scope, ty)) {
                    (Some(a), Some(b)) => self.tree.binary(*op, a, b, e.span),
                    _ => self.tree.expr(Made::Bool(true), e.span),
                }
            }
            ExprKind::Reference(reference) if self.asks_validity(reference) => {
                self.validity(reference, scope)
            }
            _ => {
                self.type_error(e.span, "a condition is expected here, this is a number");
                self.tree.expr(Made::Bool(true), e.span)
            }
        }
    }

    /// Whether `valid` after a header asks for its validity: no field of it is called so.
    pub(crate) fn asks_validity(&self, reference: &p14::Reference) -> bool {
        let instance = self.model.instances.get(reference.name.as_str());
        reference.field.as_ref().is_some_and(|f| f.as_str() == "valid")
            && instance
                .is_some_and(|i| i.kind != Kind::Standard && self.model.layout(i).field("valid").is_none())
    }

    /// Whether a header, or that of a field, is valid.
    pub(crate) fn validity(&mut self, reference: &p14::Reference, scope: &Scope<'a, '_>) -> Expr {
        let span = reference.span;
        let Some(header) = self.header(reference, scope) else {
            return self.tree.expr(Made::Bool(true), span);
        };
        if header.kind != Kind::Header {
            let message = format!("`{}` is metadata, which is always valid", reference.name);
            self.warn(span, message);
            return self.tree.expr(Made::Bool(true), span);
        }
        if header.is_stack {
            let message = format!("`{}` is a header stack: which of its headers?", reference.name);
            self.error(codes::WRONG_KIND, span, message);
            return self.tree.expr(Made::Bool(true), span);
        }
        let header = self.header_expr(&header);
        self.tree.is_valid(header)
    }
}

impl Extent {
    fn leaf(&mut self, value: &Value) {
        self.width = self.width.max(value.width());
        match value.signed() {
            Some(true) => self.signed = true,
            Some(false) => self.unsigned = true,
            None => {}
        }
    }

    /// Signed when all fields are, and as in C unsigned when one is not.
    fn ty(self) -> Number {
        let signed = !self.unsigned && (self.signed || self.negative);
        Number { width: self.width, signed }
    }
}

fn is_condition(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, And | Or | Eq | Ne | Lt | Le | Gt | Ge)
}
