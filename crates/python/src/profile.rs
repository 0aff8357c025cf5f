//! Action profiles and selectors: members and groups.

use crate::calls::{Action, named};
use crate::errors::{Wrong, refused};
use crate::records;
use crate::shared::Shared;
use millrace_pipeline::{ProfileId, Program};
use millrace_state::{GroupMember, MemberWrite, State};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An action profile or selector of a running switch: its members, and its groups of members.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Profile {
    shared: Shared,
    id: ProfileId,
    /// The full name.
    #[pyo3(get)]
    name: String,
    /// Whether it can have groups.
    #[pyo3(get)]
    is_selector: bool,
    actions: Vec<Action>,
}

#[pymethods]
impl Profile {
    /// Adds a member: an action with its parameters, as for the entries of a table. Returns its id, the smallest that is
    /// free if none is given.
    #[pyo3(signature = (action, params = None, *, id = None))]
    fn add_member(
        &self,
        py: Python<'_>,
        action: &str,
        params: Option<&Bound<'_, PyAny>>,
        id: Option<u32>,
    ) -> PyResult<u32> {
        let (profile, member) = (self.id, self.member(action, params)?);
        let added = self.shared.tables(py, |tables, _| tables.insert_member(profile, id, &member));
        added.map_err(refused)
    }

    /// Gives a member another action; entries and groups that name it follow.
    #[pyo3(signature = (id, action, params = None))]
    fn modify_member(
        &self,
        py: Python<'_>,
        id: u32,
        action: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (profile, member) = (self.id, self.member(action, params)?);
        let done = self.shared.tables(py, |tables, _| tables.modify_member(profile, id, &member));
        done.map_err(refused)
    }

    /// Removes a member that neither entries nor groups name.
    fn delete_member(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        let profile = self.id;
        self.shared.tables(py, |tables, _| tables.remove_member(profile, id)).map_err(refused)
    }

    /// All members by id: `Call(action, params)`.
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = self.id;
        let members: Vec<(u32, MemberWrite)> =
            self.shared.tables(py, |tables, _| tables.members(profile).collect());
        let dict = PyDict::new(py);
        for (id, member) in members {
            let action = self.actions.iter().find(|action| action.id == member.action);
            let Some(action) = action else { continue };
            let params = action.to_dict(py, &member.args)?;
            dict.set_item(id, records::make(py, "Call", (&action.name, params))?)?;
        }
        Ok(dict)
    }

    /// Adds a group of members, each an id or (id, weight). Returns the id of the group, the smallest that is free if none
    /// is given.
    #[pyo3(signature = (members = Vec::new(), *, id = None))]
    fn add_group(&self, py: Python<'_>, members: Vec<Bound<'_, PyAny>>, id: Option<u32>) -> PyResult<u32> {
        let (profile, members) = (self.id, group(&members)?);
        let added = self.shared.tables(py, |tables, _| tables.insert_group(profile, id, &members));
        added.map_err(refused)
    }

    /// Gives a group other members.
    fn modify_group(&self, py: Python<'_>, id: u32, members: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let (profile, members) = (self.id, group(&members)?);
        self.shared.tables(py, |tables, _| tables.modify_group(profile, id, &members)).map_err(refused)
    }

    /// Removes a group that no entry names.
    fn delete_group(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        let profile = self.id;
        self.shared.tables(py, |tables, _| tables.remove_group(profile, id)).map_err(refused)
    }

    /// All groups by id: lists of (member, weight).
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = self.id;
        let groups: Vec<(u32, Vec<GroupMember>)> = self.shared.tables(py, |tables, _| {
            tables.groups(profile).map(|(id, members)| (id, members.to_vec())).collect()
        });
        let dict = PyDict::new(py);
        for (id, members) in groups {
            let members = members.iter().map(|one| (one.member, one.weight));
            dict.set_item(id, members.collect::<Vec<_>>())?;
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("<Profile {}>", self.name)
    }
}

impl Profile {
    pub(crate) fn new(shared: Shared, state: &State, id: ProfileId) -> Profile {
        let program = state.program();
        Profile {
            shared,
            id,
            name: program.profiles[id].name.clone(),
            is_selector: program.profiles[id].selector.is_some(),
            actions: actions(state, program, id),
        }
    }

    fn member(&self, action: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<MemberWrite> {
        let action = &self.actions[named(&self.actions, action)?];
        let args = action.args(params).map_err(|wrong| wrong.about(&self.name))?;
        Ok(MemberWrite { action: action.id, args })
    }
}

/// The actions of the tables that use a profile, each once.
fn actions(state: &State, program: &Program, id: ProfileId) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    for table in program.tables.values().filter(|table| table.profile == Some(id)) {
        for listed in &table.actions {
            let action = Action::new(state, listed.action);
            if actions.iter().all(|known| known.name != action.name) {
                actions.push(action);
            }
        }
    }
    actions
}

fn group(given: &[Bound<'_, PyAny>]) -> PyResult<Vec<GroupMember>> {
    let one = |given: &Bound<'_, PyAny>| match given.extract::<u32>() {
        Ok(member) => Ok(GroupMember { member, weight: 1 }),
        Err(_) => match given.extract::<(u32, u32)>() {
            Ok((member, weight)) => Ok(GroupMember { member, weight }),
            Err(_) => Err(Wrong::Type(format!("a group has ids or (id, weight), not {given}")).into()),
        },
    };
    given.iter().map(one).collect()
}
