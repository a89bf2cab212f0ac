//! An open HDF5 or NetCDF-4 file.

use spile_core::error::Result;
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::report::Finding;
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use crate::to_tree::{self, Parsed};
use crate::wire::{self, Context};

/// An open file.
pub(crate) struct File {
    source: Source,
    tree: Tree,
    findings: Vec<Finding>,
    superblock: u8,
    /// The attribute `_NCProperties` of netCDF files.
    writer: Option<String>,
    /// Datasets of the file; links to the same dataset count once.
    datasets: Vec<(String, ArrayDesc)>,
    metadata: Vec<wire::Region>,
}

impl File {
    /// Reads all metadata. Objects that cannot be read are findings. Fails if there is no HDF5 superblock
    /// or root group, or if the metadata exceed `limits`.
    pub(crate) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let ctx = Context::new(&source, limits)?;
        let Parsed { tree, report, datasets, writer } = to_tree::parse(&ctx)?;
        let superblock = ctx.superblock;
        let (findings, metadata) = (report.findings, ctx.into_regions());
        Ok(Self { source, tree, findings, superblock, writer, datasets, metadata })
    }

    /// Warnings collected while opening.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let mut summary = vec![
            ("superblock".to_string(), Value::UInt(u64::from(self.superblock))),
            ("datasets".to_string(), Value::UInt(self.datasets.len() as u64)),
        ];
        let writer = self.writer.iter();
        summary.extend(writer.map(|text| ("written by".to_string(), text.as_str().into())));
        summary
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all: Vec<(u64, u64, Role, &str)> = Vec::new();
        all.extend(self.metadata.iter().map(|s| (s.offset, s.len, Role::Header, s.name)));
        for (path, desc) in &self.datasets {
            for part in parts(&desc.layout) {
                all.push((part.0, part.1, Role::Data, path));
            }
        }
        all.sort_by_key(|(offset, len, ..)| (*offset, u64::MAX - len));
        let mut end = 0;
        for (offset, len, role, name) in all {
            // Columns of a table overlap, and some structures are read twice.
            let last = offset.saturating_add(len).min(self.source.len());
            if offset < end || last <= offset {
                continue;
            }
            if offset > end {
                let (name, value) = (String::new(), String::new());
                each(Region { offset: end, len: offset - end, role: Role::Unknown, name, value })?;
            }
            let value = if role == Role::Data { "data" } else { "" }.to_string();
            each(Region { offset, len: last - offset, role, name: name.into(), value })?;
            end = last;
        }
        let len = self.source.len().saturating_sub(end);
        if len > 0 {
            let (name, value) = (String::new(), String::new());
            each(Region { offset: end, len, role: Role::Unknown, name, value })?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
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

/// The byte ranges of a contiguous layout: offset and length.
fn parts(layout: &Layout) -> Vec<(u64, u64)> {
    match layout {
        Layout::Plain { extents, .. } | Layout::Rows { extents, .. } => {
            extents.parts().iter().map(|part| (part.offset, part.len)).collect()
        }
        _ => Vec::new(),
    }
}
