//! NumPy's `.npy`: one array behind a short header.
//!
//! Specification: NEP 1 and the module `numpy.lib.format`, versions 1.0 to 3.0.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | the header and its dictionary |
//! | `lib` | the tree view |
//! | `write` | one array of any tree |
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

mod wire;
mod write;

use spile_core::error::{Error, Result};
use spile_core::format::{Format, FormatInfo, Grade, Head, Object, Reader, Region, Role, Score};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};

use wire::Header;

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
        let header = Header::read(&source, limits)?;
        let mut tree = Tree::new(limits);
        tree.add_array(ROOT, "data", header.describe()?)?;
        Ok(Self { source, header, tree })
    }
}

impl Header {
    fn describe(&self) -> Result<ArrayDesc> {
        let bytes = self.shape.bytes(self.dtype.size())?;
        let extents = Extents::one(self.data_offset, bytes);
        let layout = Layout::Plain { extents, order: self.order };
        Ok(ArrayDesc::new(self.dtype, self.shape.clone(), layout))
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
        let bytes = header.shape.bytes(header.dtype.size())?;
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
        each(Object {
            path: "data".into(),
            id: None,
            frame: None,
            kind: self.header.descr.clone(),
            array: self.header.describe()?,
        })
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
                let array = file.header.describe()?;
                let end = file.header.data_offset + array.bytes()?;
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
