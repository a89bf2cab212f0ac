//! Data of one rank in memory: elements to write, buffers to read into, and compression of elements
//! on all threads.

use rayon::prelude::*;
use spile_core::error::{Error, Result};

use crate::codec::Encoder;

/// Maximum number of elements that one thread compresses at once.
const ELEMENTS_AT_ONCE: usize = 64;

/// Maximum bytes of several elements that one thread compresses at once.
const BYTES_AT_ONCE: u64 = 256 << 10;

/// Fills a buffer with the bytes of a rank's data that begin at an offset.
pub type Fetch<'a> = dyn Fn(u64, &mut [u8]) -> Result<()> + Sync + 'a;

/// The elements that one rank writes.
#[derive(Clone, Copy)]
pub enum Elements<'a> {
    /// Elements in one contiguous slice.
    Contiguous(&'a [u8]),
    /// One slice per element (`indirect` in the appendix).
    Indirect(&'a [&'a [u8]]),
    /// Total number of bytes, and a function that supplies them when they are needed.
    Fetched(u64, &'a Fetch<'a>),
}

impl<'a> Elements<'a> {
    /// Total bytes of the elements.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Contiguous(bytes) => bytes.len() as u64,
            Self::Indirect(parts) => parts.iter().map(|p| p.len() as u64).sum(),
            Self::Fetched(bytes, _) => bytes,
        }
    }

    /// Last byte of the last element that is not empty.
    pub(crate) fn last(self) -> Result<Option<u8>> {
        match self {
            Self::Contiguous(bytes) => Ok(bytes.last().copied()),
            Self::Indirect(parts) => Ok(parts.iter().rev().find_map(|p| p.last().copied())),
            Self::Fetched(0, _) => Ok(None),
            Self::Fetched(bytes, fetch) => {
                let mut last = [0];
                fetch(bytes - 1, &mut last)?;
                Ok(Some(last[0]))
            }
        }
    }

    /// Whether number and sizes of the elements are those of `sizes`, whose sum is `total`.
    pub(crate) fn matches(
        self,
        total: Option<u64>,
        mut sizes: impl ExactSizeIterator<Item = u64>,
    ) -> bool {
        match self {
            Self::Indirect(parts) => {
                parts.len() == sizes.len()
                    && parts.iter().all(|part| sizes.next() == Some(part.len() as u64))
            }
            other => total == Some(other.bytes()),
        }
    }

    /// Reads the bytes of all elements in order.
    pub(crate) fn reader(self) -> ElementReader<'a> {
        ElementReader { elements: self, part: 0, within: 0 }
    }

    /// All bytes as one slice; in `buffer` if the elements are not contiguous.
    pub(crate) fn contiguous<'b>(self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        if let Self::Contiguous(bytes) = self {
            return Ok(bytes);
        }
        buffer.resize(self.bytes() as usize, 0);
        self.reader().fill(buffer)?;
        Ok(buffer)
    }

    /// Element `k`, which has `size` bytes and begins at byte `at` of all elements.
    fn element<'b>(self, k: usize, at: u64, size: u64, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        match self {
            Self::Contiguous(bytes) => Ok(&bytes[at as usize..(at + size) as usize]),
            Self::Indirect(parts) => Ok(parts[k]),
            Self::Fetched(_, fetch) => {
                buffer.resize(size as usize, 0);
                fetch(at, buffer)?;
                Ok(buffer)
            }
        }
    }
}

/// Reads the bytes of all elements in order.
pub(crate) struct ElementReader<'a> {
    elements: Elements<'a>,
    /// Current element of indirect elements.
    part: usize,
    /// Byte in the current element, or in all elements.
    within: u64,
}

