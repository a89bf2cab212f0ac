//! Structures of a Parquet file: the footer and page headers. Field ids are those of `parquet.thrift`.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, fetch};

use crate::thrift::{self, Struct, Value};

pub(crate) const MAGIC: &[u8] = b"PAR1";

/// Maximum length of a page header. Only statistics of long strings make it longer.
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

/// Representation of a type in the plain encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// As in memory.
    Plain,
    /// As 32-bit integers.
    Wide,
    /// As bits.
    Bits,
    /// As byte arrays, each preceded by its length.
    ByteArrays,
}

impl Stored {
    /// The representation of a type; `None` if it is not supported. Opaque bytes are byte arrays because
    /// fastparquet drops trailing zeros of fixed-length ones.
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        match (dtype.kind(), dtype.size()) {
            (Kind::Int | Kind::UInt | Kind::Float, 4 | 8) => Some(Self::Plain),
            (Kind::Int | Kind::UInt, _) => Some(Self::Wide),
            (Kind::Bool, 1) => Some(Self::Bits),
            (Kind::Text, _) | (Kind::Opaque, 1..) => Some(Self::ByteArrays),
            _ => None,
        }
    }

    /// Encodes little-endian elements. Fails for strings that are not UTF-8.
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
            Self::ByteArrays => {
                let size = dtype.size();
                for k in 0..bytes.len().checked_div(size).unwrap_or(0) {
                    let text = &bytes[k * size..(k + 1) * size];
                    let is_text = dtype.kind() == Kind::Text;
                    let used = text.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                    let end = if is_text { used } else { size };
                    if is_text && std::str::from_utf8(&text[..end]).is_err() {
                        let message = "a string is not UTF-8";
                        return Err(Error::unsupported("parquet-011", message));
                    }
                    out.extend((end as u32).to_le_bytes());
                    out.extend(&text[..end]);
                }
            }
        }
        Ok(out)
    }

    /// Decodes `stored` into little-endian elements that fill `out`.
    pub(crate) fn decode(self, dtype: DType, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let short =
            || Error::malformed("parquet-005", "page has fewer values than its header states");
        match self {
            Self::Plain => out.copy_from_slice(stored.get(..out.len()).ok_or_else(short)?),
            Self::Wide => {
                let mut narrow = Vec::new();
                convert::recode_integers(wide(dtype), dtype, stored, &mut narrow);
                out.copy_from_slice(narrow.get(..out.len()).ok_or_else(short)?);
            }
            Self::Bits => {
                for (k, slot) in out.iter_mut().enumerate() {
                    *slot = stored.get(k / 8).ok_or_else(short)? >> (k % 8) & 1;
                }
            }
            Self::ByteArrays => {
                let mut rest = stored;
                for slot in out.chunks_exact_mut(dtype.size().max(1)) {
                    let (text, after) = next_byte_array(rest).ok_or_else(short)?;
                    let text = text.get(..slot.len()).unwrap_or(text);
                    slot.fill(0);
                    slot[..text.len()].copy_from_slice(text);
                    rest = after;
                }
            }
        }
        Ok(())
    }
}

/// The 32-bit type for a narrower integer type.
fn wide(dtype: DType) -> DType {
    if dtype.kind() == Kind::UInt { DType::U32 } else { DType::I32 }
}

/// Splits off the first byte array; `None` if it exceeds `bytes`.
pub(crate) fn next_byte_array(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_at_checked(4)?;
    let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]);
    rest.split_at_checked(len as usize)
}

/// The schema element of a column.
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
        // Maximum length of strings, or length of opaque bytes. Other readers ignore it.
        fields = fields.with(2, Value::Short(i32::try_from(dtype.size()).unwrap_or(i32::MAX)));
    }
    fields = fields.with(3, Value::Short(i32::from(optional))).with(4, name.into());
    match converted {
        Some(converted) => fields.with(6, Value::Short(converted)),
        None => fields,
    }
}

