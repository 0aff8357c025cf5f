//! Meters.

use crate::arrays::cell;
use crate::errors::{Wrong, refused};
use crate::records;
use crate::shared::Shared;
use millrace_pipeline::Unit;
use millrace_state::{AccountConfig, AccountTest, MeterConfig, MeterRates, MeterRef, Rate, State};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

/// A meter of a running switch (RFC 2698): `meter[i]` is `MeterRates(cir, cbs, pir, pbs)` of cell `i`, or of the entry with
/// handle `i` for a direct meter; `None` where none are set and every packet is green. Rates are in bytes or packets a
/// second, bursts in bytes or packets.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Meter {
    shared: Shared,
    id: MeterRef,
    /// The full name.
    #[pyo3(get)]
    name: String,
    /// What it measures: "bytes" or "packets"; "account" when its cells are credit accounts.
    #[pyo3(get)]
    unit: &'static str,
    size: Option<u64>,
}

#[pymethods]
impl Meter {
    /// Whether it measures for the entries of a table.
    #[getter]
    fn is_direct(&self) -> bool {
        self.size.is_none()
    }

    /// Sets the rates of all cells, or of all entries that there are; `None`: every packet is green.
    fn set_all(&self, py: Python<'_>, rates: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, config) = (self.id, self.config(rates)?);
        let set = self.shared.call(py, |running| match id {
            MeterRef::Indexed(id) => running.switch.state_mut().set_all_meters(id, config),
            MeterRef::Direct(table) => running.switch.state().tables().set_direct_meters(table, config),
        });
        set.map_err(refused)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (id, cell) = (self.id, cell(&self.name, index, self.size)?);
        let config = self.shared.call(py, |running| match id {
            MeterRef::Indexed(id) => running.switch.state().meter_config(id, cell),
            MeterRef::Direct(table) => running.switch.state().tables().direct_meter_config(table, cell),
        });
        config.map_err(refused)?.map(|config| shown(py, &config)).transpose()
    }

    fn __setitem__(&self, py: Python<'_>, index: i64, rates: &Bound<'_, PyAny>) -> PyResult<()> {
        let (id, cell) = (self.id, cell(&self.name, index, self.size)?);
        let config = self.config(rates)?;
        let set = self.shared.call(py, |running| match id {
            MeterRef::Indexed(id) => running.switch.state_mut().set_meter(id, cell, config),
            MeterRef::Direct(table) => running.switch.state().tables().set_direct_meter(table, cell, config),
        });
        set.map_err(refused)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.size {
            Some(size) => Ok(size as usize),
            None => Err(PyTypeError::new_err("a direct meter is set by entry handles")),
        }
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("<Meter {}>", self.name)
    }
}

impl Meter {
    pub(crate) fn new(shared: Shared, state: &State, id: MeterRef) -> Meter {
        let program = state.program();
        let (name, unit, size) = match id {
            MeterRef::Indexed(id) => {
                let meter = &program.meters[id];
                (meter.name.clone(), Some(meter.unit), Some(meter.size))
            }
            MeterRef::Direct(table) => {
                let meter = program.tables[table].direct_meter.as_ref();
                (
                    meter.map(|meter| meter.name.clone()).unwrap_or_default(),
                    meter.map(|meter| meter.unit),
                    None,
                )
            }
        };
        let unit = match unit {
            Some(Unit::Packets) => "packets",
            Some(Unit::Account) => "account",
            _ => "bytes",
        };
        Meter { shared, id, name, unit, size }
    }

    fn config(&self, rates: &Bound<'_, PyAny>) -> PyResult<Option<MeterConfig>> {
        if rates.is_none() {
            return Ok(None);
        }
        if self.unit == "account" {
            let read = || {
                let (bag_ns, jitter_ns, smax, test): (u64, u64, u32, String) = rates.extract()?;
                let Some(test) = AccountTest::named(&test) else {
                    return Err(Wrong::Value(format!(
                        "\"bytes\", \"frames\" or \"both\" is expected, not {test:?}"
                    )));
                };
                AccountConfig::new(bag_ns, jitter_ns, smax, test)
                    .map_err(|error| Wrong::Value(error.to_string()))
            };
            return Ok(Some(read().map_err(|wrong| wrong.about(&self.name))?.into()));
        }
        let read = || {
            let (cir, cbs, pir, pbs): (Bound<'_, PyAny>, u64, Bound<'_, PyAny>, u64) = rates.extract()?;
            Ok::<_, Wrong>(MeterRates { cir: rate(&cir)?, cbs, pir: rate(&pir)?, pbs }.into())
        };
        Ok(Some(read().map_err(|wrong| wrong.about(&self.name))?))
    }
}

/// A rate in units a second: a whole number or one with a fraction, of which millionths count.
fn rate(given: &Bound<'_, PyAny>) -> Result<Rate, Wrong> {
    if !given.is_instance_of::<PyFloat>() {
        return Ok(Rate::per_second(given.extract::<u64>()?));
    }
    let millionths = given.extract::<f64>()? * 1e6;
    if !(0.0..=u64::MAX as f64).contains(&millionths) {
        return Err(Wrong::Value(format!("a rate from 0 to 1.8e13 a second is expected, not {given}")));
    }
    Ok(Rate::per_second_millionths(millionths.round() as u64))
}

/// The parameters of a meter, for Python.
pub(crate) fn shown<'py>(py: Python<'py>, config: &MeterConfig) -> PyResult<Bound<'py, PyAny>> {
    let config = match config {
        MeterConfig::Rates(rates) => rates,
        MeterConfig::Account(of) => {
            let fields = (of.bag_ns(), of.jitter_ns(), of.smax(), of.test().name());
            return records::make(py, "AccountParameters", fields);
        }
    };
    let rate = |rate: Rate| -> PyResult<Bound<'py, PyAny>> {
        Ok(match rate.millionths() % 1_000_000 {
            0 => (rate.millionths() / 1_000_000).into_pyobject(py)?.into_any(),
            _ => (rate.millionths() as f64 / 1e6).into_pyobject(py)?.into_any(),
        })
    };
    records::make(py, "MeterRates", (rate(config.cir)?, config.cbs, rate(config.pir)?, config.pbs))
}
