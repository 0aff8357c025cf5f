//! The entries that tables start with.

use millrace_pipeline::{self as ir, Bits, EntryMatch, MatchKind};
use millrace_sema::hir::{self, Entry, KeySet};
use num_traits::ToPrimitive;

use crate::action::BoundAction;
use crate::code::Code;
use crate::fail::{Lower, code, fail, internal};
use crate::names::is_called;

impl<'a> Code<'_, 'a> {
    /// The initial entries of a table.
    pub(crate) fn entries(
        &mut self,
        table: &'a hir::Table,
        lowered: &ir::Table,
        actions: &[BoundAction],
    ) -> Lower<Vec<ir::TableEntry>> {
        let priorities = self.priorities(table)?;
        let mut entries = Vec::with_capacity(table.entries.len());
        for (entry, priority) in table.entries.iter().zip(priorities) {
            let call = self.action_call(&entry.action, actions)?;
            entries.push(ir::TableEntry {
                matches: self.entry_matches(table, lowered, entry)?,
                priority,
                call,
                is_const: entry.is_const || table.const_entries,
            });
        }
        Ok(entries)
    }

    /// The order of entries: in the IR the largest wins. Without priorities in the source the first wins.
    fn priorities(&mut self, table: &'a hir::Table) -> Lower<Vec<u32>> {
        // Where at most one entry can match, or the longest prefix decides, there is no order.
        let ordered =
            table.keys.iter().any(|k| matches!(k.match_kind.as_str(), "ternary" | "range" | "optional"));
        if !ordered {
            return Ok(vec![0; table.entries.len()]);
        }
        let n = table.entries.len() as u32;
        let mut given = Vec::with_capacity(table.entries.len());
        for entry in &table.entries {
            given.push(match &entry.priority {
                Some(priority) => {
                    let number = self.cx.constant_number(priority, self.scope())?;
                    match number.to_u32().filter(|p| *p < u32::MAX) {
                        Some(p) => Some(p),
                        None => {
                            return fail(
                                code::LIMIT,
                                priority.span,
                                format!("a priority is 0 to {}", u32::MAX - 1),
                            );
                        }
                    }
                }
                None => None,
            });
        }
        if table.const_entries
            && let Some(positions) = annotated_positions(&table.entries)
        {
            let last = positions.iter().copied().max().unwrap_or(0);
            return Ok(positions.into_iter().map(|position| last - position + 1).collect());
        }
        let largest = given.iter().flatten().copied().max().unwrap_or(0);
        Ok(given
            .into_iter()
            .enumerate()
            .map(|(i, given)| match given {
                Some(p) if table.largest_priority_wins => p,
                Some(p) => largest - p + 1,
                None => n - i as u32,
            })
            .collect())
    }

    fn entry_matches(
        &mut self,
        table: &'a hir::Table,
        lowered: &ir::Table,
        entry: &'a Entry,
    ) -> Lower<Vec<EntryMatch>> {
        let lone_any = table.keys.len() != 1 && matches!(entry.keysets.as_slice(), [KeySet::Any]);
        let mut matches = Vec::with_capacity(lowered.keys.len());
        let mut kinds = lowered.keys.iter().map(|k| k.kind);
        for (i, key) in table.keys.iter().enumerate() {
            if key.match_kind == "selector" {
                continue;
            }
            let Some(kind) = kinds.next() else { break };
            let keyset = if lone_any { Some(&KeySet::Any) } else { entry.keysets.get(i) };
            let Some(keyset) = keyset else { return internal(entry.span, "an entry with too few fields") };
            let found = match keyset {
                KeySet::Any => Found::Any,
                KeySet::Value(v) => Found::Value(self.entry_bits(key, v)?),
                KeySet::Mask(v, m) => Found::Mask(self.entry_bits(key, v)?, self.entry_bits(key, m)?),
                KeySet::Range(l, h) => Found::Range(self.entry_bits(key, l)?, self.entry_bits(key, h)?),
                KeySet::ValueSet(_) => return internal(entry.span, "a value set in an entry"),
            };
            let width = self.key_width(key);
            match entry_match(kind, found, width) {
                Ok(one) => matches.push(one),
                Err(message) => return fail(code::PLACE, entry.span, message),
            }
        }
        Ok(matches)
    }

    fn entry_bits(&mut self, key: &hir::Key, expr: &'a hir::Expr) -> Lower<Bits> {
        let width = self.key_width(key);
        let value = self.cx.must_be_constant(expr, self.scope())?;
        let bits = match &value {
            millrace_sema::Constant::Int(number) => Some(Bits::from_bigint(width, number)),
            other => self.cx.constant_bits(other, expr.ty).map(|b| b.zero_extend(width)),
        };
        Ok(bits.unwrap_or_else(|| Bits::zero(width)))
    }
}

