//! The control side of tables: entries and default actions.

use crate::WriteError;
use crate::account::Held;
use crate::journal::Undo;
use crate::pack;
use crate::tables::{Place, Tables};
use millrace_pipeline::*;
use millrace_tables::engines::LookupContract;
use millrace_tables::{
    self as tables, ColorCounts, CounterValue, EntryIndex, EntrySpec, EntryTarget, FieldMatch, MeterConfig,
    TableError, TargetRef,
};

/// An entry to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryWrite {
    /// One for each key field. [`EntryMatch::Exact`] is accepted for a field of any kind.
    pub matches: Vec<EntryMatch>,
    /// The largest wins; 0 in a table without ternary, range or optional fields.
    pub priority: u32,
    /// What it does.
    pub target: Target,
    /// Idle for that long and it is expired; 0: never.
    pub idle_timeout_ns: u64,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Runs an action; the index is that in [`Table::actions`].
    Action(ActionCall),
    /// Runs the action of a member of the table's profile.
    Member(u32),
    /// Runs the action of a member selected from a group of the table's profile.
    Group(u32),
}

/// An entry as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryView {
    /// Its name for further writes.
    pub index: EntryIndex,
    /// One for each key field, in canonical form: of the kind of the field, no bits outside a mask or prefix.
    pub matches: Vec<EntryMatch>,
    /// The largest wins.
    pub priority: u32,
    /// What it does.
    pub target: Target,
    /// Whether the control side may not change it.
    pub is_const: bool,
    /// Its direct counter, when the table has one.
    pub counter: Option<CounterValue>,
    /// The configuration of its direct meter, when it has one.
    pub meter: Option<MeterConfig>,
    /// What its direct meter has coloured, when the table has one.
    pub meter_counts: Option<ColorCounts>,
    /// Its idle timeout; 0: none.
    pub idle_timeout_ns: u64,
    /// When it was last hit, or else added; 0 in a table without timeouts.
    pub last_hit_ns: u64,
}

impl Tables {
    /// Adds an entry. `now_ns` is when its idleness starts.
    ///
    /// # Errors
    /// Everything that does not fit; nothing is changed then.
    pub fn insert(
        &mut self,
        table: TableId,
        entry: &EntryWrite,
        now_ns: u64,
    ) -> Result<EntryIndex, WriteError> {
        self.insert_as(table, entry, false, now_ns)
    }

    pub(crate) fn insert_as(
        &mut self,
        table: TableId,
        entry: &EntryWrite,
        is_const: bool,
        now_ns: u64,
    ) -> Result<EntryIndex, WriteError> {
        let spec = EntrySpec {
            matches: self.field_matches(table, &entry.matches)?,
            priority: entry.priority,
            target: self.entry_target(table, &entry.target)?,
            is_const,
            idle_timeout_ns: entry.idle_timeout_ns,
            created_ns: now_ns,
        };
        let price = self.tables[table].price(&spec.matches, &spec.target);
        let inserted = self.write_within(Place::Table(table), price, |tables| {
            tables.table_mut(table).insert(spec).map_err(|error| tables.name_key(table, error))
        });
        let index = match inserted {
            // An entry that is there is the better answer, also where there is no room for another one.
            Err(WriteError::Quota(_)) if self.find(table, &entry.matches, entry.priority).is_ok() => {
                return Err(TableError::Duplicate.into());
            }
            other => other?,
        };
        self.note_undo(|| Undo::Inserted(table, index));
        Ok(index)
    }

