//! The elements of an array as one sequence of bytes, for every layout.

use std::num::NonZero;
use std::sync::Arc;

use crate::chunks::ChunkStore;
use crate::computed::Computed;
use crate::error::human_bytes;
use crate::select::Span;
use crate::{Array, Codec, Dataset, Error, Extents, Hint, Limits, Result, Source};

/// Bytes that are read although they are not stored, per byte of the memory limit and per byte of the file. Their number
/// is in the metadata alone, so a few bytes could cause any amount of work.
const UNSTORED_PER_LIMIT: u64 = 8;
const UNSTORED_PER_BYTE: u64 = 4 << 10;
/// Bytes of fill values that are always read.
const UNSTORED_LEAST: u64 = 1 << 20;

/// The sequence of bytes that a plan reads.
#[derive(Clone)]
pub(crate) enum Store {
    File(Extents),
    Memory(Arc<[u8]>),
    /// One element, repeated.
    Fill(Arc<[u8]>),
    Encoded {
        starts: Arc<[u64]>,
        decoded: Arc<[u64]>,
        data: Extents,
        codec: Arc<dyn Codec>,
    },
    /// Read as boxes; as a sequence only if it is flat.
    Chunked(ChunkStore),
    Computed {
        computed: Arc<Computed>,
        inputs: Arc<[Array]>,
        /// Size of an element and of the entire result, in bytes.
        size: usize,
        len: u64,
    },
}

/// The element decoded last, so that small consecutive reads of a large element decode it once.
#[derive(Default)]
pub(crate) struct Decoded {
    element: Option<usize>,
    stored: Vec<u8>,
    bytes: Vec<u8>,
}

impl Store {
    /// Validates the tables of the layout, which come from the file. Fails if they are inconsistent or hold
    /// less than `needed` bytes of elements of `size` bytes.
    pub(crate) fn check(&self, size: usize, needed: u64) -> Result<()> {
        match self {
            Self::Fill(element) if element.len() != size => {
                let message =
                    format!("expected a fill value of {size} bytes, found {}", element.len());
                return Err(Error::malformed("core-layout", message));
            }
            Self::Computed { len, .. } if usize::try_from(*len).is_err() => {
                return Err(Error::limit("the computed array exceeds the address space"));
            }
            Self::Encoded { starts, decoded, data, .. } => {
                let valid = |table: &[u64]| table.is_sorted() && table.first() == Some(&0);
                let fits = starts.last().is_some_and(|end| *end <= data.len());
                if starts.len() != decoded.len() || !valid(starts) || !valid(decoded) || !fits {
                    let message = "inconsistent table of encoded elements";
                    return Err(self.locate(Error::malformed("core-layout", message)));
                }
            }
            _ => {}
        }
        if self.len() < needed {
            let message = format!("expected {needed} bytes of array data, found {}", self.len());
            return Err(self.locate(Error::malformed("core-short", message)));
        }
        Ok(())
    }

    /// The work of reading the elements in `spans`, of `size` bytes, that are not stored: bytes, and a constant per
    /// chunk. 0 if it is not known which elements are stored.
    pub(crate) fn unstored_work(&self, spans: &[Span], size: usize) -> u64 {
        match self {
            Self::Fill(_) => {
                let elements = spans.iter().fold(1, |n: u64, span| n.saturating_mul(span.count));
                elements.saturating_mul(size as u64)
            }
            Self::Chunked(chunks) => {
                chunks.work(spans).map_or(0, |(work, stored)| work.saturating_sub(stored))
            }
            _ => 0,
        }
    }

