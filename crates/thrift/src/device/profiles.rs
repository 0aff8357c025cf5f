//! Calls about action profiles: members and groups.

use super::Device;
use super::codes::table_code;
use super::loaded::{Loaded, Running};
use super::tables::{group_id, member_id};
use super::values;
use millrace_pipeline::{Bits, ProfileId};
use millrace_state::{GroupMember, MemberWrite};
use millrace_thrift_api::{ActionData, CallError, Group, InvalidTableOperation, Member, TableCode};

type Done<T = ()> = Result<T, CallError<InvalidTableOperation>>;

impl Device {
    pub(crate) fn bm_mt_act_prof_add_member(
        &self,
        profile: String,
        action: String,
        data: ActionData,
    ) -> Done<i32> {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = profile_of(&loaded, &profile)?;
        let member = member(&loaded, profile, &action, &data)?;
        let id = tables.lock().insert_member(profile, None, &member).map_err(|error| table_code(&error))?;
        Ok(handle(id))
    }

    pub(crate) fn bm_mt_act_prof_delete_member(&self, profile: String, member: i32) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let (profile, member) = (profile_of(&loaded, &profile)?, member_id(member)?);
        tables.lock().remove_member(profile, member).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_act_prof_modify_member(
        &self,
        profile: String,
        id: i32,
        action: String,
        data: ActionData,
    ) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let (profile, id) = (profile_of(&loaded, &profile)?, member_id(id)?);
        let member = member(&loaded, profile, &action, &data)?;
        tables.lock().modify_member(profile, id, &member).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_act_prof_create_group(&self, profile: String) -> Done<i32> {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = selector_of(&loaded, &profile)?;
        let id = tables.lock().insert_group(profile, None, &[]).map_err(|error| table_code(&error))?;
        Ok(handle(id))
    }

    pub(crate) fn bm_mt_act_prof_delete_group(&self, profile: String, group: i32) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let (profile, group) = (selector_of(&loaded, &profile)?, group_id(group)?);
        tables.lock().remove_group(profile, group).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_act_prof_add_member_to_group(
        &self,
        profile: String,
        member: i32,
        group: i32,
    ) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = selector_of(&loaded, &profile)?;
        let (member, group) = (member_id(member)?, group_id(group)?);
        tables.lock().add_to_group(profile, group, member).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_act_prof_remove_member_from_group(
        &self,
        profile: String,
        member: i32,
        group: i32,
    ) -> Done {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = selector_of(&loaded, &profile)?;
        let (member, group) = (member_id(member)?, group_id(group)?);
        let mut tables = tables.lock();
        tables.member(profile, member).map_err(|error| table_code(&error))?;
        let members = tables.group(profile, group).map_err(|error| table_code(&error))?;
        if !members.iter().any(|listed| listed.member == member) {
            return Err(TableCode::MemberNotInGroup.into());
        }
        tables.remove_from_group(profile, group, member).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_act_prof_get_members(&self, profile: String) -> Done<Vec<Member>> {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = profile_of(&loaded, &profile)?;
        Ok(tables.lock().members(profile).map(|(id, member)| shown_member(&loaded, id, &member)).collect())
    }

    pub(crate) fn bm_mt_act_prof_get_member(&self, profile: String, member: i32) -> Done<Member> {
        let Running { loaded, tables, .. } = self.running()?;
        let (profile, id) = (profile_of(&loaded, &profile)?, member_id(member)?);
        let member = tables.lock().member(profile, id).map_err(|error| table_code(&error))?;
        Ok(shown_member(&loaded, id, &member))
    }

    pub(crate) fn bm_mt_act_prof_get_groups(&self, profile: String) -> Done<Vec<Group>> {
        let Running { loaded, tables, .. } = self.running()?;
        let profile = selector_of(&loaded, &profile)?;
        Ok(tables.lock().groups(profile).map(|(id, members)| shown_group(id, members)).collect())
    }

    pub(crate) fn bm_mt_act_prof_get_group(&self, profile: String, group: i32) -> Done<Group> {
        let Running { loaded, tables, .. } = self.running()?;
        let (profile, id) = (selector_of(&loaded, &profile)?, group_id(group)?);
        let tables = tables.lock();
        let members = tables.group(profile, id).map_err(|error| table_code(&error))?;
        Ok(shown_group(id, members))
    }
}

fn profile_of(loaded: &Loaded, name: &str) -> Result<ProfileId, InvalidTableOperation> {
    let found = loaded.program.profiles.iter().find(|(_, profile)| profile.name == name);
    found.map(|(id, _)| id).ok_or(TableCode::InvalidProfileName.into())
}

/// A profile that has groups.
fn selector_of(loaded: &Loaded, name: &str) -> Result<ProfileId, InvalidTableOperation> {
    let profile = profile_of(loaded, name)?;
    match &loaded.program.profiles[profile].selector {
        Some(_) => Ok(profile),
        None => Err(TableCode::NoSelection.into()),
    }
}

/// A member with the action of that name, one of the tables that use the profile.
fn member(
    loaded: &Loaded,
    profile: ProfileId,
    action: &str,
    data: &ActionData,
) -> Result<MemberWrite, InvalidTableOperation> {
    let program = &loaded.program;
    let users = program.tables.values().filter(|table| table.profile == Some(profile));
    let mut listed = users.flat_map(|table| &table.actions);
    let found = listed.find(|listed| program.actions[listed.action].name == action);
    let action = found.ok_or(TableCode::InvalidActionName)?.action;
    Ok(MemberWrite { action, args: values::arguments(loaded, action, data)? })
}

fn shown_member(loaded: &Loaded, id: u32, member: &MemberWrite) -> Member {
    Member {
        mbr_handle: handle(id),
        action_name: loaded.program.actions[member.action].name.clone(),
        action_data: member.args.iter().map(Bits::to_bytes).collect(),
    }
}

fn shown_group(id: u32, members: &[GroupMember]) -> Group {
    Group {
        grp_handle: handle(id),
        mbr_handles: members.iter().map(|member| handle(member.member)).collect(),
    }
}

/// P4Runtime's own ids may need the sign.
fn handle(id: u32) -> i32 {
    id as i32
}
