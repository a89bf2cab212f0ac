//! HDF5 file as a recording. The group `Waveforms` has one group per channel, which has one array per segment.

use spile_core::format::Guest;
use spile_core::recording::{self, Record, Recording, SEGMENT};
use spile_core::{
    ArrayDesc, Attrs, Coord, Dataset, Error, Format, Node, NodeId, Parsed, Report, Result, Shape,
    Tree, Value,
};

use crate::Keysight;
use spile_core::recording::buffers::iso_time;

const WAVEFORMS: &str = "Waveforms";

impl Guest for Keysight {
    fn host(&self) -> &'static dyn Format {
        self.hdf5
    }

    fn recognises(&self, content: &Dataset) -> bool {
        has_waveforms(content.tree())
    }

    fn view(&self, content: &Dataset) -> Result<Parsed> {
        let recording = to_recording(content)?;
        recording.parsed(content.source().clone(), &content.limits().into())
    }
}

/// Whether a tree has the group `Waveforms` with the attribute `NumWaveforms`.
fn has_waveforms(tree: &Tree) -> bool {
    let group = tree.at(WAVEFORMS).map(|id| tree.node(id));
    group.is_some_and(|g| g.array.is_none() && g.attrs.contains("NumWaveforms"))
}

/// The waveforms of an HDF5 file as a recording. Findings and regions of the file are kept.
fn to_recording(file: &Dataset) -> Result<Recording> {
    let (tree, limits) = (file.tree(), file.limits());
    let Some(top) = tree.at(WAVEFORMS).filter(|_| has_waveforms(tree)) else {
        let message = "no group \"Waveforms\" with the attribute NumWaveforms";
        return Err(Error::not_this_format("keysight-001", message).in_object(WAVEFORMS));
    };
    let mut report = Report::default();
    report.findings.extend_from_slice(file.warnings());
    let [model, serial, date] =
        ["Model", "Serial", "Date"].map(|name| text(file, &format!("Frame/TheFrame/{name}")));
    let trigger_time = match date.split_once(' ') {
        Some((date, time)) => iso_time(date, time),
        None => date,
    };
    let mut records = Vec::new();
    for (id, node) in tree.iter().filter(|(_, node)| node.parent == top && node.array.is_none()) {
        let channel = Channel::read(node, &mut report);
        let arrays = arrays(tree, id, &node.name);
        let one = arrays.len() == 1;
        for (name, desc) in arrays {
            let desc = tree.resolve(desc)?;
            channel.check_length(desc, &mut report);
            recording::allow(records.len() as u64 + 1, limits)?;
            let array = samples(desc)?;
            let number = segment_number(&name).filter(|_| !one && array.shape.rank() == 1);
            let part = if one || number.is_some() { String::new() } else { name };
            let mut record = channel.record(array, part);
            record.segment = number;
            let record = record.attr("instrument", model.as_str());
            let record = record.attr("serial", serial.as_str());
            records.push(record.attr("trigger_time", trigger_time.as_str()));
        }
    }
    let mut headers = Vec::new();
    file.regions(&mut |region| {
        recording::allow(headers.len() as u64, limits)?;
        headers.push(region);
        Ok(())
    })?;
    let summary = Attrs::from([("kind", Value::from("HDF5"))]);
    Ok(Recording { records, headers, summary, report, ..Recording::default() })
}

/// A string stored as a scalar array; empty if absent or unreadable.
fn text(file: &Dataset, path: &str) -> String {
    let array = file.tree().at(path).and_then(|id| file.array_at(id).ok());
    let bytes = array.and_then(|array| array.bytes().ok());
    let bytes = bytes.unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches(['\0', ' ']).to_string()
}

/// Group of a channel with its grid (start, step) and scale (intercept, slope).
struct Channel<'a> {
    node: &'a Node,
    grid: Option<(f64, f64)>,
    scale: Option<(f64, f64)>,
}

