//! Decoding of chunks.

mod blosc;

use std::borrow::Cow;

use libdeflater::Decompressor;
use ruzstd::decoding::FrameDecoder;
use serde_json::Value;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;

use crate::wire::{Object, malformed, unsupported};

/// A bytes-to-bytes codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Gzip,
    Zlib,
    Zstd,
    Blosc,
    /// An LZ4 block after its decoded length.
    Lz4,
    /// Byte shuffle of elements of this size in bytes.
    Shuffle(usize),
    /// A CRC-32C checksum of four bytes after the data.
    Crc32c,
}

impl Filter {
    /// A codec of version 3.
    pub(crate) fn version_3(name: &str, configuration: &Object) -> Result<Self> {
        Ok(match name {
            "gzip" | "numcodecs.gzip" => Self::Gzip,
            "zstd" | "numcodecs.zstd" => Self::Zstd,
            "blosc" | "numcodecs.blosc" => Self::Blosc,
            "crc32c" => Self::Crc32c,
            "zlib" | "numcodecs.zlib" => Self::Zlib,
            "numcodecs.lz4" => Self::Lz4,
            "numcodecs.shuffle" => {
                Self::Shuffle(size_of_element(configuration.get("elementsize"))?)
            }
            other => return Err(unsupported(format!("codec {other} is not supported"))),
        })
    }

    /// A filter or compressor of version 2.
    pub(crate) fn version_2(value: &Value, dtype: DType) -> Result<Self> {
        let name = value.get("id").and_then(Value::as_str);
        let name = name.ok_or_else(|| malformed("filter without an id"))?;
        Ok(match name {
            "gzip" => Self::Gzip,
            "zlib" => Self::Zlib,
            "zstd" => Self::Zstd,
            "blosc" => Self::Blosc,
            "lz4" => Self::Lz4,
            "shuffle" => {
                let size = value.get("elementsize");
                Self::Shuffle(size.map_or(Ok(dtype.size()), |size| size_of_element(Some(size)))?)
            }
            other => return Err(unsupported(format!("codec {other} is not supported"))),
        })
    }

    /// Whether the decoded length differs from the encoded one by an unknown amount.
    fn compresses(self) -> bool {
        !matches!(self, Self::Shuffle(_) | Self::Crc32c)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Blosc => "blosc",
            Self::Lz4 => "lz4",
            Self::Shuffle(_) => "shuffle",
            Self::Crc32c => "crc32c",
        }
    }
}

fn size_of_element(value: Option<&Value>) -> Result<usize> {
    let size = value.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    size.filter(|n| *n > 0).ok_or_else(|| malformed("shuffle: expected a positive elementsize"))
}

/// The bytes-to-bytes codecs of a chunk, in the order of encoding.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    filters: Vec<Filter>,
    name: String,
}

impl Pipeline {
    /// Fails with `Unsupported` for more than one compression.
    pub(crate) fn new(filters: Vec<Filter>) -> Result<Self> {
        if filters.iter().filter(|f| f.compresses()).count() > 1 {
            return Err(unsupported("more than one compression codec is not supported"));
        }
        let name = filters.iter().map(|f| f.name()).collect::<Vec<_>>().join("+");
        Ok(Self { filters, name })
    }

    /// Whether chunks are stored without codecs.
    pub(crate) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}

