//! Exact keys of at most 16 bits: one array, indexed by the key.

use super::contract::LookupContract;
use super::grace::{Domain, Publisher, Subscriber, Worker};
use super::memory::{Cells, NoMemory};
use super::shape::{LookupKind, LookupShape};
use std::sync::atomic::{AtomicU32, Ordering};

/// Widest key in bits.
pub const MAX_DIRECT_BITS: u32 = 16;

/// The writing side.
pub struct Direct {
    results: Publisher<Cells<AtomicU32>>,
}

/// The reading side. Clones read the same table.
#[derive(Clone)]
pub struct DirectReader {
    results: Subscriber<Cells<AtomicU32>>,
}

impl Direct {
    /// An empty table for keys of `bits` bits, at most [`MAX_DIRECT_BITS`].
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(domain: &Domain, bits: u32) -> Result<Direct, NoMemory> {
        let results = Cells::zeroed(1 << bits.min(MAX_DIRECT_BITS))?;
        Ok(Direct { results: Publisher::new(domain, results) })
    }

    /// A reader.
    pub fn reader(&self) -> DirectReader {
        DirectReader { results: self.results.subscribe() }
    }

    /// Sets the result of a key; 0 takes it out. A key outside the width changes nothing.
    pub fn set(&mut self, key: u64, result: u32) {
        if let Some(cell) = self.results.current().get(key as usize) {
            cell.store(result, Ordering::Release);
        }
    }

    /// What a lookup takes at most: one load.
    pub fn contract(&self) -> LookupContract {
        LookupContract { engine: "direct", probes: 1, lines: 1 }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.results.current().bytes()
    }
}

impl DirectReader {
    /// Looks up a batch. A key outside the width misses, as do all keys for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        let Some(results) = self.results.get(worker) else { return out.fill(0) };
        for (key, out) in keys.iter().zip(out) {
            *out = results.get(*key as usize).map_or(0, |cell| cell.load(Ordering::Acquire));
        }
    }

    /// The lookup shape at this moment; its pointers are valid until the worker's next quiescent point.
    #[inline]
    pub fn shape(&self, worker: &Worker) -> LookupShape {
        let shape = |results: &Cells<AtomicU32>| LookupShape {
            kind: LookupKind::Direct,
            base: results.as_ptr().cast(),
            ..LookupShape::CALL
        };
        self.results.get(worker).map_or(LookupShape::CALL, shape)
    }
}