impl ElementReader<'_> {
    /// Fills `buffer` with the next bytes.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let from = self.within as usize;
        match self.elements {
            Elements::Contiguous(bytes) => {
                buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
                self.within += buffer.len() as u64;
            }
            Elements::Fetched(_, fetch) => {
                fetch(self.within, buffer)?;
                self.within += buffer.len() as u64;
            }
            Elements::Indirect(parts) => {
                let mut left = buffer;
                while !left.is_empty() {
                    let rest = &parts[self.part][self.within as usize..];
                    let taken = rest.len().min(left.len());
                    let (now, later) = left.split_at_mut(taken);
                    now.copy_from_slice(&rest[..taken]);
                    left = later;
                    self.within += taken as u64;
                    if taken == rest.len() {
                        (self.part, self.within) = (self.part + 1, 0);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Consecutive elements that one thread compresses.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    first: usize,
    /// Offset of the first element.
    at: u64,
    number: usize,
    /// Total bytes.
    pub(crate) bytes: u64,
}

/// Splits elements into runs.
pub(crate) fn runs(sizes: impl Iterator<Item = u64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    for (k, size) in sizes.enumerate() {
        match runs.last_mut() {
            Some(run) if run.number < ELEMENTS_AT_ONCE && run.bytes + size <= BYTES_AT_ONCE => {
                run.number += 1;
                run.bytes += size;
            }
            _ => runs.push(Run { first: k, at, number: 1, bytes: size }),
        }
        at += size;
    }
    runs
}

/// Compressed elements: the size of each, and all bytes.
pub(crate) type Encoded = (Vec<u64>, Vec<u8>);

/// Compresses runs of elements on all threads. `parts` is replaced by one part per run; its memory is
/// reused.
pub(crate) fn encode(
    elements: Elements<'_>,
    size_of: impl Fn(usize) -> u64 + Sync,
    runs: &[Run],
    encoder: impl Fn() -> Result<Encoder> + Sync,
    parts: &mut Vec<Encoded>,
) -> Result<()> {
    let one = |state: &mut (Result<Encoder>, Vec<u8>), (run, part): (&Run, &mut Encoded)| {
        let (encoder, buffer) = state;
        let encoder = encoder.as_mut().map_err(|e| Error::argument(e.message()))?;
        let (sizes, out) = part;
        sizes.clear();
        out.clear();
        let mut at = run.at;
        for k in run.first..run.first + run.number {
            let start = out.len();
            encoder.encode(elements.element(k, at, size_of(k), buffer)?, out)?;
            sizes.push((out.len() - start) as u64);
            at += size_of(k);
        }
        Ok(())
    };
    parts.resize_with(runs.len(), Encoded::default);
    let pairs = runs.par_iter().zip(parts.par_iter_mut());
    pairs.try_for_each_init(|| (encoder(), Vec::new()), one)
}

/// Buffers for the elements that one rank reads.
pub enum Slots<'a, 'b> {
    /// One contiguous buffer for all elements.
    Contiguous(&'a mut [u8]),
    /// One buffer per element (`indirect` in the appendix).
    Indirect(&'a mut [&'b mut [u8]]),
}

impl Slots<'_, '_> {
    /// Whether number and sizes of the buffers are those of `sizes`, whose sum is `total`.
    pub(crate) fn matches(
        &self,
        total: Option<u64>,
        mut sizes: impl ExactSizeIterator<Item = u64>,
    ) -> bool {
        match self {
            Self::Contiguous(bytes) => total == Some(bytes.len() as u64),
            Self::Indirect(slots) => {
                slots.len() == sizes.len()
                    && slots.iter().all(|slot| sizes.next() == Some(slot.len() as u64))
            }
        }
    }

    /// One buffer per element, for elements of these sizes.
    pub(crate) fn split(&mut self, sizes: impl Iterator<Item = u64>) -> Vec<&mut [u8]> {
        match self {
            Self::Indirect(slots) => slots.iter_mut().map(|slot| &mut **slot).collect(),
            Self::Contiguous(bytes) => {
                let mut left = &mut **bytes;
                let mut cut = |size| {
                    let (slot, rest) = std::mem::take(&mut left).split_at_mut(size as usize);
                    left = rest;
                    slot
                };
                sizes.map(&mut cut).collect()
            }
        }
    }
}
