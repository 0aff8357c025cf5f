//! Values with their widths, and the conversions between them (specification section 17.5).

use millrace_syntax::Span;
use millrace_syntax::ast::{BinaryOp, Expr, Stmt, Text};
use num_bigint::BigInt;
use num_traits::One;

use crate::constant;
use crate::translate::Translator;
use crate::tree;

/// What an expression of P4_14 became.
#[derive(Debug)]
pub(crate) enum Value {
    /// A constant, exact; with the width that it was written with.
    Const { value: BigInt, width: Option<u32>, span: Span },
    /// A number.
    Num { expr: Expr, width: u32, signed: bool },
    /// A parameter of an action whose type is being found out.
    Param { name: Text, span: Span },
    /// A truth value.
    Bool(Expr),
    /// Bits of varying length.
    Varbit { expr: Expr },
    /// Something wrong, which was reported.
    Error(Span),
}

impl Value {
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Const { span, .. } | Self::Param { span, .. } | Self::Error(span) => *span,
            Self::Num { expr, .. } | Self::Bool(expr) | Self::Varbit { expr } => expr.span,
        }
    }

    /// The width that counts when the widest value of an expression is looked for.
    pub(crate) fn width(&self) -> u32 {
        match self {
            Self::Const { value, width, .. } => width.unwrap_or(0).max(constant::bits(value)),
            Self::Num { width, .. } => *width,
            _ => 0,
        }
    }

    /// Whether it is signed; none for what is neither.
    pub(crate) fn signed(&self) -> Option<bool> {
        match self {
            Self::Num { signed, .. } => Some(*signed),
            _ => None,
        }
    }
}

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) width: u32,
    pub(crate) signed: bool,
}

impl Number {
    pub(crate) const fn unsigned(width: u32) -> Number {
        Number { width, signed: false }
    }

    fn least(self) -> BigInt {
        if self.signed { -(BigInt::one() << (self.width - 1)) } else { BigInt::ZERO }
    }

    fn greatest(self) -> BigInt {
        (BigInt::one() << (self.width - u32::from(self.signed))) - 1
    }
}

impl Translator<'_> {
    /// A value as a number of a type: extended by its own sign, or cut.
    pub(crate) fn convert(&mut self, value: Value, to: Number) -> Expr {
        match value {
            Value::Const { value, span, .. } => self.tree.number(&value, to.width, to.signed, span),
            Value::Num { expr, width, signed } => self.cast(expr, Number { width, signed }, to),
            Value::Param { name, span } => {
                self.infer(&name, to);
                self.tree.number(&BigInt::ZERO, to.width, to.signed, span)
            }
            Value::Bool(e) | Value::Varbit { expr: e } => {
                self.type_error(e.span, "a number is expected here");
                self.tree.number(&BigInt::ZERO, to.width, to.signed, e.span)
            }
            Value::Error(span) => self.tree.number(&BigInt::ZERO, to.width, to.signed, span),
        }
    }

    /// As its own sign says to the new width, then read with the new sign.
    pub(crate) fn cast(&mut self, e: Expr, from: Number, to: Number) -> Expr {
        let e = if from.width == to.width { e } else { self.tree.cast(e, to.width, from.signed) };
        if from.signed == to.signed { e } else { self.tree.cast(e, to.width, to.signed) }
    }

    /// A value for a field that saturates: one of more bits than the field that is beyond the ends of its range becomes
    /// the end. A value of as many bits or fewer is taken as [`Self::convert`] does.
    pub(crate) fn saturate(&mut self, value: Value, to: Number, out: &mut Vec<Stmt>) -> Expr {
        if value.width() <= to.width {
            return self.convert(value, to);
        }
        match value {
            Value::Const { value, span, .. } => {
                let value = value.clamp(to.least(), to.greatest());
                self.tree.number(&value, to.width, to.signed, span)
            }
            Value::Num { expr, width, signed } => {
                // A signed type that holds all values.
                let wide = Number { width: width + 1, signed: true };
                let span = expr.span;
                let expr = self.cast(expr, Number { width, signed }, wide);
                let temporary = self.temporary(expr, wide, out);
                self.clamp(&temporary, wide, to, span)
            }
            value => self.convert(value, to),
        }
    }

    /// A new variable with a value.
    pub(crate) fn temporary(&mut self, value: Expr, ty: Number, out: &mut Vec<Stmt>) -> String {
        let name = self.names.fresh("tmp");
        let span = value.span;
        let declared = self.tree.ty(ty.width, ty.signed, span);
        out.push(tree::variable(declared, &name, Some(value), span));
        name
    }

    /// A variable of a wide signed type, cut to a range and a type.
    pub(crate) fn clamp(&mut self, variable: &str, wide: Number, to: Number, span: Span) -> Expr {
        let (least, greatest) = (to.least(), to.greatest());
        let value = self.tree.var(variable, span);
        let value = self.cast(value, wide, to);
        let bottom = self.tree.number(&least, to.width, to.signed, span);
        let top = self.tree.number(&greatest, to.width, to.signed, span);
        let compared = self.tree.var(variable, span);
        let limit = self.tree.number(&least, wide.width, true, span);
        let below = self.tree.binary(BinaryOp::Lt, compared, limit, span);
        let compared = self.tree.var(variable, span);
        let limit = self.tree.number(&greatest, wide.width, true, span);
        let above = self.tree.binary(BinaryOp::Gt, compared, limit, span);
        let otherwise = self.tree.conditional(below, bottom, value, span);
        self.tree.conditional(above, top, otherwise, span)
    }
}
