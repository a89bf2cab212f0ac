//! On-disk structures: series of a file, and fields of a header. All numbers are little-endian.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, Result, Source, Wire};

/// A group of instruments with the same layout of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// DS1000B.
    B,
    /// DS1000C, DS1000CD, DS1000M, DS1000MD.
    C,
    /// DS1000D and DS1000E.
    E,
    /// DS1000Z and MSO1000Z.
    Z,
    /// DS2000, DS4000 and DS6000.
    UltraVision,
    /// `.wfm` of DHO800 and DHO1000.
    Dho,
    /// `.bin` of any series.
    Bin,
}

impl Series {
    /// Series of a file of `len` bytes that starts with `head`.
    pub(crate) fn of(head: &[u8], len: u64) -> Option<Self> {
        Some(match head {
            [b'R', b'G', b'0'..=b'9', b'0'..=b'9', ..] => Self::Bin,
            [0xa5, 0xa5, 0xa4, 0x01, ..] => Self::B,
            [0xa1, 0xa5, 0, 0, ..] => Self::C,
            [0xa5, 0xa5, 0, 0, ..] if is_c(head, len) => Self::C,
            [0xa5, 0xa5, 0, 0, ..] => Self::E,
            [0x01, 0xff, 0xff, 0xff, 0xa5 | 0xa6, 0xa5 | 0xa6, ..] => Self::Z,
            [0xa5, 0xa5, 0x38, 0, ..] => Self::UltraVision,
            // The first metadata block is compressed: a zlib stream follows its header.
            [2, 0, 0, 0, ..] if head.get(36) == Some(&0x78) => Self::Dho,
            _ => return None,
        })
    }
}

/// Whether a file that starts with a5 a5 00 00 is of a DS1000C: only its size tells it from a DS1000E.
fn is_c(head: &[u8], len: u64) -> bool {
    let Some(points) = head.get(28..32).and_then(|b| Some(u32::from_le_bytes(b.try_into().ok()?)))
    else {
        return false;
    };
    let enabled = [49, 73].into_iter().filter(|at| head.get(*at).is_some_and(|b| *b != 0)).count();
    let samples = u64::from(points) * enabled as u64;
    samples > 0 && (len == 256 + samples || len == 272 + samples)
}

/// Fields of a header, read at their offsets.
pub(crate) struct Header(Vec<u8>);

impl Header {
    /// Reads the first `len` bytes of the file.
    pub(crate) fn read(source: &Source, len: usize) -> Result<Self> {
        Ok(Self(fetch(source, 0, len)?))
    }

    /// The bytes from offset `at` on.
    pub(crate) fn field(&self, at: usize) -> Wire<'_> {
        let at = at.min(self.0.len());
        Wire::new(&self.0[at..], at as u64, ByteOrder::Little, "rigol-002")
    }

    pub(crate) fn u8(&self, at: usize) -> Result<u8> {
        self.field(at).u8()
    }

    pub(crate) fn i16(&self, at: usize) -> Result<f64> {
        self.field(at).i16().map(f64::from)
    }

    pub(crate) fn u32(&self, at: usize) -> Result<u64> {
        self.field(at).u32().map(u64::from)
    }

    pub(crate) fn i32(&self, at: usize) -> Result<f64> {
        self.field(at).i32().map(f64::from)
    }

    pub(crate) fn f32(&self, at: usize) -> Result<f64> {
        self.field(at).f32().map(f64::from)
    }

    /// Seconds of a number of picoseconds (64 bits).
    pub(crate) fn picoseconds(&self, at: usize) -> Result<f64> {
        Ok(1e-12 * self.field(at).i64()? as f64)
    }
}
