//! `.bin` file as a recording: consecutive waveforms, each with its buffers.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, date_time, samples};
use spile_core::{Attrs, DType, Error, OpenOptions, Parsed, Report, Result, Source, Value};

use crate::wire::{Buffer, FileHeader, Waveform};

/// Opens a file as a recording with one record per buffer.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let header = FileHeader::read(&source).map_err(recording::in_header)?;
    let mut report = Report::default();
    if header.size != source.len() {
        let message = format!("expected a file of {} bytes, found {}", header.size, source.len());
        report.warn("keysight-010", message).at(4);
    }
    let mut headers = vec![Region::new(0, header.len, RegionKind::Header, "file header", "")];
    let mut records = Vec::new();
    let mut at = header.len;
    for number in 1..=header.waveforms {
        let wave = Waveform::read(&source, at)
            .map_err(|e| recording::in_header(e.in_object(format!("waveform {number}"))))?;
        let label = wave.label.as_str();
        headers.push(Region::new(at, wave.len, RegionKind::Header, "waveform header", label));
        at = at.saturating_add(wave.len);
        for k in 1..=wave.buffers {
            recording::allow(records.len() as u64 + headers.len() as u64, limits)?;
            let located = |e: Error| {
                recording::in_header(e.in_object(format!("waveform {number}, buffer {k}")))
            };
            let buffer = Buffer::read(&source, at, header.wide).map_err(located)?;
            headers.push(Region::new(at, buffer.len, RegionKind::Header, "buffer header", ""));
            let data = at.saturating_add(buffer.len);
            records.push(record(&source, &wave, &buffer, k, data, &mut report).map_err(located)?);
            at = data.saturating_add(buffer.bytes);
        }
        recording::allow(headers.len() as u64, limits)?;
    }
    if at < source.len() {
        let message = format!("{} bytes after the last buffer", source.len() - at);
        report.note("keysight-011", message).at(at);
    }
    let summary = Attrs::from([
        ("version", Value::from(format!("AG{}", header.version))),
        ("waveforms", u64::from(header.waveforms).into()),
    ]);
    Recording { records, headers, summary, report, ..Recording::default() }.parsed(source, options)
}

/// Record of buffer `number`, whose samples start at offset `at`.
fn record(
    source: &Source,
    wave: &Waveform,
    buffer: &Buffer,
    number: u32,
    at: u64,
    report: &mut Report,
) -> Result<Record> {
    let (dtype, extreme) = match buffer.kind {
        1 => (DType::F32, ""),
        2 => (DType::F32, "max"),
        3 => (DType::F32, "min"),
        6 => (DType::U8, ""),
        other => {
            let name = match other {
                4 => " (times)",
                5 => " (counts)",
                _ => "",
            };
            let message = format!("unsupported buffer type {other}{name}");
            return Err(Error::unsupported("keysight-005", message).at(at - buffer.len + 4));
        }
    };
    if usize::from(buffer.sample_bytes) != dtype.size() {
        let message =
            format!("expected samples of {} bytes, found {}", dtype.size(), buffer.sample_bytes);
        return Err(Error::malformed("keysight-006", message).at(at - buffer.len + 6));
    }
    let count = buffer.bytes / dtype.size() as u64;
    if count != u64::from(wave.points) {
        let message = format!("expected {} samples, found {count}", wave.points);
        report.warn("keysight-012", message).at(at);
    }
    let array = samples(source, dtype, count, at, "keysight-007")?;
    let segment = if wave.segment > 0 { format!("segment{}", wave.segment) } else { String::new() };
    let buffer = if extreme.is_empty() && wave.buffers > 1 {
        format!("buffer{number}")
    } else {
        extreme.into()
    };
    let part = [segment, buffer].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>();
    let (instrument, serial) = wave.frame.split_once(':').unwrap_or((&wave.frame, ""));
    let acquisition = match wave.kind {
        2 => "peak detect",
        3 => "average",
        6 => "logic",
        _ => "",
    };
    let record = Record::new(wave.label.as_str(), array)
        .part(part.join("_"))
        .on_grid(wave.start, wave.step, unit_of_code(wave.x_units))
        .attr("units", if dtype == DType::U8 { "" } else { unit_of_code(wave.y_units) })
        .attr("label", wave.label.as_str())
        .attr("instrument", instrument)
        .attr("serial", serial)
        .attr("trigger_time", iso_time(&wave.date, &wave.time))
        .attr("acquisition", acquisition)
        .attr("acquisitions", u64::from(wave.count));
    Ok(if wave.segment > 0 { record.attr("time_tag", wave.time_tag) } else { record })
}

/// Unit symbol of a code in a `.bin` file; empty if unknown.
fn unit_of_code(code: u32) -> &'static str {
    match code {
        1 => "V",
        2 => "s",
        4 => "A",
        5 => "dB",
        6 => "Hz",
        _ => "",
    }
}

/// Date and time such as `07 AUG 2023` and `12:34:56` in ISO 8601; any other text is joined unchanged.
pub(crate) fn iso_time(date: &str, time: &str) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let unchanged = || [date, time].join(" ").trim().to_string();
    let parse = || {
        let mut parts = date.split([' ', '-']).filter(|p| !p.is_empty());
        let day = parts.next()?.parse().ok()?;
        let month = parts.next()?.to_ascii_uppercase();
        let month = MONTHS.iter().position(|m| *m == month)? as u32 + 1;
        let year = parts.next()?.parse().ok()?;
        let mut parts = time.split(':');
        let time =
            (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(date_time((year, month, day), time)).filter(|text| !text.is_empty())
    };
    parse().unwrap_or_else(unchanged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_dates_become_iso_8601_and_other_text_is_unchanged() {
        assert_eq!(iso_time("07 AUG 2023", "12:34:56"), "2023-08-07T12:34:56");
        assert_eq!(iso_time("07-AUG-2023", "01:02:03.5"), "2023-08-07T01:02:03.5");
        assert_eq!(iso_time("yesterday", ""), "yesterday");
        assert_eq!(iso_time("", ""), "");
    }
}
