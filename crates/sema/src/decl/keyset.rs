//! Sets of values in select cases and table entries (specification, "Operations on sets").

use crate::check::Checker;
use crate::codes;
use crate::expr::Why;
use crate::hir::{Expr, ExprKind, KeySet, Ty, TyKind};
use crate::wording::count;
use millrace_syntax::Diagnostic;
use millrace_syntax::Span;
use millrace_syntax::ast::{self, Keyset, KeysetKind};

/// Most keys that a finding points at.
const MAX_KEYS_SHOWN: usize = 4;

/// A key that a set of values is for: its type and its place.
pub(crate) type MatchedKey = (Ty, Span);

impl<'a> Checker<'a> {
    /// One set for each key; a lone set may stand for all. `constant`: only values known at compile time.
    pub(crate) fn keysets(
        &mut self,
        keyset: &'a Keyset,
        keys: &[MatchedKey],
        constant: bool,
    ) -> Option<Vec<KeySet>> {
        match &keyset.kind {
            KeysetKind::Default | KeysetKind::DontCare => Some(vec![KeySet::Any]),
            KeysetKind::Tuple(members) => {
                if members.len() != keys.len() {
                    self.wrong_count(members.len(), keys, keyset.span);
                    return None;
                }
                members.iter().zip(keys).map(|(m, &key)| self.keyset(m, key, constant)).collect()
            }
            KeysetKind::Value(value) => self.value_keysets(value, keys, constant),
            _ => match keys {
                [key] => self.keyset(keyset, *key, constant).map(|k| vec![k]),
                _ => {
                    self.wrong_count(1, keys, keyset.span);
                    None
                }
            },
        }
    }

    fn wrong_count(&mut self, have: usize, keys: &[MatchedKey], span: Span) {
        let (sets, wanted) =
            (count(have, "set of values", "sets of values"), count(keys.len(), "key", "keys"));
        let verb = if have == 1 { "is" } else { "are" };
        let mut found =
            Diagnostic::error(codes::BAD_KEYSET, span, format!("{sets} {verb} given for {wanted}"));
        for &(ty, at) in keys.iter().take(MAX_KEYS_SHOWN) {
            let shown = self.show(ty);
            found = found.with_secondary(at, format!("a key, `{shown}`"));
        }
        self.report(found);
    }

    /// A value that stands for all keys: one value, a value set, or a tuple of values.
    fn value_keysets(
        &mut self,
        value: &'a ast::Expr,
        keys: &[MatchedKey],
        constant: bool,
    ) -> Option<Vec<KeySet>> {
        let types: Vec<Ty> = keys.iter().map(|(ty, _)| *ty).collect();
        let types = types.as_slice();
        let wanted = match types {
            [ty] => *ty,
            _ => self.intern(TyKind::Tuple(types.to_vec())),
        };
        let value = match (&value.kind, types) {
            // A product of one set.
            (ast::ExprKind::List(elements), [ty])
                if elements.len() == 1 && !matches!(self.kind(*ty), TyKind::Tuple(_) | TyKind::Struct(_)) =>
            {
                &elements[0]
            }
            _ => value,
        };
        let checked = self.check_expr(value, Some(wanted));
        if let TyKind::ValueSet(element) = self.kind(checked.ty) {
            return self.value_set_keyset(checked, element, types).map(|k| vec![k]);
        }
        if let [key] = keys {
            return self.value_keyset(checked, *key, constant).map(|k| vec![k]);
        }
        if self.is_unknown(checked.ty) {
            return None;
        }
        let Some(members) = self.members_of(&checked).filter(|m| m.len() == types.len()) else {
            self.wrong_count(1, keys, value.span);
            return None;
        };
        members.into_iter().zip(keys).map(|(m, &key)| self.value_keyset(m, key, constant)).collect()
    }

    fn value_set_keyset(&mut self, set: Expr, element: Ty, types: &[Ty]) -> Option<KeySet> {
        let fits = match self.kind(element) {
            TyKind::Struct(_) | TyKind::Tuple(_) => {
                let mut leaves = Vec::new();
                self.leaves(element, &mut leaves);
                leaves == types || types == [element]
            }
            _ => types == [element],
        };
        if !fits && !self.is_unknown(element) && !types.iter().any(|&t| self.is_unknown(t)) {
            let have = self.show(element);
            let want: Vec<String> = types.iter().map(|&t| self.show(t)).collect();
            let message = format!("a value set over `{have}` cannot match keys of `{}`", want.join(", "));
            self.error(codes::BAD_KEYSET, set.span, message);
            return None;
        }
        match set.kind {
            ExprKind::Instance(id) => Some(KeySet::ValueSet(id)),
            _ => None,
        }
    }

    /// The types of the innermost members of structs and tuples, in order.
    fn leaves(&self, ty: Ty, out: &mut Vec<Ty>) {
        match self.kind(ty) {
            TyKind::Struct(id) => {
                self.hir.types.structs[id].fields.iter().for_each(|f| self.leaves(f.ty, out))
            }
            TyKind::Tuple(parts) => parts.into_iter().for_each(|t| self.leaves(t, out)),
            _ => out.push(ty),
        }
    }

