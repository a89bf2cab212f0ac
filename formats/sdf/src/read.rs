//! An open SDF file: its header and its blocks; the same with the tree view of them.

use std::ops::Deref;
use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::Finding;
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use crate::index::{self, Block};
use crate::kind::BlockType;
use crate::meta::Meta;
use crate::view;
use crate::wire::FileHeader;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Add arrays that are computed from others when they are read: fields on faces, edges and
    /// nodes averaged to the middle of the cells, the ranks of a run and the borders of their parts,
    /// Cartesian coordinates of cylindrical and spherical meshes, the surfaces of the grid and of
    /// obstacles in it.
    pub derived: bool,
}

/// An open SDF file. Opening reads header and metadata only.
pub struct File {
    source: Source,
    header: FileHeader,
    blocks: Vec<Block>,
    limits: Limits,
}

impl File {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, limits)
            .map_err(|e| e.with_path(path).with_format("sdf"))
    }

    /// Opens what is in `source`.
    pub fn from_source(source: Source, limits: &Limits) -> Result<Self> {
        let header = FileHeader::read(&source)?;
        let blocks = index::read(&source, &header, limits)?;
        for block in &blocks {
            block.require_data(&source)?;
        }
        Ok(Self { source, header, blocks, limits: *limits })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The blocks, in the order of the file.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks with that identifier or name; usually one, but writers do not always see to it.
    pub fn find<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |b| b.header.id == word || b.header.name == word)
    }

    /// All data of a block in a row, as its data type says.
    pub fn raw(&self, block: &Block) -> Result<Array> {
        let nothing = Tree::new(&self.limits);
        Array::open(&self.source, &nothing, &block.raw(&self.header), &self.limits)
            .map_err(|e| e.in_object(block.title()))
    }
}

/// A file with its tree.
pub struct View {
    file: File,
    tree: Tree,
    findings: Vec<Finding>,
}

impl View {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        Self::new(File::open(path, limits)?, Options::default())
    }

    /// Makes the tree of a file.
    pub fn new(file: File, options: Options) -> Result<Self> {
        let File { source, header, blocks, limits } = &file;
        let (tree, report) = view::tree(source, header, blocks, options, limits)?;
        Ok(Self { file, tree, findings: report.findings })
    }

    /// An array of the tree, by its path or its block's identifier.
    pub fn array(&self, path: &str) -> Result<Array> {
        let node = self.tree.node(self.tree.find(path)?);
        let desc = node
            .array
            .as_ref()
            .ok_or_else(|| Error::argument(format!("\"{path}\" is a group, not an array")))?;
        Array::open(&self.file.source, &self.tree, desc, &self.file.limits)
    }
}

/// What a file without a tree can do, one with a tree can do.
impl Deref for View {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Reader for View {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.file.source
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let header = &self.header;
        let mut rows: Vec<(String, Value)> = vec![
            ("code".into(), header.code_name.clone().into()),
            ("step".into(), Value::Int(header.step.into())),
            ("time".into(), header.time.into()),
            ("revision".into(), format!("{}.{}", header.version, header.revision).into()),
            ("byte order".into(), format!("{:?}", header.order).to_lowercase().into()),
            ("blocks".into(), (self.blocks.len() as u64).into()),
            ("job".into(), format!("{}.{:03}", header.jobid.0, header.jobid.1).into()),
        ];
        let flags = [
            (header.restart, "restart dump"),
            (header.subdomain, "one subdomain"),
            (header.station, "stations"),
        ];
        let flags: Vec<&str> =
            flags.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
        if !flags.is_empty() {
            rows.push(("kind".into(), flags.join(", ").into()));
        }
        for block in &self.blocks {
            if let Meta::RunInfo(info) = &block.meta {
                rows.extend(view::run_info(info));
            }
        }
        rows
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all = vec![Region {
            offset: 0,
            len: self.header.first_block.min(self.source.len()),
            role: Role::Header,
            name: "file header".into(),
            value: format!("{} step {}", self.header.code_name, self.header.step),
        }];
        let mut heads = |blocks: &[Block], place: &str| {
            for block in blocks {
                let info = block.header.info_length.unwrap_or(0).max(block.meta_length);
                all.push(Region {
                    offset: block.offset,
                    len: block.meta_offset - block.offset + info,
                    role: Role::Header,
                    name: format!("{}{place}", block.header.id),
                    value: block.kind().name(),
                });
            }
        };
        // Where the blocks themselves are damaged, what the summary says about them is left.
        let inline = index::inline(&self.source, &self.header, &self.limits).unwrap_or_default();
        heads(&inline, "");
        if self.blocks.first().is_some_and(|b| b.offset != self.header.first_block) {
            heads(&self.blocks, " (summary)");
        }
        for block in self.blocks.iter().filter(|b| b.header.data_length > 0) {
            let text = matches!(block.kind(), BlockType::Source | BlockType::Datablock);
            all.push(Region {
                offset: block.header.data_location,
                len: block.header.data_length,
                role: if text { Role::Text } else { Role::Data },
                name: format!("{} data", block.header.id),
                value: block.header.datatype.name(),
            });
        }
        // Members of a contiguous block lie inside it: the longest one tells.
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

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
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
