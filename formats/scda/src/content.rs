//! The data of a section or array as a byte stream with random access, in limited memory. Used as
//! [`Elements::Fetched`] of a [`Writer`].
//!
//! [`Writer`]: crate::Writer
//! [`Elements::Fetched`]: crate::Elements

use std::sync::{Arc, Mutex, PoisonError};

use spile_core::{
    Array, ArrayDesc, Axes, DType, Dataset, Error, Layout, Order, Result, Selection, Shape, Slice,
    Source,
};

use crate::read::File;
use crate::section::Section;

/// Maximum bytes of several pieces that are kept.
const WINDOW: u64 = 8 << 20;

/// Bytes of several computed pieces that one thread reads at once.
const BLOCK: u64 = 256 << 10;

/// The uncompressed bytes of a section. Sequential reads are faster than random ones.
pub struct Content {
    len: u64,
    bytes: Bytes,
}

enum Bytes {
    /// In the file, at an offset.
    Stored(Source, u64),
    /// From an array whose elements have this many bytes.
    Elements(Box<Array>, u64),
    /// From such an array that is decoded or computed in pieces.
    Pieces { array: Box<Array>, size: u64, pieces: Pieces, window: Mutex<Window> },
}

enum Pieces {
    /// Bytes before each piece, and the total at the end.
    Starts(Arc<[u64]>),
    /// Pieces of equal size, and the total number of bytes.
    Uniform { bytes: u64, len: u64 },
}

impl Pieces {
    /// Begin and end of the piece at byte `at` and the following pieces that fit in `window` bytes, and
    /// the bytes to read at once so that no piece is decoded twice, if they are not arbitrary. `None`
    /// behind the last piece.
    fn around(&self, at: u64, window: u64) -> Option<(u64, u64, Option<u64>)> {
        let (start, end, block) = match self {
            Self::Starts(starts) => {
                let before =
                    |byte: u64| starts.partition_point(|start| *start <= byte).saturating_sub(1);
                let first = before(at);
                let start = *starts.get(first)?;
                let last = before(start + window).max(first + 1);
                let end = *starts.get(last)?;
                (start, end, (last == first + 1).then_some(end - start))
            }
            Self::Uniform { bytes, len } => {
                let whole = |limit: u64| bytes.saturating_mul((limit / bytes).max(1));
                let start = at / bytes * bytes;
                (start, start.saturating_add(whole(window)).min(*len), Some(whole(BLOCK)))
            }
        };
        (end > at).then_some((start, end, block))
    }
}

/// Consecutive pieces.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Content {
    pub(crate) fn stored(source: &Source, offset: u64, len: u64) -> Self {
        Self { len, bytes: Bytes::Stored(source.clone(), offset) }
    }

    pub(crate) fn of(file: &File, section: &Section) -> Result<Self> {
        let layout = section.layout(Order::C);
        let Layout::Encoded { decoded, .. } = &layout else {
            return Ok(Self::stored(file.source(), section.raw().data(), section.len));
        };
        let pieces = Pieces::Starts(decoded.clone());
        let desc = ArrayDesc::new(DType::opaque(1), Shape::new([section.len]), layout);
        let array = Box::new(file.open_array(&desc)?);
        let bytes = Bytes::Pieces { array, size: 1, pieces, window: Mutex::default() };
        Ok(Self { len: section.len, bytes })
    }

    /// The bytes of any array of `dataset` in stored element order.
    pub(crate) fn of_array(dataset: &Dataset, desc: &ArrayDesc) -> Result<Self> {
        let len = desc.bytes()?;
        // Bytes are not swapped. These layouts need complete elements.
        let by_element = matches!(desc.layout, Layout::Fill(_) | Layout::Computed(_));
        let by_element = by_element || desc.layout.is_scattered();
        let dtype = if by_element { desc.dtype } else { DType::opaque(1) };
        let size = dtype.size() as u64;
        let shape = Shape::new([len.checked_div(size).unwrap_or(0)]);
        let flat = ArrayDesc::new(dtype, shape, desc.layout.clone());
        let array = Box::new(dataset.open_array(&flat)?);
        let pieces = match &desc.layout {
            Layout::Encoded { decoded, .. } => Pieces::Starts(decoded.clone()),
            Layout::Computed(computed) => {
                Pieces::Uniform { bytes: computed.piece.saturating_mul(size).max(1), len }
            }
            _ => return Ok(Self { len, bytes: Bytes::Elements(array, size) }),
        };
        Ok(Self { len, bytes: Bytes::Pieces { array, size, pieces, window: Mutex::default() } })
    }

    /// Total number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `buffer` with the bytes at offset `at`. Fails if they exceed the section.
    pub fn fetch(&self, mut at: u64, mut buffer: &mut [u8]) -> Result<()> {
        let (array, size, pieces, window) = match &self.bytes {
            Bytes::Stored(source, offset) => return source.read_exact_at(offset + at, buffer),
            Bytes::Elements(array, size) => return read_array(array, *size, at, buffer),
            Bytes::Pieces { array, size, pieces, window } => (array, *size, pieces, window),
        };
        // A window is replaced as one value; it is valid after a panic of another thread.
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        while !buffer.is_empty() {
            let inside = at.checked_sub(window.start).and_then(|from| usize::try_from(from).ok());
            let found = inside.and_then(|from| window.bytes.get(from..)).unwrap_or_default();
            let taken = found.len().min(buffer.len());
            if taken == 0 {
                *window = Window::load(array, size, pieces, at)?;
                continue;
            }
            let (now, later) = buffer.split_at_mut(taken);
            now.copy_from_slice(&found[..taken]);
            (buffer, at) = (later, at + taken as u64);
        }
        Ok(())
    }
}

/// Fills `buffer` with the bytes at offset `at` of an array of elements of `size` bytes.
fn read_array(array: &Array, size: u64, at: u64, mut buffer: &mut [u8]) -> Result<()> {
    let end = at + buffer.len() as u64;
    let first = at.checked_div(size).unwrap_or(0);
    let part = Selection(vec![Slice::range(first, end.div_ceil(size.max(1)))]);
    let mut skip = (at - first * size) as usize;
    array.select(&part, Axes::Stored)?.stream(|_, block| {
        let block = &block[skip.min(block.len())..];
        skip = 0;
        let taken = block.len().min(buffer.len());
        let (now, later) = std::mem::take(&mut buffer).split_at_mut(taken);
        now.copy_from_slice(&block[..taken]);
        buffer = later;
        Ok(())
    })
}

impl Window {
    /// Reads the piece at byte `at` and the following pieces that fit, on all threads.
    fn load(array: &Array, size: u64, pieces: &Pieces, at: u64) -> Result<Self> {
        let limits = array.limits();
        let (start, end, block) = pieces
            .around(at, WINDOW.min(limits.memory / 8))
            .ok_or_else(|| Error::argument(format!("byte {at} is outside the section")))?;
        let mut bytes = Vec::with_capacity(limits.allow(end - start, "a decoded element")?);
        let size = size.max(1);
        let part = Selection(vec![Slice::range(start / size, end / size)]);
        let mut selected = array.select(&part, Axes::Stored)?;
        if let Some(block) = block {
            selected = selected.with_block_bytes(block.min(end - start) as usize);
        }
        selected.ordered(
            |_, block| Ok(block.to_vec()),
            |block| {
                bytes.extend_from_slice(&block);
                Ok(())
            },
        )?;
        Ok(Self { start, bytes })
    }
}
