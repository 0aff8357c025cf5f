//! Conversions, implied and written (specification, "Casts").

use super::Why;
use super::aggregate::in_turn;
use crate::check::Checker;
use crate::codes;
use crate::hir::{Expr, ExprKind, StructId, StructKind, Ty, TyKind};
use crate::wording::number;
use foldhash::HashMap;
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;

impl<'a> Checker<'a> {
    /// A number as a literal of a fixed-width type, with a warning when it loses bits.
    pub(crate) fn number_of_type(&mut self, value: BigInt, ty: Ty, span: Span) -> Expr {
        let kind = self.kind(ty);
        let wrapped = crate::constant::wrap(&value, &kind);
        if wrapped != value {
            let shown = self.show(ty);
            self.report(
                Diagnostic::warning(
                    codes::OVERFLOW,
                    span,
                    format!("{} does not fit in `{shown}`", number(&value)),
                )
                .with_label(format!("becomes {}", number(&wrapped))),
            );
        }
        Expr { kind: ExprKind::Int(wrapped), ty, span }
    }

    /// Converts an expression to a type by the implied conversions, or reports that it has another type.
    pub(crate) fn coerce(&mut self, e: Expr, ty: Ty, why: Why) -> Expr {
        let ty = self.settle(ty);
        let converted = match self.convert(e, ty) {
            Err(e) => self.number_of_new_type(e, ty),
            converted => converted,
        };
        converted.unwrap_or_else(|e| {
            self.mismatch(&e, ty, why);
            self.unknown(e.span)
        })
    }

    /// An `int` as a value of a new type whose base is a number: `const vrf_id_t DEFAULT = 0` with `type bit<10> vrf_id_t`.
    ///
    /// The specification has no such implied cast. p4c has it wherever a value goes to a place of a known type (initial values,
    /// assignments, arguments, results), and published programs rely on it. Operands of `==` are no such place: p4c refuses a
    /// comparison of a new type with an `int`, and so does [`Checker::same_type`], which calls [`Checker::convert`] alone.
    fn number_of_new_type(&mut self, e: Expr, ty: Ty) -> Result<Expr, Expr> {
        let TyKind::New(id) = self.kind(ty) else { return Err(e) };
        if self.kind(e.ty) != TyKind::Int {
            return Err(e);
        }
        let base = self.hir.types.new_types[id].base;
        let number = match self.kind(base) {
            TyKind::Bits(_) | TyKind::SignedBits(_) => self.convert(e, base)?,
            _ => self.number_of_new_type(e, base)?,
        };
        Ok(self.cast_to(number, ty))
    }

