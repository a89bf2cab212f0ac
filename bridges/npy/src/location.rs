//! Location of a `.npy` stream: a file, or a member of an archive, stored or deflated.

use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::layout::{Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::wire;

use crate::inflate::Inflate;

/// Bytes of a `.npy` stream.
pub(crate) struct Location<'a> {
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

impl<'a> Location<'a> {
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
                let prefix = Inflate::stored_prefix(at + len as u64, deflated.stored);
                let stored = wire::fetch(self.source, self.offset, prefix)?;
                Inflate::new(at, self.len, None).fill(&stored, &mut out)?;
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
                codec: Arc::new(Inflate::new(at, self.len, Some(crc))),
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
