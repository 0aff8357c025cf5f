//! Counters and registers.

use crate::errors::{Wrong, refused};
use crate::records;
use crate::shared::Shared;
use crate::values::{bits, int};
use millrace_pipeline::{Bits, RegisterId};
use millrace_state::{CounterRef, CounterValue, State};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A counter of a running switch: `counter[i]` is `CounterValue(packets, bytes)` of cell `i`, or of the entry with handle
/// `i` for a direct counter.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Counter {
    shared: Shared,
    id: CounterRef,
    /// The full name.
    #[pyo3(get)]
    name: String,
    size: Option<u64>,
}

#[pymethods]
impl Counter {
    /// Whether it counts for the entries of a table.
    #[getter]
    fn is_direct(&self) -> bool {
        self.size.is_none()
    }

    /// All values: those of all cells by index, or those of all entries by handle.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (id, size) = (self.id, self.size);
        let read = self.shared.tables(py, |tables, _| {
            let cells: Vec<u64> = match (id, size) {
                (CounterRef::Direct(table), _) => {
                    tables.table(table).iter().map(|(index, _)| u64::from(index.0)).collect()
                }
                (CounterRef::Indexed(_), size) => (0..size.unwrap_or(0)).collect(),
            };
            let read = cells.into_iter().map(|cell| Ok((cell, tables.counter_value(id, cell)?)));
            read.collect::<Result<Vec<_>, _>>()
        });
        let dict = PyDict::new(py);
        for (cell, value) in read.map_err(refused)? {
            dict.set_item(if self.is_direct() { cell.saturating_sub(1) } else { cell }, counted(py, value)?)?;
        }
        Ok(dict)
    }

    /// Sets all to 0.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let id = self.id;
        self.shared.tables(py, |tables, _| tables.reset_counter(id)).map_err(refused)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyAny>> {
        let (id, cell) = (self.id, self.cell(index)?);
        let value = self.shared.tables(py, |tables, _| tables.counter_value(id, cell));
        counted(py, value.map_err(|error| PyIndexError::new_err(format!("{}: {error}", self.name)))?)
    }

    fn __setitem__(&self, py: Python<'_>, index: i64, value: (u64, u64)) -> PyResult<()> {
        let (id, cell) = (self.id, self.cell(index)?);
        let value = CounterValue { packets: value.0, bytes: value.1 };
        let set = self.shared.tables(py, |tables, _| tables.set_counter(id, cell, value));
        set.map_err(|error| PyIndexError::new_err(format!("{}: {error}", self.name)))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.size {
            Some(size) => Ok(size as usize),
            None => Err(PyTypeError::new_err("a direct counter is read by entry handles; all() gives them")),
        }
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("<Counter {}>", self.name)
    }
}

impl Counter {
    pub(crate) fn new(shared: Shared, state: &State, id: CounterRef) -> Counter {
        let program = state.program();
        let (name, size) = match id {
            CounterRef::Indexed(id) => (Some(&program.counters[id].name), Some(program.counters[id].size)),
            CounterRef::Direct(id) => {
                (program.tables[id].direct_counter.as_ref().map(|counter| &counter.name), None)
            }
        };
        Counter { shared, id, name: name.cloned().unwrap_or_default(), size }
    }

    fn cell(&self, index: i64) -> PyResult<u64> {
        cell(&self.name, index, self.size)
    }
}

/// A register of a running switch: `register[i]` is the number in cell `i`, and can be set.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Register {
    shared: Shared,
    id: RegisterId,
    /// The full name.
    #[pyo3(get)]
    name: String,
    /// The width of a cell in bits.
    #[pyo3(get)]
    width: u32,
    size: u64,
}

#[pymethods]
impl Register {
    /// The numbers in all cells.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (id, size) = (self.id, self.size);
        let read: Vec<Bits> = self.shared.call(py, |running| {
            (0..size).map(|index| running.switch.state().register_read(id, index)).collect()
        });
        read.iter().map(|value| int(py, value)).collect()
    }

    /// Sets all cells to 0.
    fn reset(&self, py: Python<'_>) {
        let id = self.id;
        self.shared.call(py, |running| running.switch.state_mut().reset_register(id));
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyAny>> {
        let (id, cell) = (self.id, cell(&self.name, index, Some(self.size))?);
        let value = self.shared.call(py, |running| running.switch.state().register_value(id, cell));
        int(py, &value.map_err(refused)?)
    }

    fn __setitem__(&self, py: Python<'_>, index: i64, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, cell) = (self.id, cell(&self.name, index, Some(self.size))?);
        let value = bits(value, self.width).map_err(|wrong: Wrong| wrong.about(&self.name))?;
        let set = self.shared.call(py, |running| running.switch.state_mut().set_register(id, cell, &value));
        set.map_err(refused)
    }

    fn __len__(&self) -> usize {
        self.size as usize
    }

    fn __repr__(&self) -> String {
        format!("<Register {}>", self.name)
    }
}

impl Register {
    pub(crate) fn new(shared: Shared, state: &State, id: RegisterId) -> Register {
        let register = &state.program().registers[id];
        Register { shared, id, name: register.name.clone(), width: register.width, size: register.size }
    }
}

/// What a counter counted, for Python.
pub(crate) fn counted<'py>(py: Python<'py>, value: CounterValue) -> PyResult<Bound<'py, PyAny>> {
    records::make(py, "CounterValue", (value.packets, value.bytes))
}

/// The cell of an index: of an array (with a size) an index below 0 counts from the end; what belongs to entries counts from
/// after the default one.
pub(crate) fn cell(name: &str, index: i64, size: Option<u64>) -> PyResult<u64> {
    let cell = match size {
        Some(size) if index < 0 => size.checked_sub(index.unsigned_abs()),
        Some(size) => u64::try_from(index).ok().filter(|index| *index < size),
        None => u64::try_from(index).ok().and_then(|handle| handle.checked_add(1)),
    };
    cell.ok_or_else(|| {
        PyIndexError::new_err(match size {
            Some(size) => format!("{name}: no cell {index}: there are {size}, counted from 0"),
            None => format!("{name}: no entry {index}"),
        })
    })
}
