//! An open scda file: the list of its sections.

use std::path::Path;

use spile_core::limits::Budget;
use spile_core::{Array, ArrayDesc, Dataset, Error, Limits, Result, Source};

use crate::content::Content;
use crate::index::Index;
use crate::section::{Section, Tables};
use crate::wire::{FILE_HEADER, FileHeader};

/// An open scda file in the terms of the format. Opening reads the section headers and the size entries
/// of V sections. The list of sections and the tables of sizes are charged to the memory limit before
/// they are built. Fields and groups are in the dataset that [`Scda`](crate::Scda) opens.
pub struct File {
    /// The bytes and the limits; the tree is empty.
    bytes: Dataset,
    header: FileHeader,
    sections: Vec<Section>,
    index: Option<Index>,
    /// Memory of the list of sections.
    memory: u64,
}

impl File {
    /// Opens a file. Compressed sections are decoded when they are read.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, true, limits)
            .map_err(|e| e.with_path(path).with_format("scda"))
    }

    /// Opens the file in `source`. Without `decode`, the two raw sections of a compressed section are
    /// listed separately.
    pub fn from_source(source: Source, decode: bool, limits: &Limits) -> Result<Self> {
        Self::with_tables(source, decode, limits, Tables::All)
    }

    /// Opens the file in `source`, with the tables of sizes that fit the memory limit if `tables` allows that.
    pub(crate) fn with_tables(
        source: Source,
        decode: bool,
        limits: &Limits,
        tables: Tables,
    ) -> Result<Self> {
        let header = FileHeader::read(&source)?;
        let mut budget = Budget::new(limits);
        // Without decoding all sections are listed.
        let index = if decode { Index::read(&source, limits)? } else { None };
        if let Some(index) = &index {
            budget.charge(size_of_val(index.parts()) as u64, "the index")?;
        }
        let mut sections: Vec<Section> = Vec::new();
        let mut offset = FILE_HEADER;
        loop {
            let number = sections.len();
            if index.as_ref().is_some_and(|index| index.offset() == offset) {
                break;
            }
            let read =
                Section::read(&source, offset, decode, &mut budget, (tables, index.as_ref()));
            let Some(section) = read.map_err(|e| e.in_object(format!("section {number}")))? else {
                break;
            };
            offset = section.end();
            sections.push(section);
            if sections.len() as u64 >= limits.nodes {
                return Err(Error::limit(format!("more than {} sections", limits.nodes)));
            }
        }
        let bytes = Dataset::of_bytes(source, limits);
        Ok(Self { bytes, header, sections, index, memory: budget.used() })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The sections in file order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The index at the end of the file. Its sections are not in [`File::sections`].
    pub fn index(&self) -> Option<&Index> {
        self.index.as_ref()
    }

    /// The data of a section as an array of bytes, which can be read, streamed and sliced.
    pub fn array(&self, section: &Section) -> Result<Array> {
        self.open_array(&section.desc())
    }

    /// The uncompressed data of a section as a byte stream with random access.
    pub fn content(&self, section: &Section) -> Result<Content> {
        Content::of(self, section)
    }

    /// The bytes of the file.
    pub fn source(&self) -> &Source {
        self.bytes.source()
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.bytes.limits()
    }

    /// The bytes and the limits, with an empty tree.
    pub(crate) fn bytes(&self) -> &Dataset {
        &self.bytes
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn open_array(&self, desc: &ArrayDesc) -> Result<Array> {
        self.bytes.open_array(desc)
    }
}
