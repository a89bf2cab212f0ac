//! The samples of an array along its time.

use spile_core::recording::SEGMENT;
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, Coord, Dataset, Error, Kind, NodeId, Order, Result, Selection,
    Shape, Slice, convert,
};

use super::{frequency_coord, shape_of};

/// Name of the dimension of frequencies.
pub(super) const FREQUENCY: &str = "frequency";

/// One or several rows of samples at a constant rate.
pub(super) struct Trace {
    /// Path of the array.
    pub(super) name: String,
    pub(super) array: Array,
    /// Samples of a row.
    pub(super) samples: u64,
    /// Number of rows: segments, or columns.
    pub(super) rows: u64,
    pub(super) rate: f64,
    /// First point along the time.
    pub(super) start: f64,
    pub(super) is_complex: bool,
    pub(super) units: String,
    /// Name and unit of the time.
    pub(super) time: (String, String),
    pub(super) attrs: Attrs,
    /// Columns that are left out at the beginning.
    skipped: u64,
    /// Name of the dimension of the rows and its coordinate; `None` with one dimension.
    other: Option<(String, Coord)>,
    /// The time is the first dimension.
    time_first: bool,
}

impl Trace {
    /// The samples of array `id`; `rate` replaces the rate of its coordinate.
    pub(super) fn of(content: &Dataset, id: NodeId, rate: Option<f64>) -> Result<Self> {
        let node = content.tree().node(id);
        let array = content.array_at(id)?;
        let desc = node.array.as_ref().ok_or_else(|| Error::argument("expected an array"))?;
        let is_complex = matches!(array.dtype().kind(), Kind::Complex);
        if !array.dtype().is_real() && !is_complex {
            let message = format!("a spectrum requires numbers, found {}", array.dtype());
            return Err(Error::argument(message));
        }
        let time_first = desc.dims.first().is_none_or(|name| name != SEGMENT);
        let skipped = u64::from(desc.has_grid_column());
        let lengths = array.shape().lengths();
        let (at, samples, rows, other) = match *lengths {
            [samples] => (0, samples, 1, None),
            [samples, columns] if time_first => (0, samples, columns, Some(1)),
            [segments, samples] => (1, samples, segments, Some(0)),
            _ => {
                let message =
                    format!("a spectrum requires one or two dimensions, found {}", array.shape());
                return Err(Error::argument(message).hint("select a part of the array"));
            }
        };
        let dimension = desc.dims.get(at).cloned().unwrap_or_default();
        let given = rate.is_some();
        let (start, step) = match (desc.coords.get(at), rate) {
            (Some(Coord::Uniform { start, step }), None) => (*start, *step),
            (Some(Coord::Uniform { start, .. }), Some(rate)) => (*start, 1.0 / rate),
            (_, Some(rate)) => (0.0, 1.0 / rate),
            (Some(Coord::Node(_)), None) => {
                let points = array.coord_at(at)?.read()?;
                Coord::spacing(&points).map_err(|k| {
                    let message = format!("the samples are not evenly spaced at index {k}");
                    Error::argument(message).hint("give the sampling rate")
                })?
            }
            (_, None) => (0.0, 1.0),
        };
        let rate = 1.0 / step.abs();
        if !(rate.is_finite() && rate > 0.0) {
            return Err(Error::argument(format!("invalid sampling interval: {step}")));
        }
        let attrs = &node.attrs;
        let text = |name: &str| attrs.get_str(name).unwrap_or_default().to_string();
        let time_units = match desc.coords.get(at).and_then(Coord::node) {
            Some(id) => content.tree().node(id).attrs.get_str("units").unwrap_or_default().into(),
            None => text(&format!("{dimension}_units")),
        };
        // Names that tables and arrays have by default.
        let unnamed =
            ["", "row"].contains(&dimension.as_str()) || dimension == format!("dim{}", at + 1);
        let dimension = if unnamed { "time".into() } else { dimension };
        // The unit of a given rate is Hz.
        let time = (dimension, if given { "s".into() } else { time_units });
        let kept = ["columns", "label", "instrument", "serial", "trigger_time", "coordinates"];
        let kept = attrs.iter().filter(|(name, _)| kept.contains(name));
        let mut own: Attrs = kept.map(|(name, value)| (name, value.clone())).collect();
        if let (1, Some(spile_core::Value::List(names))) = (skipped, own.get("columns")) {
            let names = names.iter().skip(1).cloned().collect();
            own.set("columns", spile_core::Value::List(names));
        }
        let other = other.map(|k: usize| {
            let coord = desc.coords.get(k).filter(|coord| coord.node().is_none());
            (desc.dims.get(k).cloned().unwrap_or_default(), coord.cloned().unwrap_or(Coord::None))
        });
        let (name, units) = (node.path.clone(), text("units"));
        let rows = rows.saturating_sub(skipped);
        Ok(Self {
            name,
            array,
            samples,
            rows,
            rate,
            start,
            is_complex,
            units,
            time,
            attrs: own,
            skipped,
            other,
            time_first,
        })
    }

