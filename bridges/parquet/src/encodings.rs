//! Encodings of values, as plain values: delta, split byte streams, runs of booleans.

use std::borrow::Cow;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;

use crate::rle;
use crate::stored::{Stored, next_byte_array};
use crate::wire::{
    BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE,
};

/// Values per block of the delta encoding. Writers use 128.
const MAX_BLOCK: u64 = 1 << 20;

fn invalid() -> Error {
    Error::malformed("parquet-005", "invalid encoded values")
}

/// The `count` values of a page as plain values.
pub(crate) fn plain<'a>(
    encoding: i64,
    bytes: &'a [u8],
    count: u64,
    (dtype, stored): (DType, Stored),
    limits: &Limits,
) -> Result<Cow<'a, [u8]>> {
    let width = stored.width(dtype);
    let charge = |width: usize| limits.allow(count.saturating_mul(width as u64), "a page");
    let plain = match (encoding, width) {
        (PLAIN, _) => return Ok(bytes.into()),
        (RLE, None) if !stored.is_byte_arrays() => {
            charge(1)?;
            booleans(bytes, count)
        }
        (DELTA_BINARY_PACKED, Some(width @ (4 | 8))) => {
            charge(width)?;
            let mut out = Vec::new();
            let read = deltas(bytes, count, |value| out.extend(&value.to_le_bytes()[..width]));
            read.map(|_| out)
        }
        (BYTE_STREAM_SPLIT, Some(width)) => {
            let size = charge(width)?;
            let bytes = bytes.get(..size).ok_or_else(invalid)?;
            let mut out = vec![0; size];
            for (k, stream) in bytes.chunks_exact((count as usize).max(1)).enumerate() {
                let slots = out.iter_mut().skip(k).step_by(width);
                slots.zip(stream).for_each(|(slot, byte)| *slot = *byte);
            }
            Some(out)
        }
        (DELTA_LENGTH_BYTE_ARRAY, None) if stored.is_byte_arrays() => {
            charge(8)?;
            byte_arrays(bytes, count)
        }
        (DELTA_BYTE_ARRAY, _) if stored.is_byte_arrays() || width.is_some() => {
            charge(width.unwrap_or(8))?;
            return prefixed(bytes, count, width, limits).map(Cow::Owned);
        }
        _ => {
            let message = format!("encoding {} is not supported", name(encoding));
            return Err(Error::unsupported("parquet-006", message));
        }
    };
    plain.map(Cow::Owned).ok_or_else(invalid)
}

/// Name of an encoding, for messages.
pub(crate) fn name(encoding: i64) -> String {
    let name = match encoding {
        PLAIN => "PLAIN",
        RLE => "RLE",
        4 => "BIT_PACKED",
        DELTA_BINARY_PACKED => "DELTA_BINARY_PACKED",
        DELTA_LENGTH_BYTE_ARRAY => "DELTA_LENGTH_BYTE_ARRAY",
        DELTA_BYTE_ARRAY => "DELTA_BYTE_ARRAY",
        BYTE_STREAM_SPLIT => "BYTE_STREAM_SPLIT",
        other => return other.to_string(),
    };
    name.into()
}

/// Runs of booleans as bits.
fn booleans(bytes: &[u8], count: u64) -> Option<Vec<u8>> {
    let (_, runs) = bytes.split_first_chunk::<4>()?;
    let mut bits = vec![0; count.div_ceil(8) as usize];
    let mut at = 0;
    rle::decode(runs, 1, count, |bit, times| {
        let times = times.min(count - at);
        if bit == 1 {
            (at..at + times).for_each(|k| bits[(k / 8) as usize] |= 1 << (k % 8));
        }
        at += times;
        Some(())
    })?;
    Some(bits)
}

fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A zigzag integer.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let value = unsigned(bytes)?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// Decodes `count` integers of the encoding `DELTA_BINARY_PACKED`. Returns the bytes after them.
fn deltas(bytes: &[u8], count: u64, mut each: impl FnMut(i64)) -> Option<&[u8]> {
    let mut rest = bytes;
    let block = unsigned(&mut rest)?;
    let miniblocks = unsigned(&mut rest)?;
    let total = unsigned(&mut rest)?;
    let mut value = signed(&mut rest)?;
    let size = block.checked_div(miniblocks)?;
    let even =
        block <= MAX_BLOCK && size > 0 && size.is_multiple_of(8) && size * miniblocks == block;
    if !even || total != count {
        return None;
    }
    if count > 0 {
        each(value);
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let least = signed(&mut rest)?;
        let (widths, after) = rest.split_at_checked(miniblocks as usize)?;
        rest = after;
        for width in widths.iter().map(|width| u32::from(*width)) {
            // Miniblocks after the last value are not stored.
            if left == 0 {
                break;
            }
            if width > 64 {
                return None;
            }
            let (packed, after) = rest.split_at_checked((size / 8) as usize * width as usize)?;
            rest = after;
            for k in 0..size.min(left) {
                let delta = unpack(packed, k as usize * width as usize, width);
                value = value.wrapping_add(least).wrapping_add(delta.cast_signed());
                each(value);
            }
            left -= size.min(left);
        }
    }
    Some(rest)
}

