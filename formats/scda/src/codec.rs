//! The compression convention's algorithm (section 3.1): size, 'z', zlib stream, all of it in
//! base64 lines of 76 characters and two free bytes.

use std::cell::RefCell;

use base64_simd::STANDARD;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;
use spile_core::limits::Limits;

use crate::wire::Breaks;

/// Code bytes of a line.
pub(crate) const LINE: usize = 76;

/// Bytes that a full line encodes.
const LINE_BYTES: usize = LINE / 4 * 3;

/// Lines that are made of base64, or base64 of them, at once.
const LINES_AT_ONCE: usize = 256;

/// Uncompressed size and the letter 'z'.
const PREFIX: usize = 9;

thread_local! {
    // Making these costs more than a small element; each thread keeps its own.
    static DECODER: RefCell<(Decompressor, Vec<u8>)> =
        RefCell::new((Decompressor::new(), Vec::new()));
}

/// Decodes elements of the convention.
pub(crate) struct Convention;

impl Codec for Convention {
    fn name(&self) -> &'static str {
        "deflate, base64"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        DECODER.with_borrow_mut(|(inflate, bytes)| {
            unarmour(stored, bytes)?;
            let (prefix, stream) = bytes
                .split_at_checked(PREFIX)
                .ok_or_else(|| bad("an encoded element is shorter than its own header"))?;
            let size = prefix[..8].iter().fold(0_u64, |v, b| v << 8 | u64::from(*b));
            if size != out.len() as u64 {
                let message = format!("an element says it has {size} bytes, not {}", out.len());
                return Err(bad(&message));
            }
            if prefix[8] != b'z' {
                return Err(bad("the byte 'z' before the deflate stream is missing"));
            }
            match inflate.zlib_decompress(stream, out) {
                Ok(n) if n == out.len() => {}
                Ok(n) => return Err(bad(&format!("an element has {n} bytes, not {size}"))),
                Err(_) => return Err(bad("an element's deflate stream is damaged")),
            }
            let sum = libdeflater::adler32(out).to_be_bytes();
            if stream.last_chunk() != Some(&sum) || ends_before(stream, sum, inflate, out.len()) {
                return Err(bad("bytes follow an element's deflate stream"));
            }
            Ok(())
        })
    }
}

/// A stream whose last bytes are the checksum `sum` has ended before them. Then the sum is somewhere
/// else in it, too, which is so rare that looking for it costs less than asking where it ended.
fn ends_before(stream: &[u8], sum: [u8; 4], inflate: &mut Decompressor, size: usize) -> bool {
    let shorter = &stream[..stream.len() - 1];
    shorter.windows(4).any(|bytes| bytes == sum)
        && inflate.zlib_decompress(shorter, &mut vec![0; size]).is_ok()
}

fn bad(message: &str) -> Error {
    Error::malformed("scda-010", message)
}

/// Takes base64 out of its lines. The two bytes after each line are free; everything else must be
/// base64, and only the last line may be short.
fn unarmour(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    out.reserve(stored.len() / 4 * 3 + LINE * LINES_AT_ONCE);
    let mut parts = stored.chunks((LINE + 2) * LINES_AT_ONCE).peekable();
    while let Some(lines) = parts.next() {
        let start = out.len();
        for line in lines.chunks(LINE + 2) {
            let (code, _) = line
                .split_last_chunk::<2>()
                .filter(|(code, _)| !code.is_empty())
                .ok_or_else(|| bad("a line of base64 has no line break"))?;
            out.extend_from_slice(code);
        }
        // Of several lines at once, so padding before the last one is no base64 either.
        let decoded = STANDARD.decode_inplace(&mut out[start..]);
        let decoded = decoded.map_err(|_| bad("a line is not base64"))?.len();
        if parts.peek().is_some() && decoded != LINE_BYTES * LINES_AT_ONCE {
            return Err(bad("base64 ends before the last line"));
        }
        out.truncate(start + decoded);
    }
    Ok(())
}

/// Elements of so few bytes are searched for repetitions as at level 6 where 7 to 9 were asked for:
/// there is nothing more to be found in them, only time to be lost.
const SMALL: usize = 2048;

/// Encodes elements, reusing its state.
pub struct Encoder {
    level: i32,
    /// For elements that are not small, and for those that are; made when they are needed.
    large: Option<Compressor>,
    small: Option<Compressor>,
    /// Size, 'z' and stream, and a few lines of base64.
    bytes: Vec<u8>,
    code: Vec<u8>,
    breaks: Breaks,
}

impl Encoder {
    /// An encoder of a zlib level: 0 stores, 9 is the paper's recommendation; 10 to 12 are slower
    /// and better than any of zlib's.
    pub fn new(level: u32, breaks: Breaks) -> Result<Self> {
        let level = i32::try_from(level).ok().filter(|level| CompressionLvl::new(*level).is_ok());
        let level = level.ok_or_else(|| Error::argument("compression levels are 0 to 12"))?;
        Ok(Self { level, large: None, small: None, bytes: Vec::new(), code: Vec::new(), breaks })
    }

