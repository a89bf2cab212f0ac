//! Decoding of column chunks with compressed pages, dictionaries or version 2 data pages. A chunk is decoded as
//! one unit.

use std::borrow::Cow;

use spile_codecs::Checksum;
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;
use spile_core::limits::{Budget, Limits};
use spile_interchange::table::{missing_element, missing_number};

use crate::compression::Compression;
use crate::encodings;
use crate::rle;
use crate::stored::{Stored, next_byte_array};
use crate::thrift::{self, Struct};
use crate::wire::{BIT_PACKED, DICTIONARY, OLD_DICTIONARY, PAGE_CHECKSUM};

/// Page types.
const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
const DATA_2: i64 = 3;

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
    /// Definition level of rows with a value; 0 if every row has one.
    pub(crate) levels: u32,
    /// Whether rows may have no value; they become [`missing_element`].
    pub(crate) gaps: bool,
    /// Rows without a value are those of frames without the array, which are not read.
    pub(crate) framed: bool,
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
            let mut reader = thrift::Reader::new(&chunk[at..], 0, Budget::new(&self.limits));
            let header = reader.read_struct()?;
            at += reader.position() as usize;
            let size =
                header.size(3).and_then(|size| usize::try_from(size).ok()).ok_or_else(cut)?;
            let end = at.checked_add(size).ok_or_else(cut)?;
            let body = chunk.get(at..end).ok_or_else(cut)?;
            at = end;
            if let Some(sum) = header.int(PAGE_CHECKSUM)
                && Checksum::Crc32.of(body) != sum as u32
            {
                return Err(invalid("page checksum mismatch"));
            }
            match header.int(1) {
                Some(DICTIONARY_PAGE) => {
                    let size = header.size(2).ok_or_else(cut)?;
                    let bytes = self.decompress(body, size)?;
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

    /// Decompresses a page of `size` bytes. Fails if it has another size.
    fn decompress<'a>(&self, stored: &'a [u8], size: u64) -> Result<Cow<'a, [u8]>> {
        if self.compression.is_none() {
            return Ok(stored.into());
        }
        let mut out = vec![0; self.limits.allow(size, "a page")?];
        self.compression.decode(stored, &mut out)?;
        Ok(out.into())
    }

    fn first_version<'a>(&self, header: &Struct, body: &'a [u8]) -> Result<Page<'a>> {
        let size = header.size(2).ok_or_else(cut)?;
        let bytes = self.decompress(body, size)?;
        let data = header.inner(5).ok_or_else(cut)?;
        let (values, encoding) = data.size(1).zip(data.int(2)).ok_or_else(cut)?;
        let (mut defined, mut start) = (vec![(values, true)], 0);
        if self.levels > 0 {
            if data.int(3) == Some(BIT_PACKED) {
                let message = "encoding BIT_PACKED of definition levels is not supported";
                return Err(Error::unsupported("parquet-006", message));
            }
            let (len, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
            let len = u32::from_le_bytes(*len) as usize;
            let own = rest.get(..len).ok_or_else(cut)?;
            defined = self.runs(own, values)?;
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
        let bytes = match data.flag(7) {
            Some(false) => packed.into(),
            _ => self.decompress(packed, size)?,
        };
        let defined = if definition > 0 && self.levels > 0 {
            self.runs(own, values)?
        } else {
            vec![(values, true)]
        };
        Ok(Page { values, defined, encoding, bytes, start: 0 })
    }

    fn runs(&self, bytes: &[u8], values: u64) -> Result<Vec<(u64, bool)>> {
        self.limits.allow((bytes.len() as u64).saturating_mul(8 * 16), "the definition levels")?;
        rle::decode_levels(bytes, values, self.levels)
            .ok_or_else(|| invalid("invalid definition levels"))
    }

    /// Decodes a page into `out`.
    fn scatter(&self, page: &Page<'_>, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        let count = page.count();
        if count == page.values {
            self.values(page, count, dictionary, out)?;
            return self.check_numbers(out);
        }
        if !self.gaps {
            return Err(invalid(
                "missing values in a column without any according to its metadata",
            ));
        }
        let missing = missing_element(self.dtype);
        let mut dense = vec![0; count as usize * size];
        self.values(page, count, dictionary, &mut dense)?;
        self.check_numbers(&dense)?;
        let (mut dense, mut out) = (&dense[..], out);
        for (rows, defined) in &page.defined {
            let (slot, rest) = out.split_at_mut(*rows as usize * size);
            if *defined {
                let (own, after) = dense.split_at(slot.len());
                slot.copy_from_slice(own);
                dense = after;
            } else {
                slot.chunks_exact_mut(size).for_each(|slot| slot.copy_from_slice(&missing));
            }
            out = rest;
        }
        Ok(())
    }

    /// Fails if one of the elements is the number that means missing in a column with missing values.
    fn check_numbers(&self, elements: &[u8]) -> Result<()> {
        let gaps = self.gaps && !self.framed;
        let Some(number) = missing_number(self.dtype).filter(|_| gaps) else { return Ok(()) };
        let mut elements = elements.chunks_exact(self.dtype.size());
        if elements.any(|element| convert::element_f64(self.dtype, element) == number) {
            let message = format!("a value equals {number:e}, which stands for missing values");
            return Err(Error::unsupported("parquet-021", message));
        }
        Ok(())
    }

    /// Decodes the values of a page, without gaps.
    fn values(&self, page: &Page<'_>, count: u64, dictionary: &[u8], out: &mut [u8]) -> Result<()> {
        let bytes = page.bytes.get(page.start..).ok_or_else(cut)?;
        if ![DICTIONARY, OLD_DICTIONARY].contains(&page.encoding) {
            let plain = self.plain(page, count)?;
            return self.stored.decode(self.dtype, &plain, out);
        }
        // A page without values has no indices.
        if count == 0 {
            return Ok(());
        }
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

    /// The `count` values of a page without dictionary as plain values.
    fn plain<'a>(&self, page: &'a Page<'_>, count: u64) -> Result<Cow<'a, [u8]>> {
        let bytes = page.bytes.get(page.start..).ok_or_else(cut)?;
        encodings::plain(page.encoding, bytes, count, (self.dtype, self.stored), &self.limits)
    }

    /// Examines the rows of a chunk.
    pub(crate) fn survey(&self, chunk: &[u8], survey: &mut Survey) -> Result<()> {
        let measured = self.stored == Stored::ByteArrays;
        self.pages(chunk, |page| match page {
            Ok((strings, bytes)) if measured => survey.measure(bytes, strings).ok_or_else(cut),
            Ok(_) => Ok(()),
            Err(page) => {
                let count = page.count();
                survey.missing = survey.missing.saturating_add(page.values.saturating_sub(count));
                if measured && ![DICTIONARY, OLD_DICTIONARY].contains(&page.encoding) {
                    let plain = self.plain(&page, count)?;
                    survey.measure(&plain, count).ok_or_else(cut)?;
                }
                Ok(())
            }
        })
    }
}

impl Page<'_> {
    /// Number of values.
    fn count(&self) -> u64 {
        self.defined.iter().filter(|(_, defined)| *defined).map(|(n, _)| n).sum()
    }
}

/// Missing rows and lengths of the byte arrays of a column.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Rows without a value.
    pub(crate) missing: u64,
    /// Lengths of the shortest and the longest byte array; `None` without any.
    pub(crate) lengths: Option<(usize, usize)>,
    /// Whether a byte array ends with a zero byte.
    pub(crate) zero: bool,
}

impl Survey {
    /// Examines the first `count` of these byte arrays; `None` if they exceed `bytes`.
    pub(crate) fn measure(&mut self, bytes: &[u8], count: u64) -> Option<()> {
        let mut rest = bytes;
        for _ in 0..count {
            let (own, after) = next_byte_array(rest)?;
            let (least, most) = self.lengths.unwrap_or((own.len(), own.len()));
            self.lengths = Some((least.min(own.len()), most.max(own.len())));
            self.zero |= own.last() == Some(&0);
            rest = after;
        }
        Some(())
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
