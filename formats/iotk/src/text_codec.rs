//! Decoding of numbers and strings from text.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use spile_core::{Codec, Dataset, Error, Result};

use crate::event::Data;
use crate::scalar::Scalar;
use crate::tokens::{last_token_start, parse_all, parse_with_overflow, tokens};
use crate::wire::unescape;

/// Bytes of text that one thread parses at a time, and number of such pieces in memory.
const PIECE: usize = 256 << 10;
const PIECES: usize = 32;

/// Decodes numbers.
pub(crate) struct Numbers {
    pub(crate) scalar: Scalar,
    /// Width of fields that may have no blanks between them.
    pub(crate) width: Option<usize>,
    /// Offset of the text in the file.
    pub(crate) base: u64,
    /// Reals that are too large for their kind are infinite, not an error.
    pub(crate) overflow: bool,
    /// Byte ranges of the text. With comments in between there are several, and positions in the text
    /// are not offsets in the file.
    pub(crate) parts: usize,
}

impl Numbers {
    fn locate(&self, error: Error, at: usize) -> Error {
        if self.parts == 1 { error.at(self.base + at as u64) } else { error }
    }

    fn parse(&self, text: &[u8], at: usize) -> Result<Vec<u8>> {
        let parse_all = if self.overflow { parse_with_overflow } else { parse_all };
        // Most numbers have at least 16 characters.
        let mut out = Vec::with_capacity(text.len() / 16 * self.scalar.size());
        if let Some(width) = self.width {
            for line in text.split(|b| *b == b'\n') {
                for field in line.chunks(width) {
                    parse_all(self.scalar, field, &mut out)
                        .map_err(|bad| bad.error(self.scalar))?;
                }
            }
            return Ok(out);
        }
        parse_all(self.scalar, text, &mut out)
            .map_err(|bad| self.locate(bad.error(self.scalar), at + bad.at))?;
        Ok(out)
    }

    /// Parses on all threads and passes the numbers to `each` in order; `at` is the position of
    /// `stored` in the entire text.
    fn parse_pieces(
        &self,
        stored: &[u8],
        at: usize,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < stored.len() {
            let to = from.saturating_add(PIECE);
            // A piece ends between tokens, and with a format between lines.
            let to = match stored.get(from..to) {
                None => stored.len(),
                Some(text) if self.width.is_some() => {
                    text.iter().rposition(|b| *b == b'\n').map_or(stored.len(), |k| from + k + 1)
                }
                Some(text) => match last_token_start(text) {
                    0 => stored.len(),
                    token => from + token,
                },
            };
            pieces.push(from..to);
            from = to;
        }
        for wave in pieces.chunks(PIECES) {
            let parse = |piece: &Range<usize>| self.parse(&stored[piece.clone()], at + piece.start);
            let parsed: Vec<Vec<u8>> = wave.par_iter().map(parse).collect::<Result<_>>()?;
            parsed.iter().try_for_each(|values| each(values))?;
        }
        Ok(())
    }

    fn miscounted(&self, short: Option<(u64, u64)>) -> Error {
        let size = self.scalar.size() as u64;
        let message = match short {
            Some((got, of)) => {
                format!("expected {} numbers, found {}", of / size, got / size)
            }
            None => "found more numbers than declared".to_string(),
        };
        Error::malformed("iotk-013", message).at(self.base)
    }
}

impl Codec for Numbers {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        self.parse_pieces(stored, 0, &mut |values| {
            let slot = out.get_mut(filled..filled + values.len());
            let slot = slot.ok_or_else(|| self.miscounted(None))?;
            slot.copy_from_slice(values);
            filled += values.len();
            Ok(())
        })?;
        if filled < out.len() {
            return Err(self.miscounted(Some((filled as u64, out.len() as u64))));
        }
        Ok(())
    }
}

/// Parses the numbers of a text of any length in parts and passes them to `each` as little-endian
/// bytes. Fails with iotk-013 if they are not `total` bytes in all.
pub(crate) fn stream_numbers(
    bytes: &Dataset,
    data: &Data,
    scalar: Scalar,
    total: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (base, parts) = (data.offset(), data.extents.parts().len());
    let numbers = Numbers { scalar, width: None, base, overflow: false, parts };
    let (mut at, mut done) = (0, 0);
    stream_tokens(bytes, data, &mut |text| {
        numbers.parse_pieces(text, at, &mut |values| {
            done += values.len() as u64;
            if done > total {
                return Err(numbers.miscounted(None));
            }
            each(values)
        })?;
        at += text.len();
        Ok(())
    })?;
    if done < total {
        return Err(numbers.miscounted(Some((done, total))));
    }
    Ok(())
}

/// Passes a text of any length to `each` in parts that end between tokens.
pub(crate) fn stream_tokens(
    bytes: &Dataset,
    data: &Data,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (source, limits) = (bytes.source(), bytes.limits());
    let mut text = Vec::new();
    // The rest of the limit is for the parsed numbers.
    let block = ((PIECE * PIECES / 4) as u64).min(limits.memory / 8).max(4 << 10);
    // A comment does not separate tokens.
    for part in data.extents.parts() {
        let (mut from, end) = (part.offset, part.offset + part.len);
        while from < end {
            let len = (end - from).min(block);
            let kept = text.len();
            source.require(from, len)?;
            text.resize(limits.allow(kept as u64 + len, "a number in text")?, 0);
            source.read_exact_at(from, &mut text[kept..])?;
            from += len;
            let end = last_token_start(&text);
            each(&text[..end])?;
            text.drain(..end);
        }
    }
    each(&text)
}