    /// Gives an entry another target.
    ///
    /// # Errors
    /// No such entry, a const one, or a target that does not fit.
    pub fn modify(&mut self, table: TableId, index: EntryIndex, target: &Target) -> Result<(), WriteError> {
        let target = self.entry_target(table, target)?;
        let before = self.tables[table].entry_target(index).filter(|_| self.undo.is_some());
        let has = self.tables[table].entry_target(index).map_or(0, |target| target.arguments());
        let growth = Held::bytes(target.arguments().saturating_sub(has));
        self.write_within(Place::Table(table), growth, |tables| {
            Ok(tables.table_mut(table).modify(index, target)?)
        })?;
        if let Some(before) = before {
            self.note_undo(|| Undo::Changed(table, Box::new((index, before))));
        }
        Ok(())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// No such entry, or a const one.
    pub fn remove(&mut self, table: TableId, index: EntryIndex) -> Result<(), WriteError> {
        self.write_freely(Place::Table(table), |tables| {
            match tables.undo.is_some() {
                true => {
                    let taken = tables.table_mut(table).take(index)?;
                    tables.note_undo(|| Undo::Removed(table, Box::new(taken)));
                }
                false => tables.table_mut(table).remove(index)?,
            }
            Ok(())
        })
    }

    /// Removes all entries that are not const.
    pub fn clear(&mut self, table: TableId) {
        match self.undo.is_some() {
            true => self.tables[table].removable().into_iter().for_each(|index| {
                // It is there, and not const.
                let _ = self.remove(table, index);
            }),
            false => self.write_freely(Place::Table(table), |tables| tables.table_mut(table).clear()),
        }
    }

    /// The entry with exactly these matches and this priority.
    ///
    /// # Errors
    /// No such entry, or matches that do not fit the key.
    pub fn find(
        &self,
        table: TableId,
        matches: &[EntryMatch],
        priority: u32,
    ) -> Result<EntryIndex, WriteError> {
        let matches = self.field_matches(table, matches)?;
        self.tables[table].find(&matches, priority).map_err(|error| self.name_key(table, error))
    }

    /// Gives an entry another idle timeout; 0: none.
    ///
    /// # Errors
    /// No such entry, a const one, or a table without timeouts.
    pub fn set_idle_timeout(&mut self, table: TableId, index: EntryIndex, ns: u64) -> Result<(), WriteError> {
        let before = self.tables[table].entry(index).map_or(0, |entry| entry.idle_timeout_ns());
        self.table_mut(table).set_idle_timeout(index, ns)?;
        self.note_undo(|| Undo::Timeout(table, Box::new((index, before))));
        Ok(())
    }

    /// The entries that are idle for longer than their timeout.
    pub fn expired(&self, table: TableId, now_ns: u64) -> impl Iterator<Item = EntryIndex> {
        self.tables[table].expired(now_ns)
    }

    /// Sets the default action.
    ///
    /// # Errors
    /// A const default, an action that may not be one, or arguments that do not fit.
    pub fn set_default(&mut self, table: TableId, call: &ActionCall) -> Result<(), WriteError> {
        let call = self.table_call(table, call, ActionScope::TableOnly)?;
        self.put_default(table, |table| table.set_default(call))
    }

    /// Sets what a miss does: an action, or what a member, or one that is selected from a group, of the table's profile does
    /// at the time. A miss for which the group is empty does what a hit of it does.
    ///
    /// # Errors
    /// As [`Tables::set_default`], also for the action that a member has now; no such member or group.
    pub fn set_default_target(&mut self, table: TableId, target: &Target) -> Result<(), WriteError> {
        if let Target::Member(id) = target {
            let member = self.member(self.schema.profile_of(table)?, *id)?;
            let action = self.schema.action_in_table(table, member.action);
            let action = action.ok_or(WriteError::NoAction { action: member.action.as_u32() as usize })?;
            self.table_call(table, &ActionCall { action, args: member.args }, ActionScope::TableOnly)?;
        }
        match target {
            Target::Action(call) => self.set_default(table, call),
            other => {
                let target = self.entry_target(table, other)?;
                self.put_default(table, |table| table.set_default_target(target))
            }
        }
    }

    fn put_default(
        &mut self,
        table: TableId,
        put: impl FnOnce(&mut tables::Table) -> Result<(), TableError>,
    ) -> Result<(), WriteError> {
        let before = self.tables[table].default_target();
        put(self.table_mut(table))?;
        self.note_undo(|| Undo::Default(table, Box::new(before)));
        Ok(())
    }

    /// Sets the default action back to that of the program.
    ///
    /// # Errors
    /// A const default.
    pub fn reset_default(&mut self, table: TableId) -> Result<(), WriteError> {
        self.put_default(table, tables::Table::reset_default)
    }

    /// The default action: that of a member in its place; of a group, the one that was the default before.
    pub fn default_action(&self, table: TableId) -> ActionCall {
        self.call_view(table, self.tables[table].default_action())
    }

    /// What a miss does.
    pub fn default_target(&self, table: TableId) -> Target {
        match self.tables[table].default_target() {
            EntryTarget::Action(call) => Target::Action(self.call_view(table, &call)),
            EntryTarget::Member(member) => Target::Member(member.id()),
            EntryTarget::Group(group) => Target::Group(group.id()),
        }
    }

    /// What the lookup of a key takes at most, as the table is built now.
    pub fn lookup_contract(&self, table: TableId) -> LookupContract {
        self.tables[table].contract()
    }

    /// How many entries there are.
    pub fn entry_count(&self, table: TableId) -> u32 {
        self.tables[table].len()
    }

    /// An entry.
    pub fn entry(&self, table: TableId, index: EntryIndex) -> Option<EntryView> {
        let kept = self.tables[table].entry(index).filter(|_| index.is_hit())?;
        Some(self.view(table, index, &kept))
    }

    /// All entries, in the order in which they were added.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = EntryView> {
        self.tables[table].iter().map(move |(index, kept)| self.view(table, index, &kept))
    }

