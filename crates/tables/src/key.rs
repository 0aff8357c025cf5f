//! Keys: how a table's key is laid out in bytes, and what an entry says about each field of it.

use crate::error::{SpecError, TableError};
use crate::limits::{MAX_KEY_BYTES, MAX_KEY_FIELDS};

/// How one key field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The value is equal.
    Exact,
    /// The leading bits are equal; the longest prefix wins.
    Lpm,
    /// The bits under a mask are equal.
    Ternary,
    /// The value lies between two ends, both included.
    Range,
    /// The value is equal, or the entry does not care.
    Optional,
}

impl MatchKind {
    /// The name of the kind, as P4 and the messages spell it.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
        }
    }

    /// Whether entries can overlap without one containing the other, so that they need a priority.
    pub fn needs_priority(self) -> bool {
        matches!(self, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional)
    }
}

/// One field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyField {
    /// Width in bits. A field of 0 bits takes no byte and always has the same value.
    pub width: u32,
    /// How it is matched.
    pub kind: MatchKind,
}

impl KeyField {
    /// Bytes that a value of this field takes in a packed key.
    pub fn bytes(&self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// The match that accepts every value: `None` for an exact field, which has no such match.
    pub fn any(&self) -> Option<FieldMatch> {
        let zero = || vec![0; self.bytes()];
        match self.kind {
            MatchKind::Exact => None,
            MatchKind::Lpm => Some(FieldMatch::Lpm { value: zero(), prefix_len: 0 }),
            MatchKind::Ternary => Some(FieldMatch::Ternary { value: zero(), mask: zero() }),
            MatchKind::Range => Some(FieldMatch::Range { low: zero(), high: self.all_ones() }),
            MatchKind::Optional => Some(FieldMatch::Optional(None)),
        }
    }

    /// The largest value of this field.
    pub(crate) fn all_ones(&self) -> Vec<u8> {
        let mut ones = vec![0xff; self.bytes()];
        if let Some(first) = ones.first_mut() {
            *first = self.first_byte_mask();
        }
        ones
    }

    fn first_byte_mask(&self) -> u8 {
        match self.width % 8 {
            0 => 0xff,
            used => (1u8 << used) - 1,
        }
    }

    fn fits(&self, value: &[u8]) -> bool {
        value.len() == self.bytes() && value.first().is_none_or(|first| first & !self.first_byte_mask() == 0)
    }
}

/// The layout of a key: its fields in order. Widths and number are within the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema {
    fields: Box<[KeyField]>,
    offsets: Box<[usize]>,
    stride: usize,
}

impl KeySchema {
    /// Lays out a key. No fields at all is fine: such a table always misses.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] above [`MAX_KEY_FIELDS`] or [`MAX_KEY_BYTES`].
    pub fn new(fields: Vec<KeyField>) -> Result<KeySchema, SpecError> {
        if fields.len() > MAX_KEY_FIELDS {
            return Err(SpecError::TooLarge {
                what: "the number of key fields",
                asked: fields.len() as u64,
                limit: MAX_KEY_FIELDS as u64,
            });
        }
        let mut offsets = Vec::with_capacity(fields.len());
        let mut stride = 0usize;
        for field in &fields {
            offsets.push(stride);
            stride = stride.saturating_add(field.bytes());
        }
        if stride > MAX_KEY_BYTES {
            return Err(SpecError::TooLarge {
                what: "the length of the key in bytes",
                asked: stride as u64,
                limit: MAX_KEY_BYTES as u64,
            });
        }
        Ok(KeySchema { fields: fields.into(), offsets: offsets.into(), stride })
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Bytes of one packed key.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Where field `field` starts in a packed key, in bytes; `None` when there is no such field.
    pub fn offset(&self, field: usize) -> Option<usize> {
        self.offsets.get(field).copied()
    }

    /// The fields with their byte offsets.
    pub(crate) fn layout(&self) -> impl Iterator<Item = (usize, &KeyField)> {
        self.offsets.iter().copied().zip(self.fields.iter())
    }

    /// Whether entries carry a priority: some field is ternary, range or optional.
    pub fn needs_priority(&self) -> bool {
        self.fields.iter().any(|field| field.kind.needs_priority())
    }

    /// Checks the matches of an entry against the key and brings them to canonical form: each of its field's own
    /// kind, no value bits outside a mask or beyond a prefix. Canonical matches are equal exactly when they
    /// accept the same keys in the same way.
    ///
    /// # Errors
    /// Every shape error of [`TableError`]: count, kind, width, prefix, range.
    pub fn canonical(&self, matches: &[FieldMatch]) -> Result<Vec<FieldMatch>, TableError> {
        self.make_canonical(matches.to_vec())
    }

    /// [`KeySchema::canonical`] in place.
    pub(crate) fn make_canonical(&self, matches: Vec<FieldMatch>) -> Result<Vec<FieldMatch>, TableError> {
        if matches.len() != self.fields.len() {
            return Err(TableError::WrongFieldCount { expected: self.fields.len(), found: matches.len() });
        }
        matches
            .into_iter()
            .zip(&self.fields)
            .enumerate()
            .map(|(index, (given, field))| canonical_field(index, field, given))
            .collect()
    }
}

/// What an entry asks of one key field. Values are as the crate's documentation says.
///
/// [`FieldMatch::Exact`] is accepted for a field of any kind and means a full prefix, a full mask, a range of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldMatch {
    /// Equal to the value.
    Exact(Vec<u8>),
    /// Equal in the first `prefix_len` bits, counted from the most significant bit of the field's width.
    Lpm {
        /// The prefix; bits beyond its length are ignored.
        value: Vec<u8>,
        /// The length in bits, 0 to the width.
        prefix_len: u32,
    },
    /// Equal in the bits set in the mask.
    Ternary {
        /// The value; bits outside the mask are ignored.
        value: Vec<u8>,
        /// The mask.
        mask: Vec<u8>,
    },
    /// Between two values, both included.
    Range {
        /// The low end.
        low: Vec<u8>,
        /// The high end.
        high: Vec<u8>,
    },
    /// Equal to the value, or anything.
    Optional(Option<Vec<u8>>),
}

