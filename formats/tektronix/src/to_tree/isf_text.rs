//! Samples of an `.isf` file written as text: numbers separated by commas.

use std::sync::Arc;

use spile_core::convert::from_f64;
use spile_core::{
    ArrayDesc, ByteOrder, Codec, DType, Error, Extents, Kind, Layout, Order, Result, Shape, Source,
};

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Maximum number of bytes quoted in an error.
const MAX_QUOTED: usize = 64;

/// Location, count and range of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextSamples {
    start: u64,
    pub(crate) len: u64,
    pub(crate) count: u64,
    min: f64,
    max: f64,
    /// Whether all samples are integers.
    integers: bool,
}

/// Whether a byte can be part of a number or a separator.
fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"+-.,eE".contains(&byte)
}

/// Numbers of a text, as text.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b',' || b.is_ascii_whitespace()).filter(|token| !token.is_empty())
}

/// Value of a number; `None` if it is not finite.
fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok().filter(|v: &f64| v.is_finite())
}

impl TextSamples {
    /// Scans the samples from offset `start` on, up to the first byte that is no part of a number.
    ///
    /// # Errors
    /// A number is invalid, or the samples are followed by something other than an entry or a preamble.
    pub(crate) fn scan(source: &Source, start: u64) -> Result<Self> {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut found = Self { start, len: 0, count: 0, min, max, integers: true };
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut end = false;
        while !end {
            let at = start + found.len;
            let got = source.read_at_most(at, &mut buffer)?;
            let stop = buffer[..got].iter().position(|b| !is_number_byte(*b));
            end = stop.is_some() || got < buffer.len();
            let mut text = &buffer[..stop.unwrap_or(got)];
            if !end {
                // The last number can continue in the next chunk.
                let cut = text.iter().rposition(|b| *b == b',' || b.is_ascii_whitespace());
                text = &text[..cut.map_or(0, |cut| cut + 1)];
            }
            if text.is_empty() && !end {
                return Err(not_a_number(at, &buffer[..MAX_QUOTED]));
            }
            found.add(text, at)?;
            found.len += text.len() as u64;
            let next = buffer[..got].get(text.len()).copied();
            if end && !matches!(next, None | Some(b';' | b':' | b'W' | b'w')) {
                let rest = &buffer[text.len()..got];
                return Err(not_a_number(start + found.len, &rest[..rest.len().min(12)]));
            }
        }
        Ok(found)
    }

    /// Adds the numbers of a chunk at offset `at`.
    fn add(&mut self, text: &[u8], at: u64) -> Result<()> {
        for token in tokens(text) {
            let value = number(token).ok_or_else(|| {
                let before = token.as_ptr() as usize - text.as_ptr() as usize;
                not_a_number(at + before as u64, &token[..token.len().min(MAX_QUOTED)])
            })?;
            (self.min, self.max) = (self.min.min(value), self.max.max(value));
            self.integers &= value.fract() == 0.0 && value.abs() < 9e15;
            self.count += 1;
        }
        Ok(())
    }

    /// Array of the first `count` samples. The type is `declared` if that can represent all samples, otherwise the
    /// smallest of int16, int32 and int64 that can, otherwise float64.
    pub(crate) fn array(&self, declared: DType, count: u64) -> ArrayDesc {
        let fits = |dtype: DType| {
            let bits = 8 * dtype.size() as i32;
            let (low, high) = match dtype.kind() {
                Kind::Int => (-(2_f64.powi(bits - 1)), 2_f64.powi(bits - 1)),
                _ => (0.0, 2_f64.powi(bits)),
            };
            self.integers && dtype.is_integer() && self.min >= low && self.max < high
        };
        let dtype = [declared, DType::I16, DType::I32, DType::I64].into_iter().find(|d| fits(*d));
        let dtype = dtype.unwrap_or(DType::F64).with_order(ByteOrder::Little);
        let layout = Layout::EncodedWhole {
            extents: Extents::one(self.start, self.len),
            codec: Arc::new(Parser { dtype }),
            order: Order::C,
        };
        ArrayDesc::new(dtype, Shape::new([count]), layout)
    }
}

fn not_a_number(at: u64, found: &[u8]) -> Error {
    let found = String::from_utf8_lossy(found);
    Error::malformed("tektronix-016", format!("expected a number, found \"{found}\"")).at(at)
}

/// Decodes text to elements of `dtype`.
struct Parser {
    dtype: DType,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let changed = || {
            let message = "the samples have changed since the file was opened";
            Error::malformed("tektronix-016", message)
        };
        let mut numbers = tokens(stored);
        let mut element = Vec::new();
        for slot in out.chunks_exact_mut(self.dtype.size()) {
            let value = numbers.next().and_then(number).ok_or_else(changed)?;
            from_f64(self.dtype, None, &[value], &mut element).ok_or_else(changed)?;
            slot.copy_from_slice(&element);
        }
        Ok(())
    }
}
