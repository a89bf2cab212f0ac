//! An array's elements as one run of bytes, wherever the bytes come from.

use std::num::NonZero;
use std::sync::Arc;

use crate::chunks::ChunkStore;
use crate::computed::Computed;
use crate::error::{Error, Result};
use crate::layout::{Codec, Extents};
use crate::limits::Limits;
use crate::read::Array;
use crate::source::Source;

/// The run of bytes that a plan reads from.
#[derive(Clone)]
pub(crate) enum Store {
    File(Extents),
    Memory(Arc<[u8]>),
    /// One element, repeated without end.
    Fill(Arc<[u8]>),
    Encoded {
        starts: Arc<[u64]>,
        decoded: Arc<[u64]>,
        data: Extents,
        codec: Arc<dyn Codec>,
    },
    /// Only as if it were one run.
    Chunked(ChunkStore),
    Computed {
        computed: Arc<Computed>,
        inputs: Arc<[Array]>,
        /// Bytes of a result element, and of the entire result.
        size: usize,
        len: u64,
    },
}

/// The element decoded last. Many small reads fall into the same one: a large element is then
/// decoded once and not once a read.
#[derive(Default)]
pub(crate) struct Decoded {
    element: Option<usize>,
    stored: Vec<u8>,
    bytes: Vec<u8>,
}

impl Store {
    /// Fails where the tables of the layout contradict each other or hold less than the `needed`
    /// bytes of elements of `size`. The tables come from the file, so nothing later trusts them
    /// without this.
    pub(crate) fn check(&self, size: usize, needed: u64) -> Result<()> {
        match self {
            Self::Fill(element) if element.len() != size => {
                let message =
                    format!("the element to repeat has {} bytes, its type {size}", element.len());
                return Err(Error::malformed("core-layout", message));
            }
            Self::Computed { len, .. } if usize::try_from(*len).is_err() => {
                return Err(Error::limit("a computed array larger than memory addresses"));
            }
            Self::Encoded { starts, decoded, data, .. } => {
                let rising = |table: &[u64]| table.is_sorted() && table.first() == Some(&0);
                let fits = starts.last().is_some_and(|end| *end <= data.len());
                if starts.len() != decoded.len() || !rising(starts) || !rising(decoded) || !fits {
                    let message = "the table of encoded elements contradicts itself";
                    return Err(self.place(Error::malformed("core-layout", message)));
                }
            }
            _ => {}
        }
        if self.len() < needed {
            let message = format!("the array needs {needed} bytes, its ranges hold {}", self.len());
            return Err(self.place(Error::malformed("core-short", message)));
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(extents) => extents.len(),
            Self::Memory(bytes) => bytes.len() as u64,
            // Chunks that are not there are filled.
            Self::Fill(_) | Self::Chunked(_) => u64::MAX,
            Self::Encoded { decoded, .. } => decoded.last().copied().unwrap_or(0),
            Self::Computed { len, .. } => *len,
        }
    }

    /// Tells an error where the array begins in the file.
    fn place(&self, error: Error) -> Error {
        match self {
            Self::File(extents) | Self::Encoded { data: extents, .. } => {
                extents.parts().iter().take(1).fold(error, |e, part| e.at(part.offset))
            }
            Self::Memory(_) | Self::Fill(_) | Self::Chunked(_) | Self::Computed { .. } => error,
        }
    }

