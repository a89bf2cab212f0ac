//! Data of one rank in memory: elements to write, buffers to read into, and compression of elements
//! on all threads.

use rayon::prelude::*;
use spile_core::{Error, Result};

use crate::codec::Encoder;

/// Maximum number of elements that one thread compresses at once.
pub(crate) const ELEMENTS_AT_ONCE: usize = 64;

/// Maximum bytes of compressed elements that are read at once, and of elements that are compressed before
/// they are written.
pub(crate) const ENCODED_AT_ONCE: u64 = 4 << 20;

/// Maximum bytes of several elements that one thread compresses at once.
pub(crate) const BYTES_AT_ONCE: u64 = 256 << 10;

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

    /// Whether number and sizes of the elements are those of `sizes`, whose sum is `total`.
    pub(crate) fn matches(self, total: Option<u64>, sizes: impl Iterator<Item = u64>) -> bool {
        match self {
            Self::Indirect(parts) => parts.iter().map(|part| part.len() as u64).eq(sizes),
            other => total == Some(other.bytes()),
        }
    }

    /// A function that fills buffers with the bytes of all elements in order.
    pub(crate) fn reader(self) -> impl FnMut(&mut [u8]) -> Result<()> + 'a {
        let (mut left, mut parts): (&[u8], &[&[u8]]) = match self {
            Self::Contiguous(bytes) => (bytes, &[]),
            Self::Indirect(parts) => (&[], parts),
            Self::Fetched(..) => (&[], &[]),
        };
        let mut at = 0;
        move |mut buffer| {
            if let Self::Fetched(_, fetch) = self {
                fetch(at, buffer)?;
                at += buffer.len() as u64;
                return Ok(());
            }
            while !buffer.is_empty() {
                if left.is_empty() {
                    let Some((next, others)) = parts.split_first() else { break };
                    (left, parts) = (next, others);
                }
                let taken = left.len().min(buffer.len());
                let (now, later) = buffer.split_at_mut(taken);
                let (bytes, rest) = left.split_at(taken);
                now.copy_from_slice(bytes);
                (buffer, left) = (later, rest);
            }
            Ok(())
        }
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
        self.reader()(buffer)?;
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

/// Consecutive elements that are processed at once.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: usize,
    /// Offset of the first element.
    at: u64,
    pub(crate) number: usize,
    /// Total bytes.
    pub(crate) bytes: u64,
}

/// Splits elements of these sizes into runs of at most `number` elements and `bytes` bytes; a larger
/// element is a run of its own.
pub(crate) fn split(sizes: impl Iterator<Item = u64>, number: usize, bytes: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    for (k, size) in sizes.enumerate() {
        match runs.last_mut() {
            Some(run) if run.number < number && run.bytes + size <= bytes => {
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

impl<'b> Slots<'_, 'b> {
    /// The same buffers.
    pub(crate) fn by_ref(&mut self) -> Slots<'_, 'b> {
        match self {
            Self::Contiguous(bytes) => Slots::Contiguous(bytes),
            Self::Indirect(slots) => Slots::Indirect(slots),
        }
    }

    /// Calls `each` with every buffer.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(&mut [u8])) {
        match self {
            Self::Contiguous(bytes) => each(bytes),
            Self::Indirect(slots) => slots.iter_mut().for_each(|slot| each(slot)),
        }
    }

    /// Whether number and sizes of the buffers are those of `sizes`, whose sum is `total`.
    pub(crate) fn matches(&self, total: Option<u64>, sizes: impl Iterator<Item = u64>) -> bool {
        match self {
            Self::Contiguous(bytes) => total == Some(bytes.len() as u64),
            Self::Indirect(slots) => slots.iter().map(|slot| slot.len() as u64).eq(sizes),
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