/// The kind of integers without a declared kind: 4 if all fit, else 8.
pub(crate) fn integer_kind(bytes: &Dataset, data: &Data) -> Result<u64> {
    let mut fits = true;
    stream_tokens(bytes, data, &mut |text| {
        let mut parsed = Vec::with_capacity(4);
        fits = fits
            && tokens(text).all(|(_, token)| {
                parsed.clear();
                // Nine digits always fit.
                token.len() <= 9 || Scalar::Int(4).parse(token, &mut parsed).is_some()
            });
        Ok(())
    })?;
    Ok(if fits { 4 } else { 8 })
}

/// Decodes strings, one per line.
pub(crate) struct Strings {
    pub(crate) len: usize,
    pub(crate) escapes: Escapes,
    /// List-directed output: a blank before each line.
    pub(crate) star: bool,
    /// Offset of the text in the file.
    pub(crate) base: u64,
}

/// Escapes in the text of an element.
pub(crate) enum Escapes {
    /// Formatted data have none.
    None,
    /// They are resolved outside of these positions in the text, which are `CDATA` sections.
    Outside(Vec<Range<u64>>),
}

impl Escapes {
    /// The strings in the text between two tags, without escapes.
    fn resolve<'t>(&self, stored: &'t [u8]) -> Cow<'t, [u8]> {
        let text = inner(stored);
        let literal = match self {
            Self::None => return text.into(),
            Self::Outside(literal) if literal.is_empty() => return unescape(text),
            Self::Outside(literal) => literal,
        };
        // The beginning of `text` in `stored`: only line ends precede it.
        let start = stored.len() - inner_start(stored).len();
        let position = |at: u64| (at as usize).saturating_sub(start).min(text.len());
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        for section in literal {
            let (begin, end) = (position(section.start), position(section.end));
            out.extend_from_slice(&unescape(&text[from..begin]));
            out.extend_from_slice(&text[begin..end]);
            from = end;
        }
        out.extend_from_slice(&unescape(&text[from..]));
        out.into()
    }

    /// The length of the longest of `count` strings in `text`, for tags without `len`.
    pub(crate) fn longest(&self, text: &[u8], count: u64) -> u64 {
        let text = self.resolve(text);
        if count == 1 {
            return text.len() as u64;
        }
        lines(&text).map(<[u8]>::len).max().unwrap_or(0) as u64
    }
}

/// The text after the line of the begin tag.
fn inner_start(text: &[u8]) -> &[u8] {
    match text {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => rest,
        // On the line of its tags.
        _ => text,
    }
}

/// The text between the line of the begin tag and the line of the end tag.
fn inner(stored: &[u8]) -> &[u8] {
    let text = inner_start(stored);
    if text.len() == stored.len() {
        return text;
    }
    let end = text.iter().rposition(|b| *b == b'\n');
    match end {
        Some(end) if text[end..].iter().all(|b| matches!(b, b'\n' | b' ' | b'\t')) => &text[..end],
        // No line between the tags.
        None if text.iter().all(|b| matches!(b, b' ' | b'\t')) => &[],
        _ => text,
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

impl Codec for Strings {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let text = self.escapes.resolve(stored);
        let (len, total) = (self.len, out.len());
        let count = total.checked_div(len).unwrap_or(0);
        // If all strings have full length, a line end inside a string is part of it.
        let full = count > 0
            && text.len() == total + count - 1
            && (1..count).all(|k| text[k * (len + 1) - 1] == b'\n');
        if full {
            for (slot, field) in out.chunks_mut(len).zip(text.chunks(len + 1)) {
                slot.copy_from_slice(&field[..len]);
            }
            return Ok(());
        }
        let rows: Vec<&[u8]> = lines(&text)
            .map(|line| if self.star { line.strip_prefix(b" ").unwrap_or(line) } else { line })
            .collect();
        // With a format, a line has several fields of full length.
        let joined: usize = rows.iter().map(|row| row.len()).sum();
        if matches!(self.escapes, Escapes::None) && joined == total {
            rows.iter().fold(0, |at, row| {
                out[at..at + row.len()].copy_from_slice(row);
                at + row.len()
            });
            return Ok(());
        }
        out.fill(b' ');
        if count == 1 && !self.star && text.len() <= total {
            // The line ends of a single string are part of it.
            out[..text.len()].copy_from_slice(&text);
            return Ok(());
        }
        let mut rows = rows.into_iter();
        for slot in out.chunks_mut(len.max(1)) {
            let Some(row) = rows.next() else {
                let message = format!("expected {count} strings, found fewer");
                return Err(Error::malformed("iotk-013", message).at(self.base));
            };
            let kept = row.len().min(slot.len());
            // Trailing blanks have no meaning in Fortran; other bytes would be lost.
            if row[kept..].iter().any(|b| *b != b' ') {
                let message = format!("expected a line of {len} bytes, found {}", row.len());
                return Err(Error::malformed("iotk-014", message).at(self.base));
            }
            slot[..kept].copy_from_slice(&row[..kept]);
        }
        if rows.any(|row| row.iter().any(|b| *b != b' ')) {
            let message = format!("expected {count} strings, found more");
            return Err(Error::malformed("iotk-013", message).at(self.base));
        }
        Ok(())
    }
}
