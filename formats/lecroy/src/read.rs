//! Descriptor and blocks as a recording.
//!
//! Blocks follow each other without gaps: descriptor, user text, trigger times, RIS times, first and second
//! array. A file without one of them says 0 for its length.

use spile_core::error::{Error, Result};
use spile_core::format::{Region, Role};
use spile_core::limits::Limits;
use spile_core::recording::{self, Record, Recording, region, samples, within};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_core::wire::{ByteOrder, Wire};

use crate::wire::{Descriptor, record_type};

/// Bytes of a trigger time and its offset.
const TRIGGER: u64 = 16;

/// User text up to this length is an attribute.
const USER_TEXT: u64 = 64 << 10;

pub(crate) fn open(source: Source, limits: &Limits) -> Result<Recording> {
    let desc = Descriptor::read(&source).map_err(recording::in_header)?;
    let mut report = Report::default();
    let [descriptor, user, triggers, ris, first, second] = desc.blocks;
    let names = ["descriptor", "user text", "trigger times", "RIS times"];
    let mut headers = vec![region(0, desc.at, Role::Text, "prefix", "")];
    let mut at = desc.at;
    for (name, len) in names.into_iter().zip([descriptor, user, triggers, ris]) {
        within(&source, at, len, name, "lecroy-002")?;
        let role = if name == "user text" { Role::Text } else { Role::Header };
        headers.push(region(at, len, role, name, ""));
        at += len;
    }
    let text = user_text(&source, desc.at + descriptor, user, limits)?;
    let times = Triggers::read(&source, &desc, desc.at + descriptor + user, limits)?;
    let size = desc.dtype.size() as u64;
    if desc.segments > desc.count.max(1) {
        let message = format!("{} samples in {} segments", desc.count, desc.segments);
        return Err(Error::malformed("lecroy-008", message).at(desc.at));
    }
    if first != desc.count * size {
        let message =
            format!("the array has {first} bytes, {} samples of {size} are read", desc.count);
        report.warn("lecroy-010", message).at(desc.at);
    }
    if desc.count % desc.segments != 0 {
        let message = format!("{} samples are not {} equal segments", desc.count, desc.segments);
        report.warn("lecroy-011", message).at(desc.at);
    }
    // A second array holds what belongs to the first: maxima to minima, imaginary to real parts.
    let arrays: &[(u64, &str)] = if second == 0 {
        &[(at, "")]
    } else {
        &[(at, "first"), (at.saturating_add(first), "second")]
    };
    // All of it first: a lying count is found before the first of a million segments is made.
    for (start, _) in arrays {
        samples(&source, desc.dtype, desc.count, *start, "lecroy-006")?;
    }
    recording::allow(desc.segments.saturating_mul(arrays.len() as u64), limits)?;
    let mut records = Vec::new();
    let points = desc.count / desc.segments;
    for (start, which) in arrays {
        for k in 0..desc.segments {
            let array =
                samples(&source, desc.dtype, points, start + k * points * size, "lecroy-006")?;
            records.push(times.say(k, &desc, Record::new(desc.label.as_str(), array), which));
        }
    }
    let mut summary = vec![
        ("template".to_string(), Value::from(desc.template.as_str())),
        ("instrument".into(), desc.instrument.as_str().into()),
        ("record type".into(), record_type(desc.record_type).into()),
        ("samples".into(), desc.count.into()),
        ("segments".into(), desc.segments.into()),
    ];
    let mut attrs = Vec::new();
    if !text.is_empty() {
        summary.push(("user text".into(), text.as_str().into()));
        attrs.push(("user_text".into(), text.into()));
    }
    let headers: Vec<Region> = headers.into_iter().filter(|r| r.len > 0).collect();
    let file = Recording::new(source, records, headers, limits)?;
    Ok(file.with_summary(summary).with_attrs(attrs).with_findings(report))
}

fn user_text(source: &Source, at: u64, len: u64, limits: &Limits) -> Result<String> {
    let kept = limits.allow(len.min(USER_TEXT), "the user text")?;
    let bytes = source.read_vec(at, kept as u64)?;
    Wire::new(&bytes, at, ByteOrder::Little, "lecroy-002").text(bytes.len())
}

/// When the segments of a sequence were triggered: seconds from the first trigger, and the first sample
/// from its own.
struct Triggers(Vec<(f64, f64)>);

impl Triggers {
    fn read(source: &Source, desc: &Descriptor, at: u64, limits: &Limits) -> Result<Self> {
        let len = desc.blocks[2];
        if desc.segments == 1 || len == 0 {
            return Ok(Self(Vec::new()));
        }
        let needed = desc.segments.saturating_mul(TRIGGER);
        if len < needed {
            let message =
                format!("{} segments have {} trigger times", desc.segments, len / TRIGGER);
            return Err(Error::malformed("lecroy-007", message).at(at));
        }
        limits.allow(needed.saturating_mul(2), "the trigger times")?;
        let bytes = source.read_vec(at, needed)?;
        let mut wire = Wire::new(&bytes, at, desc.order, "lecroy-002");
        let pairs = (0..desc.segments).map(|_| Ok((wire.f64()?, wire.f64()?)));
        Ok(Self(pairs.collect::<Result<_>>()?))
    }

    /// What is known about segment `k`.
    fn say(&self, k: u64, desc: &Descriptor, record: Record, which: &str) -> Record {
        let time = usize::try_from(k).ok().and_then(|k| self.0.get(k));
        let start = time.map_or(desc.start, |(_, offset)| *offset);
        let segment = if desc.segments > 1 { format!("segment{}", k + 1) } else { String::new() };
        let part = [segment.as_str(), which].into_iter().filter(|p| !p.is_empty());
        let record = record
            .part(part.collect::<Vec<_>>().join("_"))
            .scaled(-desc.offset, desc.gain)
            .on_grid(start, desc.interval, &desc.x_units)
            .say("units", desc.units.as_str())
            .say("label", desc.label.as_str())
            .say("instrument", desc.instrument.as_str())
            .say("serial", i64::from(desc.serial))
            .say("trigger_time", desc.trigger_time.as_str());
        match time {
            Some((tag, _)) => record.say("time_tag", *tag),
            None => record,
        }
    }
}
