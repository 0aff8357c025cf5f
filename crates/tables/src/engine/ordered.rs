//! Ternary, range and optional fields: entries in order of rank, the first that accepts the key wins.

use super::{Rank, batch};
use crate::entry::EntryIndex;
use crate::packed::PackedMatch;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Entries by falling rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    rows: Vec<Row>,
    by_identity: HashMap<(u32, Arc<PackedMatch>), EntryIndex>,
}

#[derive(Clone, Debug)]
struct Row {
    rank: Rank,
    key: Arc<PackedMatch>,
    index: EntryIndex,
}

impl Ordered {
    pub(super) fn insert(&mut self, key: PackedMatch, rank: Rank, index: EntryIndex) {
        let key = Arc::new(key);
        self.by_identity.insert((rank.priority, Arc::clone(&key)), index);
        let at = self.rows.partition_point(|row| order(row.rank) < order(rank));
        self.rows.insert(at, Row { rank, key, index });
    }

    pub(super) fn remove(&mut self, key: &PackedMatch, rank: Rank) {
        let at = self.rows.partition_point(|row| order(row.rank) < order(rank));
        if self.rows.get(at).is_some_and(|row| *row.key == *key) {
            let row = self.rows.remove(at);
            self.by_identity.remove(&(rank.priority, row.key));
        }
    }

    pub(super) fn find(&self, key: &PackedMatch, priority: u32) -> Option<EntryIndex> {
        self.by_identity.get(&(priority, Arc::new(key.clone()))).copied()
    }

    pub(super) fn lookup(&self, stride: usize, keys: &[u8], out: &mut [EntryIndex]) {
        for (key, found) in batch(stride, keys, out) {
            let winner = self.rows.iter().find(|row| row.key.accepts(key));
            *found = winner.map_or(EntryIndex::MISS, |row| row.index);
        }
    }
}

/// The place of a rank in the list: larger priorities first, earlier insertions first among equals.
fn order(rank: Rank) -> (Reverse<u32>, u64) {
    (Reverse(rank.priority), rank.serial)
}
