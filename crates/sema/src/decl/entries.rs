//! Tables: initial entries and their priorities (specification, "Entries").

use super::keyset::MatchedKey;
use super::properties::{Priorities, has};
use crate::check::Checker;
use crate::codes;
use crate::hir::{self, Expr, ExprKind, KeySet, TableId, TyKind};
use foldhash::{HashMap, HashMapExt};
use millrace_syntax::ast;
use millrace_syntax::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

/// Most entries of a table among which covered ones are looked for.
const MAX_COVERED: usize = 1000;

impl<'a> Checker<'a> {
    /// `entries = { ... }`, `const entries = { ... }`.
    pub(super) fn table_entries(
        &mut self,
        id: TableId,
        property: &'a ast::TableProperty,
        list: &'a [ast::Entry],
        priorities: &Priorities,
    ) {
        self.hir.tables[id].const_entries = property.is_const;
        let keys: Vec<MatchedKey> =
            self.hir.tables[id].keys.iter().map(|k| (k.expr.ty, k.expr.span)).collect();
        if keys.is_empty() {
            if !list.is_empty() {
                let message = "a table without a key cannot have entries";
                self.error(codes::BAD_ENTRY, property.name.span, message);
            }
            return;
        }
        let mut entries: Vec<hir::Entry> = Vec::with_capacity(list.len());
        let mut written: Vec<Option<(BigInt, Span)>> = Vec::with_capacity(list.len());
        for entry in list {
            self.check_annotations(&entry.annotations);
            let priority = entry.priority.as_ref().and_then(|p| {
                let value = self.constant_integer(p, "a priority")?;
                Some((value, p.span))
            });
            let keysets = self.keysets(&entry.keyset, &keys, true);
            let keysets = keysets.filter(|k| self.check_match_kinds(id, k, entry.keyset.span));
            let Some(action) = self.entry_action(id, entry) else { continue };
            let Some(keysets) = keysets else { continue };
            written.push(priority);
            entries.push(hir::Entry {
                keysets,
                action,
                priority: None,
                is_const: entry.is_const,
                annotations: entry.annotations.clone().into(),
                span: entry.span,
            });
        }
        self.check_duplicate_keys(id, &entries);
        let prefixes_decide =
            self.hir.tables[id].keys.iter().all(|k| matches!(k.match_kind.as_str(), "exact" | "lpm"));
        if !prefixes_decide && written.iter().all(Option::is_none) {
            self.warn_covered(&entries);
        }
        self.assign_priorities(id, property, &mut entries, &written, priorities);
        self.hir.tables[id].entries = entries;
    }

    /// Reports entries with one key, in tables where nothing could choose between them.
    fn check_duplicate_keys(&mut self, id: TableId, entries: &[hir::Entry]) {
        let keys = &self.hir.tables[id].keys;
        if !keys.iter().all(|k| matches!(k.match_kind.as_str(), "exact" | "lpm")) {
            return;
        }
        let mut seen: HashMap<String, Span> = HashMap::new();
        for entry in entries {
            let shown: Option<Vec<String>> = entry.keysets.iter().map(shape).collect();
            let Some(shown) = shown else { continue };
            if let Some(earlier) = seen.insert(shown.join(","), entry.span) {
                self.report(
                    Diagnostic::error(codes::BAD_ENTRY, entry.span, "another entry has the same key")
                        .with_secondary(earlier, "this one"),
                );
            }
        }
    }

    /// Warns about entries that one above them leaves nothing to match. The list is the order of precedence.
    fn warn_covered(&mut self, entries: &[hir::Entry]) {
        let bits: Vec<Option<Vec<(BigInt, BigInt)>>> =
            entries.iter().take(MAX_COVERED).map(|e| e.keysets.iter().map(matched_bits).collect()).collect();
        for (i, inner) in bits.iter().enumerate() {
            let Some(inner) = inner else { continue };
            let covers = |outer: &&Option<Vec<(BigInt, BigInt)>>| {
                outer.as_ref().is_some_and(|outer| {
                    outer.len() == inner.len() && outer.iter().zip(inner).all(|(o, i)| is_within(i, o))
                })
            };
            if let Some(above) = bits[..i].iter().position(|outer| covers(&outer)) {
                let (span, earlier) = (entries[i].span, entries[above].span);
                let message = "this entry is never matched: one above it matches all that it does";
                self.report(
                    Diagnostic::warning(codes::UNREACHABLE, span, message)
                        .with_secondary(earlier, "this one"),
                );
            }
        }
    }

