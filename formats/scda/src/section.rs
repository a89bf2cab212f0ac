//! Sections as users see them: one raw section, or two raw sections that follow the compression
//! convention (section 3). The first of the two contains the uncompressed sizes, the second the data.

use std::sync::Arc;

use spile_core::limits::Budget;
use spile_core::wire::fetch;
use spile_core::{ArrayDesc, DType, Error, Extents, Layout, Order, Result, Shape, Source};

use crate::codec::Convention;
use crate::index::Index;
use crate::wire::{
    ENTRY, Head, Kind, LONGEST_HEAD, Raw, SECTION_HEADER, check_entries, count, differences,
    read_starts, sum_entries,
};

/// User string of the I section before a compressed B section.
pub(crate) const COMPRESSED_BLOCK: &[u8] = b"B compressed scda 00";

/// User string of the I section before a compressed A section.
pub(crate) const COMPRESSED_ARRAY: &[u8] = b"A compressed scda 00";

/// User string of the A section before a compressed V section.
pub(crate) const COMPRESSED_VARRAY: &[u8] = b"V compressed scda 00";

/// Type of the compressed section that begins with a raw section of this type and user string; `None`
/// if the raw section does not begin one.
pub(crate) fn compressed_kind(kind: Kind, user: &[u8]) -> Option<Kind> {
    match (kind, user) {
        (Kind::Inline, COMPRESSED_BLOCK) => Some(Kind::Block),
        (Kind::Inline, COMPRESSED_ARRAY) => Some(Kind::Array),
        (Kind::Array, COMPRESSED_VARRAY) => Some(Kind::Varray),
        _ => None,
    }
}

/// Section header as returned by [`Cursor::next`](crate::Cursor::next), the same on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Type; of the uncompressed section if the data are decoded.
    pub kind: Kind,
    /// User string.
    pub user: Vec<u8>,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// The data will be decoded (Table 2).
    pub decoded: bool,
}

/// The raw headers of a section.
pub(crate) struct Headers {
    /// Type; of the uncompressed section if there are two headers.
    pub(crate) kind: Kind,
    /// Uncompressed bytes of an element (A) or of the block (B); 0 for I and V.
    pub(crate) size: u64,
    /// Header of the raw section with the uncompressed sizes.
    pub(crate) announcement: Option<Head>,
    /// Header of the raw section with the data.
    pub(crate) data: Head,
}

impl Headers {
    /// Reads the headers of the section at `offset`; `None` at the end of the file. With `decode`, two
    /// sections that follow the compression convention are one section. `fetch` returns the bytes at an
    /// offset, up to a length or the end of the file. The data of a section that is not V are inside
    /// the file if this succeeds.
    pub(crate) fn read(
        offset: u64,
        file_len: u64,
        decode: bool,
        fetch: impl Fn(u64, usize) -> Result<Vec<u8>>,
    ) -> Result<Option<Self>> {
        let bytes = fetch(offset, LONGEST_HEAD)?;
        let Some(first) = Head::parse(&bytes, offset, file_len)? else { return Ok(None) };
        let Some(kind) = compressed_kind(first.kind, &first.user).filter(|_| decode) else {
            let (kind, size) = (first.kind, first.size);
            let this = Self { kind, size, announcement: None, data: first };
            return this.check_data(file_len).map(Some);
        };
        let bad = |message: String, at| Error::malformed("scda-011", message).at(at);
        let next = first.section_end(file_len, first.data_len()?)?;
        let second = Head::parse(&fetch(next, LONGEST_HEAD)?, next, file_len)?;
        let stored = if kind == Kind::Block { Kind::Block } else { Kind::Varray };
        let second = second.filter(|second| second.kind == stored).ok_or_else(|| {
            bad(format!("expected a {} section with the compressed data", stored.letter()), next)
        })?;
        let size = if kind == Kind::Varray {
            if first.size != ENTRY || first.count != second.count {
                let message = format!(
                    "expected {} uncompressed sizes of 32 bytes, found {} of {} bytes",
                    second.count, first.count, first.size
                );
                return Err(bad(message, offset + SECTION_HEADER));
            }
            0
        } else {
            let entry = SECTION_HEADER as usize..(SECTION_HEADER + ENTRY) as usize;
            let (size, _) = count(&bytes[entry], b'U', first.end())?;
            if second.count.checked_mul(size).is_none_or(|bytes| bytes >= 1 << 63) {
                let message = format!("{} x {size} uncompressed bytes are too large", second.count);
                return Err(bad(message, first.end()));
            }
            size
        };
        Self { kind, size, announcement: Some(first), data: second }.check_data(file_len).map(Some)
    }