    /// The memory that it takes to encode an element of `size` bytes is in the budget.
    pub fn allow(size: u64, limits: &Limits) -> Result<()> {
        // The element, its stream, and base64 of that in a vector that grows by doubling.
        limits.allow(size.saturating_mul(4), "compressing an element").map(drop)
    }

    /// Appends the encoded form of `element` to `out`.
    pub fn encode(&mut self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (deflate, level) = match self.level {
            7..=9 if element.len() <= SMALL => (&mut self.small, 6),
            level => (&mut self.large, level),
        };
        let level = CompressionLvl::new(level).unwrap_or_default();
        let deflate = deflate.get_or_insert_with(|| Compressor::new(level));
        self.bytes.resize(PREFIX + deflate.zlib_compress_bound(element.len()), 0);
        self.bytes[..8].copy_from_slice(&(element.len() as u64).to_be_bytes());
        self.bytes[8] = b'z';
        let used = deflate
            .zlib_compress(element, &mut self.bytes[PREFIX..])
            .map_err(|_| Error::argument("an element could not be compressed"))?;
        let end: &[u8; 2] = if self.breaks == Breaks::Mime { b"\r\n" } else { b"=\n" };
        for lines in self.bytes[..PREFIX + used].chunks(LINE_BYTES * LINES_AT_ONCE) {
            self.code.clear();
            STANDARD.encode_append(lines, &mut self.code);
            for line in self.code.chunks(LINE) {
                out.extend_from_slice(line);
                out.extend_from_slice(end);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_come_back(element in proptest::collection::vec(any::<u8>(), 0..50_000),
                              level in 0_u32..=12, mime in any::<bool>()) {
            let breaks = if mime { Breaks::Mime } else { Breaks::Unix };
            let mut stored = Vec::new();
            Encoder::new(level, breaks).unwrap().encode(&element, &mut stored).unwrap();
            prop_assert!(stored.is_ascii());
            let mut back = vec![0; element.len()];
            Convention.decode(&stored, &mut back).unwrap();
            prop_assert_eq!(back, element);
        }
    }

    #[test]
    fn padding_is_for_the_last_line() {
        let element: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut stored = Vec::new();
        Encoder::new(0, Breaks::Unix).unwrap().encode(&element, &mut stored).unwrap();
        let mut out = vec![0; element.len()];
        Convention.decode(&stored, &mut out).unwrap();
        for line in [1, LINES_AT_ONCE - 1, LINES_AT_ONCE, LINES_AT_ONCE + 1, 2 * LINES_AT_ONCE] {
            let mut damaged = stored.clone();
            damaged[line * (LINE + 2) - 3] = b'=';
            assert_eq!(Convention.decode(&damaged, &mut out).unwrap_err().code(), "scda-010");
        }
    }

    /// Base64 lines around bytes.
    fn armoured(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in bytes.chunks(LINE_BYTES) {
            STANDARD.encode_append(line, &mut out);
            out.extend_from_slice(b"=\n");
        }
        out
    }

    #[test]
    fn bytes_behind_the_stream_are_noticed_even_if_they_end_like_it() {
        for element in [&b"a checkpoint that is worth keeping"[..], &[0; 3]] {
            let mut stored = Vec::new();
            Encoder::new(9, Breaks::Unix).unwrap().encode(element, &mut stored).unwrap();
            let mut bytes = Vec::new();
            unarmour(&stored, &mut bytes).unwrap();
            let mut out = vec![0; element.len()];
            Convention.decode(&armoured(&bytes), &mut out).unwrap();
            let end = *bytes.last_chunk::<4>().unwrap();
            for junk in [&b""[..], b"x", b"junk", &end] {
                let with_junk = [&bytes[..], junk, &end].concat();
                let error = Convention.decode(&armoured(&with_junk), &mut out).unwrap_err();
                assert_eq!(error.code(), "scda-010", "{junk:?}");
            }
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed_or_harmless() {
        let element = b"a checkpoint that is worth keeping ".repeat(10);
        let mut stored = Vec::new();
        Encoder::new(9, Breaks::Unix).unwrap().encode(&element, &mut stored).unwrap();
        let mut out = vec![0; element.len()];
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            if Convention.decode(&damaged, &mut out).is_ok() {
                assert_eq!(out, element, "byte {at}");
            }
        }
        assert!(Convention.decode(&stored, &mut out[1..]).is_err());
        assert!(Convention.decode(&stored[..stored.len() - 1], &mut out).is_err());
        assert!(Convention.decode(b"", &mut out).is_err());
    }
}
