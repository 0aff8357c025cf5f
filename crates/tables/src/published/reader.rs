//! What workers read of a table.

use super::engine::EngineReader;
use crate::engines::{LookupShape, Segments, Worker};
use crate::slots::{GroupSlots, SlotsReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// From entries to slots.
#[derive(Clone)]
pub(super) struct Indirect(pub(super) Arc<Segments<AtomicU32>>);

/// The reading side of a table, for any worker of its domain. Nothing here allocates or takes a lock.
#[derive(Clone)]
pub struct TableReader {
    engine: EngineReader,
    limbs: usize,
    indirect: Option<Indirect>,
    slots: SlotsReader,
    entries: Arc<AtomicU32>,
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableReader")
    }
}

impl TableReader {
    pub(super) fn new(
        engine: EngineReader,
        limbs: usize,
        indirect: Option<Indirect>,
        slots: SlotsReader,
        entries: Arc<AtomicU32>,
    ) -> TableReader {
        TableReader { engine, limbs, indirect, slots, entries }
    }

    /// The number of entries at about this time, without the default entry.
    #[inline]
    pub fn entries(&self) -> u32 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Limbs of a key: `ceil(bits / 64)`.
    #[inline]
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// Whether entries have something of their own, so that [`TableReader::lookup`] gives entries.
    #[inline]
    pub fn gives_entries(&self) -> bool {
        self.indirect.is_some()
    }

    /// Looks up `out.len()` keys. Gives for each the number of the entry where entries have something of their own, else
    /// the action slot; 0 is a miss.
    #[inline]
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        self.engine.lookup(worker, keys, out);
    }

    /// Turns entries that [`TableReader::lookup`] gave into their action slots, in place.
    pub fn slots(&self, results: &mut [u32]) {
        let Some(Indirect(cells)) = &self.indirect else { return };
        for result in results.iter_mut().filter(|result| **result != 0) {
            *result = cells.get(*result as usize).map_or(0, |cell| cell.load(Ordering::Acquire));
        }
    }

    /// The group that an action slot stands for: its record holds the default action, for when the group is empty.
    #[inline]
    pub fn group<'w>(&self, worker: &'w Worker, slot: u32) -> Option<&'w GroupSlots> {
        self.slots.group(worker, slot)
    }

    /// The records of the action slots, see [`crate::RecordLayout`]. Valid until the worker's next quiescent point; null
    /// for a worker that sleeps or is of another domain.
    #[inline]
    pub fn records(&self, worker: &Worker) -> *const u8 {
        self.slots.records(worker)
    }

    /// How compiled code may look up by itself; its pointers are valid until the worker's next quiescent point.
    #[inline]
    pub fn shape(&self, worker: &Worker) -> LookupShape {
        let shape = self.engine.shape(worker);
        match &self.indirect {
            Some(Indirect(cells)) => LookupShape { starts: cells.starts().cast(), ..shape },
            None => shape,
        }
    }
}
