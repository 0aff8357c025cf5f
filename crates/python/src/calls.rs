//! Actions with their arguments, from Python and back.

use crate::errors::{Wrong, refused};
use crate::values::{bits, int};
use millrace_pipeline::{ActionId, Bits};
use millrace_state::{ObjectKind, State, find_named};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// An action that entries may have.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) id: ActionId,
    pub(crate) name: String,
    /// Names and widths.
    pub(crate) params: Vec<(String, u32)>,
}

impl Action {
    pub(crate) fn new(state: &State, id: ActionId) -> Action {
        let action = &state.program().actions[id];
        let names = state.param_names(id).map(str::to_owned);
        Action {
            id,
            name: action.name.clone(),
            params: names.zip(state.param_widths(id).iter().copied()).collect(),
        }
    }

    /// The values of the parameters: a dict by name or a list or tuple in order; none for an action without.
    pub(crate) fn args(&self, given: Option<&Bound<'_, PyAny>>) -> Result<Vec<Bits>, Wrong> {
        let Some(given) = given.filter(|given| !given.is_none()) else { return self.in_order(&[]) };
        if let Ok(by_name) = given.cast::<PyDict>() {
            return self.by_names(by_name);
        }
        if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
            return self.in_order(&given.extract::<Vec<Bound<'_, PyAny>>>()?);
        }
        Err(Wrong::Type("parameters are a dict by name or a list in order".into()))
    }

    fn in_order(&self, given: &[Bound<'_, PyAny>]) -> Result<Vec<Bits>, Wrong> {
        if given.len() != self.params.len() {
            let names = self.params.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let message = match names.is_empty() {
                true => format!("action `{}` takes no parameters, {} given", self.name, given.len()),
                false => format!(
                    "action `{}` takes {} parameter(s) ({names}), {} given",
                    self.name,
                    self.params.len(),
                    given.len()
                ),
            };
            return Err(Wrong::Value(message));
        }
        self.params.iter().zip(given).map(|(param, one)| self.arg(param, one)).collect()
    }

    fn by_names(&self, given: &Bound<'_, PyDict>) -> Result<Vec<Bits>, Wrong> {
        let mut found: Vec<Option<Bits>> = self.params.iter().map(|_| None).collect();
        for (name, one) in given {
            let name: String = name.extract()?;
            let names = self.params.iter().enumerate().map(|(at, (name, _))| (at, name.as_str()));
            let at = find_named(ObjectKind::Parameter, &name, names).map_err(refused)?;
            found[at] = Some(self.arg(&self.params[at], &one)?);
        }
        let params = self.params.iter().zip(found);
        params
            .map(|((name, _), found)| {
                found.ok_or_else(|| {
                    Wrong::Value(format!("action `{}` needs the parameter `{name}`", self.name))
                })
            })
            .collect()
    }

    fn arg(&self, (name, width): &(String, u32), given: &Bound<'_, PyAny>) -> Result<Bits, Wrong> {
        bits(given, *width)
            .map_err(|wrong| wrong.about(format_args!("parameter `{name}` of `{}`", self.name)))
    }

    /// Arguments by name.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>, args: &[Bits]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for ((name, _), value) in self.params.iter().zip(args) {
            dict.set_item(name, int(py, value)?)?;
        }
        Ok(dict)
    }
}

/// The place of an action among some.
pub(crate) fn named(actions: &[Action], name: &str) -> PyResult<usize> {
    let names = actions.iter().enumerate().map(|(at, action)| (at, action.name.as_str()));
    find_named(ObjectKind::Action, name, names).map_err(refused)
}
