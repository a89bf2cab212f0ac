//! Conversion of attributes to and from Python objects.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString};
use spile::error::Error;
use spile::tree::{Attrs, Value};

use crate::failure::Result;

/// An attribute value as a Python object.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bool(v) => v.into_bound_py_any(py),
        Value::Int(v) => v.into_bound_py_any(py),
        Value::UInt(v) => v.into_bound_py_any(py),
        Value::Float(v) => v.into_bound_py_any(py),
        Value::Complex(re, im) => Ok(PyComplex::from_doubles(py, *re, *im).into_any()),
        Value::Text(v) => v.into_bound_py_any(py),
        Value::Bytes(v) => Ok(PyBytes::new(py, v).into_any()),
        Value::List(v) => {
            let items = v.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
    }
}

/// Attributes as a dictionary. A repeated name becomes `name~2`, `name~3`, and so on.
pub(crate) fn attrs<'py>(py: Python<'py>, attrs: &Attrs) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in attrs {
        let mut unique = name.to_string();
        let mut count = 1;
        while dict.contains(&unique)? {
            count += 1;
            unique = format!("{name}~{count}");
        }
        dict.set_item(unique, to_python(py, value)?)?;
    }
    Ok(dict)
}

/// A Python object as an attribute value. The Python layer has converted NumPy values with `tolist`.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> Result<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(match value.extract::<i64>() {
            Ok(v) => Value::Int(v),
            Err(_) => Value::UInt(value.extract()?),
        });
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.extract()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(number) = value.cast::<PyComplex>() {
        return Ok(Value::Complex(number.real(), number.imag()));
    }
    if let Ok(items) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        return Ok(Value::List(items.iter().map(from_python).collect::<Result<_>>()?));
    }
    let kind = value.get_type().name()?.to_string();
    Err(Error::argument(format!("cannot store an attribute of type {kind}"))
        .hint("supported are numbers, str, bytes and lists of them")
        .into())
}

/// A Python dictionary as attributes.
pub(crate) fn to_attrs(dict: &Bound<'_, PyDict>) -> Result<Attrs> {
    let attrs =
        dict.iter().map(|(name, value)| Ok((name.extract::<String>()?, from_python(&value)?)));
    attrs.collect()
}
