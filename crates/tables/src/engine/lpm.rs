//! One lpm field beside exact ones: a hash map per prefix length that is in use, the longest asked first.

use super::batch;
use crate::entry::EntryIndex;
use crate::key::keep_prefix;
use crate::limits::MAX_KEY_BYTES;
use crate::packed::PackedMatch;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Entries by prefix length and packed key.
#[derive(Clone, Debug)]
pub(crate) struct Lpm {
    /// Where the lpm field lies in the packed key.
    field: Range<usize>,
    /// Its width in bits.
    width: u32,
    by_length: BTreeMap<u32, HashMap<Box<[u8]>, EntryIndex>>,
}

impl Lpm {
    pub(super) fn new(offset: usize, width: u32) -> Lpm {
        Lpm { field: offset..offset + width.div_ceil(8) as usize, width, by_length: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, key: PackedMatch, index: EntryIndex) {
        self.by_length.entry(key.prefix_len).or_default().insert(key.value, index);
    }

    pub(super) fn remove(&mut self, key: &PackedMatch) {
        if let Some(entries) = self.by_length.get_mut(&key.prefix_len) {
            entries.remove(&key.value);
            if entries.is_empty() {
                self.by_length.remove(&key.prefix_len);
            }
        }
    }

    pub(super) fn find(&self, key: &PackedMatch) -> Option<EntryIndex> {
        self.by_length.get(&key.prefix_len)?.get(&key.value).copied()
    }

    pub(super) fn parent(&self, key: &PackedMatch) -> Option<(u32, EntryIndex)> {
        let mut masked = key.value.clone();
        self.by_length.range(..key.prefix_len).rev().find_map(|(&prefix_len, entries)| {
            keep_prefix(&mut masked[self.field.clone()], self.width, prefix_len);
            Some((prefix_len, *entries.get(&masked)?))
        })
    }

    pub(super) fn lookup(&self, stride: usize, keys: &[u8], out: &mut [EntryIndex]) {
        // The schema keeps keys within the limit. Each length only clears more bits of what the longer one left.
        let mut scratch = [0u8; MAX_KEY_BYTES];
        let masked = &mut scratch[..stride];
        for (key, found) in batch(stride, keys, out) {
            masked.copy_from_slice(key);
            *found = EntryIndex::MISS;
            for (&prefix_len, entries) in self.by_length.iter().rev() {
                keep_prefix(&mut masked[self.field.clone()], self.width, prefix_len);
                if let Some(&index) = entries.get(&*masked) {
                    *found = index;
                    break;
                }
            }
        }
    }
}
