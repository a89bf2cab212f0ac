//! Description and samples as a recording: one record per channel.

use std::path::{Path, PathBuf};

use spile_core::format::{HEAD_BYTES, Region, RegionKind};
use spile_core::recording::{self, Record, Recording, within};
use spile_core::wire::fetch;
use spile_core::{
    ArrayDesc, ByteOrder, DType, Error, Extents, Layout, OpenOptions, Order, Parsed, Report,
    Result, Shape, Source, Wire,
};

use crate::wire::{Properties, SAMPLES_HEADER, Samples, is_description, sample_format};

const DESCRIPTION: &str = ".bin";
const SAMPLES: &str = ".Wfm.bin";

/// Opens either of the two files.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let head = fetch(&source, 0, HEAD_BYTES)?;
    let (description, samples) = if is_description(&head) {
        let other = sibling(&source, DESCRIPTION, SAMPLES)?;
        (source, other)
    } else if Samples::plausible(&head, source.len()) {
        let other = sibling(&source, SAMPLES, DESCRIPTION)?;
        let own = source.path().map(Path::to_path_buf).unwrap_or_default();
        (Source::open(other)?, own)
    } else {
        let message = "neither a description nor samples of a Rohde & Schwarz oscilloscope";
        return Err(Error::not_this_format("rs-001", message).at(0));
    };
    let start = description.len();
    let len = options.limits.allow(start.saturating_mul(2), "the description")? as u64 / 2;
    let text = description.read_vec(0, len)?;
    let own = description.path().map(Path::to_path_buf).unwrap_or_default();
    let source = Source::joined(&own, &[own.clone(), samples])?;
    let text = String::from_utf8_lossy(&text);
    let waveform = Waveform::read(&source, start, &Properties::parse(&text));
    waveform.map_err(recording::in_header)?.recording(&source, start)?.parsed(source, options)
}

/// The other file of a waveform, in the same folder. Fails if it does not exist.
fn sibling(source: &Source, from: &str, to: &str) -> Result<PathBuf> {
    let missing = |what: String| {
        let message = format!("Rohde & Schwarz waveform without its second file: {what}");
        Error::unsupported("rs-006", message).at(0)
    };
    let path = source.path().filter(|path| source.parts().is_empty() && path.is_file());
    let path = path.ok_or_else(|| missing("it is not a file in a folder".into()))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let folded = name.to_ascii_lowercase();
    let stem = folded.strip_suffix(&from.to_ascii_lowercase()).map_or(name, |s| &name[..s.len()]);
    let other = path.with_file_name(format!("{stem}{to}"));
    if other.is_file() { Ok(other) } else { Err(missing(format!("no {stem}{to}"))) }
}

/// A channel: its name, and the index of its settings if several channels are exported.
struct Channel {
    name: String,
    scaling: Option<(f64, f64)>,
}

/// What the description says about the samples.
struct Waveform {
    dtype: DType,
    /// Whether each row starts with its time.
    timed: bool,
    channels: Vec<Channel>,
    acquisitions: u64,
    /// Rows per acquisition, those before the record, and rows of the record.
    rows: [u64; 3],
    grid: (f64, f64),
    units: String,
    firmware: String,
    report: Report,
}

impl Waveform {
    fn read(source: &Source, start: u64, properties: &Properties<'_>) -> Result<Self> {
        let format = properties.text("SignalFormat", "Value", "eRS_SIGNAL_FORMAT_")?;
        let kind = properties.text("TraceType", "Value", "eRS_TRACE_TYPE_")?;
        let known = sample_format(format).filter(|_| matches!(kind, "NORMAL" | "AVERAGE"));
        let Some((dtype, code)) = known else {
            let message = format!(
                "unsupported sample format {format} or trace type {kind} of Rohde & Schwarz"
            );
            return Err(Error::unsupported("rs-007", message).at(0));
        };
        let rows = [
            properties.count("SignalHardwareRecordLength")?,
            properties.count("LeadingSettlingSamples")?,
            properties.count("RecordLength")?,
        ];
        let header = Samples::read(&fetch(source, start, SAMPLES_HEADER as usize)?, start)?;
        if (header.code, header.count) != (code, rows[0]) {
            let message = format!(
                "expected samples of format {code} in records of {}, found format {} and {}",
                rows[0], header.code, header.count
            );
            return Err(Error::malformed("rs-008", message).at(start));
        }
        if rows[1].checked_add(rows[2]).is_none_or(|end| end > rows[0]) {
            let message = format!("{} samples after {} of {}", rows[2], rows[1], rows[0]);
            return Err(Error::malformed("rs-009", message).at(0));
        }
        let (first, last) =
            (properties.number("XStart", "Value")?, properties.number("XStop", "Value")?);
        let mut waveform = Self {
            dtype,
            timed: code == 6,
            channels: channels(properties, dtype != DType::F32)?,
            acquisitions: properties.count("NumberOfAcquisitions")?.max(1),
            rows,
            grid: (first, (last - first) / rows[2].max(1) as f64),
            units: unit(properties.get("BaseUnit", "Value").unwrap_or("")),
            firmware: properties.get("FirmwareVersion", "Value").unwrap_or("").into(),
            report: Report::default(),
        };
        if waveform.channels.is_empty() {
            waveform.report.warn("rs-010", "no channel is exported").at(0);
        }
        Ok(waveform)
    }

    /// Bytes of a row of all channels.
    fn row_bytes(&self) -> u64 {
        let times = if self.timed { 8 } else { 0 };
        times + (self.channels.len() * self.dtype.size()) as u64
    }

