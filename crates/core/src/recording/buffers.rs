//! Files of waveforms and their buffers: the `.bin` container that Keysight, Agilent and Rigol oscilloscopes
//! write, always little-endian. It has a file header, and per waveform a header and its buffers, each with a
//! header and samples. A [`Dialect`] has what differs between vendors.

use std::collections::HashSet;

use super::{Record, Recording, allow, bits, date_time, in_header, samples};
use crate::format::{Region, RegionKind};
use crate::wire::fetch;
use crate::{
    Attrs, ByteOrder, DType, Error, OpenOptions, Parsed, Report, Result, Source, Value, Wire,
};

/// Minimum size of a waveform header in bytes, up to the label. Newer instruments write 140 bytes.
const MIN_WAVEFORM_BYTES: u32 = 128;

/// What differs between the vendors of this container.
pub struct Dialect {
    /// First two bytes of the file.
    pub magic: &'static str,
    /// The supported versions, bytes 2 and 3 of the file, and whether their sizes have 64 bits.
    pub versions: &'static [(&'static str, bool)],
    /// Whether the origin is the time from the first sample to the trigger, not the time of the first sample.
    pub origin_is_distance: bool,
    /// Whether the only segment of a channel has the number 1, as the first of several, and not 0.
    pub counts_only_segment: bool,
    /// Element type of a buffer by its type and the size of a sample in bytes, and the part of the waveform that
    /// it has (`max`, `min`).
    pub buffer: fn(kind: u16, bytes: u16) -> Option<(DType, &'static str)>,
    /// Name of a channel without a label, by the number of its waveform from 1.
    pub unnamed: fn(number: u32) -> String,
    /// Codes of errors and findings.
    pub codes: Codes,
}

/// Codes of errors and findings.
pub struct Codes {
    /// Another format.
    pub format: &'static str,
    /// The file ends inside a header.
    pub header: &'static str,
    /// Unknown version.
    pub version: &'static str,
    /// Header too short.
    pub header_len: &'static str,
    /// Unsupported buffer type.
    pub kind: &'static str,
    /// Wrong sample size.
    pub sample_size: &'static str,
    /// The file ends inside the samples.
    pub samples: &'static str,
    /// The file size differs from the header.
    pub file_size: &'static str,
    /// Bytes after the last buffer.
    pub rest: &'static str,
    /// The number of samples differs from the header.
    pub count: &'static str,
}

