//! The header in all layouts.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, Error, Result, Source, Wire};

use super::{Abi, Block, CHECK, Form, HEADER, MAGIC, MAGIC_LONG, MARKER, Marker, SLOT, TEXT};

/// The header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Layout of the structures.
    pub form: Form,
    /// Version number as stored.
    pub version: u32,
    /// The program that wrote the file.
    pub application: String,
    /// Name of the schema, which defines the meaning of chunks.
    pub schema: String,
    /// Version of the schema: major in the upper 16 bits, minor in the lower.
    pub schema_version: u32,
    /// Location of the index.
    pub index: Block,
    /// Location of the name list; none in 0.0.1.
    pub names: Option<Block>,
    /// Number of entries, which some files of 0.0.1 store in the header.
    pub stored_count: Option<u64>,
    /// A commit that is not completed.
    pub marker: Option<Marker>,
    /// The encoded header.
    pub raw: Vec<u8>,
}

impl Header {
    /// Reads and validates the header. Locations of index and name list are not checked.
    pub fn read(source: &Source) -> Result<Self> {
        let bytes = fetch(source, 0, HEADER as usize)?;
        let magic = MAGIC.to_le_bytes();
        if bytes.is_empty() {
            return Err(Error::not_this_format("gsd-001", "the file is empty").at(0));
        }
        let common = magic.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        if common < magic.len().min(bytes.len()) {
            let message = "a GSD file starts with the bytes df 65 df 65";
            return Err(Error::not_this_format("gsd-001", message).at(common as u64));
        }
        Wire::new(&bytes, 0, ByteOrder::Little, "gsd-003").u32()?;
        if bytes.get(..8) == Some(&MAGIC_LONG.to_le_bytes()) {
            Self::parse_later(bytes)
        } else {
            Self::parse_first(bytes)
        }
    }

    /// Version 0.0.1. The position of the last field shows the structure padding; 32-bit and packed headers
    /// are equal, and only the checksums of the entries distinguish them.
    fn parse_first(mut bytes: Vec<u8>) -> Result<Self> {
        let checks = |offset: usize| bytes.get(offset..offset + 4) == Some(&CHECK.to_le_bytes());
        let form = if checks(224) {
            Form::V0_0_1(Abi::X86_64)
        } else if checks(220) {
            Form::V0_0_1(Abi::I386)
        } else if bytes.len() < 228 {
            let message = format!("expected a header of 232 bytes, found {}", bytes.len());
            return Err(Error::truncated("gsd-003", message).in_object("header").at(0));
        } else {
            let message =
                "expected the bytes 56 fd 56 fd at the end of the header of version 0.0.1";
            return Err(Error::malformed("gsd-004", message).in_object("header").at(224));
        };
        bytes.truncate(form.header_size() as usize);
        let header = Self::decode(form, bytes)?;
        if header.version != 1 {
            return Err(Self::unknown_version(&format!("0x{:06x}", header.version), 68));
        }
        Ok(header)
    }

    /// Versions since 0.2. In 0.2 the version follows the magic number, at the offset where later versions
    /// have the index location, which is never inside the header.
    fn parse_later(bytes: Vec<u8>) -> Result<Self> {
        if (bytes.len() as u64) < HEADER {
            let message = format!("expected a header of {HEADER} bytes, found {}", bytes.len());
            return Err(Error::truncated("gsd-003", message).in_object("header").at(0));
        }
        let number =
            |at: usize| Wire::new(&bytes[at..], at as u64, ByteOrder::Little, "gsd-003").u32();
        if number(8)? == 2 {
            return Self::decode(Form::V0_2, bytes);
        }
        let version = number(44)?;
        let form = match (version >> 16, version & 0xffff) {
            (0, 3) | (1, _) => Form::V1,
            (2, _) => Form::V2,
            (0, 2) => {
                let message = "version 0.2 in a header of a later version";
                return Err(Error::unsupported("gsd-002", message).in_object("header").at(44));
            }
            (major, minor) => {
                return Err(Self::unknown_version(&format!("{major}.{minor}"), 44));
            }
        };
        Self::decode(form, bytes)
    }

    /// Decodes all fields.
    fn decode(form: Form, raw: Vec<u8>) -> Result<Self> {
        let field = |at: usize| {
            let bytes = raw.get(at..).unwrap_or_default();
            Wire::new(bytes, at as u64, ByteOrder::Little, "gsd-003")
        };
        let block = |at: usize| -> Result<Block> {
            Ok(Block { location: field(at).u64()?, allocated: field(at + 8).u64()? })
        };
        let at = form.text_offsets();
        let (index, names) = form.block_offsets();
        let first = form.is_v0_0_1();
        let stored_count = if first { Some(field(form.count_offset()).u64()?) } else { None };
        let mut marker = field(form.marker_offset());
        let is_marked = marker.u64()? == MARKER;
        let marker = Marker { first: marker.u64()?, end: marker.u64()?, frame: marker.u64()? };
        Ok(Self {
            form,
            version: field(at.version).u32()?,
            application: field(at.application).text(TEXT)?,
            schema: field(at.schema).text(TEXT)?,
            schema_version: field(at.schema_version).u32()?,
            index: block(index)?,
            names: if first { None } else { Some(block(names)?) },
            stored_count: stored_count.filter(|n| *n != 0),
            marker: is_marked.then_some(marker),
            raw,
        })
    }