    fn check_data(self, file_len: u64) -> Result<Self> {
        if self.data.kind != Kind::Varray {
            self.data.section_end(file_len, self.data.data_len()?)?;
        }
        Ok(self)
    }

    pub(crate) fn header(&self) -> SectionHeader {
        let Head { user, count, .. } = &self.data;
        SectionHeader {
            kind: self.kind,
            user: user.to_vec(),
            count: *count,
            size: self.size,
            decoded: self.announcement.is_some(),
        }
    }
}

/// A section as users see it: a raw section, or two raw sections that follow the compression convention.
#[derive(Clone, Debug)]
pub struct Section {
    /// Type; of the uncompressed section if it is compressed.
    pub kind: Kind,
    /// The section is compressed: it consists of two raw sections.
    pub encoded: bool,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Uncompressed bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// Uncompressed bytes of all data.
    pub len: u64,
    raw: Raw,
    /// V and compressed sections: stored bytes before each element, and the total at the end.
    starts: Option<Arc<[u64]>>,
    compression: Option<Box<Compression>>,
    /// The sizes were only added up.
    unlisted: bool,
}

/// Which tables of sizes are read when a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// All; one that exceeds the memory limit is an error.
    All,
    /// Those that fit; the sizes of other sections are only added up.
    Fitting,
}

#[derive(Clone, Debug)]
struct Compression {
    announcement: Raw,
    /// Uncompressed bytes before each element, and the total at the end.
    starts: Arc<[u64]>,
}

impl Section {
    /// Reads the section at `offset`; `None` at the end of the file. With `decode`, two sections that
    /// follow the compression convention are one section.
    pub(crate) fn read(
        source: &Source,
        offset: u64,
        decode: bool,
        budget: &mut Budget,
        (tables, index): (Tables, Option<&Index>),
    ) -> Result<Option<Self>> {
        let fetch = |at, len| fetch(source, at, len);
        let Some(headers) = Headers::read(offset, source.len(), decode, fetch)? else {
            return Ok(None);
        };
        let Headers { kind, size, announcement, data: head } = headers;
        // A header takes one allocation, a table of sizes another one.
        let fixed = size_of::<Self>() + size_of::<Compression>() * announcement.iter().len();
        budget.charge((fixed + head.user.len() + 32) as u64, "the list of sections")?;
        let table = |budget: &mut Budget| {
            let bytes = (head.count + 1).saturating_mul(8);
            budget.charge(bytes, "the table of element sizes")
        };
        let (mut starts, stored) = if head.kind == Kind::Varray {
            // A count that exceeds the file is reported as that, not as a lack of memory.
            check_entries(head.count, head.end(), source.len())?;
            // Part of the memory is left for the tree.
            let both = (head.count + 1).saturating_mul(8 << announcement.iter().len());
            let most = budget.limits().memory / 4 * 3;
            if tables == Tables::Fitting && budget.used().saturating_add(both) > most {
                return Self::unlisted(source, kind, size, announcement, head, index).map(Some);
            }
            table(budget)?;
            let starts = read_starts(source, head.end(), head.count, b'E')?;
            let stored = starts.last().copied().unwrap_or(0);
            head.section_end(source.len(), stored)?;
            (Some(starts), stored)
        } else {
            (None, head.data_len()?)
        };
        let count = head.count;
        let mut len = stored;
        let compression = match announcement {
            None => None,
            Some(first) => {
                let sizes: Arc<[u64]> = if kind == Kind::Block {
                    starts = Some(Arc::new([0, stored]));
                    Arc::new([0, size])
                } else {
                    table(budget)?;
                    match kind {
                        Kind::Varray => read_starts(source, first.end(), count, b'U')?,
                        _ => (0..=count as usize).map(|k| k as u64 * size).collect(),
                    }
                };
                len = sizes.last().copied().unwrap_or(0);
                let announcement = Raw { len: first.data_len()?, head: first };
                Some(Box::new(Compression { announcement, starts: sizes }))
            }
        };
        let encoded = compression.is_some();
        let raw = Raw { head, len: stored };
        let unlisted = false;
        Ok(Some(Self { kind, encoded, count, size, len, raw, starts, compression, unlisted }))
    }

