//! Chunks of columns whose values do not lie as they are: compressed pages, dictionaries, pages of the
//! second version. A chunk is decoded as a whole.

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
use crate::{hybrid, levels};

/// Types of pages.
const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
const DATA_2: i64 = 3;

/// How the pages of a chunk are compressed.
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

    /// The bytes of a page that says it has `size`.
    fn inflate<'a>(self, stored: &'a [u8], size: u64, limits: &Limits) -> Result<Cow<'a, [u8]>> {
        if self == Self::None {
            return Ok(stored.into());
        }
        let mut out = vec![0; limits.allow(size, "a page")?];
        let failed =
            |e: &dyn std::fmt::Display| damaged(&format!("a page is no {}: {e}", self.name()));
        let len = match self {
            Self::None => 0,
            Self::Snappy => {
                let mut decoder = snap::raw::Decoder::new();
                decoder.decompress(stored, &mut out).map_err(|e| failed(&e))?
            }
            Self::Gzip => {
                let mut stream = GzDecoder::new(stored);
                stream.read_exact(&mut out).map_err(|e| failed(&e))?;
                // One byte more is one too many.
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
        Err(damaged(&format!("a page has {len} bytes, {size} were promised")))
    }
}

fn damaged(what: &str) -> Error {
    Error::malformed("parquet-005", what.to_string())
}

fn cut() -> Error {
    damaged("a page is shorter than it says")
}

/// How the chunks of a column are decoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packed {
    pub(crate) dtype: DType,
    pub(crate) stored: Stored,
    pub(crate) compression: Compression,
    pub(crate) optional: bool,
    pub(crate) limits: Limits,
}

/// A page as it is in memory.
struct Page<'a> {
    /// Rows, and those of them that have a value.
    values: u64,
    there: Vec<(u64, bool)>,
    encoding: i64,
    bytes: Cow<'a, [u8]>,
    /// Where the values begin.
    start: usize,
}

