//! `create`: a new file from an array.

use std::io::Write as _;
use std::path::Path;

use spile_core::reduce::statistics;
use spile_core::{
    Array, ArrayDesc, Axes, DType, Dataset, Error, Kind, Layout, Limits, Linear, Order, Overwrite,
    Result, Selection, Shape, Sink, Source,
};

use crate::wire::{Dimension, Header, TYPES};
use crate::write::{check_storable, pad_dimensions, write_array, write_elements};

/// Options of [`create`].
#[derive(Clone, Debug)]
pub struct Create {
    /// Element type of the file; the default is `flt32`, as in the report.
    pub dtype: DType,
    /// Grid start and step of the first dimensions; the others have the grid 1, 2, 3, ...
    pub grids: Vec<(f64, f64)>,
    /// Comments, written unchanged.
    pub comments: Vec<u8>,
    /// Whether an existing file may be replaced.
    pub overwrite: Overwrite,
}

impl Default for Create {
    fn default() -> Self {
        Self {
            dtype: DType::F32,
            grids: Vec::new(),
            comments: Vec::new(),
            overwrite: Overwrite::Never,
        }
    }
}

/// Writes the selected part of `array` as a TAF file and returns the number of clipped values.
///
/// For a floating-point element type, values are stored directly. For an integer type, integers keep
/// their stored value and map if the type can represent all values of the input type; otherwise the
/// range of the finite values is mapped to the full range of the type.
///
/// # Errors
/// TAF has no such element type, there are more grids than dimensions, or no map can represent the
/// range of the values.
pub fn create(path: &Path, array: &Array, part: &Selection, options: &Create) -> Result<u64> {
    let dtype = array.dtype();
    check_storable(dtype)?;
    if !TYPES.iter().any(|(_, known)| *known == options.dtype) {
        return Err(Error::argument(format!("TAF has no {} element type", options.dtype)));
    }
    let selected = array.select(part, Axes::Order(Order::F))?;
    let lengths = selected.shape();
    let rank = lengths.rank().max(2);
    if options.grids.len() > rank {
        let found = options.grids.len();
        return Err(Error::argument(format!("expected at most {rank} grids, found {found}")));
    }
    let mut dimensions = pad_dimensions(
        lengths.lengths().iter().map(|l| Dimension::with_default_grid(*l)).collect(),
    );
    for (dimension, (start, step)) in dimensions.iter_mut().zip(&options.grids) {
        (dimension.start, dimension.step) = (*start, *step);
    }
    let map = if can_represent(dtype, options.dtype) {
        array.map()
    } else if !options.dtype.is_integer() {
        None
    } else {
        let stats = statistics(&array.select(part, Axes::Stored)?)?;
        Some(fitted_map(options.dtype, stats.min, stats.max)?)
    };
    let header = Header::new(options.dtype, map, dimensions);
    let mut sink = Sink::create(path, options.overwrite)?;
    let clipped = write_array(&mut sink, &header, &selected)?;
    sink.write_all(&options.comments)?;
    sink.commit()?;
    Ok(clipped)
}

/// Writes arrays of one dimension and of the same length as the columns of a TAF file and returns the number of
/// clipped values. Columns of the same type and scaling as the file are copied bit for bit.
///
/// # Errors
/// There is no column, the columns differ in length, or TAF cannot store their elements.
pub fn create_columns(
    path: &Path,
    columns: &[Array],
    map: Option<Linear>,
    options: &Create,
) -> Result<u64> {
    let first = columns.first().ok_or_else(|| Error::argument("expected at least one column"))?;
    let [length] = *first.shape().lengths() else {
        let message = format!("expected columns of one dimension, found {}", first.shape());
        return Err(Error::argument(message));
    };
    for column in columns {
        check_storable(column.dtype())?;
        if column.shape() != first.shape() {
            let (expected, found) = (first.shape(), column.shape());
            let message = format!("expected columns of {expected} elements, found {found}");
            return Err(Error::argument(message));
        }
    }
    let lengths = [length, columns.len() as u64];
    let mut dimensions: Vec<_> = lengths.into_iter().map(Dimension::with_default_grid).collect();
    for (dimension, (start, step)) in dimensions.iter_mut().zip(&options.grids) {
        (dimension.start, dimension.step) = (*start, *step);
    }
    let header = Header::new(options.dtype, map, dimensions);
    let mut sink = Sink::create(path, options.overwrite)?;
    sink.write_all_at(0, &header.encode())?;
    let bytes = Shape::new([length]).bytes(options.dtype.size())?;
    let (mut at, mut clipped) = (header.data_offset(), 0);
    for column in columns {
        clipped += write_elements(&sink, at, &column.all_in(Order::F)?, &header)?;
        at += bytes;
    }
    sink.seek(header.comment_offset());
    sink.write_all(&options.comments)?;
    sink.commit()?;
    Ok(clipped)
}

