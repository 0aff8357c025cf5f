//! What is remembered while code is generated along one path.

use super::emitter::Emitter;
use super::fields::{Base, ones};
use super::values::{Num, Val};
use super::variables::Var;
use cranelift_codegen::ir::{InstBuilder, Value};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;

/// Values that stand for something else on the current path: memory, variables, sums. Whoever changes that, or comes to a
/// block to which several paths lead, forgets the values here; forgetting is always right.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// What was loaded, by address and size.
    pub(super) loads: FxHashMap<(Base, u32, u32), Value>,
    /// Values of variables that are kept in memory, by their places in the frame.
    pub(super) kept: FxHashMap<u32, Value>,
    /// Values of slots that have variables.
    pub(super) values: FxHashMap<SlotId, Val>,
    /// Sums of words of the packet, kept up to date.
    pub(super) sums: Vec<Sum>,
    /// What numbers are at least, after a comparison.
    pub(super) least: FxHashMap<Value, u64>,
}

/// A sum of words of the packet as they lie there, which stores to them keep up to date: what a checksum over them was
/// verified with is most of what the new checksum is computed from.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    /// The words: what they belong to, where they are, how many bytes they have.
    pub(super) words: Vec<(Base, u32, u32)>,
    pub(super) total: Value,
}

impl Sum {
    /// Whether words of it belong there.
    pub(super) fn is_of(&self, base: Base) -> bool {
        self.words.iter().any(|(own, _, _)| *own == base)
    }
}

impl Cache {
    /// How many values it holds.
    pub(super) fn values(&self) -> usize {
        self.loads.len() + self.kept.len() + self.values.len() + self.least.len()
    }

    /// The packet has changed.
    pub(super) fn forget_packet(&mut self) {
        self.loads.clear();
        self.sums.clear();
    }

    /// What a variable has depends on the path.
    pub(super) fn forget_var(&mut self, var: Var) {
        if let Var::Kept(_, at) = var {
            self.kept.remove(&at);
        }
    }

    /// What was loaded from there lies elsewhere.
    pub(super) fn forget(&mut self, base: Base) {
        self.loads.retain(|(other, _, _), _| *other != base);
        self.sums.retain(|sum| !sum.is_of(base));
    }

    /// Whether a number is known to be at least a constant.
    pub(super) fn is_at_least(&self, value: Value, constant: &Num) -> bool {
        let least = self.least.get(&value).copied().unwrap_or(0);
        constant.as_const().and_then(Bits::to_u64).is_some_and(|constant| constant <= least)
    }

    /// Bytes of the packet were stored: sums over them change by the difference, or are forgotten, as is what was loaded
    /// there. What belongs to another header may be the same bytes.
    pub(super) fn stored(&mut self, e: &mut Emitter<'_>, base: Base, offset: u32, size: u32, value: Value) {
        let loads = &mut self.loads;
        self.sums.retain_mut(|sum| {
            let overlaps = |(other, at, bytes): &&(Base, u32, u32)| {
                *other != base || (*at < offset + size && offset < *at + *bytes)
            };
            let mut hit = sum.words.iter().filter(overlaps);
            let Some((other, at, bytes)) = hit.next().copied() else { return true };
            let inside = other == base && at <= offset && offset + size <= at + bytes;
            if hit.next().is_some() || !inside {
                return false;
            }
            let above = 8 * (offset - at);
            let old = match loads.get(&(base, offset, size)).copied() {
                Some(old) => old,
                None => match loads.get(&(base, at, bytes)).copied() {
                    Some(word) => {
                        let low = e.shr(word, above);
                        e.and(low, ones(8 * size))
                    }
                    None => return false,
                },
            };
            let clean = e.widths.get(&value).is_some_and(|bits| *bits <= 8 * size);
            let new = if clean { value } else { e.and(value, ones(8 * size)) };
            let (old, new) = (e.shl(old, above), e.shl(new, above));
            let without = e.ins().isub(sum.total, old);
            sum.total = e.ins().iadd(without, new);
            true
        });
        let overlaps = |other: u32, bytes: u32| other < offset + size && offset < other + bytes;
        loads.retain(|(whose, other, bytes), _| *whose == base && !overlaps(*other, *bytes));
    }
}
