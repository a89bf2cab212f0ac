//! The rules, each with its code. sdf-001 to sdf-015 are errors raised while reading; those from
//! sdf-020 on are findings about files that can be read.

use std::collections::{HashMap, HashSet};

use sha2::Digest;
use spile_core::error::Result;
use spile_core::layout::Extent;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::Shape;
use spile_core::source::Source;

use crate::coords::Meshes;
use crate::index::{self, Block, Budget, SALVAGE};
use crate::kind::BlockType;
use crate::meta::{Mesh, Meta};
use crate::salvage::{convincing, repeats};
use crate::station;
use crate::wire::{DataType, FILE_HEADER, FileHeader, REVISION};

pub(crate) fn check(source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
    let mut report = Report::default();
    let read = FileHeader::read(source)
        .and_then(|file| index::read(source, &file, limits).map(|blocks| (file, blocks)));
    match read {
        Ok((file, blocks)) => look(source, &file, &blocks, limits, strict, &mut report)?,
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}

fn look(
    source: &Source,
    file: &FileHeader,
    blocks: &[Block],
    limits: &Limits,
    strict: bool,
    report: &mut Report,
) -> Result<()> {
    if file.revision > REVISION {
        let message =
            format!("revision 1.{} is newer than 1.{REVISION}; read as that", file.revision);
        report.warn("sdf-020", message).in_object("file header").at(12);
    }
    if file.nblocks == 0 {
        let message =
            "the file has no blocks: closed without one, or the job died before the first";
        report.warn("sdf-021", message).in_object("file header").at(68);
    }
    copies(source, file, blocks, limits, report)?;
    uncounted(source, file, blocks, limits, report);
    let mut seen = HashMap::new();
    let meshes = Meshes::new(blocks);
    let ids: HashSet<&str> = blocks.iter().map(|b| b.header.id.as_str()).collect();
    for block in blocks {
        let (title, at) = (block.title(), block.offset);
        if let Err(error) = block.require_data(source) {
            report.absorb(error)?;
        }
        if let Some(place) = misplaced(block, file) {
            let message = format!("the data are said to be in the {place}");
            report.error("sdf-046", message).in_object(&title).at(block.data().offset);
        }
        if let Some(first) = seen.insert(block.header.id.as_str(), at) {
            let message = format!("the identifier is that of the block at byte {first}, too");
            report.warn("sdf-033", message).in_object(&title).at(at);
        }
        match block.kind() {
            BlockType::Scrubbed => {
                report.note("sdf-036", "deleted; passed over").in_object(&title).at(at);
            }
            BlockType::Null => {
                report.warn("sdf-037", "a block without a type").in_object(&title).at(at);
            }
            kind if matches!(block.meta, Meta::Other(_)) => {
                let message = format!("{} is not known; its bytes are kept", kind.name());
                report.note("sdf-036", message).in_object(&title).at(at);
            }
            _ => {}
        }
        let info = block.header.info_length.unwrap_or(block.meta_length);
        if info < block.meta_length {
            let message =
                format!("{info} bytes of metadata announced, {} found", block.meta_length);
            report.warn("sdf-041", message).in_object(&title).at(at);
        }
        sizes(block, file, report);
        if let Meta::Datablock { checksum_type, checksum, .. } = &block.meta {
            let sum = computed(source, block, checksum_type)?;
            if sum.is_some_and(|sum| !sum.eq_ignore_ascii_case(checksum)) {
                let message = format!("the {checksum_type} checksum is not that of the data");
                report.warn("sdf-043", message).in_object(&title).at(block.data().offset);
            }
        }
        relations(block, blocks, &meshes, &ids, strict, report);
    }
    Ok(())
}

/// Where the data of a block cannot be, if they are there.
fn misplaced(block: &Block, file: &FileHeader) -> Option<&'static str> {
    if let Meta::Constant(_) = block.meta {
        return None;
    }
    let data = block.data();
    let end = data.offset.saturating_add(data.len);
    let own = block.meta_offset + block.meta_length;
    let places = [
        ("file header", 0, file.first_block.min(FILE_HEADER)),
        ("summary", file.summary_location, file.summary_location.saturating_add(file.summary_size)),
        ("block's own header", block.offset, own),
    ];
    let inside = |&(_, from, to): &(_, u64, u64)| from < to && data.offset < to && from < end;
    places.into_iter().find(inside).filter(|_| data.len > 0).map(|(place, ..)| place)
}

/// The summary and the blocks themselves should say the same.
fn copies(
    source: &Source,
    file: &FileHeader,
    blocks: &[Block],
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    if file.summary_size == 0 {
        if file.nblocks > 0 && !file.station {
            report
                .note("sdf-022", "there is no summary; the blocks are found one by one")
                .in_object("file header")
                .at(56);
        }
        return Ok(());
    }
    // What was read is not the summary: it could not be.
    if blocks.first().is_some_and(|b| b.offset == file.first_block) {
        if let Err(error) = index::summary(source, file, limits) {
            let message =
                format!("the summary is damaged ({}); the blocks are not", error.message());
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
            // Over budget: that says nothing about the file.
            Report::default().absorb(error)?;
            let message = format!("a block header is damaged ({message}); the summary is not");
            report.error("sdf-024", message).in_object("blocks").at(at).hint(SALVAGE);
            return Ok(());
        }
    };
    for (copy, block) in blocks.iter().zip(&inline) {
        let mut other = Vec::new();
        let (a, b) = (&copy.header, &block.header);
        let mut compare = |name: &str, same: bool| {
            if !same {
                other.push(name.to_string());
            }
        };
        compare("block_id", a.id == b.id);
        compare("block_name", a.name == b.name);
        compare("blocktype", a.blocktype == b.blocktype);
        compare("data_location", a.data_location == b.data_location);
        compare("data_length", a.data_length == b.data_length);
        compare("ndims", a.ndims == b.ndims);
        compare("metadata", same_metadata(&copy.meta, &block.meta));
        let members_only = other.is_empty() && matches!(copy.meta, Meta::Stitched(_));
        if a.datatype != b.datatype {
            other.push("datatype".into());
        }
        if other.is_empty() {
            continue;
        }
        let message =
            format!("summary and block (byte {}) differ in {}", block.offset, other.join(", "));
        // The Fortran library itself writes two data types for blocks that have no data.
        let finding = if members_only {
            report.note("sdf-026", message)
        } else {
            report.warn("sdf-025", message)
        };
        finding.in_object(copy.title()).at(copy.offset);
    }
    Ok(())
}

