//! The parts of a key that address the memories of a unit which compares all entries.
//!
//! A memory has a word for each value of its part of the key, with a bit for each entry: whether the entry's test of that part holds. An
//! entry matches when its tests of all parts hold. Fields that are compared under a mask are cut anywhere, also across the ends of fields.
//!
//! A range of a field that is one part is one test. A wider one has tests for both of its ends, which are put together as one compares
//! numbers digit by digit: `x >= low` is `above(high digit) or (at(high digit) and x >= low of the digits after it)`. So a range takes two to
//! four bits for each digit, and one entry always; as prefixes it would be up to 2w - 2 entries for a field of w bits.

use millrace_pipeline::{Bits, EntryMatch, MatchKind};

/// Bits of a part that addresses a block memory of 512 words: the bank is the ninth.
pub(super) const BLOCK_BITS: u32 = 8;
/// Bits of a part that addresses lookup tables of 32 words.
pub(super) const TABLE_BITS: u32 = 4;

/// A part of the key, and what is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// Its lowest bit in the key.
    pub low: u32,
    /// Its bits.
    pub bits: u32,
    /// The test.
    pub test: Test,
}

/// What is tested of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Equal under a mask.
    Masked,
    /// In the range.
    Within,
    /// Greater than this digit of the lowest value.
    Above,
    /// Equal to this digit of the lowest value.
    AtLow,
    /// Less than this digit of the highest value.
    Below,
    /// Equal to this digit of the highest value.
    AtHigh,
    /// Not less than the last digit of the lowest value.
    NotBelow,
    /// Not greater than the last digit of the highest value.
    NotAbove,
}

/// The parts of a key, the highest bits first.
pub(super) fn slices(fields: &[(u32, MatchKind)], block: bool) -> Vec<Slice> {
    let most = if block { BLOCK_BITS } else { TABLE_BITS };
    let mut slices = Vec::new();
    let mut end: u32 = fields.iter().map(|(width, _)| width).sum();
    // Bits of fields under masks that come one after the other.
    let mut masked = 0;
    for (width, kind) in fields {
        if *kind != MatchKind::Range {
            masked += width;
            end -= width;
            continue;
        }
        cut(end, std::mem::take(&mut masked), most, |low, bits| {
            slices.push(Slice { low, bits, test: Test::Masked })
        });
        end -= width;
        if *width <= most {
            slices.push(Slice { low: end, bits: *width, test: Test::Within });
            continue;
        }
        cut(end, *width, most, |low, bits| {
            let tests: &[Test] = match low == end {
                true => &[Test::NotBelow, Test::NotAbove],
                false => &[Test::Above, Test::AtLow, Test::Below, Test::AtHigh],
            };
            slices.extend(tests.iter().map(|test| Slice { low, bits, test: *test }));
        });
    }
    cut(end, masked, most, |low, bits| slices.push(Slice { low, bits, test: Test::Masked }));
    slices
}

/// Cuts so many bits from `low` on into parts, the highest first.
fn cut(low: u32, width: u32, most: u32, mut part: impl FnMut(u32, u32)) {
    let mut end = low + width;
    while end > low {
        let bits = most.min(end - low);
        end -= bits;
        part(end, bits);
    }
}

/// What an entry wants of a key: for fields under a mask value and mask, for ranges the lowest and the highest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) value: Bits,
    pub(super) mask: Bits,
}

impl Wanted {
    /// Of the matches of an entry.
    pub(super) fn of(fields: &[(u32, MatchKind)], matches: &[EntryMatch]) -> Option<Wanted> {
        let (mut values, mut masks): (Option<Bits>, Option<Bits>) = (None, None);
        for ((width, kind), field) in fields.iter().zip(matches) {
            let ones = Bits::ones(*width);
            let (value, mask) = match field {
                // A value where ranges are wanted is the range of it alone.
                EntryMatch::Exact(value) if *kind == MatchKind::Range => (value.clone(), value.clone()),
                EntryMatch::Exact(value) => (value.clone(), ones),
                EntryMatch::Lpm(value, length) => {
                    let mask = ones.shl_by(u64::from(width.saturating_sub(*length)));
                    (value.and(&mask), mask)
                }
                EntryMatch::Ternary(value, mask) => (value.and(mask), mask.clone()),
                EntryMatch::Range(low, high) => (low.clone(), high.clone()),
                EntryMatch::Optional(Some(value)) => (value.clone(), ones),
                EntryMatch::Optional(None) => (Bits::zero(*width), Bits::zero(*width)),
            };
            values = Some(values.map_or(value.clone(), |high| high.concat(&value)));
            masks = Some(masks.map_or(mask.clone(), |high| high.concat(&mask)));
        }
        Some(Wanted { value: values?, mask: masks? })
    }

    /// The value and the mask, or the ends of the range, of a part.
    fn part(&self, slice: Slice) -> (u64, u64) {
        let of = |bits: &Bits| bits.slice(slice.low + slice.bits - 1, slice.low).to_u64_saturating();
        (of(&self.value), of(&self.mask))
    }

    /// The values of a part for which its test holds.
    pub(super) fn rows(&self, slice: Slice) -> impl Iterator<Item = u64> + use<> {
        let (value, mask) = self.part(slice);
        (0..1 << slice.bits).filter(move |row: &u64| match slice.test {
            Test::Masked => (row ^ value) & mask == 0,
            Test::Within => (value..=mask).contains(row),
            Test::Above => *row > value,
            Test::AtLow => *row == value,
            Test::Below => *row < mask,
            Test::AtHigh => *row == mask,
            Test::NotBelow => *row >= value,
            Test::NotAbove => *row <= mask,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cut_across_fields_but_not_across_ranges() {
        use MatchKind::*;
        let fields = [(12, Ternary), (6, Exact), (16, Range), (8, Range), (5, Lpm)];
        let cut: Vec<(u32, u32, Test)> =
            slices(&fields, true).iter().map(|slice| (slice.low, slice.bits, slice.test)).collect();
        let wanted = [
            (39, 8, Test::Masked),
            (31, 8, Test::Masked),
            (29, 2, Test::Masked),
            (21, 8, Test::Above),
            (21, 8, Test::AtLow),
            (21, 8, Test::Below),
            (21, 8, Test::AtHigh),
            (13, 8, Test::NotBelow),
            (13, 8, Test::NotAbove),
            (5, 8, Test::Within),
            (0, 5, Test::Masked),
        ];
        assert_eq!(cut, wanted);
    }
}
