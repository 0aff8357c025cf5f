//! Operators (specification, "Operations on ...").

use super::Why;
use crate::check::Checker;
use crate::codes;
use crate::hir::{self, BinaryOp, Expr, ExprKind, Ty, TyKind, UnaryOp};
use crate::limits::MAX_INT_SHIFT;
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::{BigInt, Sign};
use num_traits::Zero;

impl<'a> Checker<'a> {
    /// A prefix operator.
    pub(super) fn unary(&mut self, op: ast::UnaryOp, operand: &'a ast::Expr, span: Span) -> Expr {
        let e = self.check_expr(operand, None);
        if self.is_unknown(e.ty) {
            return self.unknown(span);
        }
        let e = if op == ast::UnaryOp::Not { e } else { self.without_enum(e) };
        let kind = self.kind(e.ty);
        let fixed = matches!(kind, TyKind::Bits(_) | TyKind::SignedBits(_));
        let op = match op {
            ast::UnaryOp::Not if kind == TyKind::Bool => UnaryOp::Not,
            ast::UnaryOp::Complement if fixed => UnaryOp::BitNot,
            ast::UnaryOp::Negate if fixed || kind == TyKind::Int => UnaryOp::Neg,
            ast::UnaryOp::Plus if fixed || kind == TyKind::Int => return Expr { span, ..e },
            _ => {
                let shown = self.show(e.ty);
                let mut found = Diagnostic::error(
                    codes::BAD_OPERANDS,
                    span,
                    format!("`{}` is not defined on `{shown}`", op.symbol()),
                );
                found.help = match (op, kind) {
                    (_, TyKind::Int) => Some("give the number a width, such as `8w1`".into()),
                    (ast::UnaryOp::Not, TyKind::Bits(_) | TyKind::SignedBits(_)) => {
                        Some("`~` inverts bits; `... == 0` asks for zero".into())
                    }
                    (ast::UnaryOp::Complement, TyKind::Bool) => Some("`!` negates a `bool`".into()),
                    _ => None,
                };
                self.report(found);
                return self.unknown(span);
            }
        };
        let ty = e.ty;
        self.fold(Expr { kind: ExprKind::Unary(op, Box::new(e)), ty, span })
    }

    /// An infix operator.
    pub(super) fn binary(
        &mut self,
        op: ast::BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let (l, r) = self.operands(op, left, right);
        self.binary_of(op, l, r, span)
    }

    /// Types both operands; of a comparison, one gives the other its type where it has none of its own.
    fn operands(&mut self, op: ast::BinaryOp, left: &'a ast::Expr, right: &'a ast::Expr) -> (Expr, Expr) {
        let open = |e: &ast::Expr| {
            matches!(
                e.kind,
                ast::ExprKind::InvalidHeader | ast::ExprKind::List(_) | ast::ExprKind::Struct { .. }
            )
        };
        let comparison = matches!(op, ast::BinaryOp::Eq | ast::BinaryOp::Ne);
        if comparison && open(left) && !open(right) {
            let r = self.check_expr(right, None);
            let l = self.check_expr(left, Some(r.ty));
            return (l, r);
        }
        let l = self.check_expr(left, None);
        let wanted = (comparison && open(right)).then_some(l.ty);
        let r = self.check_expr(right, wanted);
        (l, r)
    }

