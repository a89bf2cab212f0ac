//! Particles of a run: tracks, histograms and energies.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::prelude::*;
use spile::error::Error;
use spile_ops::particles::{self, HistogramOptions, IdIndex, Species};

use crate::failure::Result;
use crate::file::File;

/// Name, unit and values.
type Column<'py> = (String, String, Bound<'py, PyArray1<f64>>);

/// Names of the species, and of the variables of each.
#[pyfunction]
pub(crate) fn species(file: &File) -> Vec<(String, Vec<String>)> {
    let all = Species::all(&file.dataset).into_iter();
    all.map(|species| (species.name.clone(), species.variables())).collect()
}

/// The particles `ids`, or the `count` particles with the largest value of `by`, or momentum, in `frame`: their
/// identifiers, and their variables over all frames. `index` is the path of an index of identifiers, which is written if it
/// is missing; an empty path is the default one.
#[pyfunction]
#[pyo3(signature = (file, species, ids=None, *, count=None, by=None, frame=0, variables=Vec::new(), index=None))]
#[allow(clippy::too_many_arguments)] // Called with keywords.
pub(crate) fn track<'py>(
    py: Python<'py>,
    file: &File,
    species: &str,
    ids: Option<Vec<u64>>,
    count: Option<usize>,
    by: Option<&str>,
    frame: u64,
    variables: Vec<String>,
    index: Option<PathBuf>,
) -> Result<(Vec<u64>, Vec<Column<'py>>)> {
    let found = py.detach(|| {
        let species = Species::find(&file.dataset, species)?;
        let ids = match (ids, count, by) {
            (Some(ids), ..) => ids,
            (None, Some(count), Some(by)) => particles::top(&species, count, by, frame)?,
            (None, Some(count), None) => particles::fastest(&species, count, frame)?,
            (None, None, _) => return Err(Error::argument("no particles were selected")),
        };
        let index = match &index {
            Some(path) if path.as_os_str().is_empty() => {
                let found = particles::index_path(&file.dataset, &species);
                Some(found.ok_or_else(|| {
                    Error::argument("this run is in no folder").hint("give the path of the index")
                })?)
            }
            path => path.clone(),
        };
        let index = match index {
            Some(path) => Some(
                IdIndex::open_or_create(&path, &species).map_err(|error| error.with_path(&path))?,
            ),
            None => None,
        };
        particles::track(&species, &ids, &variables, index.as_ref())
    })?;
    let column = |(name, unit, values): (String, String, Vec<f64>)| {
        (name, unit, PyArray1::from_vec(py, values))
    };
    Ok((found.ids, found.columns.into_iter().map(column).collect()))
}

/// Sums of weights in bins: lower and upper limit of each axis, the unit of each axis, and the sums of all frames in
/// C order.
#[pyfunction]
#[pyo3(signature = (file, species, axes, bins, ranges, *, weight=None, filter=None, frames))]
#[allow(clippy::too_many_arguments)] // Called with keywords.
pub(crate) fn histogram<'py>(
    py: Python<'py>,
    file: &File,
    species: &str,
    axes: Vec<String>,
    bins: Vec<usize>,
    ranges: Vec<Option<(f64, f64)>>,
    weight: Option<String>,
    filter: Option<String>,
    frames: Vec<u64>,
) -> Result<(Vec<(f64, f64)>, Vec<String>, Bound<'py, PyArray1<f64>>)> {
    let (limits, units, values) = py.detach(|| {
        let species = Species::find(&file.dataset, species)?;
        let units = axes.iter().map(|text| species.unit(text)).collect::<Vec<_>>();
        let options = HistogramOptions { axes, bins, ranges, weight, filter, frames };
        let found = particles::histogram(&species, &options)?;
        let limits = found.bins.iter().map(|bins| (bins.low, bins.high)).collect::<Vec<_>>();
        Ok::<_, Error>((limits, units, found.values.concat()))
    })?;
    Ok((limits, units, PyArray1::from_vec(py, values)))
}

/// Energies over all frames; `masses` are those of species in kilograms.
#[pyfunction]
pub(crate) fn energies<'py>(
    py: Python<'py>,
    file: &File,
    masses: Vec<(String, f64)>,
) -> Result<Vec<Column<'py>>> {
    let masses: Vec<(&str, f64)> =
        masses.iter().map(|(name, mass)| (name.as_str(), *mass)).collect();
    let found = py.detach(|| spile_ops::energies(&file.dataset, &masses))?;
    let found = found.into_iter();
    Ok(found.map(|one| (one.name, one.unit, PyArray1::from_vec(py, one.values))).collect())
}
