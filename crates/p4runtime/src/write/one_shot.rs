//! One-shot groups: groups that come and go with their entries.

use super::Decoder;
use super::actions::ActionSpec;
use super::profile::GroupSize;
use crate::catalog::ProfileInfo;
use crate::read::call_message;
use crate::refusal::Refusal;
use crate::shadow::{OneShot, Shadow, all};
use crate::value;
use millrace_dataplane::PortId;
use millrace_p4runtime_api::v1;
use millrace_pipeline::{ProfileId, TableId};
use millrace_state::{GroupMember, MemberWrite, Selection, Tables, Target};

/// A one-shot group as it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Shots {
    members: Vec<Shot>,
    selection: Selection,
    message: v1::ActionProfileActionSet,
}

/// A member of a one-shot group.
#[derive(Clone, Debug)]
struct Shot {
    member: MemberWrite,
    weight: u32,
    watch: Option<PortId>,
}

impl Decoder<'_> {
    pub(super) fn one_shot(
        &self,
        info: &ProfileInfo,
        set: &v1::ActionProfileActionSet,
    ) -> Result<Shots, Refusal> {
        use v1::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
        let unknown = |what: &str| Refusal::invalid(format!("there is no such {what}"));
        let mode = ActionSelectionMode::try_from(set.action_selection_mode);
        let selection = match mode.map_err(|_| unknown("action selection mode"))? {
            ActionSelectionMode::DefaultModeDeterminedByActionSelector | ActionSelectionMode::Hash => {
                Selection::Hash
            }
            ActionSelectionMode::Random => Selection::Random,
        };
        let semantics = SizeSemantics::try_from(set.size_semantics).map_err(|_| unknown("size semantics"))?;
        let size = match semantics {
            SizeSemantics::DefaultSizeDeterminedByActionSelector => info.group_size(),
            SizeSemantics::SumOfWeights => GroupSize::Weights,
            SizeSemantics::SumOfMembers => GroupSize::Members { max_weight: info.max_member_weight() },
        };
        if set.group_action.is_some() {
            return Err(Refusal::unimplemented("groups have no action of their own (`group_action`)"));
        }
        let shots = set.action_profile_actions.iter().map(|given| self.shot(info, size, given));
        let (members, kept): (Vec<Shot>, Vec<_>) =
            shots.collect::<Result<Vec<_>, Refusal>>()?.into_iter().unzip();
        size.check(members.iter().map(|shot| shot.weight), info.max_group_size)?;
        let message = v1::ActionProfileActionSet {
            action_profile_actions: kept,
            action_selection_mode: set.action_selection_mode,
            size_semantics: set.size_semantics,
            group_action: None,
        };
        Ok(Shots { members, selection, message })
    }

    /// A member, and its message as it is read again: with numbers in canonical form.
    fn shot(
        &self,
        info: &ProfileInfo,
        size: GroupSize,
        given: &v1::ActionProfileAction,
    ) -> Result<(Shot, v1::ActionProfileAction), Refusal> {
        let action = given.action.as_ref();
        let action = action.ok_or_else(|| Refusal::invalid("an action of the set is missing"))?;
        use v1::action_profile_action::WatchKind;
        #[allow(deprecated, reason = "older controllers use it still")]
        let (watch, watch_kind) = match &given.watch_kind {
            Some(WatchKind::WatchPort(port)) => {
                (self.watch_port(port)?, Some(WatchKind::WatchPort(value::shortest(port))))
            }
            Some(WatchKind::Watch(port)) => (self.watch_number(*port)?, Some(WatchKind::Watch(*port))),
            None => (None, None),
        };
        let weight = info.weight(size, given.weight)?;
        let shot = Shot { member: self.member_write(info, action)?, weight, watch };
        let action = Some(call_message(self.catalog, action.action_id, &shot.member.args));
        Ok((shot, v1::ActionProfileAction { action, weight: given.weight, watch_kind }))
    }
}

/// What an entry does; a one-shot group is made, and named.
#[allow(clippy::type_complexity, reason = "a target and perhaps a new group")]
pub(super) fn target(
    tables: &mut Tables,
    shadow: &mut Shadow,
    action: ActionSpec,
) -> Result<(Target, Option<(ProfileId, u32)>), Refusal> {
    match action {
        ActionSpec::Call(call) => Ok((Target::Action(call), None)),
        ActionSpec::Member(profile, id) => {
            super::profile::check_style(tables, shadow, profile, false)?;
            Ok((Target::Member(id), None))
        }
        ActionSpec::Group(profile, id) => {
            super::profile::check_style(tables, shadow, profile, false)?;
            Ok((Target::Group(id), None))
        }
        ActionSpec::OneShot(profile, shots) => {
            super::profile::check_style(tables, shadow, profile, true)?;
            let group = make_one_shot(tables, shadow, profile, *shots)?;
            Ok((Target::Group(group), Some((profile, group))))
        }
    }
}

/// The one-shot group that a target is.
pub(super) fn one_shot_of(
    tables: &Tables,
    shadow: &Shadow,
    table: TableId,
    target: &Target,
) -> Option<(ProfileId, u32)> {
    let Target::Group(group) = target else { return None };
    let key = (tables.profile_of(table).ok()?, *group);
    shadow.one_shots.contains_key(&key).then_some(key)
}

fn make_one_shot(
    tables: &mut Tables,
    shadow: &mut Shadow,
    profile: ProfileId,
    shots: Shots,
) -> Result<u32, Refusal> {
    let mut members = Vec::with_capacity(shots.members.len());
    let mut refused = None;
    for shot in &shots.members {
        let id = shadow.one_shot_id();
        match tables.insert_member(profile, Some(id), &shot.member) {
            Ok(member) => members.push((GroupMember { member, weight: shot.weight }, shot.watch)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let group = shadow.one_shot_id();
    let made = match refused {
        Some(error) => Err(error),
        None => tables.insert_group_with(profile, Some(group), &all(&members), shots.selection),
    };
    if let Err(error) = made {
        for (member, _) in members {
            let _ = tables.remove_member(profile, member.member);
        }
        return Err(error.into());
    }
    // All of it fits. What watches a port that is down is left out before an entry names the group.
    let up = shadow.up(&members);
    if up.len() < members.len() {
        tables.modify_group(profile, group, &up)?;
    }
    shadow.one_shots.insert((profile, group), OneShot { members, message: shots.message });
    Ok(group)
}

/// Removes a one-shot group with its members.
pub(super) fn forget_one_shot(tables: &mut Tables, shadow: &mut Shadow, profile: ProfileId, group: u32) {
    let Some(known) = shadow.one_shots.remove(&(profile, group)) else { return };
    // Nothing but the entry that has gone could name them.
    let _ = tables.remove_group(profile, group);
    for (member, _) in known.members {
        let _ = tables.remove_member(profile, member.member);
    }
}
