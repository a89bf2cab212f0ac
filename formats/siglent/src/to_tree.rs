//! Channels as a recording.

mod fixed;
mod six;

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{Record, Recording, samples};
use spile_core::wire::fetch;
use spile_core::{DType, Error, OpenOptions, Parsed, Report, Result, Source};

use crate::wire::{
    Fields, HEADER, OLD_DELAY, OLD_OFFSET, OLD_ON, OLD_SAMPLES, OLD_SCALE, OLD_TIME, Version,
};

/// Opens a file as a recording with one record per channel.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let head = fetch(&source, 0, HEADER)?;
    let fields = Fields(&head);
    let recording = match Version::of(&head, source.len()) {
        Some(Version::Six) => six::recording(&source, options)?,
        Some(Version::Fixed(layout)) => fixed::recording(&source, layout, fields)?,
        Some(Version::Old) => old(&source, fields)?,
        None => {
            let message = "no header of a version of Siglent oscilloscopes";
            return Err(Error::not_this_format("siglent-001", message).at(0));
        }
    };
    recording.parsed(source, options)
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
