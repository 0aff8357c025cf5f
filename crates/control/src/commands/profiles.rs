//! Commands about action profiles: members and groups.

use super::dump::action_text;
use super::execute::{Executor, Reply, refused};
use millrace_commands::Refusal;
use millrace_commands::{Command, Line, ProfileName, Word};
use millrace_pipeline::ProfileId;
use millrace_state::{GroupMember, MemberWrite};
use std::fmt::Write;
use std::ops::Range;

impl<'a> Executor<'_, 'a> {
    pub(super) fn profile_command(&mut self, line: &Line<'_, 'a>) -> Result<Reply, Refusal> {
        let whole = |error| refused(line.at.clone(), error);
        match &line.command {
            Command::CreateMember { profile, action, args } => {
                let profile = self.profile(*profile)?;
                let member = self.member(&line.at, profile, *action, args)?;
                let handle = self.tables.insert_member(profile, None, &member).map_err(whole)?;
                Ok(Reply::Made { what: "member", handle })
            }
            Command::ModifyMember { profile, action, member, args } => {
                let profile = self.profile(*profile)?;
                let written = self.member(&line.at, profile, *action, args)?;
                let done = self.tables.modify_member(profile, member.0, &written);
                done.map_err(|error| refused(member.1.at(), error))?;
                Ok(Reply::Done)
            }
            Command::DeleteMember { profile, member } => {
                let profile = self.profile(*profile)?;
                let done = self.tables.remove_member(profile, member.0);
                done.map_err(|error| refused(member.1.at(), error))?;
                Ok(Reply::Done)
            }
            Command::CreateGroup { profile } => {
                let profile = self.profile(*profile)?;
                let handle = self.tables.insert_group(profile, None, &[]).map_err(whole)?;
                Ok(Reply::Made { what: "group", handle })
            }
            Command::DeleteGroup { profile, group } => {
                let profile = self.profile(*profile)?;
                let done = self.tables.remove_group(profile, group.0);
                done.map_err(|error| refused(group.1.at(), error))?;
                Ok(Reply::Done)
            }
            Command::AddToGroup { profile, member, group } => {
                let profile = self.profile(*profile)?;
                self.tables.add_to_group(profile, group.0, member.0).map_err(whole)?;
                Ok(Reply::Done)
            }
            Command::RemoveFromGroup { profile, member, group } => {
                let profile = self.profile(*profile)?;
                self.tables.remove_from_group(profile, group.0, member.0).map_err(whole)?;
                Ok(Reply::Done)
            }
            Command::DumpMember { profile, member } => {
                let profile = self.profile(*profile)?;
                let found = self.tables.member(profile, member.0);
                let found = found.map_err(|error| refused(member.1.at(), error))?;
                Ok(Reply::Text(self.member_text(member.0, &found)))
            }
            Command::DumpGroup { profile, group } => {
                let profile = self.profile(*profile)?;
                let members = self.tables.group(profile, group.0);
                let members = members.map_err(|error| refused(group.1.at(), error))?;
                Ok(Reply::Text(group_text(group.0, members)))
            }
            Command::DumpProfile { profile } => self.dump_profile(*profile),
            // Every other command has a handler of its own.
            _ => Ok(Reply::Done),
        }
    }

    fn dump_profile(&mut self, profile: ProfileName<'a>) -> Result<Reply, Refusal> {
        let profile = self.profile(profile)?;
        Ok(Reply::Text(self.profile_text(profile)))
    }

    fn member(
        &self,
        at: &Range<usize>,
        profile: ProfileId,
        action: Word<'a>,
        args: &[Word<'a>],
    ) -> Result<MemberWrite, Refusal> {
        let found = self.switch.state().member_action_named(profile, action.text);
        let action = found.map_err(|error| refused(action.at(), error))?;
        Ok(MemberWrite { action, args: self.args(at, action, args)? })
    }

    pub(super) fn profile_text(&self, profile: ProfileId) -> String {
        let mut text = String::from("==========\nMEMBERS\n");
        for (id, member) in self.tables.members(profile) {
            text.push_str("**********\n");
            text += &self.member_text(id, &member);
        }
        if self.switch.state().program().profiles[profile].selector.is_some() {
            text.push_str("==========\nGROUPS\n");
            for (id, members) in self.tables.groups(profile) {
                text.push_str("**********\n");
                text += &group_text(id, members);
            }
        }
        text
    }

    fn member_text(&self, id: u32, member: &MemberWrite) -> String {
        let name = &self.switch.state().program().actions[member.action].name;
        format!("Dumping member {id}\n{}", action_text(name, &member.args))
    }
}

fn group_text(id: u32, members: &[GroupMember]) -> String {
    let mut text = format!("Dumping group {id}\nMembers: [");
    for (at, member) in members.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = match member.weight {
            1 => write!(text, "{comma}{}", member.member),
            weight => write!(text, "{comma}{} (weight {weight})", member.member),
        };
    }
    text + "]\n"
}
