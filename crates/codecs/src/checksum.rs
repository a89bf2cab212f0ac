//! Checksums of four bytes after the data.

use spile_core::error::Result;

use crate::{invalid, too_short};

/// A checksum of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32, as in gzip.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// Adler-32, as in zlib.
    Adler32,
}

impl Checksum {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Adler32 => "adler32",
        }
    }

    /// The checksum of these bytes.
    pub fn of(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Crc32 => libdeflater::crc32(bytes),
            Self::Crc32c => crc32c(bytes),
            Self::Adler32 => libdeflater::adler32(bytes),
        }
    }

    /// The bytes after (with `first`) or before a valid checksum, which is little-endian.
    pub(crate) fn verify(self, stored: &[u8], first: bool) -> Result<&[u8]> {
        let (bytes, sum) = if first {
            stored.split_first_chunk::<4>().map(|(sum, bytes)| (bytes, sum))
        } else {
            stored.split_last_chunk::<4>()
        }
        .ok_or_else(too_short)?;
        let valid = self.of(bytes) == u32::from_le_bytes(*sum);
        valid.then_some(bytes).ok_or_else(|| invalid("chunk checksum mismatch"))
    }
}

/// The bytes before a valid CRC-32C checksum.
pub(crate) fn verify_crc32c(stored: &[u8]) -> Result<&[u8]> {
    let (bytes, sum) = stored.split_last_chunk::<4>().ok_or_else(too_short)?;
    let valid = crc32c(bytes) == u32::from_le_bytes(*sum);
    valid.then_some(bytes).ok_or_else(|| invalid("chunk checksum mismatch"))
}

/// The bytes before a valid Fletcher-32 checksum.
pub(crate) fn verify_fletcher32(stored: &[u8]) -> Result<&[u8]> {
    let (bytes, sum) = stored.split_last_chunk::<4>().ok_or_else(too_short)?;
    let stored = u32::from_le_bytes(*sum);
    let computed = fletcher32(bytes);
    // HDF5 libraries before 1.6.3 swapped the bytes of each half.
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if stored == computed || stored == swapped {
        return Ok(bytes);
    }
    Err(invalid(format!(
        "chunk checksum mismatch: computed {computed:#010x}, stored {stored:#010x}"
    )))
}

/// Fletcher-32 checksum of big-endian 16-bit words.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (0_u32, 0_u32);
    let fold = |n: u32| (n & 0xffff) + (n >> 16);
    // 360 words do not overflow 32 bits.
    for block in bytes.chunks(720) {
        for word in block.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            a += u32::from(word[0]) << 8 | u32::from(low);
            b += a;
        }
        (a, b) = (fold(a), fold(b));
    }
    (a, b) = (fold(a), fold(b));
    b << 16 | a
}

/// CRC-32C (Castagnoli).
pub fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut k = 0;
    while k < 256 {
        let mut sum = k as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0x82f6_3b78 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[k] = sum;
        k += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_may_be_before_the_data() {
        let sums = [
            (Checksum::Crc32, 0xcbf4_3926_u32),
            (Checksum::Crc32c, 0xe306_9283),
            (Checksum::Adler32, 0x091e_01de),
        ];
        for (kind, sum) in sums {
            let mut stored = sum.to_le_bytes().to_vec();
            stored.extend(b"123456789");
            assert_eq!(kind.verify(&stored, true).unwrap(), b"123456789", "{kind:?}");
            assert!(kind.verify(&stored, false).is_err());
            stored.rotate_left(4);
            assert_eq!(kind.verify(&stored, false).unwrap(), b"123456789", "{kind:?}");
            assert!(kind.verify(&stored[..3], true).is_err());
        }
    }

    #[test]
    fn checksums_are_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert!(verify_crc32c(&[1, 2, 3]).is_err());
    }
}
