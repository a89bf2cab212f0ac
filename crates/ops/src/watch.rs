//! What came with a frame, for whoever follows a file that grows.

use serde::Serialize;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::frames::FrameAxis;
use spile_core::layout::Layout;

use crate::info::Moment;

/// A frame in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// Its number, from 0.
    pub frame: u64,
    /// Where it is on the axis.
    #[serde(flatten)]
    pub moment: Moment,
    /// Arrays that are in it.
    pub arrays: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// How many frames there are by now. An error for what never has any.
pub fn frames(reader: &dyn Reader) -> Result<u64> {
    Ok(axis(reader)?.len())
}

/// Looks at a frame. Reads no array.
pub fn watch(reader: &dyn Reader, frame: u64) -> Result<Frame> {
    let moment = Moment::of(axis(reader)?, frame)?;
    let (mut arrays, mut bytes) = (0, 0_u64);
    let tree = reader.tree();
    for (_, _, desc) in tree.arrays() {
        let Layout::PerFrame(table) = &tree.resolve(desc)?.layout else { continue };
        let cell = if frame < table.len() { table.cell(frame)? } else { None };
        if let Some(cell) = cell {
            arrays += 1;
            bytes = bytes.saturating_add(cell.shape.bytes(desc.dtype.size())?);
        }
    }
    Ok(Frame { frame, moment, arrays, bytes })
}

fn axis(reader: &dyn Reader) -> Result<&dyn FrameAxis> {
    reader.tree().frames().map(|axis| &**axis).ok_or_else(|| {
        Error::argument("this has no frames that others could follow")
            .hint("`watch` is for trajectories, and for folders with the dumps of a run")
    })
}
