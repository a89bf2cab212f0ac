//! What a digitizer has recorded: the one view that all formats of such files give.
//!
//! | in the file | in the tree |
//! |---|---|
//! | a channel with one record | an array with the channel's name; `data` where it has none |
//! | a channel with several (segments, fast frames, minima and maxima) | a group of that name, an array each |
//!
//! An array holds the stored numbers; its map is the scale, its coordinate the uniform grid, its dimension is
//! called after what the grid measures. Attributes have these names in all formats, where the file knows
//! them:
//!
//! | attribute | what it says |
//! |---|---|
//! | `units`, `time_units` (or `frequency_units`, `x_units`) | of the values and of the grid |
//! | `label` `instrument` `serial` | as the file has them |
//! | `trigger_time` | `2023-08-07T12:34:56.5`, or the file's own words |
//! | `time_tag` | seconds from the first trigger to that of this segment |
//!
//! A format finds the [`Record`]s and names the parts of the file; the [`Recording`] is its reader.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Object, Reader, Region, Role};
use crate::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use crate::limits::Limits;
use crate::report::{Finding, Report};
use crate::shape::{Order, Shape};
use crate::source::Source;
use crate::tree::{Attrs, NodeId, ROOT, Tree, Value};

/// Memory that a record takes, names and attributes included.
const RECORD_COST: u64 = 2 << 10;

/// One run of evenly spaced samples.
#[derive(Clone, Debug)]
pub struct Record {
    /// Whose it is; may be empty.
    pub channel: String,
    /// Which one of the channel's; empty where there is only one.
    pub part: String,
    /// The samples.
    pub array: ArrayDesc,
    /// What is said about them.
    pub attrs: Attrs,
}

impl Record {
    /// A record of the channel, without scale or grid.
    pub fn new(channel: impl Into<String>, array: ArrayDesc) -> Self {
        Self { channel: channel.into(), part: String::new(), array, attrs: Vec::new() }
    }

    /// The same as one of several of its channel.
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = part.into();
        self
    }

    /// The same with samples that mean `intercept + slope * x`.
    pub fn scaled(self, intercept: f64, slope: f64) -> Self {
        self.mapped(Linear::new(intercept, slope))
    }

    /// The same with samples whose meaning the map gives.
    pub fn mapped(mut self, map: Linear) -> Self {
        self.array.map = Some(map).filter(|m| *m != Linear::new(0.0, 1.0));
        self
    }

    /// The same with its first sample at `start` and the others `step` apart.
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
        self.say(&format!("{dimension}_units"), if units == "S" { "s" } else { units })
    }

    /// The same with an attribute; an empty text says nothing.
    pub fn say(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if value != Value::Text(String::new()) {
            self.attrs.push((name.into(), value));
        }
        self
    }
}

/// Samples one after the other from byte `offset` on, all of them inside the file; if not, it breaks rule
/// `code`.
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
    let layout = Layout::Plain { extents: Extents::one(offset, bytes), order: Order::C };
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
    let message = format!("{what} need {len} bytes, {left} are left");
    Err(cut(Error::truncated(code, message).at(offset.min(source.len()))))
}

/// An error in what stands before the samples.
pub fn in_header(error: Error) -> Error {
    cut(error.in_object("header"))
}

/// The way out where the end of a file is missing.
fn cut(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Truncated => error.hint("the file was cut; copy it from the instrument again"),
        _ => error,
    }
}

/// Fails where so many records are beyond the budget; ask before making them.
pub fn allow(count: u64, limits: &Limits) -> Result<()> {
    let allowed = limits.allow(count.saturating_mul(RECORD_COST), "the list of records");
    allowed.map(drop).map_err(|e| e.in_object(format!("{count} records")))
}

/// A part of the file that is not samples.
pub fn region(offset: u64, len: u64, role: Role, name: &str, value: impl Into<String>) -> Region {
    Region { offset, len, role, name: name.into(), value: value.into() }
}

/// The text of a date and time; nothing where it is none.
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
    // Two digits before the point; very few of a second would be written with an exponent.
    let seconds = if second < 1e-5 {
        "00".into()
    } else {
        format!("{:0>1$}{seconds}", "", usize::from(second < 10.0))
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{seconds}")
}

