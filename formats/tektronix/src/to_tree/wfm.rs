//! `WFM#001` to `WFM#003`: one array of all frames.
//!
//! The specifications of the first frame are followed by the update specifications of all other frames, their
//! curve specifications, and the samples: one slot per frame, all with the length of the first.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, bits, date_time, joined, samples, within};
use spile_core::{
    ArrayDesc, Attrs, Error, Limits, OpenOptions, Parsed, Report, Result, Source, Value, Wire,
};

use super::{iq, metadata};
use crate::wire::wfm::{Curve, Header, UPDATE_BYTES, Update};

/// Data type of digital lines.
const DIGITAL: i32 = 6;

/// Opens a file as a recording with one record of all frames, or one per frame if their lengths differ.
pub(super) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let header = Header::read(&source).map_err(recording::in_header)?;
    let frames = read_frames(&source, &header, limits)?;
    let slot = u64::from(header.curve.end);
    let size = header.dtype.size() as u64;
    let metadata = metadata::read(&source, header.end)?;
    let is_iq = header.dtype.size() == 2 && metadata.get("IQ_centerFrequency").is_some();
    let mut arrays = Vec::new();
    for (k, (_, curve)) in (0_u64..).zip(&frames) {
        let Curve { start, stop, .. } = *curve;
        let read_samples = || {
            let bytes = stop.checked_sub(start).filter(|_| u64::from(stop) <= slot);
            let bytes = bytes.ok_or_else(|| {
                let message =
                    format!("samples at bytes {start} to {stop} exceed a slot of {slot} bytes");
                Error::malformed("tektronix-017", message).at(header.tables_offset)
            })?;
            let first =
                k.saturating_mul(slot).saturating_add(header.curve_offset + u64::from(start));
            samples(&source, header.dtype, u64::from(bytes) / size, first, "tektronix-006")
        };
        arrays.push(read_samples().map_err(|e| e.in_object(format!("frame {}", k + 1)))?);
    }
    let record = |array: ArrayDesc, update: Update| {
        let (array, step, map) = if is_iq {
            // The interval is that of the numbers; a sample has two.
            let array = iq::complex(array, header.offset, header.scale);
            (array, header.step * 2.0, (0.0, 1.0))
        } else {
            (array, header.step, (header.offset, header.scale))
        };
        let mut record = Record::new(header.label.as_str(), array)
            .scaled(map.0, map.1)
            .on_grid(header.start, step, &header.time_units)
            .attr("units", header.units.as_str())
            .attr("label", header.label.as_str())
            .attr("trigger_time", iso_time(update.seconds, update.fraction))
            .attr("storage", storage_type(header.storage));
        record.attrs.extend(metadata.iter().map(|(name, value)| (name, value.clone())));
        record
    };
    let offset = |update: &Update| update.trigger_offset * header.step;
    let has_offset = frames.iter().any(|(update, _)| offset(update) != 0.0);
    let stacked = match arrays.len() {
        1 => None,
        _ if is_iq => None,
        _ => joined(&arrays.iter().collect::<Vec<_>>())?,
    };
    let mut records = Vec::new();
    if let Some(array) = stacked {
        let mut record = record(array, header.update);
        let updates = || frames.iter().map(|(update, _)| update);
        if has_offset {
            record = record.along("trigger_offset", updates().map(offset));
        }
        if updates().all(|update| update.seconds > 0) {
            let first = header.update;
            record = record.along("time_tag", updates().map(|update| update.since(&first)));
        }
        records.push(record);
    } else {
        for (k, (array, (update, _))) in (1_u64..).zip(arrays.into_iter().zip(&frames)) {
            let mut record = record(array, *update);
            if has_offset && offset(update).is_finite() {
                record = record.attr("trigger_offset", offset(update));
            }
            records.push(if header.frames > 1 { record.segment(k) } else { record });
        }
    }
    if header.data_type == DIGITAL {
        records = records.into_iter().flat_map(with_lines).collect();
    }
    let mut report = Report::default();
    if header.end > source.len() {
        let message = format!("expected a file of {} bytes, found {}", header.end, source.len());
        report.error("tektronix-011", message).at(source.len());
    }
    let mut headers = vec![
        Region::new(0, 78, RegionKind::Header, "file information", ""),
        Region::new(78, header.tables_offset - 78, RegionKind::Header, "waveform header", ""),
        Region::new(
            header.tables_offset,
            header.table_bytes(),
            RegionKind::Header,
            "frame specifications",
            "",
        ),
    ];
    if header.end >= 8 && header.end <= source.len() {
        headers.push(Region::new(header.end - 8, 8, RegionKind::Header, "checksum", ""));
    }
    let order = format!("{:?} endian", header.order).to_lowercase();
    let summary = Attrs::from([
        ("kind", Value::from(format!("WFM#00{}", header.version))),
        ("byte order", order.into()),
        ("frames", header.frames.into()),
        ("summary frame", u64::from(header.summary_frame).into()),
        ("digital", (header.data_type == DIGITAL).into()),
    ]);
    Recording { records, headers, summary, report, ..Recording::default() }.parsed(source, options)
}

