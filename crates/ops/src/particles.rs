//! Particles of one species in all frames: histograms of expressions of their variables, and the particles with given
//! identifiers.
//!
//! A species is a set of points with common positions: the arrays with the role of points on one mesh, and the
//! coordinates of that mesh.

mod expression;
mod ids;
mod track;

use std::sync::Arc;

use spile_core::computed::Computed;
use spile_core::reduce::{self, Bins};
use spile_core::{
    Array, ArrayDesc, DType, Dataset, Error, Hint, Layout, NodeId, Order, Result, Role, tree,
};

pub use expression::Expression;
pub use ids::{IdIndex, index_path};
pub use track::{Tracks, fastest, top, track};

/// Number of particles computed at once.
const PIECE: u64 = 1 << 14;

/// Name of the variable with the identifiers of particles.
const ID: &str = "id";

/// Names of the statistical weight.
const WEIGHT: &str = "weight";

/// The variables of a species.
#[derive(Clone)]
pub struct Species {
    /// Name: that of the positions without common parts, for example `Electron` or `subset_hot/Electron`.
    pub name: String,
    /// Names and arrays of the variables, positions first.
    variables: Vec<(String, NodeId)>,
    dataset: Dataset,
}

impl Species {
    /// The species of a dataset.
    pub fn all(dataset: &Dataset) -> Vec<Self> {
        let tree = dataset.tree();
        let mut found: Vec<(NodeId, Self)> = Vec::new();
        for (id, _, desc) in dataset.arrays() {
            let meaning = desc.semantics();
            let Some(mesh) = meaning.mesh.filter(|_| meaning.role == Role::Points) else {
                continue;
            };
            let k = found.iter().position(|(known, _)| *known == mesh).unwrap_or_else(|| {
                let mut variables = Vec::new();
                for (axis, node, _) in tree.arrays().filter(|(_, node, _)| node.parent == mesh) {
                    variables.push((node.name.clone(), axis));
                }
                let name = species_name(&tree.node(mesh).path).to_string();
                found.push((mesh, Self { name, variables, dataset: dataset.clone() }));
                found.len() - 1
            });
            let species = &mut found[k].1;
            let name = variable_name(&tree.node(id).path, &species.name);
            species.variables.push((name, id));
        }
        found.into_iter().map(|(_, species)| species).collect()
    }

    /// The species called `name`, compared without case if no name is equal. Fails with the names of the species.
    pub fn find(dataset: &Dataset, name: &str) -> Result<Self> {
        let all = Self::all(dataset);
        let exact = all.iter().find(|species| species.name == name);
        let same = |species: &&Self| species.name.eq_ignore_ascii_case(name);
        if let Some(found) = exact.or_else(|| all.iter().find(same)) {
            return Ok(found.clone());
        }
        let error = Error::argument(format!("no species named \"{name}\""));
        let close = tree::closest(name, all.iter().map(|species| species.name.as_str()));
        let names: Vec<String> = if close.is_empty() {
            all.into_iter().map(|species| species.name).take(20).collect()
        } else {
            close
        };
        Err(if names.is_empty() {
            error.hint("the dataset has no particles")
        } else {
            error.hint(Hint::DidYouMean(names))
        })
    }

    /// The names of the variables.
    pub fn variables(&self) -> Vec<String> {
        self.variables.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The array of a variable, compared without case.
    pub fn variable(&self, name: &str) -> Option<NodeId> {
        let found = self.variables.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, id)| *id)
    }

    /// The unit of an expression that is a single variable; empty for others.
    pub fn unit(&self, expression: &str) -> String {
        let node = self.variable(expression.trim()).map(|id| self.dataset.tree().node(id));
        node.and_then(|node| node.attrs.get_str("units")).unwrap_or_default().to_string()
    }

    /// The dataset.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Number of frames; 1 for a dataset without frames.
    pub fn frames(&self) -> u64 {
        self.dataset.tree().frames().map_or(1, |axis| axis.len())
    }

    /// The values of an expression in `frame`; `None` if the frame has no particles of the species.
    pub fn values(&self, expression: &str, frame: u64) -> Result<Option<Array>> {
        let parsed = Expression::parse(expression, &self.variables())?;
        let mut inputs = Vec::new();
        for name in parsed.variables() {
            let Some(id) = self.variable(name) else { continue };
            let Some(desc) = self.in_frame(id, frame)? else { return Ok(None) };
            inputs.push(desc);
        }
        let first = match inputs.first() {
            Some(first) => Some(first.clone()),
            None => match self.variables.first() {
                Some((_, id)) => self.in_frame(*id, frame)?,
                None => None,
            },
        };
        let Some(shape) = first.map(|desc| desc.shape) else { return Ok(None) };
        if let Some(other) =
            inputs.iter().find(|desc| desc.shape != shape || desc.shape.rank() != 1)
        {
            let message = format!("expected {shape} particles, found {}", other.shape);
            return Err(Error::argument(message).in_frame(frame));
        }
        let computed =
            Computed { inputs, function: Arc::new(parsed), piece: PIECE, order: Order::C };
        let layout = Layout::Computed(Arc::new(computed));
        self.dataset.open_array(&ArrayDesc::new(DType::F64, shape, layout)).map(Some)
    }

    /// The description of a variable in `frame`; `None` if the frame does not have it.
    fn in_frame(&self, id: NodeId, frame: u64) -> Result<Option<ArrayDesc>> {
        let tree = self.dataset.tree();
        let Some(own) = tree.array(id) else { return Ok(None) };
        let desc = tree.resolve(own)?;
        let Some(table) = desc.layout.frames() else { return Ok(Some(desc.clone())) };
        let cell = table.cell(frame)?;
        Ok(cell.map(|cell| ArrayDesc { shape: cell.shape, layout: cell.layout, ..desc.clone() }))
    }
}

