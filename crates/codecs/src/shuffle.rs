//! Byte and bit shuffles.

use spile_core::error::Result;

use crate::{BlockCompression, compression, copy, expect_length, invalid, take, too_short};

/// Reverses a byte shuffle, which stores byte `k` of all elements together. Bytes after the last complete element
/// are copied. Both slices have the same length.
pub(crate) fn unshuffle(element: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / element.max(1);
    if element <= 1 || count == 0 {
        to.copy_from_slice(from);
        return;
    }
    match element {
        2 => interleave::<2>(count, from, to),
        4 => interleave::<4>(count, from, to),
        8 => interleave::<8>(count, from, to),
        16 => interleave::<16>(count, from, to),
        _ => {
            for (k, column) in from.chunks_exact(count).take(element).enumerate() {
                for (target, byte) in to[k..].iter_mut().step_by(element).zip(column) {
                    *target = *byte;
                }
            }
        }
    }
    let complete = count * element;
    to[complete..].copy_from_slice(&from[complete..]);
}

/// Elements that are interleaved at once: they stay in the cache.
const TILE: usize = 256;

/// Byte `k` of element `j` is byte `j` of column `k`; `N` is a power of two up to 16. Merging two halves byte by byte,
/// log2(N) times, puts the bytes in this order, and compilers use vector instructions for it.
fn interleave<const N: usize>(count: usize, from: &[u8], to: &mut [u8]) {
    let mut buffers = [[0; 16 * TILE]; 2];
    for first in (0..count).step_by(TILE) {
        let own = TILE.min(count - first);
        let column = |k: usize| &from[k * count + first..][..own];
        let out = &mut to[N * first..][..N * own];
        if N == 2 {
            merge(column(0), column(1), out);
            continue;
        }
        let [source, target] = &mut buffers;
        let (mut source, mut target) = (&mut source[..N * own], &mut target[..N * own]);
        for (k, both) in source.chunks_exact_mut(2 * own).enumerate() {
            merge(column(k), column(k + N / 2), both);
        }
        for _ in 2..N.ilog2() {
            let (even, odd) = source.split_at(N * own / 2);
            merge(even, odd, target);
            std::mem::swap(&mut source, &mut target);
        }
        let (even, odd) = source.split_at(N * own / 2);
        merge(even, odd, out);
    }
}

/// The bytes of `even` and `odd` in turn.
fn merge(even: &[u8], odd: &[u8], out: &mut [u8]) {
    for ((pair, even), odd) in out.as_chunks_mut::<2>().0.iter_mut().zip(even).zip(odd) {
        *pair = [*even, *odd];
    }
}

/// Elements that are converted at once, in groups of eight: they stay in the cache.
const GROUPS: usize = 128;

/// Reverses a bit shuffle, which stores bit `k` of all elements together. The data are copied if the number of
/// elements is not a multiple of eight. Both slices have the same length.
pub(crate) fn unshuffle_bits(element: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / element.max(1);
    if !count.is_multiple_of(8) || count == 0 {
        to.copy_from_slice(from);
        return;
    }
    let row = count / 8;
    let each = GROUPS.min(row);
    let mut shuffled = vec![0; 8 * each * element];
    for first in (0..row).step_by(each) {
        let own = each.min(row - first);
        let shuffled = &mut shuffled[..8 * own * element];
        for (byte, column) in shuffled.chunks_exact_mut(8 * own).enumerate() {
            let planes: [&[u8]; 8] =
                std::array::from_fn(|plane| &from[(8 * byte + plane) * row + first..][..own]);
            for (k, target) in column.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let bits = std::array::from_fn(|plane| planes[plane][k]);
                *target = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            }
        }
        unshuffle(element, shuffled, &mut to[8 * first * element..][..8 * own * element]);
    }
    let complete = count * element;
    to[complete..].copy_from_slice(&from[complete..]);
}

/// Transposes a matrix of 8 x 8 bits: bit `k` of byte `j` becomes bit `j` of byte `k`.
fn transpose(mut bits: u64) -> u64 {
    let steps =
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0_u64)];
    for (shift, mask) in steps {
        let swapped = (bits ^ bits >> shift) & mask;
        bits ^= swapped ^ swapped << shift;
    }
    bits
}

