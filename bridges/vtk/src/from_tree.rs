//! Meshes and points of a tree as files.

mod blocks;
mod find_grid;
mod find_points;
mod grid;
mod plan;
mod points;
mod vectors;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::metadata::Metadata;
use spile_core::semantics::Missing;
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::table::{complex_losses, split_complex};
use spile_interchange::{Kept, Losses};

use crate::wire::type_name;
use crate::{Vtk, collection, multiblock};
pub(crate) use blocks::blocks;
pub(crate) use find_grid::AxisCoord;
pub(crate) use plan::{Item, Kind, Plan, Snapshot, Target, Values, unsupported};

/// Static arrays of at most this size are compared between the files of a series.
const SHARED_BYTES: u64 = 1 << 20;

/// What happens to the arrays of a tree.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Arrays that are written, and their types in the file.
    written: HashMap<NodeId, DType>,
    /// Arrays that exist in a frame and are not written there.
    absent: HashMap<NodeId, Option<u64>>,
    /// Arrays whose mesh is not written in a frame.
    unplaced: HashSet<NodeId>,
    /// Arrays that are components of others in the file.
    strided: HashSet<NodeId>,
}

impl Outcome {
    /// Adds a frame whose files are `plans`.
    pub(crate) fn add<'p>(
        &mut self,
        snapshot: &Snapshot<'_>,
        plans: impl Iterator<Item = &'p Plan>,
    ) {
        let mut own: HashMap<NodeId, DType> = HashMap::new();
        for plan in plans {
            own.extend(plan.kept(snapshot.tree()));
            self.strided.extend(plan.strided());
        }
        let tree = snapshot.all.tree();
        for (id, _, desc) in tree.arrays() {
            let lost = |mesh| tree.node(mesh).array.is_some() && !own.contains_key(&mesh);
            if own.contains_key(&id) && desc.semantics().mesh.is_some_and(lost) {
                self.unplaced.insert(id);
            }
            match own.get(&id) {
                Some(dtype) => drop(self.written.insert(id, *dtype)),
                None if snapshot.find(id).is_ok_and(|found| found.is_some()) => {
                    self.absent.entry(id).or_insert(snapshot.frame);
                }
                None => {}
            }
        }
    }
}

impl Outcome {
    /// Removes arrays that are written in some frames only, and those that exist in some frames only.
    pub(crate) fn retain(&mut self, kept: &HashSet<NodeId>, partial: &HashSet<NodeId>) {
        self.absent.extend(partial.iter().map(|id| (*id, None)));
        let dropped: Vec<NodeId> =
            self.written.keys().filter(|id| !kept.contains(id)).copied().collect();
        for id in dropped {
            self.written.remove(&id);
            self.absent.insert(id, None);
        }
    }
}

impl FormatWriter for Vtk {
    /// Writes meshes and points of `content`. The file name ending determines the type.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let content = split.as_ref().unwrap_or(content);
        match Target::of(sink.path())? {
            Target::Single(kind) => Snapshot::new(content, None)?.write(kind, false, sink)?,
            Target::Blocks => multiblock::write(content, sink)?,
            Target::Collection | Target::Steps => collection::write(content, sink)?,
        }
        Ok(Vec::new())
    }

    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let losses = losses(split.as_ref().unwrap_or(content), Target::of(path)?)?;
        Ok(complex_losses(content, losses))
    }
}

/// What a file does not keep of `content`.
fn losses(content: &Dataset, target: Target) -> Result<Vec<Loss>> {
    let mut outcome = Outcome::default();
    match target {
        Target::Single(kind) => {
            let snapshot = Snapshot::new(content, None)?;
            outcome.add(&snapshot, [&snapshot.plan(kind, false)?].into_iter());
        }
        Target::Blocks => {
            let snapshot = Snapshot::new(content, None)?;
            outcome.add(&snapshot, multiblock::plan(&snapshot)?.plans());
        }
        Target::Collection | Target::Steps => collection::outcome(content, &mut outcome)?,
    }
    report(content, target, outcome)
}

