//! Decoding of column chunks with compressed pages, dictionaries or version 2 data pages. A chunk is decoded as
//! one unit.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::GzDecoder;
use ruzstd::decoding::FrameDecoder;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;
use spile_core::limits::Limits;

use crate::thrift::{self, Struct};
use crate::wire::{self, DICTIONARY, OLD_DICTIONARY, PLAIN, RLE, Stored};
use crate::{levels, rle};

/// Page types.
const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
const DATA_2: i64 = 3;

/// Compression of the pages of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Snappy,
    Gzip,
    Zstd,
    Lz4,
}

impl Compression {
    pub(crate) fn of(code: Option<i64>) -> Option<Self> {
        Some(match code? {
            0 => Self::None,
            1 => Self::Snappy,
            2 => Self::Gzip,
            6 => Self::Zstd,
            7 => Self::Lz4,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "pages",
            Self::Snappy => "snappy",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// Decompresses a page of `size` bytes. Fails if it has another size.
    fn decompress<'a>(self, stored: &'a [u8], size: u64, limits: &Limits) -> Result<Cow<'a, [u8]>> {
        if self == Self::None {
            return Ok(stored.into());
        }
        let mut out = vec![0; limits.allow(size, "a page")?];
        let failed =
            |e: &dyn std::fmt::Display| invalid(&format!("invalid {} page: {e}", self.name()));
        let len = match self {
            Self::None => 0,
            Self::Snappy => {
                let mut decoder = snap::raw::Decoder::new();
                decoder.decompress(stored, &mut out).map_err(|e| failed(&e))?
            }
            Self::Gzip => {
                let mut stream = GzDecoder::new(stored);
                stream.read_exact(&mut out).map_err(|e| failed(&e))?;
                // Detects a longer page.
                out.len() + stream.read(&mut [0]).map_err(|e| failed(&e))?
            }
            Self::Zstd => {
                FrameDecoder::new().decode_all(stored, &mut out).map_err(|e| failed(&e))?
            }
            Self::Lz4 => {
                lz4_flex::block::decompress_into(stored, &mut out).map_err(|e| failed(&e))?
            }
        };
        if len == out.len() {
            return Ok(out.into());
        }
        Err(invalid(&format!("expected a page of {size} bytes, found {len}")))
    }
}

fn invalid(message: &str) -> Error {
    Error::malformed("parquet-005", message.to_string())
}

fn cut() -> Error {
    invalid("page is shorter than its header states")
}

/// Codec of the chunks of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoded {
    pub(crate) dtype: DType,
    pub(crate) stored: Stored,
    pub(crate) compression: Compression,
    pub(crate) optional: bool,
    pub(crate) limits: Limits,
}

/// A decompressed page.
struct Page<'a> {
    /// Number of rows.
    values: u64,
    /// Runs of rows with and without a value.
    defined: Vec<(u64, bool)>,
    encoding: i64,
    bytes: Cow<'a, [u8]>,
    /// Offset of the values in `bytes`.
    start: usize,
}

impl Encoded {
    /// Calls `each` with the pages of a chunk: `Ok` with the size and bytes of a dictionary, `Err` with a data page.
    fn pages(
        &self,
        chunk: &[u8],
        mut each: impl FnMut(std::result::Result<(u64, &[u8]), Page<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        while at < chunk.len() {
            let mut reader = thrift::Reader::new(&chunk[at..], 0);
            let header = reader.read_struct()?;
            at += reader.position() as usize;
            let size =
                header.size(3).and_then(|size| usize::try_from(size).ok()).ok_or_else(cut)?;
            let end = at.checked_add(size).ok_or_else(cut)?;
            let body = chunk.get(at..end).ok_or_else(cut)?;
            at = end;
            match header.int(1) {
                Some(DICTIONARY_PAGE) => {
                    let size = header.size(2).ok_or_else(cut)?;
                    let bytes = self.compression.decompress(body, size, &self.limits)?;
                    let count = header.inner(7).and_then(|data| data.size(1)).ok_or_else(cut)?;
                    each(Ok((count, &bytes)))?;
                }
                Some(DATA) => each(Err(self.first_version(&header, body)?))?,
                Some(DATA_2) => each(Err(self.second_version(&header, body)?))?,
                Some(INDEX) => {}
                _ => return Err(invalid("unknown page type")),
            }
        }
        Ok(())
    }

    fn first_version<'a>(&self, header: &Struct, body: &'a [u8]) -> Result<Page<'a>> {
        let size = header.size(2).ok_or_else(cut)?;
        let bytes = self.compression.decompress(body, size, &self.limits)?;
        let data = header.inner(5).ok_or_else(cut)?;
        let (values, encoding) = data.size(1).zip(data.int(2)).ok_or_else(cut)?;
        let (mut defined, mut start) = (vec![(values, true)], 0);
        if self.optional {
            let (len, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
            let len = u32::from_le_bytes(*len) as usize;
            let own = rest.get(..len).ok_or_else(cut)?;
            defined = self.levels(own, values)?;
            start = 4 + len;
        }
        Ok(Page { values, defined, encoding, bytes, start })
    }

