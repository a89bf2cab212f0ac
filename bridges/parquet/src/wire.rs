//! The structures of a Parquet file: the footer, and the header of a page. Numbers of fields are those of
//! `parquet.thrift`.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, fetch};

use crate::thrift::{self, Struct, Value};

pub(crate) const MAGIC: &[u8] = b"PAR1";

/// A header of a page is hardly longer, unless it has statistics of long texts.
const PAGE_HEADER: u64 = 64 << 10;

/// Physical types.
const BOOLEAN: i32 = 0;
const INT32: i32 = 1;
const INT64: i32 = 2;
const FLOAT: i32 = 4;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;

/// Encodings.
pub(crate) const PLAIN: i64 = 0;
pub(crate) const OLD_DICTIONARY: i64 = 2;
pub(crate) const RLE: i64 = 3;
pub(crate) const BIT_PACKED: i64 = 4;
pub(crate) const DICTIONARY: i64 = 8;

/// How a type lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// As its bytes.
    Plain,
    /// As numbers of 32 bits.
    Wide,
    /// As bits.
    Bits,
    /// As texts or bytes, each behind its length.
    Texts,
}

impl Stored {
    /// How a type is written. Bytes could lie as they are, but fastparquet loses zeros at their end then.
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        match (dtype.kind(), dtype.size()) {
            (Kind::Int | Kind::UInt | Kind::Float, 4 | 8) => Some(Self::Plain),
            (Kind::Int | Kind::UInt, _) => Some(Self::Wide),
            (Kind::Bool, 1) => Some(Self::Bits),
            (Kind::Text, _) | (Kind::Opaque, 1..) => Some(Self::Texts),
            _ => None,
        }
    }

    /// Elements as they are stored, from little-endian ones.
    pub(crate) fn encode(self, dtype: DType, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Plain => return Ok(bytes),
            Self::Wide => {
                convert::recode_integers(dtype, wide(dtype), &bytes, &mut out);
            }
            Self::Bits => {
                out.extend(bytes.chunks(8).map(|group| {
                    group.iter().enumerate().fold(0, |byte, (k, b)| byte | u8::from(*b != 0) << k)
                }));
            }
            Self::Texts => {
                let size = dtype.size();
                for k in 0..bytes.len().checked_div(size).unwrap_or(0) {
                    let text = &bytes[k * size..(k + 1) * size];
                    let is_text = dtype.kind() == Kind::Text;
                    let used = text.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                    let end = if is_text { used } else { size };
                    if is_text && std::str::from_utf8(&text[..end]).is_err() {
                        let message = "a text that is not UTF-8";
                        return Err(Error::unsupported("parquet-011", message));
                    }
                    out.extend((end as u32).to_le_bytes());
                    out.extend(&text[..end]);
                }
            }
        }
        Ok(out)
    }

    /// The other way; `out` has the bytes of all elements.
    pub(crate) fn decode(self, dtype: DType, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let short = || Error::malformed("parquet-005", "a page has fewer values than it says");
        match self {
            Self::Plain => out.copy_from_slice(stored.get(..out.len()).ok_or_else(short)?),
            Self::Wide => {
                let mut narrow = Vec::new();
                convert::recode_integers(wide(dtype), dtype, stored, &mut narrow);
                out.copy_from_slice(narrow.get(..out.len()).ok_or_else(short)?);
            }
            Self::Bits => {
                for (k, place) in out.iter_mut().enumerate() {
                    *place = stored.get(k / 8).ok_or_else(short)? >> (k % 8) & 1;
                }
            }
            Self::Texts => {
                let mut rest = stored;
                for place in out.chunks_exact_mut(dtype.size().max(1)) {
                    let (text, behind) = next_text(rest).ok_or_else(short)?;
                    let text = text.get(..place.len()).unwrap_or(text);
                    place.fill(0);
                    place[..text.len()].copy_from_slice(text);
                    rest = behind;
                }
            }
        }
        Ok(())
    }
}

/// The type of 32 bits that holds a narrower one.
fn wide(dtype: DType) -> DType {
    if dtype.kind() == Kind::UInt { DType::U32 } else { DType::I32 }
}

/// A text behind its length, and what follows.
pub(crate) fn next_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_at_checked(4)?;
    let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]);
    rest.split_at_checked(len as usize)
}

