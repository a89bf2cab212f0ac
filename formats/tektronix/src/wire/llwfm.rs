//! Header of `LLWFM`, the `.wfm` of older instruments, with big-endian 16-bit samples.
//!
//! `LLWFM #`, the number of digits of the length, the length, then magic, length, 32 bytes for the display, a
//! header of 80 bytes, 16 samples of precharge, the samples, 16 samples of postcharge, and a checksum.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, Error, Result, Source, Wire};

/// Name at the start of the file, after an optional colon.
pub(crate) const NAME: &[u8] = b"LLWFM #";

/// Offset of the header from the magic number.
const HEADER_OFFSET: u64 = 8 + 32;

/// Offset of the precharge from the magic number.
pub(crate) const PRECHARGE_OFFSET: u64 = HEADER_OFFSET + 80;

/// Size in bytes of the precharge and of the postcharge: 16 samples each.
pub(crate) const CHARGE_BYTES: u64 = 32;

/// Contents of the header.
pub(crate) struct Header {
    /// Offset of the magic number.
    pub(crate) base: u64,
    /// Number of bytes from the magic number to the end.
    pub(crate) length: u64,
    pub(crate) magic: i32,
    pub(crate) x_unit: i16,
    pub(crate) step: f64,
    pub(crate) unit: i16,
    pub(crate) offset: f64,
    pub(crate) position: f64,
    pub(crate) gain: f64,
    pub(crate) count: u64,
    /// Position of the trigger in percent of the record.
    pub(crate) trigger: i16,
}

impl Header {
    /// Reads the header.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 256)?;
        let colon = usize::from(head.first() == Some(&b':'));
        let invalid = || {
            let message = "expected a digit and a length after \"LLWFM #\"";
            Error::malformed("tektronix-012", message).at(colon as u64 + NAME.len() as u64)
        };
        let text = head.get(colon + NAME.len()..).unwrap_or(&[]);
        let [digits @ b'1'..=b'9', rest @ ..] = text else { return Err(invalid()) };
        let digits = usize::from(digits - b'0');
        let length =
            rest.get(..digits).and_then(|d| std::str::from_utf8(d).ok()).ok_or_else(invalid)?;
        let length = length.parse().map_err(|_| invalid())?;
        let base = (colon + NAME.len() + 1 + digits) as u64;
        let at = |offset: u64| {
            let rest = head.get((base + offset) as usize..).unwrap_or(&[]);
            Wire::new(rest, base + offset, ByteOrder::Big, "tektronix-007")
        };
        Ok(Self {
            base,
            length,
            magic: at(0).i32()?,
            x_unit: at(HEADER_OFFSET + 14).i16()?,
            step: at(HEADER_OFFSET + 16).f64()?,
            unit: at(HEADER_OFFSET + 24).i16()?,
            offset: at(HEADER_OFFSET + 26).f64()?,
            position: at(HEADER_OFFSET + 34).f64()?,
            gain: at(HEADER_OFFSET + 42).f64()?,
            count: at(HEADER_OFFSET + 50).u32()?.into(),
            trigger: at(HEADER_OFFSET + 54).i16()?,
        })
    }

    /// Offset of the first sample.
    pub(crate) fn samples_offset(&self) -> u64 {
        self.base + PRECHARGE_OFFSET + CHARGE_BYTES
    }

    /// Offset of the checksum.
    pub(crate) fn checksum_offset(&self) -> u64 {
        self.samples_offset() + 2 * self.count + CHARGE_BYTES
    }
}
