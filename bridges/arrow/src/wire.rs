//! Structures of an Arrow file. Field numbers are those of `File.fbs`, `Message.fbs` and `Schema.fbs`.

use spile_core::error::{Error, Result};
use spile_core::limits::{Budget, Limits};
use spile_core::source::Source;
use spile_core::wire::fetch;

use spile_interchange::arrow::CONTINUATION;
use spile_interchange::flatbuffers::Table;

use crate::stream;

pub(crate) const MAGIC: &[u8] = b"ARROW1";

/// Magic string of Feather version 1.
pub(crate) const FEATHER_1: &[u8] = b"FEA1";

/// Header types of messages.
pub(crate) const DICTIONARY_BATCH: u8 = 2;
pub(crate) const RECORD_BATCH: u8 = 3;

/// Position of a message in the file: metadata, then body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    /// Length of the metadata with its prefix.
    pub(crate) metadata: u64,
    pub(crate) body: u64,
}

impl Block {
    pub(crate) fn parse(bytes: &[u8; 24], end: u64) -> Result<Self> {
        let number = |k: usize| bytes[k..].first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
        let (offset, metadata, body) = (number(0), number(8) & 0xffff_ffff, number(16));
        let stop = offset.checked_add(metadata).and_then(|at| at.checked_add(body));
        if metadata < 16 || stop.is_none_or(|stop| stop > end) {
            let message = format!("message of {metadata} and {body} bytes exceeds the file");
            return Err(Error::malformed("arrow-003", message).at(offset));
        }
        Ok(Self { offset, metadata, body })
    }
}

pub(crate) fn invalid(what: &str) -> Error {
    Error::malformed("arrow-003", format!("missing or invalid {what}"))
}

/// The schema, and where the batches of a file or a stream are.
pub(crate) struct Index {
    /// The footer, or the message with the schema.
    pub(crate) bytes: Vec<u8>,
    /// Its offset.
    pub(crate) start: u64,
    /// End of the messages.
    pub(crate) end: u64,
    /// Dictionary batches and record batches of a stream.
    pub(crate) stream: Option<[Vec<[u8; 24]>; 2]>,
}

impl Index {
    /// The table with the version and the schema.
    fn root(&self) -> Result<Table<'_>> {
        Table::root(&self.bytes).ok_or_else(|| invalid("footer").at(self.start))
    }

    pub(crate) fn schema(&self) -> Result<Table<'_>> {
        let number = if self.stream.is_some() { 2 } else { 1 };
        self.root()?.table(number).ok_or_else(|| invalid("schema").at(self.start))
    }

    /// Version of the metadata.
    pub(crate) fn version(&self) -> Result<i16> {
        Ok(self.root()?.i16(0).unwrap_or(0))
    }

    pub(crate) fn dictionaries(&self) -> Result<&[[u8; 24]]> {
        Ok(match &self.stream {
            Some([dictionaries, _]) => dictionaries,
            None => self.root()?.structs(2),
        })
    }

    pub(crate) fn batches(&self) -> Result<&[[u8; 24]]> {
        Ok(match &self.stream {
            Some([_, batches]) => batches,
            None => self.root()?.structs(3),
        })
    }
}

/// Reads the footer, or finds the messages of a stream.
pub(crate) fn read_index(source: &Source, limits: &Limits, memory: &mut Budget) -> Result<Index> {
    let mut head = [0; 256];
    let got = source.read_at_most(0, &mut head)?;
    let head = &head[..got];
    if head.starts_with(FEATHER_1) {
        let message = "Feather version 1 is not supported";
        let error = Error::unsupported("arrow-006", message).at(0);
        return Err(error.hint("pyarrow.feather.write_feather writes version 2"));
    }
    if head.starts_with(&CONTINUATION) {
        return stream::read_index(source, limits, memory);
    }
    if !head.starts_with(MAGIC) {
        let message = "expected the magic string ARROW1";
        return Err(Error::not_this_format("arrow-001", message).at(0));
    }
    let cut = |message: &str| Error::truncated("arrow-002", message).at(source.len());
    let Some(tail) = source.len().checked_sub(10).filter(|at| *at >= 8) else {
        return Err(cut("unexpected end of file: no footer"));
    };
    let bytes = fetch(source, tail, 10)?;
    if bytes.get(4..) != Some(MAGIC) {
        return Err(cut("no ARROW1 at the end of the file: the footer is missing"));
    }
    let len = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let start = tail.checked_sub(len).filter(|start| *start >= 8).ok_or_else(|| {
        let message = format!("footer of {len} bytes exceeds the file of {} bytes", source.len());
        Error::malformed("arrow-003", message).at(tail)
    })?;
    limits.allow(len.saturating_mul(24), "the footer")?;
    let bytes = fetch(source, start, len as usize)?;
    Ok(Index { bytes, start, end: start, stream: None })
}

/// The record batch of a message that begins with its prefix, and the length of the metadata. `kind` is the type of the
/// header.
pub(crate) fn batch(message: &[u8], kind: u8) -> Option<(Table<'_>, usize)> {
    let (mark, rest) = message.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    let root = Table::root(rest.get(..len)?)?;
    (*mark == CONTINUATION && root.u8(1) == Some(kind)).then_some(())?;
    Some((root.table(2)?, 8 + len))
}