/// Specifications of all frames. A curve specification that is all zero is replaced by that of the first
/// frame.
fn read_frames(source: &Source, header: &Header, limits: &Limits) -> Result<Vec<(Update, Curve)>> {
    let more = header.frames - 1;
    let bytes = header.table_bytes();
    within(source, header.tables_offset, bytes, "the frame specifications", "tektronix-007")?;
    recording::allow(header.frames, limits)?;
    let tables = source.read_vec(header.tables_offset, bytes)?;
    let (updates, curves) = tables.split_at((UPDATE_BYTES * more) as usize);
    let mut update = Wire::new(updates, header.tables_offset, header.order, "tektronix-007");
    let at = header.tables_offset + updates.len() as u64;
    let mut curve = Wire::new(curves, at, header.order, "tektronix-007");
    let mut frames = vec![(header.update, header.curve)];
    for _ in 0..more {
        let own = Curve::read(&mut curve)?;
        let curve = if own == Curve::default() { header.curve } else { own };
        frames.push((Update::read(&mut update)?, curve));
    }
    Ok(frames)
}

/// A record, and the digital lines of its samples, a bit each.
fn with_lines(record: Record) -> Vec<Record> {
    let prefix =
        if record.channel.is_empty() { String::new() } else { format!("{}_", record.channel) };
    bits::with_lines(record, |bit| format!("{prefix}D{bit}"))
}

/// Name of a WFM storage type; empty for plain samples.
fn storage_type(number: i32) -> &'static str {
    match number {
        1 => "min/max",
        2 => "vertical histogram",
        3 => "horizontal histogram",
        4 => "row order",
        5 => "column order",
        _ => "",
    }
}

/// Trigger time in ISO 8601, given in seconds since 1970 and a fraction of a second; empty if the clock was
/// not set.
fn iso_time(seconds: i32, fraction: f64) -> String {
    if seconds <= 0 || !(0.0..1.0).contains(&fraction) {
        return String::new();
    }
    let seconds = i64::from(seconds);
    let (days, time) = (seconds / 86_400, (seconds % 86_400) as u32);
    let second = f64::from(time % 60) + fraction;
    date_time(date(days), (time / 3600, time / 60 % 60, second))
}

/// Year, month and day, given in days since 1970. Years are counted from March, so that a leap day is their
/// last day.
fn date(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        assert_eq!(iso_time(1_691_400_000, 0.5), "2023-08-07T09:20:00.5");
        assert_eq!(iso_time(951_782_400, 0.0), "2000-02-29T00:00:00");
        assert_eq!(iso_time(i32::MAX, 0.0), "2038-01-19T03:14:07");
        assert_eq!(iso_time(0, 0.0) + &iso_time(5, f64::NAN), "");
    }
}
