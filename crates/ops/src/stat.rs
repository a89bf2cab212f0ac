//! Statistics of arrays, over meant (mapped) values.

use serde::Serialize;
use spile_core::dtype::Kind;
use spile_core::error::Result;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::reduce::{self, Stats};
use spile_core::tree::Node;

use crate::json::Real;
use crate::pick::Pick;

/// An array in numbers.
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
    /// Element type as stored.
    pub dtype: String,
    /// Lengths.
    pub shape: Vec<u64>,
    /// Number of elements.
    pub count: u64,
    /// The numbers; absent where elements are neither real numbers nor true or false.
    #[serde(flatten)]
    pub numbers: Option<Numbers>,
}

/// What is absent (`null`) is undefined: there are no finite values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// How many are finite; all that follows is about these.
    pub finite: u64,
    /// How many are not a number.
    pub nan: u64,
    /// How many are positive infinity.
    pub positive_infinity: u64,
    /// How many are negative infinity.
    pub negative_infinity: u64,
    /// Smallest.
    pub min: Option<Real>,
    /// Largest.
    pub max: Option<Real>,
    /// Mean.
    pub mean: Option<Real>,
    /// Standard deviation of a sample (n - 1).
    pub std: Option<Real>,
    /// Stored integers, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Exact>,
}

/// Stored integers, before any linear map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exact {
    /// Smallest.
    pub min: i128,
    /// Largest.
    pub max: i128,
    /// Sum of all.
    pub sum: i128,
}

/// Hands out a row for every wanted array, and for every wanted frame of those that have frames.
pub fn stat(
    reader: &dyn Reader,
    pick: &Pick,
    limits: &Limits,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let (source, tree) = (reader.source(), reader.tree());
    for (node, own) in pick.arrays(tree)? {
        let place = |e: spile_core::error::Error| e.in_object(format!("\"{}\"", node.path));
        if let Layout::PerFrame(table) = &tree.resolve(own).map_err(place)?.layout {
            for frame in pick.frames(table.len())? {
                let cell = Array::open_frame(source, tree, own, frame, limits);
                if let Some(array) = cell.map_err(|e| place(e).in_frame(frame))? {
                    let row = row(node, Some(frame), &array);
                    each(row.map_err(|e| place(e).in_frame(frame))?)?;
                }
            }
        } else {
            let array = open(reader, own, limits).map_err(place)?;
            each(row(node, None, &array).map_err(place)?)?;
        }
    }
    Ok(())
}

fn open(reader: &dyn Reader, desc: &ArrayDesc, limits: &Limits) -> Result<Array> {
    Array::open(reader.source(), reader.tree(), desc, limits)
}

fn row(node: &Node, frame: Option<u64>, array: &Array) -> Result<Row> {
    let selected = array.all()?;
    let countable = array.dtype().is_real() || array.dtype().kind() == Kind::Bool;
    let stats = if countable { Some(reduce::statistics(&selected)?) } else { None };
    Ok(Row {
        path: node.path.clone(),
        id: node.id.clone(),
        frame,
        dtype: array.dtype().to_string(),
        shape: array.shape().lengths().to_vec(),
        count: selected.count(),
        numbers: stats.as_ref().map(numbers),
    })
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
        stored: stats.exact.as_ref().map(|e| Exact { min: e.min, max: e.max, sum: e.sum }),
    }
}
