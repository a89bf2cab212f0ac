//! Losses of writing a dataset as openPMD.

use std::collections::HashSet;

use spile_core::format::{Loss, LossKind};
use spile_core::{Dataset, Error, NodeId, Result, Value};
use spile_interchange::{Kept, Losses};

use crate::records::Records;
use crate::units::dimension;
use crate::write::root_attributes;

/// The error for a dataset that cannot be written.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("openpmd-001", message)
}

/// Everything of `content` that is not written. Fails if nothing is.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let records = Records::of(content);
    if records.meshes.is_empty() && records.species.is_empty() {
        return Err(unsupported("the dataset has neither fields on meshes nor particles"));
    }
    iterations(content)?;
    let mut losses = Losses::new("openPMD");
    let kept = Kept {
        root_attrs: true,
        coords: true,
        frames: true,
        meaning: true,
        dims: true,
        ..Kept::default()
    };
    losses.add(content, &kept, |id, _, _| {
        records.refused.get(&id).map_or(Ok(()), |reason| Err((*reason).to_string()))
    });
    let written: HashSet<NodeId> = all(&records).collect();
    let mut list = losses.into_vec();
    // The unit, and the name of what a record is, are attributes of records; others describe the blocks of a format.
    list.retain(|loss| {
        let id = content.tree().at(&loss.path);
        let is_written = id.is_some_and(|id| written.contains(&id));
        !(loss.kind == LossKind::Attribute && loss.name.as_deref() == Some("units") && is_written)
    });
    let kept = root_attributes(content.attrs());
    for (name, value) in content.attrs() {
        let is_moment = matches!(name, "step" | "time");
        if !is_moment && !kept.get(name).is_some_and(|kept| kept.same(value)) {
            let reason = match value {
                Value::Bool(_) => "openPMD stores it as an integer",
                _ => "openPMD cannot store it",
            };
            list.push(Loss::attribute("", name, reason));
        }
    }
    for id in written {
        let node = content.tree().node(id);
        if let Some(unit) = node.attrs.get_str("units").filter(|unit| dimension(unit).is_none()) {
            let reason =
                format!("the unit {unit} is not a product of SI units; it is kept as text");
            list.push(Loss::attribute(&node.path, "units", reason));
        }
    }
    Ok(list)
}

/// The arrays of all records.
fn all(records: &Records) -> impl Iterator<Item = NodeId> + '_ {
    let species = records.species.iter();
    let particles = species.flat_map(|one| {
        let own = one.records.iter().flat_map(|record| &record.components).map(|(_, id)| *id);
        own.chain(one.positions.iter().copied())
    });
    let meshes = records.meshes.iter().flat_map(|record| &record.components).map(|(_, id)| *id);
    meshes.chain(particles).chain(records.scalars.iter().copied())
}

/// An iteration of the file.
pub(crate) struct Iteration {
    /// Frame of the content; `None` for a dataset without frames.
    pub(crate) frame: Option<u64>,
    /// Number in the file: the step, or the frame if steps are not known or not unique.
    pub(crate) number: u64,
    pub(crate) time: f64,
    /// Average time between steps; 0 if it is not known.
    pub(crate) dt: f64,
}

/// The frames as iterations.
pub(crate) fn iterations(content: &Dataset) -> Result<Vec<Iteration>> {
    let average = |step: Option<u64>, time: f64| match step {
        Some(step) if step > 0 => time / step as f64,
        _ => 0.0,
    };
    let Some(axis) = content.tree().frames() else {
        let attrs = content.attrs();
        let (step, time) = (attrs.get_u64("step"), attrs.get_f64("time").unwrap_or(0.0));
        let dt = average(step, time);
        return Ok(vec![Iteration { frame: None, number: step.unwrap_or(0), time, dt }]);
    };
    let count = axis.len();
    content
        .limits()
        .allow(count.saturating_mul(size_of::<Iteration>() as u64 + 16), "the frames")?;
    let steps = (0..count).map(|k| axis.step(k)).collect::<Result<Vec<_>>>()?;
    let unique: HashSet<u64> = steps.iter().flatten().copied().collect();
    let by_step = unique.len() as u64 == count;
    let iteration = |(frame, step): (u64, Option<u64>)| -> Result<Iteration> {
        let time = axis.time(frame)?.unwrap_or(0.0);
        let number = step.filter(|_| by_step).unwrap_or(frame);
        Ok(Iteration { frame: Some(frame), number, time, dt: average(step, time) })
    };
    (0..count).zip(steps).map(iteration).collect()
}
