//! Native writer: header and elements into a sink. Comments follow.

use std::sync::atomic::{AtomicU64, Ordering};

use spile_core::read::Selected;
use spile_core::{DType, Error, Kind, Linear, Result, Sink, convert};

use crate::wire::{Dimension, Header};

/// Writes the header and the elements of `selected`, whose shape and order must be those of the
/// header, and moves the sink to the offset of the comments. Returns the number of clipped values.
pub(crate) fn write_array(
    sink: &mut Sink,
    header: &Header,
    selected: &Selected<'_>,
) -> Result<u64> {
    sink.write_all_at(0, &header.encode())?;
    let clipped = write_elements(sink, header.data_offset(), selected, header)?;
    sink.seek(header.comment_offset());
    Ok(clipped)
}

/// Writes the elements of `selected` from byte `offset` on, in the element type and map of `header`.
/// Elements with the same type and map are copied bit for bit, unmapped integers are converted
/// exactly, others through `f64`. Returns the number of clipped values.
pub(crate) fn write_elements(
    sink: &Sink,
    offset: u64,
    selected: &Selected<'_>,
    header: &Header,
) -> Result<u64> {
    let array = selected.array();
    let (from, to) = (array.dtype(), header.dtype);
    check_storable(from)?;
    let unmapped = array.map().is_none() && header.map().is_none();
    let coefficients = |map: Option<Linear>| map.map(Linear::coefficients);
    let same = (from.kind(), from.size()) == (to.kind(), to.size())
        && coefficients(array.map()) == coefficients(header.map());
    let clipped = AtomicU64::new(0);
    let size = to.size() as u64;
    selected.for_each(|block, bytes| {
        let offset = offset + block.first * size;
        if same {
            return sink.write_all_at(offset, bytes);
        }
        let (mut values, mut stored) = (Vec::new(), Vec::new());
        let exact = || convert::recode_integers(from, to, bytes, &mut stored);
        let count = if let Some(count) = unmapped.then(exact).flatten() {
            count
        } else {
            convert::to_f64(from, array.map(), bytes, &mut values);
            convert::from_f64(to, header.map(), &values, &mut stored)
                .ok_or_else(|| Error::argument(format!("TAF has no {to} element type")))?
        };
        clipped.fetch_add(count, Ordering::Relaxed);
        sink.write_all_at(offset, &stored)
    })?;
    Ok(clipped.into_inner())
}

/// Fails unless values of `dtype` can be converted to an element type of TAF.
pub(crate) fn check_storable(dtype: DType) -> Result<()> {
    if dtype.is_real() || dtype.kind() == Kind::Bool {
        return Ok(());
    }
    let error = Error::argument(format!("TAF cannot store {dtype} elements"));
    Err(match dtype.kind() {
        Kind::Complex | Kind::ComplexX87 => {
            error.hint("store real and imaginary parts as two columns")
        }
        _ => error,
    })
}

/// Appends dimensions of length 1 up to a rank of 2, the minimum of TAF (section 2.2).
pub(crate) fn pad_dimensions(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    while dimensions.len() < 2 {
        dimensions.push(Dimension::with_default_grid(1));
    }
    dimensions
}
