//! The Blosc container, version 1: blocks that are shuffled and compressed separately (c-blosc
//! `README_CHUNK_FORMAT`).

use spile_core::error::Result;

use super::{Filter, inflate, invalid_chunk, truncated, unshuffle};
use crate::wire::unsupported;

const HEADER: usize = 16;

/// Flags of the third byte.
const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;

/// Blocks are not split for larger elements or fewer elements per split.
const MOST_SPLITS: usize = 16;
const FEWEST_SPLIT: usize = 128;

/// Decodes a container to `out`. Returns the decoded length of the header; `out` is not written if it has
/// another length.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let Some((header, body)) = stored.split_first_chunk::<HEADER>() else {
        return Err(truncated());
    };
    let [_, _, flags, size, ..] = *header;
    let word = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let (len, block) = (word(4), word(8));
    if len != out.len() {
        return Ok(len);
    }
    if flags & COPIED != 0 {
        out.copy_from_slice(body.get(..len).ok_or_else(truncated)?);
        return Ok(len);
    }
    if len > 0 && block == 0 {
        return Err(invalid_chunk("blosc: block size is 0"));
    }
    let size = usize::from(size).max(1);
    let by_bits = flags & BITS_SHUFFLED != 0;
    let by_bytes = flags & SHUFFLED != 0 && size > 1;
    let mut plain = Vec::new();
    for (k, target) in out.chunks_mut(block.max(1)).enumerate() {
        let at = body.get(4 * k..4 * k + 4).ok_or_else(truncated)?;
        let at = u32::from_le_bytes([at[0], at[1], at[2], at[3]]) as usize;
        let from = stored.get(at..).ok_or_else(truncated)?;
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
    Ok(len)
}

/// Decodes the streams of a block; each follows its length.
fn streams(compressor: u8, splits: usize, mut from: &[u8], out: &mut [u8]) -> Result<()> {
    let part = out.len() / splits;
    for target in out.chunks_mut(part.max(1)) {
        let (len, rest) = from.split_first_chunk::<4>().ok_or_else(truncated)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (data, next) = rest.split_at_checked(len).ok_or_else(truncated)?;
        from = next;
        if len == target.len() {
            target.copy_from_slice(data);
            continue;
        }
        match compressor {
            0 => {
                blosclz(data, target)
                    .ok_or_else(|| invalid_chunk("chunk: invalid blosclz data"))?;
            }
            1 => {
                let done = lz4_flex::block::decompress_into(data, target);
                if done.ok() != Some(target.len()) {
                    return Err(invalid_chunk("chunk: invalid lz4 data"));
                }
            }
            3 => inflate(Filter::Zlib, data, target)?,
            4 => inflate(Filter::Zstd, data, target)?,
            other => return Err(unsupported(format!("blosc compressor {other} is not supported"))),
        }
    }
    Ok(())
}

/// Decodes BloscLZ: runs of literals and back references. `None` unless the output is exactly `out`.
fn blosclz(from: &[u8], out: &mut [u8]) -> Option<()> {
    /// Larger distances have two additional bytes.
    const FAR: usize = 8191;
    let mut input = from.iter().copied();
    let mut at = 0;
    let mut control = usize::from(input.next()?) & 31;
    loop {
        if control < 32 {
            for target in out.get_mut(at..at + control + 1)? {
                *target = input.next()?;
            }
            at += control + 1;
        } else {
            let (mut len, high) = ((control >> 5) - 1, (control & 31) << 8);
            if len == 6 {
                loop {
                    let more = input.next()?;
                    len += usize::from(more);
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = input.next()?;
            let mut distance = high + usize::from(low);
            if low == 255 && high == 31 << 8 {
                distance = FAR + (usize::from(input.next()?) << 8) + usize::from(input.next()?);
            }
            let start = at.checked_sub(distance + 1)?;
            let end = at.checked_add(len + 3).filter(|end| *end <= out.len())?;
            // A match may overlap its output.
            for k in at..end {
                out[k] = out[start + k - at];
            }
            at = end;
        }
        match input.next() {
            Some(next) => control = usize::from(next),
            None => return (at == out.len()).then_some(()),
        }
    }
}

/// Reverses a bit shuffle of elements of `size` bytes. The data are copied if the number of elements is not
/// a multiple of eight.
fn unshuffle_bits(size: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / size;
    if !count.is_multiple_of(8) {
        to.copy_from_slice(from);
        return;
    }
    let complete = count * size;
    to[..complete].fill(0);
    for (row, bits) in from[..complete].chunks_exact((count / 8).max(1)).enumerate() {
        let (byte, bit) = (row / 8, row % 8);
        for (k, eight) in bits.iter().enumerate() {
            for element in 0..8 {
                to[(8 * k + element) * size + byte] |= (eight >> element & 1) << bit;
            }
        }
    }
    to[complete..].copy_from_slice(&from[complete..]);
}
