//! The values of an array as comma-separated values, with names and coordinates.

use std::fmt::Write as _;
use std::io::Write;

use spile_core::{Array, ArrayDesc, Coord, DType, Dataset, Kind, Node, Result, Selection, convert};

use super::{Values, Words, select, shown};

/// Columns beside the values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv {
    /// Begin with a line of names.
    pub header: bool,
    /// One line per element, with the coordinates of all dimensions.
    pub coords: bool,
    /// Number of the frame, as the first column.
    pub frame: Option<u64>,
}

/// Name, unit and points of a dimension.
struct Axis {
    heading: String,
    points: Vec<f64>,
    /// The points are indices.
    whole: bool,
    start: u64,
    step: i64,
    count: u64,
}

/// Writes comma-separated values: one line per row or, with coordinates, per element. Names have their units
/// in brackets.
pub fn csv(
    dataset: &Dataset,
    (node, desc): (&Node, &ArrayDesc),
    array: &Array,
    selection: &Selection,
    (values, options): (Values, Csv),
    out: &mut dyn Write,
) -> Result<()> {
    let array = &shown(array, values);
    let selected = select(array, selection)?;
    let shape = selected.shape();
    let mut axes = Vec::new();
    for (k, span) in selected.spans().iter().enumerate().filter(|(_, span)| !span.dropped) {
        if !options.coords {
            break;
        }
        let coord = desc.coords.get(k).unwrap_or(&Coord::None);
        let len = array.shape().lengths().get(k).copied().unwrap_or(0);
        let name = desc.dims.get(k).map_or("", String::as_str);
        let units = match coord.node() {
            Some(id) => dataset.tree().node(id).attrs.get_str("units"),
            None => node.attrs.get_str(&format!("{name}_units")),
        };
        let (heading, whole) = (heading(name, units), *coord == Coord::None);
        let points = if whole { Vec::new() } else { dataset.points(coord, len)? };
        axes.push(Axis {
            heading,
            points,
            whole,
            start: span.start,
            step: span.step,
            count: span.count,
        });
    }
    let row = match *shape.lengths() {
        [.., columns] if shape.rank() > 1 && !options.coords => columns,
        _ => 1,
    };
    if options.header {
        let mut names: Vec<String> = options.frame.map(|_| "frame".into()).into_iter().collect();
        names.extend(axes.iter().map(|axis| axis.heading.clone()));
        let units = node.attrs.get_str("units");
        let own = |k: u64| match row {
            1 => heading(&node.path, units),
            _ => heading(&format!("{}[{k}]", node.path), units),
        };
        names.extend((0..row).map(own));
        let mut line = String::new();
        for (k, name) in names.iter().enumerate() {
            line.push_str(if k == 0 { "" } else { "," });
            quote(name, &mut line);
        }
        writeln!(out, "{line}")?;
    }
    let words = Words { dtype: array.dtype(), element };
    let before = |k: u64, line: &mut String| {
        if !k.is_multiple_of(row) {
            return;
        }
        if let Some(frame) = options.frame {
            let _ = write!(line, "{frame},");
        }
        let mut rest = k;
        let mut places = vec![0; axes.len()];
        for (place, axis) in places.iter_mut().zip(&axes).rev() {
            let index = rest % axis.count.max(1);
            *place = (axis.start as i64 + index as i64 * axis.step) as u64;
            rest /= axis.count.max(1);
        }
        for (axis, place) in axes.iter().zip(places) {
            match axis.points.get(place as usize) {
                Some(point) => convert::write_f64(*point, line),
                None if axis.whole => {
                    let _ = write!(line, "{place}");
                }
                None => {}
            }
            line.push(',');
        }
    };
    let after = |k: u64, line: &mut String| {
        line.push(if (k + 1).is_multiple_of(row) { '\n' } else { ',' });
    };
    words.write(&selected, before, after, out)
}

fn heading(name: &str, units: Option<&str>) -> String {
    match units.filter(|units| !units.is_empty()) {
        Some(units) => format!("{name} ({units})"),
        None => name.to_string(),
    }
}

/// Appends `text`, in quotes if it needs them.
fn quote(text: &str, out: &mut String) {
    if text.contains([',', '"', '\n', '\r']) {
        let _ = write!(out, "\"{}\"", text.replace('"', "\"\""));
    } else {
        out.push_str(text);
    }
}

fn element(dtype: DType, element: &[u8], out: &mut String) {
    if dtype.kind() != Kind::Text {
        return convert::write_element(dtype, element, out);
    }
    let mut text = String::new();
    convert::write_element(dtype, element, &mut text);
    quote(&text, out);
}
