//! Buffers of one column in a record batch as elements.

use std::borrow::Cow;
use std::sync::Arc;

use spile_codecs::{Pipeline, Step};
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;
use spile_core::limits::Limits;
use spile_interchange::table::{missing_element, missing_number};

use crate::types::{Conversion, Storage};
use crate::wire;
use spile_interchange::flatbuffers::Table;

/// Where a column is in the lists of a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPosition {
    /// Number of its field node.
    pub(crate) node: usize,
    /// Number of its first buffer; columns of views before it have more.
    pub(crate) buffer: usize,
    /// Number of columns of views before it.
    pub(crate) views: usize,
}

/// Codec of a column: a chunk is the metadata of a record batch, followed by the buffers of the column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnCodec {
    pub(crate) position: BatchPosition,
    /// Header type of the messages.
    pub(crate) kind: u8,
    pub(crate) storage: Storage,
    pub(crate) conversion: Conversion,
    pub(crate) dtype: DType,
    /// Whether rows may have no value, of which each becomes [`missing_element`].
    pub(crate) gaps: bool,
    /// Rows without a value are those of frames without the array, which are not read.
    pub(crate) framed: bool,
    /// Values of the dictionary, whose indices are the column.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    pub(crate) limits: Limits,
}

/// Values that a column refers to.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// Bytes of all values.
    pub(crate) bytes: Vec<u8>,
    /// Where they begin, and the end of the last one.
    pub(crate) starts: Vec<usize>,
    /// Type of the indices.
    pub(crate) index: Option<DType>,
}

/// Buffers of a column in a record batch.
struct Buffers<'a> {
    rows: usize,
    missing: u64,
    parts: Vec<Cow<'a, [u8]>>,
}

fn invalid(message: &str) -> Error {
    Error::malformed("arrow-005", message.to_string())
}

fn short() -> Error {
    invalid("a buffer is shorter than its column")
}