/// The type of a leaf column; `None` if it is not supported. The length of strings is 0 unless spile wrote the
/// file.
pub(crate) fn column_type(schema: &Struct) -> Option<DType> {
    let integer = |kind, size| DType::new(kind, size, ByteOrder::Little);
    let integers = |converted: Option<i64>, size| match converted {
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
        (INT32, converted) => integers(converted, 4),
        (INT64, converted) => integers(converted, 8),
        (FLOAT, None) => Some(DType::F32),
        (DOUBLE, None) => Some(DType::F64),
        // Only spile writes the length of opaque bytes. Byte arrays of other writers are taken as strings.
        (BYTE_ARRAY, None) if schema.int(2).is_some_and(|size| size > 0) => {
            Some(DType::opaque(u32::try_from(schema.int(2)?).ok()?))
        }
        // UTF8, ENUM, JSON.
        (BYTE_ARRAY, None | Some(0 | 4 | 19)) => {
            Some(DType::text(u32::try_from(schema.int(2).unwrap_or(0)).ok()?))
        }
        _ => None,
    }
}

/// Name of the logical, converted or physical type of a leaf column, for messages.
pub(crate) fn type_name(schema: &Struct) -> String {
    let logical = schema.inner(10).and_then(|union| union.0.first());
    let name = match (logical.map(|(id, _)| *id), schema.int(6), schema.int(1)) {
        (Some(5), ..) | (_, Some(5), _) => "DECIMAL",
        (Some(6), ..) | (_, Some(6), _) => "DATE",
        (Some(7), ..) | (_, Some(7 | 8), _) => "TIME",
        (Some(8), ..) | (_, Some(9 | 10), _) => "TIMESTAMP",
        (Some(13), ..) | (_, Some(20), _) => "BSON",
        (Some(14), ..) => "UUID",
        (Some(15), ..) => "FLOAT16",
        (_, Some(21), _) => "INTERVAL",
        (_, _, Some(3)) => "INT96",
        (_, _, Some(7)) => "FIXED_LEN_BYTE_ARRAY",
        (_, converted, physical) => {
            let text = |code: Option<i64>| code.map_or("none".into(), |code| code.to_string());
            return format!("{} (converted type {})", text(physical), text(converted));
        }
    };
    name.into()
}

/// Encodes the header of a plain data page with `count` values in `bytes` bytes.
pub(crate) fn page_header(count: u64, bytes: u64) -> Result<Vec<u8>> {
    let short = |n: u64| {
        let n = i32::try_from(n);
        n.map(Value::Short)
            .map_err(|_| Error::unsupported("parquet-011", "row group larger than 2 GiB"))
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

/// Reads the page header at `offset`. Returns it and its length.
pub(crate) fn read_page_header(source: &Source, offset: u64, end: u64) -> Result<(Struct, u64)> {
    let len = end.saturating_sub(offset).min(PAGE_HEADER) as usize;
    let bytes = fetch(source, offset, len)?;
    let mut reader = thrift::Reader::new(&bytes, offset);
    let header = reader.read_struct()?;
    Ok((header, reader.position()))
}

/// Reads the metadata at the end of the file. Returns them and their offset.
pub(crate) fn read_footer(source: &Source, limits: &Limits) -> Result<(Struct, u64)> {
    let head = fetch(source, 0, 4)?;
    if head != MAGIC {
        let message = "expected the magic string PAR1";
        return Err(Error::not_this_format("parquet-001", message).at(0));
    }
    let cut = |message: &str| Error::truncated("parquet-002", message).at(source.len());
    let Some(tail) = source.len().checked_sub(8).filter(|at| *at >= 4) else {
        return Err(cut("unexpected end of file: no metadata"));
    };
    let bytes = fetch(source, tail, 8)?;
    if bytes.get(4..) != Some(MAGIC) {
        return Err(cut("no PAR1 at the end of the file: the metadata are missing"));
    }
    let len = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let start = tail.checked_sub(len).filter(|start| *start >= 4).ok_or_else(|| {
        let message = format!("metadata of {len} bytes exceed the file of {} bytes", source.len());
        Error::malformed("parquet-003", message).at(tail)
    })?;
    // A field of one byte takes up to 40 bytes in memory.
    limits.allow(len.saturating_mul(48), "the metadata")?;
    let bytes = fetch(source, start, len as usize)?;
    Ok((thrift::Reader::new(&bytes, start).read_struct()?, start))
}
