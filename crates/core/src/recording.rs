//! Records of a digitizer: the tree that all oscilloscope formats share.
//!
//! | file | tree |
//! |---|---|
//! | a channel with one record | an array named like the channel; `data` where it has no name |
//! | a channel with several (segments, fast frames, minima and maxima) | a group of that name, one array each |
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
//!
//! A format finds the [`Record`]s and names the parts of the file; [`Recording::parsed`] makes the tree.

pub mod buffers;

use crate::format::{Native, Object, Region, RegionKind};
use crate::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Error, ErrorKind, Extent, Layout, Limits, Linear,
    OpenOptions, Order, Parsed, ROOT, Report, Result, Role, Shape, Source, Tree, Value,
};

/// Memory that a record takes, names and attributes included.
const RECORD_COST: u64 = 2 << 10;

/// One run of evenly spaced samples.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name of the channel; may be empty.
    pub channel: String,
    /// Name of the record within its channel; empty where there is only one.
    pub part: String,
    /// The samples.
    pub array: ArrayDesc,
    /// Attributes.
    pub attrs: Attrs,
}

impl Record {
    /// A record of `channel` without scaling or grid.
    pub fn new(channel: impl Into<String>, array: ArrayDesc) -> Self {
        Self { channel: channel.into(), part: String::new(), array, attrs: Attrs::new() }
    }

    /// This record as one of several of its channel.
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = part.into();
        self
    }

    /// This record with samples scaled by `intercept + slope * x`.
    pub fn scaled(self, intercept: f64, slope: f64) -> Self {
        self.mapped(Linear::new(intercept, slope))
    }

    /// This record with samples scaled by `map`.
    pub fn mapped(mut self, map: Linear) -> Self {
        self.array.map = Some(map).filter(|m| *m != Linear::new(0.0, 1.0));
        self
    }

    /// This record with its first sample at `start` and the others `step` apart, in `units`.
    pub fn on_grid(mut self, start: f64, step: f64, units: &str) -> Self {
        let dimension = match units {
            "s" | "S" | "" => "time",
            "Hz" | "HZ" => "frequency",
            _ => "x",
        };
        if let (Some(dim), Some(coord)) =
            (self.array.dims.first_mut(), self.array.coords.first_mut())
        {
            *dim = dimension.into();
            *coord = Coord::Uniform { start, step };
        }
        self.attr(&format!("{dimension}_units"), if units == "S" { "s" } else { units })
    }

    /// This record with an attribute; empty text is not stored.
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
    /// Key facts for people; the number of records is added.
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
        for mut record in self.records {
            let channel = if record.channel.is_empty() { "data" } else { record.channel.as_str() };
            let (parent, name) = match record.part.as_str() {
                "" => (ROOT, channel),
                part => (tree.group_at(&channel.replace('/', "\u{2215}"))?, part),
            };
            check(&mut record.array, &mut report, name);
            let node = tree.add_array(parent, name, record.array)?;
            tree.set_attrs(node, record.attrs)?;
        }
        report.findings.extend(self.report.findings);
        let parsed = Parsed::new(source, tree).with_summary(self.summary);
        Ok(parsed.with_warnings(report.findings).with_native(Headers(self.headers)))
    }
}

/// Marks the array as a trace. Scaling or a grid that is not finite is dropped with a warning.
fn check(array: &mut ArrayDesc, report: &mut Report, name: &str) {
    array.semantics_mut().role = Role::Trace;
    if array.map.is_some_and(|m| !m.is_finite()) {
        array.map = None;
        let message = "the scaling is not finite; stored values are shown";
        report.warn("core-scale", message).in_object(format!("record \"{name}\""));
    }
    let Some(coord) = array.coords.first_mut() else { return };
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
            each(Object::new(&node.path, array.dtype.to_string(), array.clone()))?;
        }
        Ok(())
    }
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
            two_bytes("C1", 2).part("segment1").on_grid(0.5, 0.25, "S").attr("units", "V"),
            two_bytes("C1", 4).part("segment2"),
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
