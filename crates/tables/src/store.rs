//! The entries of one table, packed: what the control side reads and writes, and what the interpreter looks up in.
//!
//! Each entry is one record of bytes: its matches in canonical form, one field after another, its priority if the table
//! has priorities, its action slot, its place in the order of insertion, and flags. Matches and priority are what an
//! entry is known by; a hash table of record numbers finds it by them. What is asked for by fields is unpacked on demand.

mod index;

use crate::engines::NoMemory;
use crate::entry::EntryIndex;
use crate::heap;
use crate::key::{FieldMatch, KeyField, KeySchema, MatchKind, keep_prefix};
use index::Index;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Bytes of the slot, of the place in the order, and of the flags.
const SLOT: usize = 4;
const SERIAL: usize = 6;
const FLAGS: usize = 1;

const LIVE: u8 = 1;
const CONST: u8 = 2;

/// Entries are inserted at most so often: for 44 years at 200,000 a second.
const MAX_SERIAL: u64 = (1 << (8 * SERIAL)) - 1;

#[derive(Clone)]
pub(crate) struct Store {
    schema: KeySchema,
    layout: Layout,
    /// By index; the first is not used.
    records: Vec<u8>,
    index: Index,
    seed: u64,
    /// How many entries have each prefix length, in a table with one lpm field and no priorities.
    lengths: BTreeMap<u32, u32>,
    /// The entries by falling rank, in a table with priorities.
    by_rank: BTreeMap<(Reverse<u32>, u64), u32>,
    len: u32,
    next_serial: u64,
}

