//! Undoing writes: each notes what takes it back, so that this costs as much as what was written.

use crate::cells::CounterRef;
use crate::tables::Tables;
use crate::{EntryIndex, WriteError};
use millrace_pipeline::{ProfileId, TableId};
use millrace_tables::{ActionCall, CounterValue, EntryTarget, GroupMember, MeterConfig, Selection, Taken};

/// What takes one write back. Small, as there may be millions.
pub(crate) enum Undo {
    Inserted(TableId, EntryIndex),
    Changed(TableId, Box<(EntryIndex, EntryTarget)>),
    Removed(TableId, Box<Taken>),
    Timeout(TableId, Box<(EntryIndex, u64)>),
    Default(TableId, Box<EntryTarget>),
    MemberAdded(ProfileId, u32),
    MemberChanged(ProfileId, Box<(u32, ActionCall)>),
    MemberRemoved(ProfileId, Box<(u32, ActionCall)>),
    GroupAdded(ProfileId, u32),
    GroupChanged(ProfileId, Box<(u32, Vec<GroupMember>)>),
    GroupRemoved(ProfileId, Box<(u32, Vec<GroupMember>, Selection)>),
    Counter(Box<(CounterRef, u64, CounterValue)>),
    Meter(TableId, Box<(EntryIndex, Option<MeterConfig>)>),
}

impl Tables {
    /// From now on writes note what undoes them.
    pub(crate) fn note(&mut self) {
        self.undo = Some(Vec::new());
    }

    pub(crate) fn note_undo(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(noted) = &mut self.undo {
            noted.push(undo());
        }
    }

    /// Takes back all writes since [`Tables::note`].
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub(crate) fn undo(&mut self) -> Result<(), WriteError> {
        let noted = self.undo.take().unwrap_or_default();
        let mut result = Ok(());
        for undo in noted.into_iter().rev() {
            result = result.and(self.take_back(undo));
        }
        result
    }

    fn take_back(&mut self, undo: Undo) -> Result<(), WriteError> {
        match undo {
            Undo::Inserted(table, index) => self.table_mut(table).remove(index)?,
            Undo::Changed(table, of) => self.table_mut(table).modify(of.0, of.1)?,
            Undo::Removed(table, taken) => self.table_mut(table).put_back(*taken)?,
            Undo::Timeout(table, of) => self.table_mut(table).set_idle_timeout(of.0, of.1)?,
            Undo::Default(table, target) => self.table_mut(table).set_default_target(*target)?,
            Undo::MemberAdded(profile, id) => self.forget_member(profile, id)?,
            Undo::MemberChanged(profile, of) => self.change_member(profile, of.0, of.1)?,
            Undo::MemberRemoved(profile, of) => self.put_member(profile, of.0, of.1)?,
            Undo::GroupAdded(profile, id) => self.forget_group(profile, id)?,
            Undo::GroupChanged(profile, of) => {
                self.profiles[profile].modify_group(of.0, &of.1)?;
                self.publish_group(profile, of.0)?;
            }
            Undo::GroupRemoved(profile, of) => {
                self.profiles[profile].insert_group(of.0, &of.1, of.2)?;
                self.publish_group(profile, of.0)?;
            }
            Undo::Counter(of) => self.set_counter(of.0, of.1, of.2)?,
            Undo::Meter(table, of) => self.table_mut(table).set_meter(of.0, of.1)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_small() {
        assert!(size_of::<Undo>() <= 16);
    }
}