    /// An infix operator on checked operands.
    pub(crate) fn binary_of(&mut self, op: ast::BinaryOp, l: Expr, r: Expr, span: Span) -> Expr {
        use ast::BinaryOp as B;
        if self.is_unknown(l.ty) || self.is_unknown(r.ty) {
            return self.unknown(span);
        }
        let result = match op {
            B::And => self.logic(BinaryOp::BoolAnd, l, r),
            B::Or => self.logic(BinaryOp::BoolOr, l, r),
            B::Eq => self.equality(BinaryOp::Eq, l, r),
            B::Ne => self.equality(BinaryOp::Ne, l, r),
            B::Lt => self.arithmetic(BinaryOp::Lt, l, r),
            B::Le => self.arithmetic(BinaryOp::Le, l, r),
            B::Gt => self.arithmetic(BinaryOp::Gt, l, r),
            B::Ge => self.arithmetic(BinaryOp::Ge, l, r),
            B::Add => self.arithmetic(BinaryOp::Add, l, r),
            B::Sub => self.arithmetic(BinaryOp::Sub, l, r),
            B::Mul => self.arithmetic(BinaryOp::Mul, l, r),
            B::SatAdd => self.arithmetic(BinaryOp::AddSat, l, r),
            B::SatSub => self.arithmetic(BinaryOp::SubSat, l, r),
            B::BitAnd => self.arithmetic(BinaryOp::And, l, r),
            B::BitOr => self.arithmetic(BinaryOp::Or, l, r),
            B::BitXor => self.arithmetic(BinaryOp::Xor, l, r),
            B::Div => return self.division(BinaryOp::Div, l, r, span),
            B::Mod => return self.division(BinaryOp::Mod, l, r, span),
            B::Shl => return self.shift(BinaryOp::Shl, l, r, span),
            B::Shr => return self.shift(BinaryOp::Shr, l, r, span),
            B::Concat => self.concatenation(l, r),
        };
        match result {
            Ok((op, l, r, ty)) => {
                self.fold(Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(r)), ty, span })
            }
            Err((l, r)) => self.bad_operands(op.symbol(), &l, &r, span),
        }
    }

    fn bad_operands(&mut self, symbol: &str, l: &Expr, r: &Expr, span: Span) -> Expr {
        let (left, right) = (self.show(l.ty), self.show(r.ty));
        let message = format!("`{symbol}` is not defined on `{left}` and `{right}`");
        let mut found = Diagnostic::error(codes::BAD_OPERANDS, span, message)
            .with_label("not defined on these operands")
            .with_secondary(l.span, format!("this is `{left}`"))
            .with_secondary(r.span, format!("this is `{right}`"));
        let fixed = |k: TyKind| matches!(k, TyKind::Bits(_) | TyKind::SignedBits(_));
        let (lk, rk) = (self.kind(l.ty), self.kind(r.ty));
        if lk == TyKind::String && rk == TyKind::String {
            found = found.with_help("strings are put together with `++`");
        } else if let Some(help) = self
            .conversion(r, l.ty)
            .filter(|_| rk == TyKind::String)
            .or_else(|| self.conversion(l, r.ty).filter(|_| lk == TyKind::String))
        {
            found = found.with_help(help);
        } else if fixed(lk.clone()) && fixed(rk) && l.ty != r.ty && !matches!(symbol, "<<" | ">>" | "++") {
            found = found.with_help(format!("cast one of them: `({left})`"));
        } else if lk == TyKind::Int && l.ty == r.ty {
            found = found.with_help("give one of the numbers a width, such as `8w1`");
        } else {
            found.help = self.other_operator(symbol, l, r);
        }
        self.report(found);
        self.unknown(span)
    }

    /// What could be meant by an operator on types that it is not defined on.
    fn other_operator(&self, symbol: &str, l: &Expr, r: &Expr) -> Option<String> {
        let (lk, rk) = (self.kind(l.ty), self.kind(r.ty));
        let bits = |k: &TyKind| matches!(k, TyKind::Bits(_) | TyKind::SignedBits(_));
        Some(match (symbol, &lk, &rk) {
            ("&", TyKind::Bool, TyKind::Bool) => "`&&` is the operator of `bool`".into(),
            ("|", TyKind::Bool, TyKind::Bool) => "`||` is the operator of `bool`".into(),
            ("^", TyKind::Bool, TyKind::Bool) => "`!=` is true where two `bool` differ".into(),
            ("&&", a, b) if bits(a) || bits(b) => {
                "compare with a number: `... != 0`; `&` works on bits".into()
            }
            ("||", a, b) if bits(a) || bits(b) => {
                "compare with a number: `... != 0`; `|` works on bits".into()
            }
            ("/" | "%", TyKind::SignedBits(_), _) => "only unsigned numbers can be divided".into(),
            ("<<" | ">>", a, TyKind::SignedBits(w)) if bits(a) => {
                format!("the amount of a shift is unsigned: `(bit<{w}>)`")
            }
            (_, TyKind::New(id), _) | (_, _, TyKind::New(id)) => {
                let base = self.show(self.hir.types.new_types[*id].base);
                format!("cast to the type that the new one stands for: `({base})`")
            }
            _ => return None,
        })
    }

    fn logic(&mut self, op: BinaryOp, l: Expr, r: Expr) -> Operands {
        if self.kind(l.ty) != TyKind::Bool || self.kind(r.ty) != TyKind::Bool {
            return Err((l, r));
        }
        let ty = l.ty;
        Ok((op, l, r, ty))
    }

    fn equality(&mut self, op: BinaryOp, l: Expr, r: Expr) -> Operands {
        let bool_ty = self.intern(TyKind::Bool);
        let (l, r) = if l.ty == r.ty { (l, r) } else { self.same_type(l, r)? };
        if !self.comparable(l.ty) || self.contains_record(l.ty) {
            return Err((l, r));
        }
        Ok((op, l, r, bool_ty))
    }

    /// Converts one operand to the type of the other where an implied conversion can.
    pub(crate) fn same_type(&mut self, l: Expr, r: Expr) -> Operands2 {
        if l.ty == r.ty {
            return Ok((l, r));
        }
        let (lt, rt) = (l.ty, r.ty);
        // A number without width takes the other's, never the other way round.
        let l = match self.kind(rt) {
            TyKind::Int => l,
            _ => match self.convert(l, rt) {
                Ok(l) => return Ok((l, r)),
                Err(l) => l,
            },
        };
        if matches!(self.kind(lt), TyKind::Int) {
            let (l, r) = (l, self.without_enum(r));
            return if r.ty == rt { Err((l, r)) } else { self.same_type(l, r) };
        }
        let r = match self.convert(r, lt) {
            Ok(r) => return Ok((l, r)),
            Err(r) => r,
        };
        // Two different enumerations over one type, or an enumeration and an `int`.
        let (l, r) = (self.without_enum(l), self.without_enum(r));
        if l.ty == lt && r.ty == rt {
            return Err((l, r));
        }
        self.same_type(l, r)
    }

    /// Whether `==` is defined on a type.
    pub(crate) fn comparable(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Unknown
            | TyKind::Bool
            | TyKind::Int
            | TyKind::Bits(_)
            | TyKind::SignedBits(_)
            | TyKind::Varbit(_)
            | TyKind::Error
            | TyKind::MatchKind
            | TyKind::Enum(_) => true,
            TyKind::New(id) => self.comparable(self.hir.types.new_types[id].base),
            TyKind::Tuple(parts) => parts.into_iter().all(|t| self.comparable(t)),
            TyKind::List(t) | TyKind::Stack(t, _) => self.comparable(t),
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                s.fields.iter().all(|f| self.comparable(f.ty))
            }
            _ => false,
        }
    }

    /// Operators whose operands have one numeric type.
    fn arithmetic(&mut self, op: BinaryOp, l: Expr, r: Expr) -> Operands {
        use BinaryOp as B;
        let (l, r) = (self.without_enum(l), self.without_enum(r));
        let (l, r) = match (self.kind(l.ty), self.kind(r.ty)) {
            (TyKind::Int, TyKind::Bits(_) | TyKind::SignedBits(_)) => {
                let ty = r.ty;
                (self.coerce(l, ty, Why::Unsaid), r)
            }
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Int) => {
                let ty = l.ty;
                let r = self.coerce(r, ty, Why::Unsaid);
                (l, r)
            }
            _ => (l, r),
        };
        let numeric = match self.kind(l.ty) {
            TyKind::Int => match op {
                // Not in the specification, but of literals there is no doubt.
                B::And | B::Or | B::Xor => matches!((&l.kind, &r.kind), (ExprKind::Int(_), ExprKind::Int(_))),
                B::AddSat | B::SubSat => false,
                _ => true,
            },
            TyKind::Bits(_) | TyKind::SignedBits(_) => true,
            _ => false,
        };
        if l.ty != r.ty || !numeric {
            return Err((l, r));
        }
        let ty = match op {
            B::Lt | B::Le | B::Gt | B::Ge => self.intern(TyKind::Bool),
            _ => l.ty,
        };
        Ok((op, l, r, ty))
    }

    /// `/` and `%` of positive numbers and of bit strings.
    fn division(&mut self, op: BinaryOp, l: Expr, r: Expr, span: Span) -> Expr {
        let (symbol, name) = if op == BinaryOp::Div { ("/", "division") } else { ("%", "modulo") };
        let negative = |e: &Expr| matches!(&e.kind, ExprKind::Int(v) if v.sign() == Sign::Minus);
        if negative(&l) || negative(&r) {
            let message = format!("{name} is not defined for negative numbers");
            return self.fail(codes::BAD_DIVISION, span, message);
        }
        let (l, r, ty) = match self.arithmetic(op, l, r) {
            Ok((_, l, r, ty)) => (l, r, ty),
            Err((l, r)) => return self.bad_operands(symbol, &l, &r, span),
        };
        if matches!(self.kind(ty), TyKind::SignedBits(_)) {
            return self.bad_operands(symbol, &l, &r, span);
        }
        if matches!(&r.kind, ExprKind::Int(divisor) if divisor.is_zero()) {
            return self.fail(codes::BAD_DIVISION, r.span, format!("{name} by zero"));
        }
        let e = Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(r)), ty, span };
        self.fold(e)
    }

    /// `<<` and `>>`.
    fn shift(&mut self, op: BinaryOp, l: Expr, r: Expr, span: Span) -> Expr {
        let symbol = if op == BinaryOp::Shl { "<<" } else { ">>" };
        let (l, r) = (self.without_enum(l), self.without_enum(r));
        let left_is_int = match self.kind(l.ty) {
            TyKind::Int => true,
            TyKind::Bits(_) | TyKind::SignedBits(_) => false,
            _ => return self.bad_operands(symbol, &l, &r, span),
        };
        let constant = matches!(r.kind, ExprKind::Int(_)) || self.is_known(&r);
        match self.kind(r.ty) {
            TyKind::Bits(_) => {}
            TyKind::Int | TyKind::SignedBits(_) if constant => {}
            _ => return self.bad_operands(symbol, &l, &r, span),
        }
        if let ExprKind::Int(amount) = &r.kind {
            if amount.sign() == Sign::Minus {
                return self.fail(codes::BAD_SHIFT, r.span, "a shift by a negative amount is not defined");
            }
            if left_is_int && *amount > BigInt::from(MAX_INT_SHIFT) {
                let message =
                    format!("a number of type `int` can be shifted by at most {MAX_INT_SHIFT} bits");
                return self.fail(codes::BAD_SHIFT, r.span, message);
            }
            if let TyKind::Bits(w) | TyKind::SignedBits(w) = self.kind(l.ty)
                && *amount >= BigInt::from(w)
                && w > 0
            {
                let shown = self.show(l.ty);
                self.warn(
                    codes::OVERFLOW,
                    span,
                    format!("a shift by {amount} moves every bit out of `{shown}`"),
                );
            }
        } else if left_is_int && !constant {
            self.report(
                Diagnostic::error(
                    codes::BAD_SHIFT,
                    span,
                    "a number of type `int` can be shifted by a constant amount only",
                )
                .with_secondary(l.span, "give this a width, such as `32w1`"),
            );
            return self.unknown(span);
        }
        let ty = l.ty;
        self.fold(Expr { kind: ExprKind::Binary(op, Box::new(l), Box::new(r)), ty, span })
    }

    /// `++`.
    fn concatenation(&mut self, l: Expr, r: Expr) -> Operands {
        let (l, r) = (self.without_enum(l), self.without_enum(r));
        let width = |k: &TyKind| match *k {
            TyKind::Bits(w) | TyKind::SignedBits(w) => Some(w),
            _ => None,
        };
        let (lk, rk) = (self.kind(l.ty), self.kind(r.ty));
        if lk == TyKind::String && rk == TyKind::String {
            let ty = l.ty;
            return Ok((BinaryOp::Concat, l, r, ty));
        }
        let (Some(a), Some(b)) = (width(&lk), width(&rk)) else { return Err((l, r)) };
        let total = a.saturating_add(b);
        if total > crate::limits::MAX_WIDTH {
            return Err((l, r));
        }
        let kind =
            if matches!(lk, TyKind::SignedBits(_)) { TyKind::SignedBits(total) } else { TyKind::Bits(total) };
        let ty = self.intern(kind);
        Ok((BinaryOp::Concat, l, r, ty))
    }

    /// `c ? a : b`.
    pub(super) fn conditional(
        &mut self,
        condition: &'a ast::Expr,
        then: &'a ast::Expr,
        otherwise: &'a ast::Expr,
        span: Span,
        expected: Option<Ty>,
    ) -> Expr {
        let cond = self.check_condition(condition);
        let then = self.check_expr(then, expected);
        let els = self.check_expr(otherwise, expected);
        if self.is_unknown(then.ty) || self.is_unknown(els.ty) {
            return self.unknown(span);
        }
        let (then, els) = match self.same_type(then, els) {
            Ok(pair) => pair,
            Err((then, els)) => return self.bad_operands("?:", &then, &els, span),
        };
        let ty = then.ty;
        if let ExprKind::Bool(value) = cond.kind {
            let chosen = if value { then } else { els };
            return Expr { span, ..chosen };
        }
        match self.kind(ty) {
            TyKind::Int if !self.is_known(&cond) => {
                self.report(
                    Diagnostic::error(codes::BAD_OPERANDS, span, "the width of this choice is not known")
                        .with_help("give one of the two numbers a width, such as `8w1`"),
                );
                self.unknown(span)
            }
            TyKind::Void
            | TyKind::MatchKind
            | TyKind::Extern(..)
            | TyKind::Parser(_)
            | TyKind::Control(_)
            | TyKind::Package(..)
            | TyKind::BlockType(..)
            | TyKind::Table(_)
            | TyKind::ApplyResult(_)
            | TyKind::ActionRun(_)
            | TyKind::ValueSet(_) => self.bad_operands("?:", &then, &els, span),
            _ => Expr { kind: ExprKind::Mux(Box::new(cond), Box::new(then), Box::new(els)), ty, span },
        }
    }

    /// The operator of the typed program for a compound assignment, whose left side has type `ty`.
    pub(crate) fn compound_operator(op: ast::BinaryOp) -> Option<hir::BinaryOp> {
        use ast::BinaryOp as B;
        Some(match op {
            B::Mul => BinaryOp::Mul,
            B::Div => BinaryOp::Div,
            B::Mod => BinaryOp::Mod,
            B::Add => BinaryOp::Add,
            B::Sub => BinaryOp::Sub,
            B::SatAdd => BinaryOp::AddSat,
            B::SatSub => BinaryOp::SubSat,
            B::Shl => BinaryOp::Shl,
            B::Shr => BinaryOp::Shr,
            B::BitAnd => BinaryOp::And,
            B::BitXor => BinaryOp::Xor,
            B::BitOr => BinaryOp::Or,
            B::Concat | B::Lt | B::Le | B::Gt | B::Ge | B::Eq | B::Ne | B::And | B::Or => return None,
        })
    }
}

/// An operator with its converted operands and result type; or the operands it is not defined on.
type Operands = Result<(BinaryOp, Expr, Expr, Ty), (Expr, Expr)>;

/// Two operands of one type; or the operands that have none in common.
type Operands2 = Result<(Expr, Expr), (Expr, Expr)>;
