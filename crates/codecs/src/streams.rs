//! Compressions that are decoded as streams, and decoding of data of unknown length.

use std::io::Read;

use spile_core::error::{Error, Result};

use crate::{Step, compression, invalid, take, too_short};

/// Largest memory of an XZ decoder besides its output, in KiB: that of the highest preset.
const XZ_MEMORY: u32 = 80 << 10;

/// Decodes a bzip2 stream.
pub(crate) fn bzip2(stored: &[u8], out: &mut [u8]) -> Result<()> {
    exactly("bzip2", bzip2::read::MultiBzDecoder::new(stored), out)
}

/// Decodes an XZ stream, or the older LZMA container.
pub(crate) fn xz(stored: &[u8], out: &mut [u8]) -> Result<()> {
    exactly("xz", xz_reader(stored)?, out)
}

fn xz_reader(stored: &[u8]) -> Result<Box<dyn Read + '_>> {
    if stored.starts_with(b"\xfd7zXZ\0") {
        return Ok(Box::new(lzma_rust2::XzReader::new_mem_limit(stored, true, XZ_MEMORY)));
    }
    let reader = lzma_rust2::LzmaReader::new_mem_limit(stored, XZ_MEMORY, None);
    let reader = reader.map_err(|error| invalid(format!("invalid xz data: {error}")))?;
    Ok(Box::new(reader))
}

/// Reads exactly the length of `out`.
fn exactly(name: &str, mut reader: impl Read, out: &mut [u8]) -> Result<()> {
    let failed = |error| invalid(format!("invalid {name} data: {error}"));
    reader.read_exact(out).map_err(failed)?;
    match reader.read(&mut [0]).map_err(failed)? {
        0 => Ok(()),
        _ => Err(invalid(format!("chunk: expected {} bytes, found more", out.len()))),
    }
}

/// Decodes one step to a length that is not known, at most `limit` bytes. Fails with `Unsupported` for steps that
/// need the length.
pub(crate) fn decode_any(step: Step, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
    let known = |len: usize| {
        if len as u64 > limit {
            return Err(too_long(limit));
        }
        let mut decoded = vec![0; len];
        step.decode(stored, &mut decoded)?;
        Ok(decoded)
    };
    let mut header = stored;
    match step {
        Step::Gzip | Step::Zlib | Step::Deflate => growing(step, stored, limit),
        Step::Zstd => zstd(stored, limit),
        Step::Bzip2 => limited("bzip2", bzip2::read::MultiBzDecoder::new(stored), limit),
        Step::Xz => limited("xz", xz_reader(stored)?, limit),
        Step::Snappy => {
            let len = snap::raw::decompress_len(stored);
            known(len.map_err(|error| invalid(format!("invalid snappy data: {error}")))?)
        }
        Step::Blosc => {
            take::<4>(&mut header)?;
            known(u32::from_le_bytes(*take(&mut header)?) as usize)
        }
        Step::Lz4WithLength => known(u32::from_le_bytes(*take(&mut header)?) as usize),
        Step::Lz4Blocks => {
            let len = u64::from_be_bytes(*take(&mut header)?);
            known(usize::try_from(len).unwrap_or(usize::MAX))
        }
        Step::Numeric(filter) => known(filter.decoded_len(stored)?),
        _ if step.is_checksum() => known(stored.len().checked_sub(4).ok_or_else(too_short)?),
        _ if step.compresses() => Err(Error::unsupported(
            "codec",
            format!("{} of unknown length is not supported", step.name()),
        )),
        _ => known(stored.len()),
    }
}

fn too_long(limit: u64) -> Error {
    invalid(format!("the decoded chunk is longer than {limit} bytes"))
}

