//! Text columns: numbers in rows, whatever the program that printed them.
//!
//! There is no specification; `FORMAT.md` says what is accepted.
//!
//! | file | what is in it |
//! |---|---|
//! | `scan` | one pass over the lines: where the rows begin, how wide they are |
//! | `grid` | a first column that is evenly spaced; names of columns |
//! | `lib` | the tree view; the numbers are parsed when they are asked for |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, read::*, select::Selection, source::Source};
//!
//! let text = "time (s)\tvoltage (V)\n0.0\t1.5\n0.1\t1.25D+00\n";
//! let limits = Limits::default();
//! let file = spile_columns::Columns.open(Source::memory(text), &limits)?;
//! let (_, _, desc) = file.tree().arrays().next().unwrap();
//! let array = Array::open(file.source(), file.tree(), desc, &limits)?;
//! assert_eq!(array.read_f64(&"1, :".parse()?, Axes::Stored)?, [0.1, 1.25]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod grid;
mod scan;

use std::sync::Arc;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Format, FormatInfo, Grade, Head, Object, Reader, Region, Role, Score};
use spile_core::layout::{ArrayDesc, COLUMN, Codec, Coord, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::recording;
use spile_core::report::{Finding, Report};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, ROOT, Tree, Value};

use grid::Name;
use scan::{Lines, Row, Table};

/// The format, for the registry.
pub struct Columns;

static INFO: FormatInfo = FormatInfo {
    name: "columns",
    title: "Columns of numbers in a text file",
    users: "everyone",
    specification: "none",
    extensions: &["txt", "csv", "dat", "tsv", "asc"],
    read: Grade::Complete,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

struct File {
    source: Source,
    table: Table,
    tree: Tree,
    report: Report,
}

impl File {
    fn open(source: Source, limits: &Limits) -> Result<Self> {
        let table = scan::scan(&source)?;
        let mut tree = Tree::new(limits);
        let names = grid::names(&table.header, table.columns);
        let data = tree.add_array(ROOT, "data", describe(&table, &names))?;
        tree.node_mut(data).attrs = attributes(&table, &names);
        if !table.header.is_empty() {
            let header = Value::Text(table.header.clone());
            tree.node_mut(ROOT).attrs.push(("header".into(), header));
        }
        let mut report = Report::default();
        if let Some(got) = table.partial {
            let of = table.columns;
            let message = format!("the last row has {got} of {of} numbers; it is left out");
            report.warn("columns-010", message).at(table.end);
        }
        Ok(Self { source, table, tree, report })
    }
}

/// All columns, the first too where it is the grid of the rows.
fn describe(table: &Table, names: &[Name]) -> ArrayDesc {
    let layout = Layout::Text {
        extents: Extents::one(table.start, table.end - table.start),
        codec: Arc::new(Parser { columns: table.columns }),
        order: Order::C,
    };
    let mut desc = ArrayDesc::new(DType::F64, Shape::new([table.rows, table.columns]), layout);
    desc.dims = vec![dimension(table, names), COLUMN.into()];
    if let Some((start, step)) = table.grid {
        desc.coords[0] = Coord::Uniform { start, step };
    }
    desc
}

/// What the rows are counted by.
fn dimension(table: &Table, names: &[Name]) -> String {
    match (table.grid, names.first()) {
        // No two dimensions have the same name.
        (Some(_), Some(name)) if name.text != COLUMN => name.text.clone(),
        (Some(_), _) => "x".into(),
        (None, _) => "row".into(),
    }
}

/// Names and units, where the header tells.
fn attributes(table: &Table, names: &[Name]) -> Attrs {
    let mut attrs = Attrs::new();
    let mut say = |name: String, text: &str| {
        if !text.is_empty() {
            attrs.push((name, text.into()));
        }
    };
    let mut data = names;
    if let (Some(_), [first, rest @ ..]) = (table.grid, names) {
        say(format!("{}_units", dimension(table, names)), &first.unit);
        data = rest;
    }
    if let [first, rest @ ..] = data
        && rest.iter().all(|name| name.unit == first.unit)
    {
        say("units".into(), &first.unit);
    }
    if !names.is_empty() {
        let names = names.iter().map(|name| Value::from(name.text.as_str())).collect();
        attrs.push(("columns".into(), Value::List(names)));
    }
    attrs
}

/// Parses the rows between the header and the end.
struct Parser {
    columns: u64,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut slots = out.as_chunks_mut::<8>().0.iter_mut();
        let mut numbers = Vec::new();
        for line in Lines::new(stored) {
            if scan::parse_row(line, &mut numbers) == Row::Numbers
                && numbers.len() as u64 == self.columns
            {
                for number in &numbers {
                    let Some(slot) = slots.next() else { return Err(changed()) };
                    *slot = number.to_le_bytes();
                }
            }
        }
        if slots.next().is_none() { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    Error::malformed(
        "columns-004",
        "the rows are not those that were counted; is it being written?",
    )
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let mut summary: Attrs = vec![
            ("rows".into(), self.table.rows.into()),
            ("columns".into(), self.table.columns.into()),
        ];
        if let Some((start, step)) = self.table.grid {
            let [start, step] = [start, step].map(|v| Value::from(v).to_string());
            let text = format!("the first column, start {start}, step {step}");
            summary.push(("grid".into(), text.into()));
        }
        summary
    }

    fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let (start, end, len) = (self.table.start, self.table.end, self.source.len());
        let mut emit = |from: u64, to: u64, role, name: &str, value: String| {
            if to > from {
                let name = name.into();
                each(Region { offset: from, len: to - from, role, name, value })?;
            }
            Ok(())
        };
        emit(0, start, Role::Text, "header", String::new())?;
        let rows = format!("{} rows of {}", self.table.rows, self.table.columns);
        emit(start, end, Role::Data, "rows", rows)?;
        emit(end, len, Role::Unknown, "partial row", String::new())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        let array = describe(&self.table, &[]);
        each(Object { path: "data".into(), id: None, frame: None, kind: "text".into(), array })
    }
}

impl Format for Columns {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Any text may have a column of numbers somewhere, so this is never surer than a guess.
    fn probe(&self, head: Head<'_>) -> Score {
        let whole = head.bytes.len() as u64 == head.len;
        scan::looks_like_rows(head.bytes, whole)
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        recording::report(File::open(source.clone(), limits))
    }
}
