//! The control side of action profiles: members and groups.

use crate::WriteError;
use crate::journal::Undo;
use crate::pack;
use crate::tables::{Place, Tables};
use millrace_pipeline::*;
use millrace_tables::{self as tables, GroupMember, ProfileError, Selection, TableError, prices};

/// A member to be written, or as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberWrite {
    /// The action, one of the tables that use the profile ([`crate::State::member_action_named`]).
    pub action: ActionId,
    /// The values of its parameters.
    pub args: Vec<Bits>,
}

impl Tables {
    /// Adds a member under an id of the caller's choice, or the smallest that is free. Gives the id.
    ///
    /// # Errors
    /// The id is taken, the profile is full, or the action does not fit.
    pub fn insert_member(
        &mut self,
        profile: ProfileId,
        id: Option<u32>,
        member: &MemberWrite,
    ) -> Result<u32, WriteError> {
        let call = self.member_call(profile, member)?;
        let id = id.unwrap_or_else(|| self.profiles[profile].free_member_id());
        let price = self.profiles[profile].price(&call);
        let put =
            self.write_within(Place::Profile(profile), price, |tables| tables.put_member(profile, id, call));
        match put {
            Err(WriteError::Quota(_)) if self.profiles[profile].member(id).is_some() => {
                return Err(ProfileError::DuplicateMember(id).into());
            }
            other => other?,
        }
        self.note_undo(|| Undo::MemberAdded(profile, id));
        Ok(id)
    }

    pub(crate) fn put_member(
        &mut self,
        profile: ProfileId,
        id: u32,
        call: tables::ActionCall,
    ) -> Result<(), WriteError> {
        let member = self.profiles[profile].insert_member(id, call.clone())?;
        for table in self.schema.users(profile) {
            let own = self.own_call(table, &call);
            if let Err(error) = self.table_mut(table).add_member(member, own) {
                self.forget_member(profile, id)?;
                return Err(TableError::from(error).into());
            }
        }
        Ok(())
    }

    /// Gives a member another action, which all entries and groups that name it follow.
    ///
    /// # Errors
    /// No such member, or the action does not fit.
    pub fn modify_member(
        &mut self,
        profile: ProfileId,
        id: u32,
        member: &MemberWrite,
    ) -> Result<(), WriteError> {
        let call = self.member_call(profile, member)?;
        let before = self.profiles[profile].member(id).cloned().ok_or(ProfileError::NoMember(id))?;
        let growth = self.profiles[profile].price(&call).beyond(self.profiles[profile].price(&before));
        self.write_within(Place::Profile(profile), growth, |tables| {
            let written = tables.change_member(profile, id, call);
            match written {
                Ok(()) => tables.note_undo(|| Undo::MemberChanged(profile, Box::new((id, before)))),
                Err(_) => tables.change_member(profile, id, before)?,
            }
            written
        })
    }

    pub(crate) fn change_member(
        &mut self,
        profile: ProfileId,
        id: u32,
        call: tables::ActionCall,
    ) -> Result<(), WriteError> {
        self.profiles[profile].modify_member(id, call.clone())?;
        self.change_slots(profile, id, &call)
    }

