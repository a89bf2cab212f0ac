//! A `.bin` file as a recording: waveforms one behind the other, each with its buffers.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Role;
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, region, samples};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Value;

use crate::wire::{Buffer, FileHeader, Waveform};
use crate::words;

pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let header = FileHeader::read(&source).map_err(recording::in_header)?;
    let mut report = Report::default();
    if header.size != source.len() {
        let message = format!("the file says that it has {} bytes", header.size);
        report.warn("keysight-010", message).at(4);
    }
    let mut headers = vec![region(0, header.len, Role::Header, "file header", "")];
    let mut records = Vec::new();
    let mut at = header.len;
    for number in 1..=header.waveforms {
        let wave = Waveform::read(&source, at)
            .map_err(|e| recording::in_header(e.in_object(format!("waveform {number}"))))?;
        headers.push(region(at, wave.len, Role::Header, "waveform header", wave.label.as_str()));
        at = at.saturating_add(wave.len);
        for k in 1..=wave.buffers {
            recording::allow(records.len() as u64 + headers.len() as u64, limits)?;
            let place = |e: Error| {
                recording::in_header(e.in_object(format!("waveform {number}, buffer {k}")))
            };
            let buffer = Buffer::read(&source, at, header.wide).map_err(place)?;
            headers.push(region(at, buffer.len, Role::Header, "buffer header", ""));
            let data = at.saturating_add(buffer.len);
            records.push(record(&source, &wave, &buffer, k, data, &mut report).map_err(place)?);
            at = data.saturating_add(buffer.bytes);
        }
        recording::allow(headers.len() as u64, limits)?;
    }
    if at < source.len() {
        report
            .note("keysight-011", format!("{} bytes behind the last buffer", source.len() - at))
            .at(at);
    }
    let summary = vec![
        ("version".to_string(), Value::from(format!("AG{}", header.version))),
        ("waveforms".into(), u64::from(header.waveforms).into()),
    ];
    let file = Recording::new(source, records, headers, limits)?;
    Ok(file.with_summary(summary).with_findings(report))
}

fn record(
    source: &Source,
    wave: &Waveform,
    buffer: &Buffer,
    number: u32,
    at: u64,
    report: &mut Report,
) -> Result<Record> {
    let (dtype, side) = match buffer.kind {
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
            let message = format!("buffers of type {other}{name} are not read");
            return Err(Error::unsupported("keysight-005", message).at(at - buffer.len + 4));
        }
    };
    if usize::from(buffer.sample) != dtype.size() {
        let message =
            format!("samples of this buffer have {} bytes, not {}", dtype.size(), buffer.sample);
        return Err(Error::malformed("keysight-006", message).at(at - buffer.len + 6));
    }
    let count = buffer.bytes / dtype.size() as u64;
    if count != u64::from(wave.points) {
        let message = format!("a buffer has {count} samples, its waveform {}", wave.points);
        report.warn("keysight-012", message).at(at);
    }
    let array = samples(source, dtype, count, at, "keysight-007")?;
    let segment = if wave.segment > 0 { format!("segment{}", wave.segment) } else { String::new() };
    let buffer =
        if side.is_empty() && wave.buffers > 1 { format!("buffer{number}") } else { side.into() };
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
        .on_grid(wave.start, wave.step, words::unit(wave.x_units))
        .say("units", if dtype == DType::U8 { "" } else { words::unit(wave.y_units) })
        .say("label", wave.label.as_str())
        .say("instrument", instrument)
        .say("serial", serial)
        .say("trigger_time", words::when(&wave.date, &wave.time))
        .say("acquisition", acquisition)
        .say("acquisitions", u64::from(wave.count));
    Ok(if wave.segment > 0 { record.say("time_tag", wave.time_tag) } else { record })
}
