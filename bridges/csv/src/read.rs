//! Columns to arrays.

use std::sync::Arc;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};

use crate::header::{Cell, Tag};
use crate::record::{Fields, Records};
use crate::scan::{self, Table};
use crate::value::{self, Seen};

pub(crate) struct File {
    source: Source,
    pub(crate) table: Table,
    tree: Tree,
}

/// Neighbouring columns that are one array.
struct Column {
    path: String,
    first: usize,
    /// Lengths of its other dimensions.
    tail: Vec<u64>,
    dtype: DType,
    units: Option<String>,
}

impl Column {
    fn count(&self) -> usize {
        self.tail.iter().product::<u64>() as usize
    }
}

impl File {
    pub(crate) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let table = scan::scan(&source, limits)?;
        let mut tree = Tree::new(limits);
        let mut first = 0;
        let mut points = None;
        if let Some(Tag::Points { start, step }) = table.cells[0].tag {
            points = Some((table.cells[0].clone(), Coord::Uniform { start, step }));
            first = 1;
        }
        if table.frames.is_some() {
            first = 1 + moments(&table, &mut tree);
        }
        while first < table.cells.len() {
            let column = column(&table, first);
            first += column.count().max(1);
            let mut desc = describe(&table, &column)?;
            if let (Some((cell, coord)), Layout::Encoded { .. }) = (&points, &desc.layout) {
                desc.dims[0].clone_from(&cell.path);
                desc.coords[0] = coord.clone();
            }
            let path = column.path.trim_start_matches('/');
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parent = if above.is_empty() { ROOT } else { tree.group_at(above)? };
            let id = tree.add_array(parent, name, desc)?;
            if let Some(units) = column.units {
                tree.node_mut(id).attrs.push(("units".into(), Value::Text(units)));
            }
        }
        Ok(Self { source, table, tree })
    }
}

/// The steps and times of the frames; how many columns have them.
fn moments(table: &Table, tree: &mut Tree) -> usize {
    let Some(frames) = &table.frames else { return 0 };
    let mut lines: [Option<Vec<String>>; 2] = [None, None];
    let mut taken = 0;
    for (name, line) in ["step", "time"].iter().zip(&mut lines) {
        let cell = table.cells.get(1 + taken);
        let fields = frames.moments.get(taken).and_then(Option::as_ref);
        let (Some(cell), Some(fields)) = (cell, fields) else { continue };
        let text = |field: &Vec<u8>| {
            let text = String::from_utf8(field.clone()).ok()?;
            let fits = if *name == "step" {
                text.parse::<u64>().is_ok()
            } else {
                text.parse::<f64>().is_ok()
            };
            fits.then_some(text)
        };
        if cell.path == *name && cell.index.is_empty() {
            *line = fields.iter().map(text).collect();
            taken += usize::from(line.is_some());
        }
    }
    let moment = |k: usize| {
        let at = |line: &Option<Vec<String>>| line.as_ref()?.get(k).cloned();
        (at(&lines[0]).and_then(|t| t.parse().ok()), at(&lines[1]).and_then(|t| t.parse().ok()))
    };
    tree.set_frames(Arc::new(Moments((0..frames.starts.len()).map(moment).collect())));
    taken
}

/// The array that begins with column `first`.
fn column(table: &Table, first: usize) -> Column {
    let head = &table.cells[first];
    let alike = |cell: &&Cell| {
        (&cell.path, &cell.units, cell.tag, cell.index.len())
            == (&head.path, &head.units, head.tag, head.index.len())
    };
    let mut group: Vec<&Cell> = table.cells[first..].iter().take_while(alike).collect();
    let tail: Vec<u64> = group.last().map_or(&[][..], |last| &last.index[..]).to_vec();
    let tail: Vec<u64> = tail.iter().map(|n| n.saturating_add(1)).collect();
    let in_order = |(k, cell): (usize, &&Cell)| {
        let mut rest = k as u64;
        let digits = tail.iter().rev().map(|len| {
            let digit = rest % len;
            rest /= len;
            digit
        });
        digits.eq(cell.index.iter().rev().copied())
    };
    let product = tail.iter().try_fold(1_u64, |n, len| n.checked_mul(*len));
    let whole = product == Some(group.len() as u64) && group.iter().enumerate().all(in_order);
    let (mut path, mut tail) = (head.path.clone(), tail);
    if !whole {
        group.truncate(1);
        tail.clear();
        let bare = Cell { units: None, tag: None, ..head.clone() };
        if !head.index.is_empty() {
            path = bare.text();
        }
    }
    let columns = first..first + group.len();
    let seen = table.seen[columns.clone()].iter().fold(Seen::default(), |a, b| a.join(*b));
    let gaps = match &table.frames {
        None => seen.has(Seen::EMPTY),
        Some(frames) => {
            let width = table.cells.len();
            let apart = frames.empty.chunks_exact(width).any(|frame| {
                let mut own = frame[columns.clone()].iter();
                let one = own.next();
                own.any(|other| Some(other) != one)
            });
            apart || frames.gaps[columns].iter().any(|gap| *gap)
        }
    };
    let dtype = match head.tag {
        Some(Tag::Type(dtype)) if readable(dtype) => dtype,
        _ => seen.dtype(gaps),
    };
    Column { path, first, tail, dtype, units: head.units.clone() }
}

