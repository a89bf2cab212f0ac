//! Groups and channels as a recording.

use std::sync::Arc;

use spile_core::computed::Computed;
use spile_core::recording::{self, Record, Recording, bits};
use spile_core::{
    ArrayDesc, Attrs, DType, Error, Extent, Extents, Layout, Limits, OpenOptions, Order, Parsed,
    ROOT, Result, Role, Shape, Source, Wire,
};

use crate::read::{Entry, File, Lane, Run};
use crate::scaling::{Scaling, scaling};
use crate::values::{Scaled, Times};
use crate::wire::Type;

/// Elements computed at once.
const PIECE: u64 = 64 << 10;

/// Opens a file: a group per group, an array per channel.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let limits = &options.limits;
    let file = File::read(&source, limits).map_err(recording::in_header)?;
    let File { entries, headers, segments, mut report } = file;
    let none = Attrs::new();
    let of = |parts: &[String]| {
        entries.iter().find(|e| e.parts == parts).map_or(&none, |e| &e.properties)
    };
    let root = of(&[]);
    let mut groups: Vec<(&str, &Attrs)> = Vec::new();
    let mut records = Vec::new();
    recording::allow(entries.len() as u64, limits)?;
    let mut group_of = ("", &none);
    for entry in &entries {
        let (group, name) = match &entry.parts[..] {
            [] => continue,
            [group] => {
                groups.push((group, &entry.properties));
                continue;
            }
            [group, name, ..] => (group.as_str(), name.as_str()),
        };
        if group_of.0 != group {
            group_of = (group, of(&entry.parts[..1]));
        }
        let object = format!("channel \"{group}/{name}\"");
        if let Some(problem) = &entry.problem {
            report
                .error("tdms-012", format!("{problem}: not supported"))
                .in_object(object.as_str());
            continue;
        }
        let levels = [&entry.properties, group_of.1, root];
        let scale = scaling(levels, &entry.scales());
        if let Scaling::Unsupported(kind) = &scale {
            let message =
                format!("scaling of type {kind} is not supported; stored values are shown");
            report.warn("tdms-013", message).in_object(object.as_str());
        }
        let found = match channel(&source, entry, scale, limits) {
            Ok(found) => found,
            // Text of one channel that cannot be read does not hide the others.
            Err(error) if error.code() == "tdms-014" => {
                report.absorb(error.in_object(object))?;
                continue;
            }
            Err(error) => return Err(error.in_object(object)),
        };
        for mut record in found {
            record.channel = group.into();
            let part = format!("{}{}", name.replace('/', "\u{2215}"), record.part);
            records.push(described(record.part(part), &entry.properties));
        }
    }
    let mut found = Recording { records, headers, report, ..Recording::default() };
    found.attrs = root.clone();
    found.summary.push("segments", segments);
    let mut parsed = found.parsed(source, options)?;
    for (name, attrs) in groups {
        let name = name.replace('/', "\u{2215}");
        if name.is_empty() {
            continue;
        }
        let id = parsed.tree.group_at(&name)?;
        if id != ROOT {
            parsed.tree.set_attrs(id, attrs.clone())?;
        }
    }
    Ok(parsed)
}

/// The properties as attributes: a waveform has a time base, and a unit.
fn described(mut record: Record, properties: &Attrs) -> Record {
    let number = |name: &str| properties.get_f64(name);
    let step = number("wf_increment").filter(|step| *step > 0.0);
    if let Some(step) = step.filter(|_| record.array.shape.rank() == 1) {
        record = record.on_grid(number("wf_start_offset").unwrap_or(0.0), step, "s");
    }
    if let Some(unit) = properties.get_str("unit_string").filter(|unit| !unit.is_empty()) {
        record = record.attr("units", unit);
    }
    if let Some(time) = properties.get_str("wf_start_time").filter(|_| step.is_some()) {
        record = record.attr("trigger_time", time);
    }
    for (name, value) in properties {
        if !record.attrs.contains(name) {
            record.attrs.push(name, value.clone());
        }
    }
    record
}

