//! Blocks to tree. The names of blocks, split at `/`, are paths. Meshes are groups of coordinate
//! arrays, stitched blocks are groups that refer to their members.

mod builder;
mod paths;
pub(crate) mod station;

use spile_core::format::{Native, Object, Region, RegionKind, Salvage};
use spile_core::{
    Attrs, Dataset, Error, ErrorKind, Limits, NodeId, OpenOptions, Parsed, Report, Result, Source,
    Tree, Value,
};

pub(crate) use self::builder::Builder;
pub(crate) use self::paths::split_path;
use crate::block::{Block, SALVAGE, read_headers};
use crate::read::File;
use crate::salvage;
use crate::semantics::{centred, surfaces};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, RunInfo};
use crate::wire::{FileHeader, REVISION};

/// Attribute with the type of the block. All nodes that are blocks have it.
pub(crate) const TYPE: &str = "sdf_type";
/// Attribute with the name of the block, if it differs from the path.
pub(crate) const NAME: &str = "sdf_name";
/// Attribute with the name of the block, if it is more than the last part of the path (CF).
pub(crate) const LONG_NAME: &str = "long_name";
/// Attribute with the data type of the block, if it does not follow from the element type.
pub(crate) const DATATYPE: &str = "sdf_datatype";
/// Attribute with the bytes of the metadata of a block of an unknown type.
pub(crate) const BLOCK_INFO: &str = "sdf_block_info";

/// Opens the file in `source`, with computed arrays if the options ask for them.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut report = Report::default();
    let limits = &options.limits;
    let file = match File::from_source(source.clone(), limits) {
        Err(error) if error.kind() == ErrorKind::Truncated && !options.require_complete => {
            intact(&source, error, limits, &mut report)?
        }
        opened => opened?,
    };
    warn_of_revision(file.header(), &mut report);
    let derived = options.derived.then_some(&source);
    let built = build(file.header(), file.blocks(), derived, limits)?;
    report.findings.extend(built.report.findings);
    let parsed = Parsed::new(source, built.tree).with_summary(summary(&file));
    Ok(parsed.with_warnings(report.findings).with_native(file))
}

/// The complete blocks of a truncated or unfinished file. Fails with `error` if there are none.
fn intact(source: &Source, error: Error, limits: &Limits, report: &mut Report) -> Result<File> {
    let header = FileHeader::read(source)?;
    let mut found = Salvage::default();
    let blocks = salvage::intact_blocks(source, &header, limits, &mut found)?;
    if blocks.is_empty() {
        return Err(error);
    }
    let finding = report.warn(error.code(), format!("incomplete file: {}", error.message()));
    finding.in_object(error.object().unwrap_or("file header"));
    if let Some(offset) = error.offset() {
        finding.at(offset);
    }
    finding.hint(SALVAGE);
    for lost in found.lost {
        report.error("sdf-051", format!("missing: {lost}")).in_object("incomplete file");
    }
    Ok(File::from_blocks(source.clone(), header, blocks, limits))
}

/// Warns of a revision that is newer than those that are known (sdf-020).
pub(crate) fn warn_of_revision(file: &FileHeader, report: &mut Report) {
    if file.revision > REVISION {
        let revision = file.revision;
        let message = format!("revision 1.{revision} is not supported; read as 1.{REVISION}");
        report.warn("sdf-020", message).in_object("file header").at(12);
    }
}

/// The tree of a file.
pub(crate) struct Built {
    pub(crate) tree: Tree,
    /// Objects that cannot be read, and computed arrays that were omitted.
    pub(crate) report: Report,
    /// Node of each block.
    pub(crate) nodes: Vec<Option<NodeId>>,
}

/// Builds the tree of a file, with computed arrays if its bytes are given as `derived`.
pub(crate) fn build(
    file: &FileHeader,
    blocks: &[Block],
    derived: Option<&Source>,
    limits: &Limits,
) -> Result<Built> {
    let mut builder = Builder::new(file, blocks, limits);
    builder.add_root_attrs()?;
    builder.tree.reserve(blocks.len() + blocks.len() / 8);
    for k in builder.order.clone() {
        builder.add_block(k)?;
    }
    for k in 0..blocks.len() {
        builder.set_coordinates(k)?;
    }
    if let Some(source) = derived {
        for k in 0..blocks.len() {
            builder.add_derived(k)?;
        }
        centred::complete_vectors(&mut builder.tree)?;
        surfaces::add(&mut builder, source)?;
    }
    builder.add_stitched()?;
    let Builder { tree, report, nodes, .. } = builder;
    Ok(Built { tree, report, nodes })
}

