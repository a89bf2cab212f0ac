//! Validation rules, each with its code. sdf-001 to sdf-019 are errors raised while reading; codes
//! from sdf-020 on are findings about readable files.

use std::collections::{HashMap, HashSet};

use sha2::Digest;
use spile_core::format::Checker;
use spile_core::{Extent, Finding, Limits, Report, Result, Shape, Source};

use crate::Sdf;
use crate::archive::{self, Archive};
use crate::block::{Block, Budget, SALVAGE, read_blocks, read_headers, read_summary};
use crate::salvage::{is_complete, is_copy};
use crate::semantics::Meshes;
use crate::to_tree::{self, station};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta};
use crate::wire::{DataType, FILE_HEADER, FileHeader};

impl Checker for Sdf {
    /// Checks the file in `source`; `strict` adds notes about common deviations (sdf-045).
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let opened = FileHeader::read(source).and_then(|file| {
            let blocks = read_blocks(source, &file, limits)?;
            // The findings of opening: objects that cannot be read.
            let built = to_tree::build(&file, &blocks, None, limits)?;
            Ok((file, blocks, built.report))
        });
        Report::of(opened, |(file, blocks, opening), report| {
            *report = opening;
            let (file, blocks) = (&file, &blocks[..]);
            let mut check = Check { source, file, blocks, limits, strict, report };
            check.file()?;
            check.blocks()
        })
    }
}

struct Check<'a> {
    source: &'a Source,
    file: &'a FileHeader,
    blocks: &'a [Block],
    limits: &'a Limits,
    strict: bool,
    report: &'a mut Report,
}

impl<'a> Check<'a> {
    fn warn(&mut self, block: &Block, code: &'static str, message: String) -> &mut Finding {
        self.report.warn(code, message).in_object(block.title()).at(block.offset)
    }

    fn note(&mut self, block: &Block, code: &'static str, message: String) {
        self.report.note(code, message).in_object(block.title()).at(block.offset);
    }

    /// Checks file header and summary.
    fn file(&mut self) -> Result<()> {
        to_tree::warn_of_revision(self.file, self.report);
        if self.file.nblocks == 0 {
            let message = "the file contains no blocks";
            self.report.warn("sdf-021", message).in_object("file header").at(68);
        }
        self.summary()?;
        self.count();
        Ok(())
    }

    fn blocks(&mut self) -> Result<()> {
        let mut seen = HashMap::new();
        let meshes = Meshes::new(self.blocks);
        let ids: HashSet<&str> = self.blocks.iter().map(|b| b.header.id.as_str()).collect();
        for block in self.blocks {
            if let Err(error) = block.require_data(self.source) {
                self.report.absorb(error)?;
            }
            if let Some(structure) = overlap(block, self.file) {
                let message = format!("the data overlap the {structure}");
                let finding = self.report.error("sdf-046", message);
                finding.in_object(block.title()).at(block.data().offset);
            }
            if let Some(first) = seen.insert(block.header.id.as_str(), block.offset) {
                let message =
                    format!("duplicate identifier: also used by the block at byte {first}");
                self.warn(block, "sdf-033", message);
            }
            match block.kind() {
                BlockType::Scrubbed => {
                    self.note(block, "sdf-036", "deleted block, skipped".into());
                }
                BlockType::Null => {
                    self.warn(block, "sdf-037", "block type is null".into());
                }
                kind if matches!(block.meta, Meta::Other(_)) => {
                    let message = format!("unknown {}; read as bytes", kind.name());
                    self.note(block, "sdf-048", message);
                }
                _ => {}
            }
            let info = block.header.info_length.unwrap_or(block.meta_length);
            if info < block.meta_length {
                let expected = block.meta_length;
                let message =
                    format!("expected {expected} bytes of metadata, the header states {info}");
                self.warn(block, "sdf-041", message);
            }
            self.size(block);
            if let Meta::Datablock { mimetype, checksum_type, checksum } = &block.meta
                && let Some(found) = compute_checksum(self.source, block, checksum_type)?
                && !found.eq_ignore_ascii_case(checksum)
                && !(mimetype.contains("tar") && self.is_checksum_of_members(block)?)
            {
                let message =
                    format!("{checksum_type} checksum: expected {checksum}, found {found}");
                self.warn(block, "sdf-043", message).at(block.data().offset);
            }
            self.references(block, &meshes, &ids);
        }
        Ok(())
    }