    fn change_slots(
        &mut self,
        profile: ProfileId,
        id: u32,
        call: &tables::ActionCall,
    ) -> Result<(), WriteError> {
        let member = self.profiles[profile].member_ref(id)?;
        for table in self.schema.users(profile) {
            let own = self.own_call(table, call);
            self.table_mut(table).change_member(member, own).map_err(TableError::from)?;
        }
        Ok(())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// No such member, or it is in use.
    pub fn remove_member(&mut self, profile: ProfileId, id: u32) -> Result<(), WriteError> {
        let before = self.profiles[profile].member(id).cloned();
        self.write_freely(Place::Profile(profile), |tables| tables.forget_member(profile, id))?;
        if let Some(before) = before {
            self.note_undo(|| Undo::MemberRemoved(profile, Box::new((id, before))));
        }
        Ok(())
    }

    pub(crate) fn forget_member(&mut self, profile: ProfileId, id: u32) -> Result<(), WriteError> {
        let member = self.profiles[profile].member_ref(id)?;
        let tables = tables_of(&self.schema.program, &self.tables, profile);
        self.profiles[profile].remove_member(id, tables)?;
        for table in self.schema.users(profile) {
            self.table_mut(table).drop_member(member);
        }
        Ok(())
    }

    /// A member's call with the table's own number of the action; none when the table does not list it.
    fn own_call(&self, table: TableId, call: &tables::ActionCall) -> Option<tables::ActionCall> {
        let at = self.schema.action_in_table(table, ActionId::from_u32(call.action))?;
        Some(tables::ActionCall::new(at as u32, call.data.clone()))
    }

    /// Adds a group under an id of the caller's choice, or the smallest that is free. Gives the id.
    ///
    /// # Errors
    /// No selector, the id is taken, too many groups, or members that do not fit.
    pub fn insert_group(
        &mut self,
        profile: ProfileId,
        id: Option<u32>,
        members: &[GroupMember],
    ) -> Result<u32, WriteError> {
        self.insert_group_with(profile, id, members, Selection::Hash)
    }

    /// As [`Tables::insert_group`], with the way in which the group selects for as long as it exists.
    ///
    /// # Errors
    /// As those.
    pub fn insert_group_with(
        &mut self,
        profile: ProfileId,
        id: Option<u32>,
        members: &[GroupMember],
        selection: Selection,
    ) -> Result<u32, WriteError> {
        let id = id.unwrap_or_else(|| self.profiles[profile].free_group_id());
        let put = self.write_within(Place::Profile(profile), prices::group(members), |tables| {
            tables.profiles[profile].insert_group(id, members, selection)?;
            if let Err(error) = tables.publish_group(profile, id) {
                tables.forget_group(profile, id)?;
                return Err(error);
            }
            Ok(())
        });
        match put {
            Err(WriteError::Quota(_)) if self.profiles[profile].group(id).is_some() => {
                return Err(ProfileError::DuplicateGroup(id).into());
            }
            other => other?,
        }
        self.note_undo(|| Undo::GroupAdded(profile, id));
        Ok(id)
    }

    /// Gives a group other members.
    ///
    /// # Errors
    /// No such group, or members that do not fit.
    pub fn modify_group(
        &mut self,
        profile: ProfileId,
        id: u32,
        members: &[GroupMember],
    ) -> Result<(), WriteError> {
        let before = self.group(profile, id)?.to_vec();
        let growth = prices::group(members).beyond(prices::group(&before));
        self.write_within(Place::Profile(profile), growth, |tables| {
            tables.profiles[profile].modify_group(id, members)?;
            // The group has its slot, so this needs no memory that could be missing.
            tables.publish_group(profile, id)
        })?;
        self.note_undo(|| Undo::GroupChanged(profile, Box::new((id, before))));
        Ok(())
    }

    /// Says to the tables of a profile what members a group has.
    pub(crate) fn publish_group(&mut self, profile: ProfileId, id: u32) -> Result<(), WriteError> {
        let group = self.profiles[profile].group_ref(id)?;
        let members = self.group(profile, id)?.to_vec();
        let selection = self.selection(profile, id)?;
        for table in self.schema.users(profile) {
            self.table_mut(table).set_group(group, &members, selection).map_err(TableError::from)?;
        }
        Ok(())
    }

    /// Adds one member of weight 1 to a group.
    ///
    /// # Errors
    /// No such group or member, or it is in the group already.
    pub fn add_to_group(&mut self, profile: ProfileId, group: u32, member: u32) -> Result<(), WriteError> {
        let mut members = self.group(profile, group)?.to_vec();
        members.push(GroupMember { member, weight: 1 });
        self.modify_group(profile, group, &members)
    }

    /// Takes one member out of a group.
    ///
    /// # Errors
    /// No such group, or the member is not in it.
    pub fn remove_from_group(
        &mut self,
        profile: ProfileId,
        group: u32,
        member: u32,
    ) -> Result<(), WriteError> {
        let members = self.group(profile, group)?;
        let rest: Vec<GroupMember> = members.iter().filter(|other| other.member != member).copied().collect();
        if rest.len() == members.len() {
            return Err(ProfileError::NoMember(member).into());
        }
        self.modify_group(profile, group, &rest)
    }

    /// Removes a group.
    ///
    /// # Errors
    /// No such group, or it is in use.
    pub fn remove_group(&mut self, profile: ProfileId, id: u32) -> Result<(), WriteError> {
        let before = self.group(profile, id)?.to_vec();
        let selection = self.selection(profile, id)?;
        self.write_freely(Place::Profile(profile), |tables| tables.forget_group(profile, id))?;
        self.note_undo(|| Undo::GroupRemoved(profile, Box::new((id, before, selection))));
        Ok(())
    }

    pub(crate) fn forget_group(&mut self, profile: ProfileId, id: u32) -> Result<(), WriteError> {
        let group = self.profiles[profile].group_ref(id)?;
        let tables = tables_of(&self.schema.program, &self.tables, profile);
        self.profiles[profile].remove_group(id, tables)?;
        for table in self.schema.users(profile) {
            self.table_mut(table).drop_group(group);
        }
        Ok(())
    }

    /// The members of a group, by id.
    ///
    /// # Errors
    /// No such group.
    pub fn group(&self, profile: ProfileId, id: u32) -> Result<&[GroupMember], WriteError> {
        Ok(self.profiles[profile].group(id).ok_or(ProfileError::NoGroup(id))?)
    }

    /// How a group selects.
    ///
    /// # Errors
    /// No such group.
    pub fn selection(&self, profile: ProfileId, id: u32) -> Result<Selection, WriteError> {
        Ok(self.profiles[profile].selection(id).ok_or(ProfileError::NoGroup(id))?)
    }

    /// A member.
    ///
    /// # Errors
    /// No such member.
    pub fn member(&self, profile: ProfileId, id: u32) -> Result<MemberWrite, WriteError> {
        let call = self.profiles[profile].member(id).ok_or(ProfileError::NoMember(id))?;
        Ok(self.member_view(call))
    }

    /// All members, by id.
    pub fn members(&self, profile: ProfileId) -> impl Iterator<Item = (u32, MemberWrite)> {
        self.members_from(profile, 0)
    }

    /// The members from this id on, by id.
    pub fn members_from(&self, profile: ProfileId, first: u32) -> impl Iterator<Item = (u32, MemberWrite)> {
        self.profiles[profile].members_from(first).map(|(id, call)| (id, self.member_view(call)))
    }

    /// All groups, by id, with their members.
    pub fn groups(&self, profile: ProfileId) -> impl Iterator<Item = (u32, &[GroupMember])> {
        self.profiles[profile].groups()
    }

    fn member_view(&self, call: &tables::ActionCall) -> MemberWrite {
        let action = ActionId::from_u32(call.action);
        MemberWrite { action, args: pack::unpack(&self.schema.params[action], &call.data) }
    }

    /// A call as the profile keeps it: an action may be a member's when every table of the profile lists one of its
    /// name for entries.
    fn member_call(
        &self,
        profile: ProfileId,
        member: &MemberWrite,
    ) -> Result<tables::ActionCall, WriteError> {
        let action = member.action;
        if !self.schema.program.actions.is_valid(action) {
            return Err(WriteError::NoAction { action: action.as_u32() as usize });
        }
        let users = self.schema.program.tables.iter().filter(|(_, table)| table.profile == Some(profile));
        for (id, table) in users {
            let at = self.schema.action_in_table(id, action);
            let listed = at.and_then(|at| table.actions.get(at));
            match listed {
                None => return Err(WriteError::NoAction { action: action.as_u32() as usize }),
                Some(listed) if listed.scope == ActionScope::DefaultOnly => {
                    let action = self.schema.program.actions[action].name.clone();
                    return Err(WriteError::ActionScope { action, as_default: false });
                }
                Some(_) => {}
            }
        }
        Ok(tables::ActionCall::new(action.as_u32(), self.schema.pack_args(action, &member.args)?))
    }
}

fn tables_of<'a>(
    program: &'a Program,
    tables: &'a entity::PrimaryMap<TableId, tables::Table>,
    profile: ProfileId,
) -> impl Iterator<Item = &'a tables::Table> {
    let users = program.tables.iter().filter(move |(_, table)| table.profile == Some(profile));
    users.map(|(id, _)| &tables[id])
}