impl FieldMatch {
    fn kind_name(&self) -> &'static str {
        match self {
            FieldMatch::Exact(_) => "exact",
            FieldMatch::Lpm { .. } => "lpm",
            FieldMatch::Ternary { .. } => "ternary",
            FieldMatch::Range { .. } => "range",
            FieldMatch::Optional(_) => "optional",
        }
    }
}

fn canonical_field(index: usize, field: &KeyField, given: FieldMatch) -> Result<FieldMatch, TableError> {
    let fit = |value: Vec<u8>| {
        if field.fits(&value) {
            Ok(value)
        } else {
            Err(TableError::WrongWidth { field: index, width: field.width, found_bytes: value.len() })
        }
    };
    match (field.kind, given) {
        (MatchKind::Exact, FieldMatch::Exact(value)) => Ok(FieldMatch::Exact(fit(value)?)),
        (MatchKind::Lpm, FieldMatch::Exact(value)) => {
            Ok(FieldMatch::Lpm { value: fit(value)?, prefix_len: field.width })
        }
        (MatchKind::Ternary, FieldMatch::Exact(value)) => {
            Ok(FieldMatch::Ternary { value: fit(value)?, mask: field.all_ones() })
        }
        (MatchKind::Range, FieldMatch::Exact(value)) => {
            let low = fit(value)?;
            Ok(FieldMatch::Range { high: low.clone(), low })
        }
        (MatchKind::Optional, FieldMatch::Exact(value)) => Ok(FieldMatch::Optional(Some(fit(value)?))),
        (MatchKind::Lpm, FieldMatch::Lpm { value, prefix_len }) => {
            let mut value = fit(value)?;
            if prefix_len > field.width {
                return Err(TableError::BadPrefix { field: index, width: field.width, prefix_len });
            }
            keep_prefix(&mut value, field.width, prefix_len);
            Ok(FieldMatch::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, FieldMatch::Ternary { value, mask }) => {
            let (mut value, mask) = (fit(value)?, fit(mask)?);
            value.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte &= mask);
            Ok(FieldMatch::Ternary { value, mask })
        }
        (MatchKind::Range, FieldMatch::Range { low, high }) => {
            let (low, high) = (fit(low)?, fit(high)?);
            if low > high {
                return Err(TableError::EmptyRange { field: index });
            }
            Ok(FieldMatch::Range { low, high })
        }
        (MatchKind::Optional, FieldMatch::Optional(value)) => {
            Ok(FieldMatch::Optional(value.map(fit).transpose()?))
        }
        (kind, given) => {
            Err(TableError::WrongKind { field: index, expected: kind.name(), found: given.kind_name() })
        }
    }
}

