//! Compression codecs, byte shuffles and checksums of chunks, for formats whose chunks are encoded in several
//! steps. Decoders know the length of the decoded data, never write more, and do not panic on invalid data.
//!
//! | file | content |
//! |---|---|
//! | `encode` | encoders of new chunks: gzip, zlib, zstd, byte shuffle |
//! | `compression` | gzip, zlib, zstd, snappy, LZF, and the containers of LZ4 blocks |
//! | `streams` | bzip2, XZ, and data of unknown length |
//! | `szip` | the entropy coder of CCSDS 121.0-B |
//! | `packed` | nbit and scale-offset of HDF5 |
//! | `blosc` | the container of Blosc 1 |
//! | `shuffle` | byte and bit shuffles |
//! | `checksum` | CRC-32, CRC-32C, Adler-32, Fletcher-32 |
//! | `numeric` | filters of numbers: differences, scaling, other types, packed bits |
//!
//! ```
//! use spile_codecs::{Pipeline, Step};
//! use spile_core::layout::Codec;
//!
//! let pipeline = Pipeline::new(vec![Step::Shuffle(2)], "demo-001").unwrap();
//! let mut out = [0; 6];
//! pipeline.decode(&[1, 2, 3, 0, 0, 0], &mut out)?;
//! assert_eq!(out, [1, 0, 2, 0, 3, 0]);
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod blosc;
mod checksum;
mod compression;
mod encode;
mod numeric;
mod packed;
mod shuffle;
mod streams;
mod szip;

use std::borrow::Cow;

use spile_core::error::{Error, Result};
use spile_core::layout::Codec;

pub use checksum::{Checksum, crc32c};
pub use encode::{Encoder, shuffle};
pub use numeric::Numeric;
pub use packed::{Nbit, ScaleOffset};
pub use szip::Szip;

/// One step of encoding a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A gzip stream.
    Gzip,
    /// A zlib stream.
    Zlib,
    /// A raw deflate stream.
    Deflate,
    /// A bzip2 stream.
    Bzip2,
    /// An XZ stream, or the older LZMA container.
    Xz,
    /// Zstandard frames.
    Zstd,
    /// A raw snappy block.
    Snappy,
    /// LZF, without a header.
    Lzf,
    /// A container of Blosc 1.
    Blosc,
    /// An LZ4 block, without a header.
    Lz4,
    /// The decoded length (32 bits, little-endian) and an LZ4 block, as numcodecs writes them.
    Lz4WithLength,
    /// LZ4 blocks with their lengths, as the HDF5 filter 32004 writes them.
    Lz4Blocks,
    /// An LZ4 frame, as Arrow writes it.
    Lz4Frame,
    /// A byte shuffle of elements of this size in bytes.
    Shuffle(usize),
    /// A bit shuffle of blocks of elements, as the HDF5 filter 32008 writes it.
    Bitshuffle {
        /// Size of an element in bytes.
        element: usize,
        /// Elements per block if the blocks are not compressed; 0 is the default of the filter.
        block: usize,
        /// Compression of the blocks.
        compression: BlockCompression,
    },
    /// The filter szip of HDF5.
    Szip(Szip),
    /// The filter nbit of HDF5.
    Nbit(Nbit),
    /// The filter scaleoffset of HDF5.
    ScaleOffset(ScaleOffset),
    /// A Fletcher-32 checksum of four bytes after the data.
    Fletcher32,
    /// A CRC-32C checksum of four bytes after the data.
    Crc32c,
    /// A checksum of four bytes, little-endian.
    Checksum {
        /// The checksum.
        kind: Checksum,
        /// It is before the data.
        first: bool,
    },
    /// A filter of numbers.
    Numeric(Numeric),
}

/// Compression of the blocks of a bit shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCompression {
    /// Blocks are not compressed.
    None,
    /// Each block is an LZ4 block.
    Lz4,
    /// Each block is a Zstandard frame.
    Zstd,
}

