//! Validation rules, each with its code. sdf-001 to sdf-017 are errors raised while reading; codes
//! from sdf-020 on are findings about readable files.

use std::collections::{HashMap, HashSet};

use sha2::Digest;
use spile_core::error::Result;
use spile_core::layout::Extent;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::Shape;
use spile_core::source::Source;

use crate::index::{self, Block, Budget, SALVAGE};
use crate::salvage::{is_complete, is_copy};
use crate::semantics::Meshes;
use crate::to_tree::station;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta};
use crate::wire::{DataType, FILE_HEADER, FileHeader, REVISION};

/// Checks the file in `source`; `strict` adds notes about common deviations (sdf-045).
pub(crate) fn check(source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
    let mut report = Report::default();
    let read = FileHeader::read(source)
        .and_then(|file| index::read(source, &file, limits).map(|blocks| (file, blocks)));
    match read {
        Ok((file, blocks)) => check_blocks(source, &file, &blocks, limits, strict, &mut report)?,
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}

fn check_blocks(
    source: &Source,
    file: &FileHeader,
    blocks: &[Block],
    limits: &Limits,
    strict: bool,
    report: &mut Report,
) -> Result<()> {
    if file.revision > REVISION {
        let message =
            format!("revision 1.{} is not supported; read as 1.{REVISION}", file.revision);
        report.warn("sdf-020", message).in_object("file header").at(12);
    }
    if file.nblocks == 0 {
        let message = "the file contains no blocks";
        report.warn("sdf-021", message).in_object("file header").at(68);
    }
    check_summary(source, file, blocks, limits, report)?;
    check_count(source, file, blocks, limits, report);
    let mut seen = HashMap::new();
    let meshes = Meshes::new(blocks);
    let ids: HashSet<&str> = blocks.iter().map(|b| b.header.id.as_str()).collect();
    for block in blocks {
        let (title, at) = (block.title(), block.offset);
        if let Err(error) = block.require_data(source) {
            report.absorb(error)?;
        }
        if let Some(structure) = overlap(block, file) {
            let message = format!("the data overlap the {structure}");
            report.error("sdf-046", message).in_object(&title).at(block.data().offset);
        }
        if let Some(first) = seen.insert(block.header.id.as_str(), at) {
            let message = format!("duplicate identifier: also used by the block at byte {first}");
            report.warn("sdf-033", message).in_object(&title).at(at);
        }
        match block.kind() {
            BlockType::Scrubbed => {
                report.note("sdf-036", "deleted block, skipped").in_object(&title).at(at);
            }
            BlockType::Null => {
                report.warn("sdf-037", "block type is null").in_object(&title).at(at);
            }
            kind if matches!(block.meta, Meta::Other(_)) => {
                let message = format!("unknown {}; read as bytes", kind.name());
                report.note("sdf-036", message).in_object(&title).at(at);
            }
            _ => {}
        }
        let info = block.header.info_length.unwrap_or(block.meta_length);
        if info < block.meta_length {
            let message = format!(
                "expected {} bytes of metadata, the header states {info}",
                block.meta_length
            );
            report.warn("sdf-041", message).in_object(&title).at(at);
        }
        check_size(block, file, report);
        if let Meta::Datablock { checksum_type, checksum, .. } = &block.meta
            && let Some(found) = compute_checksum(source, block, checksum_type)?
            && !found.eq_ignore_ascii_case(checksum)
        {
            let message = format!("{checksum_type} checksum: expected {checksum}, found {found}");
            report.warn("sdf-043", message).in_object(&title).at(block.data().offset);
        }
        check_references(block, blocks, &meshes, &ids, strict, report);
    }
    Ok(())
}

/// The header or summary that the data of a block overlap, if any.
fn overlap(block: &Block, file: &FileHeader) -> Option<&'static str> {
    if let Meta::Constant(_) = block.meta {
        return None;
    }
    let data = block.data();
    let end = data.offset.saturating_add(data.len);
    let own = block.meta_offset + block.meta_length;
    let structures = [
        ("file header", 0, file.first_block.min(FILE_HEADER)),
        ("summary", file.summary_location, file.summary_location.saturating_add(file.summary_size)),
        ("header of the block", block.offset, own),
    ];
    let overlaps = |&(_, from, to): &(_, u64, u64)| from < to && data.offset < to && from < end;
    structures.into_iter().find(overlaps).filter(|_| data.len > 0).map(|(name, ..)| name)
}

