//! The types of expressions.

use super::{Place, Verifier};
use crate::*;

impl Verifier<'_> {
    /// The type of an expression; `None` after a report.
    pub(super) fn expr(&mut self, place: Place<'_>, expr: &Expr) -> Option<Type> {
        self.typed(place, expr, limits::MAX_EXPR_DEPTH)
    }

    /// An expression of that type.
    pub(super) fn expr_of_type(&mut self, place: Place<'_>, expr: &Expr, ty: Type, what: &str) {
        if let Some(found) = self.expr(place, expr) {
            self.require(found == ty, place, || format!("{what} is {found}, not {ty}"));
        }
    }

    /// An expression that is a number; its width.
    pub(super) fn bits_expr(&mut self, place: Place<'_>, expr: &Expr, what: &str) -> Option<u32> {
        let found = self.expr(place, expr)?;
        self.require(found.bits().is_some(), place, || format!("{what} is {found}, not a number"));
        found.bits()
    }

    fn typed(&mut self, place: Place<'_>, expr: &Expr, depth: usize) -> Option<Type> {
        let Some(depth) = depth.checked_sub(1) else {
            self.report(place, format!("an expression is nested deeper than {}", limits::MAX_EXPR_DEPTH));
            return None;
        };
        match expr {
            Expr::Const(bits) => {
                self.width(place, bits.width());
                Some(Type::Bits(bits.width()))
            }
            Expr::Bool(_) => Some(Type::Bool),
            Expr::Read(slot) => self.slot(place, *slot).map(|s| s.ty),
            Expr::IsValid(header) => self.header(place, *header).map(|_| Type::Bool),
            Expr::PacketLength | Expr::Cursor => Some(Type::Bits(32)),
            Expr::Unary(UnaryOp::Not, operand) => {
                self.operand(place, operand, depth, Type::Bool)?;
                Some(Type::Bool)
            }
            Expr::Unary(_, operand) => self.number(place, operand, depth).map(Type::Bits),
            Expr::Binary(op, left, right) => self.binary(place, *op, left, right, depth),
            Expr::Mux(cond, then, els) => {
                self.operand(place, cond, depth, Type::Bool)?;
                let ty = self.typed(place, then, depth)?;
                self.operand(place, els, depth, ty)?;
                Some(ty)
            }
            Expr::Slice(operand, high, low) => {
                let width = self.number(place, operand, depth)?;
                self.require(low <= high && *high < width, place, || {
                    format!("slice [{high}:{low}] of {width} bits")
                });
                (low <= high && *high < width).then(|| Type::Bits(high - low + 1))
            }
            Expr::Concat(high, low) => {
                let high = self.number(place, high, depth)?;
                let width = high.saturating_add(self.number(place, low, depth)?);
                self.width(place, width);
                Some(Type::Bits(width))
            }
            Expr::ZeroExtend(operand, width) | Expr::SignExtend(operand, width) => {
                self.number(place, operand, depth)?;
                self.width(place, *width);
                Some(Type::Bits(*width))
            }
            Expr::BoolToBits(operand) => {
                self.operand(place, operand, depth, Type::Bool)?;
                Some(Type::Bits(1))
            }
        }
    }

    fn binary(
        &mut self,
        place: Place<'_>,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        depth: usize,
    ) -> Option<Type> {
        use BinaryOp::*;
        match op {
            BoolAnd | BoolOr => {
                self.operand(place, left, depth, Type::Bool)?;
                self.operand(place, right, depth, Type::Bool)?;
                Some(Type::Bool)
            }
            Eq | Ne => {
                let ty = self.typed(place, left, depth)?;
                self.operand(place, right, depth, ty)?;
                Some(Type::Bool)
            }
            Shl | Shr | ShrSigned => {
                let width = self.number(place, left, depth)?;
                self.number(place, right, depth)?;
                Some(Type::Bits(width))
            }
            Add | Sub | Mul | Div | Mod | AddSat | SubSat | AddSatSigned | SubSatSigned | And | Or | Xor => {
                let width = self.number(place, left, depth)?;
                self.operand(place, right, depth, Type::Bits(width))?;
                Some(Type::Bits(width))
            }
            Lt | Le | LtSigned | LeSigned => {
                let width = self.number(place, left, depth)?;
                self.operand(place, right, depth, Type::Bits(width))?;
                Some(Type::Bool)
            }
        }
    }

    fn operand(&mut self, place: Place<'_>, expr: &Expr, depth: usize, ty: Type) -> Option<()> {
        let found = self.typed(place, expr, depth)?;
        self.require(found == ty, place, || format!("an operand is {found}, not {ty}"));
        (found == ty).then_some(())
    }

    fn number(&mut self, place: Place<'_>, expr: &Expr, depth: usize) -> Option<u32> {
        let found = self.typed(place, expr, depth)?;
        self.require(found.bits().is_some(), place, || format!("an operand is {found}, not a number"));
        found.bits()
    }
}
