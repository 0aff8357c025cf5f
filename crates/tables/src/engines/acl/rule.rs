//! Rules, and what they ask of each dimension of the key.

use crate::heap;
use std::cmp::Reverse;

/// Widest dimension in bits.
const WIDEST: u32 = 32;

/// A condition on one dimension is kept exactly up to so many intervals, and checked against the rule beyond.
const MOST_INTERVALS: u32 = 128;

/// Which rule comes first: the larger priority, and among equals the smaller serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(Reverse<u32>, u64);

impl Order {
    /// After every rule.
    pub(super) const LAST: Order = Order(Reverse(0), u64::MAX);

    /// The place of a rule of this priority (the larger wins) and serial (the smaller wins).
    pub fn new(priority: u32, serial: u64) -> Order {
        Order(Reverse(priority), serial)
    }
}

/// What a rule asks of one field, in limbs of the field's own width. Limbs that are not there are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Equal to the value in the bits of the mask.
    Masked {
        /// The value.
        value: Vec<u64>,
        /// The mask.
        mask: Vec<u64>,
    },
    /// Between two values, both included.
    Range {
        /// The low end.
        low: Vec<u64>,
        /// The high end.
        high: Vec<u64>,
    },
}

/// A rule as blocks use it.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) order: Order,
    pub(super) result: u32,
    /// For each dimension, the intervals (both ends included, none touching another) that it accepts, or more than
    /// it accepts if not `exact`.
    pub(super) intervals: Vec<Vec<(u32, u32)>>,
    /// The intervals say all.
    pub(super) exact: bool,
    /// Limb-wise over the whole key, and ranges by offset and width.
    value: Vec<u64>,
    mask: Vec<u64>,
    ranges: Vec<(u32, u32, Vec<u64>, Vec<u64>)>,
}

/// A piece of a key that rules are looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Its place among the dimensions.
    pub(super) number: usize,
    field: usize,
    /// The offset of its lowest bit in the field, and its width.
    offset: u32,
    width: u32,
    /// Where to load eight bytes of a key, and how to bring the value down.
    pub(super) byte: u32,
    pub(super) shift: u32,
    pub(super) mask: u32,
}

/// Cuts fields of these offsets and widths into dimensions.
pub(super) fn dimensions(fields: &[(u32, u32)], limbs: usize) -> Vec<Dimension> {
    let mut dimensions = Vec::new();
    for (field, &(start, width)) in fields.iter().enumerate() {
        // Whole words from the top, as prefixes and ranges are best cut by their leading bits.
        let mut top = width;
        while top > 0 {
            let width = top.min(WIDEST);
            top -= width;
            let bit = start + top;
            let byte = (bit / 8).min(limbs as u32 * 8 - 8);
            dimensions.push(Dimension {
                number: dimensions.len(),
                field,
                offset: top,
                width,
                byte,
                shift: bit - 8 * byte,
                mask: ones(width),
            });
        }
    }
    dimensions
}

fn ones(width: u32) -> u32 {
    if width >= 32 { u32::MAX } else { (1 << width) - 1 }
}