impl Dialect {
    /// Opens a file as a recording with one record per buffer. Fails on unknown versions and buffer types, and
    /// on files that end early.
    pub fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let limits = &options.limits;
        let header = FileHeader::read(self, &source).map_err(in_header)?;
        let mut report = Report::default();
        if header.size != source.len() {
            let message =
                format!("expected a file of {} bytes, found {}", header.size, source.len());
            report.warn(self.codes.file_size, message).at(4);
        }
        let mut headers = vec![Region::new(0, header.len, RegionKind::Header, "file header", "")];
        let mut records = Vec::new();
        let mut at = header.len;
        for number in 1..=header.waveforms {
            let wave = Waveform::read(self, &source, at)
                .map_err(|e| in_header(e.in_object(format!("waveform {number}"))))?;
            let label = wave.label.as_str();
            headers.push(Region::new(at, wave.len, RegionKind::Header, "waveform header", label));
            at = at.saturating_add(wave.len);
            for k in 1..=wave.buffers {
                allow(records.len() as u64 + headers.len() as u64, limits)?;
                let located =
                    |e: Error| in_header(e.in_object(format!("waveform {number}, buffer {k}")));
                let buffer = Buffer::read(self, &source, at, header.wide).map_err(located)?;
                headers.push(Region::new(at, buffer.len, RegionKind::Header, "buffer header", ""));
                let data = at.saturating_add(buffer.len);
                let place = (number, k, data);
                let record = self.record(&source, &wave, &buffer, place, &mut report);
                records.push((record.map_err(located)?, wave.segment));
                at = data.saturating_add(buffer.bytes);
            }
            allow(headers.len() as u64, limits)?;
        }
        self.set_segments(&mut records);
        if at < source.len() {
            let message = format!("{} bytes after the last buffer", source.len() - at);
            report.note(self.codes.rest, message).at(at);
        }
        let summary = Attrs::from([
            ("version", Value::from(format!("{}{}", self.magic, header.version))),
            ("waveforms", u64::from(header.waveforms).into()),
        ]);
        let records = records.into_iter().map(|(record, _)| record);
        let records = records.flat_map(with_lines).collect();
        Recording { records, headers, summary, report, ..Recording::default() }
            .parsed(source, options)
    }

    /// Sets the segment of each record, and its time tag, where a channel has segments.
    fn set_segments(&self, records: &mut [(Record, Segment)]) {
        let several: HashSet<String> = (records.iter())
            .filter(|(_, segment)| segment.number > u32::from(self.counts_only_segment))
            .map(|(record, _)| record.channel.clone())
            .collect();
        for (record, segment) in records {
            if segment.number > 0 && several.contains(&record.channel) {
                record.segment = Some(segment.number.into());
                record.attrs.push("time_tag", segment.time_tag);
            }
        }
    }

    /// Record of a buffer: the numbers of the waveform and the buffer, and the offset of the samples are given.
    fn record(
        &self,
        source: &Source,
        wave: &Waveform,
        buffer: &Buffer,
        (waveform, number, at): (u32, u32, u64),
        report: &mut Report,
    ) -> Result<Record> {
        let Some((dtype, extreme)) = (self.buffer)(buffer.kind, buffer.sample_bytes) else {
            let name = match buffer.kind {
                4 => " (times)",
                5 => " (counts)",
                _ => "",
            };
            let message = format!("unsupported buffer type {}{name}", buffer.kind);
            return Err(Error::unsupported(self.codes.kind, message).at(at - buffer.len + 4));
        };
        if usize::from(buffer.sample_bytes) != dtype.size() {
            let message = format!(
                "expected samples of {} bytes, found {}",
                dtype.size(),
                buffer.sample_bytes
            );
            return Err(Error::malformed(self.codes.sample_size, message).at(at - buffer.len + 6));
        }
        let count = buffer.bytes / dtype.size() as u64;
        if count != u64::from(wave.points) {
            let message = format!("expected {} samples, found {count}", wave.points);
            report.warn(self.codes.count, message).at(at);
        }
        let array = samples(source, dtype, count, at, self.codes.samples)?;
        let part = if extreme.is_empty() && wave.buffers > 1 {
            format!("buffer{number}")
        } else {
            extreme.into()
        };
        let (instrument, serial) = wave.frame.split_once(':').unwrap_or((&wave.frame, ""));
        let acquisition = match wave.kind {
            2 => "peak detect",
            3 => "average",
            6 => "logic",
            _ => "",
        };
        let channel = match wave.label.as_str() {
            "" => (self.unnamed)(waveform),
            label => label.to_string(),
        };
        let start = if self.origin_is_distance { -wave.start } else { wave.start };
        let digital = dtype == DType::U8 || wave.kind == 6;
        let record = Record::new(channel, array)
            .part(part)
            .on_grid(start, wave.step, unit_of_code(wave.x_units))
            .attr("units", if digital { "" } else { unit_of_code(wave.y_units) })
            .attr("label", wave.label.as_str())
            .attr("instrument", instrument)
            .attr("serial", serial)
            .attr("trigger_time", iso_time(&wave.date, &wave.time))
            .attr("acquisition", acquisition)
            .attr("acquisitions", u64::from(wave.count));
        Ok(record)
    }
}

/// A record, and the lines of a record of a logic analyser, whose bytes have a bit per line.
fn with_lines(record: Record) -> Vec<Record> {
    if record.attrs.get_str("acquisition") != Some("logic") {
        return vec![record];
    }
    let channel = record.channel.clone();
    bits::with_lines(record, |bit| format!("{channel}_D{bit}"))
}

/// File header.
struct FileHeader {
    version: String,
    /// Whether sizes have 64 bits.
    wide: bool,
    size: u64,
    waveforms: u32,
    /// Size of the header in bytes.
    len: u64,
}