impl Packed {
    /// Hands out the pages of a chunk: the dictionary's values, or a page of rows.
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
                    let bytes = self.compression.inflate(body, size, &self.limits)?;
                    let count = header.inner(7).and_then(|data| data.size(1)).ok_or_else(cut)?;
                    each(Ok((count, &bytes)))?;
                }
                Some(DATA) => each(Err(self.first_version(&header, body)?))?,
                Some(DATA_2) => each(Err(self.second_version(&header, body)?))?,
                Some(INDEX) => {}
                _ => return Err(damaged("a page of no known type")),
            }
        }
        Ok(())
    }

    fn first_version<'a>(&self, header: &Struct, body: &'a [u8]) -> Result<Page<'a>> {
        let size = header.size(2).ok_or_else(cut)?;
        let bytes = self.compression.inflate(body, size, &self.limits)?;
        let data = header.inner(5).ok_or_else(cut)?;
        let (values, encoding) = data.size(1).zip(data.int(2)).ok_or_else(cut)?;
        let (mut there, mut start) = (vec![(values, true)], 0);
        if self.optional {
            let (len, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
            let len = u32::from_le_bytes(*len) as usize;
            let own = rest.get(..len).ok_or_else(cut)?;
            there = self.levels(own, values)?;
            start = 4 + len;
        }
        Ok(Page { values, there, encoding, bytes, start })
    }

    /// Levels are not compressed here, and the values need not be.
    fn second_version<'a>(&self, header: &Struct, body: &'a [u8]) -> Result<Page<'a>> {
        let size = header.size(2).ok_or_else(cut)?;
        let data = header.inner(8).ok_or_else(cut)?;
        let (values, encoding) = data.size(1).zip(data.int(4)).ok_or_else(cut)?;
        let len = data.size(5).zip(data.size(6)).ok_or_else(cut)?;
        let (Ok(definition), Ok(repetition)) = (usize::try_from(len.0), usize::try_from(len.1))
        else {
            return Err(cut());
        };
        let behind = body.get(repetition..).ok_or_else(cut)?;
        let (own, packed) = behind.split_at_checked(definition).ok_or_else(cut)?;
        let size = size.checked_sub(len.0.saturating_add(len.1)).ok_or_else(cut)?;
        let compression =
            if data.flag(7) == Some(false) { Compression::None } else { self.compression };
        let bytes = compression.inflate(packed, size, &self.limits)?;
        let there = if definition > 0 { self.levels(own, values)? } else { vec![(values, true)] };
        Ok(Page { values, there, encoding, bytes, start: 0 })
    }

    fn levels(&self, bytes: &[u8], values: u64) -> Result<Vec<(u64, bool)>> {
        self.limits.allow((bytes.len() as u64).saturating_mul(8 * 16), "the levels of a page")?;
        levels::decode(bytes, values).ok_or_else(|| damaged("the levels of a page"))
    }

    /// Puts the values of a page, `out` long, where they belong.
    fn place(&self, page: &Page<'_>, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        let count: u64 = page.there.iter().filter(|(_, there)| *there).map(|(n, _)| n).sum();
        if count == page.values {
            return self.values(page, count, dictionary, out);
        }
        // Only what has a number that says so can be missing.
        let missing: &[u8] = match (self.dtype.kind(), size) {
            (Kind::Float, 4) => &f32::NAN.to_le_bytes(),
            (Kind::Float, 8) => &f64::NAN.to_le_bytes(),
            _ => return Err(Error::unsupported("parquet-021", "a value is missing")),
        };
        let mut dense = vec![0; count as usize * size];
        self.values(page, count, dictionary, &mut dense)?;
        let (mut dense, mut out) = (&dense[..], out);
        for (rows, there) in &page.there {
            let (slot, rest) = out.split_at_mut(*rows as usize * size);
            if *there {
                let (own, behind) = dense.split_at(slot.len());
                slot.copy_from_slice(own);
                dense = behind;
            } else {
                slot.chunks_exact_mut(size).for_each(|slot| slot.copy_from_slice(missing));
            }
            out = rest;
        }
        Ok(())
    }

    /// The values of a page, without gaps.
    fn values(&self, page: &Page<'_>, count: u64, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let bytes = page.bytes.get(page.start..).ok_or_else(cut)?;
        match page.encoding {
            PLAIN => self.stored.decode(self.dtype, bytes, out),
            DICTIONARY | OLD_DICTIONARY => {
                let (width, numbers) = bytes.split_first().ok_or_else(cut)?;
                let mut slots = out.chunks_exact_mut(self.dtype.size().max(1));
                let known = dictionary.chunks_exact(self.dtype.size().max(1));
                hybrid::decode(numbers, u32::from(*width), count, |number, times| {
                    let value = known.clone().nth(number as usize)?;
                    (0..times).try_for_each(|_| {
                        slots.next()?.copy_from_slice(value);
                        Some(())
                    })
                })
                .ok_or_else(|| damaged("a page points behind its dictionary"))
            }
            RLE if self.stored == Stored::Bits => {
                let (_, bits) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
                let mut slots = out.iter_mut();
                hybrid::decode(bits, 1, count, |bit, times| {
                    (0..times).try_for_each(|_| {
                        *slots.next()? = bit as u8;
                        Some(())
                    })
                })
                .ok_or_else(cut)
            }
            other => {
                let message = format!("pages in encoding {other} are not read");
                Err(Error::unsupported("parquet-006", message))
            }
        }
    }

    /// Bytes of the longest text of a chunk.
    pub(crate) fn longest(&self, chunk: &[u8]) -> Result<usize> {
        let mut longest = 0;
        let mut count = |bytes: &[u8], texts: u64| {
            let mut rest = bytes;
            for _ in 0..texts {
                let (text, behind) = wire::next_text(rest).ok_or_else(cut)?;
                longest = longest.max(text.len());
                rest = behind;
            }
            Ok(())
        };
        self.pages(chunk, |page| match page {
            Ok((texts, bytes)) => count(bytes, texts),
            Err(page) if page.encoding == PLAIN => {
                let there = page.there.iter().filter(|(_, there)| *there);
                count(page.bytes.get(page.start..).ok_or_else(cut)?, there.map(|(n, _)| n).sum())
            }
            Err(_) => Ok(()),
        })?;
        Ok(longest)
    }
}

impl Codec for Packed {
    fn name(&self) -> &str {
        self.compression.name()
    }

    fn decode(&self, chunk: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size() as u64;
        let mut dictionary = Vec::new();
        let mut rest = out;
        self.pages(chunk, |page| match page {
            Ok((count, bytes)) => {
                let room = self.limits.allow(count.saturating_mul(size), "a dictionary")?;
                // Every entry takes a bit at least.
                if count / 8 > bytes.len() as u64 {
                    return Err(cut());
                }
                dictionary = vec![0; room];
                self.stored.decode(self.dtype, bytes, &mut dictionary)
            }
            Err(page) => {
                let len = page.values.checked_mul(size).and_then(|len| usize::try_from(len).ok());
                let (own, behind) = len
                    .and_then(|len| std::mem::take(&mut rest).split_at_mut_checked(len))
                    .ok_or_else(|| damaged("a page has more rows than its chunk"))?;
                rest = behind;
                self.place(&page, &dictionary, own)
            }
        })?;
        if rest.is_empty() { Ok(()) } else { Err(damaged("a chunk has fewer rows than it says")) }
    }
}
