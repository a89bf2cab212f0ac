//! DS1000B, DS1000C, DS1000D and DS1000E: samples of 8 bits that decrease with the voltage.

use spile_core::recording::{Record, Recording};
use spile_core::{DType, Result, Source};

use super::{Settings, channel, lane, recording};
use crate::wire::Header;

/// ADC counts per division.
const COUNTS: f64 = 25.0;

/// DS1000B: four slots of equal size from byte 420 on.
pub(super) fn open_b(source: &Source) -> Result<Recording> {
    let header = Header::read(source, 420)?;
    let model = header.field(4).text(8)?;
    let mut found = recording(&model, "", 420);
    let points = header.u32(60)?;
    let start = header.picoseconds(172)?;
    let step = 1.0 / header.f32(180)?;
    for index in 0..4 {
        let settings = VerticalSettings::read(&header, 68 + 24 * index, 1)?;
        if !settings.enabled {
            continue;
        }
        let array = lane(source, DType::U8, points, 420 + index as u64 * points, 1)?;
        let counts = settings.volts_per_count(true);
        let record = channel(index + 1, array, &settings.common())
            .scaled(counts * (99.0 - settings.shift), -counts)
            .on_grid(start - points as f64 * step / 2.0, step, "s");
        found.records.push(record);
    }
    Ok(found)
}

/// DS1000C: the samples of the enabled channels follow the header.
pub(super) fn open_c(source: &Source) -> Result<Recording> {
    let header = Header::read(source, 256)?;
    let mut at = if header.u8(0)? == 0xa5 { 272 } else { 256 };
    let mut found = recording("DS1000C", "", at);
    let points = header.u32(28)?;
    let start = header.picoseconds(92)?;
    let step = 1.0 / header.f32(100)?;
    for index in 0..2 {
        let settings = VerticalSettings::read(&header, 36 + 24 * index, 0)?;
        if !settings.enabled {
            continue;
        }
        let array = lane(source, DType::U8, points, at, 1)?;
        at += points;
        let counts = settings.volts_per_count(true);
        let record = channel(index + 1, array, &settings.common())
            .scaled(counts * (125.0 - settings.shift), -counts)
            .on_grid(start - points as f64 * step / 2.0, step, "s");
        found.records.push(record);
    }
    Ok(found)
}

/// DS1000D and DS1000E: as DS1000C, with a second time base and lines of a logic analyser.
pub(super) fn open_e(source: &Source) -> Result<Recording> {
    const ALTERNATING: u8 = 4;
    let header = Header::read(source, 276)?;
    let mut found = recording("DS1000D/E", "", 276);
    let depth = header.u32(28)?;
    // The end of a record that was stopped in roll mode is not valid.
    let invalid = match header.u32(20)? {
        0 => 0,
        stop => stop + 2,
    };
    let alternating = header.u8(142)? == ALTERNATING;
    let step = 1.0 / header.f32(100)?;
    let mut at = 276;
    for index in 0..2 {
        let settings = VerticalSettings::read(&header, 36 + 24 * index, 0)?;
        if !settings.enabled {
            continue;
        }
        let depth = match header.u32(232)? {
            own if index == 1 && own > 0 => own,
            _ => depth,
        };
        let array = lane(source, DType::U8, depth.saturating_sub(invalid), at, 1)?;
        at += depth;
        let start = header.picoseconds(if index == 1 && alternating { 264 } else { 112 })?;
        let counts = settings.volts_per_count(false);
        let record = channel(index + 1, array, &settings.common())
            .scaled(counts * (125.0 - settings.shift), -counts)
            .on_grid(start - depth as f64 * step / 2.0, step, "s");
        found.records.push(record);
    }
    if header.u8(120)? & 1 == 1 {
        let array = lane(source, DType::U16, depth, at, 1)?;
        let start = header.picoseconds(112)? - depth as f64 * step / 2.0;
        let record = Record::new("logic", array).on_grid(start, step, "s");
        found.records.push(record);
    }
    Ok(found)
}

/// Vertical settings of a channel.
struct VerticalSettings {
    enabled: bool,
    inverted: bool,
    probe: f64,
    /// Microvolts per division of the samples, without the probe.
    scale: f64,
    /// Shift in counts.
    shift: f64,
}

impl VerticalSettings {
    /// Reads the settings at offset `at`; the flags are at `at + 12 + extra`.
    fn read(header: &Header, at: usize, extra: usize) -> Result<Self> {
        Ok(Self {
            probe: header.f32(at + 8)?,
            enabled: header.u8(at + 13 + extra)? != 0,
            inverted: header.u8(at + 14 + extra)? != 0,
            scale: header.i32(at + 16)?,
            shift: header.i16(at + 20)?,
        })
    }

    /// Volts per ADC count; negative for an inverted channel of a series that stores `signed` samples of it.
    fn volts_per_count(&self, signed: bool) -> f64 {
        let volts = 1e-6 * self.scale * self.probe / COUNTS;
        if self.inverted && signed { -volts } else { volts }
    }

    fn common(&self) -> Settings {
        Settings {
            probe: Some(self.probe),
            inverted: self.inverted,
            units: "V",
            ..Settings::default()
        }
    }
}