#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of the matches, and after them of the priority.
    matches: usize,
    identity: usize,
    stride: usize,
    has_priority: bool,
    /// The lpm field of a table without priorities: where its value starts in a record and in a packed key.
    lpm: Option<(usize, usize, KeyField)>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("records", &self.records)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// No entries of a table.
    pub(crate) fn new(schema: &KeySchema) -> Store {
        Store::with(schema, schema.needs_priority())
    }

    /// No members of a set, where it does not matter which one is found.
    pub(crate) fn of_set(schema: &KeySchema) -> Store {
        Store::with(schema, schema.fields().iter().any(|field| field.kind != MatchKind::Exact))
    }

    fn with(schema: &KeySchema, has_priority: bool) -> Store {
        let (mut at, mut lpm) = (0, None);
        for (offset, field) in schema.layout() {
            if field.kind == MatchKind::Lpm && !has_priority {
                lpm = Some((at, offset, *field));
            }
            at += packed_bytes(field);
        }
        let identity = at + if has_priority { 4 } else { 0 };
        let stride = identity + SLOT + SERIAL + FLAGS;
        Store {
            schema: schema.clone(),
            layout: Layout { matches: at, identity, stride, has_priority, lpm },
            records: vec![0; stride],
            index: Index::new(),
            seed: RandomState::new().hash_one(1),
            lengths: BTreeMap::new(),
            by_rank: BTreeMap::new(),
            len: 0,
            next_serial: 1,
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The index after the last one that was ever used.
    pub(crate) fn end(&self) -> u32 {
        (self.records.len() / self.layout.stride) as u32
    }

    /// The place of the next entry in the order of insertion.
    pub(crate) fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.records.capacity()
            + self.index.bytes()
            + heap::tree_map::<((Reverse<u32>, u64), u32)>(self.by_rank.len())
    }

    /// The indices of all entries, in the order of insertion.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = EntryIndex> {
        let mut indices: Vec<EntryIndex> = self.indices().collect();
        indices.sort_unstable_by_key(|index| self.serial(*index));
        indices.into_iter()
    }

    /// What an entry with these canonical matches is known by.
    pub(crate) fn identity(&self, matches: &[FieldMatch], priority: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.layout.identity);
        for (field, given) in self.schema.fields().iter().zip(matches) {
            match given {
                FieldMatch::Exact(value) => bytes.extend_from_slice(value),
                FieldMatch::Lpm { value, prefix_len } => {
                    bytes.extend_from_slice(value);
                    push_length(&mut bytes, field, *prefix_len);
                }
                FieldMatch::Ternary { value, mask: second }
                | FieldMatch::Range { low: value, high: second } => {
                    bytes.extend_from_slice(value);
                    bytes.extend_from_slice(second);
                }
                FieldMatch::Optional(value) => {
                    bytes.push(u8::from(value.is_some()));
                    match value {
                        Some(value) => bytes.extend_from_slice(value),
                        None => bytes.resize(bytes.len() + field.bytes(), 0),
                    }
                }
            }
        }
        if self.layout.has_priority {
            bytes.extend_from_slice(&priority.to_be_bytes());
        }
        bytes
    }

    /// The entry that is known by this.
    pub(crate) fn find(&self, identity: &[u8]) -> Option<EntryIndex> {
        self.index.find(self.hash(identity), |index| self.identity_of(index) == identity).map(EntryIndex)
    }

    /// Makes room for an entry at that index.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    #[inline]
    pub(crate) fn make_room(&mut self, index: EntryIndex) -> Result<(), NoMemory> {
        let (start, stride) = (index.0 as usize * self.layout.stride, self.layout.stride);
        if self.records.capacity() < start + stride {
            // An eighth more at a time: with a million entries, doubling would waste megabytes.
            let more = (start / 8).max(64 * stride);
            self.records.try_reserve_exact(more).map_err(|_| NoMemory { bytes: more })?;
        }
        self.index.room_for_one()
    }

    /// Adds an entry at an index that is free, or the one after the last, and at its place in the order of insertion.
    /// There is room for it.
    pub(crate) fn insert(
        &mut self,
        index: EntryIndex,
        identity: &[u8],
        slot: u32,
        is_const: bool,
        serial: u64,
    ) {
        let start = index.0 as usize * self.layout.stride;
        if start == self.records.len() {
            self.records.resize(start + self.layout.stride, 0);
        }
        self.next_serial = self.next_serial.max(serial + 1).min(MAX_SERIAL);
        let record = &mut self.records[start..start + self.layout.stride];
        let (known, rest) = record.split_at_mut(self.layout.identity);
        known.copy_from_slice(identity);
        rest[..SLOT].copy_from_slice(&slot.to_le_bytes());
        rest[SLOT..SLOT + SERIAL].copy_from_slice(&serial.to_le_bytes()[..SERIAL]);
        rest[SLOT + SERIAL] = LIVE | if is_const { CONST } else { 0 };
        self.index.insert(hash(self.seed, identity), index.0, hash_of(&self.records, self.layout, self.seed));
        if let Some(len) = self.prefix_len(identity) {
            *self.lengths.entry(len).or_default() += 1;
        }
        if self.layout.has_priority {
            self.by_rank.insert((Reverse(self.priority(index)), serial), index.0);
        }
        self.len += 1;
    }

    /// Takes an entry that there is out.
    pub(crate) fn remove(&mut self, index: EntryIndex) {
        let identity = self.identity_of(index.0).to_vec();
        let hash_of = hash_of(&self.records, self.layout, self.seed);
        self.index.remove(hash(self.seed, &identity), index.0, hash_of);
        if let Some(len) = self.prefix_len(&identity)
            && let Some(count) = self.lengths.get_mut(&len)
        {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&len);
            }
        }
        self.by_rank.remove(&(Reverse(self.priority(index)), self.serial(index)));
        let flags = self.flags_at(index);
        self.records[flags] = 0;
        self.len -= 1;
    }

    /// Whether there is an entry of this index.
    pub(crate) fn contains(&self, index: EntryIndex) -> bool {
        index.is_hit() && self.records.get(self.flags_at(index)).is_some_and(|flags| flags & LIVE != 0)
    }

    /// The indices of all entries.
    pub(crate) fn indices(&self) -> impl Iterator<Item = EntryIndex> {
        (1..self.end()).map(EntryIndex).filter(|index| self.contains(*index))
    }

    pub(crate) fn is_const(&self, index: EntryIndex) -> bool {
        self.records[self.flags_at(index)] & CONST != 0
    }

    pub(crate) fn slot(&self, index: EntryIndex) -> u32 {
        let at = self.flags_at(index) - SERIAL - SLOT;
        u32::from_le_bytes([
            self.records[at],
            self.records[at + 1],
            self.records[at + 2],
            self.records[at + 3],
        ])
    }

    pub(crate) fn set_slot(&mut self, index: EntryIndex, slot: u32) {
        let at = self.flags_at(index) - SERIAL - SLOT;
        self.records[at..at + SLOT].copy_from_slice(&slot.to_le_bytes());
    }

    pub(crate) fn serial(&self, index: EntryIndex) -> u64 {
        let at = self.flags_at(index) - SERIAL;
        self.records[at..at + SERIAL].iter().rev().fold(0, |serial, byte| serial << 8 | u64::from(*byte))
    }

    /// The priority; 0 in a table without.
    pub(crate) fn priority(&self, index: EntryIndex) -> u32 {
        let bytes = &self.identity_of(index.0)[self.layout.matches..];
        bytes.iter().fold(0, |priority, byte| priority << 8 | u32::from(*byte))
    }

    /// The matches in canonical form.
    pub(crate) fn matches(&self, index: EntryIndex) -> Vec<FieldMatch> {
        let mut rest = self.identity_of(index.0);
        let unpack = |field: &KeyField| {
            let (own, after) = rest.split_at(packed_bytes(field));
            rest = after;
            let (first, second) = own.split_at(field.bytes());
            match field.kind {
                MatchKind::Exact => FieldMatch::Exact(own.to_vec()),
                MatchKind::Lpm => FieldMatch::Lpm { value: first.to_vec(), prefix_len: length(second) },
                MatchKind::Ternary => FieldMatch::Ternary { value: first.to_vec(), mask: second.to_vec() },
                MatchKind::Range => FieldMatch::Range { low: first.to_vec(), high: second.to_vec() },
                MatchKind::Optional => FieldMatch::Optional((own[0] != 0).then(|| own[1..].to_vec())),
            }
        };
        self.schema.fields().iter().map(unpack).collect()
    }

    /// The entry that wins for a packed key of the schema's length: without workers and their engines.
    pub(crate) fn lookup(&self, key: &[u8]) -> EntryIndex {
        if self.layout.has_priority {
            let mut ranked = self.by_rank.values();
            return ranked
                .find(|index| self.accepts(**index, key))
                .map_or(EntryIndex::MISS, |i| EntryIndex(*i));
        }
        let Some((at, offset, field)) = self.layout.lpm else {
            return self.find(key).unwrap_or(EntryIndex::MISS);
        };
        let (before, rest) = key.split_at(offset);
        let (value, after) = rest.split_at(field.bytes());
        let mut identity = [before, value].concat();
        push_length(&mut identity, &field, field.width);
        identity.extend_from_slice(after);
        self.longest(&mut identity, at, &field, ..=field.width).map_or(EntryIndex::MISS, |(_, index)| index)
    }

    /// The entry with the longest prefix that is shorter than that of an entry and contains it, with its length.
    pub(crate) fn parent(&self, identity: &[u8]) -> Option<(u32, EntryIndex)> {
        let (at, _, field) = self.layout.lpm?;
        let len = self.prefix_len(identity)?;
        self.longest(&mut identity.to_vec(), at, &field, ..=len.checked_sub(1)?)
    }

    /// The longest of these prefixes of the lpm field that an entry has.
    fn longest(
        &self,
        identity: &mut [u8],
        at: usize,
        field: &KeyField,
        lengths: std::ops::RangeToInclusive<u32>,
    ) -> Option<(u32, EntryIndex)> {
        let bytes = field.bytes();
        self.lengths.range(lengths).rev().find_map(|(&len, _)| {
            keep_prefix(&mut identity[at..at + bytes], field.width, len);
            set_length(&mut identity[at + bytes..at + packed_bytes(field)], len);
            Some((len, self.find(identity)?))
        })
    }

    fn prefix_len(&self, identity: &[u8]) -> Option<u32> {
        let (at, _, field) = self.layout.lpm?;
        Some(length(&identity[at + field.bytes()..at + packed_bytes(&field)]))
    }

    fn accepts(&self, index: u32, key: &[u8]) -> bool {
        let mut rest = self.identity_of(index);
        self.schema.layout().all(|(offset, field)| {
            let (own, after) = rest.split_at(packed_bytes(field));
            rest = after;
            let key = &key[offset..offset + field.bytes()];
            let (first, second) = own.split_at(field.bytes());
            match field.kind {
                MatchKind::Exact => own == key,
                MatchKind::Lpm => {
                    let mut kept = key.to_vec();
                    keep_prefix(&mut kept, field.width, length(second));
                    kept == first
                }
                MatchKind::Ternary => {
                    key.iter().zip(second).zip(first).all(|((key, mask), value)| key & mask == *value)
                }
                // Big-endian values of one length compare as byte strings.
                MatchKind::Range => first <= key && key <= second,
                MatchKind::Optional => own[0] == 0 || own[1..] == *key,
            }
        })
    }

    fn identity_of(&self, index: u32) -> &[u8] {
        let start = index as usize * self.layout.stride;
        &self.records[start..start + self.layout.identity]
    }

    fn flags_at(&self, index: EntryIndex) -> usize {
        (index.0 as usize + 1) * self.layout.stride - FLAGS
    }

    fn hash(&self, identity: &[u8]) -> u64 {
        hash(self.seed, identity)
    }
}

