//! Between the IR's values and the packed bytes of the tables.

use millrace_pipeline::{Bits, EntryMatch, MatchKind, Unit};
use millrace_tables::{self as tables, CounterKind, FieldMatch, MeterUnit};

pub(crate) fn match_kind(kind: MatchKind) -> tables::MatchKind {
    match kind {
        MatchKind::Exact => tables::MatchKind::Exact,
        MatchKind::Lpm => tables::MatchKind::Lpm,
        MatchKind::Ternary => tables::MatchKind::Ternary,
        MatchKind::Range => tables::MatchKind::Range,
        MatchKind::Optional => tables::MatchKind::Optional,
    }
}

pub(crate) fn counter_kind(unit: Unit) -> CounterKind {
    match unit {
        Unit::Packets => CounterKind::Packets,
        Unit::Bytes => CounterKind::Bytes,
        // A program whose counters are accounts is refused.
        Unit::PacketsAndBytes | Unit::Account => CounterKind::Both,
    }
}

pub(crate) fn meter_unit(unit: Unit) -> MeterUnit {
    match unit {
        Unit::Packets => MeterUnit::Packets,
        Unit::Bytes | Unit::PacketsAndBytes => MeterUnit::Bytes,
        Unit::Account => MeterUnit::Account,
    }
}

/// The values one after another, each in whole bytes.
pub(crate) fn pack(values: &[Bits]) -> Vec<u8> {
    if let [one] = values {
        return one.to_bytes();
    }
    // As much memory as they take: entries keep it.
    let mut packed = Vec::with_capacity(values.iter().map(|value| value.width().div_ceil(8) as usize).sum());
    values.iter().for_each(|value| packed.extend(value.to_bytes()));
    packed
}

/// The reverse of [`pack`] for values of these widths.
pub(crate) fn unpack(widths: &[u32], mut bytes: &[u8]) -> Vec<Bits> {
    let mut values = Vec::with_capacity(widths.len());
    for width in widths {
        let (value, rest) = bytes.split_at((width.div_ceil(8) as usize).min(bytes.len()));
        values.push(Bits::from_bytes(*width, value));
        bytes = rest;
    }
    values
}

pub(crate) fn field_match(given: &EntryMatch) -> FieldMatch {
    match given {
        EntryMatch::Exact(value) => FieldMatch::Exact(value.to_bytes()),
        EntryMatch::Lpm(value, prefix_len) => {
            FieldMatch::Lpm { value: value.to_bytes(), prefix_len: *prefix_len }
        }
        EntryMatch::Ternary(value, mask) => {
            FieldMatch::Ternary { value: value.to_bytes(), mask: mask.to_bytes() }
        }
        EntryMatch::Range(low, high) => FieldMatch::Range { low: low.to_bytes(), high: high.to_bytes() },
        EntryMatch::Optional(value) => FieldMatch::Optional(value.as_ref().map(Bits::to_bytes)),
    }
}

pub(crate) fn entry_match(width: u32, kept: &FieldMatch) -> EntryMatch {
    let bits = |bytes: &[u8]| Bits::from_bytes(width, bytes);
    match kept {
        FieldMatch::Exact(value) => EntryMatch::Exact(bits(value)),
        FieldMatch::Lpm { value, prefix_len } => EntryMatch::Lpm(bits(value), *prefix_len),
        FieldMatch::Ternary { value, mask } => EntryMatch::Ternary(bits(value), bits(mask)),
        FieldMatch::Range { low, high } => EntryMatch::Range(bits(low), bits(high)),
        FieldMatch::Optional(value) => EntryMatch::Optional(value.as_deref().map(bits)),
    }
}

/// The values that a match names, to check their widths.
pub(crate) fn match_values(given: &EntryMatch) -> impl Iterator<Item = &Bits> {
    let (first, second) = match given {
        EntryMatch::Exact(value) | EntryMatch::Lpm(value, _) => (Some(value), None),
        EntryMatch::Ternary(a, b) | EntryMatch::Range(a, b) => (Some(a), Some(b)),
        EntryMatch::Optional(value) => (value.as_ref(), None),
    };
    first.into_iter().chain(second)
}

/// The limbs of a register cell, the least significant first.
pub(crate) fn limbs(value: &Bits) -> Vec<u64> {
    let bytes = value.to_bytes();
    bytes.rchunks(8).map(|chunk| chunk.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte))).collect()
}

/// The reverse of [`limbs`].
pub(crate) fn from_limbs(width: u32, limbs: &[u64]) -> Bits {
    let bytes: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    Bits::from_bytes(width, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_packed_in_whole_bytes_and_come_back() {
        let values = [Bits::new(9, 0x1ff), Bits::new(32, 0x0a000001), Bits::new(1, 1)];
        let packed = pack(&values);
        assert_eq!(packed, [0x01, 0xff, 0x0a, 0, 0, 1, 1]);
        assert_eq!(unpack(&[9, 32, 1], &packed), values);
    }

    #[test]
    fn too_few_bytes_unpack_to_zeroes() {
        assert_eq!(unpack(&[8, 16], &[7]), [Bits::new(8, 7), Bits::zero(16)]);
    }

    #[test]
    fn limbs_are_little_endian() {
        let value = Bits::new(100, 0x0000_000f_1111_2222_3333_4444_5555_6666);
        assert_eq!(limbs(&value), [0x3333_4444_5555_6666, 0xf_1111_2222]);
        assert_eq!(from_limbs(100, &limbs(&value)), value);
        assert_eq!(from_limbs(4, &[0xff]), Bits::new(4, 0xf));
    }
}
