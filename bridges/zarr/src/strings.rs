//! Elements of variable length. They become text of the longest length, in memory.

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};

use crate::chunks::{ChunkFiles, too_long};
use crate::decode::{divided, each_position, invalid};
use crate::wire::{ArrayMeta, unsupported};

/// Memory of the location of an element.
const ELEMENT_BYTES: u64 = 32;

const WHAT: &str = "elements of variable length";

/// Decoded elements.
#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    /// Number of the element in the array, in C order, and its range in `bytes`.
    places: Vec<(u64, usize, usize)>,
}

/// Reads all elements of an array. Fails with `Unsupported` if they exceed a quarter of the memory limit, or if
/// bytes end with NUL, which text cannot express.
pub(crate) fn read(files: &ChunkFiles, meta: &ArrayMeta, is_text: bool) -> Result<ArrayDesc> {
    let limits = &files.limits;
    let budget = limits.memory / 4;
    let shape = meta.shape.clone();
    let desc =
        |size: usize, layout| Ok(ArrayDesc::new(DType::text(size as u32), shape.clone(), layout));
    let mut fill = meta.fill.clone();
    check(&fill, is_text)?;
    if files.is_empty() {
        fill.resize(fill.len().max(1), 0);
        return desc(fill.len(), Layout::Fill(fill.into()));
    }
    let count = shape.count().filter(|count| *count <= budget);
    let count = count.ok_or_else(|| too_long(WHAT, limits))?;
    let strings = decode(files, meta, is_text, limits)?;
    let lengths = strings.places.iter().map(|(_, from, to)| to - from);
    let size = lengths.chain([fill.len(), 1]).max().unwrap_or(1);
    let bytes = count.checked_mul(size as u64).filter(|bytes| *bytes <= budget);
    let bytes = bytes.ok_or_else(|| too_long(WHAT, limits))?;
    if u32::try_from(size).is_err() {
        return Err(too_long(WHAT, limits));
    }
    let mut out = vec![0; bytes as usize];
    if !fill.is_empty() {
        out.chunks_exact_mut(size).for_each(|own| own[..fill.len()].copy_from_slice(&fill));
    }
    for (number, from, to) in strings.places {
        let target = &mut out[number as usize * size..][..size];
        let text = &strings.bytes[from..to];
        target[..text.len()].copy_from_slice(text);
        target[text.len()..].fill(0);
    }
    desc(size, Layout::Inline(out.into(), Order::C))
}

fn decode(files: &ChunkFiles, meta: &ArrayMeta, is_text: bool, limits: &Limits) -> Result<Strings> {
    let (chunk, codecs) = meta.inner();
    let stored = match meta.simple_shard() {
        Some(shard) => files.sharded(meta, shard, None)?.chunks()?,
        None if codecs.shard.is_some() => {
            return Err(unsupported("these shards of elements of variable length"));
        }
        None => files.chunks().collect(),
    };
    let grid = divided(&meta.shape, chunk);
    let mut found = Strings::default();
    let budget = limits.memory / 4;
    for (number, stored) in stored {
        let used = found.bytes.len() as u64 + found.places.len() as u64 * ELEMENT_BYTES;
        let rest = budget.checked_sub(used).ok_or_else(|| too_long(WHAT, limits))?;
        if stored.extent.len > rest {
            return Err(too_long(WHAT, limits));
        }
        let bytes = files.source.read_vec(stored.extent.offset, stored.extent.len)?;
        let pipeline = match stored.deflated {
            Some(_) => codecs.inflated().pipeline,
            None => codecs.pipeline.clone(),
        };
        let bytes = pipeline.decode_any(&bytes, rest)?;
        let numbers = elements_of(number, &grid, chunk, &meta.shape, &codecs.axes, rest);
        let numbers = numbers.ok_or_else(|| too_long(WHAT, limits))?;
        found.add(&bytes, &numbers, is_text)?;
    }
    Ok(found)
}

/// Numbers of the elements of a chunk in the array, in their stored order; `None` for those outside of the array.
/// Fails if there are more than `limit` bytes of them.
fn elements_of(
    number: u64,
    grid: &Shape,
    chunk: &Shape,
    shape: &Shape,
    axes: &[usize],
    limit: u64,
) -> Option<Vec<Option<u64>>> {
    let count = chunk.count().filter(|count| *count <= limit / 16)?;
    let rank = shape.rank();
    let mut origin = vec![0; rank];
    let mut rest = number;
    for k in (0..rank).rev() {
        origin[k] = rest % grid.lengths()[k] * chunk.lengths()[k];
        rest /= grid.lengths()[k];
    }
    // Positions in the chunk, in C order, in the order in which they are stored.
    let inside = chunk.strides(Order::C);
    let steps: Vec<(u64, u64)> =
        axes.iter().map(|axis| (chunk.lengths()[*axis], inside[*axis])).collect();
    let mut numbers = Vec::with_capacity(count as usize);
    each_position(&steps, 0, &mut |position| {
        let (mut rest, mut number, mut stride) = (position, Some(0), 1);
        for k in (0..rank).rev() {
            let at = origin[k] + rest % chunk.lengths()[k];
            rest /= chunk.lengths()[k];
            number = number.filter(|_| at < shape.lengths()[k]).map(|n| n + at * stride);
            stride *= shape.lengths()[k];
        }
        numbers.push(number);
    });
    Some(numbers)
}

impl Strings {
    /// Adds the elements of a chunk: their number, and the length before each, all with 32 bits, little-endian.
    fn add(&mut self, bytes: &[u8], numbers: &[Option<u64>], is_text: bool) -> Result<()> {
        let short = || invalid("unexpected end of a chunk of variable-length elements");
        let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let count = u32::from_le_bytes(*count) as usize;
        if count != numbers.len() {
            let expected = numbers.len();
            return Err(invalid(format!("expected {expected} elements in a chunk, found {count}")));
        }
        for number in numbers {
            let (len, next) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            let len = u32::from_le_bytes(*len) as usize;
            let (text, next) = next.split_at_checked(len).ok_or_else(short)?;
            rest = next;
            let Some(number) = number else { continue };
            check(text, is_text)?;
            let from = self.bytes.len();
            self.bytes.extend_from_slice(text);
            self.places.push((*number, from, self.bytes.len()));
        }
        Ok(())
    }
}

/// Fails for elements that text of a fixed size cannot express.
fn check(text: &[u8], is_text: bool) -> Result<()> {
    if text.last() == Some(&0) {
        return Err(unsupported("elements of variable length that end with NUL are not supported"));
    }
    if is_text && std::str::from_utf8(text).is_err() {
        return Err(invalid("a string is not valid UTF-8"));
    }
    Ok(())
}
