//! Following a file that grows: what a new frame contains.

use serde::Serialize;
use spile_core::{Dataset, Error, FrameAxis, Result};

use crate::info::Moment;

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