/// Clears all bits of a `width`-bit value but the first `prefix_len`.
pub(crate) fn keep_prefix(value: &mut [u8], width: u32, prefix_len: u32) {
    // Bits of the last byte are counted from the right, so a width that is not a multiple of 8 needs no shift.
    let mut cleared = width.saturating_sub(prefix_len);
    for byte in value.iter_mut().rev() {
        if cleared >= 8 {
            *byte = 0;
            cleared -= 8;
        } else {
            *byte &= 0xffu8 << cleared;
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &[(u32, MatchKind)]) -> KeySchema {
        KeySchema::new(fields.iter().map(|&(width, kind)| KeyField { width, kind }).collect()).unwrap()
    }

    #[test]
    fn fields_are_packed_one_after_the_other_in_whole_bytes() {
        let key = schema(&[(9, MatchKind::Exact), (32, MatchKind::Lpm), (1, MatchKind::Exact)]);
        assert_eq!(key.stride(), 2 + 4 + 1);
        assert_eq!(
            (key.offset(0), key.offset(1), key.offset(2), key.offset(3)),
            (Some(0), Some(2), Some(6), None)
        );
    }

    #[test]
    fn limits_are_named() {
        let wide = KeySchema::new(vec![KeyField { width: u32::MAX, kind: MatchKind::Exact }; 3]).unwrap_err();
        assert!(wide.to_string().contains("the limit is 1024"), "{wide}");
        let many = KeySchema::new(vec![KeyField { width: 1, kind: MatchKind::Exact }; 257]).unwrap_err();
        assert!(many.to_string().contains("number of key fields is 257"), "{many}");
    }

    #[test]
    fn prefixes_of_odd_widths_count_from_the_top_bit_of_the_field() {
        // 12 bits: 0xabc with 6 bits kept is 0b101010_000000.
        let key = schema(&[(12, MatchKind::Lpm)]);
        let canonical = key.canonical(&[FieldMatch::Lpm { value: vec![0x0a, 0xbc], prefix_len: 6 }]).unwrap();
        assert_eq!(canonical, [FieldMatch::Lpm { value: vec![0x0a, 0x80], prefix_len: 6 }]);
        let none = key.canonical(&[FieldMatch::Lpm { value: vec![0x0a, 0xbc], prefix_len: 0 }]).unwrap();
        assert_eq!(none, [FieldMatch::Lpm { value: vec![0, 0], prefix_len: 0 }]);
    }

    #[test]
    fn shape_errors_say_what_is_wrong() {
        let key = schema(&[(9, MatchKind::Exact), (32, MatchKind::Lpm)]);
        let lpm = |value: &[u8], prefix_len| FieldMatch::Lpm { value: value.to_vec(), prefix_len };
        let exact = |value: &[u8]| FieldMatch::Exact(value.to_vec());
        let refuse = |matches: &[FieldMatch]| key.canonical(matches).unwrap_err();

        assert_eq!(refuse(&[exact(&[0, 1])]), TableError::WrongFieldCount { expected: 2, found: 1 });
        assert_eq!(
            refuse(&[exact(&[2, 0]), lpm(&[10, 0, 0, 0], 8)]),
            TableError::WrongWidth { field: 0, width: 9, found_bytes: 2 }
        );
        assert_eq!(
            refuse(&[exact(&[1]), lpm(&[10, 0, 0, 0], 8)]),
            TableError::WrongWidth { field: 0, width: 9, found_bytes: 1 }
        );
        assert_eq!(
            refuse(&[exact(&[1, 0]), lpm(&[10, 0, 0, 0], 33)]),
            TableError::BadPrefix { field: 1, width: 32, prefix_len: 33 }
        );
        assert_eq!(
            refuse(&[lpm(&[1, 0], 9), lpm(&[10, 0, 0, 0], 8)]),
            TableError::WrongKind { field: 0, expected: "exact", found: "lpm" }
        );
        let range = schema(&[(8, MatchKind::Range)]);
        assert_eq!(
            range.canonical(&[FieldMatch::Range { low: vec![5], high: vec![4] }]).unwrap_err(),
            TableError::EmptyRange { field: 0 }
        );
    }

    #[test]
    fn exact_is_accepted_for_every_kind_and_any_for_all_but_exact() {
        let kinds =
            [MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        for kind in kinds {
            let field = KeyField { width: 9, kind };
            let key = KeySchema::new(vec![field]).unwrap();
            let [canonical] = key.canonical(&[FieldMatch::Exact(vec![1, 2])]).unwrap().try_into().unwrap();
            assert_eq!(canonical.kind_name(), kind.name());
            match field.any() {
                Some(any) => assert_eq!(key.canonical(std::slice::from_ref(&any)).unwrap(), [any]),
                None => assert_eq!(kind, MatchKind::Exact),
            }
        }
    }
}