/// What files with this outcome do not keep of `content`.
pub(crate) fn report(content: &Dataset, target: Target, outcome: Outcome) -> Result<Vec<Loss>> {
    let is_collection = matches!(target, Target::Collection | Target::Steps);
    let Outcome { written, absent, unplaced, strided } = outcome;
    let tree = content.tree();
    let mut losses = Losses::new("VTK");
    losses.add(content, &Kept { scaling: false, ..Kept::ALL }, |id, _, desc| {
        if written.contains_key(&id) || (is_collection && !absent.contains_key(&id)) {
            return Ok(());
        }
        let dtype = tree.resolve(desc).map_or(desc.dtype, |desc| desc.dtype);
        Err(match (type_name(dtype), target) {
            (None, _) => format!("VTK has no arrays of {dtype}"),
            (_, Target::Single(kind)) => format!(
                "it is not on the mesh of the .{} file; use .vtm to write all meshes and species",
                kind.ending()
            ),
            (_, Target::Steps) => "it is on no mesh, or not in every frame".into(),
            _ => "it is on no mesh, and too large for field data".into(),
        })
    });
    if !is_collection && tree.frames().is_some() {
        losses.push_loss(Loss::new(
            "",
            LossKind::Frames,
            "only .pvd and .vtkhdf files have frames",
        ));
    }
    let mut shared = shared(tree, &written);
    shared.retain(|id| !strided.contains(id));
    for (id, node, desc) in tree.arrays() {
        let Some(dtype) = written.get(&id) else { continue };
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(&node.path, kind, reason));
        if desc.map.is_none() && *dtype != desc.dtype.with_order(ByteOrder::Little) {
            lose(LossKind::Type, "the components of points in VTK have one type");
        }
        if desc.map.is_some() && !desc.semantics().missing.is_none() {
            lose(LossKind::Meaning, "missing values are NaN among physical values");
        }
        let lost = |coord: &Coord| matches!(coord, Coord::Node(id) if !written.contains_key(id));
        if desc.coords.iter().any(lost) {
            lose(LossKind::Coordinates, "the coordinate is not written");
        }
        if unplaced.contains(&id) {
            lose(LossKind::Meaning, "the mesh is not written");
        }
        let per_frame = tree.resolve(desc)?.layout.frames().is_some();
        match absent.get(&id) {
            Some(frame) if is_collection => {
                let frame = frame.unwrap_or(0);
                let reason = format!("it is not on a mesh of frame {frame}");
                lose(LossKind::Frames, &reason);
            }
            _ if target == Target::Collection && !per_frame && !shared.contains(&id) => {
                lose(LossKind::Frames, "a collection has the array in each frame");
            }
            _ if !is_collection && per_frame => {
                lose(LossKind::Frames, "only .pvd and .vtkhdf files have frames");
            }
            _ => {}
        }
    }
    if is_collection && tree.frames().is_some() {
        for name in ["step", "time"].into_iter().filter(|name| tree.attrs().contains(name)) {
            let reason = "each frame has its own";
            losses.push_loss(Loss::attribute("", name, reason));
        }
    }
    Ok(losses.into_vec())
}

/// Arrays that a collection has once: small ones in groups with coordinates of other arrays.
fn shared(tree: &Tree, written: &HashMap<NodeId, DType>) -> HashSet<NodeId> {
    let arrays = || tree.arrays().filter(|(id, ..)| written.contains_key(id));
    let groups: HashSet<NodeId> = arrays()
        .flat_map(|(_, _, desc)| &desc.coords)
        .filter_map(|coord| if let Coord::Node(id) = coord { Some(*id) } else { None })
        .filter(|id| written.contains_key(id))
        .map(|id| tree.node(id).parent)
        .collect();
    let once = |node: &Node, desc: &ArrayDesc| {
        let small = desc.bytes().is_ok_and(|bytes| bytes <= SHARED_BYTES);
        small && groups.contains(&node.parent)
    };
    arrays().filter(|(_, node, desc)| once(node, desc)).map(|(id, ..)| id).collect()
}

/// The metadata of the arrays of some files as JSON for an XML comment.
pub(crate) fn metadata(snapshot: &Snapshot<'_>, plans: &[&Plan]) -> Result<String> {
    let mut tree = snapshot.all.tree().clone();
    for (id, ..) in snapshot.all.tree().arrays() {
        if let Some(desc) = &mut tree.node_mut(id).array
            && desc.layout.frames().is_some()
        {
            desc.layout = Layout::Fill(vec![0; desc.dtype.size()].into());
        }
    }
    if let (Some(frame), Some(axis)) = (snapshot.frame, snapshot.all.tree().frames()) {
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.retain(|name, _| name != "step" && name != "time");
        attrs.extend(axis.step(frame)?.map(|step| ("step", Value::UInt(step))));
        attrs.extend(axis.time(frame)?.map(|time| ("time", Value::Float(time))));
    }
    let kept = plans.iter().flat_map(|plan| plan.kept(snapshot.tree())).collect();
    let mut metadata = described(snapshot, tree, &kept);
    // A file is one frame.
    metadata.frames = None;
    for path in plans.iter().flat_map(|plan| &plan.generated) {
        metadata.add_auxiliary(path.clone());
    }
    // Comments must not contain two hyphens.
    Ok(metadata.text(snapshot.all.limits())?.replace("--", "-\\u002d"))
}

/// The metadata of a file with all frames, given the arrays of the first one and those that are not written.
pub(crate) fn series_metadata(
    first: &Snapshot<'_>,
    plans: &[&Plan],
    dropped: &HashSet<NodeId>,
) -> Result<String> {
    let mut kept: HashMap<NodeId, DType> =
        plans.iter().flat_map(|plan| plan.kept(first.tree())).collect();
    kept.retain(|id, _| !dropped.contains(id));
    let mut tree = first.all.tree().clone();
    for name in ["step", "time"] {
        tree.node_mut(ROOT).attrs.retain(|own, _| own != name);
    }
    described(first, tree, &kept).text(first.all.limits())
}

/// The metadata of `tree`, that of a dataset of which these arrays are written, with their types in the file.
fn described(snapshot: &Snapshot<'_>, mut tree: Tree, kept: &HashMap<NodeId, DType>) -> Metadata {
    let parents: HashSet<NodeId> = tree.iter().map(|(_, node)| node.parent).collect();
    for (id, ..) in snapshot.all.tree().arrays() {
        if parents.contains(&id) && !kept.contains_key(&id) {
            tree.node_mut(id).array = None;
        }
    }
    for (id, dtype) in kept {
        let Some(desc) = &mut tree.node_mut(*id).array else { continue };
        desc.dtype = *dtype;
        // The file has physical values, and so have cell centres that reading computes from them.
        if desc.map.take().is_some()
            && let Some(meaning) = &mut desc.meaning
        {
            meaning.missing = Missing::default();
        }
    }
    Metadata::of(&tree)
}
