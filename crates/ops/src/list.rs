//! The objects of a file.

use serde::Serialize;
use spile_core::{ArrayDesc, Coord, Linear, Node, Result, Tree};

use crate::json::{Pairs, Real};
use crate::pick::Pick;

/// A group or an array.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The path.
    pub path: String,
    /// The format's own name, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `group` or `array`.
    pub kind: &'static str,
    /// Everything else about an array.
    #[serde(flatten)]
    pub array: Option<ArrayRow>,
    /// Its attributes.
    pub attrs: Pairs,
}

/// An array without its values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayRow {
    /// Element type as stored.
    pub dtype: String,
    /// Lengths; in the first frame that has the array, where it has frames.
    pub shape: Vec<u64>,
    /// Names of the dimensions.
    pub dims: Vec<String>,
    /// Coordinate of each dimension.
    pub coords: Vec<CoordRow>,
    /// Decoded size in bytes; of one frame, where it has frames.
    pub bytes: u64,
    /// Linear scaling: value = intercept + slope * stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<MapRow>,
    /// Number of frames, where the array has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
}

/// The coordinate of a dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CoordRow {
    /// No coordinate: `null`.
    None,
    /// `start + k * step`.
    Uniform {
        /// The first point.
        start: Real,
        /// The step.
        step: Real,
    },
    /// The values of another array.
    Array {
        /// Its path.
        path: String,
    },
}

/// `intercept + slope * stored`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MapRow {
    /// Added last.
    pub intercept: Real,
    /// Multiplied first.
    pub slope: Real,
}

impl From<Linear> for MapRow {
    fn from(map: Linear) -> Self {
        let (intercept, slope) = map.coefficients();
        Self { intercept: Real(intercept), slope: Real(slope) }
    }
}

/// The selected objects down to `depth` levels, parents before their children.
pub fn list(tree: &Tree, pick: &Pick, depth: Option<usize>) -> Result<Vec<Row>> {
    let level = |node: &Node| node.path.matches('/').count() + 1;
    pick.nodes(tree)?
        .into_iter()
        .filter(|(_, node)| depth.is_none_or(|d| level(node) <= d))
        .map(|(_, node)| row(tree, node))
        .collect()
}

fn row(tree: &Tree, node: &Node) -> Result<Row> {
    let array = node.array.as_ref().map(|a| array_row(tree, a)).transpose()?;
    Ok(Row {
        path: node.path.clone(),
        id: node.id.clone(),
        kind: if array.is_some() { "array" } else { "group" },
        array,
        attrs: Pairs(node.attrs.clone()),
    })
}

fn array_row(tree: &Tree, own: &ArrayDesc) -> Result<ArrayRow> {
    let desc = tree.resolve(own)?;
    Ok(ArrayRow {
        dtype: desc.dtype.to_string(),
        shape: desc.shape.lengths().to_vec(),
        dims: own.dims.clone(),
        coords: own.coords.iter().map(|c| coord(tree, c)).collect(),
        bytes: desc.bytes()?,
        map: desc.map.map(MapRow::from),
        frames: desc.layout.frames().map(|table| table.len()),
    })
}

fn coord(tree: &Tree, coord: &Coord) -> CoordRow {
    match coord {
        Coord::None => CoordRow::None,
        Coord::Uniform { start, step } => {
            CoordRow::Uniform { start: Real(*start), step: Real(*step) }
        }
        Coord::Node(id) => CoordRow::Array { path: tree.node(*id).path.clone() },
    }
}
