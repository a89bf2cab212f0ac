//! What is lost when a dataset is written as GSD, from metadata alone.

use spile_core::format::{Loss, LossKind};
use spile_core::{ArrayDesc, ByteOrder, Dataset, FrameAxis, NodeId, Result, Semantics, Value};
use spile_interchange::{Kept, Losses};

use super::{Column, Plan};
use crate::read::STEP;
use crate::semantics::{BOX, dims, meaning};
use crate::to_tree::{POSITIONS, header_attrs};
use crate::wire::{TEXT, Type};

impl Plan<'_> {
    /// The frame axis of the new file has other steps.
    fn changes_steps(&self, axis: &dyn FrameAxis) -> Result<bool> {
        if self.steps.is_some() {
            return Ok(false);
        }
        let stored = |column: &&Column<'_>| column.node.path == STEP && column.kind == Type::UInt64;
        let column = self.columns.iter().find(stored);
        let is_stored = |frame: u64| -> Result<bool> {
            Ok(column.map(|column| column.cell(frame)).transpose()?.flatten().is_some())
        };
        // Frames without a step have that of frame 0 in HOOMD files.
        let fallback = match (self.is_hoomd(), axis.is_empty()) {
            (true, false) if is_stored(0)? => axis.step(0)?,
            (true, _) => Some(0),
            (false, _) => None,
        };
        for frame in 0..axis.len() {
            if !is_stored(frame)? && axis.step(frame)?.is_some_and(|step| Some(step) != fallback) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Everything of `content` that writing as GSD does not keep.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let plan = Plan::new(content)?;
    let tree = content.tree();
    let mut losses = Losses::new("GSD");
    let mut stored = header_attrs(&plan.about);
    for (name, value) in tree.attrs() {
        let fits = !matches!(value, Value::Text(text) if text.len() >= TEXT || text.contains('\0'));
        if stored.get(name) == Some(value) && fits {
            stored.remove(name);
            continue;
        }
        let reason = "the header of GSD has only application, schema and schema_version";
        losses.push_loss(Loss::attribute("", name, reason));
    }
    if let Some(axis) = tree.frames() {
        if plan.used < axis.len() {
            losses.push("", LossKind::Frames, "frames without chunks at the end");
        }
        if has_time(&**axis)? {
            losses.push("", LossKind::Frames, "times of frames");
        }
        if plan.changes_steps(&**axis)? {
            losses.push("", LossKind::Frames, "steps other than those of configuration/step");
        }
    }
    // Those that depend on the array follow below.
    let kept = Kept {
        root_attrs: true,
        dims: true,
        scaling: true,
        meaning: true,
        frames: true,
        ..Kept::default()
    };
    let mut columns = plan.columns.iter();
    losses.add(content, &kept, |_, _, _| match columns.next() {
        Some(column) if column.name.is_none() && tree.at(BOX).is_none() => {
            Err(format!("computed from {BOX}, which no frame has"))
        }
        Some(column) if column.chunks > 0 => Ok(()),
        _ => Err("no frame has it".into()),
    });
    let written = |column: &&Column<'_>| column.chunks > 0;
    let positions = plan.columns.iter().find(|c| c.chunks > 0 && c.node.path == POSITIONS);
    let positions = positions.map(|column| column.id);
    for column in plan.columns.iter().filter(written).filter(|column| column.name.is_some()) {
        add_array_losses(&plan, column, positions, &mut losses);
    }
    Ok(losses.into_vec())
}

/// Losses of an array that is written.
fn add_array_losses(
    plan: &Plan<'_>,
    column: &Column<'_>,
    positions: Option<NodeId>,
    losses: &mut Losses<'_>,
) {
    let (path, own, desc) = (&column.node.path, column.own, column.desc);
    let mut lose = |kind, reason: String| losses.push_loss(Loss::new(path, kind, reason));
    let stored = column.kind.dtype();
    if desc.map.is_some() {
        let reason = "GSD has no linear scaling: physical values are written";
        lose(LossKind::Scaling, reason.into());
    }
    if desc.dtype.with_order(ByteOrder::Little) != stored {
        lose(LossKind::Type, format!("GSD stores {} as {stored}", desc.dtype));
    }
    let rank = column.rank();
    if column.width > 1 || column.ranks != (rank, rank) {
        let reason = match rank {
            1 => "GSD arrays with one column have one dimension".into(),
            _ => format!("GSD stores {} in rows and columns", desc.dtype),
        };
        lose(LossKind::Shape, reason);
    }
    let hoomd = plan.is_hoomd();
    let default = ArrayDesc::default_dims(own.dims.len());
    let named = || own.dims.iter().zip(dims(path)).all(|(own, known)| own == known);
    if own.dims != default && !(hoomd && own.dims.len() == rank && named()) {
        lose(LossKind::Dimensions, "GSD has no names of dimensions".into());
    }
    let known = if hoomd { meaning(path, positions) } else { Semantics::default() };
    // The quantity follows from the name.
    let mut stored = own.semantics().clone();
    stored.quantity = known.quantity;
    if *own.semantics() != Semantics::default() && stored != known {
        lose(LossKind::Meaning, "GSD has no roles of arrays".into());
    }
    if column.hides {
        let reason = "frames without it show the value of frame 0, because its type has no NaN";
        lose(LossKind::Values, reason.into());
    }
    if column.table().is_none() {
        let reason = "GSD stores every array per frame: this one is in frame 0";
        lose(LossKind::Frames, reason.into());
    } else if column.frames() > plan.frames {
        lose(LossKind::Frames, format!("only {} frames are written", plan.frames));
    }
}

/// A frame has a time.
fn has_time(axis: &dyn FrameAxis) -> Result<bool> {
    for frame in 0..axis.len() {
        if axis.time(frame)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
