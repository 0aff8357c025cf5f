//! Parts of values: `e[h:l]`, `e[l+:w]` and `e[i]`.

use crate::check::Checker;
use crate::codes;
use crate::hir::{BinaryOp, Expr, ExprKind, TyKind};
use crate::limits::MAX_WIDTH;
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

impl<'a> Checker<'a> {
    /// `e[high:low]`.
    pub(super) fn slice(
        &mut self,
        base: &'a ast::Expr,
        high: &'a ast::Expr,
        low: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let base = self.check_expr(base, None);
        let high_value = self.constant_integer(high, "the index of a bit");
        let low_value = self.constant_integer(low, "the index of a bit");
        let (Some(h), Some(l)) = (high_value, low_value) else { return self.unknown(span) };
        self.slice_of(base, h, l, span)
    }

    fn slice_of(&mut self, base: Expr, high: BigInt, low: BigInt, span: Span) -> Expr {
        if self.is_unknown(base.ty) {
            return self.unknown(span);
        }
        let base = self.without_enum(base);
        let width = match self.kind(base.ty) {
            TyKind::Bits(w) | TyKind::SignedBits(w) => w,
            TyKind::Int => MAX_WIDTH,
            _ => {
                let shown = self.show(base.ty);
                return self.fail(codes::BAD_SLICE, span, format!("`{shown}` has no bits to take"));
            }
        };
        let problem = if low.sign() == Sign::Minus || high.sign() == Sign::Minus {
            Some(format!("the index of a bit cannot be negative, as in [{high}:{low}]"))
        } else if low > high {
            Some(format!("the first bit of a slice must not be below the last, as in [{high}:{low}]"))
        } else if high >= BigInt::from(width) {
            let shown = self.show(base.ty);
            Some(format!("bit {high} is outside of `{shown}`"))
        } else {
            None
        };
        if let Some(message) = problem {
            let mut found = Diagnostic::error(codes::BAD_SLICE, span, message);
            if self.kind(base.ty) != TyKind::Int && width > 0 {
                let shown = self.show(base.ty);
                found = found.with_label(format!("`{shown}` has the bits {} to 0", width - 1));
            }
            self.report(found);
            return self.unknown(span);
        }
        let (high, low) = (high.to_u32().unwrap_or(0), low.to_u32().unwrap_or(0));
        let ty = self.intern(TyKind::Bits(high - low + 1));
        self.fold(Expr { kind: ExprKind::Slice(Box::new(base), high, low), ty, span })
    }

    /// `e[low+:width]`. With a low bit that is known only at run time it is a shift and a cast.
    pub(super) fn plus_slice(
        &mut self,
        base: &'a ast::Expr,
        low: &'a ast::Expr,
        width: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let base = self.check_expr(base, None);
        let low = self.check_expr(low, None);
        let Some(width_value) = self.constant_integer(width, "the width of a slice") else {
            return self.unknown(span);
        };
        if self.is_unknown(base.ty) || self.is_unknown(low.ty) {
            return self.unknown(span);
        }
        let fits = width_value.to_u32().filter(|w| (1..=MAX_WIDTH).contains(w));
        let Some(bits) = fits else {
            let message =
                format!("the width of a slice must be between 1 and {MAX_WIDTH}, not {width_value}");
            return self.fail(codes::BAD_SLICE, width.span, message);
        };
        let (base, low) = (self.without_enum(base), self.without_enum(low));
        if let ExprKind::Int(first) = &low.kind {
            let last = first + BigInt::from(bits) - 1;
            // Bits above the operand read as 0: only the slice of a wider copy has them.
            let base = self.widened(base, &last);
            return self.slice_of(base, last, first.clone(), span);
        }
        match (self.kind(base.ty), self.kind(low.ty)) {
            (TyKind::Bits(_), TyKind::Bits(_)) => self.running_slice(base, low, bits, span),
            (TyKind::SignedBits(w), TyKind::Bits(_)) => {
                let ty = self.intern(TyKind::Bits(w));
                let base = Expr { span: base.span, ty, kind: ExprKind::Cast(Box::new(base)) };
                self.running_slice(base, low, bits, span)
            }
            _ => {
                let (left, right) = (self.show(base.ty), self.show(low.ty));
                self.report(
                    Diagnostic::error(
                        codes::BAD_SLICE,
                        span,
                        format!("`{left}` cannot be cut at a `{right}`"),
                    )
                    .with_help("an index that is not constant must be a `bit`"),
                );
                self.unknown(span)
            }
        }
    }

