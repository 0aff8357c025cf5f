//! Plain data for Python: the classes of `millrace/records.py`.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// An object of a class of `millrace/records.py`, from its fields in their order.
pub(crate) fn make<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("millrace.records").map(Bound::unbind))?;
    module.bind(py).getattr(class)?.call1(fields)
}