impl FileHeader {
    /// Reads the header at the start of the file.
    fn read(dialect: &Dialect, source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 16)?;
        let mut wire = Wire::new(&head, 0, ByteOrder::Little, dialect.codes.header);
        if wire.take(2).ok() != Some(dialect.magic.as_bytes()) {
            let message = format!("expected \"{}\" at the start of the file", dialect.magic);
            return Err(Error::not_this_format(dialect.codes.format, message).at(0));
        }
        let version = wire.text(2)?;
        let Some((_, wide)) = dialect.versions.iter().find(|(known, _)| *known == version) else {
            let known: Vec<&str> = dialect.versions.iter().map(|(known, _)| *known).collect();
            let message = format!("unknown version \"{version}\"");
            let error = Error::unsupported(dialect.codes.version, message).at(2);
            return Err(error.hint(format!("supported versions: {}", known.join(", "))));
        };
        let wide = *wide;
        let size = if wide { wire.u64()? } else { wire.u32()?.into() };
        let waveforms = wire.u32()?;
        Ok(Self { version, wide, size, waveforms, len: if wide { 16 } else { 12 } })
    }
}

/// Waveform header.
#[derive(Default)]
struct Waveform {
    /// Size of the header in bytes.
    len: u64,
    kind: u32,
    buffers: u32,
    points: u32,
    /// Number of acquisitions.
    count: u32,
    step: f64,
    start: f64,
    x_units: u32,
    y_units: u32,
    date: String,
    time: String,
    /// Model and serial number.
    frame: String,
    label: String,
    segment: Segment,
}

/// Number of a segment from 1, and its trigger time in seconds since that of the first.
#[derive(Clone, Copy, Default)]
struct Segment {
    number: u32,
    time_tag: f64,
}

impl Waveform {
    /// Reads the header at offset `at`.
    fn read(dialect: &Dialect, source: &Source, at: u64) -> Result<Self> {
        let bytes = fetch(source, at, 140)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, dialect.codes.header);
        let len = wire.u32()?;
        if len < MIN_WAVEFORM_BYTES {
            let message = format!(
                "expected a waveform header of at least {MIN_WAVEFORM_BYTES} bytes, found {len}"
            );
            return Err(Error::malformed(dialect.codes.header_len, message).at(at));
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
            header.segment = Segment { time_tag: wire.f64()?, number: wire.u32()? };
        }
        Ok(header)
    }
}

/// Buffer header.
struct Buffer {
    /// Size of the header in bytes.
    len: u64,
    kind: u16,
    /// Size of a sample in bytes.
    sample_bytes: u16,
    /// Size of all samples in bytes.
    bytes: u64,
}

impl Buffer {
    /// Reads the header at offset `at`.
    fn read(dialect: &Dialect, source: &Source, at: u64, wide: bool) -> Result<Self> {
        let min_bytes = if wide { 16 } else { 12 };
        let bytes = fetch(source, at, min_bytes)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, dialect.codes.header);
        let len = u64::from(wire.u32()?);
        if len < min_bytes as u64 {
            let message =
                format!("expected a buffer header of at least {min_bytes} bytes, found {len}");
            return Err(Error::malformed(dialect.codes.header_len, message).at(at));
        }
        let (kind, sample_bytes) = (wire.u16()?, wire.u16()?);
        let bytes = if wide { wire.u64()? } else { wire.u32()?.into() };
        Ok(Self { len, kind, sample_bytes, bytes })
    }
}

/// Unit symbol of a code; empty if unknown.
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

/// Date and time such as `07 AUG 2023` or `2023-08-07` and `12:34:56` in ISO 8601; any other text is joined
/// unchanged.
pub fn iso_time(date: &str, time: &str) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let unchanged = || [date, time].join(" ").trim().to_string();
    let parse = || {
        let parts: Vec<&str> = date.split([' ', '-']).filter(|p| !p.is_empty()).collect();
        let [first, month, last] = parts[..] else { return None };
        let month = if let Ok(number) = month.parse() {
            number
        } else {
            let name = month.to_ascii_uppercase();
            MONTHS.iter().position(|m| *m == name)? as u32 + 1
        };
        let (day, year) = if first.len() == 4 { (last, first) } else { (first, last) };
        let date = (year.parse().ok()?, month, day.parse().ok()?);
        let mut parts = time.split(':');
        let time =
            (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(date_time(date, time)).filter(|text| !text.is_empty())
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
        assert_eq!(iso_time("2023-08-07", "01:02:03"), "2023-08-07T01:02:03");
        assert_eq!(iso_time("yesterday", ""), "yesterday");
        assert_eq!(iso_time("", ""), "");
    }
}
