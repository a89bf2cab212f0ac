//! An open HDF5 or NetCDF-4 file.

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{Native, Object, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::tree::{Attrs, Value};

use crate::to_tree::{self, Contents};
use crate::wire::{self, Context};

/// The structures of an open file.
struct File {
    /// Datasets of the file; links to the same dataset count once.
    datasets: Vec<(String, ArrayDesc)>,
    metadata: Vec<wire::Region>,
}

/// Reads all metadata. Objects that cannot be read are warnings of severity error. Fails if there is no
/// HDF5 superblock or root group, or if the metadata exceed `limits`.
pub(crate) fn open(source: Source, limits: &Limits) -> Result<Parsed> {
    let ctx = Context::new(&source, limits)?;
    let Contents { tree, report, datasets, writer, metadata } = to_tree::parse(&ctx)?;
    let mut summary = Attrs::from([
        ("superblock", Value::UInt(u64::from(ctx.superblock))),
        ("datasets", Value::UInt(datasets.len() as u64)),
    ]);
    summary.extend(writer.map(|text| ("written by", Value::from(text))));
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    let file = File { datasets, metadata: ctx.into_regions() };
    Ok(parsed.with_metadata(metadata).with_native(file))
}

impl Native for File {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let len = dataset.source().len();
        let mut all: Vec<(u64, u64, RegionKind, &str)> = Vec::new();
        all.extend(self.metadata.iter().map(|s| (s.offset, s.len, RegionKind::Header, s.name)));
        for (path, desc) in &self.datasets {
            for part in parts(&desc.layout) {
                all.push((part.0, part.1, RegionKind::Data, path));
            }
        }
        all.sort_by_key(|(offset, len, ..)| (*offset, u64::MAX - len));
        let mut end = 0;
        for (offset, own, kind, name) in all {
            // Columns of a table overlap, and some structures are read twice.
            let last = offset.saturating_add(own).min(len);
            if offset < end || last <= offset {
                continue;
            }
            if offset > end {
                each(unknown(end, offset - end))?;
            }
            let value = if kind == RegionKind::Data { "data" } else { "" }.to_string();
            each(Region { offset, len: last - offset, kind, name: name.into(), value })?;
            end = last;
        }
        let rest = len.saturating_sub(end);
        if rest > 0 {
            each(unknown(end, rest))?;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (path, array) in &self.datasets {
            each(Object {
                path: path.clone(),
                id: None,
                frame: None,
                kind: "dataset".into(),
                array: array.clone(),
            })?;
        }
        Ok(())
    }
}

/// Bytes that are not known to be used.
fn unknown(offset: u64, len: u64) -> Region {
    let (name, value) = (String::new(), String::new());
    Region { offset, len, kind: RegionKind::Unknown, name, value }
}

/// The byte ranges of a contiguous layout: offset and length.
fn parts(layout: &Layout) -> Vec<(u64, u64)> {
    match layout {
        Layout::Plain { extents, .. } | Layout::Rows { extents, .. } => {
            extents.parts().iter().map(|part| (part.offset, part.len)).collect()
        }
        _ => Vec::new(),
    }
}