    /// Reports sets that a key's match kind does not know. Match kinds of architectures may know all.
    fn check_match_kinds(&mut self, id: TableId, keysets: &[KeySet], span: Span) -> bool {
        let keys = &self.hir.tables[id].keys;
        for (key, keyset) in keys.iter().zip(keysets) {
            let kind = key.match_kind.as_str();
            let at = match keyset {
                KeySet::Value(e) | KeySet::Mask(e, _) | KeySet::Range(e, _) => e.span,
                KeySet::Any | KeySet::ValueSet(_) => span,
            };
            let problem = match keyset {
                KeySet::Mask(..) if matches!(kind, "optional" | "range") => "a mask",
                KeySet::Range(..) if matches!(kind, "exact" | "optional" | "lpm" | "ternary") => "a range",
                KeySet::ValueSet(_) => "a value set",
                KeySet::Mask(_, mask) if kind == "lpm" && !self.is_prefix(mask) => {
                    let message = "the mask of a longest-prefix key must be ones followed by zeros";
                    self.error(codes::BAD_ENTRY, at, message);
                    return false;
                }
                _ => continue,
            };
            let message = format!("{problem} cannot match a key of the kind `{kind}`");
            self.error(codes::BAD_ENTRY, at, message);
            return false;
        }
        for keyset in keysets {
            if let KeySet::Mask(value, mask) = keyset {
                self.warn_unmatched_bits(value, mask);
            }
        }
        true
    }

    /// Bits of a value that its mask leaves out are not matched, and P4Runtime wants them to be 0.
    fn warn_unmatched_bits(&mut self, value: &Expr, mask: &Expr) {
        if let (ExprKind::Int(bits), ExprKind::Int(kept)) = (&value.kind, &mask.kind)
            && bits & kept != *bits
            && !bits.is_negative()
            && !kept.is_negative()
        {
            let message = format!("the mask leaves out bits of {bits}: it matches as {}", bits & kept);
            self.warn(codes::OVERFLOW, value.span, message);
        }
    }

    /// Whether a mask keeps a number of high bits; of one that is not known yet, perhaps.
    fn is_prefix(&self, mask: &Expr) -> bool {
        let ExprKind::Int(value) = &mask.kind else { return true };
        let kind = crate::constant::representation(&self.hir, mask.ty).clone();
        let (TyKind::Bits(width) | TyKind::SignedBits(width)) = kind else { return true };
        let ones = crate::constant::wrap(value, &TyKind::Bits(width));
        let gap = (BigInt::from(1) << width) - 1 - ones;
        (&gap + 1u32) & &gap == BigInt::ZERO
    }

    fn entry_action(&mut self, id: TableId, entry: &'a ast::Entry) -> Option<hir::ActionRef> {
        let listed = self.listed_action(id, &entry.action.action, entry.action.span)?;
        if has(&listed.annotations, "defaultonly") {
            let message = "an action marked `@defaultonly` cannot be in an entry";
            self.error(codes::NOT_IN_ACTIONS, entry.action.span, message);
        }
        let args = self.full_args(&listed, entry.action.args.as_deref().unwrap_or(&[]), entry.action.span)?;
        Some(hir::ActionRef {
            action: listed.action,
            args,
            annotations: entry.action.annotations.clone().into(),
            span: entry.action.span,
        })
    }

