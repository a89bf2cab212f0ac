//! An open SDF file: header and blocks.

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{Native, Object, Region, RegionKind};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::source::Source;
use spile_core::tree::{Attrs, Tree, Value};

use crate::index::{self, Block};
use crate::to_tree;
use crate::wire::FileHeader;
use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;

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
        let blocks = index::read(&source, &header, limits)?;
        for block in &blocks {
            block.require_data(&source)?;
        }
        Ok(Self { source, header, blocks, limits: *limits })
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
        let dataset = Dataset::new(self.source.clone(), Tree::new(&self.limits));
        dataset.open_array(&block.raw(&self.header)).map_err(|e| e.in_object(block.title()))
    }

    /// Key facts for people.
    pub(crate) fn summary(&self) -> Attrs {
        let header = &self.header;
        let mut rows = Attrs::from([
            ("code", header.code_name.as_str().into()),
            ("step", Value::Int(header.step.into())),
            ("time", header.time.into()),
            ("revision", format!("{}.{}", header.version, header.revision).into()),
            ("byte order", format!("{:?}", header.order).to_lowercase().into()),
            ("blocks", (self.blocks.len() as u64).into()),
            ("job", format!("{}.{:03}", header.jobid.0, header.jobid.1).into()),
        ]);
        let flags = [
            (header.restart, "restart dump"),
            (header.subdomain, "one subdomain"),
            (header.station, "stations"),
        ];
        let flags: Vec<&str> =
            flags.iter().filter(|(set, _)| *set).map(|(_, label)| *label).collect();
        if !flags.is_empty() {
            rows.push("kind", flags.join(", "));
        }
        for block in &self.blocks {
            if let Meta::RunInfo(info) = &block.meta {
                rows.extend(to_tree::run_info(info));
            }
        }
        rows
    }
}

impl Native for File {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all = vec![Region {
            offset: 0,
            len: self.header.first_block.min(self.source.len()),
            kind: RegionKind::Header,
            name: "file header".into(),
            value: format!("{} step {}", self.header.code_name, self.header.step),
        }];
        let mut add_headers = |blocks: &[Block], suffix: &str| {
            for block in blocks {
                let info = block.header.info_length.unwrap_or(0).max(block.meta_length);
                all.push(Region {
                    offset: block.offset,
                    len: block.meta_offset - block.offset + info,
                    kind: RegionKind::Header,
                    name: format!("{}{suffix}", block.header.id),
                    value: block.kind().name(),
                });
            }
        };
        // If a block header is damaged, only the headers in the summary are listed.
        let inline = index::inline(&self.source, &self.header, &self.limits).unwrap_or_default();
        add_headers(&inline, "");
        if self.blocks.first().is_some_and(|b| b.offset != self.header.first_block) {
            add_headers(&self.blocks, " (summary)");
        }
        for block in self.blocks.iter().filter(|b| b.header.data_length > 0) {
            let text = matches!(block.kind(), BlockType::Source | BlockType::Datablock);
            all.push(Region {
                offset: block.header.data_location,
                len: block.header.data_length,
                kind: if text { RegionKind::Text } else { RegionKind::Data },
                name: format!("{} data", block.header.id),
                value: block.header.datatype.name(),
            });
        }
        // Members of a contiguous block are inside its data; the longest region is reported.
        all.sort_by_key(|r| (r.offset, std::cmp::Reverse(r.len)));
        let mut end = 0;
        for mut region in all {
            region.len = region.len.min(self.source.len().saturating_sub(region.offset));
            if region.len > 0 && region.offset >= end {
                end = region.offset + region.len;
                each(region)?;
            }
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for block in self.blocks.iter().filter(|b| b.kind() != BlockType::Scrubbed) {
            if block.data().len == 0 {
                continue;
            }
            each(Object {
                path: block.header.name.clone(),
                id: Some(block.header.id.clone()),
                frame: None,
                kind: block.kind().name(),
                array: block.raw(&self.header),
            })?;
        }
        Ok(())
    }
}