/// A block behind the last one that the header counts: no reader would ever see it.
fn uncounted(
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
    let another = |block: &Block| convincing(block, source) && !repeats(block, first);
    if at < end && next.as_ref().is_ok_and(another) {
        let message = format!("{} blocks are counted, another one is at byte {at}", file.nblocks);
        report.error("sdf-027", message).in_object("file header").at(68).hint(SALVAGE);
    }
}

/// Equal, with a NaN equal to itself.
fn same_metadata(a: &Meta, b: &Meta) -> bool {
    a == b || format!("{a:?}") == format!("{b:?}")
}

/// The checksum of a block's data; nothing for kinds we do not compute, and where data are missing.
fn computed(source: &Source, block: &Block, kind: &str) -> Result<Option<String>> {
    match kind.to_ascii_lowercase().as_str() {
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

/// Does the length of the data fit what the metadata say?
fn sizes(block: &Block, file: &FileHeader, report: &mut Report) {
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
                let message = format!("{} rows announced, {rows} are there", s.nelements);
                report.warn("sdf-042", message).in_object(block.title()).at(block.offset);
            }
            let (readable, all) = (station::readable(block, s, file), s.variable_ids.len());
            if readable < all {
                let message = format!("only the first {readable} of {all} variables can be read");
                report.warn("sdf-044", message).in_object(block.title()).at(block.offset);
            }
            return;
        }
        _ => return,
    };
    let Some(dtype) = known else {
        let message =
            format!("data of type {}; they are kept as bytes", block.header.datatype.name());
        report.warn("sdf-037", message).in_object(block.title()).at(block.offset + 60);
        return;
    };
    let wanted = elements.and_then(|n| n.checked_mul(dtype.size() as u64));
    let (title, at) = (block.title(), block.offset + 48);
    match wanted {
        Some(wanted) if wanted == length => {}
        Some(wanted) if wanted < length => {
            let known = match (&block.meta, block.header.datatype) {
                (Meta::Array(_), DataType::Integer4) if length == 2 * wanted => {
                    " (the Fortran library writes 8-byte integers so)"
                }
                (Meta::PointVariable(_), DataType::Logical) if length == 4 * wanted => {
                    " (the Fortran library writes logical values so)"
                }
                _ => "",
            };
            let message =
                format!("{length} bytes of data, the elements are the first {wanted}{known}");
            report.warn("sdf-032", message).in_object(title).at(at);
        }
        _ => {
            let message = format!("{length} bytes of data are too few for the dimensions");
            let finding = report.warn("sdf-031", message);
            finding.in_object(title).at(at).hint("the elements are there, in one row");
        }
    }
}

/// The sanity checks of section 6: meshes and members that are missing or do not fit.
fn relations(
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
            let message = format!("the normalisation factor is {mult}; the values are not mapped");
            report.warn("sdf-038", message).in_object(&title).at(at);
        }
    };
    let geometry = |mesh: &Mesh, report: &mut Report| {
        mesh.mults.iter().for_each(|m| mult(*m, report));
        if !(1..=3).contains(&mesh.geometry) {
            let message = format!("geometry {} is not one of 1 to 3", mesh.geometry);
            report.warn("sdf-040", message).in_object(&title).at(at);
        }
    };
    let mesh = |id: &str, found: Option<usize>, report: &mut Report| {
        let found = found.map(|k| &blocks[k]);
        if found.is_none() && !id.is_empty() {
            let message =
                format!("mesh \"{id}\" is missing; the variable is kept without coordinates");
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
                let message = format!("{} points, the mesh has {np}", v.np);
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
            let near = |axis: usize, nodes: u64| {
                v.dims[axis] == nodes || v.dims[axis].checked_add(1) == Some(nodes)
            };
            let rank = m.dims.len() == v.dims.len();
            let all = |fits: &dyn Fn(usize, u64) -> bool| {
                rank && m.dims.iter().enumerate().all(|(axis, nodes)| fits(axis, *nodes))
            };
            let message = format!(
                "{} points with stagger {}, the mesh has {} nodes",
                Shape::new(v.dims.clone()),
                v.stagger,
                Shape::new(m.dims.clone())
            );
            if !all(&near) {
                report.warn("sdf-034", message).in_object(&title).at(at);
            } else if strict && !all(&exact) {
                report.note("sdf-045", message).in_object(&title).at(at);
            }
        }
        Meta::Stitched(group) => {
            for id in group.ids.iter().filter(|id| !ids.contains(id.as_str())) {
                let message = format!("part \"{id}\" is missing");
                report.warn("sdf-039", message).in_object(&title).at(at);
            }
        }
        _ => {}
    }
}