    /// Gives every entry its priority, where the table's match kinds need one.
    fn assign_priorities(
        &mut self,
        id: TableId,
        property: &'a ast::TableProperty,
        entries: &mut [hir::Entry],
        written: &[Option<(BigInt, Span)>],
        priorities: &Priorities,
    ) {
        let table = &self.hir.tables[id];
        let largest_wins = table.largest_priority_wins;
        let matters = table.keys.iter().any(|k| !matches!(k.match_kind.as_str(), "exact" | "lpm"));
        let first_written = written.iter().flatten().next().map(|(_, span)| *span);
        if !matters {
            if let Some(span) = first_written {
                let message = "entries of a table with exact and longest-prefix keys only have no priorities";
                self.error(codes::BAD_PRIORITY, span, message);
            }
            return;
        }
        if let Some(span) = first_written
            && written.first().is_some_and(Option::is_none)
        {
            let at = entries.first().map_or(span, |e| e.span);
            self.report(
                Diagnostic::error(
                    codes::BAD_PRIORITY,
                    at,
                    "the first entry needs a priority when others have one",
                )
                .with_secondary(span, "this one has"),
            );
            return;
        }
        let count = BigInt::from(entries.len());
        let mut next = match first_written {
            None if largest_wins => (count - 1) * &priorities.delta + 1,
            _ => BigInt::from(1),
        };
        let mut values: Vec<(BigInt, Span)> = Vec::with_capacity(entries.len());
        for (entry, written) in entries.iter().zip(written) {
            if let Some((value, _)) = written {
                next = value.clone();
            }
            values.push((next.clone(), written.as_ref().map_or(entry.span, |(_, s)| *s)));
            if largest_wins {
                next -= &priorities.delta;
            } else {
                next += &priorities.delta;
            }
        }
        for (value, span) in &values {
            if value.is_negative() || value.to_i32().is_none() {
                let message = format!(
                    "the priority {} is out of bounds: it must be between 0 and {}",
                    crate::wording::number(value),
                    i32::MAX
                );
                self.error(codes::BAD_PRIORITY, *span, message);
                return;
            }
        }
        if first_written.is_some() {
            self.warn_about_order(property, &values, largest_wins);
        }
        let ty = self.intern(TyKind::Int);
        for (entry, (value, span)) in entries.iter_mut().zip(values) {
            entry.priority = Some(Expr { kind: ExprKind::Int(value), ty, span });
        }
    }

    fn warn_about_order(
        &mut self,
        property: &'a ast::TableProperty,
        values: &[(BigInt, Span)],
        largest_wins: bool,
    ) {
        let silenced = |what: &str| {
            property
                .annotations
                .iter()
                .any(|a| a.name.as_str() == "noWarn" && a.string().is_some_and(|s| s == what))
        };
        if !silenced("duplicate_priorities") {
            let mut seen: HashMap<&BigInt, Span> = Default::default();
            for (value, span) in values {
                if let Some(earlier) = seen.insert(value, *span) {
                    self.report(
                        Diagnostic::warning(
                            codes::PRIORITY_ORDER,
                            *span,
                            format!("two entries have the priority {value}"),
                        )
                        .with_secondary(earlier, "the other one"),
                    );
                }
            }
        }
        if !silenced("entries_out_of_priority_order") {
            for pair in values.windows(2) {
                let [(a, _), (b, span)] = pair else { continue };
                if (largest_wins && a < b) || (!largest_wins && a > b) {
                    let message = "this entry is matched before the one above it";
                    self.warn(codes::PRIORITY_ORDER, *span, message);
                }
            }
        }
    }
}

/// The bits that a set of literals wants and those that it looks at; none for ranges and what is not known yet.
fn matched_bits(keyset: &KeySet) -> Option<(BigInt, BigInt)> {
    match keyset {
        KeySet::Any => Some((BigInt::ZERO, BigInt::ZERO)),
        KeySet::Value(Expr { kind: ExprKind::Int(value), .. }) => Some((value.clone(), BigInt::from(-1))),
        KeySet::Mask(value, mask) => match (&value.kind, &mask.kind) {
            (ExprKind::Int(value), ExprKind::Int(mask)) => Some((value & mask, mask.clone())),
            _ => None,
        },
        KeySet::Value(_) | KeySet::Range(..) | KeySet::ValueSet(_) => None,
    }
}

/// Whether a set matches only what another matches, too.
fn is_within((value, mask): &(BigInt, BigInt), (other_value, other_mask): &(BigInt, BigInt)) -> bool {
    mask & other_mask == *other_mask && value & other_mask == *other_value
}

/// A set of literals in a form that equal sets share.
fn shape(keyset: &KeySet) -> Option<String> {
    let literal = |e: &Expr| match &e.kind {
        ExprKind::Int(value) => Some(value.to_string()),
        ExprKind::Bool(value) => Some(value.to_string()),
        ExprKind::EnumMember(index) => Some(format!("member {index}")),
        ExprKind::ErrorMember(index) => Some(format!("error {index}")),
        _ => None,
    };
    match keyset {
        KeySet::Any => Some("_".into()),
        KeySet::Value(e) => literal(e),
        KeySet::Mask(e, m) => match (&e.kind, &m.kind) {
            (ExprKind::Int(value), ExprKind::Int(mask)) => Some(format!("{}/{mask}", value & mask)),
            _ => None,
        },
        KeySet::Range(..) | KeySet::ValueSet(_) => None,
    }
}