/// Compares the summary with the block headers.
fn check_summary(
    source: &Source,
    file: &FileHeader,
    blocks: &[Block],
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    if file.summary_size == 0 {
        if file.nblocks > 0 && !file.station {
            report
                .note("sdf-022", "no summary; blocks are read from their headers")
                .in_object("file header")
                .at(56);
        }
        return Ok(());
    }
    // The blocks were read from their headers because the summary is damaged.
    if blocks.first().is_some_and(|b| b.offset == file.first_block) {
        if let Err(error) = index::summary(source, file, limits) {
            let message = format!("damaged summary: {}; the blocks are intact", error.message());
            let at = error.offset().unwrap_or(file.summary_location);
            report.error("sdf-023", message).in_object("summary").at(at).hint(SALVAGE);
        }
        return Ok(());
    }
    let inline = match index::inline(source, file, limits) {
        Ok(inline) => inline,
        Err(error) => {
            let at = error.offset().unwrap_or(file.first_block);
            let message = error.message().to_string();
            // An exceeded limit is not a finding.
            Report::default().absorb(error)?;
            let message = format!("damaged block header: {message}; the summary is intact");
            report.error("sdf-024", message).in_object("blocks").at(at).hint(SALVAGE);
            return Ok(());
        }
    };
    for (copy, block) in blocks.iter().zip(&inline) {
        let mut differing = Vec::new();
        let (a, b) = (&copy.header, &block.header);
        let mut compare = |name: &'static str, same: bool| {
            if !same {
                differing.push(name);
            }
        };
        compare("block_id", a.id == b.id);
        compare("block_name", a.name == b.name);
        compare("blocktype", a.blocktype == b.blocktype);
        compare("data_location", a.data_location == b.data_location);
        compare("data_length", a.data_length == b.data_length);
        compare("ndims", a.ndims == b.ndims);
        compare("metadata", same_metadata(&copy.meta, &block.meta));
        let only_datatype = differing.is_empty() && matches!(copy.meta, Meta::Stitched(_));
        if a.datatype != b.datatype {
            differing.push("datatype");
        }
        if differing.is_empty() {
            continue;
        }
        let message = format!(
            "summary and block header at byte {} differ in {}",
            block.offset,
            differing.join(", ")
        );
        // The Fortran library writes different data types for blocks without data.
        let finding = if only_datatype {
            report.note("sdf-026", message)
        } else {
            report.warn("sdf-025", message)
        };
        finding.in_object(copy.title()).at(copy.offset);
    }
    Ok(())
}

/// Reports a block after the last one according to the file header; readers ignore it.
fn check_count(
    source: &Source,
    file: &FileHeader,
    blocks: &[Block],
    limits: &Limits,
    report: &mut Report,
) {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return };
    let end = match file.summary_size {
        0 => source.len(),
        _ if last.offset < file.summary_location => file.summary_location,
        size => file.summary_location.saturating_add(size),
    };
    let at = last.header.next;
    let next = Block::read(source, file, at, &mut Budget::new(file, limits));
    let another = |block: &Block| is_complete(block, source) && !is_copy(block, first);
    if at < end && next.as_ref().is_ok_and(another) {
        let message = format!("expected {} blocks, found another at byte {at}", file.nblocks);
        report.error("sdf-027", message).in_object("file header").at(68).hint(SALVAGE);
    }
}

/// Equality with NaN equal to NaN.
fn same_metadata(a: &Meta, b: &Meta) -> bool {
    a == b || format!("{a:?}") == format!("{b:?}")
}

/// Checksum of the data of `block`, in hexadecimal; `None` for algorithms that are not supported and
/// if data are missing.
fn compute_checksum(source: &Source, block: &Block, algorithm: &str) -> Result<Option<String>> {
    match algorithm.to_ascii_lowercase().as_str() {
        _ if block.require_data(source).is_err() => Ok(None),
        "md5" => digest::<md5::Md5>(source, block.data()).map(Some),
        "sha256" => digest::<sha2::Sha256>(source, block.data()).map(Some),
        _ => Ok(None),
    }
}

