//! What entries and members do: actions with the values of their parameters.

use super::one_shot::Shots;
use super::{Decoder, invalid};
use crate::catalog::TableInfo;
use crate::refusal::Refusal;
use crate::translation::NewText;
use millrace_p4runtime_api::v1;
use millrace_pipeline::{ActionCall, Bits, ProfileId};

#[derive(Clone, Debug)]
pub(super) enum ActionSpec {
    Call(ActionCall),
    Member(ProfileId, u32),
    Group(ProfileId, u32),
    OneShot(ProfileId, Box<Shots>),
}

impl Decoder<'_> {
    pub(super) fn action_spec(
        &self,
        table: &TableInfo,
        action: &v1::TableAction,
    ) -> Result<ActionSpec, Refusal> {
        use v1::table_action::Type;
        let action = action.r#type.as_ref().ok_or_else(|| Refusal::invalid("the action is missing"))?;
        let profile = || {
            table
                .profile
                .ok_or_else(|| Refusal::invalid("the table has no action profile, its entries name actions"))
        };
        let with_groups = || {
            let profile = profile()?;
            match self.catalog.profile(profile) {
                Some(info) if info.with_selector => Ok(info),
                _ => Err(Refusal::invalid("the action profile has no selector, so no groups")),
            }
        };
        match action {
            Type::Action(_) if table.profile.is_some() => {
                Err(Refusal::invalid("the table has an action profile, its entries name members or groups"))
            }
            Type::Action(action) => Ok(ActionSpec::Call(self.call(table, action)?)),
            Type::ActionProfileMemberId(0) | Type::ActionProfileGroupId(0) => {
                Err(Refusal::invalid("the id of the member or group is missing"))
            }
            Type::ActionProfileMemberId(id) => Ok(ActionSpec::Member(profile()?, *id)),
            Type::ActionProfileGroupId(id) => Ok(ActionSpec::Group(with_groups()?.profile, *id)),
            Type::ActionProfileActionSet(set) => {
                let info = with_groups()?;
                Ok(ActionSpec::OneShot(info.profile, Box::new(self.one_shot(info, set)?)))
            }
        }
    }

    fn call(&self, table: &TableInfo, action: &v1::Action) -> Result<ActionCall, Refusal> {
        let Some((at, _)) = table.actions.get(&action.action_id) else {
            return Err(Refusal::invalid(format!(
                "no action with id {:#010x} in the table",
                action.action_id
            )));
        };
        Ok(ActionCall { action: *at, args: self.arguments(action)? })
    }

    /// The values of an action's parameters, in order.
    pub(super) fn arguments(&self, action: &v1::Action) -> Result<Vec<Bits>, Refusal> {
        let info = self
            .catalog
            .actions
            .get(&action.action_id)
            .ok_or_else(|| Refusal::invalid(format!("no action with id {:#010x}", action.action_id)))?;
        let of_action = |refusal: Refusal| refusal.of(format_args!("action `{}`", info.name));
        if action.params.len() > info.params.len() {
            let count = info.params.len();
            return Err(of_action(Refusal::invalid(format!("it has {count} parameter(s)"))));
        }
        let each = info.params.iter().map(|param| {
            let mut given = action.params.iter().filter(|given| given.param_id == param.id);
            let value = match (given.next(), given.next()) {
                (Some(given), None) => self.catalog.read(&param.codec, &given.value, NewText::Named),
                (None, _) => Err(Refusal::invalid("it is missing")),
                (Some(_), Some(_)) => Err(Refusal::invalid("it is given twice")),
            };
            value.map_err(invalid(format_args!("parameter `{}`", param.name)))
        });
        let args = each.collect::<Result<Vec<Bits>, Refusal>>().map_err(of_action)?;
        if action.params.len() != args.len() {
            return Err(of_action(Refusal::invalid("there is a parameter that it does not have")));
        }
        Ok(args)
    }
}
