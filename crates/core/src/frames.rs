//! The step or time axis. It is an axis, never a level of the tree: an array keeps its path and
//! has one shape and layout a frame.

use crate::error::Result;
use crate::layout::Layout;
use crate::shape::Shape;

/// An array in one frame.
#[derive(Clone, Debug)]
pub struct FrameCell {
    /// Its shape there.
    pub shape: Shape,
    /// Its bytes there; never [`Layout::PerFrame`] again.
    pub layout: Layout,
}

/// An array's frames, looked up one at a time so that memory does not grow with their number.
pub trait FrameTable: Send + Sync {
    /// Number of frames in the file.
    fn len(&self) -> u64;

    /// No frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array in `frame`, or nothing if the frame does not have it.
    fn cell(&self, frame: u64) -> Result<Option<FrameCell>>;
}

/// The axis itself.
pub trait FrameAxis: Send + Sync {
    /// Number of frames.
    fn len(&self) -> u64;

    /// No frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The simulation step of a frame, where the format tells.
    fn step(&self, frame: u64) -> Result<Option<u64>>;

    /// The simulation time of a frame, where the format tells.
    fn time(&self, frame: u64) -> Result<Option<f64>>;
}

/// An axis of steps and times that are in memory.
#[derive(Clone, Debug, Default)]
pub struct Moments(pub Vec<(Option<u64>, Option<f64>)>);

impl FrameAxis for Moments {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        Ok(self.0.get(frame as usize).and_then(|moment| moment.0))
    }

    fn time(&self, frame: u64) -> Result<Option<f64>> {
        Ok(self.0.get(frame as usize).and_then(|moment| moment.1))
    }
}

/// A table of frames that is in memory.
#[derive(Clone, Debug, Default)]
pub struct Cells(pub Vec<Option<FrameCell>>);

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        Ok(self.0.get(frame as usize).cloned().flatten())
    }
}