impl Codec for Pipeline {
    fn name(&self) -> &str {
        &self.name
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut bytes = Cow::Borrowed(stored);
        // Checksums that were added before a compression are part of its output.
        let mut checksums = self.filters.iter().filter(|f| **f == Filter::Crc32c).count() * 4;
        for filter in self.filters.iter().rev() {
            match *filter {
                Filter::Crc32c => {
                    checksums = checksums.saturating_sub(4);
                    let (data, sum) = bytes.split_last_chunk::<4>().ok_or_else(truncated)?;
                    if crc32c(data) != u32::from_le_bytes(*sum) {
                        return Err(invalid_chunk("chunk checksum mismatch"));
                    }
                    let len = data.len();
                    match &mut bytes {
                        Cow::Borrowed(bytes) => *bytes = &bytes[..len],
                        Cow::Owned(bytes) => bytes.truncate(len),
                    }
                }
                Filter::Shuffle(size) => {
                    let mut plain = vec![0; bytes.len()];
                    unshuffle(size, &bytes, &mut plain);
                    bytes = plain.into();
                }
                compressed => {
                    let mut plain = vec![0; out.len() + checksums];
                    inflate(compressed, &bytes, &mut plain)?;
                    bytes = plain.into();
                }
            }
        }
        if bytes.len() != out.len() {
            return Err(invalid_chunk(format!(
                "chunk: expected {} bytes, found {}",
                out.len(),
                bytes.len()
            )));
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }
}

/// Decompresses `stored` to `out`. Fails unless the decoded length is that of `out`.
pub(crate) fn inflate(filter: Filter, stored: &[u8], out: &mut [u8]) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| {
        invalid_chunk(format!("chunk: invalid {} data: {e}", filter.name()))
    };
    let len = match filter {
        Filter::Gzip => Decompressor::new().gzip_decompress(stored, out).map_err(|e| failed(&e))?,
        Filter::Zlib => Decompressor::new().zlib_decompress(stored, out).map_err(|e| failed(&e))?,
        Filter::Zstd => FrameDecoder::new().decode_all(stored, out).map_err(|e| failed(&e))?,
        Filter::Lz4 => {
            let (size, block) = stored.split_first_chunk::<4>().ok_or_else(truncated)?;
            if u32::from_le_bytes(*size) as usize != out.len() {
                let found = u32::from_le_bytes(*size);
                let message = format!("lz4: expected {} bytes, found {found}", out.len());
                return Err(invalid_chunk(message));
            }
            lz4_flex::block::decompress_into(block, out).map_err(|e| failed(&e))?
        }
        Filter::Blosc => blosc::decode(stored, out)?,
        Filter::Shuffle(_) | Filter::Crc32c => {
            return Err(invalid_chunk("not a compression codec"));
        }
    };
    if len == out.len() {
        return Ok(());
    }
    Err(invalid_chunk(format!("chunk: expected {} bytes, found {len}", out.len())))
}

/// Reverses a byte shuffle of elements of `size` bytes. Bytes after the last complete element are copied.
pub(crate) fn unshuffle(size: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / size.max(1);
    if size <= 1 || count == 0 {
        to.copy_from_slice(from);
        return;
    }
    for (k, column) in from.chunks_exact(count).take(size).enumerate() {
        for (target, byte) in to[k..].iter_mut().step_by(size).zip(column) {
            *target = *byte;
        }
    }
    let complete = count * size;
    to[complete..].copy_from_slice(&from[complete..]);
}

/// An error about the bytes of a chunk.
pub(crate) fn invalid_chunk(message: impl Into<String>) -> Error {
    Error::malformed("zarr-005", message)
}

/// An error about a chunk that is too short.
pub(crate) fn truncated() -> Error {
    Error::truncated("zarr-006", "unexpected end of chunk")
}

/// CRC-32C (Castagnoli).
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut k = 0;
    while k < 256 {
        let mut sum = k as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0x82f6_3b78 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[k] = sum;
        k += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let pipeline = Pipeline::new(vec![Filter::Crc32c]).unwrap();
        let mut stored = b"abc".to_vec();
        stored.extend(crc32c(b"abc").to_le_bytes());
        let mut out = [0; 3];
        pipeline.decode(&stored, &mut out).unwrap();
        assert_eq!(&out, b"abc");
        stored[0] ^= 1;
        assert_eq!(pipeline.decode(&stored, &mut out).unwrap_err().code(), "zarr-005");
        assert!(pipeline.decode(&stored[..3], &mut out).is_err());
        assert!(pipeline.decode(&stored, &mut [0; 2]).is_err());
    }

    #[test]
    fn unshuffle_copies_incomplete_elements() {
        let mut out = [0; 7];
        unshuffle(3, &[1, 4, 2, 5, 3, 6, 9], &mut out);
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 9]);
        unshuffle(9, &[1, 4, 2, 5, 3, 6, 9], &mut out);
        assert_eq!(out, [1, 4, 2, 5, 3, 6, 9]);
    }
}
