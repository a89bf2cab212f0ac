//! Following a file that grows: what a new frame contains.

use serde::Serialize;
use spile_core::reduce::statistics;
use spile_core::{Axes, Dataset, Error, FrameAxis, Result, Selection, Slice};

use crate::info::Moment;
use crate::json::Real;

/// Key figures of a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// Its number, from 0.
    pub frame: u64,
    /// Its step and time.
    #[serde(flatten)]
    pub moment: Moment,
    /// Number of arrays in it.
    pub arrays: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// Elements that an array without frames has gained along one dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Path of the array.
    pub array: String,
    /// Number of the dimension, from 0.
    pub dimension: usize,
    /// Its length before.
    pub from: u64,
    /// Its length now.
    pub to: u64,
    /// Minimum of the finite new values; absent for other types than real numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Real>,
    /// Maximum of the finite new values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Real>,
    /// Mean of the finite new values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Real>,
}

/// What the arrays of `new` have more than those of `old`, which is the same file at an earlier time. Reads the new
/// elements. Arrays that differ in other ways are left out.
pub fn growth(old: &Dataset, new: &Dataset) -> Result<Vec<Growth>> {
    let mut all = Vec::new();
    for (id, node, desc) in new.arrays() {
        let before = old.tree().at(&node.path).and_then(|id| old.tree().array(id));
        let Some(before) = before else { continue };
        let (a, b) = (before.shape.lengths(), desc.shape.lengths());
        let longer: Vec<usize> = (0..b.len()).filter(|k| a.get(*k) != b.get(*k)).collect();
        let &[dimension] = &longer[..] else { continue };
        let (from, to) = (a.get(dimension).copied().unwrap_or(0), b[dimension]);
        if a.len() != b.len() || to <= from {
            continue;
        }
        let mut part = vec![Slice::ALL; b.len()];
        part[dimension] = Slice::range(from, to);
        let array = new.array_at(id)?;
        let stats = if array.dtype().is_real() {
            Some(statistics(&array.select(&Selection(part), Axes::Stored)?)?)
        } else {
            None
        };
        let [min, max, mean] = match stats {
            Some(stats) => [stats.min, stats.max, stats.mean].map(|value| Some(Real(value))),
            None => [None; 3],
        };
        all.push(Growth { array: node.path.clone(), dimension, from, to, min, max, mean });
    }
    Ok(all)
}

/// Current number of frames; an error for a dataset without a frame axis.
pub fn frames(dataset: &Dataset) -> Result<u64> {
    Ok(axis(dataset)?.len())
}

/// Key figures of a frame. Reads no array.
pub fn watch(dataset: &Dataset, frame: u64) -> Result<Frame> {
    let moment = Moment::of(axis(dataset)?, frame)?;
    let (mut arrays, mut bytes) = (0, 0_u64);
    let tree = dataset.tree();
    for (_, _, desc) in tree.arrays() {
        let Some(table) = tree.resolve(desc)?.layout.frames() else { continue };
        let cell = if frame < table.len() { table.cell(frame)? } else { None };
        if let Some(cell) = cell {
            arrays += 1;
            bytes = bytes.saturating_add(cell.shape.bytes(desc.dtype.size())?);
        }
    }
    Ok(Frame { frame, moment, arrays, bytes })
}

fn axis(dataset: &Dataset) -> Result<&dyn FrameAxis> {
    dataset.tree().frames().map(|axis| &**axis).ok_or_else(|| {
        Error::argument("the dataset has no frames to watch")
            .hint("trajectories and folders with the dumps of a run have frames")
    })
}
