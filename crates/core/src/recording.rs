//! Records of a digitizer: the tree that all oscilloscope formats share.
//!
//! | file | tree |
//! |---|---|
//! | a channel with one record | an array named like the channel; `data` where it has no name |
//! | a channel with several (minima and maxima) | a group of that name, one array each |
//! | equal segments of a channel (sequences, fast frames) | one array with the dimensions `segment` and `time` |
//! | segments that differ in length, interval or scaling | a group of the name of the channel, one array each |
//! | digital lines | the stored bytes, and per line an array of 0 and 1 |
//!
//! What differs between the segments of an array are arrays with the dimension `segment`, which its attribute
//! `coordinates` names: `time_tag`, `trigger_offset` and other attributes of the segments.
//!
//! An array holds the stored numbers with their linear scaling and a uniform coordinate; its dimension is
//! named after the quantity of the grid. Attributes have these names in all formats:
//!
//! | attribute | content |
//! |---|---|
//! | `units`, `time_units` (or `frequency_units`, `x_units`) | units of the values and of the grid |
//! | `label` `instrument` `serial` | as in the file |
//! | `trigger_time` | `2023-08-07T12:34:56.5`, or the text of the file |
//! | `time_tag` | seconds from the first trigger to that of this segment |
//! | `trigger_offset` | seconds to add to the time coordinate, because the trigger lies between two samples |
//!
//! A format finds the [`Record`]s and names the parts of the file; [`Recording::parsed`] makes the tree.

pub mod bits;
pub mod buffers;
mod segments;

use std::collections::HashMap;

use crate::format::{Native, Object, Region, RegionKind};
use crate::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Error, ErrorKind, Extent, Layout, Limits, Linear,
    NodeId, OpenOptions, Order, Parsed, ROOT, Report, Result, Role, Shape, Source, Tree, Value,
};
pub use segments::joined;

/// Name of the dimension of segments.
pub const SEGMENT: &str = "segment";

/// Memory that a record takes, names and attributes included.
const RECORD_COST: u64 = 2 << 10;

/// One run of evenly spaced samples.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name of the channel; may be empty.
    pub channel: String,
    /// Name of the record within its channel; empty where there is only one.
    pub part: String,
    /// Number of the segment from 1, where the channel has segments.
    pub segment: Option<u64>,
    /// The samples.
    pub array: ArrayDesc,
    /// Attributes.
    pub attrs: Attrs,
    /// Arrays with one element per segment: name, elements and unit.
    along: Vec<(String, ArrayDesc, &'static str)>,
    /// [`Role::Trace`]; other roles for arrays that are not plotted.
    pub role: Role,
}

impl Record {
    /// A record of `channel` without scaling or grid.
    pub fn new(channel: impl Into<String>, array: ArrayDesc) -> Self {
        let (channel, part, segment) = (channel.into(), String::new(), None);
        let attrs = Attrs::new();
        Self { channel, part, segment, array, attrs, along: Vec::new(), role: Role::Trace }
    }

    /// This record as segment `number` of its channel, counted from 1.
    pub fn segment(mut self, number: u64) -> Self {
        self.segment = Some(number);
        self
    }

    /// This record as one of several of its channel.
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = part.into();
        self
    }

    /// Returns this record with samples scaled by `intercept + slope * x`.
    pub fn scaled(self, intercept: f64, slope: f64) -> Self {
        self.mapped(Linear::new(intercept, slope))
    }

    /// Returns this record with samples scaled by `map`.
    pub fn mapped(mut self, map: Linear) -> Self {
        self.array.map = Some(map).filter(|m| *m != Linear::new(0.0, 1.0));
        self
    }

    /// Returns this record with its first sample at `start` and the others `step` apart, in `units`, along its first
    /// dimension that is not [`SEGMENT`].
    pub fn on_grid(mut self, start: f64, step: f64, units: &str) -> Self {
        let dimension = match units {
            "s" | "S" | "" => "time",
            "Hz" | "HZ" => "frequency",
            _ => "x",
        };
        let at = usize::from(self.array.dims.first().is_some_and(|dim| dim == SEGMENT));
        if let (Some(dim), Some(coord)) =
            (self.array.dims.get_mut(at), self.array.coords.get_mut(at))
        {
            *dim = dimension.into();
            *coord = Coord::Uniform { start, step };
        }
        self.attr(&format!("{dimension}_units"), if units == "S" { "s" } else { units })
    }

    /// Returns this record with an attribute; empty text is not stored.
    pub fn attr(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if value != Value::Text(String::new()) {
            self.attrs.push(name, value);
        }
        self
    }
}