/// The record batch of a header: that of a dictionary is in another table.
pub(crate) fn record(header: Table<'_>, kind: u8) -> Option<Table<'_>> {
    if kind == wire::DICTIONARY_BATCH { header.table(1) } else { Some(header) }
}

fn pair(bytes: &[u8; 16]) -> Option<(u64, u64)> {
    let (first, second) = bytes.split_at(8);
    let number = |bytes: &[u8]| u64::try_from(i64::from_le_bytes(bytes.try_into().ok()?)).ok();
    Some((number(first)?, number(second)?))
}

impl ColumnCodec {
    /// Rows and missing values of the column in a record batch.
    pub(crate) fn node(&self, batch: Table<'_>) -> Result<(u64, u64)> {
        let node = batch.structs::<16>(1).get(self.position.node).and_then(pair);
        node.filter(|(rows, missing)| missing <= rows).ok_or_else(|| wire::invalid("field node"))
    }

    /// Positions and lengths of the buffers of the column in the body.
    pub(crate) fn ranges(&self, batch: Table<'_>) -> Result<Vec<(u64, u64)>> {
        let counts = batch.structs::<8>(4);
        let variadic = |k: usize| -> Result<usize> {
            let count = counts.get(k).map(|bytes| i64::from_le_bytes(*bytes));
            let count = count.and_then(|count| usize::try_from(count).ok());
            count.ok_or_else(|| wire::invalid("number of buffers of a view"))
        };
        let mut first = self.position.buffer;
        for k in 0..self.position.views {
            first = first.saturating_add(variadic(k)?);
        }
        let count = match self.storage {
            _ if self.dictionary.is_some() => 2,
            Storage::Null => 0,
            Storage::Fixed(_) | Storage::Bits => 2,
            Storage::Offsets(_) => 3,
            Storage::Views => variadic(self.position.views)?.saturating_add(2),
        };
        let own = first.checked_add(count).and_then(|end| batch.structs::<16>(2).get(first..end));
        let own = own.ok_or_else(|| wire::invalid("buffers"))?;
        own.iter().map(|bytes| pair(bytes).ok_or_else(|| wire::invalid("buffer"))).collect()
    }

    /// Splits a chunk into its buffers, decompressed.
    fn buffers<'a>(&self, stored: &'a [u8]) -> Result<Buffers<'a>> {
        let (header, len) =
            wire::batch(stored, self.kind).ok_or_else(|| wire::invalid("message"))?;
        let batch = record(header, self.kind).ok_or_else(|| wire::invalid("record batch"))?;
        let (rows, missing) = self.node(batch)?;
        let step = match batch.table(3).map(|own| own.u8(0).unwrap_or(0)) {
            None => None,
            Some(0) => Some(Step::Lz4Frame),
            Some(1) => Some(Step::Zstd),
            Some(_) => return Err(Error::unsupported("arrow-006", "unknown compression")),
        };
        let pipeline = step.and_then(|step| Pipeline::new(vec![step], "arrow-005"));
        let ranges = self.ranges(batch)?;
        let base = ranges.iter().filter(|(_, len)| *len > 0).map(|(at, _)| *at).min().unwrap_or(0);
        let mut parts = Vec::new();
        for (at, size) in ranges {
            let from =
                usize::try_from(at.saturating_sub(base)).ok().and_then(|at| at.checked_add(len));
            let end =
                from.zip(usize::try_from(size).ok()).and_then(|(from, n)| from.checked_add(n));
            let part = if size == 0 {
                &[][..]
            } else {
                from.zip(end).and_then(|(from, end)| stored.get(from..end)).ok_or_else(short)?
            };
            parts.push(match &pipeline {
                Some(pipeline) if size > 0 => self.decompress(pipeline, part)?,
                _ => part.into(),
            });
        }
        let rows = self.limits.allow(rows, "the rows of a record batch")?;
        Ok(Buffers { rows, missing, parts })
    }

    /// A buffer is preceded by its length, which is -1 if it is not compressed.
    fn decompress<'a>(&self, pipeline: &Pipeline, part: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let (len, rest) = part.split_first_chunk().ok_or_else(short)?;
        let len = i64::from_le_bytes(*len);
        if len == -1 {
            return Ok(rest.into());
        }
        let len = u64::try_from(len).map_err(|_| invalid("length of a buffer is negative"))?;
        let mut out = vec![0; self.limits.allow(len, "a buffer")?];
        pipeline.decode(rest, &mut out)?;
        Ok(out.into())
    }

    /// Calls `each` with the bytes of each row; `None` without a value.
    pub(crate) fn rows(
        &self,
        stored: &[u8],
        mut each: impl FnMut(Option<&[u8]>) -> Result<()>,
    ) -> Result<u64> {
        let Buffers { rows, missing, parts } = self.buffers(stored)?;
        let (none, buffer) =
            (Cow::Borrowed(&[][..]), |k: usize| parts.get(k).map_or(&[][..], |p| p));
        let validity = parts.first().unwrap_or(&none);
        let bit = |bits: &[u8], k: usize| Some(bits.get(k / 8)? >> (k % 8) & 1 == 1);
        for k in 0..rows {
            let defined =
                validity.is_empty() || missing == 0 || bit(validity, k).ok_or_else(short)?;
            if !defined || (self.storage == Storage::Null && self.dictionary.is_none()) {
                each(None)?;
                continue;
            }
            if let Some(dictionary) = &self.dictionary {
                each(Some(dictionary.value(buffer(1), k)?))?;
                continue;
            }
            let flag;
            let value = match self.storage {
                Storage::Null => &[][..],
                Storage::Bits => {
                    flag = [u8::from(bit(buffer(1), k).ok_or_else(short)?)];
                    &flag
                }
                Storage::Fixed(size) => {
                    buffer(1).get(k * size..(k + 1) * size).ok_or_else(short)?
                }
                Storage::Offsets(size) => {
                    let (from, to) = (offset(buffer(1), k, size)?, offset(buffer(1), k + 1, size)?);
                    buffer(2).get(from..to).ok_or_else(short)?
                }
                Storage::Views => view(&parts, k).ok_or_else(short)?,
            };
            each(Some(value))?;
        }
        Ok(rows as u64)
    }

    /// Stores a value as an element.
    fn store(&self, value: &[u8], slot: &mut [u8]) -> Result<()> {
        match self.conversion {
            Conversion::Copy => {
                let (start, end) = slot
                    .split_at_mut_checked(value.len())
                    .ok_or_else(|| invalid("a string is longer than when the file was opened"))?;
                start.copy_from_slice(value);
                end.fill(0);
            }
            Conversion::Float(own) => {
                slot.copy_from_slice(&convert::element_f64(own, value).to_le_bytes());
            }
            Conversion::Decimal(scale) => {
                let digits = integer(value).ok_or_else(|| {
                    Error::unsupported("arrow-020", "a decimal number has more than 38 digits")
                })?;
                if self.dtype.kind() == Kind::Float {
                    let number: f64 = format!("{digits}e-{scale}").parse().unwrap_or(f64::NAN);
                    slot.copy_from_slice(&number.to_le_bytes());
                } else {
                    let message = "a decimal number exceeds the precision of its column";
                    let digits = i64::try_from(digits).map_err(|_| invalid(message))?;
                    slot.copy_from_slice(&digits.to_le_bytes());
                }
            }
        }
        let number = missing_number(self.dtype).filter(|_| self.gaps && !self.framed);
        if number.is_some_and(|number| convert::element_f64(self.dtype, slot) == number) {
            let message = "a value equals the number that stands for missing values";
            return Err(Error::unsupported("arrow-021", message));
        }
        Ok(())
    }
}

