//! Tables: entries and default actions.

use crate::calls::{Action, named};
use crate::errors::{Wrong, raised};
use crate::matches::{self, Field};
use crate::meters;
use crate::records;
use crate::shared::Shared;
use millrace_commands::matching;
use millrace_pipeline::{ActionCall, EntryMatch, TableId};
use millrace_state::{EntryIndex, EntryView, EntryWrite, State, TableError, Target, WriteError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A table of a running switch: its entries and its default action.
#[pyclass(frozen, module = "millrace", weakref)]
pub(crate) struct Table {
    shared: Shared,
    id: TableId,
    /// The full name.
    #[pyo3(get)]
    name: String,
    fields: Vec<Field>,
    actions: Vec<Action>,
    needs_priority: bool,
    is_const: bool,
    max_entries: u64,
}

/// The largest priority: P4Runtime's are positive 32-bit numbers.
const MAX_PRIORITY: u32 = i32::MAX as u32;

#[pymethods]
impl Table {
    /// The fields of the key: `Key(name, kind, width)`.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let key = |field: &Field| {
            records::make(py, "Key", (&field.name, matching::kind_name(field.kind), field.width))
        };
        self.fields.iter().map(key).collect()
    }

    /// The actions by name, each with its parameters as `Param(name, width)`.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for action in &self.actions {
            let param = |(name, width): &(String, u32)| records::make(py, "Param", (name, width));
            dict.set_item(&action.name, action.params.iter().map(param).collect::<PyResult<Vec<_>>>()?)?;
        }
        Ok(dict)
    }

    /// How many entries the program asks room for.
    #[getter]
    fn size(&self) -> u64 {
        self.max_entries
    }

    /// Adds an entry; returns its handle, which is that of the runtime commands.
    ///
    /// `match` is a dict of key fields by name (a short name will do; a field that is left out matches anything), a list of
    /// all of them in order, or for a key of one field what it matches. What a field matches depends on its kind:
    ///
    /// - a value: an integer, bytes in network order, "10.0.0.1", "08:00:00:00:01:11", "0x1f", an `ipaddress` object;
    /// - lpm: "10.0.0.0/8", (value, length), an `ipaddress` network; a value alone is a prefix of the whole width;
    /// - ternary: (value, mask), "0x800&&&0xff00", "10.0.0.0/8"; a value alone has a mask of all ones;
    /// - range: (low, high), "80->443"; a value alone is a range of one;
    /// - `None`: anything, for all kinds but exact.
    ///
    /// `params` is a dict by name or a list in order. A table with an action profile takes `member=` or `group=` instead of an
    /// action. Of entries that match at once the largest `priority` wins, as in P4Runtime; a
    /// table needs it if it has a ternary, range or optional field. `timeout_ns` is how long the entry may be idle.
    #[pyo3(signature = (r#match, action = None, params = None, *, priority = None, member = None, group = None, timeout_ns = 0))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn add(
        &self,
        py: Python<'_>,
        r#match: &Bound<'_, PyAny>,
        action: Option<&str>,
        params: Option<&Bound<'_, PyAny>>,
        priority: Option<i64>,
        member: Option<u32>,
        group: Option<u32>,
        timeout_ns: u64,
    ) -> PyResult<u32> {
        let matches = self.matches(r#match)?;
        let priority = self.priority(priority)?;
        let target = self.target(action, params, member, group)?;
        let id = self.id;
        let written = self.shared.tables(py, move |tables, now_ns| {
            let entry = EntryWrite { matches, priority, target, idle_timeout_ns: timeout_ns };
            tables.insert(id, &entry, now_ns)
        });
        written.map(handle).map_err(|error| self.refused(error))
    }

    /// Gives an entry another action, member or group.
    #[pyo3(signature = (handle, action = None, params = None, *, member = None, group = None))]
    fn modify(
        &self,
        py: Python<'_>,
        handle: u32,
        action: Option<&str>,
        params: Option<&Bound<'_, PyAny>>,
        member: Option<u32>,
        group: Option<u32>,
    ) -> PyResult<()> {
        let target = self.target(action, params, member, group)?;
        let id = self.id;
        let written = self.shared.tables(py, |tables, _| tables.modify(id, index(handle), &target));
        written.map_err(|error| self.refused(error))
    }

    /// Removes an entry.
    fn delete(&self, py: Python<'_>, handle: u32) -> PyResult<()> {
        let id = self.id;
        let removed = self.shared.tables(py, |tables, _| tables.remove(id, index(handle)));
        removed.map_err(|error| self.refused(error))
    }

    /// Removes all entries but those that the program declares const.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_const {
            return Err(self.refused(TableError::ConstTable.into()));
        }
        let id = self.id;
        self.shared.tables(py, |tables, _| tables.clear(id));
        Ok(())
    }

    /// The handle of the entry with exactly this match and priority; `None` when there is none.
    #[pyo3(signature = (r#match, *, priority = None))]
    fn find(
        &self,
        py: Python<'_>,
        r#match: &Bound<'_, PyAny>,
        priority: Option<i64>,
    ) -> PyResult<Option<u32>> {
        let (matches, priority) = (self.matches(r#match)?, self.priority(priority)?);
        let id = self.id;
        match self.shared.tables(py, |tables, _| tables.find(id, &matches, priority)) {
            Ok(found) => Ok(Some(handle(found))),
            Err(WriteError::Table(TableError::NotFound)) => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// An entry by its handle.
    fn entry<'py>(&self, py: Python<'py>, handle: u32) -> PyResult<Bound<'py, PyAny>> {
        let id = self.id;
        match self.shared.tables(py, |tables, _| tables.entry(id, index(handle))) {
            Some(entry) => self.shown(py, entry),
            None => Err(self.refused(TableError::NotFound.into())),
        }
    }

    /// All entries, in the order in which they were added.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let id = self.id;
        let entries: Vec<EntryView> = self.shared.tables(py, |tables, _| tables.entries(id).collect());
        entries.into_iter().map(|entry| self.shown(py, entry)).collect()
    }

    /// The handles of entries that have been idle for longer than their time-out.
    fn expired(&self, py: Python<'_>) -> Vec<u32> {
        let id = self.id;
        self.shared.tables(py, |tables, now_ns| tables.expired(id, now_ns).map(handle).collect())
    }

    /// The default action: `Call(action, params)`; `None` in a table without actions.
    #[getter]
    fn default<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = self.id;
        let call = self.shared.tables(py, |tables, _| tables.default_action(id));
        let Some(action) = self.actions.get(call.action) else { return Ok(None) };
        records::make(py, "Call", (&action.name, action.to_dict(py, &call.args)?)).map(Some)
    }

    /// Sets the default action, which runs when no entry matches.
    #[pyo3(signature = (action, params = None))]
    fn set_default(&self, py: Python<'_>, action: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let call = self.call(action, params)?;
        let id = self.id;
        let set = self.shared.tables(py, |tables, _| tables.set_default(id, &call));
        set.map_err(|error| self.refused(error))
    }

    /// Sets the default action back to that of the program.
    fn reset_default(&self, py: Python<'_>) -> PyResult<()> {
        let id = self.id;
        let set = self.shared.tables(py, |tables, _| tables.reset_default(id));
        set.map_err(|error| self.refused(error))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        let id = self.id;
        self.shared.tables(py, |tables, _| tables.entry_count(id)) as usize
    }

    /// A table is true also when it is empty.
    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("<Table {}>", self.name)
    }
}

