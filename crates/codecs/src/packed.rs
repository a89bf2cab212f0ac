//! The HDF5 filters that store only the bits that numbers need: nbit and scale-offset.

use spile_core::error::Result;

use crate::{copy, invalid, too_short};

/// Reads bits, the most significant bit of a byte first.
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// Index of the next bit.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bits, at most 64, as a number; `None` at the end.
    pub(crate) fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0;
        let mut left = count as usize;
        while left > 0 {
            let byte = u64::from(*self.bytes.get(self.at / 8)?);
            let unread = 8 - self.at % 8;
            let n = unread.min(left);
            value = value << n | (byte >> (unread - n)) & ((1 << n) - 1);
            self.at += n;
            left -= n;
        }
        Some(value)
    }

    /// The number of 0 bits before the next 1 bit, which is skipped; `None` at the end.
    pub(crate) fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0_u32;
        loop {
            let byte = *self.bytes.get(self.at / 8)? << (self.at % 8);
            let found = byte.leading_zeros() as usize;
            if byte != 0 {
                self.at += found + 1;
                return zeros.checked_add(found as u32);
            }
            let unread = 8 - self.at % 8;
            self.at += unread;
            zeros = zeros.checked_add(unread as u32)?;
        }
    }
}

/// Parameters of nbit for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nbit {
    /// Size of a number in bytes, at most 8.
    pub size: usize,
    /// Numbers are big-endian.
    pub is_big: bool,
    /// Number of bits that are stored.
    pub precision: u32,
    /// Position of the lowest stored bit.
    pub offset: u32,
}

impl Nbit {
    /// Whether the bits are bits of a number.
    fn is_valid(self) -> bool {
        let end = self.precision.checked_add(self.offset);
        (1..=8).contains(&self.size) && end.is_some_and(|end| end as usize <= 8 * self.size)
    }

    /// Largest length of `len` encoded bytes.
    pub(crate) fn most(len: usize) -> usize {
        len.saturating_add(1)
    }

    pub(crate) fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        if !self.is_valid() || !out.len().is_multiple_of(self.size) {
            return Err(invalid("nbit: invalid parameters"));
        }
        let mut bits = Bits::new(stored);
        for target in out.chunks_exact_mut(self.size) {
            let value = bits.take(self.precision).ok_or_else(too_short)?;
            put(value << (self.offset % 64), self.is_big, target);
        }
        Ok(())
    }
}

/// Stores the low bytes of `value`.
fn put(value: u64, is_big: bool, target: &mut [u8]) {
    let size = target.len();
    if is_big {
        target.copy_from_slice(&value.to_be_bytes()[8 - size..]);
    } else {
        target.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

/// Parameters of scale-offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleOffset {
    /// Size of a number in bytes: 1, 2, 4 or 8; 4 or 8 for floats.
    pub size: usize,
    /// Numbers are big-endian.
    pub is_big: bool,
    /// For floats: number of decimal digits after the point.
    pub decimals: Option<i32>,
    /// Bits of the fill value, if one is defined.
    pub fill: Option<u64>,
}

impl ScaleOffset {
    /// Length of the header: number of bits, size of the minimum, minimum, reserved.
    const HEADER: usize = 21;

    /// Largest length of `len` encoded bytes.
    pub(crate) fn most(len: usize) -> usize {
        len.saturating_add(Self::HEADER + 8)
    }

    pub(crate) fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let sizes: &[usize] = if self.decimals.is_some() { &[4, 8] } else { &[1, 2, 4, 8] };
        if !sizes.contains(&self.size) || !out.len().is_multiple_of(self.size) {
            return Err(invalid("scaleoffset: invalid parameters"));
        }
        let (header, data) = stored.split_at_checked(Self::HEADER).ok_or_else(too_short)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        let bits = number(&header[..4]) as u32;
        let least = number(&header[5..5 + usize::from(header[4]).min(8)]);
        let all = 8 * self.size as u32;
        if bits > all {
            return Err(invalid("scaleoffset: more bits than a number has"));
        }
        if bits == all {
            copy(data.get(..out.len()).ok_or_else(too_short)?, out)?;
            if self.is_big {
                out.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
            }
            return Ok(());
        }
        let marker = (1_u64 << bits) - 1;
        let mut input = Bits::new(data);
        for target in out.chunks_exact_mut(self.size) {
            let stored = input.take(bits).ok_or_else(too_short)?;
            let value = match (self.fill, self.decimals) {
                (Some(fill), _) if stored == marker => fill,
                (_, None) => stored.wrapping_add(least),
                (_, Some(decimals)) if self.size == 4 => {
                    let scaled = stored as i32 as f32 / 10_f32.powf(decimals as f32);
                    u64::from((scaled + f32::from_bits(least as u32)).to_bits())
                }
                (_, Some(decimals)) => {
                    let scaled = stored as i64 as f64 / 10_f64.powf(f64::from(decimals));
                    (scaled + f64::from_bits(least)).to_bits()
                }
            };
            put(value, self.is_big, target);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nbit_places_bits_in_both_byte_orders() {
        // 12 bits of two numbers: 0xabc, 0x123.
        let stored = [0xab, 0xc1, 0x23];
        let mut nbit = Nbit { size: 4, is_big: false, precision: 12, offset: 4 };
        let mut out = [0; 8];
        nbit.decode(&stored, &mut out).unwrap();
        assert_eq!(out, [0xc0, 0xab, 0, 0, 0x30, 0x12, 0, 0]);
        nbit.is_big = true;
        nbit.decode(&stored, &mut out).unwrap();
        assert_eq!(out, [0, 0, 0xab, 0xc0, 0, 0, 0x12, 0x30]);
        assert!(nbit.decode(&stored[..2], &mut out).is_err());
    }

    #[test]
    fn scale_offset_adds_the_minimum_and_keeps_the_fill_value() {
        let mut stored = vec![2, 0, 0, 0, 8];
        stored.extend((-5_i64).to_le_bytes());
        stored.resize(ScaleOffset::HEADER, 0);
        // 0, 1, 2, fill.
        stored.push(0b0001_1011);
        let fill = Some((-99_i32) as u32 as u64);
        let step = ScaleOffset { size: 4, is_big: false, decimals: None, fill };
        let mut out = [0; 16];
        step.decode(&stored, &mut out).unwrap();
        let values: Vec<i32> =
            out.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(values, [-5, -4, -3, -99]);
    }
}