fn offset(bytes: &[u8], k: usize, size: usize) -> Result<usize> {
    let at = k.checked_mul(size).and_then(|at| bytes.get(at..)).ok_or_else(short)?;
    let number = match size {
        4 => at.first_chunk().map(|n| i64::from(i32::from_le_bytes(*n))),
        _ => at.first_chunk().map(|n| i64::from_le_bytes(*n)),
    };
    number.and_then(|n| usize::try_from(n).ok()).ok_or_else(short)
}

/// The bytes of a view: a length, and up to 12 bytes or the prefix, number of a buffer and position.
fn view<'a>(parts: &'a [Cow<'a, [u8]>], k: usize) -> Option<&'a [u8]> {
    let own = parts.get(1)?.get(k.checked_mul(16)?..)?.first_chunk::<16>()?;
    let number = |at: usize| usize::try_from(i32::from_le_bytes(*own[at..].first_chunk()?)).ok();
    let len = number(0)?;
    if len <= 12 {
        return own.get(4..4 + len);
    }
    let (buffer, from) = (number(8)?, number(12)?);
    parts.get(buffer.checked_add(2)?)?.get(from..from.checked_add(len)?)
}

/// A little-endian integer of any length; `None` if it exceeds 128 bits.
fn integer(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.last().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
    let mut all = [sign; 16];
    let kept = bytes.len().min(16);
    all[..kept].copy_from_slice(&bytes[..kept]);
    let number = i128::from_le_bytes(all);
    let exact = bytes[kept..].iter().all(|b| *b == sign) && (number < 0) == (sign == 0xff);
    exact.then_some(number)
}

impl Dictionary {
    /// The value that index `k` of a column refers to.
    fn value(&self, indices: &[u8], k: usize) -> Result<&[u8]> {
        let dtype = self.index.unwrap_or(DType::I32);
        let size = dtype.size();
        let own = indices.get(k * size..(k + 1) * size).ok_or_else(short)?;
        let own = convert::element_f64(dtype, own);
        let beyond = || invalid("index exceeds the dictionary");
        if !(0.0..(self.starts.len() as f64)).contains(&own) {
            return Err(beyond());
        }
        let range = self.starts.get(own as usize).zip(self.starts.get(own as usize + 1));
        range.and_then(|(from, to)| self.bytes.get(*from..*to)).ok_or_else(beyond)
    }
}

impl Codec for ColumnCodec {
    fn name(&self) -> &'static str {
        "record batch"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size().max(1);
        let missing = missing_element(self.dtype);
        let mut slots = out.chunks_exact_mut(size);
        self.rows(stored, |value| {
            let slot = slots.next().ok_or_else(|| invalid("more rows than in the metadata"))?;
            match value {
                Some(value) => self.store(value, slot)?,
                None if self.gaps => slot.copy_from_slice(&missing),
                None => return Err(invalid("missing values in a column without any")),
            }
            Ok(())
        })?;
        if slots.next().is_none() {
            Ok(())
        } else {
            Err(invalid("fewer rows than in the metadata"))
        }
    }
}
