//! Compression of pages.

use std::io::Read as _;

use spile_codecs::{Encoder, Pipeline, Step};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec as _;

/// The compression of the pages of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Compression {
    /// Not compressed, or a compression of the shared codecs.
    Pipeline(Pipeline),
    Brotli,
    /// LZ4 blocks in the framing of Hadoop, or one LZ4 block. The specification of this codec was ambiguous.
    Lz4(Pipeline),
}

/// The name of a compression codec, for messages.
fn name(code: Option<i64>) -> String {
    match code {
        Some(3) => "LZO".into(),
        Some(code) => code.to_string(),
        None => "none".into(),
    }
}

impl Compression {
    /// The compression with this code.
    pub(crate) fn new(code: Option<i64>) -> Result<Self> {
        let steps = match code {
            Some(1) => vec![Step::Snappy],
            Some(2) => vec![Step::Gzip],
            Some(4) => return Ok(Self::Brotli),
            Some(5 | 7) => vec![Step::Lz4],
            Some(6) => vec![Step::Zstd],
            _ => Vec::new(),
        };
        let known = matches!(code, Some(0..=2 | 4..=7));
        let pipeline = Pipeline::new(steps, "parquet-005").filter(|_| known).ok_or_else(|| {
            let message = format!("compression codec {} is not supported", name(code));
            Error::unsupported("parquet-006", message)
                .hint("supported are snappy, gzip, zstd, brotli and lz4")
        })?;
        Ok(if code == Some(5) { Self::Lz4(pipeline) } else { Self::Pipeline(pipeline) })
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Pipeline(pipeline) if pipeline.is_empty())
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Pipeline(pipeline) | Self::Lz4(pipeline) => pipeline.name(),
            Self::Brotli => "brotli",
        }
    }

    /// Decompresses a page to `out`. Fails unless it has exactly that length.
    pub(crate) fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Self::Pipeline(pipeline) => pipeline.decode(stored, out),
            Self::Brotli => brotli(stored, out),
            Self::Lz4(block) => match hadoop(block, stored, out) {
                Some(()) => Ok(()),
                None => block.decode(stored, out),
            },
        }
    }
}

/// The code of a compression of pages that are written.
pub(crate) fn code(encoder: Option<Encoder>) -> i32 {
    match encoder {
        Some(Encoder::Snappy) => 1,
        Some(Encoder::Gzip(_)) => 2,
        Some(Encoder::Zstd(_)) => 6,
        Some(Encoder::Lz4) => 7,
        _ => 0,
    }
}

fn brotli(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut decoder = brotli_decompressor::Decompressor::new(stored, 1 << 12);
    let complete = decoder.read_exact(out).is_ok() && matches!(decoder.read(&mut [0]), Ok(0));
    complete.then_some(()).ok_or_else(|| Error::malformed("parquet-005", "invalid brotli data"))
}

/// Decodes blocks that each follow their decoded and encoded length (32 bits, big-endian). `None` for other
/// content.
fn hadoop(block: &Pipeline, stored: &[u8], out: &mut [u8]) -> Option<()> {
    let (mut rest, mut out) = (stored, out);
    while !rest.is_empty() {
        let (decoded, after) = rest.split_first_chunk()?;
        let (encoded, after) = after.split_first_chunk()?;
        let (own, after) = after.split_at_checked(u32::from_be_bytes(*encoded) as usize)?;
        let (slot, left) = out.split_at_mut_checked(u32::from_be_bytes(*decoded) as usize)?;
        block.decode(own, slot).ok()?;
        (rest, out) = (after, left);
    }
    out.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lz4_has_two_forms() {
        let block = lz4_flex::block::compress(b"abcabcabcabcabc");
        let mut framed = Vec::new();
        framed.extend(15_u32.to_be_bytes());
        framed.extend((block.len() as u32).to_be_bytes());
        framed.extend(&block);
        let lz4 = Compression::new(Some(5)).unwrap();
        for stored in [&block, &framed] {
            let mut out = [0; 15];
            lz4.decode(stored, &mut out).unwrap();
            assert_eq!(&out, b"abcabcabcabcabc");
            assert!(lz4.decode(stored, &mut [0; 14]).is_err());
        }
        let error = Compression::new(Some(3)).unwrap_err();
        assert_eq!(error.message(), "compression codec LZO is not supported");
    }

    #[test]
    fn invalid_brotli_is_an_error() {
        let brotli = Compression::new(Some(4)).unwrap();
        for bytes in [&[][..], &[0xff; 20], &[0x3b]] {
            assert_eq!(brotli.decode(bytes, &mut [0; 4]).unwrap_err().code(), "parquet-005");
        }
    }
}
