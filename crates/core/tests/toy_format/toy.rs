//! A minimal format: a header, an attribute, one array.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | `TOY1` |
//! | 4 | length of the note, little-endian |
//! | 4 + 4 | rows and columns |
//! | ... | the note |
//! | rows x columns x 2 | 16-bit numbers, big-endian, row by row |

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, Native, Object,
    OpenOptions, Parsed, Region, RegionKind, WriteOptions,
};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::Report;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{Attrs, ROOT, Tree};
use spile_core::wire::{self, ByteOrder, Wire};

/// A defect of the implementation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Indexes out of bounds for a wrong length of the note.
    Panics,
    /// Allocates the length of the note without checking it.
    Allocates,
    /// Returns an `Io` error for a truncated file.
    IoError,
    /// Returns errors without a location.
    NoLocation,
    /// Never returns for a truncated header.
    Hangs,
    /// Does not write the note.
    LosesNote,
    /// Recognises every file.
    RecognisesAll,
    /// Ignores the limits.
    IgnoresLimits,
    /// Lists a region past the end of the file.
    LongRegion,
}

pub(crate) struct Toy(pub(crate) Fault);

static INFO: FormatInfo = FormatInfo {
    name: "toy",
    title: "Toy",
    users: "tests",
    specification: "this file",
    extensions: &["toy"],
    read: Grade::Complete,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::None,
};

const MAGIC: &[u8] = b"TOY1";
const HEADER: u64 = 16;

struct Open {
    tree: Tree,
    note: String,
    data: u64,
    array: ArrayDesc,
}

/// A valid file.
pub(crate) fn file(note: &str, rows: u32, columns: u32) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for number in [note.len() as u32, rows, columns] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(note.as_bytes());
    bytes.extend((0..rows * columns).flat_map(|k| ((k * 37) as u16).to_be_bytes()));
    bytes
}

impl Toy {
    fn note(&self, source: &Source, len: u32) -> Result<String> {
        match self.0 {
            Fault::Panics => {
                let all = source.read_vec(HEADER, source.len() - HEADER)?;
                return Ok(String::from_utf8_lossy(&all[..len as usize]).into());
            }
            Fault::Allocates => drop(Vec::<u8>::with_capacity(len as usize)),
            _ => {}
        }
        let bytes = source.read_vec(HEADER, u64::from(len))?;
        Ok(String::from_utf8_lossy(&bytes).into())
    }

    fn read(&self, source: &Source, limits: &Limits) -> Result<Open> {
        let head = wire::fetch(source, 0, HEADER as usize)?;
        if self.0 == Fault::Hangs && head.len() < HEADER as usize && head.starts_with(MAGIC) {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        let mut fields = Wire::new(&head, 0, ByteOrder::Little, "toy-002");
        fields.expect(MAGIC, "toy-001")?;
        let (len, rows, columns) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let note = self.note(source, len)?;
        let data = HEADER + u64::from(len);
        let shape = Shape::new([u64::from(rows), u64::from(columns)]);
        let dtype = DType::U16.with_order(ByteOrder::Big);
        let bytes = shape.bytes(dtype.size()).map_err(|e| e.at(8))?;
        source.require(data, bytes)?;
        let limits = if self.0 == Fault::IgnoresLimits { Limits::default() } else { *limits };
        let mut tree = Tree::new(&limits);
        let extents = Extents::one(data, bytes);
        let array = ArrayDesc::new(dtype, shape, Layout::Plain { extents, order: Order::C });
        let id = tree.add_array(ROOT, "data", array.clone())?;
        tree.push_attr(id, "note", note.as_str())?;
        Ok(Open { tree, note, data, array })
    }

    /// Applies the defect to an error.
    fn spoil(&self, error: Error) -> Error {
        match (self.0, error.kind()) {
            (Fault::IoError, ErrorKind::Truncated) => {
                std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()
            }
            (Fault::NoLocation, ErrorKind::Truncated) => Error::truncated("toy-002", "too short"),
            _ => error,
        }
    }
}

impl Format for Toy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> u8 {
        if self.0 == Fault::RecognisesAll || head.bytes.starts_with(MAGIC) { 90 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let mut open = self.read(&source, &options.limits).map_err(|e| self.spoil(e))?;
        if self.0 == Fault::LongRegion {
            open.data += 1;
        }
        let summary = Attrs::from([("note", open.note.as_str().into())]);
        let tree = std::mem::replace(&mut open.tree, Tree::new(&options.limits));
        Ok(Parsed::new(source, tree).with_summary(summary).with_native(open))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Toy {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match self.read(source, limits) {
            Ok(open) => {
                let end = open.data + open.array.bytes()?;
                if strict && end < source.len() {
                    report.warn("toy-003", "bytes after the data").at(end);
                }
            }
            Err(error) => report.absorb(self.spoil(error))?,
        }
        Ok(report)
    }
}

impl FormatWriter for Toy {
    fn losses(&self, _: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Ok(Vec::new())
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let (id, node, _) = content.arrays().next().expect("one array");
        let note = node.attrs.get_str("note").filter(|_| self.0 != Fault::LosesNote).unwrap_or("");
        let array = content.array_at(id)?;
        let [rows, columns] = array.shape().lengths() else { panic!("two dimensions") };
        let mut bytes = MAGIC.to_vec();
        for number in [note.len() as u64, *rows, *columns] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(note.as_bytes());
        for number in array.read_bytes(&Selection::all(), Axes::Order(Order::C))?.as_chunks::<2>().0
        {
            bytes.extend([number[1], number[0]]);
        }
        sink.write_all(&bytes)?;
        Ok(Vec::new())
    }
}

impl Native for Open {
    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let region = |offset, len, kind, name: &str| Region {
            offset,
            len,
            kind,
            name: name.into(),
            value: String::new(),
        };
        each(region(0, 4, RegionKind::Header, "magic"))?;
        each(region(4, HEADER - 4, RegionKind::Header, "lengths"))?;
        each(region(HEADER, self.data - HEADER, RegionKind::Text, "note"))?;
        each(region(self.data, self.array.bytes()?, RegionKind::Data, "data"))
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let array = self.array.clone();
        each(Object { path: "data".into(), id: None, frame: None, kind: "numbers".into(), array })
    }
}