/// The positions of entries in their order when `@priority(n)` gives some of them another than their own: the smallest
/// position wins. The annotation is bmv2's, from before the language had priorities.
fn annotated_positions(entries: &[Entry]) -> Option<Vec<u32>> {
    let annotated = |entry: &Entry| {
        let annotation = entry.annotations.iter().find(|a| is_called(a, "priority"))?;
        annotation.integer()?.to_u32().filter(|p| *p < u32::MAX)
    };
    let positions: Vec<Option<u32>> = entries.iter().map(annotated).collect();
    if positions.iter().all(Option::is_none) {
        return None;
    }
    Some(positions.into_iter().enumerate().map(|(i, position)| position.unwrap_or(i as u32 + 1)).collect())
}

/// What an entry says about a key.
enum Found {
    Any,
    Value(Bits),
    Mask(Bits, Bits),
    Range(Bits, Bits),
}

fn entry_match(kind: MatchKind, found: Found, width: u32) -> Result<EntryMatch, String> {
    Ok(match (kind, found) {
        (MatchKind::Exact, Found::Value(v)) => EntryMatch::Exact(v),
        (MatchKind::Exact, Found::Mask(v, m)) if m.is_ones() => EntryMatch::Exact(v),
        (MatchKind::Exact, Found::Range(l, h)) if l == h => EntryMatch::Exact(l),
        (MatchKind::Lpm, Found::Any) => EntryMatch::Lpm(Bits::zero(width), 0),
        (MatchKind::Lpm, Found::Value(v)) => EntryMatch::Lpm(v, width),
        (MatchKind::Lpm, Found::Mask(v, m)) => match prefix_length(&m) {
            Some(length) => EntryMatch::Lpm(v.and(&m), length),
            None => return Err("the mask of an `lpm` key must be ones followed by zeros".into()),
        },
        (MatchKind::Ternary, Found::Any) => EntryMatch::Ternary(Bits::zero(width), Bits::zero(width)),
        (MatchKind::Ternary, Found::Value(v)) => EntryMatch::Ternary(v, Bits::ones(width)),
        (MatchKind::Ternary, Found::Mask(v, m)) => EntryMatch::Ternary(v.and(&m), m),
        (MatchKind::Range, Found::Any) => EntryMatch::Range(Bits::zero(width), Bits::ones(width)),
        (MatchKind::Range, Found::Value(v)) => EntryMatch::Range(v.clone(), v),
        (MatchKind::Range, Found::Range(l, h)) if l.cmp_unsigned(&h).is_le() => EntryMatch::Range(l, h),
        (MatchKind::Range, Found::Range(..)) => return Err("this range is empty".into()),
        (MatchKind::Optional, Found::Any) => EntryMatch::Optional(None),
        (MatchKind::Optional, Found::Value(v)) => EntryMatch::Optional(Some(v)),
        (MatchKind::Optional, Found::Mask(v, m)) if m.is_ones() => EntryMatch::Optional(Some(v)),
        (MatchKind::Optional, Found::Mask(_, m)) if m.is_zero() => EntryMatch::Optional(None),
        (MatchKind::Exact, _) => return Err("an `exact` key needs a value".into()),
        (MatchKind::Lpm, _) => return Err("an `lpm` key needs a value with a mask".into()),
        (MatchKind::Ternary, _) => return Err("a `ternary` key needs a value with a mask".into()),
        (MatchKind::Range, _) => return Err("a `range` key needs a range".into()),
        (MatchKind::Optional, _) => return Err("an `optional` key needs a value or `_`".into()),
    })
}

/// The number of leading ones, if only zeros follow.
fn prefix_length(mask: &Bits) -> Option<u32> {
    let width = mask.width();
    let ones = (0..width).rev().take_while(|i| mask.bit(*i)).count() as u32;
    (0..width - ones).all(|i| !mask.bit(i)).then_some(ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_prefixes_or_not() {
        assert_eq!(prefix_length(&Bits::new(8, 0xf0)), Some(4));
        assert_eq!(prefix_length(&Bits::new(8, 0)), Some(0));
        assert_eq!(prefix_length(&Bits::new(8, 0xff)), Some(8));
        assert_eq!(prefix_length(&Bits::new(8, 0xf1)), None);
    }

    #[test]
    fn what_each_kind_takes() {
        let v = || Bits::new(8, 0x5a);
        assert_eq!(entry_match(MatchKind::Lpm, Found::Any, 8), Ok(EntryMatch::Lpm(Bits::zero(8), 0)));
        assert_eq!(
            entry_match(MatchKind::Ternary, Found::Mask(v(), Bits::new(8, 0x0f)), 8),
            Ok(EntryMatch::Ternary(Bits::new(8, 0x0a), Bits::new(8, 0x0f)))
        );
        assert_eq!(entry_match(MatchKind::Range, Found::Value(v()), 8), Ok(EntryMatch::Range(v(), v())));
        assert!(entry_match(MatchKind::Exact, Found::Any, 8).is_err());
    }
}
