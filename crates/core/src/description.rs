//! What a tree says besides its values, as JSON, for formats that cannot say it themselves.
//!
//! A writer that lays out a tree as [flat](crate::flat) arrays puts this text beside them; whoever
//! reads the file with spile gets the same tree back ([`Description::dress`]), everyone else sees
//! plain arrays. What the text says counts only where it fits the arrays that are there.

pub mod json;

mod dress;
mod lay;
mod reader;
mod stacked;

pub use lay::{Holds, lay};
pub use reader::dressed;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{ArrayDesc, Coord, Layout, Linear};
use crate::limits::Limits;
use crate::shape::{Order, Shape};
use crate::tree::{Attrs, NodeId, Tree};
use crate::wire::ByteOrder;
use json::Real;

/// The version of the text.
const VERSION: u64 = 1;

/// Where the points of a dimension are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Points {
    /// Evenly spaced.
    Uniform {
        /// The first.
        start: Real,
        /// The distance.
        step: Real,
    },
    /// In the array of that path.
    Field(String),
}

/// From stored to meant values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    intercept: Real,
    slope: Real,
}

impl From<Linear> for Map {
    fn from(map: Linear) -> Self {
        Self { intercept: Real(map.intercept), slope: Real(map.slope) }
    }
}

impl From<&Map> for Linear {
    fn from(map: &Map) -> Self {
        Self::new(map.intercept.0, map.slope.0)
    }
}

/// Where the points of an array's dimensions are; nothing, if nothing is known of any.
pub fn points(tree: &Tree, coords: &[Coord]) -> Vec<Option<Points>> {
    if coords.iter().all(|coord| *coord == Coord::None) {
        return Vec::new();
    }
    let points = |coord: &Coord| match coord {
        Coord::None => None,
        Coord::Uniform { start, step } => {
            Some(Points::Uniform { start: Real(*start), step: Real(*step) })
        }
        Coord::Node(id) => Some(Points::Field(tree.node(*id).path.clone())),
    };
    coords.iter().map(points).collect()
}

/// The other way, for `rank` dimensions, with arrays found by `find`.
pub fn coords(
    points: &[Option<Points>],
    rank: usize,
    find: impl Fn(&str) -> Option<NodeId>,
) -> Vec<Coord> {
    let coord = |points: Option<&Points>| match points {
        Some(Points::Uniform { start, step }) => Coord::Uniform { start: start.0, step: step.0 },
        Some(Points::Field(name)) => find(name).map_or(Coord::None, Coord::Node),
        None => Coord::None,
    };
    (0..rank).map(|k| coord(points.get(k).and_then(Option::as_ref))).collect()
}

/// All that is said about a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    spile: u64,
    /// About the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json::attrs")]
    attrs: Attrs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frames: Option<Frames>,
    /// Arrays of the file that are in no tree: they were made for other readers, or say how others
    /// are to be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<String>,
    nodes: Vec<Said>,
}

/// The step or time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Frames {
    pub(crate) count: u64,
    /// The file has frames itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own: bool,
    /// The array of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) steps: Option<String>,
    /// The array of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<String>,
}

/// What is said about a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Said {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<SaidArray>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "json::attrs")]
    attrs: Attrs,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SaidArray {
    #[serde(with = "json::dtype")]
    dtype: DType,
    dims: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    coords: Vec<Option<Points>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<Map>,
    /// Where it is in the file, if not under its own path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(default, skip_serializing_if = "Held::is_whole")]
    held: Held,
    /// The file has the same bytes under another type or shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cast: Option<Cast>,
}

/// The shape of the array, or of a frame of it, and the order of its elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cast {
    pub(crate) shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fortran_order: bool,
    /// The bytes are in this order, where the file has them as single ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) big_endian: bool,
}

impl Cast {
    pub(crate) fn new(shape: &Shape, order: Order) -> Self {
        let fortran_order = order == Order::F && shape.rank() > 1;
        Self { shape: shape.lengths().to_vec(), fortran_order, big_endian: false }
    }

    pub(crate) fn order(&self) -> Order {
        if self.fortran_order { Order::F } else { Order::C }
    }
}

