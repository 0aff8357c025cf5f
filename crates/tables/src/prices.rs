//! What entries, members and groups count for, so that quotas can be kept: a list of prices.
//!
//! A price is what a thing takes at the most in usual use, with its part of the index that finds it, and the same for all things of one
//! kind. What the system really gives depends on how memory grows and on what shares what; a price does not, so that what fits can be
//! computed, and a write is refused before anything is done for it.

use crate::engines::{FIRST_BITS, MAX_DIR_BITS, MAX_DIRECT_BITS, SECTION_BITS};
use crate::key::{KeySchema, MatchKind};
use crate::meter::METER_BYTES;
use crate::profile::GroupMember;
use crate::table::TableSpec;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// What something counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Entries of tables, members of action profiles, members of groups. An empty group counts as one.
    pub entries: u64,
    /// Bytes of memory, by the list of prices.
    pub bytes: u64,
}

impl Held {
    /// That of one entry of so many bytes.
    pub fn one(bytes: u64) -> Held {
        Held { entries: 1, bytes }
    }

    /// Bytes without an entry.
    pub fn bytes(bytes: u64) -> Held {
        Held { entries: 0, bytes }
    }

    /// What is more than in another, of each.
    pub fn beyond(self, other: Held) -> Held {
        Held {
            entries: self.entries.saturating_sub(other.entries),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl Add for Held {
    type Output = Held;

    fn add(self, other: Held) -> Held {
        Held {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl Sub for Held {
    type Output = Held;

    fn sub(self, other: Held) -> Held {
        self.beyond(other)
    }
}

impl AddAssign for Held {
    fn add_assign(&mut self, other: Held) {
        *self = *self + other;
    }
}

impl Mul<u64> for Held {
    type Output = Held;

    fn mul(self, times: u64) -> Held {
        Held { entries: self.entries.saturating_mul(times), bytes: self.bytes.saturating_mul(times) }
    }
}

impl Sum for Held {
    fn sum<I: Iterator<Item = Held>>(all: I) -> Held {
        all.fold(Held::default(), Add::add)
    }
}

/// An entry next to its key and its arguments: its place in the order, its flags, that in the list of all entries, and what finds its
/// action, as if no other entry did the same.
const ENTRY: u64 = 160;
/// What an entry takes that is found by priority, and for each byte of its key.
const RANKED: u64 = 1024;
const RANKED_KEY: u64 = 64;
/// A direct counter.
const COUNTER: u64 = 32;
/// An idle timeout.
const TIMEOUT: u64 = 16;
/// A member of a value set next to its key.
const VALUE: u64 = 32;
/// A member of a profile next to its arguments.
const MEMBER: u64 = 128;
/// A member in each table that uses the profile, next to its record.
const OF_TABLE: u64 = 96;
/// A group without members.
const GROUP: u64 = 128;
/// A member of a group.
const OF_GROUP: u64 = 48;

/// Bytes of an entry next to its action's arguments: its key as control and as workers have it, the record of its action, and what
/// belongs to it alone.
pub(crate) fn entry_bytes(spec: &TableSpec) -> u64 {
    let bits: u64 = spec.schema.fields().iter().map(|field| u64::from(field.width)).sum();
    let key = bits.div_ceil(64) * 8;
    let own = [
        if spec.counter.is_some() { COUNTER } else { 0 },
        if spec.meter.is_some() { METER_BYTES } else { 0 },
        if spec.idle_timeout { TIMEOUT } else { 0 },
    ];
    let ranked = if spec.schema.needs_priority() { RANKED + RANKED_KEY * key } else { 0 };
    ENTRY + 4 * key + ranked + u64::from(spec.records.stride) + own.iter().sum::<u64>()
}

/// Bytes of the arrays that find entries, which a table of so many entries has also when it is empty.
pub fn index_bytes(schema: &KeySchema, size: u32) -> u64 {
    match index(schema, size) {
        Index::None => 0,
        Index::Direct { bits } => 4 << bits,
        Index::Prefixes { section: Some(_), .. } => 0,
        Index::Prefixes { first_bits, section: None, word, .. } => prefix_bytes(first_bits, word),
    }
}

/// Bytes of such arrays for each section that has prefixes: those that begin with the same six bits, of keys of at least 24. A prefix of
/// length 0 is in none. Those of all sections are the most that the arrays take, as memory of a section without prefixes is not used.
pub fn section_bytes(schema: &KeySchema, size: u32) -> u64 {
    match index(schema, size) {
        Index::Prefixes { section: Some(bits), word, .. } => prefix_bytes(bits, word),
        _ => 0,
    }
}

/// A word for each value of so many bits, and a bit for each prefix of at most as many.
fn prefix_bytes(bits: u32, word: u64) -> u64 {
    (word << bits) + (1 << bits) / 4
}

/// Bytes of the second array for the prefixes that begin like one.
pub(crate) fn group_bytes(schema: &KeySchema, size: u32) -> u64 {
    match index(schema, size) {
        Index::Prefixes { low, word, .. } if low > 0 => (word + 1) << low,
        _ => 0,
    }
}

enum Index {
    /// None of its own: what finds an entry is in the price of that.
    None,
    Direct {
        bits: u32,
    },
    /// Bits that the first array is indexed by, these within a section if it has several, and those of the second arrays; bytes of a
    /// word once all entries are there and each does something else.
    Prefixes {
        first_bits: u32,
        section: Option<u32>,
        low: u32,
        word: u64,
    },
}

fn index(schema: &KeySchema, size: u32) -> Index {
    let fields = schema.fields();
    let bits: u32 = fields.iter().map(|field| field.width).sum();
    let Some((last, rest)) = fields.split_last() else { return Index::None };
    let are_exact = rest.iter().all(|field| field.kind == MatchKind::Exact || field.width == 0);
    match last.kind {
        _ if bits == 0 || schema.needs_priority() || !are_exact => Index::None,
        MatchKind::Exact if bits <= MAX_DIRECT_BITS => Index::Direct { bits },
        MatchKind::Lpm if bits <= MAX_DIR_BITS => {
            let first_bits = bits.min(FIRST_BITS);
            let section = (first_bits == FIRST_BITS).then_some(FIRST_BITS - SECTION_BITS);
            let word = match size {
                ..0x7f => 1,
                0x7f..0x7fff => 2,
                _ => 4,
            };
            Index::Prefixes { first_bits, section, low: bits - first_bits, word }
        }
        _ => Index::None,
    }
}

/// What each member of a profile takes in the tables that use it, whose records are of these lengths.
pub(crate) fn in_tables(records: impl Iterator<Item = u32>) -> u64 {
    records.map(|bytes| OF_TABLE + u64::from(bytes)).sum()
}

/// What a member of a profile counts for, with arguments of so many bytes and what it takes in tables.
pub(crate) fn member(arguments: usize, in_tables: u64) -> Held {
    Held::one(MEMBER + in_tables + arguments as u64)
}

/// What a group with these members counts for.
pub fn group(members: &[GroupMember]) -> Held {
    let members = members.len() as u64;
    Held { entries: members.max(1), bytes: GROUP + OF_GROUP * members }
}

/// Bytes of a value set: of all the members that it may have.
pub fn value_set_bytes(schema: &KeySchema, size: u64) -> u64 {
    let bytes: u64 = schema.fields().iter().map(|field| u64::from(field.width.div_ceil(8))).sum();
    size.saturating_mul(VALUE + 2 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::Domain;
    use crate::entry::{EntrySpec, EntryTarget};
    use crate::key::{FieldMatch, KeyField};
    use crate::{ActionCall, Table};

    fn schema(fields: &[(u32, MatchKind)]) -> KeySchema {
        KeySchema::new(fields.iter().map(|&(width, kind)| KeyField { width, kind }).collect()).unwrap()
    }

    fn table(fields: &[(u32, MatchKind)], size: u32) -> Table {
        Table::new(TableSpec::new(schema(fields), size, ActionCall::new(0, [])), &Domain::new()).unwrap()
    }

    #[test]
    fn indices_have_the_prices_that_are_written_down() {
        const M: u64 = 1 << 20;
        let price = |fields: &[(u32, MatchKind)], size| index_bytes(&schema(fields), size);
        assert_eq!(price(&[(9, MatchKind::Exact)], 10), 4 * 512);
        assert_eq!(price(&[(17, MatchKind::Exact)], 10), 0);
        let sections = |size| section_bytes(&schema(&[(32, MatchKind::Lpm)]), size) << SECTION_BITS;
        assert_eq!([126, 127, 32766, 32767].map(sections), [20 * M, 36 * M, 36 * M, 68 * M]);
        assert_eq!(price(&[(32, MatchKind::Lpm)], 32767), 0);
        // A field before it is a part of the prefix.
        assert_eq!(price(&[(8, MatchKind::Exact), (12, MatchKind::Lpm)], 10), M + M / 4);
        assert_eq!(price(&[(33, MatchKind::Lpm)], 10) + price(&[(8, MatchKind::Ternary)], 10), 0);
        let group = |size| group_bytes(&schema(&[(32, MatchKind::Lpm)]), size);
        assert_eq!([group(10), group(1000), group(40000)], [512, 768, 1280]);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(METER_BYTES, 144, "docs/chassis.md tells it");
        }
    }

    /// Prefixes that begin like another one share its second array, until the last of them goes.
    #[test]
    fn second_arrays_count_once_for_all_that_share_them() {
        let mut table = table(&[(32, MatchKind::Lpm)], 100);
        let empty = table.held();
        let entry = |value: [u8; 4], prefix_len| {
            let matches = vec![FieldMatch::Lpm { value: value.to_vec(), prefix_len }];
            EntrySpec::new(matches, ActionCall::new(1, [1, 2, 3]))
        };
        let each = 160 + 4 * 8 + 8 + 3;
        let mut insert = |spec: EntrySpec, group: u64| {
            let (before, price) = (table.held(), table.price(&spec.matches, &spec.target));
            let index = table.insert(spec).unwrap();
            assert_eq!(price, Held::one(each + group));
            assert_eq!(table.held(), before + price);
            index
        };
        let section = 20 * (1 << 20) / 64;
        insert(entry([10, 0, 0, 0], 24), section);
        let first = insert(entry([10, 0, 0, 4], 32), 512);
        let second = insert(entry([10, 0, 0, 5], 32), 0);
        let third = insert(entry([10, 0, 1, 5], 32), 512);
        table.remove(first).unwrap();
        assert_eq!(table.held(), empty + Held::one(each) * 3 + Held::bytes(section + 2 * 512));
        table.remove(second).unwrap();
        assert_eq!(table.held(), empty + Held::one(each) * 2 + Held::bytes(section + 512));
        table.modify(third, EntryTarget::Action(ActionCall::new(1, []))).unwrap();
        assert_eq!(table.held(), empty + Held::one(each) * 2 + Held::bytes(section + 512 - 3));
        let taken = table.take(third).unwrap();
        table.put_back(taken).unwrap();
        table.clear();
        assert_eq!((table.held(), table.len()), (empty, 0));
    }

    /// A section counts while a prefix lies in it, a default route nowhere. All together count for the whole index.
    #[test]
    fn sections_count_while_prefixes_lie_in_them() {
        let mut table = table(&[(32, MatchKind::Lpm)], 1000);
        let (empty, section, each) = (table.held(), 36 * (1 << 20) / 64, 160 + 4 * 8 + 8);
        let mut held = vec![];
        for (value, prefix_len, sections) in [
            ([0, 0, 0, 0], 0, 0),
            ([10, 0, 0, 0], 24, 1),
            ([11, 255, 255, 0], 24, 0),
            ([12, 0, 0, 0], 7, 1),
            ([8, 0, 0, 0], 5, 0),
            ([192, 168, 0, 1], 32, 1),
            ([128, 0, 0, 0], 1, 31),
            ([0, 0, 0, 0], 1, 30),
        ] {
            let matches = vec![FieldMatch::Lpm { value: value.to_vec(), prefix_len }];
            let spec = EntrySpec::new(matches, ActionCall::new(1, []));
            let (before, price) = (table.held(), table.price(&spec.matches, &spec.target));
            let group = if prefix_len > 24 { 768 } else { 0 };
            assert_eq!(price, Held::one(each + sections * section + group), "{value:?}/{prefix_len}");
            held.push((before, table.insert(spec).unwrap()));
            assert_eq!(table.held(), before + price);
        }
        assert_eq!(table.held().bytes, 36 * (1 << 20) + 768 + 8 * each);
        for (before, index) in held.into_iter().rev() {
            table.remove(index).unwrap();
            assert_eq!(table.held(), before);
        }
        assert_eq!(table.held(), empty);
    }

    /// Prices are not far from what entries do take, of keys of all kinds: a quota of memory holds back what it is for.
    #[test]
    fn prices_are_about_what_entries_take() {
        use MatchKind::{Exact, Lpm, Range, Ternary};
        let count = if cfg!(miri) { 100 } else { 5000u32 };
        let mut wrong = Vec::new();
        for fields in [
            &[(48, Exact)][..],
            &[(48, Exact), (32, Exact)],
            &[(128, Exact), (128, Exact), (16, Exact)],
            &[(32, Lpm)],
            &[(128, Lpm)],
            &[(32, Ternary), (16, Range)],
            &[(128, Ternary), (128, Ternary), (16, Ternary)],
        ] {
            let mut table = table(fields, count);
            for number in 0..count {
                let value = |width: u32| {
                    let mut bytes = vec![0; width.div_ceil(8) as usize];
                    let spread = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
                    bytes.iter_mut().zip(spread).for_each(|(to, from)| *to = from);
                    bytes
                };
                let matches = fields.iter().map(|&(width, kind)| match kind {
                    Exact => FieldMatch::Exact(value(width)),
                    Lpm => FieldMatch::Lpm { value: value(width), prefix_len: width },
                    Range => FieldMatch::Range { low: value(width), high: vec![0xff; width as usize / 8] },
                    _ => FieldMatch::Ternary { value: value(width), mask: vec![0xff; width as usize / 8] },
                });
                let priority = if table.spec().schema.needs_priority() { number + 1 } else { 0 };
                let call = ActionCall::new(1, number.to_be_bytes());
                table.insert(EntrySpec::new(matches.collect(), call).with_priority(priority)).unwrap();
            }
            table.settle();
            let schema = &table.spec().schema;
            let index = index_bytes(schema, count) + (section_bytes(schema, count) << SECTION_BITS);
            let (price, takes) = (table.held().bytes, table.memory_bytes() as u64);
            let (price, takes) = (price - index, takes.saturating_sub(index));
            let per_cent = 100 * takes / price;
            if !(25..=175).contains(&per_cent) {
                wrong.push(format!("{fields:?}: {takes} bytes, the price is {price}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
