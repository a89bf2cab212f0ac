//! An open SDF file: header and blocks.

use std::path::Path;

use spile_core::{Array, Dataset, Limits, Result, Source};

use crate::block::{self, Block};
use crate::wire::FileHeader;

/// An open SDF file. Opening reads the file header and the metadata of the blocks.
pub struct File {
    source: Source,
    header: FileHeader,
    blocks: Vec<Block>,
    limits: Limits,
}

impl File {
    /// Opens the file at `path`. Fails if it is not a complete SDF file or its metadata exceed
    /// `limits`.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("sdf"))
    }

    /// Opens the file in `source`; errors carry no path.
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let header = FileHeader::read(&source)?;
        let blocks = block::read_blocks(&source, &header, limits)?;
        for block in &blocks {
            block.require_data(&source)?;
        }
        Ok(Self { source, header, blocks, limits: *limits })
    }

    /// A file of which only `blocks` can be read.
    pub(crate) fn from_blocks(
        source: Source,
        header: FileHeader,
        blocks: Vec<Block>,
        limits: &Limits,
    ) -> Self {
        Self { source, header, blocks, limits: *limits }
    }

    /// The bytes.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The limits that the file was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// All blocks, in the order of the file.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// All blocks whose identifier or name is `key`. Both may occur more than once in a file.
    pub fn find<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |b| b.header.id == key || b.header.name == key)
    }

    /// All data of `block` as a one-dimensional array, not scaled.
    pub fn raw(&self, block: &Block) -> Result<Array> {
        let dataset = Dataset::of_bytes(self.source.clone(), &self.limits);
        dataset.open_array(&block.raw(&self.header)).map_err(|e| e.in_object(block.title()))
    }
}
