//! Version 6: a header and the samples of each waveform.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Linear, OpenOptions, Result, Source, Wire};

/// Size of the fields of a waveform header in bytes.
const WAVEFORM: u64 = 264;

/// The waveforms as records.
pub(super) fn recording(source: &Source, options: &OpenOptions) -> Result<Recording> {
    let head = fetch(source, 0, 108)?;
    let mut wire = Wire::new(&head, 0, ByteOrder::Little, "siglent-002");
    wire.skip(4)?;
    let len = u64::from(wire.u16()?);
    wire.skip(2)?;
    let (model, serial, firmware) = (wire.text(32)?, wire.text(32)?, wire.text(32)?);
    let waves = wire.u32()?;
    let mut found = Recording::default();
    found.headers.push(Region::new(0, len, RegionKind::Header, "file header", ""));
    let mut at = len;
    for number in 1..=waves {
        recording::allow(u64::from(number), &options.limits)?;
        let place = |e: Error| recording::in_header(e.in_object(format!("waveform {number}")));
        let wave = Waveform::read(source, at).map_err(place)?;
        found.headers.push(Region::new(
            at,
            wave.data - at,
            RegionKind::Header,
            "waveform header",
            "",
        ));
        at = wave.data.saturating_add(wave.bytes);
        let record = wave.record(source).map_err(place)?;
        found.records.push(
            record
                .attr("instrument", model.as_str())
                .attr("serial", serial.as_str())
                .attr("firmware", firmware.as_str()),
        );
    }
    if at < source.len() {
        let message = format!("{} bytes after the last waveform", source.len() - at);
        found.report.note("siglent-007", message).at(at);
    }
    found.summary.push("version", "6");
    found.summary.push("model", model);
    Ok(found)
}

/// Header of a waveform.
struct Waveform {
    index: u16,
    label: String,
    date: String,
    /// Number of the sample at the trigger, interval and unit.
    time: (f64, f64, String),
    /// Stored number of 0, value of a count, and unit.
    values: (f64, f64, String),
    count: u64,
    bytes: u64,
    /// Offset of the samples.
    data: u64,
}

impl Waveform {
    fn read(source: &Source, at: u64) -> Result<Self> {
        let bytes = fetch(source, at, WAVEFORM as usize)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "siglent-002");
        wire.skip(4)?;
        let len = u64::from(wire.u32()?);
        if len < WAVEFORM {
            let message =
                format!("expected a waveform header of at least {WAVEFORM} bytes, found {len}");
            return Err(Error::malformed("siglent-008", message).at(at + 4));
        }
        wire.skip(6)?;
        let index = wire.u16()?;
        let (label, day, clock) = (wire.text(16)?, wire.text(16)?, wire.text(32)?);
        let mut axis = || -> Result<(f64, f64, String)> {
            wire.skip(16)?; // Scale and position of the display.
            let (origin, interval) = (wire.f64()?, wire.f64()?);
            wire.skip(32)?;
            Ok((origin, interval, wire.text(16)?))
        };
        let (time, values) = (axis()?, axis()?);
        let more = u64::from(wire.u32()?);
        wire.skip(4)?;
        let (count, bytes) = (wire.u64()?, wire.u64()?);
        let date = [day, clock].join(" ").trim().to_string();
        let data = at.checked_add(len).and_then(|end| end.checked_add(more));
        let data = data.filter(|data| *data <= source.len()).ok_or_else(|| {
            let message = "unexpected end of file: a waveform header exceeds the file";
            Error::truncated("siglent-002", message).at(at)
        })?;
        Ok(Self { index, label, date, time, values, count, bytes, data })
    }

    fn record(&self, source: &Source) -> Result<Record> {
        let dtype = match self.bytes.checked_div(self.count) {
            _ if self.count == 0 => DType::U8,
            Some(1) => DType::U8,
            Some(2) => DType::U16,
            Some(4) => DType::U32,
            _ => {
                let message = format!("{} samples in {} bytes", self.count, self.bytes);
                return Err(Error::unsupported("siglent-009", message).at(self.data));
            }
        };
        let (origin, interval, unit) = &self.time;
        let (zero, slope, value_unit) = &self.values;
        let channel = match self.label.as_str() {
            "" => format!("CH{}", self.index),
            label => label.to_string(),
        };
        let array = samples(source, dtype, self.count, self.data, "siglent-004")?;
        let unit = if unit.is_empty() { "s" } else { unit };
        Ok(Record::new(channel, array)
            .mapped(Linear { intercept: 0.0, slope: *slope, origin: *zero })
            .on_grid(-origin * interval, *interval, unit)
            .attr("units", value_unit.as_str())
            .attr("label", self.label.as_str())
            .attr("trigger_time", self.date.as_str()))
    }
}
