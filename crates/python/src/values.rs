//! Values of fields and parameters: Python's integers, bytes, addresses and texts as bit strings, and back.

use crate::errors::Wrong;
use millrace_commands::value;
use millrace_pipeline::Bits;
use millrace_pipeline::semantics::Value;
use num_bigint::{BigInt, BigUint};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// A value of a width in bits: an integer, a truth value, bytes in network order, an address of `ipaddress`, or a text as
/// commands have it (`"10.0.0.1"`, `"08:00:00:00:01:11"`, `"0x1f"`).
pub(crate) fn bits(given: &Bound<'_, PyAny>, width: u32) -> Result<Bits, Wrong> {
    if let Ok(small) = given.extract::<u64>() {
        return fit(BigUint::from(small), width);
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_cow()?;
        return value::parse(&text, width).map_err(|error| Wrong::Value(format!("`{text}`: {error}")));
    }
    if given.is_instance_of::<PyBytes>() || given.is_instance_of::<PyByteArray>() {
        return fit(BigUint::from_bytes_be(&given.extract::<PyBackedBytes>()?), width);
    }
    // An address of `ipaddress`: a subnet's is another, so that its length of prefix is not lost.
    if let Ok(packed) = given.getattr(intern!(given.py(), "packed")) {
        let packed = packed.extract::<PyBackedBytes>()?;
        if packed.len() * 8 != width as usize {
            let message = format!("an address of {} bits, the field has {width}", packed.len() * 8);
            return Err(Wrong::Value(message));
        }
        return fit(BigUint::from_bytes_be(&packed), width);
    }
    match given.extract::<BigInt>() {
        Ok(large) => match large.to_biguint() {
            Some(large) => fit(large, width),
            None => Err(Wrong::Value(value::ValueError::Negative.to_string())),
        },
        Err(_) => {
            let kind = given.get_type().name()?.to_string();
            Err(Wrong::Type(format!("a number, bytes, an address or a text is expected, not {kind}")))
        }
    }
}

/// A value as a Python integer.
pub(crate) fn int<'py>(py: Python<'py>, bits: &Bits) -> PyResult<Bound<'py, PyAny>> {
    Ok(match bits.to_u64() {
        Some(small) => small.into_pyobject(py)?.into_any(),
        None => bits.to_biguint().into_pyobject(py)?.into_any(),
    })
}

/// A value of the program as a Python integer or truth value.
pub(crate) fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bool(truth) => Ok(truth.into_pyobject(py)?.to_owned().into_any()),
        Value::Bits(bits) => int(py, bits),
        Value::Varbit(_) => int(py, &value.as_bits()),
    }
}

fn fit(number: BigUint, width: u32) -> Result<Bits, Wrong> {
    if number.bits() > u64::from(width) {
        let error = value::ValueError::TooWide { width, needed: number.bits() };
        return Err(Wrong::Value(error.to_string()));
    }
    Ok(Bits::from_biguint(width.max(1), &number))
}
