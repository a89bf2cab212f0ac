//! Channels as a recording.

mod six;

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Linear, OpenOptions, Parsed, Report, Result, Source};

use crate::wire::{
    Fields, HEADER, Layout, OLD_DELAY, OLD_OFFSET, OLD_ON, OLD_SAMPLES, OLD_SCALE, OLD_TIME,
    Version,
};

/// Counts per division, and divisions of the screen, where the file does not have them.
const COUNTS: f64 = 25.0;
const DIVISIONS: f64 = 14.0;

/// Opens a file as a recording with one record per channel.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let head = fetch(&source, 0, HEADER)?;
    let fields = Fields(&head);
    let recording = match Version::of(&head, source.len()) {
        Some(Version::Six) => six::recording(&source, options)?,
        Some(Version::Fixed(layout)) => fixed(&source, layout, fields)?,
        Some(Version::Old) => old(&source, fields)?,
        None => {
            let message = "no header of a version of Siglent oscilloscopes";
            return Err(Error::not_this_format("siglent-001", message).at(0));
        }
    };
    recording.parsed(source, options)
}

/// Versions 0.1 to 5: the samples of all channels that are on, one channel after the other.
fn fixed(source: &Source, layout: &Layout, fields: Fields<'_>) -> Result<Recording> {
    let header = |e: Error| recording::in_header(e);
    let on = layout.channels(fields).map_err(header)?;
    let length = u64::from(fields.u32(layout.length).map_err(header)?);
    let rate = fields.quantity(layout.rate).map_err(header)?;
    let time_scale = fields.quantity(layout.time_scale).map_err(header)?;
    let (size, first) = (layout.size(fields), layout.first(fields).map_err(header)?);
    let [order, divisions, counts] = match layout.settings {
        None => [None; 3],
        Some(offsets) => offsets.map(Some),
    };
    let divisions = match divisions {
        Some(offset) => f64::from(fields.at(offset).i32().map_err(header)?),
        None => DIVISIONS,
    };
    // From version 3 on, the delay is subtracted.
    let delay = match layout.settings {
        Some(_) => fields.quantity(layout.delay).map_err(header)?,
        None => 0.0,
    };
    let start = -(time_scale * divisions / 2.0) - delay;
    let big = match order {
        Some(offset) => fields.at(offset).u8().map_err(header)? != 0,
        None => false,
    };
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    let dtype = if size == 1 { DType::U8 } else { DType::U16.with_order(order) };
    let middle = if size == 1 { 128.0 } else { 32_768.0 };
    let mut found = Recording::default();
    let mut at = first;
    for (k, _) in on.iter().enumerate().filter(|(_, on)| **on) {
        let scale = fields.quantity(layout.scale[k]).map_err(header)?;
        let offset = fields.quantity(layout.offset[k]).map_err(header)?;
        let per_division = match counts {
            Some(at) => f64::from(fields.at(at + 4 * k).i32().map_err(header)?),
            None => COUNTS,
        };
        let array = samples(source, dtype, length, at, "siglent-004")?;
        let mut record = Record::new(format!("CH{}", k + 1), array)
            .mapped(Linear { intercept: offset, slope: scale / per_division, origin: middle })
            .on_grid(start, 1.0 / rate, "s")
            .attr("units", "V")
            .attr("volts_per_division", scale);
        if let Some(at) = layout.probe {
            let probe = fields.at(at + 8 * k).f64().map_err(header)?;
            record = record.attr("probe_attenuation", probe);
        }
        found.records.push(record);
        at = at.saturating_add(length * size);
    }
    let switch = |at: Option<usize>, count: usize| {
        let is_on = |k: usize| at.is_some_and(|at| fields.u32(at + 4 * k).is_ok_and(|on| on == 1));
        (0..count).any(is_on)
    };
    let others = [(layout.digital, 1, "digital lines"), (layout.math, 4, "calculated channels")];
    for (field, count, what) in others {
        if switch(field, count) {
            let message = format!("{what} of Siglent oscilloscopes are not read");
            found.report.warn("siglent-005", message).at(at.min(source.len()));
        }
    }
    found.headers = vec![Region::new(0, first.min(source.len()), RegionKind::Header, "header", "")];
    found.summary.push("version", layout.name);
    Ok(found)
}

/// The old platform: the manual does not say how samples are scaled, so they are shown as stored.
fn old(source: &Source, fields: Fields<'_>) -> Result<Recording> {
    let on = |k: usize| fields.u32(OLD_ON + 4 * k).is_ok_and(|on| on == 1);
    let channels: Vec<usize> = (0..4).filter(|k| on(*k)).collect();
    let length = (source.len() - OLD_SAMPLES.min(source.len())) / channels.len().max(1) as u64;
    let mut found = Recording::default();
    for (number, k) in channels.into_iter().enumerate() {
        let at = OLD_SAMPLES + number as u64 * length;
        let record = Record::new(
            format!("CH{}", k + 1),
            samples(source, DType::U8, length, at, "siglent-004")?,
        )
        .attr("millivolts_per_division", f64::from(fields.at(OLD_SCALE + 4 * k).f32()?))
        .attr("vertical_offset_pixels", i64::from(fields.at(OLD_OFFSET + 4 * k).i32()?))
        .attr("time_base_index", i64::from(fields.at(OLD_TIME).i32()?))
        .attr("delay_pixels", i64::from(fields.at(OLD_DELAY).i32()?));
        found.records.push(record);
    }
    let mut report = Report::default();
    let message = "Siglent SDS1000X or SDS2000X: scaling and time base depend on the model and are not known; stored \
                   numbers are shown";
    report.warn("siglent-006", message).at(0);
    found.report = report;
    found.headers = vec![Region::new(0, OLD_SAMPLES, RegionKind::Header, "header", "")];
    found.summary.push("version", "old platform");
    Ok(found)
}