/// Bits `offset..offset + width` of a number in limbs; `width` is at most 64.
fn bits(limbs: &[u64], offset: u32, width: u32) -> u64 {
    let (limb, shift) = (offset as usize / 64, offset % 64);
    let at = |limb: usize| limbs.get(limb).copied().unwrap_or(0);
    let value = at(limb) >> shift | if shift == 0 { 0 } else { at(limb + 1) << (64 - shift) };
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// Sets bits from `offset` on, which are clear, to those of a value.
fn place(limbs: &mut [u64], offset: u32, value: u64) {
    let (limb, shift) = (offset as usize / 64, offset % 64);
    limbs[limb] |= value << shift;
    if shift > 0 && value >> (64 - shift) != 0 {
        limbs[limb + 1] |= value >> (64 - shift);
    }
}

impl Dimension {
    /// The largest value.
    pub(super) fn highest(&self) -> u32 {
        self.mask
    }

    fn of(&self, limbs: &[u64]) -> u32 {
        bits(limbs, self.offset, self.width) as u32
    }

    /// The intervals that a condition leaves, and whether they say all.
    fn intervals(&self, condition: &Condition) -> (Vec<(u32, u32)>, bool) {
        match condition {
            Condition::Masked { value, mask } => {
                let mask = self.of(mask);
                masked(self.of(value) & mask, mask, self.mask)
            }
            Condition::Range { low, high } => {
                let above = self.offset + self.width;
                let same_above = (above..)
                    .step_by(32)
                    .take(low.len().max(high.len()) * 2)
                    .all(|offset| bits(low, offset, 32) == bits(high, offset, 32));
                if same_above {
                    // Below the first dimension that differs, the ends must be checked unless they are round.
                    let low_end = self.of(low);
                    let high_end = self.of(high);
                    (if low_end <= high_end { vec![(low_end, high_end)] } else { vec![] }, true)
                } else {
                    (vec![(0, self.mask)], self.of(low) == 0 && self.of(high) == self.mask)
                }
            }
        }
    }
}

/// The intervals of a masked value, or one that contains them all.
fn masked(value: u32, mask: u32, all: u32) -> (Vec<(u32, u32)>, bool) {
    // Below the lowest bit that counts every value is fine; each free bit above doubles the intervals.
    let low = if mask == 0 { all } else { all & !(!0 << mask.trailing_zeros()) };
    let free = all & !mask & !low;
    if free.count_ones() < 32 && 1u32 << free.count_ones() <= MOST_INTERVALS {
        let mut intervals = Vec::with_capacity(1 << free.count_ones());
        let mut part = 0u32;
        loop {
            intervals.push((value | part, value | part | low));
            // The next subset of the free bits, in rising order.
            part = part.wrapping_sub(free) & free;
            if part == 0 {
                return (intervals, true);
            }
        }
    }
    // The leading bits that all count.
    let free_top = 31 - free.leading_zeros();
    let under = if free_top >= 31 { u32::MAX } else { (1 << (free_top + 1)) - 1 };
    (vec![(value & !under, (value | under) & all)], false)
}

impl Rule {
    pub(super) fn new(
        order: Order,
        conditions: &[Condition],
        fields: &[(u32, u32)],
        dimensions: &[Dimension],
        limbs: usize,
        result: u32,
    ) -> Rule {
        let (mut intervals, mut exact) = (Vec::with_capacity(dimensions.len()), true);
        for dimension in dimensions {
            let (kept, says_all) = dimension.intervals(&conditions[dimension.field]);
            exact &= says_all;
            intervals.push(kept);
        }
        let (value, mask) = (vec![0; limbs], vec![0; limbs]);
        let mut rule = Rule { order, result, intervals, exact, value, mask, ranges: vec![] };
        for (condition, &(offset, width)) in conditions.iter().zip(fields) {
            match condition {
                Condition::Masked { value, mask } => {
                    for start in (0..width).step_by(64) {
                        let count = (width - start).min(64);
                        let cares = bits(mask, start, count);
                        place(&mut rule.mask, offset + start, cares);
                        place(&mut rule.value, offset + start, bits(value, start, count) & cares);
                    }
                }
                Condition::Range { low, high } => {
                    rule.ranges.push((offset, width, low.clone(), high.clone()));
                }
            }
        }
        rule
    }

    /// Whether a key matches.
    pub(super) fn accepts(&self, key: &[u64]) -> bool {
        key.iter().zip(&self.mask).zip(&self.value).all(|((key, mask), value)| key & mask == *value)
            && self.ranges.iter().all(|(offset, width, low, high)| {
                let words = width.div_ceil(64);
                let piece = |limbs: &[u64], start: u32, word: u32| {
                    bits(limbs, start + 64 * word, (width - 64 * word).min(64))
                };
                let value = || (0..words).rev().map(|word| piece(key, *offset, word));
                value().ge((0..words).rev().map(|word| piece(low, 0, word)))
                    && value().le((0..words).rev().map(|word| piece(high, 0, word)))
            })
    }

    pub(super) fn bytes(&self) -> usize {
        let intervals: usize = self.intervals.iter().map(|kept| 24 + kept.capacity() * 8).sum();
        let ranges: usize = self.ranges.iter().map(|(.., low, high)| 56 + (low.len() + high.len()) * 8).sum();
        size_of::<Rule>() + intervals + (self.value.len() + self.mask.len()) * 8 + ranges
    }

    /// Bytes of memory, each vector a piece of its own.
    pub(super) fn memory_bytes(&self) -> usize {
        let piece = |bytes: usize| heap::piece(bytes);
        let limbs = |limbs: &Vec<u64>| piece(limbs.capacity() * 8);
        let intervals: usize = self.intervals.iter().map(|kept| piece(kept.capacity() * 8)).sum();
        let ranges: usize = self.ranges.iter().map(|(.., low, high)| limbs(low) + limbs(high)).sum();
        let shared = piece(2 * size_of::<usize>() + size_of::<Rule>());
        let of_intervals = piece(self.intervals.capacity() * size_of::<Vec<(u32, u32)>>());
        let of_ranges = piece(self.ranges.capacity() * size_of::<(u32, u32, Vec<u64>, Vec<u64>)>());
        shared + of_intervals + intervals + of_ranges + ranges + limbs(&self.value) + limbs(&self.mask)
    }

    /// Whether the rule accepts every value of a dimension.
    pub(super) fn is_free(&self, dimension: &Dimension) -> bool {
        self.intervals[dimension.number] == [(0, dimension.highest())]
    }

    /// The hull of what the rule accepts in a dimension; of nothing, the value 0.
    pub(super) fn hull(&self, dimension: &Dimension) -> (u32, u32) {
        let kept = &self.intervals[dimension.number];
        let low = kept.iter().map(|interval| interval.0).min().unwrap_or(0);
        (low, kept.iter().map(|interval| interval.1).max().unwrap_or(0))
    }
}
