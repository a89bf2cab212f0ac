//! The Blosc container, version 1: blocks that are shuffled and compressed separately (c-blosc
//! `README_CHUNK_FORMAT`).

use spile_core::error::{Error, Result};

use crate::compression::{copy_back, copy_run, invalid_data, lz4, snappy, zlib, zstd};
use crate::shuffle::{unshuffle, unshuffle_bits};
use crate::{copy, expect_length, invalid, take, too_short};

const HEADER: usize = 16;

/// Flags of the third byte.
const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;

/// Blocks are not split for larger elements or fewer elements per split.
const MOST_SPLITS: usize = 16;
const FEWEST_SPLIT: usize = 128;

/// Decodes a container to `out`.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut rest = stored;
    let header: &[u8; HEADER] = take(&mut rest)?;
    let [_, _, flags, size, l0, l1, l2, l3, b0, b1, b2, b3, ..] = *header;
    expect_length(u32::from_le_bytes([l0, l1, l2, l3]) as usize, out)?;
    if flags & COPIED != 0 {
        return copy(rest.get(..out.len()).ok_or_else(too_short)?, out);
    }
    let block = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
    if !out.is_empty() && block == 0 {
        return Err(invalid("blosc: block size is 0"));
    }
    let size = usize::from(size).max(1);
    let by_bits = flags & BITS_SHUFFLED != 0;
    let by_bytes = flags & SHUFFLED != 0 && size > 1;
    let mut plain = Vec::new();
    for target in out.chunks_mut(block.max(1)) {
        let at = u32::from_le_bytes(*take(&mut rest)?) as usize;
        let from = stored.get(at..).ok_or_else(too_short)?;
        let complete = target.len() == block;
        let splits = flags & NOT_SPLIT == 0
            && complete
            && size <= MOST_SPLITS
            && block / size >= FEWEST_SPLIT;
        let splits = if splits { size } else { 1 };
        if !by_bits && !by_bytes {
            streams(flags >> 5, splits, from, target)?;
            continue;
        }
        plain.resize(target.len(), 0);
        streams(flags >> 5, splits, from, &mut plain)?;
        if by_bits {
            unshuffle_bits(size, &plain, target);
        } else {
            unshuffle(size, &plain, target);
        }
    }
    Ok(())
}

/// Decodes the streams of a block; each follows its length.
fn streams(compressor: u8, splits: usize, mut from: &[u8], out: &mut [u8]) -> Result<()> {
    let part = out.len() / splits;
    for target in out.chunks_mut(part.max(1)) {
        let len = u32::from_le_bytes(*take(&mut from)?) as usize;
        let (data, next) = from.split_at_checked(len).ok_or_else(too_short)?;
        from = next;
        if len == target.len() {
            target.copy_from_slice(data);
            continue;
        }
        match compressor {
            0 => blosclz(data, target).ok_or_else(|| invalid_data("blosclz"))?,
            1 => lz4(data, target)?,
            2 => snappy(data, target)?,
            3 => zlib(data, target)?,
            4 => zstd(data, target)?,
            other => {
                let message = format!("blosc compressor {other} is not supported");
                return Err(Error::unsupported("codec", message));
            }
        }
    }
    Ok(())
}

/// Decodes BloscLZ: runs of literals and back references. `None` unless the output is exactly `out`.
fn blosclz(from: &[u8], out: &mut [u8]) -> Option<()> {
    /// Larger distances have two additional bytes.
    const FAR: usize = 8191;
    let mut input = from.iter();
    let mut at = 0;
    let mut control = usize::from(*input.next()?) & 31;
    loop {
        if control < 32 {
            let (rest, end) = copy_run(input.as_slice(), control + 1, out, at)?;
            (input, at) = (rest.iter(), end);
        } else {
            let (mut len, high) = ((control >> 5) - 1, (control & 31) << 8);
            if len == 6 {
                loop {
                    let more = *input.next()?;
                    len += usize::from(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = *input.next()?;
            let mut distance = high + usize::from(low);
            if low == 255 && high == 31 << 8 {
                distance = FAR + (usize::from(*input.next()?) << 8) + usize::from(*input.next()?);
            }
            at = copy_back(out, at, distance + 1, len + 3)?;
        }
        match input.next() {
            Some(next) => control = usize::from(*next),
            None => return (at == out.len()).then_some(()),
        }
    }
}
