//! Compression of data to be written.

use spile_core::error::{Error, Result};
use spile_core::format::{Compression, Compressor};

/// Compresses `bytes`: gzip, a Zstandard frame, a snappy block or an LZ4 block without its length.
pub fn encode(compression: Compression, bytes: &[u8]) -> Result<Vec<u8>> {
    let fail = |e: &dyn std::fmt::Display| Error::unsupported("", format!("compression: {e}"));
    Ok(match compression.compressor {
        Compressor::Gzip => {
            let level = compression.level.unwrap_or(6);
            let level =
                libdeflater::CompressionLvl::new(level).map_err(|_| fail(&"invalid level"))?;
            let mut encoder = libdeflater::Compressor::new(level);
            let mut out = vec![0; encoder.gzip_compress_bound(bytes.len())];
            let len = encoder.gzip_compress(bytes, &mut out).map_err(|e| fail(&e))?;
            out.truncate(len);
            out
        }
        Compressor::Zstd => zstd(bytes, compression.level.unwrap_or(3)).map_err(|e| fail(&e))?,
        Compressor::Snappy => {
            snap::raw::Encoder::new().compress_vec(bytes).map_err(|e| fail(&e))?
        }
        Compressor::Lz4 => lz4_flex::block::compress(bytes),
        _ => bytes.to_vec(),
    })
}

#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
fn zstd(bytes: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, level)
}

#[cfg(not(all(feature = "zstd", not(target_family = "wasm"))))]
#[allow(clippy::unnecessary_wraps)] // As the function above.
fn zstd(bytes: &[u8], _level: i32) -> std::io::Result<Vec<u8>> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    Ok(ruzstd::encoding::compress_to_vec(bytes, level))
}
