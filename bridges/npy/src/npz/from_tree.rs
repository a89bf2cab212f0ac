//! A tree as an archive.

use spile_core::error::{Error, Result};
use spile_core::flat::Flat;
use spile_core::format::Reader;
use spile_core::limits::Limits;
use spile_core::sink::Sink;

use super::ENDING;
use super::write::Archive;

/// Member with the metadata that NumPy cannot express, as JSON.
pub(super) const DESCRIPTION: &str = "spile.json";

/// Writes all arrays of `content`, and its metadata as JSON.
pub(super) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let flat = Flat::new(content, limits)?;
    let mut archive = Archive::new(sink);
    // First, so that an archive without arrays is recognised.
    archive.bytes(DESCRIPTION, flat.description.text(limits)?.as_bytes())?;
    for (id, node, array) in flat.tree().arrays() {
        let named = |e: Error| e.in_object(format!("\"{}\"", node.path));
        if node.path.contains('\0') {
            let message = "names with NUL are not supported";
            return Err(named(Error::unsupported("npz-011", message)));
        }
        archive.array(&format!("{}{ENDING}", node.path), &flat, id, array).map_err(named)?;
    }
    archive.finish()
}
