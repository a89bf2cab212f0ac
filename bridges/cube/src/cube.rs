//! Gaussian cube files.
//!
//! | line | content |
//! |---|---|
//! | 1, 2 | text |
//! | 3 | number of atoms, origin, optionally the number of values per point |
//! | 4 to 6 | number of points along a vector, and the vector between two points |
//! | one per atom | atomic number, charge, position |
//! | if the number of atoms is negative | number of orbitals, and the orbitals |
//! | others | values, the third index fastest |

use std::path::Path;

use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::{
    ArrayDesc, Attrs, DType, Dataset, Error, OpenOptions, Order, Parsed, ROOT, Result, Shape, Sink,
    Source, Tree, Value,
};
use std::io::Write as _;

use crate::values::{Values, fields, integer, real};
use crate::volume::{
    Field, Plan, add_atoms, add_cell, add_field, parse_title, symbols, text_layout, triple,
    write_values,
};
use crate::{Cube, Text};

/// The usual second line: lengths are in bohr, and the third index is the fastest.
const COMMENT: &str = "OUTER LOOP: X, MIDDLE LOOP: Y, INNER LOOP: Z";

/// Name of values without a title `NAME [UNIT]`.
const VALUES: &str = "values";

/// Longest header, in bytes, besides that of a share of the memory limit.
const LINE: u64 = 4 << 10;

impl FormatWriter for Cube {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let plan = Plan::new(content, 1, "cube-020")?;
        let mut losses = plan.losses(content, ("a cube file", true))?;
        let attrs = content.attrs();
        let kept_title = plan.kept_title(content).is_some();
        losses.retain(|loss| match loss.name.as_deref().filter(|_| loss.path.is_empty()) {
            Some("title") => !kept_title,
            Some("comment") => comment(attrs).is_none(),
            _ => true,
        });
        Ok(losses)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = Plan::new(content, 1, "cube-020")?;
        let Some(field) = plan.fields.first() else { return Ok(Vec::new()) };
        let structure = plan.structure(content, true)?;
        let (name, units) = Plan::title(content, field);
        match plan.kept_title(content) {
            Some(title) => writeln!(sink, "{title}")?,
            None => writeln!(sink, "{name} [{units}]")?,
        }
        writeln!(sink, "{}", comment(content.attrs()).unwrap_or(COMMENT))?;
        let origin = field.origin(structure.cell);
        writeln!(sink, "{}{}", structure.atoms.len(), triple(origin))?;
        for ((points, step), vector) in field.points.iter().zip(field.step).zip(structure.cell) {
            let between = whole(*points, step).map_or_else(
                || vector.map(|value| value * step),
                |count| vector.map(|value| value / count),
            );
            writeln!(sink, "{points}{}", triple(between))?;
        }
        for (number, position) in &structure.atoms {
            writeln!(sink, "{number} {number}.0{}", triple(*position))?;
        }
        let values = Plan::values(content, field, Order::C)?;
        let row = usize::try_from(field.points[2]).unwrap_or(usize::MAX);
        write_values(values.into_iter(), row, sink)?;
        Ok(Vec::new())
    }
}

impl Plan {
    /// The title of a dataset, if it can be the first line of a file, in which the field has no name.
    fn kept_title<'a>(&self, content: &'a Dataset) -> Option<&'a str> {
        let (name, units) = Self::title(content, self.fields.first()?);
        let title = one_line(content.attrs(), "title")?;
        let unnamed = name == VALUES && units.is_empty() && parse_title(title).is_none();
        unnamed.then_some(title)
    }
}

/// The comment of a dataset, if it can be the second line of a file.
fn comment(attrs: &Attrs) -> Option<&str> {
    one_line(attrs, "comment")
}

fn one_line<'a>(attrs: &'a Attrs, name: &str) -> Option<&'a str> {
    let text = attrs.get_str(name)?;
    let plain = text.trim() == text && !text.is_empty() && !text.contains(char::is_control);
    plain.then_some(text)
}