    /// Whether the checksum of an archive is that of its files one after another, as EPOCH computes it before it packs
    /// them. False for archives that cannot be unpacked.
    fn is_checksum_of_members(&self, block: &Block) -> Result<bool> {
        let Meta::Datablock { checksum_type, checksum, .. } = &block.meta else { return Ok(false) };
        let Extent { offset, len } = block.data();
        self.limits.allow(len, "the source code")?;
        let packed = self.source.read_vec(offset, len)?;
        let Ok(archive) = archive::unpack(&packed, "source", self.limits) else { return Ok(false) };
        let found = match checksum_type.to_ascii_lowercase().as_str() {
            "md5" => hexadecimal(&members::<md5::Md5>(&archive)),
            "sha256" => hexadecimal(&members::<sha2::Sha256>(&archive)),
            _ => return Ok(false),
        };
        Ok(found.eq_ignore_ascii_case(checksum))
    }

    /// Compares the summary with the block headers.
    fn summary(&mut self) -> Result<()> {
        let Self { source, file, blocks, limits, .. } = *self;
        if file.summary_size == 0 {
            if file.nblocks > 0 && !file.station {
                let message = "no summary; blocks are read from their headers";
                self.report.note("sdf-022", message).in_object("file header").at(56);
            }
            return Ok(());
        }
        // The blocks were read from their headers because the summary is damaged.
        if blocks.first().is_some_and(|b| b.offset == file.first_block) {
            if let Err(error) = read_summary(source, file, limits) {
                let message =
                    format!("damaged summary: {}; the blocks are intact", error.message());
                let at = error.offset().unwrap_or(file.summary_location);
                self.report.error("sdf-023", message).in_object("summary").at(at).hint(SALVAGE);
            }
            return Ok(());
        }
        let inline = match read_headers(source, file, limits) {
            Ok(inline) => inline,
            Err(error) => {
                let at = error.offset().unwrap_or(file.first_block);
                let message =
                    format!("damaged block header: {}; the summary is intact", error.message());
                // An exceeded limit is not a finding.
                Report::default().absorb(error)?;
                self.report.error("sdf-024", message).in_object("blocks").at(at).hint(SALVAGE);
                return Ok(());
            }
        };
        for (copy, block) in blocks.iter().zip(&inline) {
            let (a, b) = (&copy.header, &block.header);
            let fields = [
                ("block_id", a.id == b.id),
                ("block_name", a.name == b.name),
                ("blocktype", a.blocktype == b.blocktype),
                ("data_location", a.data_location == b.data_location),
                ("data_length", a.data_length == b.data_length),
                ("ndims", a.ndims == b.ndims),
                ("metadata", same_metadata(&copy.meta, &block.meta)),
                ("datatype", a.datatype == b.datatype),
            ];
            let differing = fields.iter().filter(|(_, same)| !same).map(|(name, _)| *name);
            let differing: Vec<&str> = differing.collect();
            if differing.is_empty() {
                continue;
            }
            let message = format!(
                "summary and block header at byte {} differ in {}",
                block.offset,
                differing.join(", ")
            );
            // The Fortran library writes different data types for blocks without data.
            if differing == ["datatype"] && matches!(copy.meta, Meta::Stitched(_)) {
                self.note(copy, "sdf-026", message);
            } else {
                self.warn(copy, "sdf-025", message);
            }
        }
        Ok(())
    }