/// Decodes the HDF5 filter 32008. Blocks of elements are shuffled by bits; elements after the last multiple of
/// eight are copied. A compression adds the decoded length (64 bits) and the length of a block in bytes (32 bits)
/// before the blocks, and its length (32 bits) before each block, all big-endian.
pub(crate) fn bitshuffle(
    element: usize,
    block: usize,
    compression: BlockCompression,
    mut from: &[u8],
    out: &mut [u8],
) -> Result<()> {
    let bad_block = || invalid("bitshuffle: invalid element or block size");
    let group = element.checked_mul(8).filter(|size| *size > 0).ok_or_else(bad_block)?;
    let bytes = if compression == BlockCompression::None {
        expect_length(from.len(), out)?;
        // By default, about 8 KiB and at least 128 elements.
        let default = (8192 / element / 8 * 8).max(128);
        element.checked_mul(if block == 0 { default } else { block })
    } else {
        let len = u64::from_be_bytes(*take(&mut from)?);
        expect_length(usize::try_from(len).unwrap_or(usize::MAX), out)?;
        Some(u32::from_be_bytes(*take(&mut from)?) as usize)
    };
    let bytes = bytes.filter(|n| *n > 0 && n.is_multiple_of(group)).ok_or_else(bad_block)?;
    let (blocks, rest) = out.split_at_mut(out.len() / group * group);
    let mut plain = Vec::new();
    for target in blocks.chunks_mut(bytes) {
        let len = match compression {
            BlockCompression::None => target.len(),
            _ => u32::from_be_bytes(*take(&mut from)?) as usize,
        };
        let (data, next) = from.split_at_checked(len).ok_or_else(too_short)?;
        from = next;
        plain.resize(target.len(), 0);
        match compression {
            BlockCompression::None => copy(data, &mut plain)?,
            BlockCompression::Lz4 => compression::lz4(data, &mut plain)?,
            BlockCompression::Zstd => compression::zstd(data, &mut plain)?,
        }
        unshuffle_bits(element, &plain, target);
    }
    copy(from, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffle_copies_incomplete_elements() {
        let mut out = [0; 7];
        unshuffle(3, &[1, 4, 2, 5, 3, 6, 9], &mut out);
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 9]);
        for element in [0, 1, 9] {
            unshuffle(element, &[1, 4, 2, 5, 3, 6, 9], &mut out);
            assert_eq!(out, [1, 4, 2, 5, 3, 6, 9]);
        }
    }

    #[test]
    fn shuffles_of_all_sizes_are_reversed() {
        for element in [1, 2, 3, 4, 5, 8, 16, 17] {
            for count in [1, 7, 8, 64, 1024, 1032, 8 * 300] {
                let plain: Vec<u8> =
                    (0..count * element + element / 2).map(|k| (k * 37 % 251) as u8).collect();
                let complete = count * element;
                let mut bytes = plain.clone();
                let mut bits = plain.clone();
                bits[..complete].fill(0);
                for (k, value) in plain[..complete].iter().enumerate() {
                    let (j, byte) = (k / element, k % element);
                    bytes[byte * count + j] = *value;
                    for bit in 0..8 {
                        let at = (8 * byte + bit) * count + j;
                        bits[at / 8] |= (value >> bit & 1) << (at % 8);
                    }
                }
                let mut out = vec![0; plain.len()];
                unshuffle(element, &bytes, &mut out);
                assert_eq!(out, plain, "{element} {count}");
                if count % 8 == 0 {
                    unshuffle_bits(element, &bits, &mut out);
                    assert_eq!(out, plain, "bits {element} {count}");
                }
            }
        }
    }

    #[test]
    fn bits_are_collected_from_all_planes() {
        let values: [u16; 8] = std::array::from_fn(|k| 0x1f3d_u16.wrapping_mul(k as u16 + 3));
        let mut planes = [0_u8; 16];
        for (k, value) in values.iter().enumerate() {
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= ((value >> bit & 1) as u8) << k;
            }
        }
        let mut out = [0; 16];
        unshuffle_bits(2, &planes, &mut out);
        let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(out[..], expected);
    }
}
