//! XCrySDen structure files: crystals with fields on general grids.
//!
//! | section | content |
//! |---|---|
//! | `PRIMVEC` | three cell vectors in ångström |
//! | `PRIMCOORD` | number of atoms and 1; atomic number or symbol, and position of each |
//! | `BEGIN_DATAGRID_3D_name` | points, origin, three spanning vectors, values with the first index fastest |
//!
//! A general grid has its end points on the ends of the spanning vectors. If these are the cell vectors, the
//! last point along each repeats the first.

use std::io::Write as _;
use std::path::Path;

use spile_core::format::{FormatWriter, Loss, WriteOptions};
use spile_core::text_records::{Record, each_record, line_end};
use spile_core::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Error, OpenOptions, Order, Parsed, ROOT, Report,
    Result, Shape, Sink, Source, Tree, Value,
};
use spile_interchange::structure::labelled_number;

use crate::values::{Values, fields, integer, real};
use crate::volume::{
    Field, Plan, add_atoms, add_cell, add_field, parse_title, symbols, text_layout, triple,
    write_values,
};
use crate::{Text, Xsf};

/// Beginnings of the words around a grid.
const BEGIN: [&[u8]; 2] = [b"BEGIN_DATAGRID_3D", b"DATAGRID_3D"];
const END: &[u8] = b"END_DATAGRID_3D";

/// Longest line in bytes.
const LONGEST: usize = 1 << 20;

impl FormatWriter for Xsf {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Plan::new(content, usize::MAX, "xsf-020")?.losses(content, ("XSF", false))
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = Plan::new(content, usize::MAX, "xsf-020")?;
        let structure = plan.structure(content, false)?;
        writeln!(
            sink,
            "# lengths in angstrom; units of the grids are in brackets\nCRYSTAL\nPRIMVEC"
        )?;
        for vector in structure.cell {
            writeln!(sink, "{}", triple(vector))?;
        }
        writeln!(sink, "PRIMCOORD\n{} 1", structure.atoms.len())?;
        for (number, position) in &structure.atoms {
            writeln!(sink, "{number}{}", triple(*position))?;
        }
        for field in &plan.fields {
            let (name, units) = Plan::title(content, field);
            let grid = Repeated::of(field);
            writeln!(sink, "BEGIN_BLOCK_DATAGRID_3D\n{name} [{units}]\nBEGIN_DATAGRID_3D_{name}")?;
            let [n1, n2, n3] = grid.points;
            writeln!(sink, "{n1} {n2} {n3}\n{}", triple(field.origin(structure.cell)))?;
            for (fraction, vector) in grid.span.iter().zip(structure.cell) {
                writeln!(sink, "{}", triple(vector.map(|value| fraction * value)))?;
            }
            let values = Plan::values(content, field, Order::F)?;
            let row = usize::try_from(grid.points[0]).unwrap_or(usize::MAX);
            write_values(grid.values(&values), row, sink)?;
            sink.write_all(b"END_DATAGRID_3D\nEND_BLOCK_DATAGRID_3D\n")?;
        }
        Ok(Vec::new())
    }
}

/// A general grid: the points with the repeated ones.
struct Repeated {
    own: [u64; 3],
    points: [u64; 3],
    /// Spanning vectors as fractions of the cell vectors.
    span: [f64; 3],
}

impl Repeated {
    /// Along vectors that the points fill without the end, the first point is repeated there.
    fn of(field: &Field) -> Self {
        let (mut points, mut span) = (field.points, [0.0; 3]);
        for k in 0..3 {
            let cell = field.points[k] as f64 * field.step[k];
            if (cell - 1.0).abs() < 1e-9 {
                points[k] = points[k].saturating_add(1);
                span[k] = 1.0;
            } else {
                span[k] = (field.points[k].saturating_sub(1)) as f64 * field.step[k];
            }
        }
        Self { own: field.points, points, span }
    }

    /// All values, from those without repeated points; first index fastest.
    fn values<'a>(&self, own: &'a [f64]) -> impl Iterator<Item = f64> + use<'a> {
        let ([n1, n2, n3], [p1, p2, p3]) = (self.own, self.points);
        let value = move |i: u64, j: u64, k: u64| {
            let at = ((k % n3) * n2 + j % n2) * n1 + i % n1;
            usize::try_from(at).ok().and_then(|at| own.get(at)).copied().unwrap_or(f64::NAN)
        };
        let rows = (0..p3).flat_map(move |k| (0..p2).map(move |j| (j, k)));
        rows.flat_map(move |(j, k)| (0..p1).map(move |i| value(i, j, k)))
    }
}