/// Contiguous samples from byte `offset` on; an error under `code` if they exceed the file.
pub fn samples(
    source: &Source,
    dtype: DType,
    count: u64,
    offset: u64,
    code: &'static str,
) -> Result<ArrayDesc> {
    let shape = Shape::new([count]);
    let bytes = shape.bytes(dtype.size()).map_err(|e| e.at(offset))?;
    within(source, offset, bytes, "the samples", code)?;
    let layout = Layout::contiguous(offset, bytes, Order::C);
    Ok(ArrayDesc::new(dtype, shape, layout))
}

/// Fails unless `len` bytes at `offset` lie inside the file.
pub fn within(
    source: &Source,
    offset: u64,
    len: u64,
    what: &str,
    code: &'static str,
) -> Result<()> {
    if offset.checked_add(len).is_some_and(|end| end <= source.len()) {
        return Ok(());
    }
    let left = source.len().saturating_sub(offset);
    let message = format!("unexpected end of file: {what} need {len} bytes, found {left}");
    Err(cut(Error::truncated(code, message).at(offset.min(source.len()))))
}

/// Marks an error as one of the header.
pub fn in_header(error: Error) -> Error {
    cut(error.in_object("header"))
}

/// Adds a hint where the end of a file is missing.
fn cut(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Truncated => {
            error.hint("the file is incomplete; copy it from the instrument again")
        }
        _ => error,
    }
}

/// Fails where `count` records exceed the budget; call it before building them.
pub fn allow(count: u64, limits: &Limits) -> Result<()> {
    let allowed = limits.allow(count.saturating_mul(RECORD_COST), "the list of records");
    allowed.map(drop).map_err(|e| e.in_object(format!("{count} records")))
}

/// ISO 8601 text of a date and time; empty where it is not valid.
pub fn date_time(date: (i64, u32, u32), time: (u32, u32, f64)) -> String {
    let ((year, month, day), (hour, minute, second)) = (date, time);
    let sound = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && (0.0..61.0).contains(&second);
    if !sound {
        return String::new();
    }
    let seconds = Value::Float(second).to_string();
    let seconds = seconds.strip_suffix(".0").unwrap_or(&seconds);
    // Two digits before the point; very small values would have an exponent.
    let seconds = if second < 1e-5 {
        "00".into()
    } else {
        format!("{:0>1$}{seconds}", "", usize::from(second < 10.0))
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{seconds}")
}

/// What a format finds in a file.
#[derive(Default)]
pub struct Recording {
    /// The records, in file order.
    pub records: Vec<Record>,
    /// All parts of the file but the samples.
    pub headers: Vec<Region>,
    /// Attributes of the root.
    pub attrs: Attrs,
    /// Summary shown by `spile info`; the number of records is added.
    pub summary: Attrs,
    /// Warnings.
    pub report: Report,
}

impl Recording {
    /// What a format returns from opening: the tree of the records.
    pub fn parsed(mut self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        allow(self.records.len() as u64, &options.limits)?;
        self.summary.push("records", self.records.len() as u64);
        let mut tree = Tree::new(&options.limits);
        tree.set_attrs(ROOT, self.attrs)?;
        let mut report = Report::default();
        let mut coordinates = Coordinates::default();
        for mut record in segments::stack(self.records, options.limits.memory)? {
            let channel = if record.channel.is_empty() { "data" } else { record.channel.as_str() };
            let channel = channel.replace('/', "\u{2215}");
            let (parent, name) = match record.part.as_str() {
                "" => (ROOT, channel.as_str()),
                part => (tree.group_at(&channel)?, part),
            };
            check(&mut record.array, &mut report, name);
            record.array.semantics_mut().role = record.role;
            let node = tree.add_array(parent, name, record.array)?;
            let names = coordinates.add(&mut tree, &channel, record.along)?;
            if !names.is_empty() {
                record.attrs.push("coordinates", names.join(" "));
            }
            tree.set_attrs(node, record.attrs)?;
        }
        report.findings.extend(self.report.findings);
        let parsed = Parsed::new(source, tree).with_summary(self.summary);
        Ok(parsed.with_warnings(report.findings).with_native(Headers(self.headers)))
    }
}

/// Arrays of the values of segments, shared by the channels that have the same.
#[derive(Default)]
struct Coordinates(HashMap<String, Vec<NodeId>>);

impl Coordinates {
    /// Adds arrays along the dimension of segments to the root. Returns their names, which start with that of the
    /// channel where another channel has other values.
    fn add(
        &mut self,
        tree: &mut Tree,
        channel: &str,
        along: Vec<(String, ArrayDesc, &'static str)>,
    ) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, array, unit) in along {
            let known = self.0.entry(name.clone()).or_default();
            let equal = |id: &&NodeId| tree.array(**id).is_some_and(|other| same(other, &array));
            let id = if let Some(id) = known.iter().find(equal) {
                *id
            } else {
                // Names in the attribute are separated by spaces.
                let own = format!("{channel}_{name}").replace(char::is_whitespace, "_");
                let free = known.is_empty() && tree.at(&name).is_none();
                let id = tree.add_array(ROOT, if free { &name } else { &own }, array)?;
                if !unit.is_empty() {
                    tree.push_attr(id, "units", unit)?;
                }
                known.push(id);
                id
            };
            names.push(tree.node(id).name.clone());
        }
        Ok(names)
    }
}

