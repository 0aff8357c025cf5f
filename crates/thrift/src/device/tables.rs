//! Calls about tables: what changes them.

use super::Device;
use super::codes::table_code;
use super::loaded::{Loaded, Running};
use super::values;
use millrace_pipeline::TableId;
use millrace_state::{EntryWrite, Target};
use millrace_thrift_api::{ActionData, CallError, EntryOptions, InvalidTableOperation, MatchKey, TableCode};

type Done<T = ()> = Result<T, CallError<InvalidTableOperation>>;

/// Which kind of table a call is for: one with actions in its entries, or one with members and groups.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Actions,
    Members,
    Groups,
}

impl Device {
    pub(crate) fn bm_mt_get_num_entries(&self, table: String) -> Done<i64> {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        Ok(i64::from(tables.lock().entry_count(table)))
    }

    pub(crate) fn bm_mt_clear_entries(&self, table: String, reset_default: bool) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        if loaded.program.tables[table].const_entries {
            return Err(TableCode::ImmutableEntries.into());
        }
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        tables.clear(table);
        if reset_default && !loaded.program.tables[table].const_default {
            tables.reset_default(table).map_err(|error| table_code(&error))?;
        }
        handles.cleared(table);
        Ok(())
    }

    pub(crate) fn bm_mt_add_entry(
        &self,
        table: String,
        key: MatchKey,
        action: String,
        data: ActionData,
        options: EntryOptions,
    ) -> Done<i32> {
        let target =
            |loaded: &Loaded, table| Ok(Target::Action(values::call(loaded, table, &action, &data)?));
        self.add_entry(&table, &key, options, Holds::Actions, target)
    }

    pub(crate) fn bm_mt_indirect_add_entry(
        &self,
        table: String,
        key: MatchKey,
        member: i32,
        options: EntryOptions,
    ) -> Done<i32> {
        self.add_entry(&table, &key, options, Holds::Members, |_, _| Ok(Target::Member(member_id(member)?)))
    }

    pub(crate) fn bm_mt_indirect_ws_add_entry(
        &self,
        table: String,
        key: MatchKey,
        group: i32,
        options: EntryOptions,
    ) -> Done<i32> {
        self.add_entry(&table, &key, options, Holds::Groups, |_, _| Ok(Target::Group(group_id(group)?)))
    }

    fn add_entry(
        &self,
        table: &str,
        key: &MatchKey,
        options: EntryOptions,
        holds: Holds,
        target: impl FnOnce(&Loaded, TableId) -> Result<Target, InvalidTableOperation>,
    ) -> Done<i32> {
        let Running { loaded, tables, now_ns } = self.running()?;
        let table = table_of(&loaded, table, holds)?;
        let entry = EntryWrite {
            target: target(&loaded, table)?,
            matches: values::matches(&loaded, table, key)?,
            priority: values::priority(&loaded, table, options.priority)?,
            idle_timeout_ns: 0,
        };
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        handles.sync(&tables, table);
        let index = tables.insert(table, &entry, now_ns).map_err(|error| table_code(&error))?;
        Ok(handles.added(table, index))
    }

    pub(crate) fn bm_mt_modify_entry(
        &self,
        table: String,
        handle: i32,
        action: String,
        data: ActionData,
    ) -> Done {
        let target =
            |loaded: &Loaded, table| Ok(Target::Action(values::call(loaded, table, &action, &data)?));
        self.modify_entry(&table, handle, Holds::Actions, target)
    }

    pub(crate) fn bm_mt_indirect_modify_entry(&self, table: String, handle: i32, member: i32) -> Done {
        self.modify_entry(&table, handle, Holds::Members, |_, _| Ok(Target::Member(member_id(member)?)))
    }

    pub(crate) fn bm_mt_indirect_ws_modify_entry(&self, table: String, handle: i32, group: i32) -> Done {
        self.modify_entry(&table, handle, Holds::Groups, |_, _| Ok(Target::Group(group_id(group)?)))
    }

    fn modify_entry(
        &self,
        table: &str,
        handle: i32,
        holds: Holds,
        target: impl FnOnce(&Loaded, TableId) -> Result<Target, InvalidTableOperation>,
    ) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = table_of(&loaded, table, holds)?;
        let target = target(&loaded, table)?;
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        let index = handles.entry(&tables, table, handle)?;
        tables.modify(table, index, &target).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_delete_entry(&self, table: String, handle: i32) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        let index = handles.entry(&tables, table, handle)?;
        tables.remove(table, index).map_err(|error| table_code(&error))?;
        handles.removed(table, index);
        Ok(())
    }

    pub(crate) fn bm_mt_indirect_delete_entry(&self, table: String, handle: i32) -> Done {
        self.bm_mt_delete_entry(table, handle)
    }

    pub(crate) fn bm_mt_set_entry_ttl(&self, table: String, handle: i32, timeout_ms: i32) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        if !loaded.program.tables[table].idle_timeout {
            return Err(TableCode::AgeingDisabled.into());
        }
        // As bmv2 has it, a number of 32 bits without a sign.
        let ns = u64::from(timeout_ms as u32) * 1_000_000;
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        let index = handles.entry(&tables, table, handle)?;
        tables.set_idle_timeout(table, index, ns).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_indirect_set_entry_ttl(&self, table: String, handle: i32, timeout_ms: i32) -> Done {
        self.bm_mt_set_entry_ttl(table, handle, timeout_ms)
    }

    pub(crate) fn bm_mt_set_default_action(&self, table: String, action: String, data: ActionData) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = table_of(&loaded, &table, Holds::Actions)?;
        let call = values::call(&loaded, table, &action, &data)?;
        tables.lock().set_default(table, &call).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_reset_default_entry(&self, table: String) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        // One that cannot be changed is what it was.
        if !loaded.program.tables[table].const_default {
            tables.lock().reset_default(table).map_err(|error| table_code(&error))?;
        }
        Ok(())
    }

    pub(crate) fn bm_mt_indirect_reset_default_entry(&self, table: String) -> Done {
        self.bm_mt_reset_default_entry(table)
    }

    pub(crate) fn bm_mt_indirect_set_default_member(&self, table: String, member: i32) -> Done {
        self.set_default(&table, Holds::Members, || Ok(Target::Member(member_id(member)?)))
    }

    pub(crate) fn bm_mt_indirect_ws_set_default_group(&self, table: String, group: i32) -> Done {
        self.set_default(&table, Holds::Groups, || Ok(Target::Group(group_id(group)?)))
    }

    fn set_default(
        &self,
        table: &str,
        holds: Holds,
        target: impl FnOnce() -> Result<Target, InvalidTableOperation>,
    ) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let table = table_of(&loaded, table, holds)?;
        tables.lock().set_default_target(table, &target()?).map_err(|error| table_code(&error))?;
        Ok(())
    }
}

/// A table of that kind.
fn table_of(loaded: &Loaded, name: &str, holds: Holds) -> Result<TableId, InvalidTableOperation> {
    let id = loaded.table(name)?;
    let profile = loaded.program.tables[id].profile.map(|profile| &loaded.program.profiles[profile]);
    let fits = match (holds, profile) {
        (Holds::Actions, profile) => profile.is_none(),
        (Holds::Members, profile) => profile.is_some(),
        (Holds::Groups, profile) => profile.is_some_and(|profile| profile.selector.is_some()),
    };
    if fits { Ok(id) } else { Err(TableCode::WrongTableType.into()) }
}

pub(super) fn member_id(handle: i32) -> Result<u32, InvalidTableOperation> {
    u32::try_from(handle).map_err(|_| TableCode::InvalidMember.into())
}

pub(super) fn group_id(handle: i32) -> Result<u32, InvalidTableOperation> {
    u32::try_from(handle).map_err(|_| TableCode::InvalidGroup.into())
}
