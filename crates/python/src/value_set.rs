//! Parser value sets.

use crate::errors::refused;
use crate::matches::{self, Field};
use crate::shared::Shared;
use millrace_pipeline::{EntryMatch, ValueSetId};
use millrace_state::State;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A parser value set of a running switch. Its members are written as the matches of table entries are.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct ValueSet {
    shared: Shared,
    id: ValueSetId,
    /// The full name.
    #[pyo3(get)]
    name: String,
    fields: Vec<Field>,
}

#[pymethods]
impl ValueSet {
    /// Adds a member.
    fn add(&self, py: Python<'_>, member: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, member) = (self.id, self.member(member)?);
        self.shared.call(py, |running| running.switch.state_mut().insert_value(id, &member)).map_err(refused)
    }

    /// Removes a member.
    fn remove(&self, py: Python<'_>, member: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, member) = (self.id, self.member(member)?);
        self.shared.call(py, |running| running.switch.state_mut().remove_value(id, &member)).map_err(refused)
    }

    /// Removes all members.
    fn clear(&self, py: Python<'_>) {
        let id = self.id;
        self.shared.call(py, |running| running.switch.state_mut().clear_values(id));
    }

    /// All members, in the order in which they were added: dicts by field.
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let id = self.id;
        let members: Vec<Vec<EntryMatch>> =
            self.shared.call(py, |running| running.switch.state().values(id).collect());
        members.iter().map(|member| matches::to_dict(py, &self.fields, member)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<ValueSet {}>", self.name)
    }
}

impl ValueSet {
    pub(crate) fn new(shared: Shared, state: &State, id: ValueSetId) -> ValueSet {
        let set = &state.program().value_sets[id];
        let fields = set.fields.iter();
        ValueSet {
            shared,
            id,
            name: set.name.clone(),
            fields: fields
                .map(|(name, width, kind)| Field { name: name.clone(), kind: *kind, width: *width })
                .collect(),
        }
    }

    fn member(&self, given: &Bound<'_, PyAny>) -> PyResult<Vec<EntryMatch>> {
        matches::key(&self.fields, given).map_err(|wrong| wrong.about(&self.name).into())
    }
}