    /// The set that one key is matched against.
    fn keyset(&mut self, keyset: &'a Keyset, key: MatchedKey, constant: bool) -> Option<KeySet> {
        let ty = key.0;
        match &keyset.kind {
            KeysetKind::Default | KeysetKind::DontCare => Some(KeySet::Any),
            KeysetKind::Value(value) => {
                let checked = self.check_expr(value, Some(ty));
                if let TyKind::ValueSet(element) = self.kind(checked.ty) {
                    return self.value_set_keyset(checked, element, &[ty]);
                }
                self.value_keyset(checked, key, constant)
            }
            KeysetKind::Mask(value, mask) => {
                let value = self.set_bound(value, key, true)?;
                let mask = self.set_bound(mask, key, true)?;
                let numeric = matches!(
                    self.number_kind(ty),
                    TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Bool | TyKind::Unknown | TyKind::Var(_)
                );
                if !numeric {
                    let shown = self.show(ty);
                    let message = format!("`&&&` is not defined on `{shown}`");
                    self.error(codes::BAD_OPERANDS, keyset.span, message);
                    return None;
                }
                Some(KeySet::Mask(value, mask))
            }
            KeysetKind::Range(low, high) => {
                let low = self.set_bound(low, key, true)?;
                let high = self.set_bound(high, key, true)?;
                let numeric = matches!(
                    self.number_kind(ty),
                    TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Unknown | TyKind::Var(_)
                );
                if !numeric {
                    let shown = self.show(ty);
                    self.error(codes::BAD_OPERANDS, keyset.span, format!("`..` is not defined on `{shown}`"));
                    return None;
                }
                if let (ExprKind::Int(a), ExprKind::Int(b)) = (&low.kind, &high.kind)
                    && a > b
                {
                    self.warn(codes::UNREACHABLE, keyset.span, format!("the range {a} .. {b} is empty"));
                }
                Some(KeySet::Range(low, high))
            }
            KeysetKind::Tuple(members) => {
                self.wrong_count(members.len(), &[key], keyset.span);
                None
            }
        }
    }

    /// The number type that a key's type stands for.
    fn number_kind(&self, ty: Ty) -> TyKind {
        match self.kind(ty) {
            TyKind::New(id) => self.number_kind(self.hir.types.new_types[id].base),
            TyKind::Enum(id) => match self.hir.types.enums[id].repr {
                Some(repr) => self.number_kind(repr),
                None => self.kind(ty),
            },
            kind => kind,
        }
    }

    /// An end of a range or one side of a mask.
    fn set_bound(&mut self, e: &'a ast::Expr, key: MatchedKey, constant: bool) -> Option<Expr> {
        let checked = self.check_expr(e, Some(key.0));
        match self.value_keyset(checked, key, constant)? {
            KeySet::Value(e) => Some(e),
            _ => None,
        }
    }

    fn value_keyset(&mut self, value: Expr, key: MatchedKey, constant: bool) -> Option<KeySet> {
        if self.is_unknown(value.ty) {
            return None;
        }
        let value = match self.convert(value, key.0) {
            Ok(value) => value,
            Err(value) => self.as_key_value(value, key)?,
        };
        if has_call(&value) {
            self.error(codes::CALL_NOT_ALLOWED, value.span, "nothing can be called in a set of values");
            return None;
        }
        if constant && !self.is_known(&value) {
            self.report(
                Diagnostic::error(codes::NOT_CONSTANT, value.span, "this must be known at compile time")
                    .with_label("its value is not known at compile time"),
            );
            return None;
        }
        Some(KeySet::Value(value))
    }

    /// Values of a representation stand for those of an enumeration or a new type: masks and ranges need them.
    fn as_key_value(&mut self, value: Expr, (ty, at): MatchedKey) -> Option<Expr> {
        let base = match self.kind(ty) {
            TyKind::Enum(id) => self.hir.types.enums[id].repr,
            TyKind::New(id) => Some(self.hir.types.new_types[id].base),
            _ => None,
        };
        let Some(base) = base else {
            self.mismatch(&value, ty, Why::Key(at));
            return None;
        };
        match self.convert(value, base) {
            Ok(value) => {
                let cast = Expr { span: value.span, ty, kind: ExprKind::Cast(Box::new(value)) };
                Some(self.fold(cast))
            }
            Err(value) => {
                self.mismatch(&value, ty, Why::Key(at));
                None
            }
        }
    }
}

/// Whether evaluating an expression calls something.
pub(crate) fn has_call(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call(_) | ExprKind::TableHit(_) | ExprKind::TableMiss(_) => true,
        ExprKind::Field(a, _)
        | ExprKind::Slice(a, _, _)
        | ExprKind::Unary(_, a)
        | ExprKind::Cast(a)
        | ExprKind::IsValid(a) => has_call(a),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => has_call(a) || has_call(b),
        ExprKind::Mux(a, b, c) => has_call(a) || has_call(b) || has_call(c),
        ExprKind::Aggregate(members) | ExprKind::StackLiteral(members) => members.iter().any(has_call),
        ExprKind::InTurn(_) => true,
        _ => false,
    }
}