/// How the file holds an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Held {
    /// As it is, without frames.
    #[default]
    Whole,
    /// In the file's own frames.
    Own,
    /// One after the other along a first dimension, which is that of the frames.
    Frames,
    /// One after the other along their first dimension; that array has the length in each frame, -1
    /// where there is none.
    Rows(String),
    /// As bytes; that array has the length of each element.
    Sizes(String),
    /// Not at all: it is the same as that array.
    Same(String),
}

impl Held {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

impl Description {
    /// What `tree` says.
    pub fn of(tree: &Tree) -> Self {
        let said = |array: &ArrayDesc| SaidArray {
            dtype: array.dtype.with_order(ByteOrder::Little),
            dims: array.dims.clone(),
            coords: points(tree, &array.coords),
            map: array.map.map(Map::from),
            at: None,
            held: match array.layout {
                Layout::PerFrame(_) => Held::Own,
                _ => Held::Whole,
            },
            cast: None,
        };
        let nodes = tree.iter().map(|(_, node)| Said {
            path: node.path.clone(),
            id: node.id.clone(),
            array: node.array.as_ref().map(said),
            attrs: node.attrs.clone(),
        });
        let (attrs, nodes) = (tree.attrs().clone(), nodes.collect());
        let own = |count| Frames { count, own: true, steps: None, times: None };
        let frames = tree.frames().map(|axis| own(axis.len()));
        Self { spile: VERSION, attrs, frames, nodes, made: Vec::new() }
    }

    /// The array that is the `k`th node after the root is held like this.
    pub(crate) fn hold(&mut self, k: usize, held: Held) {
        if let Some(array) = self.nodes.get_mut(k).and_then(|said| said.array.as_mut()) {
            array.held = held;
        }
    }

    /// Another array of the file belongs to no tree: points of a dimension for other readers.
    pub fn made(&mut self, path: impl Into<String>) {
        self.made.push(path.into());
    }

    /// The file has arrays under other names, because it allows fewer: old and new paths.
    pub fn moved(&mut self, names: &HashMap<String, String>) {
        let rename = |path: &mut String| {
            if let Some(new) = names.get(path) {
                path.clone_from(new);
            }
        };
        self.made.iter_mut().for_each(rename);
        if let Some(frames) = &mut self.frames {
            frames.steps.iter_mut().chain(&mut frames.times).for_each(rename);
        }
        for said in &mut self.nodes {
            let Some(array) = &mut said.array else { continue };
            if let Held::Rows(path) | Held::Sizes(path) = &mut array.held {
                rename(path);
            }
            if let Some(at) = names.get(&said.path) {
                array.at = Some(at.clone());
            }
        }
    }

    /// The arrays of these paths are held as something else.
    pub(crate) fn cast(&mut self, mut casts: HashMap<String, Cast>) {
        for said in &mut self.nodes {
            if let Some(array) = &mut said.array {
                array.cast = casts.remove(&said.path);
            }
        }
    }

    /// The paths of all arrays that the file has somewhere else, and where.
    pub fn moves(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.iter().filter_map(|said| {
            let at = said.array.as_ref()?.at.as_deref()?;
            Some((said.path.as_str(), at))
        })
    }

    /// The number of dimensions of the array that the file has at this path.
    pub fn rank_at(&self, path: &str) -> Option<usize> {
        let at = |said: &&Said| {
            let array = said.array.as_ref();
            array.is_some_and(|array| array.at.as_deref().unwrap_or(&said.path) == path)
        };
        self.nodes.iter().find(at)?.array.as_ref().map(|array| array.dims.len())
    }

    /// The text. It is sure to be read: it was.
    pub fn text(&self, limits: &Limits) -> Result<String> {
        let cannot = |why: &dyn std::fmt::Display| {
            Error::unsupported("core-description", format!("cannot be described: {why}"))
        };
        let text = serde_json::to_string(self).map_err(|e| cannot(&e))?;
        Self::parse(text.as_bytes(), limits).map_err(|e| cannot(&e.message()))?;
        Ok(text)
    }

    /// Reads the text.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self> {
        // Lists of numbers take much more memory than their text.
        limits.allow((text.len() as u64).saturating_mul(40), "a description")?;
        let parsed: Self = serde_json::from_slice(text)
            .map_err(|e| Error::malformed("core-description", format!("no description: {e}")))?;
        if parsed.spile != VERSION {
            let message = format!("descriptions of version {} are not known", parsed.spile);
            return Err(Error::unsupported("core-description", message));
        }
        Ok(parsed)
    }
}
