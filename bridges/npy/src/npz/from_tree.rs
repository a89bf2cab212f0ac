//! A tree as an archive.

use std::collections::HashSet;
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Capabilities, FormatWriter, Loss, WriteOptions};
use spile_core::layout::Coord;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::Tree;
use spile_interchange::{Dimension, Dimensions, Flat, flatten_losses};

use super::ENDING;
use super::write::Archive;
use crate::Npz;

/// Member with the metadata that NumPy cannot express, as JSON.
pub(crate) const DESCRIPTION: &str = "spile.json";

/// Any array without frames can be stored, with its metadata beside it.
const CAPABILITIES: Capabilities = Capabilities {
    rank: usize::MAX,
    order: Order::C,
    frames: false,
    dtype: |_| true,
    byte: DType::opaque(1),
    name: |_| true,
    adds: &[],
};

impl FormatWriter for Npz {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        content.arrays().try_for_each(|(_, node, _)| check_name(&node.path))?;
        Ok(flatten_losses(content, "npz", &CAPABILITIES))
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let mut flat = Flat::new(content)?;
        let points = uniform_points(flat.tree());
        for (name, ..) in &points {
            flat.metadata.add_auxiliary(name);
        }
        let mut archive = Archive::new(sink);
        // First, so that an archive without arrays is recognised.
        archive.bytes(DESCRIPTION, flat.metadata.text(content.limits())?.as_bytes())?;
        for (id, node, array) in flat.tree().arrays() {
            check_name(&node.path)?;
            let written = archive.array(&format!("{}{ENDING}", node.path), &flat, id, array);
            written.map_err(|e| e.in_object(format!("\"{}\"", node.path)))?;
        }
        for (name, len, start, step) in points {
            archive.points(&format!("{name}{ENDING}"), start, step, len)?;
        }
        archive.finish()?;
        Ok(Vec::new())
    }
}

/// Uniform coordinates: name of an array that others do not have, number of points, first point and distance.
fn uniform_points(tree: &Tree) -> Vec<(String, u64, f64, f64)> {
    let mut taken: HashSet<String> = tree.arrays().map(|(_, node, _)| node.path.clone()).collect();
    let mut points = Vec::new();
    for Dimension { name, len, coord } in Dimensions::of(tree).list() {
        let Coord::Uniform { start, step } = coord else { continue };
        let mut name = name.clone();
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        if check_name(&name).is_ok() {
            points.push((name, *len, *start, *step));
        }
    }
    points
}

fn check_name(path: &str) -> Result<()> {
    if !path.contains('\0') {
        return Ok(());
    }
    let error = Error::unsupported("npz-012", "names with NUL are not supported");
    Err(error.in_object(format!("\"{path}\"")))
}
