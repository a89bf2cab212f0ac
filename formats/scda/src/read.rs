//! An open scda file: its sections, decoded where they follow the compression convention, and the
//! tree view of them.

use std::path::Path;
use std::sync::Arc;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

use crate::codec::Convention;
use crate::content::Content;
use crate::schema::view::{Doubt, view};
use crate::wire::{
    ENTRY, FILE_HEADER, FileHeader, Head, Kind, Raw, SECTION_HEADER, count, differences, read_sizes,
};

/// A section as the user sees it: one raw section, or two that follow the compression convention.
#[derive(Clone, Debug)]
pub struct Section {
    /// Type; the one that was encoded, where it was.
    pub kind: Kind,
    /// User string.
    pub user: Vec<u8>,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Decoded bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// Decoded bytes of all data.
    pub len: u64,
    /// Two raw sections of the compression convention.
    pub encoded: bool,
    /// The raw sections, one or two.
    pub raw: Vec<Raw>,
    /// Where the data are.
    pub array: ArrayDesc,
}

impl Section {
    /// First byte.
    pub fn offset(&self) -> u64 {
        self.raw[0].head.offset
    }

    fn plain(raw: Raw) -> Self {
        let extents = Extents::one(raw.data, raw.len);
        let (dtype, shape) = elements(raw.head.kind, raw.head.count, raw.head.size);
        let layout = match raw.head.kind {
            Kind::Varray => Layout::Ragged { starts: raw.starts.clone().into(), data: extents },
            _ => Layout::Plain { extents, order: Order::C },
        };
        Self {
            kind: raw.head.kind,
            user: raw.head.user.clone(),
            count: raw.head.count,
            size: raw.head.size,
            len: raw.len,
            encoded: false,
            array: ArrayDesc::new(dtype, shape, layout),
            raw: vec![raw],
        }
    }

    /// Joins a section of the convention with the one that follows (section 3.2 to 3.4).
    fn encoded(source: &Source, first: Raw, kind: Kind, limits: &Limits) -> Result<Self> {
        let bad = |message: String, at| Error::malformed("scda-011", message).at(at);
        let holder = if kind == Kind::Block { Kind::Block } else { Kind::Varray };
        let second = Raw::read(source, first.end, limits)?
            .filter(|second| second.head.kind == holder)
            .ok_or_else(|| {
                let letter = holder.letter();
                let message = format!("no {letter} section follows the announced compression");
                bad(message, first.end)
            })?;
        let (mut size, decoded) = if kind == Kind::Varray {
            if first.head.size != ENTRY || first.head.count != second.head.count {
                let message = format!(
                    "{} sizes of {} bytes announce {} compressed elements",
                    first.head.count, first.head.size, second.head.count
                );
                return Err(bad(message, first.head.offset + SECTION_HEADER));
            }
            (0, read_sizes(source, first.data, first.head.count, b'U', limits)?)
        } else {
            let entry = source.read_vec(first.data, ENTRY)?;
            let (size, _) = count(&entry, b'U', first.data)?;
            let number = if kind == Kind::Block { 1 } else { second.head.count };
            limits.allow((number + 1).saturating_mul(8), "the sizes of the elements")?;
            if number.checked_mul(size).is_none_or(|total| total >= 1 << 63) {
                return Err(bad(format!("{number} x {size} bytes fit no memory"), first.data));
            }
            (size, (0..=number).map(|k| k * size).collect())
        };
        let mut starts = second.starts.clone();
        let len = decoded.last().copied().unwrap_or(0);
        if kind == Kind::Block {
            (size, starts) = (len, vec![0, second.len]);
        }
        let (dtype, shape) = elements(kind, second.head.count, size);
        let layout = Layout::Encoded {
            starts: starts.into(),
            decoded: decoded.into(),
            data: Extents::one(second.data, second.len),
            codec: Arc::new(Convention),
            order: Order::C,
        };
        Ok(Self {
            kind,
            user: second.head.user.clone(),
            count: second.head.count,
            size,
            len,
            encoded: true,
            array: ArrayDesc::new(dtype, shape, layout),
            raw: vec![first, second],
        })
    }

    /// Reads the section at `offset`; with `decode`, compressed data count as what they decode to.
    pub(crate) fn read(
        source: &Source,
        offset: u64,
        decode: bool,
        limits: &Limits,
    ) -> Result<Option<Self>> {
        let Some(raw) = Raw::read(source, offset, limits)? else { return Ok(None) };
        let announced = announced(&raw.head).filter(|_| decode);
        match announced {
            Some(kind) => Self::encoded(source, raw, kind, limits).map(Some),
            None => Ok(Some(Self::plain(raw))),
        }
    }

    /// Decoded sizes of the elements of a V section, one by one; empty for the others.
    pub fn sizes(&self) -> Vec<u64> {
        match &self.array.layout {
            Layout::Ragged { starts, .. } => differences(starts),
            Layout::Encoded { decoded, .. } if self.kind == Kind::Varray => differences(decoded),
            _ => Vec::new(),
        }
    }

    /// The section in words: `A "density"`.
    pub fn title(&self) -> String {
        format!("{} \"{}\"", self.kind.letter(), self.user.escape_ascii())
    }
}

/// What a raw section says is compressed in the next one.
pub(crate) fn announced(head: &Head) -> Option<Kind> {
    announces(head.kind, &head.user)
}