/// The number of points as a divisor of the cell vector, if the points fill the cell without its end.
fn whole(points: u64, step: f64) -> Option<f64> {
    let count = points as f64;
    ((count * step - 1.0).abs() < 1e-9).then_some(count)
}

/// Two lines of text, then lines of one integer and three reals.
pub(crate) fn probe(head: &[u8]) -> u8 {
    let mut lines = head.split(|b| *b == b'\n').skip(2);
    if head.iter().any(|b| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r')) {
        return 0;
    }
    let numbers = |line: Option<&[u8]>| {
        let words: Vec<&[u8]> = fields(line.unwrap_or_default()).collect();
        let [first, rest @ ..] = &words[..] else { return false };
        let reals = rest.iter().take(3).filter(|word| real(word).is_some()).count();
        integer(first).is_some() && reals == 3 && rest.len() <= 4
    };
    // The last line may be cut.
    let good = (0..4).all(|_| numbers(lines.next()));
    if good { 75 } else { 0 }
}

/// The lines of the header.
struct Lines<'a> {
    source: &'a Source,
    at: u64,
}

impl Lines<'_> {
    /// The next line and its offset.
    fn next(&mut self) -> Result<(Vec<u8>, u64)> {
        let at = self.at;
        let mut bytes = vec![0; LINE as usize];
        let got = self.source.read_at_most(at, &mut bytes)?;
        bytes.truncate(got);
        if got == 0 {
            return Err(Error::truncated("cube-002", "the file ends in its header").at(at));
        }
        match bytes.iter().position(|b| *b == b'\n') {
            Some(end) => {
                bytes.truncate(end);
                self.at = at + end as u64 + 1;
            }
            None if (got as u64) < LINE => self.at = at + got as u64,
            None => {
                return Err(Error::malformed("cube-004", "a line of the header is too long").at(at));
            }
        }
        Ok((bytes, at))
    }

    /// The next line as an integer and at least `least` reals.
    fn numbers(&mut self, least: usize) -> Result<(i64, Vec<f64>)> {
        let (line, at) = self.next()?;
        let mut words = fields(&line);
        let first = words.next().and_then(integer);
        let rest: Option<Vec<f64>> = words.map(real).collect();
        match (first, rest) {
            (Some(first), Some(rest)) if rest.len() >= least => Ok((first, rest)),
            _ => {
                let message = format!("expected an integer and {least} numbers on the line");
                Err(Error::malformed("cube-001", message).at(at))
            }
        }
    }
}