    /// The first `len` bytes without a copy, where they are one range of memory.
    pub(crate) fn view<'a>(&'a self, source: &'a Source, len: u64) -> Option<&'a [u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(..usize::try_from(len).ok()?),
            Self::File(extents) => match extents.parts() {
                [one] => source.view(one.offset, len),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many of the `rest` bytes from byte `offset` on are best read together: about `piece`, and
    /// whole encoded elements, which several readers would each have to decode. No number of `size`
    /// bytes is cut.
    pub(crate) fn piece(
        &self,
        offset: u64,
        piece: usize,
        rest: usize,
        size: NonZero<usize>,
    ) -> usize {
        let Self::Encoded { decoded, .. } = self else {
            let own = match self {
                Self::Computed { computed, size, .. } => {
                    // Up to the end of a computed piece.
                    let bytes = computed.piece.saturating_mul(*size as u64).max(1);
                    let end =
                        offset.saturating_add(piece as u64).div_ceil(bytes).saturating_mul(bytes);
                    usize::try_from(end - offset).unwrap_or(usize::MAX)
                }
                _ => piece,
            };
            return own.min(rest);
        };
        let least = offset.saturating_add(piece as u64);
        let ends = &decoded[decoded.partition_point(|end| *end < least)..];
        let lengths = ends.iter().filter_map(|end| usize::try_from(end - offset).ok());
        let mut whole = lengths.take_while(|len| *len < rest).filter(|len| *len % size == 0);
        whole.next().unwrap_or(rest)
    }

    /// Fills `buffer` from byte `offset` of the run.
    pub(crate) fn fetch(
        &self,
        source: &Source,
        limits: &Limits,
        offset: u64,
        buffer: &mut [u8],
        kept: &mut Decoded,
    ) -> Result<()> {
        match self {
            Self::File(extents) => read_extents(source, extents, offset, buffer),
            Self::Memory(bytes) => {
                let at = offset as usize;
                buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
                Ok(())
            }
            Self::Fill(element) => {
                let first = offset as usize % element.len().max(1);
                for (byte, value) in buffer.iter_mut().zip(element.iter().cycle().skip(first)) {
                    *byte = *value;
                }
                Ok(())
            }
            Self::Chunked(chunks) => chunks.fetch(source, limits, offset, buffer),
            Self::Computed { computed, inputs, size, len } => {
                let piece = computed.piece.max(1).saturating_mul(*size as u64);
                let end = offset + buffer.len() as u64;
                let mut number = offset / piece;
                while number.saturating_mul(piece) < end {
                    let (from, to) = (number * piece, (number + 1).saturating_mul(piece).min(*len));
                    let (first, last) = (from.max(offset), to.min(end));
                    let slot = &mut buffer[(first - offset) as usize..(last - offset) as usize];
                    let element = number.saturating_mul(computed.piece.max(1));
                    if kept.element != Some(number as usize) {
                        let count = (to - from) / (*size as u64).max(1);
                        let needed = computed.function.memory(count).saturating_add(to - from);
                        limits.allow(needed, computed.function.name())?;
                        if (first, last) == (from, to) {
                            computed.function.compute(inputs, element, slot)?;
                            number += 1;
                            continue;
                        }
                        kept.element = None;
                        kept.bytes.resize((to - from) as usize, 0);
                        computed.function.compute(inputs, element, &mut kept.bytes)?;
                        kept.element = Some(number as usize);
                    }
                    let part = (first - from) as usize..(last - from) as usize;
                    slot.copy_from_slice(&kept.bytes[part]);
                    number += 1;
                }
                Ok(())
            }
            Self::Encoded { starts, decoded, data, codec } => {
                let end = offset + buffer.len() as u64;
                let mut element = decoded.partition_point(|d| *d <= offset).saturating_sub(1);
                while element + 1 < decoded.len() && decoded[element] < end {
                    let (from, to) = (decoded[element], decoded[element + 1]);
                    let (first, last) = (from.max(offset), to.min(end));
                    let slot = &mut buffer[(first - offset) as usize..(last - offset) as usize];
                    let whole = (first, last) == (from, to);
                    if kept.element != Some(element) {
                        let length = starts[element + 1] - starts[element];
                        let stored = &mut kept.stored;
                        read_whole(source, data, starts[element], length, limits, stored)?;
                        if whole {
                            codec.decode(stored, slot)?;
                            element += 1;
                            continue;
                        }
                        kept.element = None;
                        kept.bytes.resize(limits.allow(to - from, "a decoded element")?, 0);
                        codec.decode(stored, &mut kept.bytes)?;
                        kept.element = Some(element);
                    }
                    let part = (first - from) as usize..(last - from) as usize;
                    slot.copy_from_slice(&kept.bytes[part]);
                    element += 1;
                }
                Ok(())
            }
        }
    }
}

/// Reads `len` bytes from byte `offset` of the joined `extents` into `out`, which grows only once
/// the file is known to have them.
pub(crate) fn read_whole(
    source: &Source,
    extents: &Extents,
    offset: u64,
    len: u64,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<()> {
    let size = limits.allow(len, "an element or text")?;
    for piece in extents.pieces(offset, len) {
        source.require(piece.offset, piece.len)?;
    }
    out.resize(size, 0);
    read_extents(source, extents, offset, out)
}

/// Fills `buffer` from byte `offset` of the joined `extents`.
pub(crate) fn read_extents(
    source: &Source,
    extents: &Extents,
    offset: u64,
    buffer: &mut [u8],
) -> Result<()> {
    let mut done = 0;
    for piece in extents.pieces(offset, buffer.len() as u64) {
        let slot = &mut buffer[done..done + piece.len as usize];
        source.read_exact_at(piece.offset, slot)?;
        done += slot.len();
    }
    if done == buffer.len() {
        return Ok(());
    }
    Err(Error::truncated("core-short", "the byte ranges of an array end too early").at(offset))
}
