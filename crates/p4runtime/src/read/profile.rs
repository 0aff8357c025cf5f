//! Members and groups of action profiles. What one-shot writes made is not shown.

use super::table::call_message;
use super::{MAX_ENTITIES, Reader, Stop};
use crate::catalog::ProfileInfo;
use crate::refusal::Refusal;
use crate::shadow::FIRST_ONE_SHOT;
use millrace_p4runtime_api::v1::{
    ActionProfileGroup, ActionProfileMember, action_profile_group, entity::Entity,
};
use millrace_state::GroupMember;

impl Reader<'_> {
    pub(super) async fn members(&self, request: ActionProfileMember) -> Result<(), Stop> {
        let catalog = &self.loaded.catalog;
        let handle = self.loaded.target.tables().await?;
        for (profile_id, info) in catalog.profiles.select(request.action_profile_id)? {
            let (profile, wanted) = (info.profile, request.member_id);
            let mut next = 0;
            loop {
                let part: Vec<_> = {
                    let tables = handle.lock();
                    match wanted {
                        0 => {
                            let all = tables.members_from(profile, next);
                            all.take_while(|(id, _)| *id < FIRST_ONE_SHOT).take(MAX_ENTITIES).collect()
                        }
                        id if id >= FIRST_ONE_SHOT => Vec::new(),
                        id => tables.member(profile, id).map(|member| (id, member)).into_iter().collect(),
                    }
                };
                let last = part.last().map(|(id, _)| *id);
                let full = part.len() == MAX_ENTITIES;
                let messages = part.into_iter().map(|(member_id, member)| {
                    let known = info.actions.iter().find(|(_, action)| **action == member.action);
                    let id = known.map_or(0, |(id, _)| *id);
                    Entity::ActionProfileMember(ActionProfileMember {
                        action_profile_id: profile_id,
                        member_id,
                        action: Some(call_message(catalog, id, &member.args)),
                    })
                });
                self.send(messages.collect()).await?;
                match last {
                    Some(last) if full => next = last + 1,
                    None if wanted != 0 && request.action_profile_id != 0 => {
                        return Err(Refusal::not_found(format!("no member {wanted}")).into());
                    }
                    _ => break,
                }
            }
        }
        Ok(())
    }

    pub(super) async fn groups(&self, request: ActionProfileGroup) -> Result<(), Stop> {
        let handle = self.loaded.target.tables().await?;
        for (profile_id, info) in self.loaded.catalog.profiles.select(request.action_profile_id)? {
            let (profile, wanted) = (info.profile, request.group_id);
            let found: Vec<(u32, Vec<GroupMember>)> = {
                let tables = handle.lock();
                match wanted {
                    0 => {
                        let shown = tables.groups(profile).take_while(|(id, _)| *id < FIRST_ONE_SHOT);
                        shown.map(|(id, members)| (id, members.to_vec())).collect()
                    }
                    id if id >= FIRST_ONE_SHOT => Vec::new(),
                    id => {
                        tables.group(profile, id).map(|members| (id, members.to_vec())).into_iter().collect()
                    }
                }
            };
            if found.is_empty() && wanted != 0 && request.action_profile_id != 0 {
                return Err(Refusal::not_found(format!("no group {wanted}")).into());
            }
            let message = |(id, members): &(u32, Vec<GroupMember>)| {
                let written = self.loaded.shadow.groups.get(&(profile, *id));
                let message = written.map_or_else(
                    || group_message((profile_id, info), *id, members),
                    |group| group.message.clone(),
                );
                Entity::ActionProfileGroup(message)
            };
            for part in found.chunks(MAX_ENTITIES) {
                self.send(part.iter().map(message).collect()).await?;
            }
        }
        Ok(())
    }
}

/// A group that was not written over P4Runtime.
fn group_message(
    (action_profile_id, info): (u32, &ProfileInfo),
    group_id: u32,
    members: &[GroupMember],
) -> ActionProfileGroup {
    let weight =
        |weight: u32| if info.weights_disallowed { 0 } else { i32::try_from(weight).unwrap_or(i32::MAX) };
    let members = members.iter().map(|member| action_profile_group::Member {
        member_id: member.member,
        weight: weight(member.weight),
        watch_kind: None,
    });
    ActionProfileGroup { action_profile_id, group_id, members: members.collect(), max_size: 0 }
}
