//! The frame axis (steps, times). Frames are an axis, not a level of the tree: an array has one path,
//! and a shape and layout per frame.

use std::sync::Arc;

use crate::{Dataset, Layout, Result, Shape};

/// An array in one frame.
#[derive(Clone, Debug)]
pub struct FrameCell {
    /// Shape in this frame.
    pub shape: Shape,
    /// Layout in this frame; never [`Layout::PerFrame`].
    pub layout: Layout,
}

/// The frames of an array, looked up one at a time so that memory does not grow with their number.
pub trait FrameTable: Send + Sync {
    /// Number of frames in the file.
    fn len(&self) -> u64;

    /// Whether there are no frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shape and layout in `frame`; `None` if the frame does not contain the array.
    fn cell(&self, frame: u64) -> Result<Option<FrameCell>>;

    /// The first frame from `frame` on that may contain the array; `None` if no further one does. Frames that it
    /// skips cost nothing, so a loop over a sparse table takes as long as the file is large.
    fn next(&self, frame: u64) -> Result<Option<u64>> {
        Ok((frame < self.len()).then_some(frame))
    }

    /// Shape and layout of the values that apply in `frame`: those of the frame, or those that the format
    /// defines for a frame without the array, for example the values of the first frame.
    fn effective_cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.cell(frame)
    }

    /// The first frame from `frame` on that may have values according to [`FrameTable::effective_cell`]; `None` if
    /// no further one has.
    fn effective_next(&self, frame: u64) -> Result<Option<u64>> {
        Ok((frame < self.len()).then_some(frame))
    }

    /// Whether [`FrameTable::cell`] returns values for `frame` that are not stored in it: those of
    /// [`Dataset::effective`](crate::Dataset::effective).
    fn is_inherited(&self, _frame: u64) -> Result<bool> {
        Ok(false)
    }

    /// Path of the array that the values are computed from; `None` if they are stored.
    fn computed_from(&self) -> Option<&str> {
        None
    }
}

/// Frames of another table with the values that apply in them, stored or not.
struct EffectiveFrames(Arc<dyn FrameTable>);

impl FrameTable for EffectiveFrames {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.0.effective_cell(frame)
    }

    fn next(&self, frame: u64) -> Result<Option<u64>> {
        self.0.effective_next(frame)
    }

    fn is_inherited(&self, frame: u64) -> Result<bool> {
        Ok(self.0.cell(frame)?.is_none() && self.0.effective_cell(frame)?.is_some())
    }
}

/// Frames of another table of which some are not stored.
pub(crate) struct PartlyInherited {
    pub(crate) table: Arc<dyn FrameTable>,
    /// First frame, and the one after the last, of each range of inherited frames, in order.
    pub(crate) inherited: Vec<(u64, u64)>,
}

impl FrameTable for PartlyInherited {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let after = self.inherited.partition_point(|(first, _)| *first <= frame);
        let before = after.checked_sub(1).map(|k| self.inherited[k]);
        if before.is_some_and(|(_, end)| frame < end) { Ok(None) } else { self.table.cell(frame) }
    }

    fn effective_cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.table.cell(frame)
    }
}

impl dyn FrameTable + '_ {
    /// The frames that contain the array, with its cell in each, in ascending order.
    pub fn cells(&self) -> impl Iterator<Item = Result<(u64, FrameCell)>> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let frame = match self.next(from) {
                    Ok(frame) => frame?,
                    Err(error) => {
                        from = u64::MAX;
                        return Some(Err(error));
                    }
                };
                from = frame.saturating_add(1);
                if let Some(cell) = self.cell(frame).transpose() {
                    return Some(cell.map(|cell| (frame, cell)));
                }
            }
        })
    }
}

/// The frames of another table, each changed by a function.
struct ChangedFrames<F> {
    table: Arc<dyn FrameTable>,
    change: F,
}

impl<F> FrameTable for ChangedFrames<F>
where
    F: Fn(FrameCell) -> Result<Option<FrameCell>> + Send + Sync,
{
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.table.cell(frame)?.map_or(Ok(None), &self.change)
    }

    fn next(&self, frame: u64) -> Result<Option<u64>> {
        self.table.next(frame)
    }

    fn effective_cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.table.effective_cell(frame)?.map_or(Ok(None), &self.change)
    }

    fn effective_next(&self, frame: u64) -> Result<Option<u64>> {
        self.table.effective_next(frame)
    }

    fn is_inherited(&self, frame: u64) -> Result<bool> {
        self.table.is_inherited(frame)
    }
}

impl Dataset {
    /// Returns this dataset with the values that apply in every frame: an array that a frame does not contain has those
    /// that the [format defines](FrameTable::effective_cell), for example those of the first frame.
    pub fn effective(&self) -> Self {
        let mut tree = self.tree().clone();
        for (id, _, desc) in self.arrays() {
            if let (Layout::PerFrame(table), Some(array)) = (&desc.layout, tree.array_mut(id)) {
                array.layout = Layout::PerFrame(Arc::new(EffectiveFrames(table.clone())));
            }
        }
        self.with_tree(tree)
    }
}

impl Layout {
    /// The frames of `table`, each changed by `change` when it is looked up.
    pub fn changed_frames(
        table: &Arc<dyn FrameTable>,
        change: impl Fn(FrameCell) -> Result<Option<FrameCell>> + Send + Sync + 'static,
    ) -> Self {
        Self::PerFrame(Arc::new(ChangedFrames { table: table.clone(), change }))
    }
}

/// The frame axis of a dataset.
pub trait FrameAxis: Send + Sync {
    /// Number of frames.
    fn len(&self) -> u64;

    /// Whether there are no frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Simulation step of a frame, if known.
    fn step(&self, frame: u64) -> Result<Option<u64>>;

    /// Simulation time of a frame, if known, in the unit of the format.
    fn time(&self, frame: u64) -> Result<Option<f64>>;
}

/// A frame axis in memory: step and time of each frame.
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

/// A frame table in memory; `None` for frames without the array.
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
