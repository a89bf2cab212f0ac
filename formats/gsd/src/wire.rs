//! Header, index entries and chunk types as they lie in the file, in every version there was.
//!
//! The seed text describes version 0.0.1; the later layouts are in FORMAT.md.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

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

    /// How much larger a full index becomes. The code that wrote 0.0.1 multiplied by 16.
    pub fn growth(self) -> u64 {
        if self.is_first() { 16 } else { 2 }
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
const TYPES: [Type; 11] = [
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
        self.dtype().size() as u64
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

/// The header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Layout of everything else.
    pub form: Form,
    /// Version number as it stands in the file.
    pub version: u32,
    /// The program that made the file.
    pub application: String,
    /// What the chunks mean.
    pub schema: String,
    /// Version of the schema: major in the upper half, minor in the lower.
    pub schema_version: u32,
    /// The index.
    pub index: Block,
    /// The name list; none in 0.0.1.
    pub names: Option<Block>,
    /// Number of entries, where the first code wrote it into the header.
    pub counted: Option<u64>,
    /// A commit of ours.
    pub marker: Option<Marker>,
    /// The bytes themselves.
    pub raw: Vec<u8>,
}

impl Header {
    /// Reads and checks the header alone; where its tables point is the index's business.
    pub fn read(source: &Source) -> Result<Self> {
        let bytes = fetch(source, 0, HEADER as usize)?;
        let short = |bytes: &[u8]| Wire::new(bytes, 0, ByteOrder::Little, "gsd-003").u32();
        let magic = MAGIC.to_le_bytes();
        let common = magic.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        if common < magic.len().min(bytes.len()) || bytes.is_empty() {
            let message = "a GSD file begins with the bytes df 65 df 65";
            return Err(Error::not_this_format("gsd-001", message).at(common as u64));
        }
        short(&bytes)?;
        if bytes.get(..8) == Some(&MAGIC_LONG.to_le_bytes()) {
            Self::parse_later(bytes)
        } else {
            Self::parse_first(bytes)
        }
    }

    /// 0.0.1. Which compiler wrote it shows in where the last field lies; 32-bit and packed
    /// headers are the same, their entries are told apart by their checksums.
    fn parse_first(mut bytes: Vec<u8>) -> Result<Self> {
        let at = |offset: usize| {
            let field = bytes.get(offset..offset + 4)?;
            Some(u32::from_le_bytes(field.try_into().ok()?))
        };
        let form = if at(224) == Some(CHECK) {
            Form::First(Abi::X86_64)
        } else if at(220) == Some(CHECK) {
            Form::First(Abi::I386)
        } else if bytes.len() < 228 {
            let message = format!("a header has 232 bytes, the file {}", bytes.len());
            return Err(Error::truncated("gsd-003", message).in_object("header").at(0));
        } else {
            let message = "the header of version 0.0.1 does not end in the bytes 56 fd 56 fd";
            return Err(Error::malformed("gsd-004", message).in_object("header").at(224));
        };
        bytes.truncate(form.header_size() as usize);
        let mut wire = Wire::new(&bytes, 0, ByteOrder::Little, "gsd-003");
        wire.skip(4)?;
        let application = wire.text(TEXT)?;
        let version = wire.u32()?;
        let schema = wire.text(TEXT)?;
        let schema_version = wire.u32()?;
        let (blocks, _) = form.block_offsets();
        wire.skip(blocks - 140)?;
        let index = Block { location: wire.u64()?, allocated: wire.u64()? };
        let counted = Some(wire.u64()?).filter(|n| *n != 0);
        let header = Self {
            form,
            version,
            application,
            schema,
            schema_version,
            index,
            names: None,
            counted,
            marker: None,
            raw: Vec::new(),
        };
        if version != 1 {
            return Err(Self::unknown_version(&format!("0x{version:06x}"), 68));
        }
        Ok(header.with_raw(bytes))
    }

    /// 0.2 and everything later. In 0.2 the version follows the magic, where later files have the
    /// place of the index, which is never inside the header.
    fn parse_later(bytes: Vec<u8>) -> Result<Self> {
        let mut wire = Wire::new(&bytes, 0, ByteOrder::Little, "gsd-003");
        wire.skip(8)?;
        let mut look = wire.clone();
        let block = |wire: &mut Wire<'_>| -> Result<Block> {
            Ok(Block { location: wire.u64()?, allocated: wire.u64()? })
        };
        let header = if look.u32()? == 2 {
            wire.skip(4)?;
            let application = wire.text(TEXT)?;
            let schema = wire.text(TEXT)?;
            let schema_version = wire.u32()?;
            let (index, names) = (block(&mut wire)?, block(&mut wire)?);
            Self {
                form: Form::Second,
                version: 2,
                application,
                schema,
                schema_version,
                index,
                names: Some(names),
                counted: None,
                marker: None,
                raw: Vec::new(),
            }
        } else {
            let (index, names) = (block(&mut wire)?, block(&mut wire)?);
            let schema_version = wire.u32()?;
            let version = wire.u32()?;
            let form = match (version >> 16, version & 0xffff) {
                (0, 3) | (1, _) => Form::Slots,
                (2, _) => Form::List,
                (major, minor) => {
                    return Err(Self::unknown_version(&format!("{major}.{minor}"), 44));
                }
            };
            Self {
                form,
                version,
                application: wire.text(TEXT)?,
                schema: wire.text(TEXT)?,
                schema_version,
                index,
                names: Some(names),
                counted: None,
                marker: None,
                raw: Vec::new(),
            }
        };
        if (bytes.len() as u64) < HEADER {
            let message = format!("a header has {HEADER} bytes, the file {}", bytes.len());
            return Err(Error::truncated("gsd-003", message).in_object("header").at(0));
        }
        Ok(header.with_raw(bytes))
    }

    fn unknown_version(version: &str, offset: u64) -> Error {
        Error::unsupported("gsd-002", format!("version {version} is not known"))
            .in_object("header")
            .at(offset)
            .hint("versions 0.0.1, 0.2, 0.3, 1.x and 2.x are")
    }

    fn with_raw(mut self, bytes: Vec<u8>) -> Self {
        let at = self.form.marker_offset();
        let mut wire = Wire::new(&bytes[at..], at as u64, ByteOrder::Little, "gsd-003");
        let mut marker = || -> Result<(u64, Marker)> {
            let magic = wire.u64()?;
            Ok((magic, Marker { first: wire.u64()?, end: wire.u64()?, frame: wire.u64()? }))
        };
        self.marker = marker().ok().filter(|(m, _)| *m == MARKER).map(|(_, marker)| marker);
        self.raw = bytes;
        self
    }

    /// A header as we write it for an empty file.
    pub fn new(form: Form, version: u32, about: &About) -> Self {
        let size = form.header_size();
        let index = Block { location: size, allocated: form.first_entries() };
        let names = (!form.is_first()).then(|| Block {
            location: size + index.allocated * form.entry_size(),
            allocated: form.first_slots(),
        });
        let mut raw = vec![0; size as usize];
        let text = |raw: &mut Vec<u8>, at: usize, text: &str| {
            // A NUL always follows, and no character is cut in two.
            let mut end = text.len().min(TEXT - 1);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            raw[at..at + end].copy_from_slice(&text.as_bytes()[..end]);
        };
        let (application, schema, numbers) = match form {
            Form::First(_) => (4, 72, [(68, version), (136, about.schema_version)]),
            Form::Second => (12, 76, [(8, version), (140, about.schema_version)]),
            _ => (48, 112, [(44, version), (40, about.schema_version)]),
        };
        if form.is_first() {
            raw[..4].copy_from_slice(&MAGIC.to_le_bytes());
            let end = raw.len() - if form == Form::First(Abi::X86_64) { 8 } else { 4 };
            raw[end..end + 4].copy_from_slice(&CHECK.to_le_bytes());
        } else {
            raw[..8].copy_from_slice(&MAGIC_LONG.to_le_bytes());
        }
        text(&mut raw, application, &about.application);
        text(&mut raw, schema, &about.schema);
        for (at, number) in numbers {
            raw[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let header = Self {
            form,
            version,
            application: about.application.clone(),
            schema: about.schema.clone(),
            schema_version: about.schema_version,
            index,
            names,
            counted: None,
            marker: None,
            raw,
        };
        header.with_blocks(index, names)
    }

    /// The same header with its tables elsewhere.
    pub fn with_blocks(mut self, index: Block, names: Option<Block>) -> Self {
        let (at, names_at) = self.form.block_offsets();
        self.put(at, index.location);
        self.put(at + 8, index.allocated);
        if let Some(names) = names {
            self.put(names_at, names.location);
            self.put(names_at + 8, names.allocated);
        }
        (self.index, self.names) = (index, names);
        self
    }

    /// The same header with another marker.
    pub fn with_marker(mut self, marker: Option<Marker>) -> Self {
        let at = self.form.marker_offset();
        let Marker { first, end, frame } = marker.unwrap_or(Marker { first: 0, end: 0, frame: 0 });
        let magic = if marker.is_some() { MARKER } else { 0 };
        for (k, value) in [magic, first, end, frame].into_iter().enumerate() {
            self.put(at + 8 * k, value);
        }
        self.marker = marker;
        self
    }

    /// The same header with the entry count of the first code, where it has one.
    pub fn with_count(mut self, count: u64) -> Self {
        if self.counted.is_some() {
            self.put(self.form.count_offset(), count);
            self.counted = Some(count);
        }
        self
    }

    fn put(&mut self, at: usize, value: u64) {
        self.raw[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// `2.1`, `0.0.1`.
    pub fn version_text(&self) -> String {
        match self.form {
            Form::First(_) => "0.0.1".into(),
            _ => format!("{}.{}", self.version >> 16, self.version & 0xffff),
        }
    }

    /// `1.4`, or `1.2.3` in the manner of 0.0.1.
    pub fn schema_version_text(&self) -> String {
        let v = self.schema_version;
        match self.form {
            Form::First(_) => format!("{}.{}.{}", v >> 16, v >> 8 & 0xff, v & 0xff),
            _ => format!("{}.{}", v >> 16, v & 0xffff),
        }
    }

    /// Something stands in bytes that no version uses, and it is not our marker.
    pub fn odd_reserved(&self) -> Option<u64> {
        let ours = self.form.marker_offset()..self.form.marker_offset() + 32;
        let mut places =
            self.form.reserved().filter(|k| self.marker.is_none() || !ours.contains(k));
        places.find(|k| self.raw.get(*k).is_some_and(|b| *b != 0)).map(|k| k as u64)
    }

    /// What the header says about the content.
    pub fn about(&self) -> About {
        About {
            application: self.application.clone(),
            schema: self.schema.clone(),
            schema_version: self.schema_version,
        }
    }
}

/// What a header says about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The program that makes the file.
    pub application: String,
    /// What the chunks mean.
    pub schema: String,
    /// Version of the schema: major in the upper half, minor in the lower.
    pub schema_version: u32,
}

/// An index entry: a chunk and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The frame it belongs to.
    pub frame: u64,
    /// Rows.
    pub n: u64,
    /// Columns.
    pub m: u64,
    /// First byte of the data; 0 ends the index.
    pub location: i64,
    /// Number of the name.
    pub id: u32,
    /// Code of the element type.
    pub code: u8,
    /// Always 0.
    pub flags: u8,
    /// Time step, in 0.0.1.
    pub step: u64,
    /// The checksum of 0.0.1 is right.
    pub sound: bool,
}

impl Entry {
    /// The entry in `bytes`; an entry of 0.0.1 gets its number from `name_id`.
    pub fn parse(form: Form, bytes: &[u8], name_id: impl FnOnce(&[u8]) -> u32) -> Result<Self> {
        let mut wire = Wire::new(bytes, 0, ByteOrder::Little, "gsd-005");
        let Form::First(abi) = form else {
            let (frame, n, location) = (wire.u64()?, wire.u64()?, wire.i64()?);
            let (m, id, code, flags) = if form == Form::Second {
                let (id, m, code) = (wire.u16()?, wire.u8()?, wire.u8()?);
                (u64::from(m), id, code, 0)
            } else {
                let m = wire.u32()?;
                (u64::from(m), wire.u16()?, wire.u8()?, wire.u8()?)
            };
            let id = u32::from(id);
            return Ok(Self { frame, n, m, location, id, code, flags, step: 0, sound: true });
        };
        let frame = wire.u64()?;
        let id = name_id(first_name(wire.take(33)?));
        let code = wire.u8()?;
        wire.skip(match abi {
            Abi::X86_64 => 6,
            Abi::I386 => 2,
            Abi::Packed => 0,
        })?;
        let (n, m, step, location) = (wire.u64()?, wire.u64()?, wire.u64()?, wire.i64()?);
        let sum = checksum(code, n, m, step, location);
        let sound = wire.u64()? == sum;
        Ok(Self { frame, n, m, location, id, code, flags: 0, step, sound })
    }

    /// The bytes of the entry; `name` is needed in 0.0.1.
    pub fn encode(&self, form: Form, name: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame.to_le_bytes());
        let Form::First(abi) = form else {
            out.extend_from_slice(&self.n.to_le_bytes());
            out.extend_from_slice(&self.location.to_le_bytes());
            let id = (self.id as u16).to_le_bytes();
            if form == Form::Second {
                out.extend_from_slice(&id);
                out.extend_from_slice(&[self.m as u8, self.code, 0, 0, 0, 0]);
            } else {
                out.extend_from_slice(&(self.m as u32).to_le_bytes());
                out.extend_from_slice(&id);
                out.extend_from_slice(&[self.code, self.flags]);
            }
            return;
        };
        let mut field = [0; 33];
        let length = name.len().min(32);
        field[..length].copy_from_slice(&name[..length]);
        out.extend_from_slice(&field);
        out.push(self.code);
        let padding: &[u8] = match abi {
            Abi::X86_64 => &[0; 6],
            Abi::I386 => &[0; 2],
            Abi::Packed => &[],
        };
        out.extend_from_slice(padding);
        let sum = checksum(self.code, self.n, self.m, self.step, self.location);
        for value in [self.n, self.m, self.step, self.location as u64, sum] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// The element type.
    pub fn kind(&self, form: Form) -> Option<Type> {
        Type::from_code(form, self.code)
    }

    /// Bytes of the data, or nothing if they fit no file.
    pub fn bytes(&self, form: Form) -> Option<u64> {
        let count = self.n.checked_mul(self.m)?;
        count.checked_mul(self.kind(form)?.size()).filter(|n| *n >> 63 == 0)
    }
}

/// The name in an entry of 0.0.1: up to the first NUL.
pub fn first_name(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    &field[..end]
}

/// "type + N + M + step + location" (seed, Index block).
fn checksum(code: u8, n: u64, m: u64, step: u64, location: i64) -> u64 {
    u64::from(code).wrapping_add(n).wrapping_add(m).wrapping_add(step).wrapping_add(location as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
