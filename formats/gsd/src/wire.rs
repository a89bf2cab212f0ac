//! On-disk structures of all versions: element types and sizes here, the structures in `header` and
//! `entry`. Version 0.0.1 is specified by the design text of 2014, later versions by FORMAT.md.

mod entry;
mod header;

use spile_core::DType;

pub use entry::Entry;
pub(crate) use entry::inline_name;
pub(crate) use header::tables_for;
pub use header::{About, Header};

/// First four bytes of every version; repeated since 0.2.
pub const MAGIC: u32 = 0x65DF_65DF;

/// First eight bytes since version 0.2.
pub const MAGIC_LONG: u64 = 0x65DF_65DF_65DF_65DF;

/// Last field of the header of 0.0.1.
pub const CHECK: u32 = 0xFD56_FD56;

/// Size of the header since version 0.2, in bytes.
pub const HEADER: u64 = 256;

/// Allocation unit of the name list, in bytes.
pub const SLOT: u64 = 64;

/// Empty frames that the index capacity accounts for: 32 MiB.
const MAX_EMPTY_FRAMES: u64 = 1 << 20;

/// "spileGSD": a commit by [`crate::Writer`] is not completed.
const MARKER: u64 = u64::from_le_bytes(*b"spileGSD");

/// Size of the text fields of the header, in bytes.
pub const TEXT: usize = 64;

/// Structure padding of 0.0.1, which depends on the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// 64-bit: header of 232 bytes, entries of 88.
    X86_64,
    /// 32-bit: header of 224 bytes, entries of 84.
    I386,
    /// No padding, as in the design text: header of 224 bytes, entries of 82.
    Packed,
}

/// Layout of the structures of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 0.0.1: names and steps in the entries.
    V0_0_1(Abi),
    /// 0.2, never released: different field order in the header, M of one byte.
    V0_2,
    /// 0.3 and 1.x: names in slots of 64 bytes.
    V1,
    /// 2.x: NUL-terminated names in one list, entries sorted by name.
    V2,
}

impl Form {
    /// Size of the header in bytes.
    pub fn header_size(self) -> u64 {
        match self {
            Self::V0_0_1(Abi::X86_64) => 232,
            Self::V0_0_1(_) => 224,
            _ => HEADER,
        }
    }

    /// Size of an index entry in bytes.
    pub fn entry_size(self) -> u64 {
        match self {
            Self::V0_0_1(Abi::X86_64) => 88,
            Self::V0_0_1(Abi::I386) => 84,
            Self::V0_0_1(Abi::Packed) => 82,
            _ => 32,
        }
    }

    /// Names and steps are in the entries.
    pub fn is_v0_0_1(self) -> bool {
        matches!(self, Self::V0_0_1(_))
    }

    /// Index capacity of a new file, in entries.
    pub fn initial_entries(self) -> u64 {
        if self.is_v0_0_1() { 16 } else { 128 }
    }

    /// Name list capacity of a new file, in units of [`SLOT`] bytes.
    pub fn initial_slots(self) -> u64 {
        match self {
            Self::V0_0_1(_) => 0,
            Self::V0_2 | Self::V1 => 128,
            Self::V2 => 16,
        }
    }

    /// Factor by which a full index with `entries` entries grows: 16 in 0.0.1, 2 in later versions. Large
    /// ones grow faster here, because the old copy stays in the file.
    pub fn growth(self, entries: u64) -> u64 {
        match self {
            Self::V0_0_1(_) => 16,
            _ if entries < 1 << 16 => 2,
            _ => 4,
        }
    }

    /// Entries that an index for `entries` chunks in `frames` frames must have room for. The C library
    /// rejects frame numbers that are not below its capacity, so empty frames count as well, up to
    /// [`MAX_EMPTY_FRAMES`].
    pub(crate) fn index_capacity(self, entries: u64, frames: u64) -> u64 {
        if self.is_v0_0_1() { entries } else { entries.max(frames.min(MAX_EMPTY_FRAMES)) }
    }

    /// Maximum length of a name in bytes, and maximum number of names.
    pub fn name_limits(self) -> (usize, usize) {
        match self {
            Self::V0_0_1(_) => (32, usize::MAX),
            Self::V0_2 => (63, 128),
            Self::V1 => (63, 65535),
            Self::V2 => (usize::MAX, 65535),
        }
    }

    /// Offset of the commit marker in the unused bytes of the header.
    fn marker_offset(self) -> usize {
        match self {
            Self::V0_0_1(Abi::X86_64) => 192,
            Self::V0_0_1(_) => 188,
            _ => 224,
        }
    }

    /// Bytes of the header that no version uses.
    fn reserved(self) -> std::ops::Range<usize> {
        match self {
            Self::V0_0_1(Abi::X86_64) => 168..224,
            Self::V0_0_1(_) => 164..220,
            _ => 176..256,
        }
    }