/// Opens a cube file. The values are parsed when they are read.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut lines = Lines { source: &source, at: 0 };
    let text = |line: Vec<u8>| String::from_utf8_lossy(&line).trim().to_string();
    let title = text(lines.next()?.0);
    let comment = text(lines.next()?.0);
    let (atoms, first) = lines.numbers(3)?;
    let mut per_point = first.get(3).map_or(1, |count| *count as u64).max(1);
    let mut points = [0_u64; 3];
    let mut vectors = [[0.0; 3]; 3];
    let mut bohr = true;
    for (count, vector) in points.iter_mut().zip(&mut vectors) {
        let at = lines.at;
        let (number, rest) = lines.numbers(3)?;
        bohr &= number >= 0;
        *count = number.unsigned_abs();
        if *count == 0 {
            return Err(Error::malformed("cube-005", "a dimension without points").at(at));
        }
        vector.iter_mut().zip(rest).for_each(|(to, from)| *to = from);
    }
    let count = atoms.unsigned_abs();
    // A line has at least ten bytes.
    source.require(lines.at, count.saturating_mul(10))?;
    options.limits.allow(count.saturating_mul(64), "the atoms")?;
    let (mut numbers, mut positions) = (Vec::new(), Vec::new());
    let mut charges = Vec::new();
    for _ in 0..count {
        let (number, rest) = lines.numbers(4)?;
        numbers.push(u32::try_from(number).unwrap_or(0));
        charges.push(rest[0]);
        positions.extend_from_slice(&rest[1..4]);
    }
    if atoms < 0 {
        let (orbitals, rest) = lines.numbers(0)?;
        per_point = u64::try_from(orbitals).unwrap_or(0).max(1);
        // Their numbers may be on several lines.
        let mut left = per_point.saturating_sub(rest.len() as u64);
        while left > 0 {
            let (_, rest) = lines.numbers(0)?;
            left = left.saturating_sub(rest.len() as u64 + 1);
        }
    }
    let offset = lines.at;
    let (origin, cell) = ([first[0], first[1], first[2]], lattice(points, vectors));
    let mut tree = Tree::new(&options.limits);
    let mut attrs = Attrs::new();
    let known = parse_title(&title);
    if known.is_none() && !title.is_empty() {
        attrs.push("title", title.as_str());
    }
    if comment != COMMENT && !comment.is_empty() {
        attrs.push("comment", comment.as_str());
    }
    if origin.iter().any(|value| *value != 0.0) {
        attrs.push("origin", Value::List(origin.map(Value::from).to_vec()));
    }
    tree.set_attrs(ROOT, attrs)?;
    let cell_id = add_cell(&mut tree, cell, bohr)?;
    if count > 0 {
        let listed = charges.iter().zip(&numbers).any(|(q, z)| *q != 0.0 && *q != f64::from(*z));
        add_atoms(&mut tree, count, &positions, symbols(&numbers), bohr)?;
        if listed {
            let bytes: Vec<u8> = charges.iter().flat_map(|q| q.to_le_bytes()).collect();
            let mut desc = ArrayDesc::inline(DType::F64, Shape::new([count]), bytes);
            desc.dims = vec!["atom".into()];
            tree.add_array(ROOT, "nuclear_charges", desc)?;
        }
    }
    let len = source.len() - offset;
    let values = |parts: Vec<u64>| Values {
        points: parts.iter().rev().map(|n| (*n, *n)).collect(),
        code: "cube-003",
    };
    let field = Field {
        id: ROOT,
        points,
        start: fractions(cell, origin),
        step: points.map(|n| 1.0 / n as f64),
    };
    let (name, units) = known.unwrap_or((VALUES, ""));
    let id = if per_point == 1 {
        let layout = text_layout(offset, len, values(points.to_vec()), Order::C);
        add_field(&mut tree, name, (&field, layout), cell_id)?
    } else {
        let shape = [points[0], points[1], points[2], per_point];
        let layout = text_layout(offset, len, values(shape.to_vec()), Order::C);
        let mut desc = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
        desc.dims = ["a1", "a2", "a3", "value"].map(String::from).to_vec();
        tree.add_array(ROOT, name, desc)?
    };
    if !units.is_empty() {
        tree.push_attr(id, "units", units)?;
    }
    // Every value has a digit and a blank.
    let shape = tree.array(id).map_or(Shape::scalar(), |desc| desc.shape.clone());
    let least = shape.count().and_then(|n| n.checked_mul(2)).unwrap_or(u64::MAX);
    if least > len.saturating_add(1) {
        let message = format!("expected values of shape {shape}, the file has {len} bytes of them");
        return Err(Error::truncated("cube-003", message).at(offset));
    }
    let rows = Attrs::from([
        ("grid", format!("{} x {} x {}", points[0], points[1], points[2]).into()),
        ("atoms", count.into()),
    ]);
    Ok(Parsed::new(source, tree).with_summary(rows).with_native(Text))
}

/// The cell vectors from the vectors between points.
fn lattice(points: [u64; 3], between: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut cell = between;
    for (vector, count) in cell.iter_mut().zip(points) {
        for value in vector {
            *value *= count as f64;
        }
    }
    cell
}

/// The fractions of the cell vectors of a point; 0 if they are not independent.
fn fractions(cell: [[f64; 3]; 3], point: [f64; 3]) -> [f64; 3] {
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let volume = dot(cell[0], cross(cell[1], cell[2]));
    if volume == 0.0 || point == [0.0; 3] {
        return [0.0; 3];
    }
    [0, 1, 2].map(|k| dot(point, cross(cell[(k + 1) % 3], cell[(k + 2) % 3])) / volume)
}