/// Bytes that the match of a field takes.
fn packed_bytes(field: &KeyField) -> usize {
    let bytes = field.bytes();
    match field.kind {
        MatchKind::Exact => bytes,
        MatchKind::Lpm => bytes + length_bytes(field),
        MatchKind::Ternary | MatchKind::Range => 2 * bytes,
        MatchKind::Optional => 1 + bytes,
    }
}

fn length_bytes(field: &KeyField) -> usize {
    if field.width < 256 { 1 } else { 2 }
}

fn push_length(bytes: &mut Vec<u8>, field: &KeyField, len: u32) {
    let at = bytes.len();
    bytes.resize(at + length_bytes(field), 0);
    set_length(&mut bytes[at..], len);
}

fn set_length(place: &mut [u8], len: u32) {
    place.iter_mut().zip(len.to_le_bytes()).for_each(|(to, from)| *to = from);
}

fn length(place: &[u8]) -> u32 {
    place.iter().rev().fold(0, |len, byte| len << 8 | u32::from(*byte))
}

/// The hashes of records.
fn hash_of(records: &[u8], layout: Layout, seed: u64) -> impl Fn(u32) -> u64 {
    move |index| {
        let start = index as usize * layout.stride;
        hash(seed, &records[start..start + layout.identity])
    }
}

/// A hash by folded multiplication. The seed is one that nobody outside can foresee.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let mixed = u128::from(state ^ u64::from_le_bytes(word)) * u128::from(0xf39c_c060_5ced_c835u64);
        state = (mixed as u64) ^ (mixed >> 64) as u64 ^ seed.rotate_left(32);
    }
    let mixed = u128::from(state) * u128::from(0x9e37_79b9_7f4a_7c15u64);
    (mixed as u64) ^ (mixed >> 64) as u64
}
