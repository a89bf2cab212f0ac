//! Equal segments of a channel as one array of segments and samples.

use std::collections::HashMap;

use super::{Record, SEGMENT};
use crate::{
    ArrayDesc, Attrs, Coord, DType, Error, Extent, Extents, Layout, Order, Result, Shape, Value,
};

/// Unit of the attributes that are times in seconds.
const SECONDS: [&str; 2] = ["time_tag", "trigger_offset"];

/// One array of segments of the same type, length and scaling that are stored contiguously, in this order; `None`
/// for others. The grid is that of the first.
pub fn joined(segments: &[&ArrayDesc]) -> Result<Option<ArrayDesc>> {
    let [first, ..] = segments else { return Ok(None) };
    let [samples] = *first.shape.lengths() else { return Ok(None) };
    let mut parts: Vec<Extent> = Vec::new();
    for array in segments {
        let alike =
            (array.dtype, &array.shape, array.map) == (first.dtype, &first.shape, first.map);
        let Some((extents, Order::C)) = array.layout.plain().filter(|_| alike) else {
            return Ok(None);
        };
        for part in extents.parts() {
            match parts.last_mut() {
                // Segments without headers between them are one range.
                Some(last) if last.offset.checked_add(last.len) == Some(part.offset) => {
                    last.len += part.len;
                }
                _ => parts.push(*part),
            }
        }
    }
    let layout = Layout::Plain { extents: Extents::several(parts)?, order: Order::C };
    let shape = Shape::new([segments.len() as u64, samples]);
    let mut array = ArrayDesc::new(first.dtype, shape, layout);
    array.map = first.map;
    array.dims = [SEGMENT]
        .into_iter()
        .chain(first.dims.iter().map(String::as_str))
        .map(Into::into)
        .collect();
    array.coords = [Coord::None].into_iter().chain(first.coords.iter().cloned()).collect();
    Ok(Some(array))
}

/// Joins the segments of each channel and part that have the same type, length, scaling, interval and unit.
/// Other segments stay records with the name `segmentN`.
pub(super) fn stack(records: Vec<Record>, memory: u64) -> Result<Vec<Record>> {
    let mut groups: Vec<Vec<Record>> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for record in records {
        if record.segment.is_none() {
            groups.push(vec![record]);
            continue;
        }
        let at = *known.entry((record.channel.clone(), record.part.clone())).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(record);
    }
    let mut all = Vec::new();
    for group in groups {
        if let Some(array) = alike(&group)? {
            all.extend(merge(group, array, memory)?);
            continue;
        }
        for mut record in group {
            if let Some(number) = record.segment {
                record.part = match record.part.as_str() {
                    "" => format!("segment{number}"),
                    part => format!("segment{number}_{part}"),
                };
            }
            all.push(record);
        }
    }
    Ok(all)
}

/// The array of several segments with the same grid and unit.
fn alike(group: &[Record]) -> Result<Option<ArrayDesc>> {
    let [first, others @ ..] = group else { return Ok(None) };
    let unit = |record: &Record| record.attrs.get_str("units").map(String::from);
    let equal = |record: &Record| step(record) == step(first) && unit(record) == unit(first);
    if others.is_empty() || !others.iter().all(equal) {
        return Ok(None);
    }
    joined(&group.iter().map(|record| &record.array).collect::<Vec<_>>())
}

/// Start of the grid; 0 without a grid.
fn start(record: &Record) -> f64 {
    match record.array.coords.first() {
        Some(Coord::Uniform { start, .. }) => *start,
        _ => 0.0,
    }
}

/// Bits of the interval of the grid; `None` without a grid.
fn step(record: &Record) -> Option<u64> {
    match record.array.coords.first() {
        Some(Coord::Uniform { step, .. }) => Some(step.to_bits()),
        _ => None,
    }
}