    /// The entries among the next `limit` indices from `from` on, and where to go on; none at the end. For a caller
    /// that reads a large table piece by piece: entries written in between may be among them or not.
    pub fn entries_from(
        &self,
        table: TableId,
        from: EntryIndex,
        limit: u32,
    ) -> (Vec<EntryView>, Option<EntryIndex>) {
        let (found, next) = self.tables[table].scan(from, limit);
        (found.into_iter().filter_map(|index| self.entry(table, index)).collect(), next)
    }

    /// The profile of a table.
    ///
    /// # Errors
    /// The table has none.
    pub fn profile_of(&self, table: TableId) -> Result<ProfileId, WriteError> {
        self.schema.profile_of(table)
    }

    fn view(&self, table: TableId, index: EntryIndex, kept: &tables::Entry) -> EntryView {
        let widths = &self.schema.keys[table];
        EntryView {
            index,
            matches: widths
                .iter()
                .zip(kept.matches())
                .map(|(width, m)| pack::entry_match(*width, m))
                .collect(),
            priority: kept.priority(),
            target: match kept.target() {
                TargetRef::Member(member) => Target::Member(member.id()),
                TargetRef::Group(group) => Target::Group(group.id()),
                TargetRef::Action(_) => {
                    let table_of = &self.tables[table];
                    let call = table_of.action_of(index).unwrap_or_else(|| table_of.default_action());
                    Target::Action(self.call_view(table, call))
                }
            },
            is_const: kept.is_const(),
            counter: self.tables[table].counter(index).ok(),
            meter: kept.meter(),
            meter_counts: self.tables[table].meter_counts(index).ok(),
            idle_timeout_ns: kept.idle_timeout_ns(),
            last_hit_ns: kept.last_hit_ns(),
        }
    }

    fn call_view(&self, table: TableId, call: &tables::ActionCall) -> ActionCall {
        ActionCall { action: call.action as usize, args: self.schema.args_of(table, call) }
    }

    fn field_matches(&self, table: TableId, matches: &[EntryMatch]) -> Result<Vec<FieldMatch>, WriteError> {
        let keys = &self.schema.program.tables[table].keys;
        if matches.len() != keys.len() {
            return Err(WriteError::MatchCount {
                keys: keys.iter().map(|key| key.name.clone()).collect(),
                found: matches.len(),
            });
        }
        for ((key, width), given) in keys.iter().zip(&self.schema.keys[table]).zip(matches) {
            if let Some(value) = pack::match_values(given).find(|value| value.width() != *width) {
                return Err(WriteError::KeyWidth {
                    key: key.name.clone(),
                    width: *width,
                    found: value.width(),
                });
            }
        }
        Ok(matches.iter().map(pack::field_match).collect())
    }

    fn entry_target(&self, table: TableId, target: &Target) -> Result<EntryTarget, WriteError> {
        match target {
            Target::Action(call) => {
                Ok(EntryTarget::Action(self.table_call(table, call, ActionScope::DefaultOnly)?))
            }
            Target::Member(id) => {
                let profile = self.schema.profile_of(table)?;
                Ok(EntryTarget::Member(self.profiles[profile].member_ref(*id)?))
            }
            Target::Group(id) => {
                let profile = self.schema.profile_of(table)?;
                Ok(EntryTarget::Group(self.profiles[profile].group_ref(*id)?))
            }
        }
    }

    /// A call as the table keeps it, when the action is in the table, has not the scope `refused`, and the arguments
    /// fit.
    fn table_call(
        &self,
        table: TableId,
        call: &ActionCall,
        refused: ActionScope,
    ) -> Result<tables::ActionCall, WriteError> {
        let listed = self.schema.program.tables[table]
            .actions
            .get(call.action)
            .ok_or(WriteError::NoAction { action: call.action })?;
        if listed.scope == refused {
            return Err(WriteError::ActionScope {
                action: self.schema.program.actions[listed.action].name.clone(),
                as_default: refused == ActionScope::TableOnly,
            });
        }
        Ok(tables::ActionCall::new(call.action as u32, self.schema.pack_args(listed.action, &call.args)?))
    }

    /// Says the name of the key field that an error of the table counts.
    fn name_key(&self, table: TableId, error: TableError) -> WriteError {
        let field = match error {
            TableError::WrongKind { field, .. }
            | TableError::WrongWidth { field, .. }
            | TableError::BadPrefix { field, .. }
            | TableError::EmptyRange { field } => field,
            _ => return WriteError::Table(error),
        };
        match self.schema.program.tables[table].keys.get(field) {
            Some(key) => WriteError::Key { key: key.name.clone(), error },
            None => WriteError::Table(error),
        }
    }
}
