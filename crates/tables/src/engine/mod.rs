//! Match engines: which entry a key finds. One is chosen per key schema; they are an enum because the kinds are few
//! and known, and a lookup is then one branch per batch.

mod exact;
mod lpm;
mod ordered;

use crate::entry::EntryIndex;
use crate::error::SpecError;
pub(crate) use crate::image::Rank;
use crate::key::{KeySchema, MatchKind};
use crate::packed::PackedMatch;
use exact::Exact;
use lpm::Lpm;
use ordered::Ordered;

/// The engine of one table.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    /// All fields exact.
    Exact(Exact),
    /// One lpm field, the others exact.
    Lpm(Lpm),
    /// Anything else, by priority.
    Ordered(Ordered),
}

impl Engine {
    /// The engine for a table with this key.
    ///
    /// # Errors
    /// [`SpecError::SeveralLpmKeys`].
    pub(crate) fn for_table(schema: &KeySchema) -> Result<Engine, SpecError> {
        if schema.needs_priority() {
            return Ok(Engine::Ordered(Ordered::default()));
        }
        let mut lpm_fields = schema.layout().filter(|(_, field)| field.kind == MatchKind::Lpm);
        match (lpm_fields.next(), lpm_fields.next()) {
            (None, _) => Ok(Engine::Exact(Exact::default())),
            (Some((offset, field)), None) => Ok(Engine::Lpm(Lpm::new(offset, field.width))),
            (Some(_), Some(_)) => Err(SpecError::SeveralLpmKeys),
        }
    }

    /// The engine for a set with this key, where it does not matter which of the members is found.
    pub(crate) fn for_set(schema: &KeySchema) -> Engine {
        if schema.fields().iter().all(|field| field.kind == MatchKind::Exact) {
            Engine::Exact(Exact::default())
        } else {
            Engine::Ordered(Ordered::default())
        }
    }

    /// Adds an entry. There is none with the same match and priority ([`Engine::find`] was asked before).
    pub(crate) fn insert(&mut self, key: PackedMatch, rank: Rank, index: EntryIndex) {
        match self {
            Engine::Exact(engine) => engine.insert(key, index),
            Engine::Lpm(engine) => engine.insert(key, index),
            Engine::Ordered(engine) => engine.insert(key, rank, index),
        }
    }

    /// Takes an entry out again.
    pub(crate) fn remove(&mut self, key: &PackedMatch, rank: Rank) {
        match self {
            Engine::Exact(engine) => engine.remove(key),
            Engine::Lpm(engine) => engine.remove(key),
            Engine::Ordered(engine) => engine.remove(key, rank),
        }
    }

    /// The entry with exactly this match and priority.
    pub(crate) fn find(&self, key: &PackedMatch, priority: u32) -> Option<EntryIndex> {
        match self {
            Engine::Exact(engine) => engine.find(key),
            Engine::Lpm(engine) => engine.find(key),
            Engine::Ordered(engine) => engine.find(key, priority),
        }
    }

    /// The entry with the longest prefix that is shorter than this match's and contains it, and its length.
    pub(crate) fn parent(&self, key: &PackedMatch) -> Option<(u32, EntryIndex)> {
        match self {
            Engine::Lpm(engine) => engine.parent(key),
            Engine::Exact(_) | Engine::Ordered(_) => None,
        }
    }

    /// Looks up `out.len()` keys of `stride` bytes each; `keys` is at least that long.
    pub(crate) fn lookup(&self, stride: usize, keys: &[u8], out: &mut [EntryIndex]) {
        match self {
            Engine::Exact(engine) => engine.lookup(stride, keys, out),
            Engine::Lpm(engine) => engine.lookup(stride, keys, out),
            Engine::Ordered(engine) => engine.lookup(stride, keys, out),
        }
    }
}

/// The keys of a batch with the places for their results.
fn batch<'a>(
    stride: usize,
    keys: &'a [u8],
    out: &'a mut [EntryIndex],
) -> impl Iterator<Item = (&'a [u8], &'a mut EntryIndex)> {
    out.iter_mut().enumerate().map(move |(at, found)| (&keys[at * stride..(at + 1) * stride], found))
}
