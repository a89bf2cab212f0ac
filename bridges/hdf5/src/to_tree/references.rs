//! Datasets of references: the paths of the objects.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::tree::{NodeId, ROOT, Tree};

use super::Walk;

impl Walk<'_> {
    /// Replaces arrays of references by the paths of the objects. Those that cannot be read stay opaque bytes.
    pub(super) fn resolve_references(&mut self) -> Result<()> {
        for node in std::mem::take(&mut self.references) {
            let Some(desc) = self.tree.node(node).array.clone() else { continue };
            match self.paths(&desc) {
                Ok((desc, regions)) => {
                    self.tree.node_mut(node).array = Some(desc);
                    if regions {
                        self.note_regions(node)?;
                    }
                }
                Err(error) => {
                    let path = self.tree.node(node).path.clone();
                    self.report_error(format!("\"{path}\""), error)?;
                }
            }
        }
        Ok(())
    }

    fn note_regions(&mut self, node: NodeId) -> Result<()> {
        let path = self.tree.node(node).path.clone();
        self.ctx.charge(256 + path.len() as u64)?;
        let message = "region references: read as the paths of their datasets, without the regions";
        self.report.note("hdf5-027", message).in_object(format!("\"{path}\""));
        Ok(())
    }

    /// The paths as text, and whether the references are those of regions.
    fn paths(&self, desc: &ArrayDesc) -> Result<(ArrayDesc, bool)> {
        let (ctx, size) = (self.ctx, desc.dtype.size());
        let object = ctx.sizes.offset;
        let regions = size == object + 4;
        if size != object && !regions {
            let message = format!("references of {size} bytes are not supported");
            return Err(Error::unsupported("hdf5-028", message).at(ctx.base));
        }
        ctx.charge(desc.bytes()?)?;
        let file = spile_core::Dataset::new(ctx.source.clone(), Tree::new(&ctx.limits));
        let raw = file.open_array(desc)?.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
        let mut paths = Vec::new();
        for bytes in raw.chunks_exact(size) {
            let mut fields = ctx.fields(bytes, 0);
            let mut address = fields.address()?.filter(|address| *address != 0);
            if let (Some(heap), true) = (address, regions) {
                let found = self.heaps.object(ctx, heap, fields.u32()?)?;
                let bytes = ctx.read(found.address, object as u64, "region reference")?;
                address = ctx.fields(&bytes, found.address).address()?;
            }
            let path = address.and_then(|address| self.nodes.get(&address)).map(|id| match *id {
                ROOT => "/".to_string(),
                id => format!("/{}", self.tree.node(id).path),
            });
            ctx.charge(64 + path.as_ref().map_or(0, String::len) as u64)?;
            paths.push(path.unwrap_or_default());
        }
        let longest = paths.iter().map(String::len).max().unwrap_or(0).max(1);
        ctx.charge((longest as u64).saturating_mul(paths.len() as u64))?;
        let mut text = vec![0; longest * paths.len()];
        for (field, path) in text.chunks_exact_mut(longest).zip(&paths) {
            field[..path.len()].copy_from_slice(path.as_bytes());
        }
        let dtype = u32::try_from(longest).map_or(DType::text(1), DType::text);
        let layout = Layout::Inline(text.into(), Order::C);
        Ok((ArrayDesc { dtype, layout, ..desc.clone() }, regions))
    }
}