/// The map that stores all values of `columns` as `dtype`; `None` for floating-point types.
///
/// # Errors
/// No map can represent the range of the values.
pub fn map_of(columns: &[Array], dtype: DType) -> Result<Option<Linear>> {
    if !dtype.is_integer() {
        return Ok(None);
    }
    let (mut min, mut max) = (f64::NAN, f64::NAN);
    for column in columns {
        let found = statistics(&column.all_in(Order::F)?)?;
        (min, max) = (min.min(found.min), max.max(found.max));
    }
    fitted_map(dtype, min, max).map(Some)
}

/// Whether `to` can represent all values of `from`, so that stored values and map can be kept.
fn can_represent(from: DType, to: DType) -> bool {
    match (from.kind(), to.kind()) {
        (Kind::Float, Kind::Float) => from.size() == to.size(),
        (Kind::UInt, Kind::UInt) | (Kind::Int, Kind::Int) => from.size() <= to.size(),
        (Kind::UInt, Kind::Int) => from.size() < to.size(),
        _ => false,
    }
}

/// Map of `min..=max` to the full range of an integer type. Constant data get the slope 1 and are
/// stored as 0, so that they are read back unchanged.
fn fitted_map(dtype: DType, min: f64, max: f64) -> Result<Linear> {
    if min == max || min.is_nan() {
        return Ok(Linear::new(if min.is_nan() { 0.0 } else { min }, 1.0));
    }
    let bits = dtype.size() as i32 * 8;
    let (levels, half) = (2_f64.powi(bits) - 1.0, 2_f64.powi(bits - 1));
    let slope = (max - min) / levels;
    let intercept = if dtype.kind() == Kind::Int { min + half * slope } else { min };
    if slope == 0.0 || !slope.is_finite() || !intercept.is_finite() {
        let message = format!("no linear map from {min}..{max} to {dtype}");
        return Err(Error::argument(message).hint("store the values as flt64"));
    }
    Ok(Linear::new(intercept, slope))
}

/// The TAF element type for values of `dtype`: the same type, or the closest one for booleans and
/// floats of 2, 10 or 16 bytes. `None` if the values are not real.
pub fn type_for(dtype: DType) -> Option<DType> {
    let native = match (dtype.kind(), dtype.size()) {
        (Kind::Bool, _) => DType::U8,
        (Kind::Float, 2) => DType::F32,
        (Kind::Float, 16) | (Kind::X87, _) => DType::F64,
        _ => dtype.with_order(DType::F64.order()),
    };
    TYPES.iter().any(|(_, known)| *known == native).then_some(native)
}

/// Writes an example of the report (section 3.1) with 2 or 3 dimensions. The first page has t, t^2
/// and t^3 in three columns of 101 points; the second page of the 3D example has three sinusoids.
///
/// # Errors
/// Another number of dimensions.
pub fn example(path: &Path, dimensions: u32, overwrite: Overwrite) -> Result<()> {
    let pages = match dimensions {
        2 => 1,
        3 => 2,
        _ => {
            return Err(Error::argument(format!("expected 2 or 3 dimensions, found {dimensions}")));
        }
    };
    let mut values = Vec::new();
    for page in 0..pages {
        for column in 1..=3 {
            values.extend((0..101).map(|k| {
                let t = f64::from(k) / 100.0;
                let angle = 2.0 * std::f64::consts::PI * f64::from(column) * t;
                (if page == 0 { t.powi(column) } else { angle.sin() }) as f32
            }));
        }
    }
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = if pages == 1 { vec![101, 3] } else { vec![101, 3, 2] };
    let desc =
        ArrayDesc::new(DType::F32, Shape::new(shape), Layout::Inline(bytes.into(), Order::F));
    let limits = Limits::default();
    let array = Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc)?;
    let options = Create {
        grids: vec![(0.0, 0.01)],
        comments: format!("{dimensions}D example\n").into_bytes(),
        overwrite,
        ..Create::default()
    };
    create(path, &array, &Selection::all(), &options)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_covers_the_range_and_extreme_ranges_are_rejected() {
        let map =
            |dtype, min, max| fitted_map(dtype, min, max).ok().map(|m| (m.intercept, m.slope));
        assert_eq!(map(DType::U8, -1.0, 1.0), Some((-1.0, 2.0 / 255.0)));
        assert_eq!(map(DType::I16, 0.0, 65535.0), Some((32768.0, 1.0)));
        for dtype in [DType::U8, DType::I64] {
            assert_eq!(map(dtype, 7.3, 7.3), Some((7.3, 1.0)));
            assert_eq!(map(dtype, f64::NAN, f64::NAN), Some((0.0, 1.0)));
            assert_eq!(map(dtype, -1.7e308, 1.7e308), None);
        }
        assert!(map(DType::U8, 0.0, 5e-310).is_some_and(|(_, slope)| slope > 0.0));
        assert_eq!(map(DType::U8, 0.0, 5e-324), None);
    }
}