    /// In version 2 levels are never compressed, and values need not be.
    fn second_version<'a>(&self, header: &Struct, body: &'a [u8]) -> Result<Page<'a>> {
        let size = header.size(2).ok_or_else(cut)?;
        let data = header.inner(8).ok_or_else(cut)?;
        let (values, encoding) = data.size(1).zip(data.int(4)).ok_or_else(cut)?;
        let len = data.size(5).zip(data.size(6)).ok_or_else(cut)?;
        let (Ok(definition), Ok(repetition)) = (usize::try_from(len.0), usize::try_from(len.1))
        else {
            return Err(cut());
        };
        let after = body.get(repetition..).ok_or_else(cut)?;
        let (own, packed) = after.split_at_checked(definition).ok_or_else(cut)?;
        let size = size.checked_sub(len.0.saturating_add(len.1)).ok_or_else(cut)?;
        let compression =
            if data.flag(7) == Some(false) { Compression::None } else { self.compression };
        let bytes = compression.decompress(packed, size, &self.limits)?;
        let defined = if definition > 0 { self.levels(own, values)? } else { vec![(values, true)] };
        Ok(Page { values, defined, encoding, bytes, start: 0 })
    }

    fn levels(&self, bytes: &[u8], values: u64) -> Result<Vec<(u64, bool)>> {
        self.limits.allow((bytes.len() as u64).saturating_mul(8 * 16), "the definition levels")?;
        levels::decode(bytes, values).ok_or_else(|| invalid("invalid definition levels"))
    }

    /// Decodes a page into `out`; rows without a value become NaN.
    fn scatter(&self, page: &Page<'_>, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        let count: u64 = page.defined.iter().filter(|(_, defined)| *defined).map(|(n, _)| n).sum();
        if count == page.values {
            return self.values(page, count, dictionary, out);
        }
        // Only floats can represent missing values.
        let missing: &[u8] = match (self.dtype.kind(), size) {
            (Kind::Float, 4) => &f32::NAN.to_le_bytes(),
            (Kind::Float, 8) => &f64::NAN.to_le_bytes(),
            _ => {
                return Err(Error::unsupported(
                    "parquet-021",
                    "missing values in a column that is not floating-point",
                ));
            }
        };
        let mut dense = vec![0; count as usize * size];
        self.values(page, count, dictionary, &mut dense)?;
        let (mut dense, mut out) = (&dense[..], out);
        for (rows, defined) in &page.defined {
            let (slot, rest) = out.split_at_mut(*rows as usize * size);
            if *defined {
                let (own, after) = dense.split_at(slot.len());
                slot.copy_from_slice(own);
                dense = after;
            } else {
                slot.chunks_exact_mut(size).for_each(|slot| slot.copy_from_slice(missing));
            }
            out = rest;
        }
        Ok(())
    }

    /// Decodes the values of a page, without gaps.
    fn values(&self, page: &Page<'_>, count: u64, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let bytes = page.bytes.get(page.start..).ok_or_else(cut)?;
        match page.encoding {
            PLAIN => self.stored.decode(self.dtype, bytes, out),
            DICTIONARY | OLD_DICTIONARY => {
                let (width, indices) = bytes.split_first().ok_or_else(cut)?;
                let mut slots = out.chunks_exact_mut(self.dtype.size().max(1));
                let known = dictionary.chunks_exact(self.dtype.size().max(1));
                rle::decode(indices, u32::from(*width), count, |index, times| {
                    let value = known.clone().nth(index as usize)?;
                    (0..times).try_for_each(|_| {
                        slots.next()?.copy_from_slice(value);
                        Some(())
                    })
                })
                .ok_or_else(|| invalid("index exceeds the dictionary"))
            }
            RLE if self.stored == Stored::Bits => {
                let (_, bits) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
                let mut slots = out.iter_mut();
                rle::decode(bits, 1, count, |bit, times| {
                    (0..times).try_for_each(|_| {
                        *slots.next()? = bit as u8;
                        Some(())
                    })
                })
                .ok_or_else(cut)
            }
            other => {
                let message = format!("encoding {other} is not supported");
                Err(Error::unsupported("parquet-006", message))
            }
        }
    }

    /// Length in bytes of the longest string of a chunk.
    pub(crate) fn longest(&self, chunk: &[u8]) -> Result<usize> {
        let mut longest = 0;
        let mut count = |bytes: &[u8], strings: u64| {
            let mut rest = bytes;
            for _ in 0..strings {
                let (text, after) = wire::next_byte_array(rest).ok_or_else(cut)?;
                longest = longest.max(text.len());
                rest = after;
            }
            Ok(())
        };
        self.pages(chunk, |page| match page {
            Ok((strings, bytes)) => count(bytes, strings),
            Err(page) if page.encoding == PLAIN => {
                let defined = page.defined.iter().filter(|(_, defined)| *defined);
                count(page.bytes.get(page.start..).ok_or_else(cut)?, defined.map(|(n, _)| n).sum())
            }
            Err(_) => Ok(()),
        })?;
        Ok(longest)
    }
}

impl Codec for Encoded {
    fn name(&self) -> &str {
        self.compression.name()
    }

    fn decode(&self, chunk: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size() as u64;
        let mut dictionary = Vec::new();
        let mut rest = out;
        self.pages(chunk, |page| match page {
            Ok((count, bytes)) => {
                let capacity = self.limits.allow(count.saturating_mul(size), "a dictionary")?;
                // An entry has at least one bit.
                if count / 8 > bytes.len() as u64 {
                    return Err(cut());
                }
                dictionary = vec![0; capacity];
                self.stored.decode(self.dtype, bytes, &mut dictionary)
            }
            Err(page) => {
                let len = page.values.checked_mul(size).and_then(|len| usize::try_from(len).ok());
                let (own, after) = len
                    .and_then(|len| std::mem::take(&mut rest).split_at_mut_checked(len))
                    .ok_or_else(|| invalid("page has more rows than its chunk"))?;
                rest = after;
                self.scatter(&page, &dictionary, own)
            }
        })?;
        if rest.is_empty() {
            Ok(())
        } else {
            Err(invalid("chunk has fewer rows than its metadata state"))
        }
    }
}
