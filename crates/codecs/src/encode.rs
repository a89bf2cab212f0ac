//! Compression of new chunks.

use libdeflater::CompressionLvl;
use spile_core::error::{Error, Result};
use spile_core::format::{Compression, Compressor};

/// A compression with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// A gzip stream; levels 1 to 9.
    Gzip(i32),
    /// A zlib stream; levels 1 to 9.
    Zlib(i32),
    /// A Zstandard frame; levels 1 to 22.
    Zstd(i32),
    /// A snappy block.
    Snappy,
    /// An LZ4 block without its length.
    Lz4,
}

impl Encoder {
    /// The encoder of a compression: gzip has level 5 if none is given, Zstandard 3. None without compression.
    pub fn new(compression: Compression) -> Option<Self> {
        let Compression { compressor, level } = compression;
        match compressor {
            Compressor::Gzip => Some(Self::Gzip(level.unwrap_or(5))),
            Compressor::Zstd => Some(Self::Zstd(level.unwrap_or(3))),
            Compressor::Snappy => Some(Self::Snappy),
            Compressor::Lz4 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Upper bound of the memory in bytes that [`Encoder::encode`] needs for `len` bytes: the result, and the
    /// tables of the encoder, which are larger for higher levels.
    pub fn memory(self, len: u64) -> u64 {
        let tables = match self {
            Self::Gzip(_) | Self::Zlib(_) | Self::Snappy | Self::Lz4 => 2 << 20,
            Self::Zstd(..=12) => len.saturating_mul(2).min(16 << 20),
            Self::Zstd(_) => len.saturating_mul(10).min(1 << 30),
        };
        len.saturating_add(len / 6 + 4096).saturating_add(tables)
    }

    /// The encoded `bytes`: always the same for the same bytes. Fails if the level does not exist.
    pub fn encode(self, bytes: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Gzip(level) => deflate(bytes, level, true),
            Self::Zlib(level) => deflate(bytes, level, false),
            Self::Zstd(level) => zstd(bytes, level),
            Self::Snappy => snap::raw::Encoder::new()
                .compress_vec(bytes)
                .map_err(|error| Error::unsupported("codec", format!("snappy: {error}"))),
            Self::Lz4 => Ok(lz4_flex::block::compress(bytes)),
        }
    }
}

/// The byte shuffle of elements of `element` bytes: byte `k` of all elements together. Bytes after the last
/// complete element are copied.
pub fn shuffle(element: usize, bytes: &[u8]) -> Vec<u8> {
    let count = bytes.len() / element.max(1);
    if element <= 1 || count == 0 {
        return bytes.to_vec();
    }
    let mut out = vec![0; bytes.len()];
    for (k, column) in out.chunks_exact_mut(count).take(element).enumerate() {
        for (target, byte) in column.iter_mut().zip(bytes[k..].iter().step_by(element)) {
            *target = *byte;
        }
    }
    let complete = count * element;
    out[complete..].copy_from_slice(&bytes[complete..]);
    out
}

/// A gzip stream, or a zlib stream.
fn deflate(bytes: &[u8], level: i32, gzip: bool) -> Result<Vec<u8>> {
    let level = CompressionLvl::new(level)
        .map_err(|_| Error::argument(format!("deflate has no compression level {level}")))?;
    let mut encoder = libdeflater::Compressor::new(level);
    let mut out = vec![0; encoder.gzip_compress_bound(bytes.len())];
    let len = if gzip {
        encoder.gzip_compress(bytes, &mut out)
    } else {
        encoder.zlib_compress(bytes, &mut out)
    };
    out.truncate(len.map_err(|error| Error::unsupported("codec", format!("deflate: {error}")))?);
    out.shrink_to_fit();
    Ok(out)
}

#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
fn zstd(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    thread_local! {
        // Creating a compressor costs more than encoding a small chunk.
        static ZSTD: std::cell::RefCell<zstd::bulk::Compressor<'static>> = std::cell::RefCell::default();
    }
    let encoded = ZSTD.with_borrow_mut(|encoder| {
        encoder.set_compression_level(level)?;
        encoder.compress(bytes)
    });
    let mut out = encoded.map_err(|error| Error::unsupported("codec", format!("zstd: {error}")))?;
    out.shrink_to_fit();
    Ok(out)
}

/// The encoder in Rust has one level.
#[cfg(not(all(feature = "zstd", not(target_family = "wasm"))))]
#[allow(clippy::unnecessary_wraps)] // As the encoder in C.
fn zstd(bytes: &[u8], _level: i32) -> Result<Vec<u8>> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    Ok(ruzstd::encoding::compress_to_vec(bytes, level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pipeline, Step};
    use spile_core::layout::Codec as _;

    #[test]
    fn encoded_bytes_are_decoded_and_do_not_depend_on_earlier_ones() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|k| (k % 251 + k / 999) as u8).collect();
        for (encoder, step) in [
            (Encoder::Gzip(5), Step::Gzip),
            (Encoder::Zlib(4), Step::Zlib),
            (Encoder::Zstd(3), Step::Zstd),
            (Encoder::Snappy, Step::Snappy),
            (Encoder::Zstd(19), Step::Zstd),
        ] {
            let first = encoder.encode(&bytes).unwrap();
            assert!(first.len() < 50_000 && first.len() as u64 <= encoder.memory(100_000));
            encoder.encode(b"other").unwrap();
            assert_eq!(encoder.encode(&bytes).unwrap(), first);
            let mut out = vec![0; bytes.len()];
            Pipeline::new(vec![step], "demo-001").unwrap().decode(&first, &mut out).unwrap();
            assert_eq!(out, bytes);
        }
        assert!(Encoder::Gzip(77).encode(&bytes).is_err());
    }

    #[test]
    fn shuffled_bytes_are_restored_with_an_incomplete_last_element() {
        let bytes: Vec<u8> = (0..4001_u32).map(|k| (k * k / 7) as u8).collect();
        for element in [1, 2, 8, 5000] {
            let pipeline = Pipeline::new(vec![Step::Shuffle(element)], "demo-001").unwrap();
            let mut out = vec![0; bytes.len()];
            pipeline.decode(&shuffle(element, &bytes), &mut out).unwrap();
            assert_eq!(out, bytes);
        }
    }
}