/// The name of a species, from the path of its positions: without the group of meshes and that of particles.
fn species_name(path: &str) -> &str {
    let name = path.strip_prefix("Grid/").unwrap_or(path);
    name.strip_prefix("Particles/").unwrap_or(name)
}

/// The name of a variable of a species, from its path: `Px` of `Particles/Px/electron`.
fn variable_name(path: &str, species: &str) -> String {
    let name = path.strip_prefix("Particles/").unwrap_or(path);
    let end = name.strip_suffix(species).and_then(|name| name.strip_suffix('/'));
    // Subsets and probes may have the name of the species last or first.
    let start = || name.strip_prefix(species).and_then(|name| name.strip_prefix('/'));
    let name = end.or_else(start).unwrap_or(name);
    name.replace(|c: char| !c.is_alphanumeric(), "_")
}

/// What a histogram counts.
#[derive(Clone, Debug)]
pub struct HistogramOptions {
    /// Expression along each axis, at least one.
    pub axes: Vec<String>,
    /// Number of bins along each axis; the last is used for further axes.
    pub bins: Vec<usize>,
    /// Limits along each axis. `None`: those of the finite values in all frames.
    pub ranges: Vec<Option<(f64, f64)>>,
    /// Expression whose values are summed. `None`: the variable `weight` if there is one, otherwise 1.
    pub weight: Option<String>,
    /// Expression that is not 0 for particles that count.
    pub filter: Option<String>,
    /// The frames.
    pub frames: Vec<u64>,
}

/// Sums of weights in bins.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The bins along each axis.
    pub bins: Vec<Bins>,
    /// For each frame, the sums in C order: the last axis fastest. Frames without particles have zeros.
    pub values: Vec<Vec<f64>>,
}

/// Counts the particles of a species. Values are read in blocks; memory does not depend on their number.
pub fn histogram(species: &Species, options: &HistogramOptions) -> Result<Histogram> {
    let HistogramOptions { axes, bins: counts, frames, .. } = options;
    if axes.is_empty() || frames.is_empty() {
        return Err(Error::argument("a histogram needs at least one expression and one frame"));
    }
    let mut bins = Vec::with_capacity(axes.len());
    for (k, text) in axes.iter().enumerate() {
        let count = counts.get(k).or(counts.last()).copied().unwrap_or(100);
        let (low, high) = match options.ranges.get(k).copied().flatten() {
            Some(range) => range,
            None => range(species, text, frames)?,
        };
        bins.push(Bins::new(low, high, count)?);
    }
    let own = species.variable(WEIGHT).map(|_| WEIGHT.to_string());
    let weight = options.weight.clone().or(own);
    for text in weight.iter().chain(&options.filter) {
        // Positions in messages are those of the expression as it was given.
        Expression::parse(text, &species.variables())?;
    }
    let weight = match (weight, &options.filter) {
        (Some(weight), Some(filter)) => Some(format!("({weight}) * (({filter}) != 0)")),
        (None, Some(filter)) => Some(format!("({filter}) != 0")),
        (weight, None) => weight,
    };
    let cells = bins.iter().try_fold(1_u64, |n, bins| n.checked_mul(bins.count as u64));
    let all = cells.and_then(|n| n.checked_mul(8 * (frames.len() as u64 + 1)));
    let limits = species.dataset.limits();
    let size = limits.allow(all.unwrap_or(u64::MAX), "the histogram")? / (8 * (frames.len() + 1));
    let mut values = Vec::with_capacity(frames.len());
    for frame in frames {
        let arrays =
            axes.iter().map(|text| species.values(text, *frame)).collect::<Result<Vec<_>>>()?;
        let arrays: Option<Vec<Array>> = arrays.into_iter().collect();
        let weight = weight.as_deref().map(|text| species.values(text, *frame)).transpose()?;
        let (Some(arrays), false) = (arrays, matches!(weight, Some(None))) else {
            values.push(vec![0.0; size]);
            continue;
        };
        // The first axis of the reduction is fastest.
        let selected = arrays.iter().map(Array::all).collect::<Result<Vec<_>>>()?;
        let pairs: Vec<_> =
            selected.iter().zip(&bins).map(|(all, bins)| (all, *bins)).rev().collect();
        let weight = weight.flatten();
        let weight = weight.as_ref().map(Array::all).transpose()?;
        let found = reduce::histogram(&pairs, weight.as_ref());
        values.push(found.map_err(|e| e.in_frame(*frame))?);
    }
    Ok(Histogram { bins, values })
}

/// The range of the finite values of an expression in all `frames`.
fn range(species: &Species, expression: &str, frames: &[u64]) -> Result<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for frame in frames {
        let Some(array) = species.values(expression, *frame)? else { continue };
        let stats = reduce::statistics(&array.all()?)?;
        if stats.finite > 0 {
            (low, high) = (low.min(stats.min), high.max(stats.max));
        }
    }
    Ok(match () {
        () if low < high => (low, high),
        // All values are equal.
        () if low == high => {
            let half = if low == 0.0 { 0.5 } else { low.abs() * 0.5 };
            (low - half, high + half)
        }
        () => (0.0, 1.0),
    })
}