    /// Reports a block after the last one according to the file header; readers ignore it.
    fn count(&mut self) {
        let Self { source, file, blocks, limits, .. } = *self;
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
            self.report.error("sdf-027", message).in_object("file header").at(68).hint(SALVAGE);
        }
    }

    /// Compares the length of the data with the metadata. Opening reports coordinates and station
    /// variables that cannot be read.
    fn size(&mut self, block: &Block) {
        let length = block.header.data_length;
        let mesh = matches!(block.meta, Meta::Mesh(_) | Meta::PointMesh(_));
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
                    self.warn(block, "sdf-042", message);
                }
                return;
            }
            _ => return,
        };
        let Some(dtype) = block.header.datatype.dtype(self.file.order) else {
            if !mesh {
                let name = block.header.datatype.name();
                let message = format!("data of type {name}; read as bytes");
                self.warn(block, "sdf-049", message).at(block.offset + 60);
            }
            return;
        };
        let at = block.offset + 48;
        match elements.and_then(|n| n.checked_mul(dtype.size() as u64)) {
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
                    "expected {expected} bytes of data, found {length}; the first {expected} are \
                     used{known}"
                );
                self.warn(block, "sdf-032", message).at(at);
            }
            _ if mesh => {}
            expected => {
                let message = match expected {
                    Some(expected) => format!("expected {expected} bytes of data, found {length}"),
                    None => format!("{length} bytes of data do not fit the dimensions"),
                };
                let hint = "the data are read as a one-dimensional array";
                self.warn(block, "sdf-031", message).at(at).hint(hint);
            }
        }
    }

    /// Sanity checks of section 6: missing or inconsistent meshes and members.
    fn references(&mut self, block: &Block, meshes: &Meshes, ids: &HashSet<&str>) {
        match &block.meta {
            Meta::Mesh(mesh) => self.geometry(block, mesh),
            Meta::PointMesh(points) => self.geometry(block, &points.mesh),
            Meta::PointVariable(v) => {
                self.factor(block, v.mult);
                let found = meshes.of_points(v, self.blocks);
                let np = match self.mesh(block, &v.mesh_id, found) {
                    Some(Meta::PointMesh(points)) => points.np,
                    _ => v.np,
                };
                if np != v.np {
                    let message = format!("expected {np} points as in the mesh, found {}", v.np);
                    self.warn(block, "sdf-035", message);
                }
            }
            Meta::PlainVariable(v) => {
                self.factor(block, v.mult);
                let found = meshes.find(&v.mesh_id);
                let Some(Meta::Mesh(m)) = self.mesh(block, &v.mesh_id, found) else { return };
                let axes = || m.dims.iter().zip(&v.dims).enumerate();
                let is_close = |(_, (nodes, points)): (usize, (&u64, &u64))| {
                    points == nodes || points.checked_add(1) == Some(*nodes)
                };
                let is_exact = |(axis, (nodes, points)): (usize, (&u64, &u64))| {
                    *points == nodes.saturating_sub(u64::from(!v.is_staggered(axis)))
                };
                let message = format!(
                    "{} points with stagger {} do not match {} nodes of the mesh",
                    Shape::new(v.dims.clone()),
                    v.stagger,
                    Shape::new(m.dims.clone())
                );
                if m.dims.len() != v.dims.len() || !axes().all(is_close) {
                    self.warn(block, "sdf-034", message);
                } else if self.strict && !axes().all(is_exact) {
                    self.note(block, "sdf-045", message);
                }
            }
            Meta::Stitched(group) => {
                for id in group.ids.iter().filter(|id| !ids.contains(id.as_str())) {
                    self.warn(block, "sdf-039", format!("no block named \"{id}\""));
                }
            }
            _ => {}
        }
    }

    /// Metadata of the mesh of a variable. Reports a mesh that is named but not found.
    fn mesh(&mut self, block: &Block, id: &str, found: Option<usize>) -> Option<&'a Meta> {
        if found.is_none() && !id.is_empty() {
            let message = format!("no mesh named \"{id}\"; the variable has no coordinates");
            self.warn(block, "sdf-030", message);
        }
        found.map(|k| &self.blocks[k].meta)
    }

    fn factor(&mut self, block: &Block, mult: f64) {
        if mult == 0.0 || !mult.is_finite() {
            let message = format!("normalisation factor is {mult}; values are not scaled");
            self.warn(block, "sdf-038", message);
        }
    }

    fn geometry(&mut self, block: &Block, mesh: &Mesh) {
        mesh.mults.iter().for_each(|mult| self.factor(block, *mult));
        if !(1..=3).contains(&mesh.geometry) {
            let message = format!("expected geometry 1, 2 or 3, found {}", mesh.geometry);
            self.warn(block, "sdf-040", message);
        }
    }
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
    source.for_each_block(data.offset, data.len, |bytes| {
        digest.update(bytes);
        Ok(())
    })?;
    Ok(hexadecimal(&digest.finalize()))
}

/// Digest of the files of an archive, one after another.
fn members<D: Digest>(archive: &Archive) -> Vec<u8> {
    let mut digest = D::new();
    archive.files.iter().for_each(|(_, data)| digest.update(data));
    digest.finalize().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
