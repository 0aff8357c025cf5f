//! Packets, from Python and back.

use crate::errors::Wrong;
use millrace_dataplane::{PortId, Sent};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMemoryView, PyTuple};

/// A packet that left the switch.
///
/// It equals another one, or a pair of port and bytes, with the same port and the same bytes; when it left does not matter.
/// `port, data = packet` takes it apart.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Packet {
    /// The port it left by.
    #[pyo3(get)]
    port: PortId,
    /// The whole frame.
    #[pyo3(get)]
    bytes: Py<PyBytes>,
    /// When it left, in nanoseconds of the switch's clock.
    #[pyo3(get)]
    time_ns: u64,
}

#[pymethods]
impl Packet {
    /// The frame taken apart by scapy, as Ethernet or as the layer given.
    #[pyo3(signature = (layer = None))]
    fn scapy<'py>(&self, py: Python<'py>, layer: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.bytes.bind(py);
        match layer {
            Some(layer) => layer.call1((bytes,)),
            None => py.import(intern!(py, "scapy.layers.l2"))?.getattr(intern!(py, "Ether"))?.call1((bytes,)),
        }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.bytes.bind(py).as_bytes().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        (self.port, self.bytes.bind(py)).into_pyobject(py)?.try_iter()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let bytes = self.bytes.bind(py).as_bytes();
        if let Ok(other) = other.cast::<Packet>() {
            let other = other.get();
            return self.port == other.port && bytes == other.bytes.bind(py).as_bytes();
        }
        let pair = other.cast::<PyTuple>().ok().and_then(|pair| pair.extract().ok());
        pair.is_some_and(|(port, data): (PortId, Bound<'_, PyAny>)| {
            port == self.port && frame(&data).is_ok_and(|data| bytes == &data[..])
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let digits = self.bytes.bind(py).as_bytes().iter().map(|byte| format!("{byte:02x}"));
        format!("Packet(port={}, bytes=bytes.fromhex('{}'))", self.port, digits.collect::<String>())
    }
}

impl Packet {
    pub(crate) fn new(py: Python<'_>, sent: &Sent) -> Packet {
        let bytes = PyBytes::new(py, &sent.bytes).unbind();
        Packet { port: sent.port, bytes, time_ns: sent.time_ns }
    }
}

/// Packets that left, for Python.
pub(crate) fn to_list(py: Python<'_>, sent: &[Sent]) -> Vec<Packet> {
    sent.iter().map(|one| Packet::new(py, one)).collect()
}

/// The bytes of a frame: bytes, a bytearray, a memoryview, or an object that gives its bytes, as those of scapy do.
pub(crate) fn frame(data: &Bound<'_, PyAny>) -> Result<PyBackedBytes, Wrong> {
    if data.is_instance_of::<PyBytes>() || data.is_instance_of::<PyByteArray>() {
        return Ok(data.extract()?);
    }
    let py = data.py();
    if data.hasattr(intern!(py, "__bytes__"))? || data.is_instance_of::<PyMemoryView>() {
        return Ok(py.get_type::<PyBytes>().call1((data,))?.extract()?);
    }
    let kind = data.get_type().name()?.to_string();
    Err(Wrong::Type(format!("a packet is bytes, or an object that gives its bytes, not {kind}")))
}