    /// `count` samples of a row from number `first` on.
    pub(super) fn read(&self, row: u64, first: u64, count: u64) -> Result<Samples> {
        let range = Slice::range(first, first + count);
        let index = Slice::Index(i64::try_from(row + self.skipped).unwrap_or(i64::MAX));
        let part = match (&self.other, self.time_first) {
            (None, _) => vec![range],
            (Some(_), true) => vec![range, index],
            (Some(_), false) => vec![index, range],
        };
        let part = Selection(part);
        if !self.is_complex {
            return Ok(Samples::Real(self.array.read_f64(&part, Axes::Stored)?));
        }
        let bytes = self.array.read_bytes(&part, Axes::Stored)?;
        let mut numbers = Vec::new();
        convert::to_f64(convert::part(self.array.dtype()), None, &bytes, &mut numbers);
        Ok(Samples::Complex(numbers))
    }

    /// Unit of the frequency.
    pub(super) fn frequency_units(&self) -> String {
        match self.time.1.as_str() {
            "s" | "S" => "Hz".into(),
            "ms" => "kHz".into(),
            "us" | "µs" => "MHz".into(),
            "ns" => "GHz".into(),
            "" => String::new(),
            other => format!("1/{other}"),
        }
    }

    /// Shape and order of the spectra of all rows, `bins` frequencies each.
    pub(super) fn shape_with(&self, bins: u64) -> (Shape, Order) {
        shape_of(self.other.as_ref().map(|_| self.rows), self.time_first, bins)
    }

    /// Sets dimension names and coordinates of the spectra of all rows.
    pub(super) fn describe(&self, desc: &mut ArrayDesc, frequencies: (f64, f64)) {
        let mut dims = vec![FREQUENCY.to_string()];
        let mut coords = vec![frequency_coord(frequencies)];
        if let Some((name, coord)) = &self.other {
            let at = usize::from(self.time_first);
            dims.insert(at, name.clone());
            coords.insert(at, coord.clone());
        }
        (desc.dims, desc.coords) = (dims, coords);
    }
}

/// Samples of a trace.
pub(super) enum Samples {
    Real(Vec<f64>),
    /// Real and imaginary parts in turn.
    Complex(Vec<f64>),
}

/// Samples of a segment.
pub(super) enum Part<'a> {
    Real(&'a [f64]),
    Complex(&'a [f64]),
}

impl Samples {
    /// `count` samples from number `first` on; fewer at the end.
    pub(super) fn part(&self, first: usize, count: usize) -> Part<'_> {
        match self {
            Self::Real(all) => Part::Real(all.get(first..first + count).unwrap_or_default()),
            Self::Complex(all) => {
                Part::Complex(all.get(2 * first..2 * (first + count)).unwrap_or_default())
            }
        }
    }
}