/// The values of a channel; those of several DAQmx scalers without a scale are several records.
fn channel(source: &Source, entry: &Entry, scale: Scaling, limits: &Limits) -> Result<Vec<Record>> {
    let shape = Shape::new([entry.count()]);
    let stored = |lane: &Lane, dtype: DType| -> Result<ArrayDesc> {
        let lane = lane.first(entry.count());
        Ok(ArrayDesc::new(dtype, shape.clone(), layout(source, &lane, dtype, limits)?))
    };
    let computed = |inputs: Vec<ArrayDesc>, dtype: DType, function| {
        let computed = Computed { inputs, function, piece: PIECE, order: Order::C };
        ArrayDesc::new(dtype, shape.clone(), Layout::Computed(Arc::new(computed)))
    };
    let line = |lane: &Lane, dtype: DType| -> Result<Record> {
        let record = Record::new("", stored(lane, dtype)?);
        let bit = lane.scaler.and_then(|scaler| scaler.bit);
        Ok(bit.and_then(|bit| bits::line(&record, bit, "")).unwrap_or(record))
    };
    let record = match (entry.kind, &entry.lanes[..]) {
        (None | Some(Type::Void), _) | (_, []) => {
            let empty = ArrayDesc::inline(DType::F64, Shape::new([0]), Vec::new());
            Record::new("", empty)
        }
        (Some(Type::Plain(dtype)), [lane]) => {
            let record = line(lane, dtype)?;
            match scale {
                Scaling::Linear(map) if dtype.is_real() => record.mapped(map),
                Scaling::Scales(scale) if dtype.is_real() => {
                    let numbers = vec![lane.scaler.map(|scaler| scaler.scale)];
                    let function = Arc::new(Scaled { scale, numbers });
                    Record::new("", computed(vec![record.array], DType::F64, function))
                }
                _ => record,
            }
        }
        (Some(Type::Plain(_)), lanes) => {
            let of = |lane: &Lane| line(lane, lane.scaler.map_or(DType::U8, |scaler| scaler.dtype));
            let records: Vec<Record> = lanes.iter().map(of).collect::<Result<_>>()?;
            let numbers = lanes.iter().map(|lane| lane.scaler.map(|scaler| scaler.scale)).collect();
            let Scaling::Scales(scale) = scale else {
                let numbered = |(record, lane): (Record, &Lane)| {
                    let number = lane.scaler.map_or(0, |scaler| scaler.scale);
                    record.part(format!(" scaler {number}"))
                };
                return Ok(records.into_iter().zip(lanes).map(numbered).collect());
            };
            let inputs = records.into_iter().map(|record| record.array).collect();
            let function = Arc::new(Scaled { scale, numbers });
            Record::new("", computed(inputs, DType::F64, function))
        }
        (Some(Type::Time), [lane, ..]) => {
            let function = Arc::new(Times(entry.order()));
            let times = computed(vec![stored(lane, DType::opaque(16))?], DType::I64, function);
            let mut record = Record::new("", times).attr("units", "microseconds since 1970-01-01");
            record.role = Role::Data;
            record
        }
        (Some(Type::Text), [lane, ..]) => {
            let mut record = Record::new("", text(source, entry, lane, limits)?);
            record.role = Role::Text;
            record
        }
    };
    Ok(vec![record])
}

/// Where the values of a channel are.
fn layout(source: &Source, lane: &Lane, dtype: DType, limits: &Limits) -> Result<Layout> {
    let size = dtype.size() as u64;
    if let Some(parts) = lane.contiguous(size) {
        return Ok(Layout::Plain { extents: Extents::several(parts)?, order: Order::C });
    }
    if let Some((parts, stride)) = lane.rows(dtype, source.len()) {
        return Ok(Layout::Rows { extents: Extents::several(parts)?, stride, order: Order::C });
    }
    // The distance of the values differs between segments: a range for each value.
    limits.allow(lane.count().saturating_mul(48), "the byte ranges of the values")?;
    let each = |run: &Run| {
        let run = *run;
        (0..run.count).map(move |k| Extent { offset: run.offset + k * run.stride, len: size })
    };
    let parts = lane.runs.iter().flat_map(each).collect();
    Ok(Layout::Plain { extents: Extents::several(parts)?, order: Order::C })
}

/// Text of a channel: a table of the ends of the texts, then the texts, in each chunk.
fn text(source: &Source, entry: &Entry, lane: &Lane, limits: &Limits) -> Result<ArrayDesc> {
    let bytes = lane.runs.iter().map(|run| run.stride).fold(0, u64::saturating_add);
    limits.allow(bytes.saturating_mul(3), "the text")?;
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for run in &lane.runs {
        let table = run.count.checked_mul(4).filter(|table| *table <= run.stride);
        let table = table.ok_or_else(|| {
            let message = format!("{} texts in {} bytes", run.count, run.stride);
            Error::malformed("tdms-014", message).at(run.offset)
        })?;
        let all = source.read_vec(run.offset, run.stride)?;
        let (ends, content) = all.split_at(table as usize);
        let mut ends = Wire::new(ends, run.offset, entry.order(), "tdms-002");
        let mut start = 0;
        for _ in 0..run.count {
            let end = ends.u32()? as usize;
            let part = content.get(start..end).ok_or_else(|| {
                let message = format!("a text from byte {start} to {end} of {}", content.len());
                Error::malformed("tdms-014", message).at(run.offset)
            })?;
            texts.push(part.to_vec());
            start = end;
        }
    }
    let size = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    limits.allow((texts.len() as u64).saturating_mul(size as u64), "the text")?;
    let mut values = Vec::new();
    for text in &texts {
        values.extend_from_slice(text);
        values.resize(values.len() + size - text.len(), 0);
    }
    Ok(ArrayDesc::inline(DType::text(size as u32), Shape::new([texts.len() as u64]), values))
}