/// The value of `width` bits, up to 64, that begins at bit `first`.
fn unpack(packed: &[u8], first: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let mut window = [0; 16];
    let bytes = packed.get(first / 8..).unwrap_or_default();
    let used = bytes.len().min(9);
    window[..used].copy_from_slice(&bytes[..used]);
    let all = u128::from_le_bytes(window) >> (first % 8);
    all as u64 & (u64::MAX >> (64 - width))
}

/// Lengths of byte arrays, and the bytes after them.
fn lengths(bytes: &[u8], count: u64) -> Option<(Vec<u32>, &[u8])> {
    let (mut all, mut valid) = (Vec::new(), true);
    let rest = deltas(bytes, count, |len| {
        valid &= u32::try_from(len).is_ok();
        all.push(len as u32);
    })?;
    valid.then_some((all, rest))
}

/// Decodes `DELTA_LENGTH_BYTE_ARRAY`: lengths, then bytes.
fn byte_arrays(bytes: &[u8], count: u64) -> Option<Vec<u8>> {
    let (lengths, mut rest) = lengths(bytes, count)?;
    let mut out = Vec::with_capacity(rest.len() + 4 * lengths.len());
    for len in lengths {
        let (own, after) = rest.split_at_checked(len as usize)?;
        out.extend(len.to_le_bytes());
        out.extend(own);
        rest = after;
    }
    Some(out)
}

/// Decodes `DELTA_BYTE_ARRAY`: lengths of the prefixes shared with the value before, then the suffixes. Values of
/// a fixed `width` have no lengths in the result.
fn prefixed(bytes: &[u8], count: u64, width: Option<usize>, limits: &Limits) -> Result<Vec<u8>> {
    let (prefixes, rest) = lengths(bytes, count).ok_or_else(invalid)?;
    let suffixes = byte_arrays(rest, count).ok_or_else(invalid)?;
    let (mut out, mut before) = (Vec::new(), 0..0);
    let mut rest = &suffixes[..];
    for prefix in prefixes {
        let (suffix, after) = next_byte_array(rest).ok_or_else(invalid)?;
        rest = after;
        let (prefix, shared) = (prefix as usize, before.len());
        let len = prefix + suffix.len();
        if prefix > shared || width.is_some_and(|width| width != len) {
            return Err(invalid());
        }
        limits.allow((out.len() + len) as u64 + 4, "a page of strings")?;
        if width.is_none() {
            out.extend((len as u32).to_le_bytes());
        }
        let start = out.len();
        out.extend_from_within(before.start..before.start + prefix);
        out.extend(suffix);
        before = start..out.len();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], count: u64) -> Option<Vec<i64>> {
        let mut values = Vec::new();
        deltas(bytes, count, |value| values.push(value))?;
        Some(values)
    }

    #[test]
    fn the_examples_of_the_specification_are_decoded() {
        // 1 to 5: deltas of 1 in miniblocks of width 0.
        let bytes = [128, 1, 4, 5, 2, 2, 0, 0, 0, 0];
        assert_eq!(all(&bytes, 5), Some(vec![1, 2, 3, 4, 5]));
        // 7, 5, 3, 1, 2, 3, 4, 5: the smallest delta is -2, the others have two bits.
        let mut bytes = vec![128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        bytes.resize(18, 0);
        assert_eq!(all(&bytes, 8), Some(vec![7, 5, 3, 1, 2, 3, 4, 5]));
        for bad in [&bytes[..9], &bytes[..3], &[0, 1, 4, 5], &[128, 1, 0, 5, 2]] {
            assert_eq!(all(bad, 8), None);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), count in 0_u64..500, encoding in 0_i64..11,
        ) {
            let limits = Limits::default();
            let stored = [
                (DType::I32, Stored::Plain), (DType::F64, Stored::Plain), (DType::U8, Stored::Bits),
                (DType::text(9), Stored::ByteArrays), (DType::opaque(5), Stored::Plain),
            ];
            for stored in stored {
                let _ = plain(encoding, &bytes, count, stored, &limits);
                let mut headed = vec![128, 1, 4];
                crate::thrift::unsigned(count, &mut headed);
                headed.extend(&bytes);
                let _ = plain(encoding, &headed, count, stored, &limits);
            }
        }
    }
}