/// One record of all segments. Attributes and starts that differ become arrays.
fn merge(group: Vec<Record>, array: ArrayDesc, memory: u64) -> Result<Option<Record>> {
    let starts: Vec<f64> = group.iter().map(start).collect();
    let numbers: Vec<u64> = group.iter().filter_map(|record| record.segment).collect();
    let attrs: Vec<Attrs> = group.iter().map(|record| record.attrs.clone()).collect();
    let Some(mut record) = group.into_iter().next() else { return Ok(None) };
    (record.array, record.segment) = (array, None);
    if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        record.push_along("segment_number", column(DType::U64, numbers.len(), bytes), "");
    }
    record = record.starting(&starts);
    let tagged = attrs.iter().all(|attrs| attrs.contains("time_tag"));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in attrs.iter().flat_map(Attrs::iter) {
        if !names.iter().any(|known| known == name) {
            names.push(name.into());
        }
    }
    for name in names {
        let values: Vec<Option<&Value>> = attrs.iter().map(|attrs| attrs.get(&name)).collect();
        // The times of the triggers are those of the first and the time tags.
        let redundant = name == "trigger_time" && tagged;
        if redundant || values.windows(2).all(|pair| pair[0] == pair[1]) && name != "time_tag" {
            continue;
        }
        let unit = if SECONDS.contains(&name.as_str()) { "s" } else { "" };
        record.push_along(&name, values_of(&values, memory)?, unit);
        record.attrs.remove(&name);
    }
    Ok(Some(record))
}

impl Record {
    /// This record of several segments with the time of the first sample of each: the grid starts at the first, and
    /// the differences are the array `trigger_offset`.
    pub fn starting(self, starts: &[f64]) -> Self {
        let Some(origin) = starts.first() else { return self };
        if starts.iter().all(|start| start.to_bits() == origin.to_bits()) {
            return self;
        }
        self.along("trigger_offset", starts.iter().map(|start| start - origin))
    }

    /// This record with an array of a number per segment.
    pub fn along(mut self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let unit = if SECONDS.contains(&name) { "s" } else { "" };
        self.push_along(name, column(DType::F64, values.len(), bytes), unit);
        self
    }

    fn push_along(&mut self, name: &str, array: ArrayDesc, unit: &'static str) {
        self.along.push((name.into(), array, unit));
    }
}

fn column(dtype: DType, count: usize, bytes: Vec<u8>) -> ArrayDesc {
    let mut array = ArrayDesc::inline(dtype, Shape::new([count as u64]), bytes);
    array.dims = vec![SEGMENT.into()];
    array
}

/// Values of an attribute: numbers, NaN where it is absent, or else text.
fn values_of(values: &[Option<&Value>], memory: u64) -> Result<ArrayDesc> {
    let count = values.len();
    let number = |value: Option<&Value>| match value {
        Some(value) => f64::try_from(value).ok(),
        None => Some(f64::NAN),
    };
    let integers = values.iter().map(|value| i64::try_from((*value)?).ok());
    if let Some(integers) = integers.collect::<Option<Vec<i64>>>() {
        let bytes = integers.iter().flat_map(|number| number.to_le_bytes()).collect();
        return Ok(column(DType::I64, count, bytes));
    }
    if let Some(numbers) = values.iter().copied().map(number).collect::<Option<Vec<f64>>>() {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        return Ok(column(DType::F64, count, bytes));
    }
    let texts: Vec<String> =
        values.iter().map(|value| value.map(ToString::to_string).unwrap_or_default()).collect();
    let size = texts.iter().map(String::len).max().unwrap_or(0);
    if (count as u64).saturating_mul(size as u64) > memory {
        return Err(Error::limit("the text of the segments exceeds the memory budget"));
    }
    let bytes = texts.iter().flat_map(|text| {
        let padding = std::iter::repeat_n(0, size - text.len());
        text.bytes().chain(padding)
    });
    Ok(column(DType::text(size as u32), count, bytes.collect()))
}