impl<'a> Channel<'a> {
    fn read(node: &'a Node, report: &mut Report) -> Self {
        let number = |name: &str| number(node.attrs.get(name)?);
        let grid = number("XOrg").zip(number("XInc"));
        if grid.is_none() {
            let message = "no XOrg or XInc; the record has no grid";
            report.warn("keysight-013", message).in_object(node.path.as_str());
        }
        Self { node, grid, scale: number("YOrg").zip(number("YInc")) }
    }

    /// Warns if the length of an array is not `NumPoints`.
    fn check_length(&self, desc: &ArrayDesc, report: &mut Report) {
        let expected = self.node.attrs.get("NumPoints").and_then(number);
        let found = desc.shape.lengths().last().copied().unwrap_or(0) as f64;
        if let Some(expected) = expected.filter(|n| *n != found) {
            let message = format!("expected {expected} samples, found {found}");
            report.warn("keysight-012", message).in_object(self.node.path.as_str());
        }
    }

    fn record(&self, array: ArrayDesc, part: String) -> Record {
        let unit = |name: &str| match self.node.attrs.get(name) {
            Some(Value::Text(text)) => unit_of_name(text).to_string(),
            _ => String::new(),
        };
        let is_integer = array.dtype.is_integer();
        let mut record = Record::new(self.node.name.as_str(), array).part(part);
        // Floating-point samples are physical values.
        if let Some((intercept, slope)) = self.scale.filter(|_| is_integer) {
            record = record.scaled(intercept, slope);
        }
        if let Some((start, step)) = self.grid {
            record = record.on_grid(start, step, &unit("XUnits"));
        }
        record.attr("units", unit("YUnits")).attr("label", self.node.name.as_str())
    }
}

/// A number, or the first one of a list.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::List(list) => list.first().and_then(number),
        value => f64::try_from(value).ok(),
    }
}

/// Sample arrays of a channel with the names of their segments, sorted by segment number. The name of such an
/// array is the name of the channel, `Seg` and a number, and `Data`.
fn arrays<'a>(tree: &'a Tree, group: NodeId, channel: &str) -> Vec<(String, &'a ArrayDesc)> {
    let mut found = Vec::new();
    for (_, node, desc) in tree.arrays().filter(|(_, node, _)| node.parent == group) {
        let Some(name) = node.name.strip_suffix("Data") else { continue };
        let name = name.strip_prefix(channel).unwrap_or(name).trim();
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let order = digits.parse::<u64>().unwrap_or(0);
        let name = match name.strip_prefix("Seg") {
            Some(number) => format!("segment{number}"),
            None if name.is_empty() => "data".into(),
            None => name.to_string(),
        };
        found.push((order, name, desc));
    }
    found.sort_by_key(|(order, ..)| *order);
    found.into_iter().map(|(_, name, desc)| (name, desc)).collect()
}

/// Number of a name such as `segment3`.
fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("segment")?.parse().ok().filter(|number| *number > 0)
}

/// The samples of a channel without the scaling and the coordinates of the HDF5 file. The first dimension of an
/// array with several rows is that of the segments.
fn samples(desc: &ArrayDesc) -> Result<ArrayDesc> {
    let mut array = desc.clone();
    if let [1, points] = *desc.shape.lengths() {
        let shape = Shape::new([points]);
        if let Some(layout) = desc.layout.rows(0, shape.bytes(desc.dtype.size())?) {
            array = ArrayDesc::new(desc.dtype, shape, layout);
        }
    }
    array.coords.iter_mut().for_each(|coord| *coord = Coord::None);
    array.map = None;
    if let ([_, _], Some(name)) = (array.shape.lengths(), array.dims.first_mut()) {
        *name = SEGMENT.into();
    }
    Ok(array)
}

/// Unit symbol of a name in an HDF5 file; unknown names are returned unchanged.
fn unit_of_name(name: &str) -> &str {
    match name {
        "Volt" | "Volts" => "V",
        "Second" | "Seconds" => "s",
        "Amp" | "Amps" | "Ampere" => "A",
        "Hertz" => "Hz",
        "Decibel" => "dB",
        "Unknown" | "None" | "Unitless" => "",
        other => other,
    }
}