impl Table {
    pub(crate) fn new(shared: Shared, state: &State, id: TableId) -> Table {
        let table = &state.program().tables[id];
        let fields = table.keys.iter().zip(state.key_widths(id));
        Table {
            shared,
            id,
            name: table.name.clone(),
            fields: fields
                .map(|(key, width)| Field { name: key.name.clone(), kind: key.kind, width: *width })
                .collect(),
            actions: table.actions.iter().map(|listed| Action::new(state, listed.action)).collect(),
            needs_priority: state.needs_priority(id),
            is_const: table.const_entries,
            max_entries: table.size,
        }
    }

    fn matches(&self, given: &Bound<'_, PyAny>) -> PyResult<Vec<EntryMatch>> {
        matches::key(&self.fields, given).map_err(|wrong| wrong.about(&self.name).into())
    }

    fn priority(&self, given: Option<i64>) -> PyResult<u32> {
        let wrong = |message: String| Err(Wrong::Value(message).about(&self.name).into());
        match (given, self.needs_priority) {
            (None, false) => Ok(0),
            (Some(_), false) => {
                wrong("no ternary, range or optional field, so entries have no priority".into())
            }
            (None, true) => wrong("an entry needs a priority=, of which the largest wins".into()),
            (Some(given), true) => match u32::try_from(given) {
                Ok(priority @ 1..=MAX_PRIORITY) => Ok(priority),
                _ => wrong(format!("a priority from 1 to {MAX_PRIORITY} is expected, not {given}")),
            },
        }
    }

    fn target(
        &self,
        action: Option<&str>,
        params: Option<&Bound<'_, PyAny>>,
        member: Option<u32>,
        group: Option<u32>,
    ) -> PyResult<Target> {
        match (action, member, group) {
            (Some(action), None, None) => Ok(Target::Action(self.call(action, params)?)),
            (None, Some(member), None) if params.is_none() => Ok(Target::Member(member)),
            (None, None, Some(group)) if params.is_none() => Ok(Target::Group(group)),
            _ => {
                let message = "an entry has an action with params, or a member=, or a group=".to_owned();
                Err(Wrong::Type(message).about(&self.name).into())
            }
        }
    }

    fn call(&self, action: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<ActionCall> {
        let at = named(&self.actions, action)?;
        let args = self.actions[at].args(params).map_err(|wrong| wrong.about(&self.name))?;
        Ok(ActionCall { action: at, args })
    }

    fn shown<'py>(&self, py: Python<'py>, entry: EntryView) -> PyResult<Bound<'py, PyAny>> {
        let (call, member, group) = match &entry.target {
            Target::Action(call) => match self.actions.get(call.action) {
                Some(action) => (Some((&action.name, action.to_dict(py, &call.args)?)), None, None),
                None => (None, None, None),
            },
            Target::Member(member) => (None, Some(*member), None),
            Target::Group(group) => (None, None, Some(*group)),
        };
        let (action, params) = call.unzip();
        let counter = entry.counter.map(|counter| crate::arrays::counted(py, counter)).transpose()?;
        let meter = entry.meter.map(|meter| meters::shown(py, &meter)).transpose()?;
        let fields = (
            handle(entry.index),
            matches::to_dict(py, &self.fields, &entry.matches)?,
            action,
            params,
            member,
            group,
            self.needs_priority.then_some(entry.priority),
            entry.is_const,
            counter,
            meter,
            entry.idle_timeout_ns,
        );
        records::make(py, "Entry", fields)
    }

    /// An error about this table.
    fn refused(&self, error: WriteError) -> PyErr {
        raised::WriteError::new_err(format!("{}: {error}", self.name))
    }
}

/// The entry of a handle: handles count from 0, entries from after the default one.
pub(crate) fn index(handle: u32) -> EntryIndex {
    EntryIndex(handle.saturating_add(1))
}

fn handle(index: EntryIndex) -> u32 {
    index.0.saturating_sub(1)
}