/// Decodes deflated data to a buffer that grows until they fit.
fn growing(step: Step, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut len = stored.len().saturating_mul(4).max(1 << 10).min(limit);
    loop {
        let mut decoded = vec![0; len];
        match compression::inflate(step, stored, &mut decoded)? {
            Some(found) => {
                decoded.truncate(found);
                return Ok(decoded);
            }
            None if len >= limit => return Err(too_long(limit as u64)),
            None => len = len.saturating_mul(4).min(limit),
        }
    }
}

fn zstd(stored: &[u8], limit: u64) -> Result<Vec<u8>> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
    let decoder = decoder.map_err(|error| invalid(format!("invalid zstd data: {error}")))?;
    // One frame with its length is the usual case, and the C library is faster.
    let len = decoder.decoder.content_size();
    if len > 0 && len <= limit {
        let mut decoded = vec![0; len as usize];
        if compression::zstd(stored, &mut decoded).is_ok() {
            return Ok(decoded);
        }
    }
    limited("zstd", decoder, limit)
}

fn limited(name: &str, reader: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut decoded = Vec::new();
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut decoded);
    read.map_err(|error| invalid(format!("invalid {name} data: {error}")))?;
    if decoded.len() as u64 > limit { Err(too_long(limit)) } else { Ok(decoded) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipeline;
    use spile_core::layout::Codec as _;

    /// 600 bytes, the numbers 0 to 199 three times, as Python's `bz2` and `lzma` compress them.
    fn plain() -> Vec<u8> {
        (0..600).map(|k| (k % 200) as u8).collect()
    }

    fn deflated() -> Vec<u8> {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; 2000];
        let len = compressor.zlib_compress(&plain(), &mut out).unwrap();
        out.truncate(len);
        out
    }

    #[test]
    fn data_of_unknown_length_are_limited() {
        let stored = deflated();
        assert_eq!(decode_any(Step::Zlib, &stored, 600).unwrap(), plain());
        assert!(decode_any(Step::Zlib, &stored, 599).is_err());
        let large = vec![7_u8; 100_000];
        let mut block = (large.len() as u32).to_le_bytes().to_vec();
        block.extend(lz4_flex::block::compress(&large));
        assert_eq!(decode_any(Step::Lz4WithLength, &block, 100_000).unwrap(), large);
        assert!(decode_any(Step::Lz4WithLength, &block, 99_999).is_err());
        assert!(decode_any(Step::Lz4, &block, 100_000).is_err());
    }

    #[test]
    fn two_compressions_are_decoded_in_a_chain() {
        let first = deflated();
        let mut stored = (first.len() as u32).to_le_bytes().to_vec();
        stored.extend(lz4_flex::block::compress(&first));
        let steps = vec![Step::Zlib, Step::Lz4WithLength];
        let mut out = vec![0; 600];
        Pipeline::chained(steps.clone(), "demo-001", 1000).decode(&stored, &mut out).unwrap();
        assert_eq!(out, plain());
        let few = Pipeline::chained(steps, "demo-001", 10);
        assert_eq!(few.decode(&stored, &mut out).unwrap_err().code(), "demo-001");
        assert_eq!(few.decode_any(&stored, 600).unwrap(), plain());
    }

    #[test]
    fn streams_of_bzip2_xz_and_lzma_are_decoded() {
        let all: [(Step, &[u8]); 3] = [
            (Step::Bzip2, include_bytes!("../tests/data/counts.bz2")),
            (Step::Xz, include_bytes!("../tests/data/counts.xz")),
            (Step::Xz, include_bytes!("../tests/data/counts.lzma")),
        ];
        for (step, stored) in all {
            let mut out = vec![0; 600];
            step.decode(stored, &mut out).unwrap();
            assert_eq!(out, plain());
            assert_eq!(decode_any(step, stored, 600).unwrap(), plain());
            assert!(decode_any(step, stored, 599).is_err());
            assert!(step.decode(stored, &mut out[..599]).is_err());
            assert!(step.decode(&stored[..stored.len() / 2], &mut out).is_err());
        }
    }
}
