//! Reads the text of a section line by line, as list-directed input of Fortran does.

use std::str::FromStr;
use std::sync::Arc;

use spile_core::{ArrayDesc, Codec, DType, Error, Extents, Layout, Order, Result, Shape};

use super::super::number;
use crate::index::Element;
use crate::read::File;
use crate::scalar::Scalar;
use crate::text_codec::Numbers;

/// The text of a section without its child elements.
pub(super) struct Scanner {
    /// Pieces of the text and their offsets in the file.
    pieces: Vec<(u64, Vec<u8>)>,
    piece: usize,
    at: usize,
    end: u64,
}

impl Scanner {
    pub(super) fn new(file: &File, element: &Element) -> Result<Self> {
        let parts = || element.data.iter().flat_map(|data| data.extents.parts());
        let total = parts().map(|part| part.len).sum();
        file.limits().allow(total, "the text of a section").map_err(|e| e.at(element.offset))?;
        let read = |offset, len| Ok((offset, file.source().read_vec(offset, len)?));
        let pieces = parts().map(|part| read(part.offset, part.len)).collect::<Result<_>>()?;
        Ok(Self { pieces, piece: 0, at: 0, end: element.end })
    }

    /// The entire text.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect()
    }

    /// The next line that is not blank. Fails at the end of the section.
    pub(super) fn line(&mut self) -> Result<String> {
        while let Some((_, text)) = self.pieces.get(self.piece) {
            let rest = &text[self.at..];
            if rest.is_empty() {
                (self.piece, self.at) = (self.piece + 1, 0);
                continue;
            }
            let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            let line = String::from_utf8_lossy(&rest[..end]).trim_end().to_string();
            self.at += (end + 1).min(rest.len());
            if !line.is_empty() {
                return Ok(line);
            }
        }
        Err(Error::malformed("iotk-046", "unexpected end of the section").at(self.end))
    }

    /// The byte range of the next `count` words in the piece. The following line is read next.
    fn words(&mut self, count: usize) -> Result<(u64, &[u8])> {
        // The numbers may follow a child element.
        while let Some((_, text)) = self.pieces.get(self.piece) {
            if text[self.at..].iter().any(|b| !b.is_ascii_whitespace()) {
                break;
            }
            (self.piece, self.at) = (self.piece + 1, 0);
        }
        let Some((offset, text)) = self.pieces.get(self.piece).filter(|_| count > 0) else {
            return if count == 0 {
                Ok((self.end, &[]))
            } else {
                Err(Error::malformed("iotk-046", "unexpected end of the section").at(self.end))
            };
        };
        let start = self.at;
        let mut at = start;
        let next = |at: usize, blank: bool| {
            let found = text[at..].iter().position(|b| b.is_ascii_whitespace() == blank);
            found.map_or(text.len(), |k| at + k)
        };
        for found in 0..count {
            let word = next(at, false);
            if word == text.len() {
                let message = format!("expected {count} numbers, found {found}");
                return Err(Error::malformed("iotk-046", message).at(offset + start as u64));
            }
            at = next(word, true);
        }
        let line = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |k| at + k + 1);
        self.at = line;
        Ok((offset + start as u64, &text[start..at]))
    }

    /// The next `count` numbers as an array that is read from the file.
    pub(super) fn reals(&mut self, count: usize) -> Result<ArrayDesc> {
        self.padded_reals(count, count)
    }

    /// The next `count` numbers and zeros as an array of `total` numbers.
    pub(super) fn padded_reals(&mut self, count: usize, total: usize) -> Result<ArrayDesc> {
        if count > total {
            let message = format!("expected at most {total} numbers, found {count}");
            return Err(Error::malformed("iotk-046", message));
        }
        let (base, text) = self.words(count)?;
        let extents = Extents::one(base, text.len() as u64);
        let numbers = Numbers { scalar: Scalar::F64, width: None, base, overflow: false, parts: 1 };
        let codec: Arc<dyn Codec> =
            if count == total { Arc::new(numbers) } else { Arc::new(Padded { numbers, count }) };
        let layout = Layout::EncodedWhole { extents, codec, order: Order::F };
        Ok(ArrayDesc::new(DType::F64, Shape::new([total as u64]), layout))
    }

    /// The values of the next `count` numbers.
    pub(super) fn values(&mut self, count: usize) -> Result<Vec<f64>> {
        let (base, text) = self.words(count)?;
        let text = String::from_utf8_lossy(text);
        let parse = |word: &str| {
            let message = || format!("expected a number, found \"{word:.40}\"");
            number(word).ok_or_else(|| Error::malformed("iotk-012", message()).at(base))
        };
        text.split_ascii_whitespace().map(parse).collect()
    }
}

/// Decodes `count` numbers; all others are zero.
struct Padded {
    numbers: Numbers,
    count: usize,
}

impl Codec for Padded {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let (values, zeros) = out.split_at_mut(out.len().min(8 * self.count));
        zeros.fill(0);
        self.numbers.decode(stored, values)
    }
}

/// The word with number `at` of a line.
pub(super) fn field<T: FromStr>(line: &str, at: usize) -> Result<T> {
    let word = line.split_ascii_whitespace().nth(at);
    let parsed = word.and_then(|word| {
        // Exponents of Fortran; a label such as `4D` is not changed.
        word.parse().ok().or_else(|| number(word)?.to_string().parse().ok())
    });
    parsed.ok_or_else(|| {
        let message = format!("expected a value in column {}, found \"{line:.60}\"", at + 1);
        Error::malformed("iotk-046", message)
    })
}
