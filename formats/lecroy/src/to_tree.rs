//! Descriptor and data blocks as a recording.
//!
//! The blocks are contiguous: descriptor, user text, trigger times, RIS times, first array, second array. An
//! absent block has length 0.

use spile_core::format::{Region, RegionKind};
use spile_core::recording::{self, Record, Recording, SEGMENT, samples, within};
use spile_core::{
    ArrayDesc, Attrs, ByteOrder, Error, Limits, OpenOptions, Parsed, Report, Result, Shape, Source,
    Value, Wire,
};

use crate::wire::Descriptor;

/// Size in bytes of a trigger entry: time and offset.
const TRIGGER_BYTES: u64 = 16;

/// Longer user text is truncated to this number of bytes.
const MAX_USER_TEXT: u64 = 64 << 10;

/// Opens a file as a recording with one record per array, of all segments.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let desc = Descriptor::read(&source).map_err(recording::in_header)?;
    let mut report = Report::default();
    let [descriptor, user, trigger_times, ris, first, second] = desc.blocks;
    let names = ["descriptor", "user text", "trigger times", "RIS times"];
    let mut headers = vec![Region::new(0, desc.at, RegionKind::Text, "prefix", "")];
    let mut at = desc.at;
    for (name, len) in names.into_iter().zip([descriptor, user, trigger_times, ris]) {
        within(&source, at, len, name, "lecroy-002")?;
        let role = if name == "user text" { RegionKind::Text } else { RegionKind::Header };
        headers.push(Region::new(at, len, role, name, ""));
        at += len;
    }
    let text = read_user_text(&source, desc.at + descriptor, user, limits)?;
    let triggers = read_triggers(&source, &desc, desc.at + descriptor + user, limits)?;
    let size = desc.dtype.size() as u64;
    if desc.segments > desc.count.max(1) {
        let message = format!("{} segments, but only {} samples", desc.segments, desc.count);
        return Err(Error::malformed("lecroy-008", message).at(desc.at));
    }
    if first != desc.count * size {
        let message = format!("expected an array of {} bytes, found {first}", desc.count * size);
        report.warn("lecroy-010", message).at(desc.at);
    }
    if desc.count % desc.segments != 0 {
        let message =
            format!("{} samples in {} segments of unequal length", desc.count, desc.segments);
        report.warn("lecroy-011", message).at(desc.at);
    }
    // The second array complements the first: minima and maxima, or real and imaginary parts.
    let arrays: &[(u64, &str)] = if second == 0 {
        &[(at, "")]
    } else {
        &[(at, "first"), (at.saturating_add(first), "second")]
    };
    // Check the total size before creating records for a possibly wrong number of segments.
    for (start, _) in arrays {
        samples(&source, desc.dtype, desc.count, *start, "lecroy-006")?;
    }
    let fields = desc.template;
    let label = desc.field(fields.label).text(16)?;
    let instrument = desc.field(fields.instrument).text(16)?;
    let serial = desc.field(fields.serial).i32()?;
    let units = desc.field(fields.units[0]).text(48)?;
    let time_units = desc.field(fields.units[1]).text(48)?;
    let gain = f64::from(desc.field(fields.gain).f32()?);
    let offset = f64::from(desc.field(fields.offset).f32()?);
    let interval = f64::from(desc.field(fields.interval).f32()?);
    let first_time = desc.field(fields.start).f64()?;
    let trigger_time = desc.trigger_time()?;
    let settings = desc.settings()?;
    let mut records = Vec::new();
    for (start, array_name) in arrays {
        let points = desc.count / desc.segments;
        let total = points * desc.segments;
        let mut array = samples(&source, desc.dtype, total, *start, "lecroy-006")?;
        let mut starts = vec![first_time];
        if desc.segments > 1 {
            array = ArrayDesc::new(desc.dtype, Shape::new([desc.segments, points]), array.layout);
            array.dims[0] = SEGMENT.into();
            starts = triggers.iter().map(|trigger| trigger.1).collect();
        }
        let origin = starts.first().copied().unwrap_or(first_time);
        let mut record = Record::new(label.as_str(), array)
            .part(*array_name)
            .scaled(-offset, gain)
            .on_grid(origin, interval, &time_units)
            .starting(&starts)
            .attr("units", units.as_str())
            .attr("label", label.as_str())
            .attr("instrument", instrument.as_str())
            .attr("serial", i64::from(serial))
            .attr("trigger_time", trigger_time.as_str());
        if !triggers.is_empty() {
            record = record.along("time_tag", triggers.iter().map(|trigger| trigger.0));
        }
        record.attrs.extend(settings.iter().map(|(name, value)| (name, value.clone())));
        records.push(record);
    }
    let mut summary = Attrs::from([
        ("template", Value::from(desc.template_name()?)),
        ("instrument", instrument.into()),
        ("record type", settings.get("record_type").cloned().unwrap_or_else(|| "".into())),
        ("samples", desc.count.into()),
        ("segments", desc.segments.into()),
    ]);
    let mut attrs = Attrs::new();
    if !text.is_empty() {
        summary.push("user text", text.as_str());
        attrs.push("user_text", text);
    }
    let headers: Vec<Region> = headers.into_iter().filter(|r| r.len > 0).collect();
    Recording { records, headers, attrs, summary, report }.parsed(source, options)
}

/// The user text, truncated to [`MAX_USER_TEXT`].
fn read_user_text(source: &Source, at: u64, len: u64, limits: &Limits) -> Result<String> {
    let len = limits.allow(len.min(MAX_USER_TEXT), "the user text")?;
    let bytes = source.read_vec(at, len as u64)?;
    Wire::new(&bytes, at, ByteOrder::Little, "lecroy-002").text(bytes.len())
}

/// Triggers of the segments, in seconds: time since the first trigger, and time from the segment's trigger to
/// its first sample. Empty for a single segment.
fn read_triggers(
    source: &Source,
    desc: &Descriptor,
    at: u64,
    limits: &Limits,
) -> Result<Vec<(f64, f64)>> {
    let len = desc.blocks[2];
    if desc.segments == 1 || len == 0 {
        return Ok(Vec::new());
    }
    let needed = desc.segments.saturating_mul(TRIGGER_BYTES);
    if len < needed {
        let (expected, found) = (desc.segments, len / TRIGGER_BYTES);
        let message = format!("expected {expected} trigger times, found {found}");
        return Err(Error::malformed("lecroy-007", message).at(at));
    }
    limits.allow(needed.saturating_mul(2), "the trigger times")?;
    let bytes = source.read_vec(at, needed)?;
    let mut wire = Wire::new(&bytes, at, desc.order, "lecroy-002");
    (0..desc.segments).map(|_| Ok((wire.f64()?, wire.f64()?))).collect()
}