impl Step {
    /// Name for listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Deflate => "deflate",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Szip(_) => "szip",
            Self::Nbit(_) => "nbit",
            Self::ScaleOffset(_) => "scaleoffset",
            Self::Snappy => "snappy",
            Self::Lzf => "lzf",
            Self::Blosc => "blosc",
            Self::Lz4 | Self::Lz4WithLength | Self::Lz4Blocks | Self::Lz4Frame => "lz4",
            Self::Shuffle(_) => "shuffle",
            Self::Bitshuffle { .. } => "bitshuffle",
            Self::Fletcher32 => "fletcher32",
            Self::Crc32c => "crc32c",
            Self::Checksum { kind, .. } => kind.name(),
            Self::Numeric(filter) => filter.name(),
        }
    }

    fn is_checksum(self) -> bool {
        matches!(self, Self::Fletcher32 | Self::Crc32c | Self::Checksum { .. })
    }

    /// Whether the encoded length differs from the decoded length.
    fn compresses(self) -> bool {
        let none = BlockCompression::None;
        !self.is_checksum()
            && !matches!(self, Self::Shuffle(_) | Self::Numeric(_))
            && !matches!(self, Self::Bitshuffle { compression, .. } if compression == none)
    }

    /// Length of `len` bytes after this step; `None` if it depends on the data.
    fn encoded_len(self, len: usize) -> Option<usize> {
        match self {
            _ if self.compresses() => None,
            _ if self.is_checksum() => len.checked_add(4),
            Self::Numeric(filter) => filter.encoded_len(len),
            _ => Some(len),
        }
    }

    /// Largest length of `len` bytes after this step, for steps that have one.
    fn most(self, len: usize) -> Option<usize> {
        match self {
            Self::Nbit(_) => Some(Nbit::most(len)),
            Self::ScaleOffset(_) => Some(ScaleOffset::most(len)),
            _ => None,
        }
    }

    /// Decodes `stored` to `out`. Fails unless the decoded length is that of `out`. Checksums are verified.
    fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Self::Gzip => compression::gzip(stored, out),
            Self::Zlib => compression::zlib(stored, out),
            Self::Deflate => compression::deflate(stored, out),
            Self::Bzip2 => streams::bzip2(stored, out),
            Self::Xz => streams::xz(stored, out),
            Self::Zstd => compression::zstd(stored, out),
            Self::Szip(szip) => szip::decode(szip, stored, out),
            Self::Nbit(nbit) => nbit.decode(stored, out),
            Self::ScaleOffset(step) => step.decode(stored, out),
            Self::Snappy => compression::snappy(stored, out),
            Self::Lzf => compression::lzf(stored, out),
            Self::Blosc => blosc::decode(stored, out),
            Self::Lz4 => compression::lz4(stored, out),
            Self::Lz4WithLength => compression::lz4_with_length(stored, out),
            Self::Lz4Blocks => compression::lz4_blocks(stored, out),
            Self::Lz4Frame => compression::lz4_frame(stored, out),
            Self::Shuffle(element) => {
                expect_length(stored.len(), out)?;
                shuffle::unshuffle(element, stored, out);
                Ok(())
            }
            Self::Bitshuffle { element, block, compression } => {
                shuffle::bitshuffle(element, block, compression, stored, out)
            }
            Self::Fletcher32 => copy(checksum::verify_fletcher32(stored)?, out),
            Self::Crc32c => copy(checksum::verify_crc32c(stored)?, out),
            Self::Checksum { kind, first } => copy(kind.verify(stored, first)?, out),
            Self::Numeric(filter) => filter.decode(stored, out),
        }
    }
}

/// The steps of encoding a chunk, in the order of encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    steps: Vec<Step>,
    name: String,
    code: &'static str,
    /// Largest length in bytes between two compressions.
    limit: u64,
}

