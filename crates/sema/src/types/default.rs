//! Default values (specification, "Default values").

use crate::check::Checker;
use crate::codes;
use crate::hir::{Expr, ExprKind, StructKind, Ty, TyKind};
use crate::limits::MAX_LITERAL_NODES;
use millrace_syntax::Span;
use num_bigint::BigInt;

impl Checker<'_> {
    /// The default value of a type.
    pub(crate) fn default_value(&mut self, ty: Ty, span: Span) -> Expr {
        let mut budget = MAX_LITERAL_NODES;
        match self.default_within(ty, span, &mut budget) {
            Some(expr) => expr,
            None => {
                let shown = self.show(ty);
                self.fail(codes::NO_DEFAULT, span, format!("`{shown}` has no default value"))
            }
        }
    }

    fn default_within(&mut self, ty: Ty, span: Span, budget: &mut usize) -> Option<Expr> {
        *budget = budget.checked_sub(1)?;
        let kind = match self.kind(ty) {
            TyKind::Int | TyKind::Bits(_) | TyKind::SignedBits(_) => ExprKind::Int(BigInt::ZERO),
            TyKind::Bool => ExprKind::Bool(false),
            TyKind::String => ExprKind::String(String::new()),
            TyKind::Error => ExprKind::ErrorMember(self.hir.errors.iter().position(|e| e == "NoError")?),
            TyKind::Enum(id) => match self.hir.types.enums[id].repr {
                Some(_) => ExprKind::Int(BigInt::ZERO),
                None => ExprKind::EnumMember(0),
            },
            TyKind::New(id) => {
                let base = self.hir.types.new_types[id].base;
                self.default_within(base, span, budget)?.kind
            }
            TyKind::Tuple(parts) => {
                let parts: Option<Vec<Expr>> =
                    parts.into_iter().map(|t| self.default_within(t, span, budget)).collect();
                ExprKind::Aggregate(parts?)
            }
            TyKind::Struct(id) => match self.hir.types.structs[id].kind {
                StructKind::Header | StructKind::Union => ExprKind::InvalidHeader,
                StructKind::Struct => {
                    let fields: Vec<Ty> = self.hir.types.structs[id].fields.iter().map(|f| f.ty).collect();
                    let fields: Option<Vec<Expr>> =
                        fields.into_iter().map(|t| self.default_within(t, span, budget)).collect();
                    ExprKind::Aggregate(fields?)
                }
            },
            TyKind::Stack(element, n) => {
                if self.is_header(element) {
                    ExprKind::StackLiteral(Vec::new())
                } else {
                    let elements: Option<Vec<Expr>> =
                        (0..n).map(|_| self.default_within(element, span, budget)).collect();
                    ExprKind::StackLiteral(elements?)
                }
            }
            TyKind::Varbit(_) => ExprKind::Cast(Box::new(self.default_of_bits(span))),
            TyKind::Unknown => ExprKind::Unknown,
            _ => return None,
        };
        Some(Expr { kind, ty, span })
    }

    /// The empty bit string, cast to a `varbit` for its default value: there is no literal of one.
    fn default_of_bits(&mut self, span: Span) -> Expr {
        let ty = self.intern(TyKind::Bits(0));
        Expr { kind: ExprKind::Int(BigInt::ZERO), ty, span }
    }
}
