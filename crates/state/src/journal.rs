//! The journal of table writes: each write notes what takes it back, so that undoing costs as much as what was written.
//!
//! A journal belongs to whoever writes, not to the tables: it is lent to them while that thread has them ([`Tables::record`]).
//! So what others write between two parts of a batch is in no journal but theirs, and stays when the batch is taken back.

use crate::cells::CounterRef;
use crate::tables::{Place, Tables};
use crate::{EntryIndex, WriteError};
use millrace_pipeline::{ProfileId, TableId};
use millrace_tables::{
    ActionCall, ColorCounts, CounterValue, EntryTarget, GroupMember, MeterConfig, Selection, Taken,
};
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};

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
    /// Neighbouring cells that held the same.
    Counter(Box<(CounterRef, Range<u64>, CounterValue)>),
    Meter(TableId, Box<(EntryIndex, Option<MeterConfig>)>),
    MeterCounts(TableId, Box<(EntryIndex, ColorCounts)>),
}

/// What takes back the writes of a batch, in the order of the writes. It grows with these.
#[derive(Default)]
pub struct Journal(Vec<Undo>);

impl Journal {
    /// How many writes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Journal of {} writes", self.0.len())
    }
}

/// Tables whose writes go into a journal for as long as this is there.
pub struct Recording<'a> {
    tables: &'a mut Tables,
    journal: &'a mut Journal,
}

impl Deref for Recording<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        self.tables
    }
}

impl DerefMut for Recording<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        self.tables
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.journal.0 = self.tables.undo.take().unwrap_or_default();
    }
}

impl Tables {
    /// Writes go into that journal, after those that it has.
    pub fn record<'a>(&'a mut self, journal: &'a mut Journal) -> Recording<'a> {
        debug_assert!(self.undo.is_none(), "one journal at a time");
        self.undo = Some(std::mem::take(&mut journal.0));
        Recording { tables: self, journal }
    }

    /// Takes back the writes of a journal, the last first. Others have not written to the same entries since.
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub fn take_back(&mut self, journal: Journal) -> Result<(), WriteError> {
        let mut result = Ok(());
        let mut moved = Moved::default();
        for undo in journal.0.into_iter().rev() {
            result = result.and(self.take_one_back(undo, &mut moved));
        }
        result
    }

    /// From now on writes note what undoes them.
    pub(crate) fn note(&mut self) {
        self.undo = Some(Vec::new());
    }

    pub(crate) fn note_undo(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(noted) = &mut self.undo {
            noted.push(undo());
        }
    }

    /// Notes what a cell of a counter held. A whole array is written cell by cell, and the cells before held mostly the same.
    pub(crate) fn note_counter(&mut self, counter: CounterRef, cell: u64, held: CounterValue) {
        let Some(noted) = &mut self.undo else { return };
        if let Some(Undo::Counter(last)) = noted.last_mut()
            && last.0 == counter
            && last.1.end == cell
            && last.2 == held
        {
            last.1.end += 1;
            return;
        }
        noted.push(Undo::Counter(Box::new((counter, cell..cell + 1, held))));
    }

    /// Takes back all writes since [`Tables::note`].
    ///
    /// # Errors
    /// The system has no memory for something; all else is taken back.
    pub(crate) fn undo(&mut self) -> Result<(), WriteError> {
        self.counter_writes += 1;
        let noted = self.undo.take().unwrap_or_default();
        self.take_back(Journal(noted))
    }

    fn take_one_back(&mut self, undo: Undo, moved: &mut Moved) -> Result<(), WriteError> {
        match undo {
            Undo::Inserted(table, index) => {
                if let Some(index) = moved.now(table, index) {
                    self.write_freely(Place::Table(table), |tables| tables.table_mut(table).remove(index))?;
                }
            }
            Undo::Changed(table, of) => {
                if let Some(index) = moved.now(table, of.0) {
                    self.write_freely(Place::Table(table), |tables| {
                        tables.table_mut(table).modify(index, of.1)
                    })?;
                }
            }
            Undo::Removed(table, taken) => {
                let had = taken.index();
                let back =
                    self.write_freely(Place::Table(table), |tables| tables.table_mut(table).put_back(*taken));
                moved.note(table, had, back.as_ref().ok().copied());
                back?;
            }
            Undo::Timeout(table, of) => {
                if let Some(index) = moved.now(table, of.0) {
                    self.table_mut(table).set_idle_timeout(index, of.1)?;
                }
            }
            Undo::Default(table, target) => self.table_mut(table).set_default_target(*target)?,
            Undo::MemberAdded(profile, _)
            | Undo::MemberChanged(profile, _)
            | Undo::MemberRemoved(profile, _)
            | Undo::GroupAdded(profile, _)
            | Undo::GroupChanged(profile, _)
            | Undo::GroupRemoved(profile, _) => {
                self.write_freely(Place::Profile(profile), |tables| tables.take_one_of_profile_back(undo))?;
            }
            Undo::Counter(of) => match of.0 {
                CounterRef::Indexed(_) => {
                    of.1.into_iter().try_for_each(|cell| self.set_counter(of.0, cell, of.2))?;
                }
                CounterRef::Direct(table) => {
                    for index in of.1 {
                        if let Some(index) = moved.now(table, EntryIndex(index as u32)) {
                            self.set_counter(of.0, index.0.into(), of.2)?;
                        }
                    }
                }
            },
            Undo::Meter(table, of) => {
                if let Some(index) = moved.now(table, of.0) {
                    self.table_mut(table).set_meter(index, of.1)?;
                }
            }
            Undo::MeterCounts(table, of) => {
                if let Some(index) = moved.now(table, of.0) {
                    self.set_direct_meter_counts(table, index.0.into(), of.1)?;
                }
            }
        }
        Ok(())
    }

    fn take_one_of_profile_back(&mut self, undo: Undo) -> Result<(), WriteError> {
        match undo {
            Undo::MemberAdded(profile, id) => self.forget_member(profile, id),
            Undo::MemberChanged(profile, of) => self.change_member(profile, of.0, of.1),
            Undo::MemberRemoved(profile, of) => self.put_member(profile, of.0, of.1),
            Undo::GroupAdded(profile, id) => self.forget_group(profile, id),
            Undo::GroupChanged(profile, of) => {
                self.profiles[profile].modify_group(of.0, &of.1)?;
                self.publish_group(profile, of.0)
            }
            Undo::GroupRemoved(profile, of) => {
                self.profiles[profile].insert_group(of.0, &of.1, of.2)?;
                self.publish_group(profile, of.0)
            }
            _ => Ok(()),
        }
    }
}

/// Entries that were put back and are not where they were, because others wrote meanwhile: what was written to them earlier is
/// taken back where they are now, or, if they could not be put back, nowhere.
#[derive(Default)]
struct Moved(HashMap<(TableId, EntryIndex), Option<EntryIndex>>);

impl Moved {
    fn note(&mut self, table: TableId, had: EntryIndex, now: Option<EntryIndex>) {
        if now != Some(had) {
            self.0.insert((table, had), now);
        }
    }

    fn now(&self, table: TableId, had: EntryIndex) -> Option<EntryIndex> {
        if self.0.is_empty() { Some(had) } else { self.0.get(&(table, had)).copied().unwrap_or(Some(had)) }
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
