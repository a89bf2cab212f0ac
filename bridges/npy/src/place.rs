//! Where an array's file lies: it is a file, or a part of an archive, stored or deflated.

use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::layout::{Extents, Layout};
use spile_core::shape::Order;
use spile_core::source::Source;
use spile_core::wire;

use crate::inflate::Inflate;

/// The bytes that begin with the magic of `.npy`.
pub(crate) struct Place<'a> {
    pub(crate) source: &'a Source,
    /// Where they begin.
    pub(crate) offset: u64,
    /// How many there are, once inflated.
    pub(crate) len: u64,
    /// How they are deflated, where they are.
    pub(crate) deflated: Option<Deflated>,
}

/// A deflated part of an archive.
#[derive(Clone, Copy)]
pub(crate) struct Deflated {
    /// Bytes that it takes.
    pub(crate) stored: u64,
    /// The sum of what it inflates to.
    pub(crate) crc: u32,
}

impl<'a> Place<'a> {
    /// The whole of a file.
    pub(crate) fn file(source: &'a Source) -> Self {
        Self { source, offset: 0, len: source.len(), deflated: None }
    }

    /// `len` bytes at `at`, or as many as there are.
    pub(crate) fn fetch(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let len = self.len.saturating_sub(at).min(len as u64) as usize;
        match self.deflated {
            None => wire::fetch(self.source, self.offset + at, len),
            Some(deflated) => {
                let mut out = vec![0; len];
                let beginning = Inflate::beginning(at + len as u64, deflated.stored);
                let stored = wire::fetch(self.source, self.offset, beginning)?;
                Inflate::new(at, self.len, None).fill(&stored, &mut out)?;
                Ok(out)
            }
        }
    }

    /// The byte of the file at which to look for byte `at`.
    pub(crate) fn byte(&self, at: u64) -> u64 {
        if self.deflated.is_some() { self.offset } else { self.offset + at }
    }

    /// `bytes` from byte `at` on, as an array.
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

    /// All bytes, for what is small and no array.
    pub(crate) fn read(&self, limits: &spile_core::limits::Limits) -> Result<Vec<u8>> {
        let len = limits.allow(self.len, "a part of the archive")?;
        let bytes = self.fetch(0, len)?;
        if bytes.len() < len {
            return Err(Error::truncated("npz-005", "it ends early").at(self.byte(0)));
        }
        Ok(bytes)
    }
}