    /// Converts by the implied conversions; gives the expression back when there is none.
    pub(crate) fn convert(&mut self, e: Expr, ty: Ty) -> Result<Expr, Expr> {
        if e.ty == ty || self.is_unknown(e.ty) {
            return Ok(e);
        }
        if self.is_unknown(ty) {
            return Ok(e);
        }
        match (self.kind(ty), self.kind(e.ty)) {
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Int) => Ok(self.int_to_fixed(e, ty)),
            (TyKind::Int, TyKind::Bits(_) | TyKind::SignedBits(_)) if self.is_known(&e) => {
                let cast = Expr { span: e.span, ty, kind: ExprKind::Cast(Box::new(e)) };
                Ok(self.fold(cast))
            }
            (_, TyKind::Enum(id)) => match self.hir.types.enums[id].repr {
                Some(repr) if repr == ty => {
                    let cast = Expr { span: e.span, ty, kind: ExprKind::Cast(Box::new(e)) };
                    Ok(self.fold(cast))
                }
                _ => Err(e),
            },
            (TyKind::BlockType(..), TyKind::Parser(_) | TyKind::Control(_) | TyKind::BlockType(..)) => {
                if self.unify(ty, e.ty) { Ok(e) } else { Err(e) }
            }
            (TyKind::Extern(..), TyKind::Extern(..)) | (TyKind::Package(..), TyKind::Package(..)) => {
                if self.unify(ty, e.ty) { Ok(e) } else { Err(e) }
            }
            (want, have) => self.convert_aggregate(e, ty, want, have),
        }
    }

    fn int_to_fixed(&mut self, e: Expr, ty: Ty) -> Expr {
        match e.kind {
            ExprKind::Int(value) => self.number_of_type(value, ty, e.span),
            ExprKind::Mux(cond, then, els) => {
                let (then, els) = (self.int_to_fixed(*then, ty), self.int_to_fixed(*els, ty));
                Expr { kind: ExprKind::Mux(cond, Box::new(then), Box::new(els)), ty, span: e.span }
            }
            _ => Expr { span: e.span, ty, kind: ExprKind::Cast(Box::new(e)) },
        }
    }

    /// Converts expressions that list members to what their place wants.
    fn convert_aggregate(&mut self, e: Expr, ty: Ty, want: TyKind, have: TyKind) -> Result<Expr, Expr> {
        let span = e.span;
        let old = e.ty;
        let members = match e.kind {
            ExprKind::Aggregate(members) => members,
            ExprKind::Mux(cond, then, els) => {
                let (then, els) = (self.convert(*then, ty), self.convert(*els, ty));
                let fits = then.is_ok() && els.is_ok();
                let (then, els) = (then.unwrap_or_else(|e| e), els.unwrap_or_else(|e| e));
                let kind = ExprKind::Mux(cond, Box::new(then), Box::new(els));
                return if fits { Ok(Expr { kind, ty, span }) } else { Err(Expr { kind, ty: old, span }) };
            }
            kind => return Err(Expr { kind, ty: old, span }),
        };
        let back = |members| Err(Expr { kind: ExprKind::Aggregate(members), ty: old, span });
        match (want, have) {
            (TyKind::Tuple(parts), TyKind::Tuple(_)) if parts.len() == members.len() => {
                let parts: Vec<(Ty, Why)> = parts.into_iter().map(|t| (t, Why::Unsaid)).collect();
                let members = self.convert_members(members, &parts)?;
                Ok(Expr { kind: ExprKind::Aggregate(members), ty, span })
            }
            (TyKind::Struct(id), TyKind::Tuple(_))
                if self.hir.types.structs[id].kind != StructKind::Union =>
            {
                let fields = self.members_wanted(id);
                if fields.len() != members.len() {
                    return back(members);
                }
                let members = self.convert_members(members, &fields)?;
                Ok(Expr { kind: ExprKind::Aggregate(members), ty, span })
            }
            (TyKind::Struct(want), TyKind::Struct(have))
                if !self.decls.struct_origin.contains_key(&have)
                    || self.decls.struct_origin.get(&want) == self.decls.struct_origin.get(&have) =>
            {
                if self.hir.types.structs[want].kind == StructKind::Union {
                    return back(members);
                }
                let names = |c: &Self, id| -> Vec<(String, Ty, Span)> {
                    let fields = &c.hir.types.structs[id].fields;
                    fields.iter().map(|f| (f.name.clone(), f.ty, f.span)).collect()
                };
                let (wanted, had) = (names(self, want), names(self, have));
                if wanted.len() != had.len() {
                    return back(members);
                }
                let numbers: HashMap<&str, usize> =
                    had.iter().enumerate().map(|(i, (name, ..))| (name.as_str(), i)).collect();
                let mut members: Vec<Option<Expr>> = members.into_iter().map(Some).collect();
                let turns = wanted
                    .iter()
                    .map(|(name, ..)| numbers.get(name.as_str()).copied().unwrap_or(0))
                    .collect();
                let mut ordered = Vec::with_capacity(wanted.len());
                for (name, ty, declared) in &wanted {
                    let found = numbers.get(name.as_str()).and_then(|i| members.get_mut(*i)?.take());
                    let Some(member) = found else {
                        return Err(Expr { kind: ExprKind::Unknown, ty: old, span });
                    };
                    ordered.push(self.coerce(member, *ty, Why::Member(*declared)));
                }
                Ok(Expr { kind: in_turn(ordered, turns), ty, span })
            }
            (TyKind::List(element), TyKind::Tuple(_) | TyKind::List(_)) => {
                let types = vec![(element, Why::Unsaid); members.len()];
                let members = self.convert_members(members, &types)?;
                Ok(Expr { kind: ExprKind::Aggregate(members), ty, span })
            }
            (TyKind::Stack(element, n), TyKind::Tuple(_)) if members.len() <= n as usize => {
                let types = vec![(element, Why::Unsaid); members.len()];
                let members = self.convert_members(members, &types)?;
                Ok(Expr { kind: ExprKind::StackLiteral(members), ty, span })
            }
            _ => back(members),
        }
    }

    /// Converts members one by one, and reports those that do not fit.
    fn convert_members(&mut self, members: Vec<Expr>, types: &[(Ty, Why)]) -> Result<Vec<Expr>, Expr> {
        Ok(members.into_iter().zip(types).map(|(m, &(t, why))| self.coerce(m, t, why)).collect())
    }

    /// The types that a structure's members have, and where they say so.
    pub(crate) fn members_wanted(&self, id: StructId) -> Vec<(Ty, Why)> {
        self.hir.types.structs[id].fields.iter().map(|f| (f.ty, Why::Member(f.span))).collect()
    }

    /// The value of a serializable enumeration as a number; anything else as it is.
    pub(crate) fn without_enum(&mut self, e: Expr) -> Expr {
        let TyKind::Enum(id) = self.kind(e.ty) else { return e };
        let Some(repr) = self.hir.types.enums[id].repr else { return e };
        let cast = Expr { span: e.span, ty: repr, kind: ExprKind::Cast(Box::new(e)) };
        self.fold(cast)
    }

    /// `(T) e`.
    pub(super) fn cast(&mut self, ty: &'a ast::Type, operand: &'a ast::Expr, span: Span) -> Expr {
        let target = self.resolve_type(ty);
        let has_free = self.has_free_vars(target);
        let e = self.check_expr(operand, (!has_free).then_some(target));
        if has_free {
            self.unify(target, e.ty);
        }
        let target = match self.finish_type(target) {
            Ok(target) => target,
            Err(name) => {
                let message = format!("the type argument `{name}` cannot be found out");
                return self.fail(codes::CANNOT_INFER, ty.span, message);
            }
        };
        if self.is_unknown(target) || self.is_unknown(e.ty) {
            return Expr { kind: ExprKind::Unknown, ty: target, span };
        }
        let mut result = match self.explicit_cast(e, target) {
            Ok(e) => e,
            Err(e) => {
                let (from, to) = (self.show(e.ty), self.show(target));
                let mut found =
                    Diagnostic::error(codes::BAD_CAST, span, format!("`{from}` cannot be cast to `{to}`"))
                        .with_label(format!("no cast from `{from}` to `{to}`"));
                if let Some(help) = self.conversion(&e, target) {
                    found = found.with_help(help);
                }
                self.report(found);
                return Expr { kind: ExprKind::Unknown, ty: target, span };
            }
        };
        result.span = span;
        result
    }

    fn explicit_cast(&mut self, e: Expr, target: Ty) -> Result<Expr, Expr> {
        if e.ty == target {
            let castable = self.is_value_type(target)
                || matches!(self.kind(target), TyKind::Int | TyKind::String | TyKind::MatchKind);
            return if castable { Ok(e) } else { Err(e) };
        }
        let allowed = match (self.kind(e.ty), self.kind(target)) {
            (TyKind::Int, TyKind::Bits(_) | TyKind::SignedBits(_)) => return self.convert(e, target),
            (TyKind::Int, TyKind::Bool) => match &e.kind {
                ExprKind::Int(v) => *v == BigInt::ZERO || *v == BigInt::from(1),
                _ => true,
            },
            (TyKind::Bits(1), TyKind::Bool) | (TyKind::Bool, TyKind::Bits(1)) => true,
            (TyKind::Bits(_), TyKind::Bits(_)) | (TyKind::SignedBits(_), TyKind::SignedBits(_)) => true,
            (TyKind::Bits(w), TyKind::SignedBits(v)) | (TyKind::SignedBits(w), TyKind::Bits(v)) => w == v,
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Int) => true,
            (TyKind::New(id), _) if self.hir.types.new_types[id].base == target => true,
            (_, TyKind::New(id)) => {
                let base = self.hir.types.new_types[id].base;
                let e = if e.ty == base { e } else { self.explicit_step(e, base)? };
                return Ok(self.cast_to(e, target));
            }
            (TyKind::New(id), _) => {
                let base = self.hir.types.new_types[id].base;
                if !matches!(self.kind(base), TyKind::New(_)) {
                    return Err(e);
                }
                let inner = self.cast_to(e, base);
                return self.explicit_cast(inner, target);
            }
            (TyKind::Enum(id), _) if self.hir.types.enums[id].repr.is_some() => {
                let e = self.without_enum(e);
                return self.explicit_cast(e, target);
            }
            (_, TyKind::Enum(id)) => match self.hir.types.enums[id].repr {
                Some(repr) => {
                    let e = self.convert(e, repr)?;
                    return Ok(self.cast_to(e, target));
                }
                None => false,
            },
            _ => return self.convert(e, target),
        };
        if !allowed {
            return Err(e);
        }
        Ok(self.cast_to(e, target))
    }

    /// A conversion on the way to a new type's base: implied, or one level of the same.
    fn explicit_step(&mut self, e: Expr, base: Ty) -> Result<Expr, Expr> {
        match (self.kind(e.ty), self.kind(base)) {
            (TyKind::Int, TyKind::Bool) | (_, TyKind::New(_)) => self.explicit_cast(e, base),
            _ => self.convert(e, base),
        }
    }

    /// A cast that is known to be defined.
    fn cast_to(&mut self, e: Expr, ty: Ty) -> Expr {
        let cast = Expr { span: e.span, ty, kind: ExprKind::Cast(Box::new(e)) };
        self.fold(cast)
    }
}
