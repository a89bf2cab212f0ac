//! The meshes and species of all frames of a dataset, for one file: grids do not move, points may.

use std::collections::HashSet;

use spile_core::Dataset;
use spile_core::dataset::is_per_frame;
use spile_core::error::{Error, Result};
use spile_core::format::Loss;
use spile_core::tree::NodeId;

use crate::from_tree::{
    AxisCoord, Item, Kind, Outcome, Plan, Snapshot, Target, Values, metadata, report,
    series_metadata, unsupported,
};
use crate::multiblock::{self, Blocks};

/// One frame of a dataset, or a dataset without frames.
pub(super) struct Frame<'a> {
    pub(super) snapshot: Snapshot<'a>,
    pub(super) blocks: Blocks,
}

/// The tuples of an array in the frames of a file.
pub(super) struct Run {
    /// First tuple of each part, then the total. All frames with the same values are one part.
    starts: Vec<u64>,
}

impl Run {
    fn new(counts: &[u64]) -> Self {
        let mut starts = vec![0_u64];
        starts.extend(counts.iter().scan(0_u64, |total, count| {
            *total = total.saturating_add(*count);
            Some(*total)
        }));
        Self { starts }
    }

    pub(super) fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The part of a frame.
    pub(super) fn part(&self, frame: usize) -> usize {
        frame.min(self.parts() - 1)
    }

    /// First tuple of a frame.
    pub(super) fn start(&self, frame: usize) -> u64 {
        self.starts[self.part(frame)]
    }

    /// Number of tuples of a frame.
    pub(super) fn count(&self, frame: usize) -> u64 {
        let part = self.part(frame);
        self.starts[part + 1] - self.starts[part]
    }

    pub(super) fn total(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }
}

/// The blocks of all frames.
pub(super) struct Series<'a> {
    pub(super) content: &'a Dataset,
    /// Number of frames; `None` for a file without time steps.
    pub(super) frames: Option<u64>,
    pub(super) first: Frame<'a>,
    /// The tuples of arrays by block, of which the last is the field data, and number in the plan of the first frame.
    /// `None` for arrays that are not in every frame.
    pub(super) runs: Vec<Vec<Option<Run>>>,
    /// The blocks that are in every frame.
    common: Vec<Key>,
    /// Arrays that are not in every frame.
    partial: HashSet<NodeId>,
    with_images: bool,
}

impl<'a> Frame<'a> {
    /// `partial` arrays are left out.
    fn new(
        content: &'a Dataset,
        frame: Option<u64>,
        partial: &HashSet<NodeId>,
        with_images: bool,
    ) -> Result<Self> {
        let mut snapshot = Snapshot::new(content, frame)?.without(partial);
        (snapshot.with_paths, snapshot.with_images) = (true, with_images);
        let mut blocks = match frame {
            Some(_) => multiblock::plan_some(&snapshot)?,
            None => multiblock::plan(&snapshot)?,
        };
        for (_, plan) in &mut blocks.blocks {
            // Arrays without a path are not in the tree of a reader.
            plan.generated.clear();
            if frame.is_some() {
                // The steps have the times.
                plan.items.retain(|item| !is_time(item));
            }
        }
        blocks.fields.generated.clear();
        if frame.is_some() {
            blocks.fields.items.retain(|item| !is_time(item));
        }
        Ok(Self { snapshot, blocks })
    }

    /// Keeps these blocks, in this order.
    fn keep(&mut self, common: &[Key]) {
        let place = |block: &(String, Plan)| common.iter().position(|own| *own == key(block));
        self.blocks.blocks.retain(|block| place(block).is_some());
        self.blocks.blocks.sort_by_key(place);
    }

    /// The array of this frame with the name of `like`, in the block with this number.
    pub(super) fn item(&self, block: usize, like: &Item) -> Result<&Item> {
        let plan = self.blocks.plans().nth(block);
        let found = plan.and_then(|plan| find(plan, like));
        found.ok_or_else(|| unsupported(format!("\"{}\" is not in every frame", like.name)))
    }
}

