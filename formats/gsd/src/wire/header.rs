//! The header in its four layouts.

use spile_core::error::{Error, Result};
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

use super::{Abi, Block, CHECK, Form, HEADER, MAGIC, MAGIC_LONG, MARKER, Marker, TEXT};

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
        if bytes.is_empty() {
            return Err(Error::not_this_format("gsd-001", "the file is empty").at(0));
        }
        let common = magic.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        if common < magic.len().min(bytes.len()) {
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
                (0, 2) => {
                    let message = "the version is 0.2, but the header is that of a later one";
                    return Err(Error::unsupported("gsd-002", message).in_object("header").at(44));
                }
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
            .hint("known are 0.0.1, 0.2, 0.3, 1.x and 2.x; the number may be damaged")
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