fn digest<D: Digest>(source: &Source, data: Extent) -> Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; data.len.min(64 << 10) as usize];
    let mut at = data.offset;
    let end = data.offset.saturating_add(data.len);
    while at < end {
        let part = &mut buffer[..(end - at).min(64 << 10) as usize];
        source.read_exact_at(at, part)?;
        digest.update(&part);
        at += part.len() as u64;
    }
    Ok(digest.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Compares the length of the data with the metadata.
fn check_size(block: &Block, file: &FileHeader, report: &mut Report) {
    let length = block.header.data_length;
    let known = block.header.datatype.dtype(file.order);
    let elements = match &block.meta {
        Meta::Mesh(_)
        | Meta::PointMesh(_)
        | Meta::PlainVariable(_)
        | Meta::PointVariable(_)
        | Meta::Array(_)
        | Meta::CpuSplit { .. } => block.meta.elements(block.kind()),
        Meta::Station(s) => {
            let rows = station::rows(block, s);
            if rows < s.nelements {
                let message = format!("expected {} rows, found {rows}", s.nelements);
                report.warn("sdf-042", message).in_object(block.title()).at(block.offset);
            }
            let (readable, all) = (station::readable(block, s, file), s.variable_ids.len());
            if readable < all {
                let message = station::unreadable(readable, all);
                report.warn("sdf-044", message).in_object(block.title()).at(block.offset);
            }
            return;
        }
        _ => return,
    };
    let Some(dtype) = known else {
        let message = format!("data of type {}; read as bytes", block.header.datatype.name());
        report.warn("sdf-037", message).in_object(block.title()).at(block.offset + 60);
        return;
    };
    let expected = elements.and_then(|n| n.checked_mul(dtype.size() as u64));
    let (title, at) = (block.title(), block.offset + 48);
    match expected {
        Some(expected) if expected == length => {}
        Some(expected) if expected < length => {
            let known = match (&block.meta, block.header.datatype) {
                (Meta::Array(_), DataType::Integer4) if length == 2 * expected => {
                    " (known defect of the Fortran library: 8-byte integers)"
                }
                (Meta::PointVariable(_), DataType::Logical) if length == 4 * expected => {
                    " (known defect of the Fortran library: logical values)"
                }
                _ => "",
            };
            let message = format!(
                "expected {expected} bytes of data, found {length}; the first {expected} are used\
                 {known}"
            );
            report.warn("sdf-032", message).in_object(title).at(at);
        }
        _ => {
            let message = match expected {
                Some(expected) => format!("expected {expected} bytes of data, found {length}"),
                None => format!("{length} bytes of data do not fit the dimensions"),
            };
            let finding = report.warn("sdf-031", message);
            finding.in_object(title).at(at).hint("the data are read as a one-dimensional array");
        }
    }
}

/// Sanity checks of section 6: missing or inconsistent meshes and members.
fn check_references(
    block: &Block,
    blocks: &[Block],
    meshes: &Meshes,
    ids: &HashSet<&str>,
    strict: bool,
    report: &mut Report,
) {
    let (title, at) = (block.title(), block.offset);
    let mult = |mult: f64, report: &mut Report| {
        if mult == 0.0 || !mult.is_finite() {
            let message = format!("normalisation factor is {mult}; values are not scaled");
            report.warn("sdf-038", message).in_object(&title).at(at);
        }
    };
    let geometry = |mesh: &Mesh, report: &mut Report| {
        mesh.mults.iter().for_each(|m| mult(*m, report));
        if !(1..=3).contains(&mesh.geometry) {
            let message = format!("expected geometry 1, 2 or 3, found {}", mesh.geometry);
            report.warn("sdf-040", message).in_object(&title).at(at);
        }
    };
    let mesh = |id: &str, found: Option<usize>, report: &mut Report| {
        let found = found.map(|k| &blocks[k]);
        if found.is_none() && !id.is_empty() {
            let message = format!("no mesh named \"{id}\"; the variable has no coordinates");
            report.warn("sdf-030", message).in_object(&title).at(at);
        }
        found
    };
    match &block.meta {
        Meta::Mesh(m) => geometry(m, report),
        Meta::PointMesh(m) => geometry(&m.mesh, report),
        Meta::PointVariable(v) => {
            mult(v.mult, report);
            let found = meshes.of_points(v, blocks);
            let np = match mesh(&v.mesh_id, found, report).map(|b| &b.meta) {
                Some(Meta::PointMesh(points)) => points.np,
                _ => v.np,
            };
            if np != v.np {
                let message = format!("expected {np} points as in the mesh, found {}", v.np);
                report.warn("sdf-035", message).in_object(&title).at(at);
            }
        }
        Meta::PlainVariable(v) => {
            mult(v.mult, report);
            let found = meshes.find(&v.mesh_id);
            let found = mesh(&v.mesh_id, found, report).map(|b| &b.meta);
            let Some(Meta::Mesh(m)) = found else { return };
            let exact = |axis: usize, nodes: u64| {
                let on_nodes = v.stagger.checked_shr(axis as u32).unwrap_or(0) & 1 == 1;
                let cells = nodes.saturating_sub(1);
                v.dims[axis] == if on_nodes { nodes } else { cells }
            };
            let close = |axis: usize, nodes: u64| {
                v.dims[axis] == nodes || v.dims[axis].checked_add(1) == Some(nodes)
            };
            let rank = m.dims.len() == v.dims.len();
            let all = |fits: &dyn Fn(usize, u64) -> bool| {
                rank && m.dims.iter().enumerate().all(|(axis, nodes)| fits(axis, *nodes))
            };
            let message = format!(
                "{} points with stagger {} do not match {} nodes of the mesh",
                Shape::new(v.dims.clone()),
                v.stagger,
                Shape::new(m.dims.clone())
            );
            if !all(&close) {
                report.warn("sdf-034", message).in_object(&title).at(at);
            } else if strict && !all(&exact) {
                report.note("sdf-045", message).in_object(&title).at(at);
            }
        }
        Meta::Stitched(group) => {
            for id in group.ids.iter().filter(|id| !ids.contains(id.as_str())) {
                let message = format!("no block named \"{id}\"");
                report.warn("sdf-039", message).in_object(&title).at(at);
            }
        }
        _ => {}
    }
}