/// Name, type and number of points of a block: those of a grid do not change.
type Key = (String, Kind, [u64; 3]);

fn key((name, plan): &(String, Plan)) -> Key {
    (name.clone(), plan.kind, plan.points)
}

/// Whether a file has the array as a time of a mesh.
fn is_time(item: &Item) -> bool {
    item.section == "FieldData" && item.attributes.is_empty() && item.name == "TimeValue"
}

/// The same array in another frame.
fn find<'p>(plan: &'p Plan, like: &Item) -> Option<&'p Item> {
    let key = |item: &Item| (item.section, item.dtype, item.components);
    plan.items.iter().find(|item| key(item) == key(like) && item.name == like.name)
}

/// The arrays of the tree with the values of an array of a file.
fn sources(item: &Item) -> Vec<NodeId> {
    match &item.values {
        Values::Array(id, _) | Values::Lattice(_, id) => vec![*id],
        Values::Points(axes) => axes.iter().map(|(id, _)| *id).collect(),
        Values::Interleaved(ids) => ids.clone(),
        Values::Uniform { .. } | Values::Texts(_) => Vec::new(),
    }
}

impl<'a> Series<'a> {
    /// Plans all frames. Reads no values, but with `with_images` the coordinates of grids, which are images if these
    /// are uniform. Meshes that are not in every frame are left out. Fails if a grid moves.
    pub(super) fn new(content: &'a Dataset, with_images: bool) -> Result<Self> {
        let tree = content.tree();
        let frames = tree.frames().map(|axis| axis.len()).filter(|frames| *frames > 1);
        let partial = partial(content, frames.unwrap_or(1))?;
        let mut first = Frame::new(content, frames.map(|_| 0), &partial, with_images)?;
        let mut common: Vec<Key> = first.blocks.blocks.iter().map(key).collect();
        for number in 1..frames.unwrap_or(1) {
            let frame = Frame::new(content, Some(number), &partial, with_images)?;
            let own: HashSet<Key> = frame.blocks.blocks.iter().map(key).collect();
            common.retain(|block| own.contains(block));
        }
        if common.is_empty() {
            return Err(moving("no mesh is the same in every frame"));
        }
        first.keep(&common);
        let runs = Vec::new();
        let mut series = Self { content, frames, first, runs, common, partial, with_images };
        let items = series.first.blocks.plans().map(|plan| plan.items.len() as u64).sum::<u64>();
        let bytes = frames.unwrap_or(1).saturating_mul(items.saturating_add(8)).saturating_mul(24);
        content.limits().allow(bytes, "the frames of the meshes")?;
        let counts = series.counts()?;
        let moves = |id: &NodeId| tree.array(*id).is_some_and(|desc| is_per_frame(tree, desc));
        for (plan, counts) in series.first.blocks.plans().zip(counts) {
            let is_grid = !matches!(plan.kind, Kind::Unstructured | Kind::Poly);
            let points_move = plan
                .items
                .iter()
                .any(|item| item.section == "Points" && sources(item).iter().any(&moves));
            let mut axes = plan.axes.iter().filter_map(|axis| match &axis.coord {
                AxisCoord::Nodes(id) => Some(id),
                _ => None,
            });
            if is_grid && (points_move || axes.any(&moves)) {
                return Err(moving("a grid moves"));
            }
            let mut runs = Vec::new();
            for (item, counts) in plan.items.iter().zip(counts) {
                let is_mesh = !["PointData", "CellData", "FieldData"].contains(&item.section);
                let Some(counts) = counts else {
                    if is_mesh {
                        return Err(moving(&format!("\"{}\" is not in every frame", item.name)));
                    }
                    runs.push(None);
                    continue;
                };
                let is_static = !sources(item).iter().any(&moves);
                if is_grid && is_mesh && !is_static {
                    return Err(moving("a grid moves"));
                }
                // Each part of an unstructured grid has its own cells.
                let shared = is_static
                    && counts.iter().all(|count| *count == counts[0])
                    && !(plan.kind == Kind::Unstructured && is_mesh && points_move);
                runs.push(Some(Run::new(if shared { &counts[..1] } else { &counts })));
            }
            series.runs.push(runs);
        }
        Ok(series)
    }