impl Pipeline {
    /// `code` is the code of errors about chunks. `None` for more than one compression, because the length between
    /// them is not known, except for zlib and zstd after nbit or scaleoffset, which have a largest length.
    pub fn new(steps: Vec<Step>, code: &'static str) -> Option<Self> {
        let name = steps.iter().map(|step| step.name()).collect::<Vec<_>>().join("+");
        let compressions: Vec<Step> =
            steps.iter().copied().filter(|step| step.compresses()).collect();
        let is_known = match compressions[..] {
            [] | [_] => true,
            [first, Step::Zlib | Step::Zstd] => first.most(0).is_some(),
            _ => false,
        };
        is_known.then_some(Self { steps, name, code, limit: 0 })
    }

    /// A pipeline of any number of compressions. `limit` is the largest length in bytes that is decoded where the
    /// length is not known: between two compressions.
    pub fn chained(steps: Vec<Step>, code: &'static str, limit: u64) -> Self {
        let name = steps.iter().map(|step| step.name()).collect::<Vec<_>>().join("+");
        Self { steps, name, code, limit }
    }

    /// Returns this pipeline with another step at the end.
    pub fn then(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self::chained(steps, self.code, self.limit)
    }

    /// The steps, in the order of encoding.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Decodes data of unknown length, at most `limit` bytes.
    pub fn decode_any(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
        let mut bytes = Cow::Borrowed(stored);
        for step in self.steps.iter().rev() {
            let decoded = streams::decode_any(*step, &bytes, limit);
            bytes = decoded.map_err(|error| self.own_code(&error))?.into();
        }
        Ok(bytes.into_owned())
    }

    /// The error with the code of the format.
    fn own_code(&self, error: &Error) -> Error {
        Error::new(error.kind(), self.code, error.message())
    }

    /// Whether chunks are stored as they are.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The pipeline of a chunk to which some steps were not applied: step `k` if bit `k` of `mask` is set.
    pub fn without(&self, mask: u32) -> Self {
        let applied = |k: u32| mask.checked_shr(k).unwrap_or(0) & 1 == 0;
        let steps = (0..).zip(&self.steps).filter(|(k, _)| applied(*k)).map(|(_, step)| *step);
        Self { steps: steps.collect(), ..self.clone() }
    }

    fn decode_steps(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut bytes = Cow::Borrowed(stored);
        for (k, step) in self.steps.iter().enumerate().rev() {
            if k == 0 {
                return step.decode(&bytes, out);
            }
            let before = self.steps[..k].iter();
            let len = before.into_iter().try_fold(out.len(), |len, step| step.encoded_len(len));
            bytes = match len {
                Some(len) => {
                    let mut decoded = vec![0; len];
                    step.decode(&bytes, &mut decoded)?;
                    decoded.into()
                }
                None if step.compresses() => {
                    // Some steps have a largest length; each checksum before this step has four bytes.
                    let most = self.steps[..k].iter().find_map(|step| step.most(out.len()));
                    let limit = most.map_or(self.limit, |most| most.saturating_add(4 * k) as u64);
                    streams::decode_any(*step, &bytes, limit)?.into()
                }
                // Its output is not longer than its input.
                None => streams::decode_any(*step, &bytes, u64::MAX)?.into(),
            };
        }
        copy(&bytes, out)
    }
}

impl Codec for Pipeline {
    /// Names of the steps, separated by `+`.
    fn name(&self) -> &str {
        &self.name
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_steps(stored, out).map_err(|error| self.own_code(&error))
    }
}

/// Copies bytes that are not encoded.
fn copy(bytes: &[u8], out: &mut [u8]) -> Result<()> {
    expect_length(bytes.len(), out)?;
    out.copy_from_slice(bytes);
    Ok(())
}

fn expect_length(found: usize, out: &[u8]) -> Result<()> {
    if found == out.len() {
        return Ok(());
    }
    Err(invalid(format!("chunk: expected {} bytes, found {found}", out.len())))
}

/// An error about encoded bytes. A [`Pipeline`] sets the code of the format.
fn invalid(message: impl Into<String>) -> Error {
    Error::malformed("codec", message)
}

/// Splits the first `N` bytes off `bytes`.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk().ok_or_else(too_short)?;
    *bytes = rest;
    Ok(first)
}

