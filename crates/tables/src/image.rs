//! The image of a table that workers read: a match engine of [`crate::fast`], and what an entry's number leads to.
//!
//! Where nothing belongs to single entries, the engine's results are action slots; else they are entry numbers, and an
//! array leads from them to slots. Writes that only a commit makes visible wait for [`Image::commit`].

mod engine;
mod reader;

use crate::entry::EntryIndex;
use crate::fast::{Cells, Domain, NoMemory, Publisher};
use crate::key::{FieldMatch, KeySchema};
use engine::Engine;
pub(crate) use engine::Rank;
use reader::Indirect;
pub use reader::TableReader;
use std::sync::atomic::{AtomicU32, Ordering};

/// The writing side.
pub(crate) struct Image {
    engine: Engine,
    /// From entries to slots, where entries have something of their own.
    slot_of: Option<Publisher<Cells<AtomicU32>>>,
    domain: Domain,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Image")
    }
}

impl Image {
    /// Of a table of about `size` entries without any yet.
    pub(crate) fn new(
        domain: &Domain,
        schema: &KeySchema,
        size: u32,
        by_entry: bool,
    ) -> Result<Image, NoMemory> {
        let slot_of = match by_entry {
            true => Some(Publisher::new(domain, Cells::zeroed(size as usize * 2 + 64)?)),
            false => None,
        };
        Ok(Image { engine: Engine::new(domain, schema, size)?, slot_of, domain: domain.clone() })
    }

    /// Whether results are entries.
    pub(crate) fn is_by_entry(&self) -> bool {
        self.slot_of.is_some()
    }

    /// Whether writes are visible at once, and not by [`Image::commit`] only.
    pub(crate) fn is_immediate(&self) -> bool {
        self.engine.is_immediate()
    }

    pub(crate) fn reader(&self, records: crate::slots::RecordsReader) -> TableReader {
        let indirect = self.slot_of.as_ref().map(|cells| Indirect(cells.subscribe()));
        TableReader::new(self.engine.reader(), self.engine.limbs(), indirect, records)
    }

    /// Adds an entry, in canonical form, with its slot.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn insert(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        index: EntryIndex,
        slot: u32,
    ) -> Result<(), NoMemory> {
        let result = match &self.slot_of {
            Some(_) => {
                self.set_slot(index, slot)?;
                index.0
            }
            None => slot,
        };
        self.engine.insert(matches, rank, result)
    }

    /// Gives an entry another slot.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub(crate) fn replace(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        index: EntryIndex,
        slot: u32,
    ) -> Result<(), NoMemory> {
        match &self.slot_of {
            Some(_) => self.set_slot(index, slot),
            None => self.engine.replace(matches, rank, slot),
        }
    }

    /// Takes an entry out. `parent` finds the next entry with a shorter prefix that contains it: the length of the prefix
    /// of its lpm field, and its number and slot.
    pub(crate) fn remove(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        parent: impl FnOnce() -> Option<(u32, EntryIndex, u32)>,
    ) {
        let by_entry = self.is_by_entry();
        self.engine.remove(matches, rank, || {
            parent().map(|(len, index, slot)| (len, if by_entry { index.0 } else { slot }))
        });
    }

    /// Makes all writes visible.
    ///
    /// # Errors
    /// [`NoMemory`]: some stay invisible.
    pub(crate) fn commit(&mut self) -> Result<(), NoMemory> {
        self.engine.commit()
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes() + self.slot_of.as_ref().map_or(0, |cells| cells.current().bytes())
    }

    fn set_slot(&mut self, index: EntryIndex, slot: u32) -> Result<(), NoMemory> {
        let Some(cells) = &mut self.slot_of else { return Ok(()) };
        let at = index.0 as usize;
        if at >= cells.current().len() {
            let grown = Cells::<AtomicU32>::zeroed(at * 2 + 64)?;
            for (from, to) in cells.current().iter().zip(grown.iter()) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            cells.publish(grown);
            // Until nobody has the old array, no result may lead beyond its end.
            self.domain.wait();
        }
        cells.current()[at].store(slot, Ordering::Release);
        Ok(())
    }
}