    fn recording(mut self, source: &Source, start: u64) -> Result<Recording> {
        let row = self.row_bytes();
        let total = row.checked_mul(self.rows[0]).and_then(|n| n.checked_mul(self.acquisitions));
        let data = start + SAMPLES_HEADER;
        within(source, data, total.unwrap_or(u64::MAX), "the samples", "rs-011")?;
        let end = data + total.unwrap_or(0);
        if end < source.len() {
            let message = format!("{} bytes after the samples", source.len() - end);
            self.report.note("rs-012", message).at(end);
        }
        // Several acquisitions are shown with the samples before and after the record.
        let (skipped, count) = match self.acquisitions {
            1 => (self.rows[1], self.rows[2]),
            _ => (0, self.rows[0]),
        };
        let before = (self.rows[1] - skipped) as f64;
        let grid = (self.grid.0 - before * self.grid.1, self.grid.1);
        let shape = match self.acquisitions {
            1 => Shape::new([count]),
            several => Shape::new([several, count]),
        };
        let times = if self.timed { 8 } else { 0 };
        let column = |dtype: DType, offset: u64| -> ArrayDesc {
            let size = dtype.size() as u64;
            let elements = count * self.acquisitions;
            let bytes = elements.saturating_sub(1) * row + size * elements.min(1);
            let extents = Extents::one(data + skipped * row + offset, bytes);
            let layout = Layout::Rows { extents, stride: row, order: Order::C };
            ArrayDesc::new(dtype, shape.clone(), layout)
        };
        let mut records = Vec::new();
        if self.timed && !self.is_uniform(source, data + skipped * row, row, count)? {
            let message = "the times of the samples are not uniform; they are the array \"time\"";
            self.report.warn("rs-013", message).at(data);
            let times = column(DType::F64, 0);
            records.push(Record::new("time", times).attr("units", "s"));
        }
        for (index, channel) in self.channels.iter().enumerate() {
            let offset = times + (index * self.dtype.size()) as u64;
            let mut record = Record::new(channel.name.as_str(), column(self.dtype, offset))
                .on_grid(grid.0, grid.1, "s")
                .attr("units", self.units.as_str());
            if self.acquisitions > 1 {
                // The grid is that of the samples, the second dimension.
                record.array.coords.swap(0, 1);
                record.array.dims = vec!["segment".into(), "time".into()];
            }
            if let Some((intercept, slope)) = channel.scaling {
                record = record.scaled(intercept, slope);
            }
            records.push(record);
        }
        let headers = vec![
            Region::new(0, start, RegionKind::Header, "description", ""),
            Region::new(start, SAMPLES_HEADER, RegionKind::Header, "header", ""),
        ];
        let mut found = Recording { records, headers, report: self.report, ..Recording::default() };
        found.summary.push("acquisitions", self.acquisitions);
        if !self.firmware.is_empty() {
            found.summary.push("firmware", self.firmware.as_str());
            found.attrs.push("firmware", self.firmware);
        }
        Ok(found)
    }

    /// Whether the first and last stored times are those of the grid.
    fn is_uniform(&self, source: &Source, at: u64, row: u64, count: u64) -> Result<bool> {
        let (start, step) = self.grid;
        for index in [0, count.saturating_sub(1)] {
            let bytes = fetch(source, at + index * row, 8)?;
            let stored = Wire::new(&bytes, at, ByteOrder::Little, "rs-002").f64()?;
            let expected = start + index as f64 * step;
            // The trigger can lie between two samples.
            let near = (stored - expected).abs() <= 1e-3 * step.abs();
            if !near {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The exported channels; `scaled` for samples of an ADC.
fn channels(properties: &Properties<'_>, scaled: bool) -> Result<Vec<Channel>> {
    if properties.text("MultiChannelExport", "Value", "")? != "eRS_ONOFF_ON" {
        let name = channel_name(properties.text("Source", "Value", "")?);
        let scaling = scaled.then(|| scaling(properties, "", "Value")).transpose()?;
        return Ok(vec![Channel { name, scaling }]);
    }
    let mut all = Vec::new();
    for index in 0..64 {
        let key = format!("I_{index}");
        match properties.get("MultiChannelExportState", &key) {
            None => break,
            Some("eRS_ONOFF_ON") => {}
            Some(_) => continue,
        }
        let name = channel_name(properties.text("MultiChannelSource", &key, "")?);
        let scaling = scaled.then(|| scaling(properties, "MultiChannel", &key)).transpose()?;
        all.push(Channel { name, scaling });
    }
    Ok(all)
}

/// Intercept and slope of samples of an ADC.
fn scaling(properties: &Properties<'_>, prefix: &str, attribute: &str) -> Result<(f64, f64)> {
    let of = |name: &str, attribute: &str| properties.number(&format!("{prefix}{name}"), attribute);
    let scale = of("VerticalScale", attribute)?;
    let divisions = of("VerticalScale", "StepFactor")?;
    let levels = properties.number("NofQuantisationLevels", "Value")?;
    let intercept = of("VerticalOffset", attribute)? - of("VerticalPosition", attribute)? * scale;
    Ok((intercept, divisions * scale / levels))
}

/// `CH1` of a source such as `eRS_SIGNAL_SOURCE_CH1_TR1` or `C1W1`; the name itself for others.
fn channel_name(source: &str) -> String {
    let name = source.strip_prefix("eRS_SIGNAL_SOURCE_").unwrap_or(source);
    let number = name.strip_prefix("CH").or_else(|| name.strip_prefix('C'));
    let digits: String = number.unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { name.into() } else { format!("CH{digits}") }
}

/// Unit of a code such as `eRS_UNIT_LEVEL_V`.
fn unit(code: &str) -> String {
    match code.rsplit('_').next() {
        Some(symbol @ ("V" | "A" | "W")) => symbol.into(),
        _ => String::new(),
    }
}
