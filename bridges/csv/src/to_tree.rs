//! Columns to arrays. Values are parsed when they are read.

use std::str::FromStr;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extents, Layout};
use spile_core::report::Report;
use spile_core::semantics::{Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::text_records::Rows;
use spile_core::tree::{Attrs, ROOT, Tree};

use crate::compression;
use crate::heading::{Heading, Tag, is_one_of_several};
use crate::read::{self, Frames, Table};
use crate::value::{self, Seen, Spelling};
use crate::wire::Dialect;

/// Adjacent columns that form one array.
struct Column {
    path: String,
    /// Number of the first column.
    first: usize,
    /// Lengths of the dimensions after the first.
    tail: Vec<u64>,
    dtype: DType,
    units: Option<String>,
}

impl Column {
    /// Number of columns.
    fn count(&self) -> usize {
        self.tail.iter().product::<u64>() as usize
    }
}

pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut source = compression::open_decoded(source, &options.limits)?;
    let mut table = read::scan(&source, &options.limits)?;
    if table.seen.iter().any(|seen| seen.has(Seen::NOT_UTF8)) {
        source = compression::from_latin1(&source, &options.limits)?;
        table = read::scan(&source, &options.limits)?;
    }
    let mut tree = Tree::new(&options.limits);
    if !table.title.is_empty() {
        tree.push_attr(ROOT, "header", std::mem::take(&mut table.title))?;
    }
    let mut first = 0;
    let mut coordinate = None;
    if let Some(Tag::Coordinate { start, step }) = table.headings[0].tag {
        coordinate = Some((table.headings[0].path.clone(), Coord::Uniform { start, step }));
        first = 1;
    }
    let positions = Positions::new(&table);
    if table.frames.is_some() {
        first = 1 + moments(&table, &mut tree);
    }
    while first < table.headings.len() {
        let column = column(&table, first);
        let is_first = first == 0;
        first += column.count().max(1);
        let mut desc = describe(&table, &positions, &column)?;
        if let (Some((name, coord)), Layout::Encoded { .. }) = (&coordinate, &desc.layout)
            && !desc.dims.contains(name)
        {
            desc.dims[0].clone_from(name);
            desc.coords[0] = coord.clone();
        }
        let path = column.path.trim_start_matches('/');
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = tree.node_at(above)?;
        let mut desc = desc.with_semantics(Semantics::role(Role::Table));
        let number = matches!(column.dtype.kind(), Kind::Int | Kind::UInt | Kind::Float);
        let others = table.headings.iter().skip(1).map(|own| own.path.as_str());
        let is_coordinate = is_first
            && table.ordered
            && number
            && column.tail.is_empty()
            && !is_one_of_several(name, others);
        if is_coordinate && first < table.headings.len() {
            desc.dims[0] = name.to_string();
        }
        let id = tree.add_array(parent, name, desc)?;
        if is_coordinate {
            coordinate = Some((name.to_string(), Coord::Node(id)));
        }
        if let Some(units) = column.units {
            tree.push_attr(id, "units", units)?;
        }
    }
    let mut report = Report::default();
    table.rows.report_partial("csv-010", &mut report);
    let Rows { count, columns, .. } = table.rows;
    let mut summary = Attrs::from([("rows", count.into()), ("columns", columns.into())]);
    if let Some(frames) = &table.frames {
        summary.push("frames", frames.starts.len() as u64);
    }
    let parsed = Parsed::new(source, tree).with_summary(summary).with_native(table);
    Ok(parsed.with_warnings(report.findings))
}

/// Adds the frame axis to the tree. Returns the number of columns with steps and times.
fn moments(table: &Table, tree: &mut Tree) -> usize {
    let Some(frames) = &table.frames else { return 0 };
    let steps: Option<Vec<u64>> = numbers(table, frames, 0, "step");
    let times: Option<Vec<f64>> = numbers(table, frames, usize::from(steps.is_some()), "time");
    let taken = usize::from(steps.is_some()) + usize::from(times.is_some());
    let (steps, times) = (steps.unwrap_or_default(), times.unwrap_or_default());
    let moment = |k: usize| (steps.get(k).copied(), times.get(k).copied());
    tree.set_frames(Arc::new(Moments((0..frames.starts.len()).map(moment).collect())));
    taken
}

