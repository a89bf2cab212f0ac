//! Operations on TAF files.

use std::path::PathBuf;

use pyo3::prelude::*;
use spile::Dataset;
use spile::dtype::DType;
use spile::error::{Error, Result as Done};
use spile::layout::ArrayDesc;
use spile::read::Array;
use spile::select::Selection;
use spile::sink::Overwrite;
use spile::source::Source;
use spile::tree::Tree;
use spile_taf::File;
use spile_taf::ops::{self, Adjust, Bounds, Create, Target};
use spile_taf::wire::{parse_type, type_name};

use crate::failure::Result;
use crate::file::limits;
use crate::write::Block;

fn array(block: &Block<'_>) -> Result<Array> {
    let limits = limits(None);
    let (dtype, cell) = block.cell()?;
    let desc = ArrayDesc::new(dtype, cell.shape, cell.layout);
    Ok(Dataset::new(Source::memory(Vec::new()), Tree::new(&limits)).open_array(&desc)?)
}

fn overwrite(allowed: bool) -> Overwrite {
    if allowed { Overwrite::Replace } else { Overwrite::Never }
}

fn target(output: Option<PathBuf>, replace: bool) -> Target {
    output.map_or(Target::InPlace, |path| Target::File(path, overwrite(replace)))
}

/// Creates a file. Returns the number of clipped values.
#[pyfunction]
#[pyo3(signature = (path, block, *, dtype, grids, comment, overwrite_output))]
pub(crate) fn taf_create(
    py: Python<'_>,
    path: PathBuf,
    block: Block<'_>,
    dtype: Option<String>,
    grids: Vec<(f64, f64)>,
    comment: &str,
    overwrite_output: bool,
) -> Result<u64> {
    let array = array(&block)?;
    let dtype = match dtype {
        Some(name) => parse_type(&name)?,
        None => ops::type_for(array.dtype()).unwrap_or(DType::F64),
    };
    let overwrite = overwrite(overwrite_output);
    let options = Create { dtype, grids, comments: comment.into(), overwrite };
    Ok(py.detach(|| ops::create(&path, &array, &Selection::all(), &options))?)
}

/// Appends along a dimension, by default the last. Returns the dimension, the new shape and the number of clipped
/// values.
#[pyfunction]
#[pyo3(signature = (path, block, dimension, safe))]
pub(crate) fn taf_append(
    py: Python<'_>,
    path: PathBuf,
    block: Block<'_>,
    dimension: Option<usize>,
    safe: bool,
) -> Result<(usize, Vec<u64>, u64)> {
    let array = array(&block)?;
    let done = py.detach(|| ops::append_along(&path, &array, dimension, safe, &limits(None)))?;
    Ok((done.dimension, done.shapes[1].lengths().to_vec(), done.clipped))
}

/// Replaces the elements. Returns the number of clipped values.
#[pyfunction]
pub(crate) fn taf_replace(py: Python<'_>, path: PathBuf, block: Block<'_>) -> Result<u64> {
    let array = array(&block)?;
    Ok(py.detach(|| ops::replace(&path, &array, &limits(None)))?)
}

/// Copies a file to an unused name in the same folder. Returns the path of the copy.
#[pyfunction]
pub(crate) fn taf_backup(py: Python<'_>, path: PathBuf) -> Result<PathBuf> {
    let work = || -> Done<PathBuf> {
        drop(File::open(&path, &limits(None))?);
        ops::backup(&path)
    };
    Ok(py.detach(work)?)
}

/// The header: version, element type, shape, intercept and slope, grids as start and step, offsets of the elements and
/// of the comments; and the comments.
#[pyfunction]
pub(crate) fn taf_probe(path: PathBuf) -> Result<Header> {
    let file = File::open(&path, &limits(None))?;
    let header = file.header();
    let grids = header.dimensions.iter().map(|d| (d.start, d.step)).collect();
    let map = header.map().map(|map| (map.intercept, map.slope));
    Ok((
        header.version,
        type_name(header.dtype),
        header.shape().lengths().to_vec(),
        map,
        grids,
        (header.data_offset(), header.comment_offset()),
        file.comments()?,
    ))
}

