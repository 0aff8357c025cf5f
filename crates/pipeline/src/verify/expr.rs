//! The types of expressions.

use super::{Location, Verifier};
use crate::*;

impl Verifier<'_> {
    /// The type of an expression; `None` after a report.
    pub(super) fn expr(&mut self, location: Location<'_>, expr: &Expr) -> Option<Type> {
        self.typed(location, expr, limits::MAX_EXPR_DEPTH)
    }

    /// An expression of that type.
    pub(super) fn expr_of_type(&mut self, location: Location<'_>, expr: &Expr, ty: Type, what: &str) {
        if let Some(found) = self.expr(location, expr) {
            self.require(found == ty, location, || format!("{what} is {found}, not {ty}"));
        }
    }

    /// An expression that is a number; its width.
    pub(super) fn bits_expr(&mut self, location: Location<'_>, expr: &Expr, what: &str) -> Option<u32> {
        let found = self.expr(location, expr)?;
        self.require(found.bits().is_some(), location, || format!("{what} is {found}, not a number"));
        found.bits()
    }

    fn typed(&mut self, location: Location<'_>, expr: &Expr, depth: usize) -> Option<Type> {
        let Some(depth) = depth.checked_sub(1) else {
            self.report(location, format!("an expression is nested deeper than {}", limits::MAX_EXPR_DEPTH));
            return None;
        };
        match expr {
            Expr::Const(bits) => {
                self.width(location, bits.width());
                Some(Type::Bits(bits.width()))
            }
            Expr::Bool(_) => Some(Type::Bool),
            Expr::Read(slot) => self.slot(location, *slot).map(|s| s.ty),
            Expr::IsValid(header) => self.header(location, *header).map(|_| Type::Bool),
            Expr::PacketLength | Expr::Cursor => Some(Type::Bits(32)),
            Expr::Unary(UnaryOp::Not, operand) => {
                self.operand(location, operand, depth, Type::Bool)?;
                Some(Type::Bool)
            }
            Expr::Unary(_, operand) => self.number(location, operand, depth).map(Type::Bits),
            Expr::Binary(op, left, right) => self.binary(location, *op, left, right, depth),
            Expr::Mux(cond, then, els) => {
                self.operand(location, cond, depth, Type::Bool)?;
                let ty = self.typed(location, then, depth)?;
                self.operand(location, els, depth, ty)?;
                Some(ty)
            }
            Expr::Slice(operand, high, low) => {
                let width = self.number(location, operand, depth)?;
                self.require(low <= high && *high < width, location, || {
                    format!("slice [{high}:{low}] of {width} bits")
                });
                (low <= high && *high < width).then(|| Type::Bits(high - low + 1))
            }
            Expr::Concat(high, low) => {
                let high = self.number(location, high, depth)?;
                let width = high.saturating_add(self.number(location, low, depth)?);
                self.width(location, width);
                Some(Type::Bits(width))
            }
            Expr::ZeroExtend(operand, width) | Expr::SignExtend(operand, width) => {
                self.number(location, operand, depth)?;
                self.width(location, *width);
                Some(Type::Bits(*width))
            }
            Expr::BoolToBits(operand) => {
                self.operand(location, operand, depth, Type::Bool)?;
                Some(Type::Bits(1))
            }
        }
    }

    fn binary(
        &mut self,
        location: Location<'_>,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        depth: usize,
    ) -> Option<Type> {
        use BinaryOp::*;
        match op {
            BoolAnd | BoolOr => {
                self.operand(location, left, depth, Type::Bool)?;
                self.operand(location, right, depth, Type::Bool)?;
                Some(Type::Bool)
            }
            Eq | Ne => {
                let ty = self.typed(location, left, depth)?;
                self.operand(location, right, depth, ty)?;
                Some(Type::Bool)
            }
            Shl | Shr | ShrSigned => {
                let width = self.number(location, left, depth)?;
                self.number(location, right, depth)?;
                Some(Type::Bits(width))
            }
            Add | Sub | Mul | Div | Mod | AddSat | SubSat | AddSatSigned | SubSatSigned | And | Or | Xor => {
                let width = self.number(location, left, depth)?;
                self.operand(location, right, depth, Type::Bits(width))?;
                Some(Type::Bits(width))
            }
            Lt | Le | LtSigned | LeSigned => {
                let width = self.number(location, left, depth)?;
                self.operand(location, right, depth, Type::Bits(width))?;
                Some(Type::Bool)
            }
        }
    }

    fn operand(&mut self, location: Location<'_>, expr: &Expr, depth: usize, ty: Type) -> Option<()> {
        let found = self.typed(location, expr, depth)?;
        self.require(found == ty, location, || format!("an operand is {found}, not {ty}"));
        (found == ty).then_some(())
    }

    fn number(&mut self, location: Location<'_>, expr: &Expr, depth: usize) -> Option<u32> {
        let found = self.typed(location, expr, depth)?;
        self.require(found.bits().is_some(), location, || format!("an operand is {found}, not a number"));
        found.bits()
    }
}
