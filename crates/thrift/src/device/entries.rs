//! Calls about entries: what reads them.

use super::Device;
use super::codes::table_code;
use super::loaded::{Loaded, Running};
use super::values;
use crate::limits;
use millrace_pipeline::TableId;
use millrace_state::{EntryIndex, EntryView, TableError, Tables, WriteError};
use millrace_thrift_api::{
    ActionEntry, CallError, Entry, EntryLife, EntryOptions, InvalidTableOperation, MatchKey, TableCode,
};

type Read<T> = Result<T, CallError<InvalidTableOperation>>;

/// About the memory of an entry in an answer, in bytes.
const ENTRY: usize = 512;
/// Entries that are looked at while the tables are kept from others.
const CHUNK: u32 = 1024;

impl Device {
    pub(crate) fn bm_mt_get_entries(&self, table: String) -> Read<Vec<Entry>> {
        let running = self.running()?;
        let table = running.loaded.table(&table)?;
        let mut entries = Vec::new();
        let mut from = Some(EntryIndex(0));
        while let Some(start) = from {
            let mut handles = running.loaded.handles();
            let tables = running.tables.lock();
            let (views, next) = tables.entries_from(table, start, CHUNK);
            from = next;
            limits::charge(views.len() * ENTRY)?;
            for view in views {
                let handle = handles.handle(&tables, table, view.index);
                entries.push(entry(&running, table, view, handle));
            }
        }
        Ok(entries)
    }

    pub(crate) fn bm_mt_get_entry(&self, table: String, handle: i32) -> Read<Entry> {
        let running = self.running()?;
        let table = running.loaded.table(&table)?;
        let mut handles = running.loaded.handles();
        let tables = running.tables.lock();
        let index = handles.entry(&tables, table, handle)?;
        let view = tables.entry(table, index).ok_or(TableCode::InvalidHandle)?;
        Ok(entry(&running, table, view, handle))
    }

    pub(crate) fn bm_mt_get_entry_from_key(
        &self,
        table: String,
        key: MatchKey,
        options: EntryOptions,
    ) -> Read<Entry> {
        let running = self.running()?;
        let loaded = &running.loaded;
        let table = loaded.table(&table)?;
        if key.is_empty() {
            let action_entry = default_entry(loaded, &running.tables.lock(), table);
            return Ok(Entry { action_entry, ..Entry::default() });
        }
        let matches = values::matches(loaded, table, &key)?;
        let priority = values::priority(loaded, table, options.priority)?;
        let mut handles = loaded.handles();
        let tables = running.tables.lock();
        let index = tables.find(table, &matches, priority).map_err(|error| match error {
            WriteError::Table(TableError::NotFound) => TableCode::BadMatchKey,
            other => table_code(&other),
        })?;
        let view = tables.entry(table, index).ok_or(TableCode::BadMatchKey)?;
        let handle = handles.handle(&tables, table, index);
        Ok(entry(&running, table, view, handle))
    }

    pub(crate) fn bm_mt_get_default_entry(&self, table: String) -> Read<ActionEntry> {
        let running = self.running()?;
        let table = running.loaded.table(&table)?;
        Ok(default_entry(&running.loaded, &running.tables.lock(), table))
    }
}

fn default_entry(loaded: &Loaded, tables: &Tables, table: TableId) -> ActionEntry {
    values::action_entry(loaded, table, &tables.default_target(table))
}

fn entry(running: &Running, table: TableId, view: EntryView, handle: i32) -> Entry {
    let loaded = &running.loaded;
    let milliseconds = |ns: u64| i32::try_from(ns / 1_000_000).unwrap_or(i32::MAX);
    Entry {
        match_key: values::match_key(loaded, table, &view.matches),
        options: EntryOptions { priority: Some(values::shown_priority(loaded, table, view.priority)) },
        entry_handle: handle,
        action_entry: values::action_entry(loaded, table, &view.target),
        life: (view.idle_timeout_ns != 0).then(|| EntryLife {
            timeout_ms: milliseconds(view.idle_timeout_ns),
            time_since_hit_ms: milliseconds(running.now_ns.saturating_sub(view.last_hit_ns)),
        }),
    }
}