    /// Fails with `Limit` if many of the elements in `spans`, of `size` bytes, are not stored.
    pub(crate) fn check_work(&self, spans: &[Span], size: usize, dataset: &Dataset) -> Result<()> {
        let work = self.unstored_work(spans, size);
        let stored = dataset.source().len().saturating_mul(UNSTORED_PER_BYTE);
        let most =
            stored.saturating_add(dataset.limits().memory.saturating_mul(UNSTORED_PER_LIMIT));
        let most = most.max(UNSTORED_LEAST);
        if work <= most {
            return Ok(());
        }
        let message = format!(
            "most of the selection is not stored in the file: about {} of fill values, at most {} are read",
            human_bytes(work),
            human_bytes(most)
        );
        Err(Error::limit(message).hint(Hint::RaiseMemory))
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(extents) => extents.len(),
            Self::Memory(bytes) => bytes.len() as u64,
            // Missing chunks have the fill value.
            Self::Fill(_) | Self::Chunked(_) => u64::MAX,
            Self::Encoded { decoded, .. } => decoded.last().copied().unwrap_or(0),
            Self::Computed { len, .. } => *len,
        }
    }

    /// Adds the offset of the array to an error.
    fn locate(&self, error: Error) -> Error {
        match self {
            Self::File(extents) | Self::Encoded { data: extents, .. } => {
                extents.parts().iter().take(1).fold(error, |e, part| e.at(part.offset))
            }
            Self::Memory(_) | Self::Fill(_) | Self::Chunked(_) | Self::Computed { .. } => error,
        }
    }

    /// The first `len` bytes without a copy; `None` if they are not contiguous in memory.
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

    /// Number of bytes to read at once from `offset`, at most `rest`: about `piece`, extended to the end of an
    /// encoded element so that no two readers decode it, and a multiple of `size`.
    pub(crate) fn piece(
        &self,
        offset: u64,
        piece: usize,
        rest: usize,
        size: NonZero<usize>,
    ) -> usize {
        let Self::Encoded { decoded, .. } = self else {
            let len = match self {
                Self::Computed { computed, size, .. } => {
                    // Up to the end of a computed piece.
                    let bytes = computed.piece.saturating_mul(*size as u64).max(1);
                    let end =
                        offset.saturating_add(piece as u64).div_ceil(bytes).saturating_mul(bytes);
                    usize::try_from(end - offset).unwrap_or(usize::MAX)
                }
                _ => piece,
            };
            return len.min(rest);
        };
        let least = offset.saturating_add(piece as u64);
        let ends = &decoded[decoded.partition_point(|end| *end < least)..];
        let lengths = ends.iter().filter_map(|end| usize::try_from(end - offset).ok());
        let mut aligned = lengths.take_while(|len| *len < rest).filter(|len| *len % size == 0);
        aligned.next().unwrap_or(rest)
    }

    /// Whether the bytes of the source for a block are known before it is read.
    pub(crate) fn is_planned(&self) -> bool {
        match self {
            Self::File(_) | Self::Encoded { .. } => true,
            Self::Chunked(chunks) => !chunks.is_flat(),
            Self::Memory(_) | Self::Fill(_) | Self::Computed { .. } => false,
        }
    }

    /// Calls `each` with the offset and length of every range of the source that [`Store::fetch`] reads for the `len`
    /// bytes at `offset`.
    pub(crate) fn pieces(&self, offset: u64, len: u64, mut each: impl FnMut(u64, u64)) {
        let (extents, from, len) = match self {
            Self::File(extents) => (extents, offset, len),
            Self::Encoded { starts, decoded, data, .. } => {
                let last = starts.len() - 1;
                let first = decoded.partition_point(|d| *d <= offset).saturating_sub(1).min(last);
                let end = decoded.partition_point(|d| *d < offset.saturating_add(len)).min(last);
                (data, starts[first], starts[end].saturating_sub(starts[first]))
            }
            _ => return,
        };
        extents.pieces(from, len).for_each(|piece| each(piece.offset, piece.len));
    }

    /// Fills `buffer` from byte `offset` of the sequence.
    pub(crate) fn fetch(
        &self,
        dataset: &Dataset,
        offset: u64,
        buffer: &mut [u8],
        kept: &mut Decoded,
    ) -> Result<()> {
        let limits = dataset.limits();
        match self {
            Self::File(extents) => read_extents(dataset.source(), extents, offset, buffer),
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
            Self::Chunked(chunks) => chunks.fetch(dataset, offset, buffer),
            Self::Computed { computed, inputs, size, len } => {
                let size = (*size as u64).max(1);
                let piece = computed.piece.max(1).saturating_mul(size);
                let range = |number: usize| {
                    let from = (number as u64).saturating_mul(piece);
                    Some((from, from.saturating_add(piece).min(*len)))
                };
                let first = (offset / piece) as usize;
                kept.read_pieces(first, range, offset, buffer, limits, |number, _, out| {
                    let function = &computed.function;
                    let needed = function.memory(out.len() as u64 / size);
                    limits.allow(needed.saturating_add(out.len() as u64), function.name())?;
                    let element = (number as u64).saturating_mul(computed.piece.max(1));
                    function.compute(inputs, element, out)
                })
            }
            Self::Encoded { starts, decoded, data, codec } => {
                let range = |k: usize| Some((decoded[k], *decoded.get(k + 1)?));
                let first = decoded.partition_point(|d| *d <= offset).saturating_sub(1);
                kept.read_pieces(first, range, offset, buffer, limits, |k, stored, out| {
                    let length = starts[k + 1] - starts[k];
                    read_checked(dataset, data, starts[k], length, stored)?;
                    codec.decode(stored, out)
                })
            }
        }
    }
}

impl Decoded {
    /// Fills `buffer` from byte `offset` of consecutive pieces, beginning with piece `number`. `range` returns
    /// the first byte of a piece and its end; `make` writes its bytes, and may use a buffer for stored ones.
    fn read_pieces(
        &mut self,
        mut number: usize,
        range: impl Fn(usize) -> Option<(u64, u64)>,
        offset: u64,
        buffer: &mut [u8],
        limits: &Limits,
        make: impl Fn(usize, &mut Vec<u8>, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let end = offset + buffer.len() as u64;
        while let Some((from, to)) = range(number).filter(|(from, _)| *from < end) {
            let (first, last) = (from.max(offset), to.min(end));
            let slot = &mut buffer[(first - offset) as usize..(last - offset) as usize];
            if self.element != Some(number) && (first, last) == (from, to) {
                make(number, &mut self.stored, slot)?;
            } else {
                if self.element != Some(number) {
                    self.element = None;
                    self.bytes.resize(limits.allow(to - from, "a decoded element")?, 0);
                    make(number, &mut self.stored, &mut self.bytes)?;
                    self.element = Some(number);
                }
                slot.copy_from_slice(&self.bytes[(first - from) as usize..(last - from) as usize]);
            }
            number += 1;
        }
        Ok(())
    }
}

/// Reads `len` bytes at byte `offset` of the concatenated `extents` into `out`. Fails before allocating if
/// they exceed the memory limit or the file.
pub(crate) fn read_checked(
    dataset: &Dataset,
    extents: &Extents,
    offset: u64,
    len: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let size = dataset.limits().allow(len, "an encoded element")?;
    for piece in extents.pieces(offset, len) {
        dataset.source().require(piece.offset, piece.len)?;
    }
    out.resize(size, 0);
    read_extents(dataset.source(), extents, offset, out)
}

/// Fills `buffer` from byte `offset` of the concatenated `extents`.
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
    Err(Error::truncated("core-short", "the byte ranges of the array end too early").at(offset))
}