/// An open file of a digitizer.
pub struct Recording {
    source: Source,
    tree: Tree,
    summary: Attrs,
    findings: Vec<Finding>,
    /// In the order of the file, samples left out.
    headers: Vec<Region>,
    /// Arrays that are the file's own units but not the tree's.
    more: Vec<Object>,
    records: Vec<NodeId>,
}

impl Recording {
    /// The records of a file, and what else is in it.
    pub fn new(
        source: Source,
        records: Vec<Record>,
        headers: Vec<Region>,
        limits: &Limits,
    ) -> Result<Self> {
        allow(records.len() as u64, limits)?;
        let mut tree = Tree::new(limits);
        let mut report = Report::default();
        let mut nodes = Vec::with_capacity(records.len());
        for mut record in records {
            let channel = if record.channel.is_empty() { "data" } else { record.channel.as_str() };
            let (parent, name) = match record.part.as_str() {
                "" => (ROOT, channel),
                part => (tree.group_at(&channel.replace('/', "\u{2215}"))?, part),
            };
            check(&mut record.array, &mut report, name);
            let node = tree.add_array(parent, name, record.array)?;
            tree.node_mut(node).attrs = record.attrs;
            nodes.push(node);
        }
        let findings = report.findings;
        Ok(Self {
            source,
            tree,
            summary: Vec::new(),
            findings,
            headers,
            more: Vec::new(),
            records: nodes,
        })
    }

    /// The same with what a person wants to know first.
    pub fn with_summary(mut self, summary: Attrs) -> Self {
        self.summary = summary;
        self
    }

    /// The same with what is said about the file as a whole.
    pub fn with_attrs(mut self, attrs: Attrs) -> Self {
        self.tree.node_mut(ROOT).attrs = attrs;
        self
    }

    /// The same with what was noticed.
    pub fn with_findings(mut self, report: Report) -> Self {
        self.findings.extend(report.findings);
        self
    }

    /// The same with units of the file that the tree shows otherwise.
    pub fn with_objects(mut self, more: Vec<Object>) -> Self {
        self.more = more;
        self
    }
}

/// A scale or a grid that is no number is left out and told.
fn check(array: &mut ArrayDesc, report: &mut Report, name: &str) {
    if array.map.is_some_and(|m| !m.intercept.is_finite() || !m.slope.is_finite()) {
        array.map = None;
        let message = "the scale is not finite; the stored numbers are given";
        report.warn("core-scale", message).in_object(format!("record \"{name}\""));
    }
    let Some(coord) = array.coords.first_mut() else { return };
    if let Coord::Uniform { start, step } = coord
        && !(start.is_finite() && step.is_finite())
    {
        *coord = Coord::None;
        let message = "the grid is not finite; it is left out";
        report.warn("core-grid", message).in_object(format!("record \"{name}\""));
    }
}

