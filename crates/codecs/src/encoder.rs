//! Compression of new chunks, with a level.

use libdeflater::{CompressionLvl, Compressor};
use spile_core::error::{Error, Result};

use crate::encode;

/// A compression with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// A gzip stream; levels 1 to 9.
    Gzip(i32),
    /// A Zstandard frame; levels 1 to 22.
    Zstd(i32),
}

impl Encoder {
    /// Upper bound of the memory in bytes that [`Encoder::encode`] needs for `len` bytes: the result, and the
    /// tables of the encoder, which are larger for higher levels.
    pub fn memory(self, len: u64) -> u64 {
        let tables = match self {
            Self::Gzip(_) => 2 << 20,
            Self::Zstd(..=12) => len.saturating_mul(2).min(16 << 20),
            Self::Zstd(_) => len.saturating_mul(10).min(1 << 30),
        };
        len.saturating_add(len / 128 + 4096).saturating_add(tables)
    }

    /// The encoded `bytes`: always the same for the same bytes. Fails if the level does not exist.
    pub fn encode(self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut encoded = match self {
            Self::Gzip(level) => gzip(bytes, level)?,
            Self::Zstd(level) => encode::zstd(bytes, level)?,
        };
        encoded.shrink_to_fit();
        Ok(encoded)
    }
}

fn gzip(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    let level = CompressionLvl::new(level)
        .map_err(|_| Error::argument(format!("gzip has no compression level {level}")))?;
    let mut encoder = Compressor::new(level);
    let mut out = vec![0; encoder.gzip_compress_bound(bytes.len())];
    let len = encoder.gzip_compress(bytes, &mut out);
    out.truncate(len.map_err(|error| Error::unsupported("codec", format!("gzip: {error}")))?);
    Ok(out)
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
            (Encoder::Zstd(3), Step::Zstd),
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
}
