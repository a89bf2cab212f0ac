//! Encoders, for writers of compressed chunks. The same input gives the same output.

use libdeflater::{CompressionLvl, Compressor};
use spile_core::error::{Error, Result};

/// The zlib stream of `bytes`, of a level from 1 to 9.
pub fn zlib(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    let level = CompressionLvl::new(level).map_err(|_| failed("zlib"))?;
    let mut compressor = Compressor::new(level);
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let len = compressor.zlib_compress(bytes, &mut out).map_err(|_| failed("zlib"))?;
    out.truncate(len);
    Ok(out)
}

/// The Zstandard frame of `bytes`, with their length, of a level from 1 to 22. Fails without the feature `zstd`.
#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
pub fn zstd(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    zstd::bulk::compress(bytes, level).map_err(|_| failed("zstd"))
}

/// The Zstandard frame of `bytes`, with their length, of a level from 1 to 22. Fails without the feature `zstd`.
#[cfg(not(all(feature = "zstd", not(target_family = "wasm"))))]
pub fn zstd(_: &[u8], _: i32) -> Result<Vec<u8>> {
    Err(Error::unsupported("", "this program is built without compression by Zstandard"))
}

/// The byte shuffle of elements of `element` bytes: byte `k` of all elements together. Bytes after the last complete
/// element are copied.
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

fn failed(name: &str) -> Error {
    Error::unsupported("", format!("compression by {name} failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pipeline, Step};
    use spile_core::layout::Codec as _;

    #[test]
    fn encoded_bytes_decode_to_the_input() {
        let bytes: Vec<u8> = (0..4001_u32).map(|k| (k * k / 7) as u8).collect();
        for element in [1, 2, 8, 5000] {
            let shuffled = shuffle(element, &bytes);
            for (step, encoded) in [
                (Step::Zlib, zlib(&shuffled, 4).unwrap()),
                (Step::Zstd, zstd(&shuffled, 3).unwrap()),
            ] {
                let pipeline = Pipeline::new(vec![Step::Shuffle(element), step], "demo").unwrap();
                let mut out = vec![0; bytes.len()];
                pipeline.decode(&encoded, &mut out).unwrap();
                assert_eq!(out, bytes);
            }
        }
    }
}
