//! Header, index entries and chunk types as they lie in the file, in every version there was.
//!
//! The seed text describes version 0.0.1; the later layouts are in FORMAT.md. Here are the parts
//! that all structures share; `header` and `entry` are the structures.

mod entry;
mod header;

use spile_core::dtype::DType;

pub use entry::Entry;
pub(crate) use entry::first_name;
pub use header::{About, Header};

/// First four bytes of every version; later ones repeat them.
pub const MAGIC: u32 = 0x65DF_65DF;

/// First eight bytes since version 0.2.
pub const MAGIC_LONG: u64 = 0x65DF_65DF_65DF_65DF;

/// Last field of the header of 0.0.1.
pub const CHECK: u32 = 0xFD56_FD56;

/// Bytes of the header since version 0.2.
pub const HEADER: u64 = 256;

/// Bytes of a unit of the name list.
pub const SLOT: u64 = 64;

/// Frames for which an index has room though they have no chunks: 32 MiB.
const MOST_EMPTY: u64 = 1 << 20;

/// "spileGSD": a commit of ours is under way, or was when its writer was killed.
const MARKER: u64 = u64::from_le_bytes(*b"spileGSD");

/// The text and two numbers that stand in a header and describe what the chunks mean.
pub const TEXT: usize = 64;

/// How a compiler laid out the structures of 0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// 64-bit: header 232, entries 88.
    X86_64,
    /// 32-bit: header 224, entries 84.
    I386,
    /// Without padding, as the seed counts: header 224, entries 82.
    Packed,
}

/// Which layout the structures of a file have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 0.0.1: names and steps in the entries.
    First(Abi),
    /// 0.2, never released: another order in the header, M of one byte.
    Second,
    /// 0.3 and 1.0: names in slots of 64 bytes.
    Slots,
    /// 2.x: names in one list.
    List,
}

impl Form {
    /// Bytes of the header.
    pub fn header_size(self) -> u64 {
        match self {
            Self::First(Abi::X86_64) => 232,
            Self::First(_) => 224,
            _ => HEADER,
        }
    }

    /// Bytes of an index entry.
    pub fn entry_size(self) -> u64 {
        match self {
            Self::First(Abi::X86_64) => 88,
            Self::First(Abi::I386) => 84,
            Self::First(Abi::Packed) => 82,
            _ => 32,
        }
    }

    /// An entry in `bytes` is worth a look for who wants that name: it may be the one, or it may have
    /// the number of no name at all.
    pub(crate) fn may_have_name(self, bytes: &[u8], id: u32, names: usize) -> bool {
        if !matches!(self, Self::Slots | Self::List) {
            return true;
        }
        let Some([low, high]) = bytes.get(28..30) else { return true };
        let here = u32::from(*low) | u32::from(*high) << 8;
        here == id || here as usize >= names
    }

    /// Names and steps are in the entries.
    pub fn is_first(self) -> bool {
        matches!(self, Self::First(_))
    }

    /// Entries of an empty file's index.
    pub fn first_entries(self) -> u64 {
        if self.is_first() { 16 } else { 128 }
    }

    /// Units of an empty file's name list.
    pub fn first_slots(self) -> u64 {
        match self {
            Self::First(_) => 0,
            Self::Second | Self::Slots => 128,
            Self::List => 16,
        }
    }

    /// How much larger a full index becomes. The code that wrote 0.0.1 multiplied by 16, later code
    /// by 2. Large ones of ours grow faster: each time costs a copy, which stays in the file.
    pub fn growth(self, entries: u64) -> u64 {
        match self {
            Self::First(_) => 16,
            _ if entries < 1 << 16 => 2,
            _ => 4,
        }
    }

    /// Entries that an index must have room for. The C library takes frame numbers for damage that are not
    /// below it, so empty frames need room as well, up to a point.
    pub(crate) fn room(self, entries: u64, frames: u64) -> u64 {
        if self.is_first() { entries } else { entries.max(frames.min(MOST_EMPTY)) }
    }

    /// Most bytes of a chunk's name, and most names.
    pub fn name_limits(self) -> (usize, usize) {
        match self {
            Self::First(_) => (32, usize::MAX),
            Self::Second | Self::Slots => (63, 128),
            Self::List => (usize::MAX, 65535),
        }
    }

    /// Byte of the header at which our own marker lies, in what the format leaves unused.
    fn marker_offset(self) -> usize {
        match self {
            Self::First(Abi::X86_64) => 192,
            Self::First(_) => 188,
            _ => 224,
        }
    }

    /// Bytes of the header that no version has a use for.
    fn reserved(self) -> std::ops::Range<usize> {
        match self {
            Self::First(Abi::X86_64) => 168..224,
            Self::First(_) => 164..220,
            _ => 176..256,
        }
    }

    /// Bytes of the index's location and allocation, then of the name list's.
    fn block_offsets(self) -> (usize, usize) {
        match self {
            Self::First(Abi::X86_64) => (144, 0),
            Self::First(_) => (140, 0),
            Self::Second => (144, 160),
            _ => (8, 24),
        }
    }

    /// Byte of the entry count that the first code kept in the header.
    fn count_offset(self) -> usize {
        match self {
            Self::First(Abi::X86_64) => 160,
            _ => 156,
        }
    }
}

/// The element type of a chunk, under the names of later versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Type {
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    /// UTF-8 text, since 2.1.
    Character,
    /// Bytes of a type that 0.0.1 did not know and wrote all the same.
    Unknown(u8),
}

