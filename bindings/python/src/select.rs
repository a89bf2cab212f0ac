//! Conversion of Python indices to selections.

use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use spile::error::Error;
use spile::select::{Selection, Slice};

use crate::failure::Result;

/// The selection of an index expression: integers, slices, an ellipsis, or a tuple of them.
pub(crate) fn selection(key: &Bound<'_, PyAny>) -> Result<Selection> {
    match key.cast::<PyTuple>() {
        Ok(parts) => parts.iter().map(|part| slice(&part)).collect::<Result<_>>().map(Selection),
        Err(_) => Ok(Selection(vec![slice(key)?])),
    }
}

fn slice(part: &Bound<'_, PyAny>) -> Result<Slice> {
    if let Ok(range) = part.cast::<PySlice>() {
        let end = |name: &str| -> Result<Option<i64>> {
            let end = range.getattr(name)?;
            if end.is_none() { Ok(None) } else { integer(&end).map(Some) }
        };
        let step = end("step")?.unwrap_or(1);
        return Ok(Slice::Range { start: end("start")?, stop: end("stop")?, step });
    }
    if part.is_instance_of::<PyEllipsis>() {
        return Ok(Slice::Rest);
    }
    integer(part).map(Slice::Index)
}

/// An integer, or an object with `__index__`. Integers beyond 64 bits are clamped.
fn integer(number: &Bound<'_, PyAny>) -> Result<i64> {
    let Ok(index) = number.call_method0("__index__") else {
        let kind = number.get_type().name()?.to_string();
        return Err(Error::argument(format!("cannot index an array with {kind}"))
            .hint("supported are integers, slices and `...`; index numpy.asarray(array) for fancy indexing")
            .into());
    };
    if let Ok(value) = index.extract::<i64>() {
        return Ok(value);
    }
    Ok(if index.lt(0)? { i64::MIN } else { i64::MAX })
}