/// A keyword at the beginning of a line.
pub(crate) fn probe(head: &[u8]) -> u8 {
    if head.iter().any(|b| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r')) {
        return 0;
    }
    let known = |line: &[u8]| {
        let word = fields(line).next().unwrap_or_default();
        let keywords: [&[u8]; 7] =
            [b"CRYSTAL", b"SLAB", b"POLYMER", b"MOLECULE", b"PRIMVEC", b"PRIMCOORD", b"ATOMS"];
        keywords.contains(&word) || word.starts_with(b"BEGIN_BLOCK_DATAGRID")
    };
    let first = head.split(|b| *b == b'\n').find(|line| {
        let line = line.trim_ascii();
        !line.is_empty() && !line.starts_with(b"#")
    });
    if first.is_some_and(known) { 80 } else { 0 }
}

/// The section that the next line belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Section {
    None,
    Vectors,
    Count,
    Atoms(u64),
    Title,
    /// Numbers of the header of a grid that are missing.
    Header,
    Values,
    Skipped,
}

/// A grid of the file.
#[derive(Default)]
struct Grid {
    name: String,
    units: String,
    /// Points, origin, spanning vectors.
    header: Vec<f64>,
    offset: u64,
    len: u64,
}

/// What the lines contain.
struct Parser {
    section: Section,
    cell: Vec<f64>,
    numbers: Vec<u32>,
    positions: Vec<f64>,
    title: String,
    grids: Vec<Grid>,
    report: Report,
}

impl Parser {
    fn line(&mut self, record: Record<'_>) -> Result<()> {
        let line = record.bytes.trim_ascii();
        let bad = |message: &str| Err(Error::malformed("xsf-001", message).at(record.offset));
        let first = fields(line).next().unwrap_or_default();
        if self.section == Section::Values {
            if first.starts_with(END) {
                self.section = Section::None;
            } else if let Some(grid) = self.grids.last_mut() {
                grid.len = record.next.saturating_sub(grid.offset);
            }
            return Ok(());
        }
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let numbers = || fields(line).map(real).collect::<Option<Vec<f64>>>();
        match self.section {
            Section::Vectors if self.cell.len() < 9 => {
                let Some(vector) = numbers().filter(|n| n.len() == 3) else {
                    return bad("expected three components of a cell vector");
                };
                self.cell.extend(vector);
                return Ok(());
            }
            Section::Count => {
                let Some(count) = integer(first).and_then(|n| u64::try_from(n).ok()) else {
                    return bad("expected the number of atoms");
                };
                self.section = Section::Atoms(count);
                return Ok(());
            }
            Section::Atoms(left @ 1..) => {
                let words: Vec<&[u8]> = fields(line).collect();
                let position = words.get(1..4).map(|words| words.iter().map(|w| real(w)));
                let position: Option<Vec<f64>> = position.and_then(Iterator::collect);
                let Some(position) = position else {
                    return bad("expected an atom and its position");
                };
                let number = integer(first).and_then(|n| u32::try_from(n).ok());
                let label = || labelled_number(&String::from_utf8_lossy(first));
                self.numbers.push(number.unwrap_or_else(label));
                self.positions.extend(position);
                self.section = Section::Atoms(left - 1);
                return Ok(());
            }
            Section::Title => {
                self.title = String::from_utf8_lossy(line).into_owned();
                self.section = Section::None;
                return Ok(());
            }
            Section::Header => {
                let Some(more) = numbers() else { return bad("expected the header of a grid") };
                let Some(grid) = self.grids.last_mut() else { return Ok(()) };
                grid.header.extend(more);
                if grid.header.len() >= 15 {
                    (grid.offset, grid.len) = (record.next, 0);
                    self.section = Section::Values;
                }
                return Ok(());
            }
            Section::Skipped if !first.starts_with(b"END") => return Ok(()),
            _ => {}
        }
        self.keyword(first, record.offset)
    }

    fn keyword(&mut self, word: &[u8], offset: u64) -> Result<()> {
        let begin = BEGIN.iter().find_map(|begin| word.strip_prefix(*begin));
        self.section = match word {
            b"PRIMVEC" if self.cell.is_empty() => Section::Vectors,
            b"PRIMCOORD" if self.numbers.is_empty() => Section::Count,
            b"BEGIN_BLOCK_DATAGRID_3D" => Section::Title,
            b"CRYSTAL" | b"END_BLOCK_DATAGRID_3D" => Section::None,
            _ if word.starts_with(b"END") => Section::None,
            b"ANIMSTEPS" => {
                let message = "files with several steps are not supported";
                return Err(Error::unsupported("xsf-003", message).at(offset));
            }
            _ if begin.is_some() => {
                let name = begin.unwrap_or_default();
                let name = String::from_utf8_lossy(name.strip_prefix(b"_").unwrap_or(name));
                let (name, units) = match parse_title(&self.title) {
                    Some((known, units)) if known == name => (known, units),
                    _ => (&*name, ""),
                };
                let (name, units) = (name.to_string(), units.to_string());
                self.grids.push(Grid { name, units, ..Grid::default() });
                Section::Header
            }
            _ => {
                if self.section != Section::Skipped {
                    let message =
                        format!("the section {:?} is not read", String::from_utf8_lossy(word));
                    self.report.warn("xsf-010", message).at(offset);
                }
                Section::Skipped
            }
        };
        Ok(())
    }
}

