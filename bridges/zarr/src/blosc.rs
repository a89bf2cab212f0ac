//! Blosc's container, version 1 as c-blosc writes it: blocks that are shuffled and compressed one by
//! one (c-blosc `README_CHUNK_FORMAT`).

use spile_core::error::Result;

use crate::codec::{Filter, cut, damaged, inflate, unshuffle};
use crate::wire::unknown;

const HEADER: usize = 16;

/// Flags of the third byte.
const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;

/// Elements of more bytes, or fewer elements, are never split.
const MOST_SPLITS: usize = 16;
const FEWEST_SPLIT: usize = 128;

/// Fills `out`; tells how many bytes the container says there are.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let Some((header, body)) = stored.split_first_chunk::<HEADER>() else { return Err(cut()) };
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
        out.copy_from_slice(body.get(..len).ok_or_else(cut)?);
        return Ok(len);
    }
    if len > 0 && block == 0 {
        return Err(damaged("blocks of no bytes"));
    }
    let size = usize::from(size).max(1);
    let by_bits = flags & BITS_SHUFFLED != 0;
    let by_bytes = flags & SHUFFLED != 0 && size > 1;
    let mut plain = Vec::new();
    for (k, place) in out.chunks_mut(block.max(1)).enumerate() {
        let at = body.get(4 * k..4 * k + 4).ok_or_else(cut)?;
        let at = u32::from_le_bytes([at[0], at[1], at[2], at[3]]) as usize;
        let from = stored.get(at..).ok_or_else(cut)?;
        let whole = place.len() == block;
        let splits =
            flags & NOT_SPLIT == 0 && whole && size <= MOST_SPLITS && block / size >= FEWEST_SPLIT;
        let splits = if splits { size } else { 1 };
        if !by_bits && !by_bytes {
            streams(flags >> 5, splits, from, place)?;
            continue;
        }
        plain.resize(place.len(), 0);
        streams(flags >> 5, splits, from, &mut plain)?;
        if by_bits {
            unshuffle_bits(size, &plain, place);
        } else {
            unshuffle(size, &plain, place);
        }
    }
    Ok(len)
}

/// The parts of a block, each behind its length.
fn streams(compressor: u8, splits: usize, mut from: &[u8], out: &mut [u8]) -> Result<()> {
    let part = out.len() / splits;
    for place in out.chunks_mut(part.max(1)) {
        let (len, rest) = from.split_first_chunk::<4>().ok_or_else(cut)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (data, behind) = rest.split_at_checked(len).ok_or_else(cut)?;
        from = behind;
        if len == place.len() {
            place.copy_from_slice(data);
            continue;
        }
        match compressor {
            0 => fast(data, place).ok_or_else(|| damaged("a chunk is no blosclz"))?,
            1 => {
                let done = lz4_flex::block::decompress_into(data, place);
                if done.ok() != Some(place.len()) {
                    return Err(damaged("a chunk is no lz4"));
                }
            }
            3 => inflate(Filter::Zlib, data, place)?,
            4 => inflate(Filter::Zstd, data, place)?,
            other => return Err(unknown(format!("blosc with compressor {other}"))),
        }
    }
    Ok(())
}

/// Blosc's own compressor: runs of literals, and matches of bytes that came before. Nothing where it
/// does not give exactly `out`.
fn fast(from: &[u8], out: &mut [u8]) -> Option<()> {
    /// Distances from here on have two bytes of their own.
    const FAR: usize = 8191;
    let mut input = from.iter().copied();
    let mut at = 0;
    let mut control = usize::from(input.next()?) & 31;
    loop {
        if control < 32 {
            for place in out.get_mut(at..at + control + 1)? {
                *place = input.next()?;
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
            // A match may reach into itself.
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

/// Bits of the same place in their elements lie together, for a multiple of eight elements.
fn unshuffle_bits(size: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / size;
    if !count.is_multiple_of(8) {
        to.copy_from_slice(from);
        return;
    }
    let whole = count * size;
    to[..whole].fill(0);
    for (row, bits) in from[..whole].chunks_exact((count / 8).max(1)).enumerate() {
        let (byte, bit) = (row / 8, row % 8);
        for (k, eight) in bits.iter().enumerate() {
            for element in 0..8 {
                to[(8 * k + element) * size + byte] |= (eight >> element & 1) << bit;
            }
        }
    }
    to[whole..].copy_from_slice(&from[whole..]);
}
