//! The image of a table that workers read: a match engine of [`crate::engines`], and what an entry's number leads to.
//!
//! Where nothing belongs to single entries, the engine's results are action slots; else they are entry numbers, and an
//! array leads from them to slots. Writes that only a commit makes visible wait for [`Published::commit`].

mod engine;
mod reader;

use crate::engines::{Domain, LookupContract, NoMemory, Segments};
use crate::entry::EntryIndex;
use crate::key::{FieldMatch, KeySchema};
use crate::slots::SlotsReader;
use engine::Engine;
pub(crate) use engine::Rank;
use reader::Indirect;
pub use reader::TableReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The writing side.
pub(crate) struct Published {
    engine: Engine,
    /// From entries to slots, where entries have something of their own.
    slot_of: Option<Arc<Segments<AtomicU32>>>,
}

impl std::fmt::Debug for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Published")
    }
}

impl Published {
    /// Of a table of about `size` entries without any yet.
    pub(crate) fn new(
        domain: &Domain,
        schema: &KeySchema,
        size: u32,
        by_entry: bool,
    ) -> Result<Published, NoMemory> {
        let slot_of = if by_entry { Some(Arc::new(Segments::new())) } else { None };
        if let Some(cells) = &slot_of {
            // A miss is entry 0, which compiled code looks up too.
            cells.reserve(0)?;
        }
        Ok(Published { engine: Engine::new(domain, schema, size)?, slot_of })
    }

    /// Whether results are entries.
    pub(crate) fn is_by_entry(&self) -> bool {
        self.slot_of.is_some()
    }

    /// Whether writes are visible at once, and not by [`Published::commit`] only.
    pub(crate) fn is_immediate(&self) -> bool {
        self.engine.is_immediate()
    }

    pub(crate) fn reader(&self, slots: SlotsReader, entries: Arc<AtomicU32>) -> TableReader {
        let indirect = self.slot_of.as_ref().map(|cells| Indirect(Arc::clone(cells)));
        TableReader::new(self.engine.reader(), self.engine.limbs(), indirect, slots, entries)
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

    /// Finishes what commits left for later.
    pub(crate) fn settle(&mut self) {
        self.engine.settle();
    }

    /// Whether commits left nothing for later.
    pub(crate) fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// Second arrays that prefixes share.
    pub(crate) fn groups(&self) -> usize {
        self.engine.groups()
    }

    /// Whether an entry, in canonical form, is to get one of its own.
    pub(crate) fn opens_group(&self, matches: &[FieldMatch]) -> bool {
        self.engine.opens_group(matches)
    }

    /// Sections of a first array that entries lie in.
    pub(crate) fn sections(&self) -> usize {
        self.engine.sections()
    }

    /// Sections that an entry, in canonical form, is to have as the first one.
    pub(crate) fn opens_sections(&self, matches: &[FieldMatch]) -> u32 {
        self.engine.opens_sections(matches)
    }

    /// What a lookup takes at most now. Where entries have something of their own, its lines are also those of the way from the
    /// entry to its action slot: the start of a piece, and a cell of it.
    pub(crate) fn contract(&self) -> LookupContract {
        let engine = self.engine.contract();
        match &self.slot_of {
            Some(_) => LookupContract { lines: engine.lines + 2, ..engine },
            None => engine,
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes() + self.slot_of.as_ref().map_or(0, |cells| cells.bytes())
    }

    fn set_slot(&self, index: EntryIndex, slot: u32) -> Result<(), NoMemory> {
        let Some(cells) = &self.slot_of else { return Ok(()) };
        let at = index.0 as usize;
        cells.reserve(at)?;
        if let Some(cell) = cells.get(at) {
            cell.store(slot, Ordering::Release);
        }
        Ok(())
    }
}
