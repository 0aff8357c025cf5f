//! Commands about action profiles: members and groups.

use crate::execute::Shell;
use crate::schema::find;
use crate::show::{show_group, show_member};
use crate::trouble::Trouble;
use crate::words::{action_data, handle};
use millrace_commands::{Command, ProfileName, Word};
use millrace_thrift_api::ActionData;
use std::io::Write;

impl Shell {
    pub(crate) fn profile_command(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::CreateMember { profile, action, args } => {
                let name = self.profile(*profile, false)?;
                let (called, data) = self.member(&name, *action, args)?;
                let made = self.client.bm_mt_act_prof_add_member(name, called, data)?;
                writeln!(out, "Member has been created with handle {}", made as u32)?;
            }
            Command::ModifyMember { profile, action, member, args } => {
                let name = self.profile(*profile, false)?;
                let (called, data) = self.member(&name, *action, args)?;
                self.client.bm_mt_act_prof_modify_member(name, handle(*member), called, data)?;
            }
            Command::DeleteMember { profile, member } => {
                let name = self.profile(*profile, false)?;
                self.client.bm_mt_act_prof_delete_member(name, handle(*member))?;
            }
            Command::CreateGroup { profile } => {
                let name = self.profile(*profile, true)?;
                let made = self.client.bm_mt_act_prof_create_group(name)?;
                writeln!(out, "Group has been created with handle {}", made as u32)?;
            }
            Command::DeleteGroup { profile, group } => {
                let name = self.profile(*profile, true)?;
                self.client.bm_mt_act_prof_delete_group(name, handle(*group))?;
            }
            Command::AddToGroup { profile, member, group } => {
                let name = self.profile(*profile, true)?;
                self.client.bm_mt_act_prof_add_member_to_group(name, handle(*member), handle(*group))?;
            }
            Command::RemoveFromGroup { profile, member, group } => {
                let name = self.profile(*profile, true)?;
                self.client.bm_mt_act_prof_remove_member_from_group(name, handle(*member), handle(*group))?;
            }
            Command::DumpMember { profile, member } => {
                let name = self.profile(*profile, false)?;
                show_member(&self.client.bm_mt_act_prof_get_member(name, handle(*member))?, out)?;
            }
            Command::DumpGroup { profile, group } => {
                let name = self.profile(*profile, false)?;
                show_group(&self.client.bm_mt_act_prof_get_group(name, handle(*group))?, out)?;
            }
            Command::DumpProfile { profile } => {
                let name = self.profile(*profile, false)?;
                self.dump_profile(&name, out)?;
            }
            // Every other command has a handler of its own.
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn dump_profile(&mut self, name: &str, out: &mut dyn Write) -> Result<(), Trouble> {
        writeln!(out, "==========\nMEMBERS")?;
        for member in self.client.bm_mt_act_prof_get_members(name.to_owned())? {
            writeln!(out, "**********")?;
            show_member(&member, out)?;
        }
        if self.schema.profiles.get(name).is_some_and(|profile| profile.has_groups) {
            writeln!(out, "==========\nGROUPS")?;
            for group in self.client.bm_mt_act_prof_get_groups(name.to_owned())? {
                writeln!(out, "**********")?;
                show_group(&group, out)?;
            }
        }
        Ok(())
    }

    /// The full name of a profile: its own, or that of the table that uses it.
    fn profile(&self, name: ProfileName<'_>, groups: bool) -> Result<String, Trouble> {
        let full = match name {
            ProfileName::Profile(name) => find("action profile", &self.schema.profiles, name.text)?.0,
            ProfileName::Table(name) => self.schema.indirect(name.text, groups)?.2,
        };
        if groups && !self.schema.profiles.get(full).is_some_and(|profile| profile.has_groups) {
            return Err(Trouble::wrong("Cannot run this command on an action profile without selector"));
        }
        Ok(full.to_owned())
    }

    /// An action of a profile by its full name, with its data.
    fn member(
        &self,
        profile: &str,
        action: Word<'_>,
        args: &[Word<'_>],
    ) -> Result<(String, ActionData), Trouble> {
        let known = self.schema.profiles.get(profile);
        let listed = |name: &str| known.is_some_and(|profile| profile.actions.contains(name));
        let (full, called) = self.action(action.text, listed).ok_or_else(|| {
            Trouble::wrong(format!("Action profile '{profile}' has no action '{}'", action.text))
        })?;
        Ok((full.to_owned(), action_data(action.text, called, args)?))
    }
}