/// The report of a format whose files are examined by opening them.
pub fn report<R: Reader>(opened: Result<R>) -> Result<Report> {
    let mut report = Report::default();
    match opened {
        Ok(file) => report.findings.extend_from_slice(file.findings()),
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}

impl Reader for Recording {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Attrs {
        let mut summary = self.summary.clone();
        summary.push(("records".into(), (self.records.len() as u64).into()));
        summary
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all = self.headers.clone();
        for (_, node, desc) in self.tree.arrays() {
            if let Layout::Plain { extents, .. } | Layout::Text { extents, .. } = &desc.layout {
                let what = format!("{} {}", desc.shape, desc.dtype);
                let parts = extents.parts().iter();
                all.extend(
                    parts.map(|p| region(p.offset, p.len, Role::Data, &node.path, what.clone())),
                );
            }
        }
        all.sort_by_key(|region| region.offset);
        let mut end = 0;
        for region in all {
            // Damaged files may have structures that lie in each other.
            let last = region.offset.saturating_add(region.len);
            if region.len == 0 || region.offset < end || last > self.source.len() {
                continue;
            }
            if region.offset > end {
                each(self::region(end, region.offset - end, Role::Unknown, "rest", ""))?;
            }
            end = last;
            each(region)?;
        }
        match self.source.len().saturating_sub(end) {
            0 => Ok(()),
            left => each(region(end, left, Role::Unknown, "rest", "")),
        }
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for id in &self.records {
            let node = self.tree.node(*id);
            let Some(array) = node.array.clone() else { continue };
            let kind = array.dtype.to_string();
            each(Object { path: node.path.clone(), id: None, frame: None, kind, array })?;
        }
        self.more.iter().cloned().try_for_each(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_bytes(channel: &str, offset: u64) -> Record {
        let source = Source::memory([0; 8]);
        Record::new(channel, samples(&source, DType::U8, 2, offset, "x-1").unwrap())
    }

    #[test]
    fn records_of_a_channel_stand_in_its_group_and_keep_their_order() {
        let records = vec![
            two_bytes("C1", 2).part("segment1").on_grid(0.5, 0.25, "S").say("units", "V"),
            two_bytes("C1", 4).part("segment2"),
            two_bytes("a/b", 6).scaled(0.0, 1.0),
        ];
        let file = Recording::new(Source::memory([0; 8]), records, Vec::new(), &Limits::default());
        let file = file.unwrap();
        let paths: Vec<&str> = file.tree().iter().map(|(_, n)| n.path.as_str()).collect();
        assert_eq!(paths, ["C1", "C1/segment1", "C1/segment2", "a\u{2215}b"]);
        let (_, first, desc) = file.tree().arrays().next().unwrap();
        assert_eq!(desc.coords, [Coord::Uniform { start: 0.5, step: 0.25 }]);
        assert_eq!(desc.dims, ["time"]);
        assert_eq!(first.attrs[0], ("time_units".into(), "s".into()));
        assert!(file.tree().arrays().all(|(_, _, d)| d.map.is_none()));
        let mut seen = Vec::new();
        file.regions(&mut |r| {
            seen.push((r.offset, r.len, r.role));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen[0], (0, 2, Role::Unknown));
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn samples_beyond_the_end_and_too_many_records_are_refused() {
        let source = Source::memory([0; 8]);
        let error = samples(&source, DType::I16, 4, 1, "x-1").unwrap_err();
        assert_eq!((error.code(), error.offset()), ("x-1", Some(1)));
        assert_eq!(error.message(), "the samples need 8 bytes, 7 are left");
        assert!(error.hint_text().is_some());
        assert!(samples(&source, DType::F64, u64::MAX, 1, "x-1").is_err());
        assert!(samples(&source, DType::U8, 1, u64::MAX, "x-1").is_err());
        assert!(allow(u64::MAX, &Limits::default()).is_err());
    }

    #[test]
    fn what_is_no_number_is_told_and_left_out() {
        let record = two_bytes("", 0).scaled(f64::NAN, 1.0).on_grid(0.0, f64::INFINITY, "s");
        let file =
            Recording::new(Source::memory([0; 8]), vec![record], Vec::new(), &Limits::default());
        let file = file.unwrap();
        let (_, node, desc) = file.tree().arrays().next().unwrap();
        assert_eq!((node.path.as_str(), desc.map, &desc.coords[0]), ("data", None, &Coord::None));
        let codes: Vec<&str> = file.findings().iter().map(|f| f.code).collect();
        assert_eq!(codes, ["core-scale", "core-grid"]);
    }

    #[test]
    fn dates_read_well_and_nonsense_is_none() {
        assert_eq!(date_time((2023, 8, 7), (12, 34, 12.5)), "2023-08-07T12:34:12.5");
        assert_eq!(date_time((2023, 8, 7), (1, 2, 3.0)), "2023-08-07T01:02:03");
        assert_eq!(date_time((2023, 8, 7), (0, 0, 1e-9)), "2023-08-07T00:00:00");
        for (month, second) in [(0, 1.0), (13, 1.0), (1, -1.0), (1, f64::NAN)] {
            assert_eq!(date_time((2023, month, 1), (0, 0, second)), "");
        }
    }
}