    /// A section whose data are a V section, without the sizes of its elements.
    fn unlisted(
        source: &Source,
        kind: Kind,
        size: u64,
        announcement: Option<Head>,
        head: Head,
        index: Option<&Index>,
    ) -> Result<Self> {
        let known = index.and_then(|index| index.data_len(&head, source.len()));
        let stored = match known {
            Some(stored) => stored,
            None => sum_entries(source, head.end(), head.count, b'E')?,
        };
        head.section_end(source.len(), stored)?;
        let count = head.count;
        let mut len = stored;
        let compression = match announcement {
            None => None,
            Some(first) => {
                len = match kind {
                    Kind::Varray => sum_entries(source, first.end(), count, b'U')?,
                    _ => count.saturating_mul(size),
                };
                let announcement = Raw { len: first.data_len()?, head: first };
                Some(Box::new(Compression { announcement, starts: Arc::new([]) }))
            }
        };
        let encoded = compression.is_some();
        let raw = Raw { head, len: stored };
        let (starts, unlisted) = (None, true);
        Ok(Self { kind, encoded, count, size, len, raw, starts, compression, unlisted })
    }

    /// Whether the sizes of the elements are not known, because they exceed the memory limit. The data are then shown
    /// as stored bytes.
    pub(crate) fn is_unlisted(&self) -> bool {
        self.unlisted
    }

    /// User string.
    pub fn user(&self) -> &[u8] {
        &self.raw.head.user
    }

    /// Type and user string for messages: `A "density"`.
    pub fn title(&self) -> String {
        format!("{} \"{}\"", self.kind.letter(), self.user().escape_ascii())
    }

    /// Offset of the first byte of the section.
    pub fn offset(&self) -> u64 {
        self.announcement().unwrap_or(&self.raw).head.offset
    }

    /// Offset of the first byte after the section.
    pub fn end(&self) -> u64 {
        self.raw.end()
    }

    /// The raw section with the data.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The raw section with the uncompressed sizes of a compressed section.
    pub fn announcement(&self) -> Option<&Raw> {
        self.compression.as_ref().map(|compression| &compression.announcement)
    }

    /// The raw sections in file order: one, or two for a compressed section.
    pub fn raws(&self) -> impl Iterator<Item = &Raw> {
        self.announcement().into_iter().chain([&self.raw])
    }

    /// Uncompressed sizes of the elements of a V section in bytes; empty for other types.
    pub fn sizes(&self) -> Vec<u64> {
        differences(self.element_starts().unwrap_or_default())
    }

    /// V: uncompressed bytes before each element, and the total at the end.
    pub(crate) fn element_starts(&self) -> Option<&[u64]> {
        match &self.compression {
            _ if self.kind != Kind::Varray || self.unlisted => None,
            Some(compression) => Some(&compression.starts),
            None => self.starts.as_deref(),
        }
    }

    /// V and compressed sections: stored bytes before each element, and the total at the end.
    pub(crate) fn stored_starts(&self) -> Option<&[u64]> {
        self.starts.as_deref()
    }

    /// The data as an array of bytes.
    pub fn desc(&self) -> ArrayDesc {
        // scda has no element types.
        let (dtype, shape) = match self.kind {
            _ if self.unlisted => (DType::opaque(1), Shape::new([self.raw.len])),
            Kind::Inline => (DType::opaque(1), Shape::new([ENTRY])),
            Kind::Block => (DType::opaque(1), Shape::new([self.size])),
            Kind::Varray => (DType::opaque(1), Shape::new([self.count])),
            Kind::Array => match u32::try_from(self.size) {
                Ok(size) => (DType::opaque(size), Shape::new([self.count])),
                Err(_) => (DType::opaque(1), Shape::new([self.count, self.size])),
            },
        };
        ArrayDesc::new(dtype, shape, self.layout(Order::C))
    }

    /// Layout of the data. `order` is the element order of data that are not ragged.
    pub(crate) fn layout(&self, order: Order) -> Layout {
        let data = Extents::one(self.raw.data(), self.raw.len);
        match (&self.starts, &self.compression) {
            (Some(starts), Some(compression)) => Layout::Encoded {
                starts: starts.clone(),
                decoded: compression.starts.clone(),
                data,
                codec: Arc::new(Convention),
                order: Order::C,
            },
            (Some(starts), None) => Layout::Ragged { starts: starts.clone(), data },
            _ => Layout::Plain { extents: data, order },
        }
    }
}
