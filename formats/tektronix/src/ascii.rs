//! Samples of an `.isf` file that are printed as text: whole numbers with commas between them.

use std::sync::Arc;

use spile_core::convert::from_f64;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Extents, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// No number of an instrument is longer.
const LONGEST: usize = 64;

/// The numbers between a place and the first byte that belongs to none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) count: u64,
    /// The smallest and the largest.
    ends: (f64, f64),
    /// All of them are whole.
    whole: bool,
}

/// The byte may stand in a number or between two.
fn belongs(byte: u8) -> bool {
    byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"+-.,eE".contains(&byte)
}

/// The numbers of a text.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b',' || b.is_ascii_whitespace()).filter(|token| !token.is_empty())
}

fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok().filter(|v: &f64| v.is_finite())
}

impl Numbers {
    /// Finds and counts them.
    pub(crate) fn find(source: &Source, start: u64) -> Result<Self> {
        let mut found =
            Self { start, len: 0, count: 0, ends: (f64::INFINITY, f64::NEG_INFINITY), whole: true };
        let mut buffer = vec![0; CHUNK];
        let mut end = false;
        while !end {
            let at = start + found.len;
            let got = source.read_at_most(at, &mut buffer)?;
            let stop = buffer[..got].iter().position(|b| !belongs(*b));
            end = stop.is_some() || got < buffer.len();
            let mut text = &buffer[..stop.unwrap_or(got)];
            if !end {
                // The last number may go on in what comes next.
                let cut = text.iter().rposition(|b| *b == b',' || b.is_ascii_whitespace());
                text = &text[..cut.map_or(0, |cut| cut + 1)];
            }
            if text.is_empty() && !end {
                return Err(no_number(at, &buffer[..LONGEST]));
            }
            found.add(text, at)?;
            found.len += text.len() as u64;
            let next = buffer[..got].get(text.len()).copied();
            if end && !matches!(next, None | Some(b';' | b':' | b'W' | b'w')) {
                let rest = &buffer[text.len()..got];
                return Err(no_number(start + found.len, &rest[..rest.len().min(12)]));
            }
        }
        Ok(found)
    }

    fn add(&mut self, text: &[u8], at: u64) -> Result<()> {
        for token in tokens(text) {
            let value = number(token).ok_or_else(|| {
                let before = token.as_ptr() as usize - text.as_ptr() as usize;
                no_number(at + before as u64, &token[..token.len().min(LONGEST)])
            })?;
            self.ends = (self.ends.0.min(value), self.ends.1.max(value));
            self.whole &= value.fract() == 0.0 && value.abs() < 9e15;
            self.count += 1;
        }
        Ok(())
    }

    /// As an array of type `said`, or of a wider one where it does not hold all numbers.
    pub(crate) fn array(&self, said: DType, count: u64) -> ArrayDesc {
        let fits = |dtype: DType| {
            let bits = 8 * dtype.size() as i32;
            let (low, high) = match dtype.kind() {
                spile_core::dtype::Kind::Int => (-(2_f64.powi(bits - 1)), 2_f64.powi(bits - 1)),
                _ => (0.0, 2_f64.powi(bits)),
            };
            self.whole && dtype.is_integer() && self.ends.0 >= low && self.ends.1 < high
        };
        let dtype = [said, DType::I16, DType::I32, DType::I64].into_iter().find(|d| fits(*d));
        let dtype = dtype.unwrap_or(DType::F64).with_order(spile_core::wire::ByteOrder::Little);
        let layout = Layout::Text {
            extents: Extents::one(self.start, self.len),
            codec: Arc::new(Parser { dtype }),
            order: Order::C,
        };
        ArrayDesc::new(dtype, Shape::new([count]), layout)
    }
}

fn no_number(at: u64, found: &[u8]) -> Error {
    let found = String::from_utf8_lossy(found);
    Error::malformed("tektronix-003", format!("a sample is \"{found}\", not a number")).at(at)
}

/// Numbers as elements of a type that holds them.
struct Parser {
    dtype: DType,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let changed = || {
            let message = "the samples are not those that were counted; is it being written?";
            Error::malformed("tektronix-003", message)
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
