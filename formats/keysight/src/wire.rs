//! On-disk structures: headers of a `.bin` file, always little-endian.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, Error, Result, Source, Wire};

/// Minimum size of a waveform header in bytes, up to the label. Newer instruments write 140 bytes.
const MIN_WAVEFORM_BYTES: u32 = 128;

/// File header.
pub(crate) struct FileHeader {
    pub(crate) version: String,
    /// Whether sizes have 64 bits (AG03).
    pub(crate) wide: bool,
    pub(crate) size: u64,
    pub(crate) waveforms: u32,
    /// Size of the header in bytes.
    pub(crate) len: u64,
}

impl FileHeader {
    /// Reads the header at the start of the file.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 16)?;
        let mut wire = Wire::new(&head, 0, ByteOrder::Little, "keysight-002");
        if wire.take(2).ok() != Some(b"AG") {
            let message = "expected \"AG\" at the start of the file";
            return Err(Error::not_this_format("keysight-001", message).at(0));
        }
        let version = wire.text(2)?;
        let wide = match version.as_str() {
            "01" | "10" => false,
            "03" => true,
            other => {
                let message = format!("unknown version \"{other}\"");
                let error = Error::unsupported("keysight-003", message).at(2);
                return Err(error.hint("supported versions: 01, 03, 10"));
            }
        };
        let size = if wide { wire.u64()? } else { wire.u32()?.into() };
        let waveforms = wire.u32()?;
        Ok(Self { version, wide, size, waveforms, len: if wide { 16 } else { 12 } })
    }
}

/// Waveform header.
#[derive(Default)]
pub(crate) struct Waveform {
    /// Size of the header in bytes.
    pub(crate) len: u64,
    pub(crate) kind: u32,
    pub(crate) buffers: u32,
    pub(crate) points: u32,
    /// Number of acquisitions.
    pub(crate) count: u32,
    pub(crate) step: f64,
    pub(crate) start: f64,
    pub(crate) x_units: u32,
    pub(crate) y_units: u32,
    pub(crate) date: String,
    pub(crate) time: String,
    /// Model and serial number.
    pub(crate) frame: String,
    pub(crate) label: String,
    pub(crate) time_tag: f64,
    pub(crate) segment: u32,
}

impl Waveform {
    /// Reads the header at offset `at`.
    pub(crate) fn read(source: &Source, at: u64) -> Result<Self> {
        let bytes = fetch(source, at, 140)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "keysight-002");
        let len = wire.u32()?;
        if len < MIN_WAVEFORM_BYTES {
            let message = format!(
                "expected a waveform header of at least {MIN_WAVEFORM_BYTES} bytes, found {len}"
            );
            return Err(Error::malformed("keysight-004", message).at(at));
        }
        let mut header = Self {
            len: len.into(),
            kind: wire.u32()?,
            buffers: wire.u32()?,
            points: wire.u32()?,
            count: wire.u32()?,
            ..Self::default()
        };
        // Range and origin of the display.
        wire.skip(4 + 8)?;
        (header.step, header.start) = (wire.f64()?, wire.f64()?);
        (header.x_units, header.y_units) = (wire.u32()?, wire.u32()?);
        (header.date, header.time) = (wire.text(16)?, wire.text(16)?);
        (header.frame, header.label) = (wire.text(24)?, wire.text(16)?);
        if len >= 140 {
            (header.time_tag, header.segment) = (wire.f64()?, wire.u32()?);
        }
        Ok(header)
    }
}

/// Buffer header.
pub(crate) struct Buffer {
    /// Size of the header in bytes.
    pub(crate) len: u64,
    pub(crate) kind: u16,
    /// Size of a sample in bytes.
    pub(crate) sample_bytes: u16,
    /// Size of all samples in bytes.
    pub(crate) bytes: u64,
}

impl Buffer {
    /// Reads the header at offset `at`.
    pub(crate) fn read(source: &Source, at: u64, wide: bool) -> Result<Self> {
        let min_bytes = if wide { 16 } else { 12 };
        let bytes = fetch(source, at, min_bytes)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "keysight-002");
        let len = u64::from(wire.u32()?);
        if len < min_bytes as u64 {
            let message =
                format!("expected a buffer header of at least {min_bytes} bytes, found {len}");
            return Err(Error::malformed("keysight-004", message).at(at));
        }
        let (kind, sample_bytes) = (wire.u16()?, wire.u16()?);
        let bytes = if wide { wire.u64()? } else { wire.u32()?.into() };
        Ok(Self { len, kind, sample_bytes, bytes })
    }
}