/// The entry of the schema for a column.
pub(crate) fn column(name: &str, dtype: DType, optional: bool) -> Struct {
    let (physical, converted) = match (dtype.kind(), dtype.size()) {
        (Kind::Bool, _) => (BOOLEAN, None),
        (Kind::Int, 1) => (INT32, Some(15)),
        (Kind::Int, 2) => (INT32, Some(16)),
        (Kind::Int, 4) => (INT32, None),
        (Kind::Int, _) => (INT64, None),
        (Kind::UInt, 1) => (INT32, Some(11)),
        (Kind::UInt, 2) => (INT32, Some(12)),
        (Kind::UInt, 4) => (INT32, Some(13)),
        (Kind::UInt, _) => (INT64, Some(14)),
        (Kind::Float, 4) => (FLOAT, None),
        (Kind::Float, _) => (DOUBLE, None),
        (Kind::Opaque, _) => (BYTE_ARRAY, None),
        _ => (BYTE_ARRAY, Some(0)),
    };
    let mut fields = Struct::default().with(1, Value::Short(physical));
    if physical == BYTE_ARRAY {
        // Nobody else looks at this: how long texts may be, and bytes are.
        fields = fields.with(2, Value::Short(i32::try_from(dtype.size()).unwrap_or(i32::MAX)));
    }
    fields = fields.with(3, Value::Short(i32::from(optional))).with(4, name.into());
    match converted {
        Some(converted) => fields.with(6, Value::Short(converted)),
        None => fields,
    }
}

/// The type of a column, and how long its texts may be where that is said.
pub(crate) fn column_type(schema: &Struct) -> Option<DType> {
    let integer = |kind, size| DType::new(kind, size, ByteOrder::Little);
    let whole = |converted: Option<i64>, size| match converted {
        None | Some(17 | 18) => integer(Kind::Int, size),
        Some(15) => integer(Kind::Int, 1),
        Some(16) => integer(Kind::Int, 2),
        Some(11) => integer(Kind::UInt, 1),
        Some(12) => integer(Kind::UInt, 2),
        Some(13 | 14) => integer(Kind::UInt, size),
        Some(_) => None,
    };
    let converted = schema.int(6);
    match (i32::try_from(schema.int(1)?).ok()?, converted) {
        (BOOLEAN, _) => integer(Kind::Bool, 1),
        (INT32, converted) => whole(converted, 4),
        (INT64, converted) => whole(converted, 8),
        (FLOAT, None) => Some(DType::F32),
        (DOUBLE, None) => Some(DType::F64),
        // Only spile says how long bytes are; of others these are texts without a word about it.
        (BYTE_ARRAY, None) if schema.int(2).is_some_and(|size| size > 0) => {
            Some(DType::opaque(u32::try_from(schema.int(2)?).ok()?))
        }
        (BYTE_ARRAY, _) => Some(DType::text(u32::try_from(schema.int(2).unwrap_or(0)).ok()?)),
        _ => None,
    }
}

/// The header of a page with `count` values in `bytes`.
pub(crate) fn page_header(count: u64, bytes: u64) -> Result<Vec<u8>> {
    let short = |n: u64| {
        let n = i32::try_from(n);
        n.map(Value::Short).map_err(|_| Error::unsupported("parquet-011", "a row group over 2 GiB"))
    };
    let data = Struct::default()
        .with(1, short(count)?)
        .with(2, Value::Short(PLAIN as i32))
        .with(3, Value::Short(RLE as i32))
        .with(4, Value::Short(RLE as i32));
    let header = Struct::default()
        .with(1, Value::Short(0))
        .with(2, short(bytes)?)
        .with(3, short(bytes)?)
        .with(5, Value::Struct(data));
    let mut out = Vec::new();
    thrift::write(&header, &mut out);
    Ok(out)
}

/// The header of the page at `offset`, and its length.
pub(crate) fn read_page_header(source: &Source, offset: u64, end: u64) -> Result<(Struct, u64)> {
    let len = end.saturating_sub(offset).min(PAGE_HEADER) as usize;
    let bytes = fetch(source, offset, len)?;
    let mut reader = thrift::Reader::new(&bytes, offset);
    let header = reader.read_struct()?;
    Ok((header, reader.position()))
}

/// The metadata at the end of the file, and where they begin.
pub(crate) fn read_footer(source: &Source, limits: &Limits) -> Result<(Struct, u64)> {
    let head = fetch(source, 0, 4)?;
    if head != MAGIC {
        let message = "a Parquet file begins with PAR1";
        return Err(Error::not_this_format("parquet-001", message).at(0));
    }
    let cut = |message: &str| Error::truncated("parquet-002", message).at(source.len());
    let Some(tail) = source.len().checked_sub(8).filter(|at| *at >= 4) else {
        return Err(cut("the file ends before its metadata"));
    };
    let bytes = fetch(source, tail, 8)?;
    if bytes.get(4..) != Some(MAGIC) {
        return Err(cut("the file does not end with PAR1: its metadata are missing"));
    }
    let len = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let start = tail.checked_sub(len).filter(|start| *start >= 4).ok_or_else(|| {
        let message = format!("metadata of {len} bytes in a file of {}", source.len());
        Error::malformed("parquet-003", message).at(tail)
    })?;
    // A field of one byte takes many in memory.
    limits.allow(len.saturating_mul(48), "the metadata")?;
    let bytes = fetch(source, start, len as usize)?;
    Ok((thrift::Reader::new(&bytes, start).read_struct()?, start))
}
