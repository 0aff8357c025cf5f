//! Entry handles as bmv2 hands them out: the lowest free number, with a version above it that counts how often the number
//! was given up, so that a stale handle is known.
//!
//! Entries that others made (the program, an entries file, P4Runtime) get handles when clients come upon them, in the
//! order in which they were added.

use millrace_pipeline::TableId;
use millrace_state::{EntryIndex, Tables};
use millrace_thrift_api::{InvalidTableOperation, TableCode};
use std::collections::{BTreeSet, HashMap};

/// Bits of a handle that are the number; those above are the version.
const NUMBER_BITS: u32 = 24;

/// The handles of all tables.
#[derive(Default)]
pub(super) struct Handles {
    tables: HashMap<TableId, TableHandles>,
}

#[derive(Default)]
struct TableHandles {
    slots: Vec<HandleSlot>,
    free: BTreeSet<u32>,
    numbers: HashMap<EntryIndex, u32>,
}

#[derive(Clone, Copy, Default)]
struct HandleSlot {
    entry: Option<EntryIndex>,
    version: u8,
}

impl Handles {
    /// The entry of a handle.
    pub(super) fn entry(
        &mut self,
        tables: &Tables,
        table: TableId,
        handle: i32,
    ) -> Result<EntryIndex, InvalidTableOperation> {
        let handles = self.current(tables, table);
        let handle = handle as u32;
        let slot = handles.slots.get((handle & ((1 << NUMBER_BITS) - 1)) as usize).copied();
        let Some(HandleSlot { entry: Some(entry), version }) = slot else {
            return Err(TableCode::InvalidHandle.into());
        };
        if handle >> NUMBER_BITS != u32::from(version) {
            return Err(TableCode::ExpiredHandle.into());
        }
        if tables.table(table).entry(entry).is_none() {
            handles.remove(entry);
            return Err(TableCode::InvalidHandle.into());
        }
        Ok(entry)
    }

    /// The handle of an entry that is there.
    pub(super) fn handle(&mut self, tables: &Tables, table: TableId, entry: EntryIndex) -> i32 {
        let handles = self.current(tables, table);
        match handles.numbers.get(&entry) {
            Some(number) => handles.of(*number),
            None => {
                handles.retain(tables, table);
                handles.add(entry)
            }
        }
    }

    /// An entry is about to be added or removed: all that are there have handles then.
    pub(super) fn sync(&mut self, tables: &Tables, table: TableId) {
        self.current(tables, table);
    }

    /// The handle of an entry that was just added.
    pub(super) fn added(&mut self, table: TableId, entry: EntryIndex) -> i32 {
        let handles = self.tables.entry(table).or_default();
        // Somebody else removed what was there.
        handles.remove(entry);
        handles.add(entry)
    }

    /// An entry was removed.
    pub(super) fn removed(&mut self, table: TableId, entry: EntryIndex) {
        self.tables.entry(table).or_default().remove(entry);
    }

    /// All entries of a table were removed; handles start again.
    pub(super) fn cleared(&mut self, table: TableId) {
        self.tables.remove(&table);
    }

    /// Everything was reset.
    pub(super) fn reset(&mut self) {
        *self = Handles::default();
    }

    /// The handles of a table, after entries came and went otherwise.
    fn current(&mut self, tables: &Tables, table: TableId) -> &mut TableHandles {
        let handles = self.tables.entry(table).or_default();
        if handles.numbers.len() != tables.entry_count(table) as usize {
            handles.retain(tables, table);
            for (entry, _) in tables.table(table).iter() {
                if !handles.numbers.contains_key(&entry) {
                    handles.add(entry);
                }
            }
        }
        handles
    }
}

impl TableHandles {
    fn of(&self, number: u32) -> i32 {
        let version = self.slots.get(number as usize).map_or(0, |slot| u32::from(slot.version));
        // bmv2 has handles of 32 bits without a sign, and its interface such with one.
        (version << NUMBER_BITS | number) as i32
    }

    fn add(&mut self, entry: EntryIndex) -> i32 {
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.slots.push(HandleSlot::default());
            // A table has at most 2^24 entries.
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize].entry = Some(entry);
        self.numbers.insert(entry, number);
        self.of(number)
    }

    fn remove(&mut self, entry: EntryIndex) {
        if let Some(number) = self.numbers.remove(&entry) {
            let slot = &mut self.slots[number as usize];
            *slot = HandleSlot { entry: None, version: slot.version.wrapping_add(1) };
            self.free.insert(number);
        }
    }

    /// Gives up the handles of entries that are gone.
    fn retain(&mut self, tables: &Tables, table: TableId) {
        let table = tables.table(table);
        let gone: Vec<EntryIndex> =
            self.numbers.keys().copied().filter(|entry| table.entry(*entry).is_none()).collect();
        gone.into_iter().for_each(|entry| self.remove(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_has_another_version() {
        let mut handles = TableHandles::default();
        let entry = EntryIndex;
        assert_eq!([5, 9, 7].map(|index| handles.add(entry(index))), [0, 1, 2]);
        handles.remove(entry(9));
        handles.remove(entry(5));
        // The lowest free number, of version 1: 0x01000000.
        assert_eq!(handles.add(entry(30)), 16_777_216);
        assert_eq!(handles.add(entry(31)), 16_777_217);
        assert_eq!(handles.add(entry(32)), 3);
        for _ in 0..255 {
            handles.remove(entry(32));
            handles.add(entry(32));
        }
        assert_eq!(handles.add(entry(33)), 4);
        // Version 255 makes the number negative.
        assert_eq!(handles.of(3), 0xff00_0003_u32 as i32);
        handles.remove(entry(32));
        assert_eq!(handles.add(entry(32)), 3);
    }
}
