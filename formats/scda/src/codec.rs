//! The codec of the compression convention (section 3.1): size, 'z' and zlib stream as base64 lines of
//! 76 characters and two arbitrary bytes.

use std::cell::RefCell;

use base64_simd::STANDARD;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use spile_core::{Codec, Error, Limits, Result};

use crate::wire::Breaks;

/// Base64 characters of a line.
pub(crate) const LINE: usize = 76;

/// Bytes that a full line encodes.
const LINE_BYTES: usize = LINE / 4 * 3;

/// Uncompressed size and the letter 'z'.
const PREFIX: usize = 9;

thread_local! {
    // Creating these takes longer than decoding a small element.
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
            decode_lines(stored, bytes)?;
            let (prefix, stream) =
                bytes.split_at_checked(PREFIX).ok_or_else(|| bad("expected at least 9 bytes"))?;
            let size = prefix[..8].iter().fold(0_u64, |v, b| v << 8 | u64::from(*b));
            if size != out.len() as u64 {
                let expected = out.len();
                return Err(bad(&format!(
                    "expected an uncompressed size of {expected} bytes, found {size}"
                )));
            }
            if prefix[8] != b'z' {
                return Err(bad("expected the byte 'z' before the deflate stream"));
            }
            match inflate.zlib_decompress(stream, out) {
                Ok(n) if n == out.len() => {}
                Ok(n) => return Err(bad(&format!("expected {size} bytes, found {n}"))),
                Err(_) => return Err(bad("invalid deflate stream")),
            }
            let sum = libdeflater::adler32(out).to_be_bytes();
            if stream.last_chunk() != Some(&sum) || ends_before(stream, sum, inflate, out.len()) {
                return Err(bad("unexpected bytes after the deflate stream"));
            }
            Ok(())
        })
    }
}

/// Whether the deflate stream ends before the last bytes of `stream`, which equal the checksum `sum`. The
/// checksum then occurs a second time; searching for it is cheaper than decoding twice.
fn ends_before(stream: &[u8], sum: [u8; 4], inflate: &mut Decompressor, size: usize) -> bool {
    let shorter = &stream[..stream.len() - 1];
    shorter.windows(4).any(|bytes| bytes == sum)
        && inflate.zlib_decompress(shorter, &mut vec![0; size]).is_ok()
}

fn bad(message: &str) -> Error {
    Error::malformed("scda-010", format!("compressed element: {message}"))
}

/// Decodes lines of base64. The two bytes after each line are arbitrary; only the last line may be short.
fn decode_lines(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    out.reserve(stored.len() / 4 * 3);
    let mut lines = stored.chunks(LINE + 2).peekable();
    while let Some(line) = lines.next() {
        let start = out.len();
        let (code, _) = line
            .split_last_chunk::<2>()
            .filter(|(code, _)| !code.is_empty())
            .ok_or_else(|| bad("a base64 line has no line break"))?;
        STANDARD.decode_append(code, out).map_err(|_| bad("invalid base64"))?;
        if lines.peek().is_some() && out.len() - start != LINE_BYTES {
            return Err(bad("base64 padding before the last line"));
        }
    }
    Ok(())
}

/// Elements of up to this size are compressed at level 6 instead of 7 to 9, which take longer and gain
/// nothing.
const SMALL: usize = 2048;

/// Compresses elements; buffers are reused.
pub struct Encoder {
    level: i32,
    /// For elements larger than [`SMALL`], and for others; created on first use.
    large: Option<Compressor>,
    small: Option<Compressor>,
    /// Size, 'z' and deflate stream.
    bytes: Vec<u8>,
    breaks: Breaks,
}

impl Encoder {
    /// An encoder of compression level 0 (store) to 12; the specification recommends 9. Levels 10 to 12
    /// exceed those of zlib. Fails for other levels.
    pub fn new(level: u32, breaks: Breaks) -> Result<Self> {
        let valid = i32::try_from(level).ok().filter(|level| CompressionLvl::new(*level).is_ok());
        let level = valid.ok_or_else(|| {
            Error::argument(format!("expected a compression level from 0 to 12, found {level}"))
        })?;
        Ok(Self { level, large: None, small: None, bytes: Vec::new(), breaks })
    }

    /// Fails if compressing an element of `size` bytes exceeds the memory limit.
    pub fn allow(size: u64, limits: &Limits) -> Result<()> {
        // The element, its deflate stream, and base64 in a growing vector.
        limits.allow(size.saturating_mul(4), "compressing an element").map(drop)
    }

    /// Appends the compressed form of `element` to `out`.
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
            .map_err(|_| Error::argument("compression of an element failed"))?;
        let end: &[u8; 2] = if self.breaks == Breaks::Mime { b"\r\n" } else { b"=\n" };
        for line in self.bytes[..PREFIX + used].chunks(LINE_BYTES) {
            STANDARD.encode_append(line, out);
            out.extend_from_slice(end);
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
        fn elements_round_trip(element in proptest::collection::vec(any::<u8>(), 0..50_000),
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
    fn base64_padding_is_only_valid_in_the_last_line() {
        let element: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut stored = Vec::new();
        Encoder::new(0, Breaks::Unix).unwrap().encode(&element, &mut stored).unwrap();
        let mut out = vec![0; element.len()];
        Convention.decode(&stored, &mut out).unwrap();
        for line in [1, 2, 255, 256, 257, 512] {
            let mut damaged = stored.clone();
            damaged[line * (LINE + 2) - 3] = b'=';
            assert_eq!(Convention.decode(&damaged, &mut out).unwrap_err().code(), "scda-010");
        }
    }

    /// The bytes as lines of base64.
    fn encode_lines(bytes: &[u8]) -> Vec<u8> {
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
            decode_lines(&stored, &mut bytes).unwrap();
            let mut out = vec![0; element.len()];
            Convention.decode(&encode_lines(&bytes), &mut out).unwrap();
            let end = *bytes.last_chunk::<4>().unwrap();
            for junk in [&b""[..], b"x", b"junk", &end] {
                let with_junk = [&bytes[..], junk, &end].concat();
                let error = Convention.decode(&encode_lines(&with_junk), &mut out).unwrap_err();
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