/// Summary shown by `spile info`.
fn summary(file: &File) -> Attrs {
    let header = file.header();
    let mut rows = Attrs::from([
        ("code", header.code_name.as_str().into()),
        ("step", Value::Int(header.step.into())),
        ("time", header.time.into()),
        ("revision", format!("{}.{}", header.version, header.revision).into()),
        ("byte order", format!("{:?}", header.order).to_lowercase().into()),
        ("blocks", (file.blocks().len() as u64).into()),
        ("job", format!("{}.{:03}", header.jobid.0, header.jobid.1).into()),
    ]);
    let flags = [
        (header.restart, "restart dump"),
        (header.subdomain, "one subdomain"),
        (header.station, "stations"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, label)| *label).collect();
    if !flags.is_empty() {
        rows.push("kind", flags.join(", "));
    }
    for block in file.blocks() {
        if let Meta::RunInfo(info) = &block.meta {
            rows.extend(run_info(info));
        }
    }
    rows
}

/// Run information as attributes, with the names of the specification.
pub(crate) fn run_info(info: &RunInfo) -> Attrs {
    let int = |v: i32| Value::Int(v.into());
    Attrs::from([
        ("code_version", int(info.code_version)),
        ("code_revision", int(info.code_revision)),
        ("commit_id", info.commit_id.as_str().into()),
        ("sha1sum", info.sha1sum.as_str().into()),
        ("compile_machine", info.compile_machine.as_str().into()),
        ("compile_flags", info.compile_flags.as_str().into()),
        ("defines", Value::Int(info.defines)),
        ("compile_date", int(info.compile_date)),
        ("run_date", int(info.run_date)),
        ("io_date", int(info.io_date)),
        ("minor_rev", int(info.minor_rev)),
    ])
}

impl Native for File {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let (source, file, blocks) = (self.source(), self.header(), self.blocks());
        let run = format!("{} step {}", file.code_name, file.step);
        let len = file.first_block.min(source.len());
        let mut all = vec![Region::new(0, len, RegionKind::Header, "file header", run)];
        let mut add_headers = |blocks: &[Block], suffix: &str| {
            for block in blocks {
                let info = block.header.info_length.unwrap_or(0).max(block.meta_length);
                let len = block.meta_offset - block.offset + info;
                let name = format!("{}{suffix}", block.header.id);
                let kind = RegionKind::Header;
                all.push(Region::new(block.offset, len, kind, name, block.kind().name()));
            }
        };
        // If a block header is damaged, only the headers in the summary are listed.
        add_headers(&read_headers(source, file, self.limits()).unwrap_or_default(), "");
        if blocks.first().is_some_and(|b| b.offset != file.first_block) {
            add_headers(blocks, " (summary)");
        }
        for block in blocks.iter().filter(|b| b.header.data_length > 0) {
            let text = matches!(block.kind(), BlockType::Source | BlockType::Datablock);
            let kind = if text { RegionKind::Text } else { RegionKind::Data };
            let (offset, len) = (block.header.data_location, block.header.data_length);
            let (name, datatype) = (format!("{} data", block.header.id), block.header.datatype);
            all.push(Region::new(offset, len, kind, name, datatype.name()));
        }
        // Members of a contiguous block are inside its data; the longest region is reported.
        all.sort_by_key(|r| (r.offset, std::cmp::Reverse(r.len)));
        let mut end = 0;
        for mut region in all {
            region.len = region.len.min(source.len().saturating_sub(region.offset));
            if region.len > 0 && region.offset >= end {
                end = region.offset + region.len;
                each(region)?;
            }
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let stored = |b: &&Block| b.kind() != BlockType::Scrubbed && b.data().len > 0;
        for block in self.blocks().iter().filter(stored) {
            let array = block.raw(self.header());
            let object = Object::new(&block.header.name, block.kind().name(), array);
            each(Object { id: Some(block.header.id.clone()), ..object })?;
        }
        Ok(())
    }
}
