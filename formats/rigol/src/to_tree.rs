//! Records that all series share: 8- or 16-bit samples with a linear scaling and a grid around the trigger.

mod bin;
mod dho;
mod early;
mod ultravision;

use spile_core::format::{HEAD_BYTES, Region, RegionKind};
use spile_core::recording::{self, Record, Recording, within};
use spile_core::wire::fetch;
use spile_core::{
    ArrayDesc, DType, Error, Extents, Layout, OpenOptions, Order, Parsed, Result, Shape, Source,
    Value,
};

use crate::wire::Series;

/// Opens a file as a recording with one record per channel.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let head = fetch(&source, 0, HEAD_BYTES)?;
    let series = Series::of(&head, source.len()).ok_or_else(|| {
        Error::not_this_format("rigol-001", "no file of a Rigol oscilloscope").at(0)
    })?;
    let recording = match series {
        Series::Bin => return bin::open(source, options),
        Series::B => early::open_b(&source),
        Series::C => early::open_c(&source),
        Series::E => early::open_e(&source),
        Series::Z => ultravision::open_z(&source),
        Series::UltraVision => ultravision::open(&source),
        Series::Dho => dho::open(&source, &options.limits),
    };
    let mut recording = recording.map_err(recording::in_header)?;
    if recording.records.is_empty() {
        recording.report.warn("rigol-013", "no channel is enabled").at(0);
    }
    recording.parsed(source, options)
}

/// A recording without records: model, firmware, and a header of `len` bytes.
fn recording(model: &str, firmware: &str, len: u64) -> Recording {
    let mut recording = Recording::default();
    for (name, value) in [("model", model), ("firmware", firmware)] {
        if !value.is_empty() {
            recording.summary.push(name, value);
            recording.attrs.push(name, value);
        }
    }
    recording.headers.push(Region::new(0, len, RegionKind::Header, "header", model));
    recording
}

/// Samples of one of `stride` interleaved channels; the first one is at byte `offset`.
fn lane(source: &Source, dtype: DType, count: u64, offset: u64, stride: u64) -> Result<ArrayDesc> {
    if stride == 1 || count == 0 {
        return recording::samples(source, dtype, count, offset, "rigol-007");
    }
    let distance = stride * dtype.size() as u64;
    let last = (count - 1).saturating_mul(distance);
    let bytes = last.saturating_add(dtype.size() as u64);
    within(source, offset, bytes, "the samples", "rigol-007")?;
    let extents = Extents::one(offset, bytes);
    let layout = Layout::Rows { extents, stride: distance, order: Order::C };
    Ok(ArrayDesc::new(dtype, Shape::new([count]), layout))
}

/// Settings of a channel.
#[derive(Default)]
struct Settings {
    coupling: &'static str,
    bandwidth_limit: &'static str,
    probe: Option<f64>,
    inverted: bool,
    units: &'static str,
}

/// Record of channel `number`, which counts from 1, with its settings.
fn channel(number: usize, array: ArrayDesc, settings: &Settings) -> Record {
    let mut record = Record::new(format!("CH{number}"), array)
        .attr("units", settings.units)
        .attr("coupling", settings.coupling)
        .attr("bandwidth_limit", settings.bandwidth_limit);
    if let Some(probe) = settings.probe {
        record = record.attr("probe", probe);
    }
    if settings.inverted {
        record = record.attr("inverted", Value::Bool(true));
    }
    record
}

/// Unit of a code of the `.wfm` formats.
fn unit_of_code(code: u8) -> &'static str {
    ["W", "A", "V"].get(usize::from(code)).copied().unwrap_or("")
}

/// Name of a coupling code.
fn coupling_of_code(code: u8) -> &'static str {
    ["DC", "AC", "GND"].get(usize::from(code)).copied().unwrap_or("")
}

/// Probe ratio of a code: 0.01, 0.02, 0.05 and so on to 1000.
fn probe_of_code(code: u8) -> Option<f64> {
    let mantissa = [1.0, 2.0, 5.0][usize::from(code % 3)];
    (code < 16).then(|| mantissa * 10_f64.powi(i32::from(code / 3) - 2))
}
