//! The headers of a `.bin` file as they lie in it, always little-endian.

use spile_core::error::{Error, Result};
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

/// Bytes of a waveform's header up to its label, which the oldest instruments end with; the newer ones
/// write 140.
const SHORTEST: u32 = 128;

/// The first bytes of a file.
pub(crate) struct FileHeader {
    pub(crate) version: String,
    /// Lengths are 64 bits wide (AG03).
    pub(crate) wide: bool,
    pub(crate) size: u64,
    pub(crate) waveforms: u32,
    /// Its own bytes.
    pub(crate) len: u64,
}

impl FileHeader {
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 16)?;
        let mut wire = Wire::new(&head, 0, ByteOrder::Little, "keysight-002");
        if wire.take(2).ok() != Some(b"AG") {
            let error = Error::not_this_format("keysight-001", "does not begin with \"AG\"");
            return Err(error.at(0));
        }
        let version = wire.text(2)?;
        let wide = match version.as_str() {
            "01" | "10" => false,
            "03" => true,
            other => {
                let message = format!("version \"{other}\" is not known");
                let error = Error::unsupported("keysight-003", message).at(2);
                return Err(error.hint("01, 03 and 10 are read"));
            }
        };
        let size = if wide { wire.u64()? } else { wire.u32()?.into() };
        let waveforms = wire.u32()?;
        Ok(Self { version, wide, size, waveforms, len: if wide { 16 } else { 12 } })
    }
}

/// The header of a waveform.
pub(crate) struct Waveform {
    /// Its own bytes.
    pub(crate) len: u64,
    pub(crate) kind: u32,
    pub(crate) buffers: u32,
    pub(crate) points: u32,
    /// How many acquisitions are in it.
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
    pub(crate) fn read(source: &Source, at: u64) -> Result<Self> {
        let bytes = fetch(source, at, 140)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "keysight-002");
        let len = wire.u32()?;
        if len < SHORTEST {
            let message =
                format!("the header of a waveform has {SHORTEST} bytes or more, not {len}");
            return Err(Error::malformed("keysight-004", message).at(at));
        }
        let [kind, buffers, points, count] = [wire.u32()?, wire.u32()?, wire.u32()?, wire.u32()?];
        // How it was shown: range and origin of the display.
        wire.skip(4 + 8)?;
        let (step, start) = (wire.f64()?, wire.f64()?);
        let (x_units, y_units) = (wire.u32()?, wire.u32()?);
        let (date, time) = (wire.text(16)?, wire.text(16)?);
        let (frame, label) = (wire.text(24)?, wire.text(16)?);
        let (time_tag, segment) = if len >= 140 { (wire.f64()?, wire.u32()?) } else { (0.0, 0) };
        Ok(Self {
            len: len.into(),
            kind,
            buffers,
            points,
            count,
            step,
            start,
            x_units,
            y_units,
            date,
            time,
            frame,
            label,
            time_tag,
            segment,
        })
    }
}

/// The header of a buffer of samples.
pub(crate) struct Buffer {
    /// Its own bytes.
    pub(crate) len: u64,
    pub(crate) kind: u16,
    /// Bytes of a sample, and of all.
    pub(crate) sample: u16,
    pub(crate) bytes: u64,
}

impl Buffer {
    pub(crate) fn read(source: &Source, at: u64, wide: bool) -> Result<Self> {
        let shortest = if wide { 16 } else { 12 };
        let bytes = fetch(source, at, shortest)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "keysight-002");
        let len = u64::from(wire.u32()?);
        if len < shortest as u64 {
            let message = format!("the header of a buffer has {shortest} bytes or more, not {len}");
            return Err(Error::malformed("keysight-004", message).at(at));
        }
        let (kind, sample) = (wire.u16()?, wire.u16()?);
        let bytes = if wide { wire.u64()? } else { wire.u32()?.into() };
        Ok(Self { len, kind, sample, bytes })
    }
}