fn too_short() -> Error {
    Error::truncated("codec", "unexpected end of chunk")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn checksums_before_a_compression_are_part_of_its_output() {
        let data = [7_u8; 12];
        let mut summed = data.to_vec();
        summed.extend(crc32c(&data).to_le_bytes());
        let block = lz4_flex::block::compress(&summed);
        let pipeline = Pipeline::new(vec![Step::Crc32c, Step::Lz4], "demo-001").unwrap();
        let mut out = [0; 12];
        pipeline.decode(&block, &mut out).unwrap();
        assert_eq!(out, data);
        // The compression was not applied.
        pipeline.without(2).decode(&summed, &mut out).unwrap();
        summed[0] ^= 1;
        let error = pipeline.without(2).decode(&summed, &mut out).unwrap_err();
        assert_eq!((error.code(), error.message()), ("demo-001", "chunk checksum mismatch"));
        pipeline.without(3).decode(&data, &mut out).unwrap();
    }

    #[test]
    fn checksums_after_a_compression_are_those_of_its_output() {
        let mut block = lz4_flex::block::compress(&[7_u8; 12]);
        block.extend(crc32c(&block).to_le_bytes());
        let pipeline = Pipeline::new(vec![Step::Lz4, Step::Crc32c], "demo-001").unwrap();
        let mut out = [0; 12];
        pipeline.decode(&block, &mut out).unwrap();
        assert_eq!(out, [7; 12]);
        assert!(pipeline.decode(&block[..3], &mut out).is_err());
    }

    #[test]
    fn two_compressions_are_refused() {
        assert!(Pipeline::new(vec![Step::Zlib, Step::Shuffle(4), Step::Lz4], "").is_none());
        let compression = BlockCompression::None;
        let plain = Step::Bitshuffle { element: 4, block: 0, compression };
        assert!(Pipeline::new(vec![plain, Step::Zstd], "").is_some());
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            len in 0_usize..400,
            element in 0_usize..20,
            block in 0_usize..100,
        ) {
            use BlockCompression::{Lz4, None, Zstd};
            let compressions = [None, Lz4, Zstd];
            let shuffles = compressions.map(|compression| Step::Bitshuffle { element, block, compression });
            let mut steps = vec![
                Step::Gzip, Step::Zlib, Step::Zstd, Step::Snappy, Step::Lzf, Step::Blosc, Step::Lz4,
                Step::Lz4WithLength, Step::Lz4Blocks, Step::Shuffle(element), Step::Fletcher32, Step::Crc32c,
                Step::Deflate, Step::Bzip2, Step::Xz, Step::Numeric(Numeric::PackBits),
            ];
            steps.extend(shuffles);
            let bits = block as u32;
            steps.extend([
                Step::Nbit(Nbit { size: element, is_big: len % 2 == 0, precision: bits, offset: 3 }),
                Step::ScaleOffset(ScaleOffset { size: element, is_big: true, decimals: Option::None, fill: Some(7) }),
                Step::ScaleOffset(ScaleOffset { size: 4, is_big: false, decimals: Some(3), fill: Option::None }),
            ]);
            for options in [16, 32, 48] {
                steps.push(Step::Szip(Szip { options, block: 16, bits, scanline: 40 }));
                steps.push(Step::Szip(Szip { options, block: bits, bits: 32, scanline: element as u32 }));
            }
            for step in steps {
                let _ = step.decode(&bytes, &mut vec![0; len]);
                let _ = streams::decode_any(step, &bytes, len as u64);
                // A header with the right length reaches the blocks.
                let mut framed = (len as u64).to_be_bytes().to_vec();
                framed.extend((8 * element as u32 * block as u32).to_be_bytes());
                framed.extend(&bytes);
                let mut prefixed = (len as u32).to_le_bytes().to_vec();
                prefixed.extend(&bytes);
                let _ = step.decode(&prefixed, &mut vec![0; len]);
                let _ = step.decode(&framed, &mut vec![0; len]);
            }
        }
    }
}