/// Opens an XSF file. The values are parsed when they are read.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut parser = Parser {
        section: Section::None,
        cell: Vec::new(),
        numbers: Vec::new(),
        positions: Vec::new(),
        title: String::new(),
        grids: Vec::new(),
        report: Report::default(),
    };
    let limits = options.limits;
    let too_long = || Error::not_this_format("xsf-001", "a line is longer than 1 MiB");
    each_record(&source, 0, LONGEST, line_end, too_long, |record| {
        let kept = parser.numbers.len() * 64
            + parser.grids.len() * 1_024
            + parser.report.findings.len() * 256;
        limits.allow(kept as u64, "the sections of the file")?;
        parser.line(record)
    })?;
    let mut tree = Tree::new(&limits);
    let rows = |values: &[f64]| -> Option<[[f64; 3]; 3]> {
        values.as_chunks::<3>().0.first_chunk().copied()
    };
    let Parser { cell, numbers, positions, grids, mut report, .. } = parser;
    let cell = rows(&cell);
    let id = cell.map(|cell| add_cell(&mut tree, cell, false)).transpose()?;
    if !numbers.is_empty() {
        let count = numbers.len() as u64;
        add_atoms(&mut tree, count, &positions, symbols(&numbers), false)?;
    }
    let summary = Attrs::from([
        ("atoms", (numbers.len() as u64).into()),
        ("grids", (grids.len() as u64).into()),
    ]);
    for grid in grids {
        let [n1, n2, n3, origin @ .., _, _, _, _, _, _, _, _, _] = &grid.header[..] else {
            report.error("xsf-002", "the header of a grid is incomplete").in_object(grid.name);
            continue;
        };
        let points = [*n1, *n2, *n3].map(|n| if n >= 1.0 { n as u64 } else { 0 });
        let shape = Shape::new(points);
        // Every value has a digit and a blank.
        let fits = shape.count().is_some_and(|n| n.saturating_mul(2) <= grid.len + 1);
        if points.contains(&0) || !fits || grid.header.len() != 15 {
            let message = format!("expected values of shape {shape}, found {} bytes", grid.len);
            report
                .error("xsf-002", message)
                .in_object(format!("\"{}\"", grid.name))
                .at(grid.offset);
            continue;
        }
        let span = rows(&grid.header[6..]);
        let periodic = cell.zip(span).is_some_and(|(cell, span)| {
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * (1.0 + a.abs());
            cell.as_flattened().iter().zip(span.as_flattened()).all(near)
        });
        let kept = points.map(|n| if periodic { n.saturating_sub(1).max(1) } else { n });
        let values = Values { points: points.into_iter().zip(kept).collect(), code: "xsf-002" };
        let layout = text_layout(grid.offset, grid.len, values, Order::F);
        let name = if grid.name.is_empty() { "values" } else { &grid.name };
        let at_origin = origin.iter().all(|value| *value == 0.0);
        let node = if let (Some(cell), true, true) = (id, periodic, at_origin) {
            let step = kept.map(|n| 1.0 / n as f64);
            let field = Field { id: ROOT, points: kept, start: [0.0; 3], step };
            add_field(&mut tree, name, (&field, layout), cell)?
        } else {
            let mut desc = ArrayDesc::new(DType::F64, Shape::new(kept), layout);
            desc.dims = ["a1", "a2", "a3"].map(String::from).to_vec();
            desc.coords = vec![Coord::None; 3];
            let node = tree.add_array(ROOT, name, desc)?;
            let list = |values: &[f64]| {
                Value::List(values.iter().map(|value| Value::Float(*value)).collect())
            };
            tree.push_attr(node, "origin", list(origin))?;
            tree.push_attr(node, "spanning_vectors", list(&grid.header[6..]))?;
            node
        };
        if !grid.units.is_empty() {
            tree.push_attr(node, "units", grid.units)?;
        }
    }
    let parsed = Parsed::new(source, tree).with_summary(summary);
    Ok(parsed.with_warnings(report.findings).with_native(Text))
}