/// The types in the order of their codes since 0.2, from 1 on.
pub const TYPES: [Type; 11] = [
    Type::UInt8,
    Type::UInt16,
    Type::UInt32,
    Type::UInt64,
    Type::Int8,
    Type::Int16,
    Type::Int32,
    Type::Int64,
    Type::Float,
    Type::Double,
    Type::Character,
];

/// The types in the order of their codes in 0.0.1, from 1 on.
const FIRST_TYPES: [Type; 4] = [Type::UInt8, Type::UInt32, Type::Float, Type::Double];

impl Type {
    /// The type that a code stands for.
    pub fn from_code(form: Form, code: u8) -> Option<Self> {
        let place = usize::from(code).wrapping_sub(1);
        if form.is_first() {
            return Some(FIRST_TYPES.get(place).copied().unwrap_or(Self::Unknown(code)));
        }
        TYPES.get(place).copied()
    }

    /// The code of a type, if that version has it.
    pub fn code(self, form: Form) -> Option<u8> {
        if let Self::Unknown(code) = self {
            return form.is_first().then_some(code);
        }
        let types: &[Self] = if form.is_first() { &FIRST_TYPES } else { &TYPES };
        types.iter().position(|t| *t == self).map(|k| k as u8 + 1)
    }

    /// Element type.
    pub fn dtype(self) -> DType {
        match self {
            Self::UInt8 | Self::Unknown(_) => DType::U8,
            Self::UInt16 => DType::U16,
            Self::UInt32 => DType::U32,
            Self::UInt64 => DType::U64,
            Self::Int8 => DType::I8,
            Self::Int16 => DType::I16,
            Self::Int32 => DType::I32,
            Self::Int64 => DType::I64,
            Self::Float => DType::F32,
            Self::Double => DType::F64,
            Self::Character => DType::text(1),
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> u64 {
        match self {
            Self::UInt8 | Self::Int8 | Self::Character | Self::Unknown(_) => 1,
            Self::UInt16 | Self::Int16 => 2,
            Self::UInt32 | Self::Int32 | Self::Float => 4,
            Self::UInt64 | Self::Int64 | Self::Double => 8,
        }
    }

    /// Bytes of `n` rows and `m` columns, or nothing if they fit no file.
    pub fn bytes(self, n: u64, m: u64) -> Option<u64> {
        n.checked_mul(m)?.checked_mul(self.size()).filter(|bytes| *bytes >> 63 == 0)
    }

    /// The word for listings.
    pub fn name(self) -> String {
        match self {
            Self::UInt8 => "uint8".into(),
            Self::UInt16 => "uint16".into(),
            Self::UInt32 => "uint32".into(),
            Self::UInt64 => "uint64".into(),
            Self::Int8 => "int8".into(),
            Self::Int16 => "int16".into(),
            Self::Int32 => "int32".into(),
            Self::Int64 => "int64".into(),
            Self::Float => "float".into(),
            Self::Double => "double".into(),
            Self::Character => "character".into(),
            Self::Unknown(code) => format!("type {code}"),
        }
    }
}

/// A table in the file: the index, or the name list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub location: u64,
    /// Entries, or units of 64 bytes, there is room for.
    pub allocated: u64,
}

/// Entries that one commit of ours writes. Until all of them are there, none of them count: that
/// is what makes a frame appear whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The first entry.
    pub first: u64,
    /// The entry behind the last.
    pub end: u64,
    /// The frame of the first entry, to tell a marker that has outlived its index.
    pub frame: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::source::Source;

    fn about() -> About {
        About { application: "app".into(), schema: "s".into(), schema_version: 0x0001_0004 }
    }

    #[test]
    fn headers_of_every_version_come_back() {
        let forms = [
            (Form::First(Abi::X86_64), 1),
            (Form::First(Abi::I386), 1),
            (Form::Second, 2),
            (Form::Slots, 3),
            (Form::Slots, 1 << 16),
            (Form::List, 2 << 16),
            (Form::List, 2 << 16 | 1),
        ];
        for (form, version) in forms {
            let marker = Some(Marker { first: 3, end: 9, frame: 7 });
            let header = Header::new(form, version, &about()).with_marker(marker);
            let read = Header::read(&Source::memory(header.raw.clone())).unwrap();
            assert_eq!(read, header);
            assert_eq!(header.odd_reserved(), None);
            let cleared = header.clone().with_marker(None);
            assert_eq!(cleared, Header::new(form, version, &about()));
        }
    }

    #[test]
    fn entries_of_every_version_come_back() {
        let entry = Entry {
            frame: 5,
            n: 7,
            m: 3,
            location: 4711,
            id: 2,
            code: 3,
            flags: 0,
            step: 0,
            sound: true,
        };
        let abis = [Abi::X86_64, Abi::I386, Abi::Packed].map(Form::First);
        for form in abis.into_iter().chain([Form::Second, Form::Slots, Form::List]) {
            let step = if form.is_first() { 99 } else { 0 };
            let entry = Entry { step, ..entry };
            let mut bytes = Vec::new();
            entry.encode(form, b"position", &mut bytes);
            assert_eq!(bytes.len() as u64, form.entry_size());
            let id = |name: &[u8]| {
                assert_eq!(name, b"position");
                2
            };
            assert_eq!(Entry::parse(form, &bytes, id).unwrap(), entry);
        }
    }

    #[test]
    fn sizes_never_wrap() {
        let entry = Entry {
            frame: 0,
            n: 1 << 40,
            m: 1 << 30,
            location: 0,
            id: 0,
            code: 10,
            flags: 0,
            step: 0,
            sound: true,
        };
        assert_eq!(entry.bytes(Form::List), None);
        assert_eq!(Entry { m: 0, ..entry }.bytes(Form::List), Some(0));
    }
}