    fn unknown_version(version: &str, offset: u64) -> Error {
        Error::unsupported("gsd-002", format!("unknown version {version}"))
            .in_object("header")
            .at(offset)
            .hint("known versions are 0.0.1, 0.2, 0.3, 1.x and 2.x; the number may be damaged")
    }

    /// The header of a new file without frames.
    pub fn new(form: Form, version: u32, about: &About) -> Self {
        let size = form.header_size();
        let index = Block { location: size, allocated: form.initial_entries() };
        let names = (!form.is_v0_0_1()).then(|| Block {
            location: size + index.allocated * form.entry_size(),
            allocated: form.initial_slots(),
        });
        let mut raw = vec![0; size as usize];
        let text = |raw: &mut Vec<u8>, at: usize, text: &str| {
            // Leave room for a NUL and do not split a character.
            let mut end = text.len().min(TEXT - 1);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            raw[at..at + end].copy_from_slice(&text.as_bytes()[..end]);
        };
        let offsets = form.text_offsets();
        if form.is_v0_0_1() {
            raw[..4].copy_from_slice(&MAGIC.to_le_bytes());
            let end = raw.len() - if form == Form::V0_0_1(Abi::X86_64) { 8 } else { 4 };
            raw[end..end + 4].copy_from_slice(&CHECK.to_le_bytes());
        } else {
            raw[..8].copy_from_slice(&MAGIC_LONG.to_le_bytes());
        }
        text(&mut raw, offsets.application, &about.application);
        text(&mut raw, offsets.schema, &about.schema);
        let schema_version = (offsets.schema_version, about.schema_version);
        for (at, number) in [(offsets.version, version), schema_version] {
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
            stored_count: None,
            marker: None,
            raw,
        };
        header.with_blocks(index, names)
    }

    /// Returns the header with other locations of index and name list.
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

    /// Returns the header with another commit marker.
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

    /// Returns the header with another entry count, if it stores one.
    pub fn with_count(mut self, count: u64) -> Self {
        if self.stored_count.is_some() {
            self.put(self.form.count_offset(), count);
            self.stored_count = Some(count);
        }
        self
    }

    fn put(&mut self, at: usize, value: u64) {
        self.raw[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// The version as text: `2.1`, `0.0.1`.
    pub fn version_text(&self) -> String {
        match self.form {
            Form::V0_0_1(_) => "0.0.1".into(),
            _ => format!("{}.{}", self.version >> 16, self.version & 0xffff),
        }
    }

    /// The schema version as text: `1.4`, or `1.2.3` in 0.0.1.
    pub fn schema_version_text(&self) -> String {
        let v = self.schema_version;
        match self.form {
            Form::V0_0_1(_) => format!("{}.{}.{}", v >> 16, v >> 8 & 0xff, v & 0xff),
            _ => format!("{}.{}", v >> 16, v & 0xffff),
        }
    }

    /// Offset of the first reserved byte that is not 0 and not part of the commit marker.
    pub fn nonzero_reserved(&self) -> Option<u64> {
        let marker = self.form.marker_offset()..self.form.marker_offset() + 32;
        let mut reserved =
            self.form.reserved().filter(|k| self.marker.is_none() || !marker.contains(k));
        reserved.find(|k| self.raw.get(*k).is_some_and(|b| *b != 0)).map(|k| k as u64)
    }

    /// Application and schema.
    pub fn about(&self) -> About {
        About {
            application: self.application.clone(),
            schema: self.schema.clone(),
            schema_version: self.schema_version,
        }
    }
}

/// Application and schema in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The program that writes the file.
    pub application: String,
    /// Name of the schema, which defines the meaning of chunks.
    pub schema: String,
    /// Version of the schema: major in the upper 16 bits, minor in the lower.
    pub schema_version: u32,
}

/// Blocks of index and name list of version 2.x, one after the other from `location` on, for `entries`
/// entries in `frames` frames and `names` bytes of names.
pub(crate) fn tables_for(location: u64, entries: u64, frames: u64, names: u64) -> (Block, Block) {
    let form = Form::V2;
    let capacity = form.index_capacity(entries, frames).max(form.initial_entries());
    let index = Block { location, allocated: capacity.next_power_of_two() };
    // An empty name ends the list.
    let slots = (names + 1).div_ceil(SLOT).max(form.initial_slots());
    let location = location + index.allocated * form.entry_size();
    (index, Block { location, allocated: slots.next_power_of_two() })
}
