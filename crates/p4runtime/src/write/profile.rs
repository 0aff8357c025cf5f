//! Members and groups of action profiles.

use super::batch::{Change, Site};
use super::{Decoder, Kind, Op, TablesOp};
use crate::catalog::ProfileInfo;
use crate::refusal::Refusal;
use crate::shadow::{Before, FIRST_ONE_SHOT, Group, Shadow, Watched, all};
use crate::value;
use millrace_dataplane::PortId;
use millrace_p4runtime_api::config::action_profile::SelectorSizeSemantics;
use millrace_p4runtime_api::v1;
use millrace_pipeline::ProfileId;
use millrace_state::{GroupMember, MAX_GROUP_WEIGHT, MemberWrite, ProfileError, Tables};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(crate) struct MemberOp {
    kind: Kind,
    profile: ProfileId,
    id: u32,
    /// None for a delete.
    write: Option<MemberWrite>,
}

#[derive(Clone, Debug)]
pub(crate) struct GroupOp {
    kind: Kind,
    profile: ProfileId,
    id: u32,
    group: Group,
}

impl Decoder<'_> {
    pub(super) fn member(&self, kind: Kind, member: v1::ActionProfileMember) -> Result<Op, Refusal> {
        let info = self.catalog.profiles.get(member.action_profile_id)?;
        let id = own_id(member.member_id, "member")?;
        let write = match (kind, &member.action) {
            (Kind::Delete, _) => None,
            (_, None) => return Err(Refusal::invalid("the action is missing")),
            (_, Some(action)) => Some(self.member_write(info, action)?),
        };
        Ok(Op::Tables(TablesOp::Member(MemberOp { kind, profile: info.profile, id, write })))
    }

    pub(super) fn member_write(
        &self,
        info: &ProfileInfo,
        action: &v1::Action,
    ) -> Result<MemberWrite, Refusal> {
        let known = info.actions.get(&action.action_id).ok_or_else(|| {
            Refusal::invalid(format!(
                "action profile `{}` has no action with id {:#010x}",
                info.name, action.action_id
            ))
        })?;
        Ok(MemberWrite { action: *known, args: self.arguments(action)? })
    }

    pub(super) fn group(&self, kind: Kind, mut group: v1::ActionProfileGroup) -> Result<Op, Refusal> {
        let info = self.catalog.profiles.get(group.action_profile_id)?;
        let id = own_id(group.group_id, "group")?;
        if !info.with_selector {
            return Err(Refusal::invalid(format!(
                "action profile `{}` has no selector, so no groups",
                info.name
            )));
        }
        let (mut members, mut known) = (Watched::new(), BTreeSet::new());
        if kind != Kind::Delete {
            let (limit, size) = (self.group_limit(info, group.max_size)?, info.group_size());
            for given in &mut group.members {
                use v1::action_profile_group::member::WatchKind;
                #[allow(deprecated, reason = "older controllers use it still")]
                let watch = match &mut given.watch_kind {
                    Some(WatchKind::WatchPort(port)) => {
                        let watched = self.watch_port(port)?;
                        *port = value::shortest(port);
                        watched
                    }
                    Some(WatchKind::Watch(port)) => self.watch_number(*port)?,
                    None => None,
                };
                if !known.insert(given.member_id) {
                    return Err(Refusal::invalid(format!("member {} is given twice", given.member_id)));
                }
                let weight = info.weight(size, given.weight)?;
                members.push((GroupMember { member: own_id(given.member_id, "member")?, weight }, watch));
            }
            size.check(members.iter().map(|(member, _)| member.weight), limit)?;
        }
        Ok(Op::Tables(TablesOp::Group(GroupOp {
            kind,
            profile: info.profile,
            id,
            group: Group { members, message: group },
        })))
    }

    /// The largest size that a group with this `max_size` may have; 0: no limit of its own.
    fn group_limit(&self, info: &ProfileInfo, max_size: i32) -> Result<u32, Refusal> {
        let max_size = u32::try_from(max_size).map_err(|_| Refusal::invalid("`max_size` is negative"))?;
        match (info.max_group_size, max_size) {
            (0, size) if size > MAX_GROUP_WEIGHT => Err(Refusal::exhausted(format!(
                "`max_size` is {size}, and a group has at most a size of {MAX_GROUP_WEIGHT}"
            ))),
            (0, size) => Ok(size),
            (limit, 0) => Ok(limit),
            (limit, size) if size <= limit => Ok(size),
            (limit, size) => {
                Err(Refusal::invalid(format!("`max_size` is {size}, the largest group has {limit}")))
            }
        }
    }

    pub(super) fn watch_port(&self, port: &[u8]) -> Result<Option<PortId>, Refusal> {
        match port {
            [] => Ok(None),
            port => self.existing(self.ports.read(port)?).map(Some),
        }
    }

    /// A port in the older form: 0 is none.
    pub(super) fn watch_number(&self, port: i32) -> Result<Option<PortId>, Refusal> {
        match port {
            0 => Ok(None),
            port => self.existing(self.ports.number(port as u32)?).map(Some),
        }
    }

    fn existing(&self, port: PortId) -> Result<PortId, Refusal> {
        match self.ports.has(port) {
            true => Ok(port),
            false => Err(Refusal::invalid(format!("the device has no port {port} to watch"))),
        }
    }
}

/// What the size of a group is.
#[derive(Clone, Copy, Debug)]
pub(super) enum GroupSize {
    /// The sum of the weights.
    Weights,
    /// The number of members, each with at most this weight; 0: any.
    Members { max_weight: u32 },
}

