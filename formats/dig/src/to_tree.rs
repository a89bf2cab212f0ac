//! Header and samples as a recording.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, samples};
use spile_core::{
    Attrs, ByteOrder, DType, Error, Kind, OpenOptions, Parsed, Report, Result, Source, Value,
};

use crate::wire::{Header, SAMPLES_OFFSET, TEXT_OFFSET};

/// Sample format, which is not stored in the file. The default is unsigned and little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFormat {
    /// Whether samples are signed.
    pub signed: bool,
    /// Byte order of the samples.
    pub order: ByteOrder,
}

impl Default for SampleFormat {
    fn default() -> Self {
        Self { signed: false, order: ByteOrder::Little }
    }
}

/// Opens a file with samples of the default format.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    open_as(source, SampleFormat::default(), options)
}

/// Opens a file with samples of the given format.
pub(crate) fn open_as(
    source: Source,
    format: SampleFormat,
    options: &OpenOptions,
) -> Result<Parsed> {
    let header = Header::read(&source).map_err(recording::in_header)?;
    let kind = if format.signed { Kind::Int } else { Kind::UInt };
    let dtype = DType::new(kind, header.bits / 8, format.order);
    let dtype = dtype.ok_or_else(|| {
        Error::unsupported("dig-003", format!("unsupported sample size: {} bits", header.bits))
            .at(TEXT_OFFSET)
    })?;
    let array = samples(&source, dtype, header.count, SAMPLES_OFFSET, "dig-004")?;
    let record = Record::new("", array)
        .scaled(header.intercept, header.slope)
        .on_grid(header.start, header.step, "s")
        .attr("units", "V")
        .attr("instrument", header.system.as_str())
        .attr("trigger_time", header.time.as_str());
    let mut report = Report::default();
    if let Some(end) = header.end().filter(|end| *end < source.len()) {
        let message = format!("{} bytes after the last sample", source.len() - end);
        report.note("dig-010", message).at(end);
    }
    let headers = vec![
        Region::new(0, 512, RegionKind::Unknown, "preamble", ""),
        Region::new(512, 512, RegionKind::Text, "text header", ""),
    ];
    let summary = Attrs::from([
        ("system", Value::from(header.system.as_str())),
        ("time", header.time.as_str().into()),
        ("samples", header.count.into()),
        ("bits", u64::from(header.bits).into()),
    ]);
    let records = vec![record];
    Recording { records, headers, summary, report, ..Recording::default() }.parsed(source, options)
}
