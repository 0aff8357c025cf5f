//! All fields exact: one hash map from the packed key.

use super::batch;
use crate::entry::EntryIndex;
use crate::packed::PackedMatch;
use std::collections::HashMap;

/// Entries by their packed key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exact {
    entries: HashMap<Box<[u8]>, EntryIndex>,
}

impl Exact {
    pub(super) fn insert(&mut self, key: PackedMatch, index: EntryIndex) {
        self.entries.insert(key.value, index);
    }

    pub(super) fn remove(&mut self, key: &PackedMatch) {
        self.entries.remove(&key.value);
    }

    pub(super) fn find(&self, key: &PackedMatch) -> Option<EntryIndex> {
        self.entries.get(&key.value).copied()
    }

    pub(super) fn lookup(&self, stride: usize, keys: &[u8], out: &mut [EntryIndex]) {
        for (key, found) in batch(stride, keys, out) {
            *found = self.entries.get(key).copied().unwrap_or(EntryIndex::MISS);
        }
    }
}