/// Types that a column can be said to have.
fn readable(dtype: DType) -> bool {
    match dtype.kind() {
        Kind::Int | Kind::UInt | Kind::Bool => true,
        Kind::Float => matches!(dtype.size(), 4 | 8),
        // A row of a text that nobody wrote is no reason to ask for memory.
        Kind::Text => dtype.size() <= 1 << 20,
        _ => false,
    }
}

fn describe(table: &Table, column: &Column) -> Result<ArrayDesc> {
    let dtype = column.dtype.with_order(spile_core::wire::ByteOrder::Little);
    let shape = |rows: u64| {
        Shape::new(std::iter::once(rows).chain(column.tail.iter().copied()).collect::<Vec<_>>())
    };
    let codec = Arc::new(Parser { first: column.first, count: column.count(), dtype });
    let row_bytes = shape(1).bytes(dtype.size())?;
    shape(table.rows).bytes(dtype.size())?;
    let Some(frames) = &table.frames else {
        let ends = std::iter::once((table.end, table.rows));
        let blocks = table.blocks.iter().copied().chain(ends);
        let (starts, decoded): (Vec<u64>, Vec<u64>) = blocks
            .map(|(at, row)| (at - table.blocks.first().map_or(at, |b| b.0), row * row_bytes))
            .unzip();
        let from = table.blocks.first().map_or(table.end, |block| block.0);
        let layout = Layout::Encoded {
            starts: starts.into(),
            decoded: decoded.into(),
            data: Extents::one(from, table.end - from),
            codec,
            order: Order::C,
        };
        return Ok(ArrayDesc::new(dtype, shape(table.rows), layout));
    };
    let width = table.cells.len();
    let mut starts = frames.starts.clone();
    starts.push((table.end, table.rows));
    let own = column.first..column.first + column.count().max(1);
    let absent = |frame: &[bool]| frame[own.clone()].iter().all(|empty| *empty);
    let there: Vec<bool> = frames.empty.chunks_exact(width).map(|frame| !absent(frame)).collect();
    let first = there.iter().position(|there| *there).unwrap_or(0);
    let rows = starts.get(first + 1).map_or(0, |next| next.1 - starts[first].1);
    let cells = Cells { starts, there, tail: column.tail.clone(), row_bytes, codec };
    Ok(ArrayDesc::new(dtype, shape(rows), Layout::PerFrame(Arc::new(cells))))
}

struct Cells {
    /// Where each frame begins, and the rows before it; the end is behind them.
    starts: Vec<(u64, u64)>,
    there: Vec<bool>,
    tail: Vec<u64>,
    row_bytes: u64,
    codec: Arc<Parser>,
}

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.there.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let k = frame as usize;
        if self.there.get(k) != Some(&true) {
            return Ok(None);
        }
        let ((from, before), (to, behind)) = (self.starts[k], self.starts[k + 1]);
        let rows = std::iter::once(behind - before).chain(self.tail.iter().copied());
        let layout = Layout::Encoded {
            starts: Arc::new([0, to - from]),
            decoded: Arc::new([0, (behind - before) * self.row_bytes]),
            data: Extents::one(from, to - from),
            codec: self.codec.clone(),
            order: Order::C,
        };
        Ok(Some(FrameCell { shape: Shape::new(rows.collect::<Vec<_>>()), layout }))
    }
}

/// Parses some columns of whole rows.
struct Parser {
    first: usize,
    count: usize,
    dtype: DType,
}

impl Codec for Parser {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        // Texts of no bytes need no parsing, and cannot be told apart.
        if size == 0 {
            return Ok(());
        }
        let mut slots = out.chunks_exact_mut(size);
        for record in Records(stored) {
            for field in Fields(Some(record)).skip(self.first).take(self.count) {
                let Some(slot) = slots.next() else { return Err(changed()) };
                if !value::parse(field, self.dtype, slot) {
                    let message =
                        format!("\"{}\" is no {}", String::from_utf8_lossy(field), self.dtype);
                    return Err(Error::malformed("csv-004", message));
                }
            }
        }
        if slots.next().is_none() { Ok(()) } else { Err(changed()) }
    }
}

fn changed() -> Error {
    let message = "the rows are not those that were counted; is it being written?";
    Error::malformed("csv-005", message)
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let columns = self.table.cells.len() as u64;
        let mut summary =
            vec![("rows".into(), self.table.rows.into()), ("columns".into(), columns.into())];
        if let Some(frames) = &self.table.frames {
            summary.push(("frames".into(), (frames.starts.len() as u64).into()));
        }
        summary
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
        emit(0, start, Role::Header, "names", String::new())?;
        let rows = format!("{} rows of {}", self.table.rows, self.table.cells.len());
        emit(start, end, Role::Data, "rows", rows)?;
        emit(end, len, Role::Unknown, "partial row", String::new())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in self.tree.arrays() {
            let frames = match &array.layout {
                Layout::PerFrame(table) => (0..table.len()).map(Some).collect(),
                _ => vec![None],
            };
            for frame in frames {
                let mut array = array.clone();
                if let (Some(k), Layout::PerFrame(table)) = (frame, &array.layout.clone()) {
                    let Some(cell) = table.cell(k)? else { continue };
                    (array.shape, array.layout) = (cell.shape, cell.layout);
                }
                let (path, kind) = (node.path.clone(), "text".into());
                each(Object { path, id: None, frame, kind, array })?;
            }
        }
        Ok(())
    }
}
