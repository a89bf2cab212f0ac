//! Structures of a Parquet file: the footer and page headers. Field ids are those of `parquet.thrift`.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::limits::{Budget, Limits};
use spile_core::source::Source;
use spile_core::wire::fetch;

use crate::thrift::{self, Struct, Value};

pub(crate) const MAGIC: &[u8] = b"PAR1";

/// Magic string of files whose metadata are encrypted.
pub(crate) const ENCRYPTED: &[u8] = b"PARE";

/// Key of the Arrow schema of the table, from which pyarrow restores the metadata of fields: a message, in base64.
pub(crate) const ARROW_SCHEMA: &str = "ARROW:schema";

/// Maximum length of a page header. Only statistics of long strings make it longer.
const PAGE_HEADER: u64 = 64 << 10;

/// Field of a page header: CRC-32 of the page as stored.
pub(crate) const PAGE_CHECKSUM: i16 = 4;

/// Physical types.
pub(crate) const BOOLEAN: i32 = 0;
pub(crate) const INT32: i32 = 1;
pub(crate) const INT64: i32 = 2;
pub(crate) const INT96: i32 = 3;
pub(crate) const FLOAT: i32 = 4;
pub(crate) const DOUBLE: i32 = 5;
pub(crate) const BYTE_ARRAY: i32 = 6;
pub(crate) const FIXED: i32 = 7;

/// Encodings.
pub(crate) const PLAIN: i64 = 0;
pub(crate) const OLD_DICTIONARY: i64 = 2;
pub(crate) const RLE: i64 = 3;
pub(crate) const BIT_PACKED: i64 = 4;
pub(crate) const DELTA_BINARY_PACKED: i64 = 5;
pub(crate) const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
pub(crate) const DELTA_BYTE_ARRAY: i64 = 7;
pub(crate) const DICTIONARY: i64 = 8;
pub(crate) const BYTE_STREAM_SPLIT: i64 = 9;

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
        (Kind::Float, 2) => (FIXED, None),
        (Kind::Float, 4) => (FLOAT, None),
        (Kind::Float, _) => (DOUBLE, None),
        (Kind::Opaque, _) => (BYTE_ARRAY, None),
        _ => (BYTE_ARRAY, Some(0)),
    };
    let mut fields = Struct::default().with(1, Value::Short(physical));
    if physical == BYTE_ARRAY || physical == FIXED {
        // Maximum length of strings, or length of opaque bytes: other readers ignore it for byte arrays.
        fields = fields.with(2, Value::Short(i32::try_from(dtype.size()).unwrap_or(i32::MAX)));
    }
    fields = fields.with(3, Value::Short(i32::from(optional))).with(4, name.into());
    match converted {
        Some(converted) => fields.with(6, Value::Short(converted)),
        // FLOAT16 has no converted type.
        None if physical == FIXED => {
            let half = Struct::default().with(15, Value::Struct(Struct::default()));
            fields.with(10, Value::Struct(half))
        }
        None => fields,
    }
}

/// Encodes the header of a data page of plain values: `count` values in `plain` bytes, compressed to `bytes`.
pub(crate) fn page_header(count: u64, plain: u64, bytes: u64) -> Result<Vec<u8>> {
    let short = |n: u64| {
        let n = i32::try_from(n);
        n.map(Value::Short)
            .map_err(|_| Error::unsupported("parquet-012", "row group larger than 2 GiB"))
    };
    let data = Struct::default()
        .with(1, short(count)?)
        .with(2, Value::Short(PLAIN as i32))
        .with(3, Value::Short(RLE as i32))
        .with(4, Value::Short(RLE as i32));
    let header = Struct::default()
        .with(1, Value::Short(0))
        .with(2, short(plain)?)
        .with(3, short(bytes)?)
        .with(5, Value::Struct(data));
    let mut out = Vec::new();
    thrift::write(&header, &mut out);
    Ok(out)
}

/// Reads the page header at `offset`. Returns it and its length.
pub(crate) fn read_page_header(
    source: &Source,
    offset: u64,
    end: u64,
    limits: &Limits,
) -> Result<(Struct, u64)> {
    let len = end.saturating_sub(offset).min(PAGE_HEADER) as usize;
    let bytes = fetch(source, offset, len)?;
    let mut reader = thrift::Reader::new(&bytes, offset, Budget::new(limits));
    let header = reader.read_struct()?;
    Ok((header, reader.position()))
}

/// Reads the metadata at the end of the file. Returns them and their offset.
pub(crate) fn read_footer(source: &Source, limits: &Limits) -> Result<(Struct, u64)> {
    let head = fetch(source, 0, 4)?;
    if head == ENCRYPTED {
        return Err(Error::unsupported("parquet-006", "encrypted files are not supported").at(0));
    }
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
    limits.allow(len, "the metadata")?;
    let bytes = fetch(source, start, len as usize)?;
    Ok((thrift::Reader::new(&bytes, start, Budget::new(limits)).read_struct()?, start))
}
