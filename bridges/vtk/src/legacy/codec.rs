//! Values of legacy files.

use std::sync::Arc;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extent, Extents, Layout};
use spile_core::shape::Order;

use crate::wire::{Ascii, tokens};
use crate::xml::Element;

/// Layout, byte range and decoded length of an array. The parser has checked that the file has its numbers.
pub(crate) fn locate(element: &Element, dtype: DType) -> Result<(Layout, Extent, u64)> {
    let extent = element.text.unwrap_or(Extent { offset: element.at, len: 0 });
    let extents = Extents::one(extent.offset, extent.len);
    let tuples = element.number("NumberOfTuples", None)?;
    let count = tuples.checked_mul(element.number("NumberOfComponents", None)?);
    let bytes = count.and_then(|count| count.checked_mul(dtype.size() as u64));
    let bytes = bytes.ok_or_else(|| element.malformed("number of elements overflows"))?;
    let is_offsets = element.attr("Name") == Some("offsets");
    let codec: Arc<dyn Codec> = match element.attr("format") {
        Some("ascii numbers") => Arc::new(Ascii(dtype)),
        Some("ascii colors") => Arc::new(Colors),
        Some("ascii list") => Arc::new(Cells { ascii: true, is_offsets }),
        Some("list") => Arc::new(Cells { ascii: false, is_offsets }),
        Some("bits") => Arc::new(Bits),
        Some(super::POLYHEDRA) => {
            return Err(element.unsupported("polyhedra in legacy files are not supported"));
        }
        _ => return Ok((Layout::Plain { extents, order: Order::C }, extent, bytes)),
    };
    Ok((Layout::EncodedWhole { extents, codec, order: Order::C }, extent, bytes))
}

/// The `count` texts of an array: lines with codes like `%20` in text files, otherwise bytes after a length.
pub(crate) fn texts(element: &Element, mut bytes: &[u8], count: u64) -> Result<Vec<Vec<u8>>> {
    let mut texts = Vec::new();
    for _ in 0..count {
        if bytes.is_empty() {
            return Err(wrong("too few texts"));
        }
        let text = if element.attr("format") == Some("ascii") {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            let line = &bytes[..end];
            bytes = bytes.get(end + 1..).unwrap_or_default();
            super::decoded(line.strip_suffix(b"\r").unwrap_or(line))
        } else {
            let first = bytes[0];
            // The first two bits are the number of bytes of the length.
            let more = [7, 3, 1, 0][usize::from(first >> 6)];
            let rest = bytes.get(1..1 + more).ok_or_else(|| wrong("too few texts"))?;
            let len = rest.iter().fold(u64::from(first & 0x3f), |all, b| all << 8 | u64::from(*b));
            let end = usize::try_from(len).ok().and_then(|len| len.checked_add(1 + more));
            let end = end.filter(|end| *end <= bytes.len());
            let end = end.ok_or_else(|| wrong("a text exceeds the array"))?;
            let text = bytes[1 + more..end].to_vec();
            bytes = &bytes[end..];
            text
        };
        texts.push(text);
    }
    Ok(texts)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::malformed("vtk-007", message)
}

/// Codec of a list of cells: the number of points of each cell, and their indices. It is decoded to the indices, or to
/// the offsets of the ends of cells.
struct Cells {
    ascii: bool,
    is_offsets: bool,
}

impl Cells {
    fn fill(&self, numbers: impl Iterator<Item = Option<i64>>, out: &mut [u8]) -> Result<()> {
        let (mut left, mut end) = (0_i64, 0_i64);
        let (slots, _) = out.as_chunks_mut::<8>();
        let mut slots = slots.iter_mut();
        for number in numbers {
            let number = number.ok_or_else(|| wrong("expected an integer in the list of cells"))?;
            let value = match (left, self.is_offsets) {
                (0, is_offsets) => {
                    left = number;
                    end = end.saturating_add(number);
                    is_offsets.then_some(end)
                }
                (_, is_offsets) => {
                    left -= 1;
                    (!is_offsets).then_some(number)
                }
            };
            if left < 0 {
                return Err(wrong(format!("cell with {number} points")));
            }
            if let Some(value) = value {
                let slot = slots.next().ok_or_else(|| wrong("list of cells is too long"))?;
                *slot = value.to_le_bytes();
            }
        }
        if left != 0 || slots.next().is_some() {
            return Err(wrong("list of cells is too short"));
        }
        Ok(())
    }
}

impl Codec for Cells {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        if self.ascii {
            let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
            return self.fill(tokens(stored).map(number), out);
        }
        let (numbers, _) = stored.as_chunks::<4>();
        self.fill(numbers.iter().map(|bytes| Some(i32::from_be_bytes(*bytes).into())), out)
    }
}

/// Codec of packed bits, the highest first, to bytes 0 and 1.
struct Bits;

impl Codec for Bits {
    fn name(&self) -> &'static str {
        "bits"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        for (k, bit) in out.iter_mut().enumerate() {
            let byte = stored.get(k / 8).ok_or_else(|| wrong("too few bits"))?;
            *bit = byte >> (7 - k % 8) & 1;
        }
        Ok(())
    }
}

/// Codec of fractions of 255 in text.
struct Colors;

impl Codec for Colors {
    fn name(&self) -> &'static str {
        "colors"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut words = tokens(stored).map(|word| std::str::from_utf8(word).ok()?.parse().ok());
        for color in out {
            let value: Option<f64> = words.next().flatten();
            let value = value.ok_or_else(|| wrong("expected a fraction of a color"))?;
            *color = (value * 255.0).round() as u8;
        }
        Ok(())
    }
}