/// Whether two arrays in memory have the same elements.
fn same(a: &ArrayDesc, b: &ArrayDesc) -> bool {
    match (&a.layout, &b.layout) {
        (Layout::Inline(a_bytes, _), Layout::Inline(b_bytes, _)) => {
            (a.dtype, &a.shape, a_bytes) == (b.dtype, &b.shape, b_bytes)
        }
        _ => false,
    }
}

/// Drops scaling or a grid that is not finite, with a warning.
fn check(array: &mut ArrayDesc, report: &mut Report, name: &str) {
    if array.map.is_some_and(|m| !m.is_finite()) {
        array.map = None;
        let message = "the scaling is not finite; stored values are shown";
        report.warn("core-scale", message).in_object(format!("record \"{name}\""));
    }
    let at = usize::from(array.dims.first().is_some_and(|dim| dim == SEGMENT));
    let Some(coord) = array.coords.get_mut(at) else { return };
    if let Coord::Uniform { start, step } = coord
        && !(start.is_finite() && step.is_finite())
    {
        *coord = Coord::None;
        let message = "the grid is not finite and is ignored";
        report.warn("core-grid", message).in_object(format!("record \"{name}\""));
    }
}

/// All parts of a file but the samples.
struct Headers(Vec<Region>);

impl Native for Headers {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all = self.0.clone();
        for (_, node, desc) in dataset.arrays() {
            let (Layout::Plain { extents, .. } | Layout::EncodedWhole { extents, .. }) =
                &desc.layout
            else {
                continue;
            };
            let what = format!("{} {}", desc.shape, desc.dtype);
            let data = |part: &Extent| {
                Region::new(part.offset, part.len, RegionKind::Data, &node.path, what.clone())
            };
            all.extend(extents.parts().iter().map(data));
        }
        all.sort_by_key(|region| region.offset);
        let (mut end, total) = (0, dataset.source().len());
        for region in all {
            // Structures of damaged files may overlap.
            let last = region.offset.saturating_add(region.len);
            if region.len == 0 || region.offset < end || last > total {
                continue;
            }
            if region.offset > end {
                each(Region::new(end, region.offset - end, RegionKind::Unknown, "rest", ""))?;
            }
            end = last;
            each(region)?;
        }
        match total.saturating_sub(end) {
            0 => Ok(()),
            left => each(Region::new(end, left, RegionKind::Unknown, "rest", "")),
        }
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in dataset.arrays() {
            let dtype = array.dtype.to_string();
            if let Layout::Computed(_) | Layout::Inline(..) = array.layout {
                continue;
            }
            let Some(rows) = segments_of(array) else {
                each(Object::new(&node.path, dtype, array.clone()))?;
                continue;
            };
            for (k, row) in rows.enumerate() {
                each(Object::new(format!("{}[{k}]", node.path), dtype.clone(), row))?;
            }
        }
        Ok(())
    }
}

