//! Statistics of arrays, over physical values.

use serde::Serialize;
use spile_core::read::Selected;
use spile_core::reduce::{self, Bins, ExactRange, Stats};
use spile_core::{Array, ArrayDesc, Dataset, Error, FrameTable, Kind, Node, Result};

use crate::json::Real;
use crate::pick::Pick;

/// Statistics of an array.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its path.
    pub path: String,
    /// The format's own name, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The frame, where the array has frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u64>,
    /// Number of frames, where the row is for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Element type as stored.
    pub dtype: String,
    /// Lengths; in the first frame that has the array, where the row is for several.
    pub shape: Vec<u64>,
    /// Number of elements.
    pub count: u64,
    /// The statistics; absent unless elements are real numbers or booleans.
    #[serde(flatten)]
    pub numbers: Option<Numbers>,
    /// Statistics of each index of the last dimension, where requested and it has few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Numbers>,
    /// Histogram of the finite values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

impl Row {
    /// A row without statistics.
    fn new(node: &Node, array: &Array) -> Self {
        Self {
            path: node.path.clone(),
            id: node.id.clone(),
            frame: None,
            frames: None,
            dtype: array.dtype().to_string(),
            shape: array.shape().lengths().to_vec(),
            count: array.shape().count().unwrap_or(0),
            numbers: None,
            components: Vec::new(),
            histogram: None,
        }
    }
}

/// Counts of finite values in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// Lower edges of the bins, and the upper edge of the last.
    pub edges: Vec<Real>,
    /// Number of values in each bin.
    pub counts: Vec<u64>,
}

/// Additional statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct More {
    /// Statistics of each component.
    pub components: bool,
    /// A histogram with this number of bins.
    pub bins: Option<usize>,
}

/// Largest number of bins.
const MOST_BINS: usize = 1 << 20;

/// Statistics of values. Undefined ones are absent (`null`): there are no finite values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// Number of finite values; the statistics below are those of these values.
    pub finite: u64,
    /// Number of NaN and missing values.
    pub nan: u64,
    /// Number of positive infinities.
    pub positive_infinity: u64,
    /// Number of negative infinities.
    pub negative_infinity: u64,
    /// Minimum.
    pub min: Option<Real>,
    /// Maximum.
    pub max: Option<Real>,
    /// Mean.
    pub mean: Option<Real>,
    /// Standard deviation of a sample (n - 1).
    pub std: Option<Real>,
    /// Exact statistics of stored integers, for arrays without missing values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<ExactRange>,
}

/// Calls `each` with a row for every selected array. An array with frames has one row for all frames, or
/// one per frame where frames, components or a histogram are requested.
pub fn stat(
    dataset: &Dataset,
    pick: &Pick,
    more: More,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    if more.bins.is_some_and(|bins| bins == 0 || bins > MOST_BINS) {
        return Err(Error::argument(format!("a histogram has 1 to {MOST_BINS} bins")));
    }
    let tree = dataset.tree();
    for (node, own) in pick.arrays(tree)? {
        let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
        if let Some(table) = tree.resolve(own).map_err(place)?.layout.frames() {
            if !pick.has_frames() && !more.components && more.bins.is_none() {
                if let Some(row) = total(dataset, node, own, &**table).map_err(place)? {
                    each(row)?;
                }
                continue;
            }
            for frame in pick.frames_of(&[&**table])? {
                let frame = frame.map_err(place)?;
                let cell = dataset.open_array_in_frame(own, frame);
                if let Some(array) = cell.map_err(|e| place(e).in_frame(frame))? {
                    let row = row(node, Some(frame), &array, more);
                    each(row.map_err(|e| place(e).in_frame(frame))?)?;
                }
            }
        } else {
            let array = dataset.open_array(own).map_err(place)?;
            each(row(node, None, &array, more).map_err(place)?)?;
        }
    }
    Ok(())
}

/// One row for all frames of an array; none if no frame has it.
fn total(
    dataset: &Dataset,
    node: &Node,
    own: &ArrayDesc,
    table: &dyn FrameTable,
) -> Result<Option<Row>> {
    let (mut found, mut all): (Option<Row>, Option<Stats>) = (None, None);
    let mut from = 0;
    while let Some(frame) = table.next(from)? {
        from = frame.saturating_add(1);
        let array = dataset.open_array_in_frame(own, frame).map_err(|e| e.in_frame(frame))?;
        let Some(array) = array else { continue };
        let selected = array.unlimited()?;
        if is_countable(&array) {
            let stats = reduce::statistics(&selected).map_err(|e| e.in_frame(frame))?;
            all = Some(all.map_or(stats, |all| all.merge(stats)));
        }
        let row = found.get_or_insert_with(|| Row {
            frames: Some(0),
            count: 0,
            ..Row::new(node, &array)
        });
        row.count += selected.count();
        row.frames = row.frames.map(|n| n + 1);
    }
    Ok(found.map(|row| Row { numbers: all.as_ref().map(numbers), ..row }))
}

/// Whether the elements are real numbers or booleans.
fn is_countable(array: &Array) -> bool {
    array.dtype().is_real() || array.dtype().kind() == Kind::Bool
}

fn row(node: &Node, frame: Option<u64>, array: &Array, more: More) -> Result<Row> {
    let selected = array.unlimited()?;
    let (stats, components) = match (is_countable(array), more.components) {
        (false, _) => (None, Vec::new()),
        (true, false) => (Some(reduce::statistics(&selected)?), Vec::new()),
        (true, true) => {
            let (whole, parts) = reduce::components(array)?;
            (Some(whole), parts)
        }
    };
    let histogram = match (&stats, more.bins) {
        (Some(stats), Some(bins)) if array.dtype().is_real() => histogram(&selected, stats, bins)?,
        _ => None,
    };
    let (numbers, components) =
        (stats.as_ref().map(numbers), components.iter().map(numbers).collect());
    Ok(Row { frame, numbers, components, histogram, ..Row::new(node, array) })
}

/// The histogram of the finite values; none if there are none.
fn histogram(selected: &Selected<'_>, stats: &Stats, bins: usize) -> Result<Option<Histogram>> {
    if stats.finite == 0 {
        return Ok(None);
    }
    let (mut low, mut high) = (stats.min, stats.max);
    if low >= high {
        // A single value is put in the middle of the range.
        let room = (low.abs() * 0.5).max(0.5);
        (low, high) = ((low - room).max(f64::MIN), (high + room).min(f64::MAX));
    }
    let bins = Bins::new(low, high, bins)?;
    let counts = reduce::histogram(&[(selected, bins)], None)?;
    Ok(Some(Histogram {
        edges: (0..=bins.count).map(|k| Real(bins.edge(k))).collect(),
        counts: counts.iter().map(|n| *n as u64).collect(),
    }))
}

fn numbers(stats: &Stats) -> Numbers {
    let defined = |v: f64| (!v.is_nan()).then_some(Real(v));
    Numbers {
        finite: stats.finite,
        nan: stats.nan,
        positive_infinity: stats.positive_infinity,
        negative_infinity: stats.negative_infinity,
        min: defined(stats.min),
        max: defined(stats.max),
        mean: defined(stats.mean),
        std: defined(stats.std),
        stored: stats.exact,
    }
}