impl GroupSize {
    /// The weight of a member that has one.
    fn weight(self, weight: i32) -> Result<u32, Refusal> {
        let weight = u32::try_from(weight).ok().filter(|weight| *weight > 0);
        let weight = weight.ok_or_else(|| Refusal::invalid("a weight is at least 1"))?;
        match self {
            GroupSize::Members { max_weight: limit @ 1.. } if weight > limit => {
                Err(Refusal::invalid(format!("a weight is {weight}, the largest is {limit}")))
            }
            _ => Ok(weight),
        }
    }

    /// Checks the size of a group against a limit; 0 is none.
    pub(super) fn check(self, weights: impl Iterator<Item = u32>, limit: u32) -> Result<(), Refusal> {
        let size: u64 = match self {
            GroupSize::Members { .. } => weights.count() as u64,
            GroupSize::Weights => weights.map(u64::from).sum(),
        };
        if limit != 0 && size > u64::from(limit) {
            return Err(Refusal::invalid(format!("the group has size {size}, its limit is {limit}")));
        }
        Ok(())
    }
}

impl ProfileInfo {
    /// The weight of a member in a group whose size is that.
    pub(super) fn weight(&self, size: GroupSize, weight: i32) -> Result<u32, Refusal> {
        match (self.weights_disallowed, weight) {
            (false, weight) => size.weight(weight),
            (true, 0) => Ok(1),
            (true, _) => Err(Refusal::invalid("its members have no weights (`weights_disallowed`)")),
        }
    }

    /// What the sizes of its groups are, unless a group has it otherwise.
    pub(super) fn group_size(&self) -> GroupSize {
        match self.semantics {
            Some(SelectorSizeSemantics::SumOfMembers(_)) => {
                GroupSize::Members { max_weight: self.max_member_weight() }
            }
            _ => GroupSize::Weights,
        }
    }

    pub(super) fn max_member_weight(&self) -> u32 {
        match self.semantics {
            Some(SelectorSizeSemantics::SumOfMembers(of)) => u32::try_from(of.max_member_weight).unwrap_or(0),
            _ => 0,
        }
    }
}

/// An id that a controller may choose.
fn own_id(id: u32, what: &str) -> Result<u32, Refusal> {
    match id {
        0 => Err(Refusal::invalid(format!("the id of the {what} is missing"))),
        FIRST_ONE_SHOT.. => Err(Refusal::invalid(format!("the id of a {what} is below {FIRST_ONE_SHOT:#x}"))),
        id => Ok(id),
    }
}

/// The tables of a selector are programmed either with one-shot groups or with members and groups.
pub(super) fn check_style(
    tables: &Tables,
    shadow: &Shadow,
    profile: ProfileId,
    one_shot: bool,
) -> Result<(), Refusal> {
    let other = match one_shot {
        // Members come by id, and those of controllers have the smaller ids.
        true => {
            tables.members(profile).next().is_some_and(|(id, _)| id < FIRST_ONE_SHOT)
                || tables.groups(profile).next().is_some_and(|(id, _)| id < FIRST_ONE_SHOT)
        }
        false => shadow.one_shots.keys().any(|(other, _)| *other == profile),
    };
    match other {
        false => Ok(()),
        true => Err(Refusal::invalid(
            "an action selector is programmed either in one shot or with members and groups, not both",
        )),
    }
}

impl MemberOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let MemberOp { kind, profile, id, write } = self;
        let tables = &mut *site.tables;
        if kind == Kind::Insert {
            check_style(tables, &change.shadow, profile, false)?;
        }
        match (kind, write) {
            (Kind::Insert, Some(write)) => drop(tables.insert_member(profile, Some(id), &write)?),
            (Kind::Modify, Some(write)) => tables.modify_member(profile, id, &write)?,
            _ => {
                // A group that has left it out for now has it all the same.
                if change.shadow.has_member(profile, id) {
                    return Err(in_use(ProfileError::MemberInUse(id).into(), "member", id));
                }
                tables.remove_member(profile, id).map_err(|error| in_use(error, "member", id))?;
            }
        }
        Ok(())
    }
}

impl GroupOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let GroupOp { kind, profile, id, group } = self;
        let tables = &mut *site.tables;
        if kind == Kind::Insert {
            check_style(tables, &change.shadow, profile, false)?;
        }
        let known = change.shadow.groups.get(&(profile, id));
        if kind == Kind::Modify
            && let Some(known) = known
            && known.message.max_size != group.message.max_size
        {
            let first = known.message.max_size;
            return Err(Refusal::invalid(format!(
                "`max_size` of group {id} is {first} for as long as it exists"
            )));
        }
        let (members, up) = (all(&group.members), change.shadow.up(&group.members));
        match kind {
            Kind::Insert => drop(tables.insert_group(profile, Some(id), &members)?),
            Kind::Modify => tables.modify_group(profile, id, &members)?,
            Kind::Delete => tables.remove_group(profile, id).map_err(|error| in_use(error, "group", id))?,
        }
        // All of it fits, for when the ports come up again. Packets see both changes at once.
        if kind != Kind::Delete && up.len() < members.len() {
            tables.modify_group(profile, id, &up)?;
        }
        let record = match kind {
            Kind::Delete => change.shadow.groups.remove(&(profile, id)),
            _ => change.shadow.groups.insert((profile, id), group),
        };
        change.note([Before::Group((profile, id), record)]);
        Ok(())
    }
}

fn in_use(error: millrace_state::WriteError, what: &str, id: u32) -> Refusal {
    Refusal::from(error).of(format_args!("{what} {id}"))
}
