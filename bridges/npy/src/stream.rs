//! The bytes of a `.npy` file or of a member of an archive, stored or deflated.

use std::io::{self, Read as _};
use std::sync::Arc;

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::wire;

/// Upper bound of the compression ratio of deflate: 1032, and slightly more for very short streams.
pub(crate) const RATIO: u64 = 1100;

/// A byte stream in a file.
pub(crate) struct Stream<'a> {
    pub(crate) source: &'a Source,
    /// First byte in the file.
    pub(crate) offset: u64,
    /// Decoded size.
    pub(crate) len: u64,
    /// Set if the stream is deflated.
    pub(crate) deflated: Option<Deflated>,
}

/// A deflated member.
#[derive(Clone, Copy)]
pub(crate) struct Deflated {
    /// Compressed size.
    pub(crate) stored: u64,
    /// CRC-32 of the decoded bytes.
    pub(crate) crc: u32,
}

impl<'a> Stream<'a> {
    /// The entire file.
    pub(crate) fn file(source: &'a Source) -> Self {
        Self { source, offset: 0, len: source.len(), deflated: None }
    }

    /// Reads `len` bytes at `at`, or fewer at the end of the stream.
    pub(crate) fn fetch(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let len = self.len.saturating_sub(at).min(len as u64) as usize;
        match self.deflated {
            None => wire::fetch(self.source, self.offset + at, len),
            Some(deflated) => {
                let mut out = vec![0; len];
                // Incompressible blocks are slightly longer than their content, and blocks begin with tables.
                let prefix = (at + len as u64).saturating_mul(2).saturating_add(32 << 10);
                let prefix = prefix.min(deflated.stored) as usize;
                let stored = wire::fetch(self.source, self.offset, prefix)?;
                Inflate { skip: at, size: self.len, crc: None }.decode(&stored, &mut out)?;
                Ok(out)
            }
        }
    }

    /// File offset of byte `at` for error messages; the first byte of a deflated stream.
    pub(crate) fn offset_of(&self, at: u64) -> u64 {
        if self.deflated.is_some() { self.offset } else { self.offset + at }
    }

    /// The layout of an array of `bytes` bytes at `at`.
    pub(crate) fn layout(&self, at: u64, bytes: u64, order: Order) -> Layout {
        match self.deflated {
            None => Layout::Plain { extents: Extents::one(self.offset + at, bytes), order },
            Some(Deflated { stored, crc }) => Layout::Encoded {
                starts: Arc::new([0, stored]),
                decoded: Arc::new([0, bytes]),
                data: Extents::one(self.offset, stored),
                codec: Arc::new(Inflate { skip: at, size: self.len, crc: Some(crc) }),
                order,
            },
        }
    }

    /// Reads the entire stream.
    pub(crate) fn read(&self, limits: &Limits) -> Result<Vec<u8>> {
        let len = limits.allow(self.len, "a member of the archive")?;
        let bytes = self.fetch(0, len)?;
        if bytes.len() < len {
            let message =
                format!("unexpected end of file: expected {len} bytes, found {}", bytes.len());
            return Err(Error::truncated("npz-005", message).at(self.offset_of(0)));
        }
        Ok(bytes)
    }
}

/// Decodes the part of a deflate stream after the first `skip` bytes. A stream can only be decoded from its beginning.
struct Inflate {
    /// Decoded bytes to skip.
    skip: u64,
    /// Decoded size of the entire stream.
    size: u64,
    /// CRC-32 of the entire decoded stream, to be verified if its end is decoded.
    crc: Option<u32>,
}

impl Codec for Inflate {
    fn name(&self) -> &'static str {
        "deflate"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let invalid = |message: String| Error::malformed("npz-008", message);
        let mut stream = CrcReader::new(DeflateDecoder::new(stored));
        let skipped = io::copy(&mut stream.by_ref().take(self.skip), &mut io::sink());
        skipped.and_then(|_| stream.read_exact(out)).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => invalid("unexpected end of the deflate stream".into()),
            _ => invalid("invalid deflate stream".into()),
        })?;
        let complete = self.skip.checked_add(out.len() as u64) == Some(self.size);
        let (found, expected) = (stream.crc().sum(), self.crc.filter(|_| complete));
        match expected.filter(|expected| *expected != found) {
            Some(expected) => {
                let message =
                    format!("CRC-32 mismatch: expected {expected:08x}, found {found:08x}");
                Err(Error::malformed("npz-021", message))
            }
            None => Ok(()),
        }
    }
}