    /// A copy of an unsigned operand wide enough for a bit; anything else as it is.
    fn widened(&mut self, base: Expr, last: &BigInt) -> Expr {
        match (self.kind(base.ty), last.to_u32()) {
            (TyKind::Bits(w), Some(last)) if last >= w && last < MAX_WIDTH && !self.is_assignable(&base) => {
                let ty = self.intern(TyKind::Bits(last + 1));
                let cast = Expr { span: base.span, ty, kind: ExprKind::Cast(Box::new(base)) };
                self.fold(cast)
            }
            _ => base,
        }
    }

    /// `(bit<width>)(base >> low)`.
    fn running_slice(&mut self, base: Expr, low: Expr, width: u32, span: Span) -> Expr {
        let base_ty = base.ty;
        let kind = ExprKind::Binary(BinaryOp::Shr, Box::new(base), Box::new(low));
        let shifted = Expr { kind, ty: base_ty, span };
        let ty = self.intern(TyKind::Bits(width));
        if ty == base_ty {
            return shifted;
        }
        Expr { kind: ExprKind::Cast(Box::new(shifted)), ty, span }
    }

    /// `e[i]`: an element of a stack, array or tuple.
    pub(super) fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr, span: Span) -> Expr {
        let base = self.check_expr(base, None);
        let index = self.check_expr(index, None);
        if self.is_unknown(base.ty) || self.is_unknown(index.ty) {
            return self.unknown(span);
        }
        let index = self.without_enum(index);
        let numeric = matches!(self.kind(index.ty), TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_));
        if !numeric {
            let shown = self.show(index.ty);
            return self.fail(codes::BAD_INDEX, index.span, format!("an index is a number, not `{shown}`"));
        }
        let (count, what) = match self.kind(base.ty) {
            TyKind::Stack(_, n) => (n as usize, "stack"),
            TyKind::Tuple(parts) => (parts.len(), "tuple"),
            TyKind::List(_) => match &base.kind {
                ExprKind::Aggregate(members) => (members.len(), "list"),
                _ => (usize::MAX, "list"),
            },
            _ => {
                let shown = self.show(base.ty);
                return self.fail(codes::BAD_INDEX, span, format!("`{shown}` has no elements"));
            }
        };
        if !self.here.unevaluated
            && let ExprKind::Int(value) = &index.kind
            && (value.sign() == Sign::Minus || *value >= BigInt::from(count))
        {
            let message = match value.sign() {
                Sign::Minus => {
                    format!("the index of a {what} cannot be negative, as {}", crate::wording::number(value))
                }
                _ => {
                    let elements = crate::wording::count(count, "element", "elements");
                    format!("index {} is outside of this {what} of {elements}", crate::wording::number(value))
                }
            };
            let mut found = Diagnostic::error(codes::BAD_INDEX, index.span, message);
            if let Some(last) = count.checked_sub(1) {
                found = found.with_label(format!("must be 0 to {last}"));
            }
            self.report(found);
            return self.unknown(index.span);
        }
        match (self.kind(base.ty), &index.kind) {
            (TyKind::Stack(ty, _) | TyKind::List(ty), _) => {
                self.fold(Expr { kind: ExprKind::Index(Box::new(base), Box::new(index)), ty, span })
            }
            (TyKind::Tuple(parts), ExprKind::Int(value)) => {
                let member = value.to_usize().unwrap_or(0);
                let ty = parts[member];
                self.fold(Expr { kind: ExprKind::Field(Box::new(base), member), ty, span })
            }
            _ => self.fail(
                codes::NOT_CONSTANT,
                index.span,
                "the index of a tuple must be known at compile time",
            ),
        }
    }
}
