//! `WFM#001` to `WFM#003`: frames as records.
//!
//! Behind the first frame's specifications lie the update specifications of all others, then their curve
//! specifications, then the samples: frame `k` in a slot of its own, all slots as long as the first.

use spile_core::error::{Error, Result};
use spile_core::format::Role;
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, date_time, region, samples, within};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::Wire;

use crate::wire::{Curve, Header, Update};

pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let header = Header::read(&source).map_err(recording::in_header)?;
    let frames = frames(&source, &header, limits)?;
    let slot = u64::from(header.curve.end);
    let size = header.dtype.size() as u64;
    let mut records = Vec::new();
    for (k, (update, curve)) in (0_u64..).zip(frames) {
        let object = || format!("frame {}", k + 1);
        let samples_of = || {
            let bytes =
                curve.stop.checked_sub(curve.start).filter(|_| u64::from(curve.stop) <= slot);
            let bytes = bytes.ok_or_else(|| {
                let Curve { start, stop, .. } = curve;
                let message = format!("samples from {start} to {stop} of a slot of {slot} bytes");
                Error::malformed("tektronix-009", message).at(header.tables)
            })?;
            let first =
                k.saturating_mul(slot).saturating_add(header.curve_offset + u64::from(curve.start));
            samples(&source, header.dtype, u64::from(bytes) / size, first, "tektronix-006")
        };
        let array = samples_of().map_err(|e| e.in_object(object()))?;
        let record = Record::new(header.label.as_str(), array)
            .scaled(header.offset, header.scale)
            .on_grid(header.start, header.step, &header.time_units)
            .say("units", header.units.as_str())
            .say("label", header.label.as_str())
            .say("trigger_time", trigger_time(update))
            .say("storage", storage(header.storage));
        let part = if header.frames > 1 { format!("segment{}", k + 1) } else { String::new() };
        records.push(record.part(part));
    }
    let mut report = Report::default();
    if header.end > source.len() {
        let message = format!("the file ends after {} of {} bytes", source.len(), header.end);
        report.error("tektronix-011", message).at(source.len());
    }
    let mut headers = vec![
        region(0, 78, Role::Header, "file information", ""),
        region(78, header.tables - 78, Role::Header, "waveform header", ""),
        region(header.tables, header.table_bytes(), Role::Header, "tables of frames", ""),
    ];
    if header.end >= 8 && header.end <= source.len() {
        headers.push(region(header.end - 8, 8, Role::Header, "sum of all bytes", ""));
    }
    let order = format!("{:?} endian", header.order).to_lowercase();
    let summary = vec![
        ("kind".to_string(), Value::from(format!("WFM#00{}", header.version))),
        ("byte order".into(), order.into()),
        ("frames".into(), header.frames.into()),
        ("summary frame".into(), u64::from(header.summary_frame).into()),
        ("digital".into(), (header.data_type == 6).into()),
    ];
    let file = Recording::new(source, records, headers, limits)?;
    Ok(file.with_summary(summary).with_findings(report))
}

/// Trigger and place of every frame. One whose specification is empty has its samples where the first has
/// them in its slot.
fn frames(source: &Source, header: &Header, limits: &Limits) -> Result<Vec<(Update, Curve)>> {
    let more = header.frames - 1;
    let bytes = header.table_bytes();
    within(source, header.tables, bytes, "the tables of the frames", "tektronix-007")?;
    recording::allow(header.frames, limits)?;
    let tables = source.read_vec(header.tables, bytes)?;
    let (updates, curves) = tables.split_at(24 * more as usize);
    let mut update = Wire::new(updates, header.tables, header.order, "tektronix-007");
    let at = header.tables + updates.len() as u64;
    let mut curve = Wire::new(curves, at, header.order, "tektronix-007");
    let mut frames = vec![(header.update, header.curve)];
    for _ in 0..more {
        let own = Curve::read(&mut curve)?;
        let curve = if own == Curve::default() { header.curve } else { own };
        frames.push((Update::read(&mut update)?, curve));
    }
    Ok(frames)
}

/// The word for how values are stored; nothing for samples.
fn storage(number: i32) -> &'static str {
    match number {
        1 => "min/max",
        2 => "vertical histogram",
        3 => "horizontal histogram",
        4 => "row order",
        5 => "column order",
        _ => "",
    }
}

/// Date and time of a trigger; a clock that was never set says nothing.
fn trigger_time(update: Update) -> String {
    if update.seconds <= 0 || !(0.0..1.0).contains(&update.fraction) {
        return String::new();
    }
    let seconds = i64::from(update.seconds);
    let (days, time) = (seconds / 86_400, (seconds % 86_400) as u32);
    let second = f64::from(time % 60) + update.fraction;
    date_time(date(days), (time / 3600, time / 60 % 60, second))
}

/// Year, month and day of a number of days since 1970.
fn date(mut days: i64) -> (i64, u32, u32) {
    let mut year = 1970;
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let mut month = 1;
    for length in [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        let at =
            |seconds, fraction| trigger_time(Update { trigger_offset: 0.0, fraction, seconds });
        assert_eq!(at(1_691_400_000, 0.5), "2023-08-07T09:20:00.5");
        assert_eq!(at(951_782_400, 0.0), "2000-02-29T00:00:00");
        assert_eq!(at(i32::MAX, 0.0), "2038-01-19T03:14:07");
        assert_eq!(at(0, 0.0) + &at(5, f64::NAN), "");
    }
}
