//! NumPy's `.npy`, one array behind a short header, and `.npz`, many of them in a zip archive.
//!
//! Specification: NEP 1 and the module `numpy.lib.format`, versions 1.0 to 3.0; for archives
//! APPNOTE.TXT of PKWARE, as far as NumPy uses it.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` `record` | the header and its dictionary; elements of several fields |
//! | `letters` | texts of 32-bit characters |
//! | `place` `inflate` | where an array's file lies: a file, a part of an archive, deflated |
//! | `lib` | the tree view of one array |
//! | `write` | one array of any tree |
//! | `npz` | archives: a file each for the zip structures, reading, writing, checking |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, source::Source};
//!
//! let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
//! bytes.extend(format!("{:<69}\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }").bytes());
//! bytes.extend([1, 0, 2, 0]);
//! let file = spile_npy::Npy.open(Source::memory(bytes), &Limits::default())?;
//! let (_, _, array) = file.tree().arrays().next().unwrap();
//! assert_eq!((array.dtype.to_string(), array.shape.to_string()), ("int16".into(), "2".into()));
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod inflate;
mod letters;
pub mod npz;
mod place;
mod record;
mod wire;
mod write;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Format, FormatInfo, Grade, Head, Object, Reader, Region, Role, Score};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

pub use npz::Npz;
use place::Place;
use wire::{Element, Header};

/// The format, for the registry.
pub struct Npy;

static INFO: FormatInfo = FormatInfo {
    name: "npy",
    title: "NumPy array",
    users: "everyone with Python",
    specification: "NEP 1",
    extensions: &["npy"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Partial,
    salvage: Grade::None,
};

struct File {
    source: Source,
    header: Header,
    tree: Tree,
}

impl File {
    fn open(source: Source, limits: &Limits) -> Result<Self> {
        let place = Place::file(&source);
        let header = Header::read(&place, limits)?;
        let mut tree = Tree::new(limits);
        header.add_to(&mut tree, ROOT, "data", &place)?;
        Ok(Self { source, header, tree })
    }
}

impl Header {
    /// Adds the array, or a group with the fields of its records.
    fn add_to(
        &self,
        tree: &mut Tree,
        parent: NodeId,
        name: &str,
        place: &Place<'_>,
    ) -> Result<NodeId> {
        let (fields, size) = match &self.element {
            Element::One(dtype) | Element::Time(dtype, _) => {
                let bytes = self.shape.bytes(dtype.size())?;
                let layout = place.layout(self.data_offset, bytes, self.order);
                let desc = ArrayDesc::new(*dtype, self.shape.clone(), layout);
                let id = tree.add_array(parent, name, desc)?;
                if let Element::Time(_, units) = &self.element {
                    tree.node_mut(id).attrs.push(("units".into(), Value::Text(units.clone())));
                }
                return Ok(id);
            }
            Element::Letters(count, order) => {
                let dtype = DType::text(4 * count);
                let bytes = self.shape.bytes(dtype.size())?;
                let layout =
                    letters::layout(place, self.data_offset, bytes, *count, *order, self.order);
                return tree.add_array(
                    parent,
                    name,
                    ArrayDesc::new(dtype, self.shape.clone(), layout),
                );
            }
            Element::Record(fields, size) => (fields, *size as u64),
        };
        let rows = match self.shape.lengths() {
            [] => 1,
            [rows] if place.deflated.is_none() => *rows,
            _ => {
                let message = "records in several dimensions or compressed are not read";
                return Err(Error::unsupported("npy-006", message).at(place.byte(0)));
            }
        };
        let group = tree.add_group(parent, name)?;
        for field in fields {
            let at = self.data_offset + field.offset as u64;
            let one = field.dtype.size() as u64;
            let layout = if self.shape.rank() == 0 {
                place.layout(at, one, self.order)
            } else {
                let bytes = if rows == 0 { 0 } else { (rows - 1) * size + one };
                let extents = Extents::one(place.offset + at, bytes);
                Layout::Rows { extents, stride: size, order: self.order }
            };
            let (above, last) = field.name.rsplit_once('/').unwrap_or(("", &field.name));
            let path = format!("{}/{above}", tree.node(group).path);
            let parent = if above.is_empty() { group } else { tree.group_at(&path)? };
            tree.add_array(parent, last, ArrayDesc::new(field.dtype, self.shape.clone(), layout))?;
        }
        Ok(group)
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
        let (major, minor) = self.header.version;
        vec![
            ("version".into(), format!("{major}.{minor}").into()),
            ("stored as".into(), self.header.descr.clone().into()),
            ("shape".into(), self.header.shape.to_string().into()),
        ]
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let header = &self.header;
        let bytes = header.shape.bytes(header.element.size())?;
        let mut emit = |offset, len, role, name: &str, value: String| {
            each(Region { offset, len, role, name: name.into(), value })
        };
        let start = header.dictionary_offset;
        emit(0, start, Role::Header, "magic", format!("version {}", header.version.0))?;
        emit(start, header.data_offset - start, Role::Header, "dictionary", header.descr.clone())?;
        emit(header.data_offset, bytes, Role::Data, "array", header.shape.to_string())?;
        let end = header.data_offset + bytes;
        if self.source.len() > end {
            emit(end, self.source.len() - end, Role::Unknown, "rest", String::new())?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in self.tree.arrays() {
            each(Object {
                path: node.path.clone(),
                id: None,
                frame: None,
                kind: match &self.header.element {
                    Element::One(_) | Element::Time(..) | Element::Letters(..) => {
                        self.header.descr.clone()
                    }
                    Element::Record(..) => array.dtype.numpy().unwrap_or_default(),
                },
                array: array.clone(),
            })?;
        }
        Ok(())
    }
}

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(wire::MAGIC) { 100 } else { 0 }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match File::open(source.clone(), limits) {
            Ok(file) => {
                let end = file.header.end()?;
                if source.len() > end {
                    let more = source.len() - end;
                    report.warn("npy-010", format!("{more} bytes follow the array")).at(end);
                }
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, limits)
    }
}

/// The array ends before its last element.
fn cut(offset: u64, message: String) -> Error {
    Error::truncated("npy-005", message).in_object("array").at(offset)
}
