//! New NumPy arrays whose memory Rust fills.

use numpy::{PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _, npyffi};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// A function of NumPy.
fn function<'py>(
    py: Python<'py>,
    cell: &PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let found =
        cell.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr(name)?.unbind()))?;
    Ok(found.bind(py).clone())
}

/// An array of this shape (an integer or a tuple) and type, not initialised.
pub(crate) fn empty<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    fortran: bool,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = dtype.py();
    let empty = function(py, &EMPTY, "empty")?;
    let array = if fortran {
        empty.call1((shape, dtype, PyString::intern(py, "F")))?
    } else {
        empty.call1((shape, dtype))?
    };
    Ok(array.cast_into::<PyUntypedArray>()?)
}

/// An array of zeros of this shape and type.
pub(crate) fn zeros<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    static ZEROS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    function(dtype.py(), &ZEROS, "zeros")?.call1((shape, dtype))
}

/// The memory of an array of [`empty`].
#[allow(unsafe_code, clippy::mut_from_ref)]
pub(crate) fn bytes_mut<'a>(array: &'a Bound<'_, PyUntypedArray>) -> &'a mut [u8] {
    let len = array.len() * array.dtype().itemsize();
    if len == 0 {
        return &mut [];
    }
    // SAFETY: the array was created by `numpy.empty` in this module, so that it owns `len` contiguous
    // bytes. Nobody else has it yet, and the caller uses one slice at a time.
    unsafe {
        let array: *mut npyffi::PyArrayObject = array.as_array_ptr();
        std::slice::from_raw_parts_mut((*array).fields.data.cast::<u8>(), len)
    }
}