    /// Header offsets of application, schema and the versions.
    fn text_offsets(self) -> TextOffsets {
        let [application, version, schema, schema_version] = match self {
            Self::V0_0_1(_) => [4, 68, 72, 136],
            Self::V0_2 => [12, 8, 76, 140],
            Self::V1 | Self::V2 => [48, 44, 112, 40],
        };
        TextOffsets { application, version, schema, schema_version }
    }

    /// Header offsets of the blocks of the index and of the name list.
    fn block_offsets(self) -> (usize, usize) {
        match self {
            Self::V0_0_1(Abi::X86_64) => (144, 0),
            Self::V0_0_1(_) => (140, 0),
            Self::V0_2 => (144, 160),
            _ => (8, 24),
        }
    }

    /// Header offset of the entry count in 0.0.1.
    fn count_offset(self) -> usize {
        match self {
            Self::V0_0_1(Abi::X86_64) => 160,
            _ => 156,
        }
    }
}

/// Header offsets of application, schema and the versions.
struct TextOffsets {
    application: usize,
    version: usize,
    schema: usize,
    schema_version: usize,
}

/// Element type of a chunk.
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
    /// A type code that 0.0.1 does not define; elements are bytes.
    Unknown(u8),
}

/// The types in the order of their codes since 0.2, starting at 1.
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

/// The types in the order of their codes in 0.0.1, starting at 1.
const FIRST_TYPES: [Type; 4] = [Type::UInt8, Type::UInt32, Type::Float, Type::Double];

impl Type {
    /// The type with a code; none if the version does not define it.
    pub fn from_code(form: Form, code: u8) -> Option<Self> {
        let at = usize::from(code).wrapping_sub(1);
        if form.is_v0_0_1() {
            return Some(FIRST_TYPES.get(at).copied().unwrap_or(Self::Unknown(code)));
        }
        TYPES.get(at).copied()
    }

    /// The code of the type; none if the version does not define it.
    pub fn code(self, form: Form) -> Option<u8> {
        if let Self::Unknown(code) = self {
            return form.is_v0_0_1().then_some(code);
        }
        let types: &[Self] = if form.is_v0_0_1() { &FIRST_TYPES } else { &TYPES };
        types.iter().position(|t| *t == self).map(|k| k as u8 + 1)
    }

    /// The element type of arrays.
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

    /// The type, or `UInt8` for an unknown type.
    pub(crate) fn known(self) -> Self {
        if matches!(self, Self::Unknown(_)) { Self::UInt8 } else { self }
    }

    /// Size of an element in bytes.
    pub fn size(self) -> u64 {
        self.dtype().size() as u64
    }

    /// Size of `n` rows and `m` columns in bytes; none from 2^63 on.
    pub fn bytes(self, n: u64, m: u64) -> Option<u64> {
        n.checked_mul(m)?.checked_mul(self.size()).filter(|bytes| *bytes >> 63 == 0)
    }

    /// Name for display.
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

/// Location of the index or of the name list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset in the file.
    pub location: u64,
    /// Capacity in entries, or in units of 64 bytes.
    pub allocated: u64,
}

/// Entries of a commit. Readers ignore all of them until the last one is written, which makes commits
/// atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The first entry.
    pub first: u64,
    /// One past the last entry.
    pub end: u64,
    /// The frame of the first entry, to recognise an outdated marker.
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
    fn headers_of_every_version_round_trip() {
        let forms = [
            (Form::V0_0_1(Abi::X86_64), 1),
            (Form::V0_0_1(Abi::I386), 1),
            (Form::V0_2, 2),
            (Form::V1, 3),
            (Form::V1, 1 << 16),
            (Form::V2, 2 << 16),
            (Form::V2, 2 << 16 | 1),
        ];
        for (form, version) in forms {
            let marker = Some(Marker { first: 3, end: 9, frame: 7 });
            let header = Header::new(form, version, &about()).with_marker(marker);
            let read = Header::read(&Source::memory(header.raw.clone())).unwrap();
            assert_eq!(read, header);
            assert_eq!(header.nonzero_reserved(), None);
            let cleared = header.clone().with_marker(None);
            assert_eq!(cleared, Header::new(form, version, &about()));
        }
    }

    #[test]
    fn entries_of_every_version_round_trip() {
        let entry = Entry {
            frame: 5,
            n: 7,
            m: 3,
            location: 4711,
            id: 2,
            code: 3,
            flags: 0,
            step: 0,
            checksum_ok: true,
        };
        let abis = [Abi::X86_64, Abi::I386, Abi::Packed].map(Form::V0_0_1);
        for form in abis.into_iter().chain([Form::V0_2, Form::V1, Form::V2]) {
            let step = if form.is_v0_0_1() { 99 } else { 0 };
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
    fn sizes_do_not_overflow() {
        let entry = Entry {
            frame: 0,
            n: 1 << 40,
            m: 1 << 30,
            location: 0,
            id: 0,
            code: 10,
            flags: 0,
            step: 0,
            checksum_ok: true,
        };
        assert_eq!(entry.bytes(Form::V2), None);
        assert_eq!(Entry { m: 0, ..entry }.bytes(Form::V2), Some(0));
    }
}
