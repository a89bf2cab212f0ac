//! The rows as one array. Numbers are parsed when they are read.

use std::sync::Arc;

use spile_core::format::{Native, Object, Region, RegionKind};
use spile_core::layout::COLUMN;
use spile_core::text_records::{Records, Rows, line_end};
use spile_core::{
    ArrayDesc, Attrs, Codec, Coord, DType, Dataset, Error, Extents, Layout, OpenOptions, Order,
    Parsed, ROOT, Report, Result, Role, Semantics, Shape, Source, Tree, Value,
};

use crate::oscilloscope::Scope;
use crate::read::{self, Line, Table};
use crate::semantics::{self, Name};

/// Dimension of the channels of an oscilloscope.
const TIME: &str = "time";

pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let table = read::scan(&source, &options.limits)?;
    let mut tree = Tree::new(&options.limits);
    let names = semantics::names(&table.header, table.rows.columns);
    if let Some(scope) = &table.scope {
        add_channels(&mut tree, &table, scope)?;
    } else {
        let data = tree.add_array(ROOT, "data", describe(&table, &names))?;
        tree.set_attrs(data, attributes(&table, &names))?;
    }
    if !table.header.is_empty() {
        tree.push_attr(ROOT, "header", table.header.as_str())?;
    }
    let Rows { count, columns, .. } = table.rows;
    let mut summary = Attrs::from([("rows", count.into()), ("columns", columns.into())]);
    if let Some((start, step)) = table.grid {
        let [start, step] = [start, step].map(|v| Value::from(v).to_string());
        let what = if table.scope.is_some() { "time" } else { "the first column" };
        summary.push("grid", format!("{what}, start {start}, step {step}"));
    }
    let mut report = Report::default();
    table.rows.report_partial("columns-010", &mut report);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_native(table);
    Ok(parsed.with_warnings(report.findings))
}

/// One array per channel of an oscilloscope. Times that are not uniform are the array `time`.
fn add_channels(tree: &mut Tree, table: &Table, scope: &Scope) -> Result<()> {
    let coord = if let Some((start, step)) = table.grid {
        Coord::Uniform { start, step }
    } else {
        let mut time = column(table, 0);
        time.dims = vec![TIME.into()];
        let id = tree.add_array(ROOT, TIME, time)?;
        let names = [(1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps")];
        let units = names.into_iter().find(|(unit, _)| *unit == scope.unit);
        let units = units.map_or("s", |(_, name)| name);
        tree.push_attr(id, "units", units)?;
        Coord::Node(id)
    };
    for (index, name) in scope.channels.iter().enumerate() {
        let mut channel = column(table, index as u64 + scope.skip);
        channel.dims = vec![TIME.into()];
        channel.coords = vec![coord.clone()];
        let id =
            tree.add_array(ROOT, &name.text, channel.with_semantics(Semantics::role(Role::Trace)))?;
        tree.push_attr(id, "time_units", "s")?;
        if !name.unit.is_empty() {
            tree.push_attr(id, "units", name.unit.as_str())?;
        }
    }
    Ok(())
}

/// One column as an array.
fn column(table: &Table, column: u64) -> ArrayDesc {
    let Rows { start, end, count, columns, .. } = table.rows;
    let layout = Layout::EncodedWhole {
        extents: Extents::one(start, end - start),
        codec: Arc::new(Parser { columns, only: Some(column) }),
        order: Order::C,
    };
    ArrayDesc::new(DType::F64, Shape::new([count]), layout)
}

/// The array of all columns, including a first column that is the coordinate of the rows.
fn describe(table: &Table, names: &[Name]) -> ArrayDesc {
    let Rows { start, end, count, columns, .. } = table.rows;
    let layout = Layout::EncodedWhole {
        extents: Extents::one(start, end - start),
        codec: Arc::new(Parser { columns, only: None }),
        order: Order::C,
    };
    let mut desc = ArrayDesc::new(DType::F64, Shape::new([count, columns]), layout);
    desc.dims = vec![dimension(table, names), COLUMN.into()];
    if let Some((start, step)) = table.grid {
        desc.coords[0] = Coord::Uniform { start, step };
    }
    desc.with_semantics(Semantics::role(Role::Table))
}

/// Name of the first dimension.
fn dimension(table: &Table, names: &[Name]) -> String {
    match (table.grid, names.first()) {
        // Names of dimensions are unique.
        (Some(_), Some(name)) if name.text != COLUMN => name.text.clone(),
        (Some(_), _) => "x".into(),
        (None, _) => "row".into(),
    }
}

/// Names and units given by the header.
fn attributes(table: &Table, names: &[Name]) -> Attrs {
    let mut attrs = Attrs::new();
    let mut add = |name: String, text: &str| {
        if !text.is_empty() {
            attrs.push(name, text);
        }
    };
    let mut data = names;
    if let (Some(_), [first, rest @ ..]) = (table.grid, names) {
        add(format!("{}_units", dimension(table, names)), &first.unit);
        data = rest;
    }
    if let [first, rest @ ..] = data
        && rest.iter().all(|name| name.unit == first.unit)
    {
        add("units".into(), &first.unit);
    }
    if !names.is_empty() {
        let names = names.iter().map(|name| Value::from(name.text.as_str())).collect();
        attrs.push("columns", Value::List(names));
    }
    attrs
}

/// Parses rows of `columns` numbers; other lines are ignored.
struct Parser {
    columns: u64,
    /// The column to keep; all if `None`.
    only: Option<u64>,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut slots = out.as_chunks_mut::<8>().0.iter_mut();
        let mut numbers = Vec::new();
        for line in Records::new(stored, line_end) {
            if read::parse_line(line, &mut numbers) == Line::Numbers
                && numbers.len() as u64 == self.columns
            {
                let kept = |k: usize| self.only.is_none_or(|column| column == k as u64);
                for (_, number) in numbers.iter().enumerate().filter(|(k, _)| kept(*k)) {
                    let Some(slot) = slots.next() else { return Err(changed()) };
                    *slot = number.to_le_bytes();
                }
            }
        }
        if slots.next().is_none() { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    Rows::changed("columns-004")
}

impl Native for Table {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.rows.regions((RegionKind::Text, "header"), dataset.source().len(), each)
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in dataset.arrays() {
            each(Object::new(&node.path, "text", array.clone()))?;
        }
        Ok(())
    }
}
