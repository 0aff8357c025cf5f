//! Assignments.

use crate::check::Checker;
use crate::codes;
use crate::expr::Why;
use crate::hir::{BinaryOp, Expr, ExprKind, StmtKind, TyKind, UnaryOp};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl<'a> Checker<'a> {
    /// `target = value`, `target op= value`.
    pub(super) fn assignment(
        &mut self,
        op: Option<ast::BinaryOp>,
        target: &'a ast::Expr,
        value: &'a ast::Expr,
        span: Span,
    ) -> Option<StmtKind> {
        if let ast::ExprKind::PlusSlice { base, low, width } = &target.kind
            && let Some(kind) = self.running_slice_assignment(op, base, low, width, value, span)
        {
            return kind;
        }
        let lhs = self.check_expr(target, None);
        if self.is_unknown(lhs.ty) {
            let unknown = self.unknown_ty();
            self.check_expr(value, Some(unknown));
            return None;
        }
        let fine = self.check_lvalue(&lhs);
        let Some(op) = op else {
            let why = self.declaration_of(&lhs);
            let rhs = self.check_expr_as(value, lhs.ty, why);
            return fine.then_some(StmtKind::Assign { lhs, rhs });
        };
        let rhs = self.check_expr(value, None);
        let (op, rhs) = self.compound(op, &lhs, rhs, span)?;
        fine.then_some(StmtKind::AssignOp { op, lhs, rhs })
    }

    /// Where the type of what is assigned to is declared.
    fn declaration_of(&self, lhs: &Expr) -> Why {
        match &lhs.kind {
            ExprKind::Var(id) => Why::Declared(self.hir.vars[*id].span),
            ExprKind::Field(base, index) => match self.kind(base.ty) {
                TyKind::Struct(id) => {
                    let field = self.hir.types.structs[id].fields.get(*index);
                    field.map_or(Why::Unsaid, |f| Why::Member(f.span))
                }
                _ => Why::Unsaid,
            },
            _ => Why::Unsaid,
        }
    }

    /// The operator and the converted right operand of a compound assignment.
    fn compound(&mut self, op: ast::BinaryOp, lhs: &Expr, rhs: Expr, span: Span) -> Option<(BinaryOp, Expr)> {
        let Some(operator) = Self::compound_operator(op) else {
            let message = format!("`{}=` does not exist", op.symbol());
            self.error(codes::BAD_OPERANDS, span, message);
            return None;
        };
        // The left side is not the literal it may hold now.
        let result = self.binary_of(op, lhs.clone(), rhs, span);
        if self.is_unknown(result.ty) {
            return None;
        }
        if result.ty != lhs.ty {
            let why = self.declaration_of(lhs);
            self.mismatch(&result, lhs.ty, why);
            return None;
        }
        match result.kind {
            ExprKind::Binary(_, _, right) => Some((operator, *right)),
            _ => None,
        }
    }

    /// `base[low+:width] = value` with a low bit that is known only at run time: the bits are cut out of the base and put
    /// together with the shifted value. None: the low bit is constant, and this is a plain slice.
    fn running_slice_assignment(
        &mut self,
        op: Option<ast::BinaryOp>,
        base: &'a ast::Expr,
        low: &'a ast::Expr,
        width: &'a ast::Expr,
        value: &'a ast::Expr,
        span: Span,
    ) -> Option<Option<StmtKind>> {
        let low = self.check_expr(low, None);
        let low = self.without_enum(low);
        if matches!(low.kind, ExprKind::Int(_) | ExprKind::Unknown) {
            return None;
        }
        let lhs = self.check_expr(base, None);
        let Some(bits) = self.constant_integer(width, "the width of a slice") else { return Some(None) };
        if self.is_unknown(lhs.ty) || !self.check_lvalue(&lhs) {
            return Some(None);
        }
        let (TyKind::Bits(total), TyKind::Bits(_), Some(bits)) =
            (self.kind(lhs.ty), self.kind(low.ty), bits.to_u32().filter(|&b| b > 0))
        else {
            let (left, right) = (self.show(lhs.ty), self.show(low.ty));
            let message = format!("`{left}` cannot be cut at a `{right}`");
            self.report(
                Diagnostic::error(codes::BAD_SLICE, span, message)
                    .with_help("an index that is not constant must be a `bit`"),
            );
            return Some(None);
        };
        if op.is_some() {
            let message = "a slice whose place is known only at run time cannot be assigned in place";
            self.error(codes::BAD_SLICE, span, message);
            return Some(None);
        }
        let part = self.intern(TyKind::Bits(bits));
        let rhs = self.check_expr_as(value, part, Why::Unsaid);
        let ty = lhs.ty;
        let expr = |kind| Expr { kind, ty, span };
        let binary = |op, a, b| expr(ExprKind::Binary(op, Box::new(a), Box::new(b)));
        let ones = (BigInt::from(1) << bits.min(total)) - 1;
        let mask = binary(BinaryOp::Shl, expr(ExprKind::Int(ones)), low.clone());
        let kept = binary(BinaryOp::And, lhs.clone(), expr(ExprKind::Unary(UnaryOp::BitNot, Box::new(mask))));
        let widened = if part == ty { rhs } else { expr(ExprKind::Cast(Box::new(rhs))) };
        let placed = binary(BinaryOp::Shl, widened, low);
        let rhs = binary(BinaryOp::Or, kept, placed);
        Some(Some(StmtKind::Assign { lhs, rhs }))
    }
}
