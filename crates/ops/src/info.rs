//! Summary of a file. Reads no array values.

use serde::Serialize;
use spile_core::{Dataset, Finding, FrameAxis, Result};

use crate::json::{Pairs, Real};

/// Summary of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// Short name of the format.
    pub format: &'static str,
    /// Full name of the format.
    pub title: &'static str,
    /// Length of the file.
    pub bytes: u64,
    /// Number of groups, without the root.
    pub groups: u64,
    /// Number of arrays.
    pub arrays: u64,
    /// The step or time axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// Key facts in the terms of the format.
    pub summary: Pairs,
    /// Warnings collected while opening.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// The step or time axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frames {
    /// Number of frames.
    pub count: u64,
    /// The first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Moment>,
    /// The last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Moment>,
}

/// A point of the step or time axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// The simulation step, where the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The simulation time, where the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Real>,
}

impl Moment {
    /// Step and time of a frame.
    pub fn of(axis: &dyn FrameAxis, frame: u64) -> Result<Self> {
        Ok(Self { step: axis.step(frame)?, time: axis.time(frame)?.map(Real) })
    }
}

/// The summary of an open file.
pub fn info(dataset: &Dataset) -> Result<Info> {
    let tree = dataset.tree();
    let arrays = tree.arrays().count() as u64;
    let frames = match tree.frames() {
        None => None,
        Some(axis) => {
            let count = axis.len();
            let (first, last) = match count {
                0 => (None, None),
                n => (Some(Moment::of(&**axis, 0)?), Some(Moment::of(&**axis, n - 1)?)),
            };
            Some(Frames { count, first, last })
        }
    };
    Ok(Info {
        format: dataset.format().map_or("", |format| format.name),
        title: dataset.format().map_or("", |format| format.title),
        bytes: dataset.source().len(),
        groups: tree.len() as u64 - arrays,
        arrays,
        frames,
        summary: Pairs(dataset.summary().clone()),
        findings: dataset.warnings().to_vec(),
    })
}