/// The numbers of column `1 + k`, one per frame; `None` if it has another name or other fields.
fn numbers<T: FromStr>(table: &Table, frames: &Frames, k: usize, name: &str) -> Option<Vec<T>> {
    let heading = table.headings.get(1 + k)?;
    let fields = frames.moments.get(k)?.as_ref();
    let fields = fields.filter(|_| heading.path == name && heading.index.is_empty())?;
    fields.iter().map(|field| std::str::from_utf8(field).ok()?.parse().ok()).collect()
}

/// The array whose first column is `first`. Columns form an array if their indices are complete and in C
/// order; otherwise each is an array.
fn column(table: &Table, first: usize) -> Column {
    let head = &table.headings[first];
    let alike = |own: &&Heading| {
        (&own.path, &own.units, own.tag, own.index.len())
            == (&head.path, &head.units, head.tag, head.index.len())
    };
    let mut group: Vec<&Heading> = table.headings[first..].iter().take_while(alike).collect();
    let tail: Vec<u64> = group.last().map_or(&[][..], |last| &last.index[..]).to_vec();
    let tail: Vec<u64> = tail.iter().map(|n| n.saturating_add(1)).collect();
    let in_order = |(k, own): (usize, &&Heading)| {
        let mut rest = k as u64;
        let digits = tail.iter().rev().map(|len| {
            let digit = rest % len;
            rest /= len;
            digit
        });
        digits.eq(own.index.iter().rev().copied())
    };
    let product = tail.iter().try_fold(1_u64, |n, len| n.checked_mul(*len));
    let complete = product == Some(group.len() as u64) && group.iter().enumerate().all(in_order);
    let (mut path, mut tail) = (head.path.clone(), tail);
    if !complete {
        group.truncate(1);
        tail.clear();
        let bare = Heading { units: None, tag: None, ..head.clone() };
        if !head.index.is_empty() {
            path = bare.text();
        }
    }
    let columns = first..first + group.len();
    let seen = table.seen[columns.clone()].iter().fold(Seen::default(), |a, b| a.join(*b));
    let gaps = match &table.frames {
        None => seen.has(Seen::EMPTY),
        Some(frames) => {
            let width = table.headings.len();
            let differ = frames.empty.chunks_exact(width).any(|frame| {
                let mut own = frame[columns.clone()].iter();
                let one = own.next();
                own.any(|other| Some(other) != one)
            });
            differ || frames.gaps[columns].iter().any(|gap| *gap)
        }
    };
    let dtype = match head.tag {
        Some(Tag::Type(dtype)) if readable(dtype) => dtype,
        _ => seen.dtype(gaps, table.quoted, table.spelling),
    };
    Column { path, first, tail, dtype, units: head.units.clone() }
}

/// Whether columns of this type can be parsed.
pub(crate) fn readable(dtype: DType) -> bool {
    match dtype.kind() {
        Kind::Int | Kind::UInt | Kind::Bool => true,
        Kind::Float => matches!(dtype.size(), 4 | 8),
        // Limits the memory for a length that comes from the file.
        Kind::Text => dtype.size() <= 1 << 20,
        _ => false,
    }
}

/// Byte positions shared by all arrays.
struct Positions {
    /// First byte of each block, relative to the first block, and the end of the last one.
    blocks: Arc<[u64]>,
    /// First byte of each frame and the rows before it, then the end of the rows.
    frames: Arc<[(u64, u64)]>,
}

impl Positions {
    fn new(table: &Table) -> Self {
        let Rows { end, count, .. } = table.rows;
        let from = table.blocks.first().map_or(end, |block| block.0);
        let blocks = table.blocks.iter().map(|block| block.0).chain([end]);
        let frames = table.frames.iter().flat_map(|frames| frames.starts.iter().copied());
        Self {
            blocks: blocks.map(|at| at - from).collect(),
            frames: frames.chain([(end, count)]).collect(),
        }
    }
}