/// What [`taf_probe`] returns.
type Header =
    ((u8, u8), &'static str, Vec<u64>, Option<(f64, f64)>, Vec<(f64, f64)>, (u64, u64), Vec<u8>);

/// Statistics of all elements, and of each column if there are several: number of values and of finite values, minimum,
/// maximum, mean and standard deviation.
#[pyfunction]
pub(crate) fn taf_summarize(
    py: Python<'_>,
    path: PathBuf,
) -> Result<Vec<(u64, u64, f64, f64, f64, f64)>> {
    let work = || -> Done<Vec<_>> {
        let file = File::open(&path, &limits(None))?;
        let empty = file.header().shape().count() == Some(0);
        let columns = if file.columns() == 1 || empty { 0 } else { file.columns() };
        let all = std::iter::once(None).chain((0..columns).map(Some));
        let row = |column| {
            let s = file.summarize(column)?;
            Ok((s.count, s.finite, s.min, s.max, s.mean, s.std))
        };
        all.map(row).collect()
    };
    Ok(py.detach(work)?)
}

/// Grid, columns and comments as text.
#[pyfunction]
pub(crate) fn taf_export(py: Python<'_>, path: PathBuf) -> Result<Vec<u8>> {
    let work = || -> Done<Vec<u8>> {
        let mut out = Vec::new();
        ops::export(&File::open(&path, &limits(None))?, &mut out)?;
        Ok(out)
    };
    Ok(py.detach(work)?)
}

/// Crops along one dimension. Dimensions and indices count from 1. Returns the new shape.
#[pyfunction]
#[pyo3(signature = (path, dimension, grid, index, output, overwrite_output))]
pub(crate) fn taf_crop(
    py: Python<'_>,
    path: PathBuf,
    dimension: usize,
    grid: Option<(f64, f64)>,
    index: Option<(u64, u64)>,
    output: Option<PathBuf>,
    overwrite_output: bool,
) -> Result<Vec<u64>> {
    let (bounds, target) = (Bounds { grid, index }, target(output, overwrite_output));
    let shape = py.detach(|| ops::crop(&path, dimension, bounds, &target, &limits(None)))?;
    Ok(shape.lengths().to_vec())
}

/// Permutes the dimensions, counted from 1; without `order`, transposes. Returns the new shape.
#[pyfunction]
#[pyo3(signature = (path, order, output, overwrite_output))]
pub(crate) fn taf_permute(
    py: Python<'_>,
    path: PathBuf,
    order: Option<Vec<usize>>,
    output: Option<PathBuf>,
    overwrite_output: bool,
) -> Result<Vec<u64>> {
    let target = target(output, overwrite_output);
    let shape = py.detach(|| match order {
        Some(order) => ops::permute(&path, &order, &target, &limits(None)),
        None => ops::transpose(&path, &target, &limits(None)),
    })?;
    Ok(shape.lengths().to_vec())
}

/// Changes the grid of a dimension in place: `shift`, `scale`, `start`, `step` or `span`. Returns start
/// and step.
#[pyfunction]
pub(crate) fn taf_grid(
    py: Python<'_>,
    path: PathBuf,
    dimension: usize,
    how: &str,
    numbers: Vec<f64>,
) -> Result<(f64, f64)> {
    let adjust = match (how, &numbers[..]) {
        ("shift", [by]) => Adjust::Shift(*by),
        ("scale", [by]) => Adjust::Scale(*by),
        ("start", [at]) => Adjust::Start(*at),
        ("step", [by]) => Adjust::Step(*by),
        ("span", [from, to]) => Adjust::Span(*from, *to),
        _ => {
            return Err(Error::argument(format!(
                "invalid change of the grid: {how} with {} numbers",
                numbers.len()
            ))
            .into());
        }
    };
    let new = py.detach(|| ops::adjust(&path, dimension, adjust, &limits(None)))?;
    Ok((new.start, new.step))
}

/// Appends to the comments, or replaces them.
#[pyfunction]
pub(crate) fn taf_comment(
    py: Python<'_>,
    path: PathBuf,
    text: String,
    replace: bool,
) -> Result<()> {
    let work = || -> Done<()> {
        let change = if replace { ops::set_comment } else { ops::add_comment };
        change(&path, &text, &limits(None))
    };
    Ok(py.detach(work)?)
}