    /// Number of tuples in each frame, by block and number of the array; `None` for arrays that are not in every frame.
    fn counts(&self) -> Result<Vec<Vec<Option<Vec<u64>>>>> {
        let of_plan = |plan: &Plan| -> Vec<Option<Vec<u64>>> {
            plan.items.iter().map(|item| Some(vec![item.tuples])).collect()
        };
        let mut all: Vec<_> = self.first.blocks.plans().map(of_plan).collect();
        for number in 1..self.frames.unwrap_or(1) {
            let frame = self.frame(number)?;
            let both = self.first.blocks.plans().zip(frame.blocks.plans());
            for (counts, (plan, other)) in all.iter_mut().zip(both) {
                for (own, item) in counts.iter_mut().zip(&plan.items) {
                    match (own.as_mut(), find(other, item)) {
                        (Some(own), Some(found)) => own.push(found.tuples),
                        _ => *own = None,
                    }
                }
            }
        }
        Ok(all)
    }

    /// A frame after the first, with the blocks that are in every frame.
    pub(super) fn frame(&self, number: u64) -> Result<Frame<'a>> {
        let mut frame = Frame::new(self.content, Some(number), &self.partial, self.with_images)?;
        frame.keep(&self.common);
        Ok(frame)
    }

    /// The metadata that VTK cannot express, as JSON.
    pub(super) fn metadata(&self) -> Result<String> {
        let Frame { snapshot, blocks } = &self.first;
        let plans: Vec<&Plan> = blocks.plans().collect();
        match self.frames {
            None => metadata(snapshot, &plans),
            Some(_) => series_metadata(snapshot, &plans, &self.dropped()),
        }
    }

    /// Arrays that are not in every frame.
    fn dropped(&self) -> HashSet<NodeId> {
        let plans = self.first.blocks.plans().zip(&self.runs);
        let items = plans.flat_map(|(plan, runs)| plan.items.iter().zip(runs));
        items.filter(|(_, run)| run.is_none()).flat_map(|(item, _)| sources(item)).collect()
    }

    /// Everything that the file does not keep.
    pub(super) fn losses(&self) -> Result<Vec<Loss>> {
        let mut outcome = Outcome::default();
        outcome.add(&self.first.snapshot, self.first.blocks.plans());
        for number in 1..self.frames.unwrap_or(1) {
            let frame = self.frame(number)?;
            outcome.add(&frame.snapshot, frame.blocks.plans());
        }
        let (tree, dropped) = (self.first.snapshot.tree(), self.dropped());
        let mut kept: HashSet<NodeId> =
            self.first.blocks.plans().flat_map(|plan| plan.kept(tree).into_keys()).collect();
        kept.retain(|id| !dropped.contains(id));
        outcome.retain(&kept, &self.partial);
        let target = if self.frames.is_some() { Target::Steps } else { Target::Blocks };
        report(self.content, target, outcome)
    }
}

/// Arrays that are not in every frame.
fn partial(content: &Dataset, frames: u64) -> Result<HashSet<NodeId>> {
    let tree = content.tree();
    let mut partial = HashSet::new();
    for (id, _, desc) in tree.arrays().filter(|_| frames > 1) {
        let Some(table) = tree.resolve(desc)?.layout.frames() else { continue };
        for frame in 0..frames {
            if table.cell(frame)?.is_none() {
                partial.insert(id);
                break;
            }
        }
    }
    Ok(partial)
}

/// The error for meshes that change.
fn moving(message: &str) -> Error {
    unsupported(message).hint("a .pvd collection has a mesh per frame")
}