fn describe(table: &Table, positions: &Positions, column: &Column) -> Result<ArrayDesc> {
    let Rows { end, count, .. } = table.rows;
    let dtype = column.dtype.with_order(spile_core::wire::ByteOrder::Little);
    let shape = |rows: u64| {
        Shape::new(std::iter::once(rows).chain(column.tail.iter().copied()).collect::<Vec<_>>())
    };
    let Table { dialect, spelling, .. } = *table;
    let codec =
        Arc::new(Parser { first: column.first, count: column.count(), dtype, dialect, spelling });
    let row_bytes = shape(1).bytes(dtype.size())?;
    shape(count).bytes(dtype.size())?;
    let Some(frames) = &table.frames else {
        let rows = table.blocks.iter().map(|block| block.1).chain([count]);
        let from = table.blocks.first().map_or(end, |block| block.0);
        let layout = Layout::Encoded {
            starts: positions.blocks.clone(),
            decoded: rows.map(|row| row * row_bytes).collect(),
            data: Extents::one(from, end - from),
            codec,
            order: Order::C,
        };
        return Ok(ArrayDesc::new(dtype, shape(count), layout));
    };
    let width = table.headings.len();
    let starts = positions.frames.clone();
    let own = column.first..column.first + column.count().max(1);
    let absent = |frame: &[bool]| frame[own.clone()].iter().all(|empty| *empty);
    let present: Vec<bool> = frames.empty.chunks_exact(width).map(|frame| !absent(frame)).collect();
    let first = present.iter().position(|present| *present).unwrap_or(0);
    let rows = starts.get(first + 1).map_or(0, |next| next.1 - starts[first].1);
    let cells = Cells { starts, present, tail: column.tail.clone(), row_bytes, codec };
    Ok(ArrayDesc::new(dtype, shape(rows), Layout::PerFrame(Arc::new(cells))))
}

struct Cells {
    /// First byte of each frame and the rows before it, then the end of the rows.
    starts: Arc<[(u64, u64)]>,
    /// Whether the array exists in a frame.
    present: Vec<bool>,
    tail: Vec<u64>,
    row_bytes: u64,
    codec: Arc<Parser>,
}

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.present.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let k = frame as usize;
        if self.present.get(k) != Some(&true) {
            return Ok(None);
        }
        let ((from, before), (to, after)) = (self.starts[k], self.starts[k + 1]);
        let rows = std::iter::once(after - before).chain(self.tail.iter().copied());
        let layout = Layout::Encoded {
            starts: Arc::new([0, to - from]),
            decoded: Arc::new([0, (after - before) * self.row_bytes]),
            data: Extents::one(from, to - from),
            codec: self.codec.clone(),
            order: Order::C,
        };
        Ok(Some(FrameCell { shape: Shape::new(rows.collect::<Vec<_>>()), layout }))
    }
}

/// Parses adjacent columns of complete rows.
struct Parser {
    first: usize,
    count: usize,
    dtype: DType,
    dialect: Dialect,
    spelling: Spelling,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        // Strings of length 0 have no bytes.
        if size == 0 {
            return Ok(());
        }
        let mut slots = out.chunks_exact_mut(size);
        for record in self.dialect.records(stored) {
            for field in self.dialect.fields(record).skip(self.first).take(self.count) {
                let Some(slot) = slots.next() else { return Err(changed()) };
                if !value::parse(field, self.dtype, self.spelling, slot) {
                    let message = format!(
                        "expected {}, found \"{}\"",
                        self.dtype,
                        String::from_utf8_lossy(field)
                    );
                    return Err(Error::malformed("csv-004", message));
                }
            }
        }
        if slots.next().is_none() { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    Rows::changed("csv-005")
}

impl Native for Table {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.rows.regions((RegionKind::Header, "names"), dataset.source().len(), each)
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, desc) in dataset.arrays() {
            let object = |frame, array| {
                let (path, kind) = (node.path.clone(), "text".into());
                Object { path, id: None, frame, kind, array }
            };
            let Some(table) = desc.layout.frames() else {
                each(object(None, desc.clone()))?;
                continue;
            };
            for frame in 0..table.len() {
                let Some(FrameCell { shape, layout }) = table.cell(frame)? else { continue };
                each(object(Some(frame), ArrayDesc { shape, layout, ..desc.clone() }))?;
            }
        }
        Ok(())
    }
}
