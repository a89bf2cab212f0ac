//! A tree as an archive.

use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Capabilities, FormatWriter, Loss, WriteOptions};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_interchange::{Flat, flatten_losses};

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
        let flat = Flat::new(content)?;
        let mut archive = Archive::new(sink);
        // First, so that an archive without arrays is recognised.
        archive.bytes(DESCRIPTION, flat.metadata.text(content.limits())?.as_bytes())?;
        for (id, node, array) in flat.tree().arrays() {
            check_name(&node.path)?;
            let written = archive.array(&format!("{}{ENDING}", node.path), &flat, id, array);
            written.map_err(|e| e.in_object(format!("\"{}\"", node.path)))?;
        }
        archive.finish()?;
        Ok(Vec::new())
    }
}

fn check_name(path: &str) -> Result<()> {
    if !path.contains('\0') {
        return Ok(());
    }
    let error = Error::unsupported("npz-011", "names with NUL are not supported");
    Err(error.in_object(format!("\"{path}\"")))
}
