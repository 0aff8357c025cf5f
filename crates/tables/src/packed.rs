//! Matches of a whole key, packed to be compared with packed keys byte by byte.

use crate::key::{FieldMatch, KeySchema, keep_prefix};

/// The canonical matches of one entry over a packed key. Equal exactly when the canonical matches are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PackedMatch {
    /// What the masked key must be equal to. Zero where a range is.
    pub(crate) value: Box<[u8]>,
    /// The bits that count. Zero where a range is.
    pub(crate) mask: Box<[u8]>,
    /// The ranges, in order of the fields.
    pub(crate) ranges: Box<[PackedRange]>,
    /// The prefix length of the last lpm field, 0 without one.
    pub(crate) prefix_len: u32,
}

/// A range over one field of a packed key. Big-endian values of one length compare as byte strings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PackedRange {
    pub(crate) offset: usize,
    pub(crate) low: Box<[u8]>,
    pub(crate) high: Box<[u8]>,
}

impl PackedMatch {
    /// Packs canonical matches ([`KeySchema::canonical`]).
    pub(crate) fn new(schema: &KeySchema, matches: &[FieldMatch]) -> PackedMatch {
        let mut value = vec![0; schema.stride()];
        let mut mask = vec![0; schema.stride()];
        let mut ranges = Vec::new();
        let mut longest = 0;
        for ((offset, field), given) in schema.layout().zip(matches) {
            let place = offset..offset + field.bytes();
            match given {
                FieldMatch::Exact(exact) | FieldMatch::Optional(Some(exact)) => {
                    value[place.clone()].copy_from_slice(exact);
                    mask[place].copy_from_slice(&field.all_ones());
                }
                FieldMatch::Optional(None) => {}
                FieldMatch::Lpm { value: prefix, prefix_len } => {
                    value[place.clone()].copy_from_slice(prefix);
                    mask[place.clone()].copy_from_slice(&field.all_ones());
                    keep_prefix(&mut mask[place], field.width, *prefix_len);
                    longest = *prefix_len;
                }
                FieldMatch::Ternary { value: bits, mask: care } => {
                    value[place.clone()].copy_from_slice(bits);
                    mask[place].copy_from_slice(care);
                }
                FieldMatch::Range { low, high } => ranges.push(PackedRange {
                    offset,
                    low: low.as_slice().into(),
                    high: high.as_slice().into(),
                }),
            }
        }
        PackedMatch { value: value.into(), mask: mask.into(), ranges: ranges.into(), prefix_len: longest }
    }

    /// Whether a packed key of the same schema matches.
    pub(crate) fn accepts(&self, key: &[u8]) -> bool {
        let masked = key.iter().zip(&self.mask).zip(&self.value);
        masked.into_iter().all(|((byte, mask), value)| byte & mask == *value)
            && self.ranges.iter().all(|range| {
                let field = &key[range.offset..range.offset + range.low.len()];
                *range.low <= *field && *field <= *range.high
            })
    }
}