/// What a raw section of this type and user string says is compressed in the next one.
pub(crate) fn announces(kind: Kind, user: &[u8]) -> Option<Kind> {
    match (kind, user) {
        (Kind::Inline, b"B compressed scda 00") => Some(Kind::Block),
        (Kind::Inline, b"A compressed scda 00") => Some(Kind::Array),
        (Kind::Array, b"V compressed scda 00") => Some(Kind::Varray),
        _ => None,
    }
}

/// Type and shape of a section's data. scda knows bytes only.
fn elements(kind: Kind, count: u64, size: u64) -> (DType, Shape) {
    match kind {
        Kind::Inline => (DType::opaque(1), Shape::new([ENTRY])),
        Kind::Block => (DType::opaque(1), Shape::new([size])),
        Kind::Varray => (DType::opaque(1), Shape::new([count])),
        Kind::Array => match u32::try_from(size) {
            Ok(small) => (DType::opaque(small), Shape::new([count])),
            Err(_) => (DType::opaque(1), Shape::new([count, size])),
        },
    }
}

/// An open scda file. Opening walks the section headers; of the data only the size entries of V
/// sections and the descriptions of fields are read.
pub struct File {
    source: Source,
    header: FileHeader,
    sections: Vec<Section>,
    tree: Tree,
    doubts: Vec<Doubt>,
    limits: Limits,
}

impl File {
    /// Opens a file; compressed sections read as what they decode to.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Source::open(path)?, true, limits)
            .map_err(|e| e.with_path(path).with_format("scda"))
    }

    /// Opens what is in `source`; without `decode` every raw section stands for itself.
    pub fn from_source(source: Source, decode: bool, limits: &Limits) -> Result<Self> {
        let header = FileHeader::read(&source)?;
        let mut sections: Vec<Section> = Vec::new();
        let mut offset = FILE_HEADER;
        let mut tables = 0_u64;
        loop {
            let number = sections.len();
            let place = |e: Error| e.in_object(format!("section {number}"));
            let Some(section) = Section::read(&source, offset, decode, limits).map_err(place)?
            else {
                break;
            };
            // Many sections with many sizes each: the budget is for all of them.
            tables = tables.saturating_add(section.count.saturating_mul(16));
            if section.kind == Kind::Varray || section.encoded {
                limits.allow(tables, "the sizes of all elements").map_err(place)?;
            }
            offset = section.raw.last().map_or(offset, |raw| raw.end);
            sections.push(section);
            if sections.len() as u64 >= limits.nodes {
                return Err(Error::limit(format!("more than {} sections", limits.nodes)));
            }
        }
        let (tree, doubts) = view(&source, &header, &sections, decode, limits)?;
        Ok(Self { source, header, sections, tree, doubts, limits: *limits })
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The sections, in the order of the file.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Sections that look like fields and groups of our convention and are none, and why.
    pub(crate) fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// The data of a section: read it, stream it, select elements of it.
    pub fn array(&self, section: &Section) -> Result<Array> {
        self.open_array(&section.array)
    }

    /// The data of a section as bytes, however many they are.
    pub fn content(&self, section: &Section) -> Result<Content> {
        Content::of(self, section)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn open_array(&self, desc: &ArrayDesc) -> Result<Array> {
        Array::open(&self.source, &self.tree, desc, &self.limits)
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
        let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
        let mut words = vec![
            ("version".into(), format!("{:02x}", self.header.version).into()),
            ("vendor".into(), text(&self.header.vendor)),
            ("user".into(), text(&self.header.user)),
            ("line breaks".into(), format!("{:?}", self.header.breaks).into()),
            ("sections".into(), (self.sections.len() as u64).into()),
        ];
        // What a checkpoint says about itself: its program, its step.
        let values = self.tree.attrs().iter().filter(|(name, _)| name != "user");
        words.extend(values.map(|(name, value)| (format!("value {name}"), value.clone())));
        words
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut emit = |offset, len, role, name: String, value: String| {
            if len > 0 { each(Region { offset, len, role, name, value }) } else { Ok(()) }
        };
        let version = format!("version {:02x}", self.header.version);
        emit(0, FILE_HEADER, Role::Header, "file header".into(), version)?;
        for (number, section) in self.sections.iter().enumerate() {
            for raw in &section.raw {
                let name = |part: &str| format!("section {number} {part}");
                let head = raw.data - raw.head.offset;
                emit(raw.head.offset, head, Role::Header, name("header"), raw.title())?;
                let what = match (section.encoded, raw.head.kind) {
                    (true, _) => "encoded".into(),
                    (false, Kind::Array) => format!("{} x {}", raw.head.count, raw.head.size),
                    (false, Kind::Varray) => format!("{} elements", raw.head.count),
                    _ => String::new(),
                };
                emit(raw.data, raw.len, Role::Data, name("data"), what)?;
                let end = raw.data + raw.len;
                emit(end, raw.end - end, Role::Padding, name("padding"), String::new())?;
            }
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (number, section) in self.sections.iter().enumerate() {
            each(Object {
                path: String::from_utf8_lossy(&section.user).into_owned(),
                id: Some(number.to_string()),
                frame: None,
                kind: section.kind.letter().to_string(),
                array: section.array.clone(),
            })?;
        }
        Ok(())
    }
}
