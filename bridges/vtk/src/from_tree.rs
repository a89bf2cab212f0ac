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
use spile_interchange::{Kept, Losses};

use crate::wire::type_name;
use crate::{Vtk, collection, multiblock};
pub(crate) use blocks::blocks;
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

impl FormatWriter for Vtk {
    /// Writes meshes and points of `content`. The file name ending determines the type.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        match Target::of(sink.path())? {
            Target::Single(kind) => Snapshot::new(content, None)?.write(kind, false, sink)?,
            Target::Blocks => multiblock::write(content, sink)?,
            Target::Collection => collection::write(content, sink)?,
        }
        Ok(Vec::new())
    }

    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
        losses(content, Target::of(path)?)
    }
}

/// What a file does not keep of `content`.
pub(crate) fn losses(content: &Dataset, target: Target) -> Result<Vec<Loss>> {
    let is_collection = target == Target::Collection;
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
        Target::Collection => collection::outcome(content, &mut outcome)?,
    }
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
            _ => "it is on no mesh, and too large for field data".into(),
        })
    });
    if !is_collection && tree.frames().is_some() {
        losses.push_loss(Loss::new("", LossKind::Frames, "only .pvd collections have frames"));
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
        let per_frame = matches!(tree.resolve(desc)?.layout, Layout::PerFrame(_));
        match absent.get(&id) {
            Some(frame) if is_collection => {
                let frame = frame.unwrap_or(0);
                let reason = format!("it is not on a mesh of frame {frame}");
                lose(LossKind::Frames, &reason);
            }
            _ if is_collection && !per_frame && !shared.contains(&id) => {
                lose(LossKind::Frames, "a collection has the array in each frame");
            }
            _ if !is_collection && per_frame => {
                lose(LossKind::Frames, "only .pvd collections have frames");
            }
            _ => {}
        }
    }
    if is_collection && tree.frames().is_some() {
        for name in ["step", "time"].into_iter().filter(|name| tree.attrs().contains(name)) {
            let reason = "each file of a collection has its own";
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
    let content = snapshot.all;
    let kept: HashMap<NodeId, DType> =
        plans.iter().flat_map(|plan| plan.kept(snapshot.tree())).collect();
    let mut tree = content.tree().clone();
    let parents: HashSet<NodeId> = tree.iter().map(|(_, node)| node.parent).collect();
    for (id, ..) in content.tree().arrays() {
        let array = &mut tree.node_mut(id).array;
        if parents.contains(&id) && !kept.contains_key(&id) {
            *array = None;
        } else if let Some(desc) = array
            && matches!(desc.layout, Layout::PerFrame(_))
        {
            desc.layout = Layout::Fill(vec![0; desc.dtype.size()].into());
        }
    }
    if let (Some(frame), Some(axis)) = (snapshot.frame, content.tree().frames()) {
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.retain(|name, _| name != "step" && name != "time");
        attrs.extend(axis.step(frame)?.map(|step| ("step", Value::UInt(step))));
        attrs.extend(axis.time(frame)?.map(|time| ("time", Value::Float(time))));
    }
    for (id, dtype) in &kept {
        let Some(desc) = &mut tree.node_mut(*id).array else { continue };
        desc.dtype = *dtype;
        // The file has physical values, and so have cell centres that reading computes from them.
        if desc.map.take().is_some()
            && let Some(meaning) = &mut desc.meaning
        {
            meaning.missing = Missing::default();
        }
    }
    let mut metadata = Metadata::of(&tree);
    // A file is one frame.
    metadata.frames = None;
    for path in plans.iter().flat_map(|plan| &plan.generated) {
        metadata.add_auxiliary(path.clone());
    }
    // Comments must not contain two hyphens.
    Ok(metadata.text(content.limits())?.replace("--", "-\\u002d"))
}