/// The segments of an array that has the dimension [`SEGMENT`] and is stored contiguously.
fn segments_of(array: &ArrayDesc) -> Option<impl Iterator<Item = ArrayDesc> + '_> {
    let [count, samples] = *array.shape.lengths() else { return None };
    let shape = Shape::new([samples]);
    let bytes = shape.bytes(array.dtype.size()).ok()?;
    array.layout.rows(0, bytes)?;
    let is_segmented = array.dims.first().is_some_and(|dim| dim == SEGMENT);
    let row = move |k: u64| {
        let layout = array.layout.rows(k.checked_mul(bytes)?, bytes)?;
        Some(ArrayDesc::new(array.dtype, shape.clone(), layout))
    };
    is_segmented.then(|| (0..count).map_while(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FormatInfo, Grade};

    static INFO: FormatInfo = FormatInfo {
        name: "scope",
        title: "Oscilloscope",
        users: "tests",
        specification: "this file",
        extensions: &[],
        read: Grade::Complete,
        write: Grade::None,
        check: Grade::None,
        salvage: Grade::None,
    };

    fn two_bytes(channel: &str, offset: u64) -> Record {
        let source = Source::memory([0; 8]);
        Record::new(channel, samples(&source, DType::U8, 2, offset, "x-1").unwrap())
    }

    #[test]
    fn records_of_a_channel_are_arrays_of_its_group_in_file_order() {
        let records = vec![
            two_bytes("C1", 2).segment(1).on_grid(0.5, 0.25, "S").attr("units", "V"),
            two_bytes("C1", 4).segment(2),
            two_bytes("a/b", 6).scaled(0.0, 1.0),
        ];
        let options = OpenOptions::default();
        let recording = Recording { records, ..Recording::default() };
        let parsed = recording.parsed(Source::memory([0; 8]), &options).unwrap();
        let file = Dataset::from_parsed(&INFO, parsed, &options).unwrap();
        let paths: Vec<&str> = file.tree().iter().map(|(_, n)| n.path.as_str()).collect();
        assert_eq!(paths, ["C1", "C1/segment1", "C1/segment2", "a\u{2215}b"]);
        let (_, first, desc) = file.tree().arrays().next().unwrap();
        assert_eq!(desc.coords, [Coord::Uniform { start: 0.5, step: 0.25 }]);
        assert_eq!(desc.dims, ["time"]);
        assert_eq!(first.attrs.get_str("time_units"), Some("s"));
        assert!(file.tree().arrays().all(|(_, _, d)| d.map.is_none()));
        let mut seen = Vec::new();
        file.regions(&mut |r| {
            seen.push((r.offset, r.len, r.kind));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen[0], (0, 2, RegionKind::Unknown));
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn equal_segments_are_one_array_with_what_differs_as_coordinates() {
        let one = |channel: &str, offset: u64, number: u64, tag: f64| {
            let record = two_bytes(channel, offset).segment(number).scaled(0.0, 2.0);
            let start = 1.0 + number as f64 / 8.0;
            record.on_grid(start, 0.25, "s").attr("units", "V").attr("time_tag", tag)
        };
        let records = vec![
            one("C1", 0, 1, 0.0),
            one("C2", 2, 1, 0.0),
            one("C1", 4, 2, 0.5).attr("note", "late"),
            one("C2", 6, 2, 0.5),
        ];
        let options = OpenOptions::default();
        let recording = Recording { records, ..Recording::default() };
        let source = Source::memory([1, 2, 3, 4, 5, 6, 7, 8]);
        let parsed = recording.parsed(source, &options).unwrap();
        let file = Dataset::from_parsed(&INFO, parsed, &options).unwrap();
        let paths: Vec<&str> = file.tree().iter().map(|(_, n)| n.path.as_str()).collect();
        assert_eq!(paths, ["C1", "trigger_offset", "time_tag", "note", "C2"]);
        let first = file.array("C1").unwrap();
        assert_eq!(first.dims(), ["segment", "time"]);
        assert_eq!(first.read::<Vec<f64>>("1, :").unwrap(), [10.0, 12.0]);
        assert_eq!(first.coord("time").unwrap().read().unwrap(), [1.125, 1.375]);
        assert_eq!(first.attrs().get_str("coordinates"), Some("trigger_offset time_tag note"));
        let second = file.array("C2").unwrap();
        assert_eq!(second.attrs().get_str("coordinates"), Some("trigger_offset time_tag"));
        let offset = file.array("trigger_offset").unwrap();
        assert_eq!(
            (offset.read::<Vec<f64>>("...").unwrap(), offset.units()),
            (vec![0.0, 0.125], Some("s"))
        );
        let mut objects = Vec::new();
        file.objects(&mut |object| {
            objects.push(object.path.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!(objects, ["C1[0]", "C1[1]", "C2[0]", "C2[1]"]);
        assert_eq!(file.tree().main_arrays().count(), 2);
    }

    #[test]
    fn digital_lines_are_the_bits_of_bytes() {
        let records = bits::with_lines(two_bytes("D", 0), |bit| format!("D{bit}"));
        assert_eq!(records.len(), 9);
        let recording = Recording { records, ..Recording::default() };
        let options = OpenOptions::default();
        let parsed = recording.parsed(Source::memory([2, 5, 0, 0, 0, 0, 0, 0]), &options).unwrap();
        let file = Dataset::from_parsed(&INFO, parsed, &options).unwrap();
        assert_eq!(file.array("D1").unwrap().read::<Vec<f64>>("...").unwrap(), [1.0, 0.0]);
    }

    #[test]
    fn samples_beyond_the_end_and_too_many_records_are_refused() {
        let source = Source::memory([0; 8]);
        let error = samples(&source, DType::I16, 4, 1, "x-1").unwrap_err();
        assert_eq!((error.code(), error.offset()), ("x-1", Some(1)));
        assert_eq!(error.message(), "unexpected end of file: the samples need 8 bytes, found 7");
        assert!(error.suggestion().is_some());
        assert!(samples(&source, DType::F64, u64::MAX, 1, "x-1").is_err());
        assert!(samples(&source, DType::U8, 1, u64::MAX, "x-1").is_err());
        assert!(allow(u64::MAX, &Limits::default()).is_err());
    }

    #[test]
    fn non_finite_scaling_and_grids_are_dropped_with_a_warning() {
        let record = two_bytes("", 0).scaled(f64::NAN, 1.0).on_grid(0.0, f64::INFINITY, "s");
        let recording = Recording { records: vec![record], ..Recording::default() };
        let file = recording.parsed(Source::memory([0; 8]), &OpenOptions::default()).unwrap();
        let (_, node, desc) = file.tree.arrays().next().unwrap();
        assert_eq!((node.path.as_str(), desc.map, &desc.coords[0]), ("data", None, &Coord::None));
        let codes: Vec<&str> = file.warnings.iter().map(|f| f.code).collect();
        assert_eq!(codes, ["core-scale", "core-grid"]);
    }

    #[test]
    fn valid_dates_are_iso_text_and_others_empty() {
        assert_eq!(date_time((2023, 8, 7), (12, 34, 12.5)), "2023-08-07T12:34:12.5");
        assert_eq!(date_time((2023, 8, 7), (1, 2, 3.0)), "2023-08-07T01:02:03");
        assert_eq!(date_time((2023, 8, 7), (0, 0, 1e-9)), "2023-08-07T00:00:00");
        for (month, second) in [(0, 1.0), (13, 1.0), (1, -1.0), (1, f64::NAN)] {
            assert_eq!(date_time((2023, month, 1), (0, 0, second)), "");
        }
    }
}
