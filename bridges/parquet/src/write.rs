//! Writer of files. Pages are plain and uncompressed, so that they can be read in place; a row group has one page
//! per column.

use std::io::Write as _;

use rayon::prelude::*;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_interchange::table::{Column, Piece, RowCoordinate, Table};

use crate::rle::push_run;
use crate::stored::Stored;
use crate::thrift::{self, Struct, Value};
use crate::to_tree::{EMPTY_INDEX, ends_with_index};
use crate::wire::{self, MAGIC, PLAIN, RLE};

/// Key of the metadata of the tree.
pub(crate) const DESCRIPTION: &str = "spile";

/// Key of the number of frames.
pub(crate) const FRAMES: &str = "spile.frames";

/// Key of the names of the columns with coordinates of the rows, one per line.
pub(crate) const COORDINATES: &str = "spile.coordinates";

/// Names of the columns that describe frames.
pub(crate) const RESERVED: [&str; 3] = ["frame", "step", "time"];

/// A leaf column: one element of each row of an array.
struct Leaf {
    name: String,
    schema: Struct,
    stored: Stored,
    dtype: DType,
    optional: bool,
    /// Little-endian elements of the current row group.
    values: Vec<u8>,
    /// Runs of rows with (`true`) and without a value.
    runs: Vec<(u64, bool)>,
}

pub(crate) struct File<'a> {
    table: &'a Table<'a>,
    coordinates: Vec<RowCoordinate>,
    sink: &'a mut Sink,
    leaves: Vec<Leaf>,
    /// Rows of the current row group.
    rows: u64,
    /// Rows of the row groups before.
    written: u64,
    groups: Vec<Value>,
}

impl<'a> File<'a> {
    /// Begins a file.
    pub(crate) fn new(table: &'a Table<'a>, sink: &'a mut Sink) -> Result<Self> {
        sink.write_all(MAGIC)?;
        let mut leaves = Vec::new();
        if table.frames.is_some() {
            leaves.push(Leaf::new(RESERVED[0].into(), DType::I64, false));
            let types = [(table.moments[0], DType::U64), (table.moments[1], DType::F64)];
            for (name, (known, dtype)) in RESERVED[1..].iter().zip(types) {
                if known {
                    leaves.push(Leaf::new((*name).into(), dtype, false));
                }
            }
        }
        let coordinates = table.row_coordinates();
        for coordinate in &coordinates {
            leaves.push(Leaf::new(coordinate.name.clone(), DType::F64, false));
        }
        for column in &table.columns {
            for k in 0..column.count() {
                leaves.push(Leaf::new(name(column, k), column.dtype, table.frames.is_some()));
            }
        }
        Ok(Self { table, coordinates, sink, leaves, rows: 0, written: 0, groups: Vec::new() })
    }

    /// Number of rows that are not yet written.
    pub(crate) fn pending(&self) -> u64 {
        self.rows
    }

    /// Adds the rows of a piece to the current row group.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<()> {
        let mut own = Vec::new();
        if let Some(frame) = piece.frame {
            let (step, time) = self.table.moment(frame)?;
            own.push(frame.to_le_bytes());
            own.extend(step.map(u64::to_le_bytes));
            own.extend(time.map(f64::to_le_bytes));
        }
        let (first, arrays) = self.leaves.split_at_mut(own.len());
        for (leaf, value) in first.iter_mut().zip(own) {
            leaf.add(&value.repeat(piece.rows as usize), piece.rows, true);
        }
        let mut leaves = arrays.iter_mut();
        for (own, leaf) in self.coordinates.iter().zip(&mut leaves) {
            let rows = piece.first..piece.first + piece.rows;
            let points = rows.flat_map(|k| (own.start + k as f64 * own.step).to_le_bytes());
            leaf.add(&points.collect::<Vec<u8>>(), piece.rows, true);
        }
        let read = |column: &Column<'_>| self.table.rows(column, piece, Order::F);
        let read: Vec<Option<Vec<u8>>> =
            self.table.columns.par_iter().map(read).collect::<Result<_>>()?;
        for (column, bytes) in self.table.columns.iter().zip(read) {
            let part = piece.rows as usize * column.dtype.size();
            for k in 0..column.count() as usize {
                let Some(leaf) = leaves.next() else { break };
                match &bytes {
                    Some(bytes) => leaf.add(&bytes[k * part..(k + 1) * part], piece.rows, true),
                    None => leaf.add(&[], piece.rows, false),
                }
            }
        }
        self.rows += piece.rows;
        Ok(())
    }

    /// Writes the current row group, if it has rows.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let missing: Vec<u64> = self.leaves.iter().map(Leaf::missing).collect();
        let pages = self.leaves.par_iter_mut().map(|leaf| leaf.page(self.rows));
        let pages: Vec<(Vec<u8>, Vec<u8>)> = pages.collect::<Result<_>>()?;
        let (mut chunks, mut total) = (Vec::new(), 0);
        for ((leaf, (head, values)), missing) in self.leaves.iter_mut().zip(pages).zip(missing) {
            let offset = self.sink.position().cast_signed();
            self.sink.write_all(&head)?;
            self.sink.write_all(&values)?;
            let size = (head.len() + values.len()) as i64;
            total += size;
            chunks.push(leaf.chunk(offset, size, self.rows.cast_signed(), missing));
        }
        let group = Struct::default()
            .with(1, Value::List(chunks))
            .with(2, Value::Int(total))
            .with(3, Value::Int(self.rows.cast_signed()));
        self.groups.push(Value::Struct(group));
        self.written += std::mem::take(&mut self.rows);
        Ok(())
    }

    /// Writes the footer; `metadata` is stored under the key `spile`.
    pub(crate) fn finish(self, metadata: &str) -> Result<()> {
        let count = i32::try_from(self.leaves.len()).unwrap_or(i32::MAX);
        let root = Struct::default().with(4, "schema".into()).with(5, Value::Short(count));
        let schema = std::iter::once(root).chain(self.leaves.into_iter().map(|leaf| leaf.schema));
        let pair = |key: &str, value: &str| {
            Value::Struct(Struct::default().with(1, key.into()).with(2, value.into()))
        };
        let mut pairs = vec![pair(DESCRIPTION, metadata)];
        if let Some(frames) = self.table.frames {
            pairs.push(pair(FRAMES, &frames.to_string()));
        }
        if !self.coordinates.is_empty() {
            let names: Vec<&str> = self.coordinates.iter().map(|own| &own.name[..]).collect();
            pairs.push(pair(COORDINATES, &names.join("\n")));
        }
        let footer = Struct::default()
            .with(1, Value::Short(1))
            .with(2, Value::List(schema.map(Value::Struct).collect()))
            .with(3, Value::Int(self.written.cast_signed()))
            .with(4, Value::List(self.groups))
            .with(5, Value::List(pairs))
            .with(6, "spile".into());
        let mut bytes = Vec::new();
        thrift::write(&footer, &mut bytes);
        let len = u32::try_from(bytes.len())
            .map_err(|_| Error::unsupported("parquet-011", "metadata larger than 4 GiB"))?;
        bytes.extend(len.to_le_bytes());
        bytes.extend(MAGIC);
        Ok(self.sink.write_all(&bytes)?)
    }
}

/// The name of element `k` of a row: `velocity[2]`. The first index varies fastest.
fn name(column: &Column<'_>, k: u64) -> String {
    let path = &column.node.path;
    let slash = if RESERVED.contains(&path.as_str()) { "/" } else { "" };
    if column.tail.is_empty() {
        let index = if ends_with_index(path) { EMPTY_INDEX } else { "" };
        return format!("{slash}{path}{index}");
    }
    let mut rest = k;
    let index = column.tail.iter().map(|len| {
        let digit = rest % len;
        rest /= len;
        digit.to_string()
    });
    format!("{slash}{path}[{}]", index.collect::<Vec<_>>().join(","))
}

impl Leaf {
    fn new(name: String, dtype: DType, optional: bool) -> Self {
        let schema = wire::column(&name, dtype, optional);
        let stored = Stored::of(dtype).unwrap_or(Stored::Plain);
        Self { name, schema, stored, dtype, optional, values: Vec::new(), runs: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8], rows: u64, defined: bool) {
        self.values.extend_from_slice(bytes);
        push_run(&mut self.runs, rows, defined);
    }

    /// Number of rows without a value.
    fn missing(&self) -> u64 {
        self.runs.iter().filter(|(_, defined)| !defined).map(|(rows, _)| rows).sum()
    }

    /// Encodes the page of the current row group: header with levels, and values.
    fn page(&mut self, rows: u64) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut levels = Vec::new();
        if self.optional {
            levels.extend([0; 4]);
            for (count, defined) in &self.runs {
                // A run is twice its length, and its value.
                thrift::unsigned(count << 1, &mut levels);
                levels.push(u8::from(*defined));
            }
            let len = (levels.len() - 4) as u32;
            levels[..4].copy_from_slice(&len.to_le_bytes());
        }
        self.runs.clear();
        let values = self.stored.encode(self.dtype, std::mem::take(&mut self.values));
        let values = values.map_err(|e| e.in_object(format!("\"{}\"", self.name)))?;
        let mut head = wire::page_header(rows, (levels.len() + values.len()) as u64)?;
        head.extend(levels);
        Ok((head, values))
    }

    /// Metadata of the column chunk.
    fn chunk(&self, offset: i64, size: i64, rows: i64, missing: u64) -> Value {
        let short = |n: i64| Value::Short(n as i32);
        let encodings = vec![short(PLAIN), short(RLE)];
        let meta = Struct::default()
            .with(1, short(self.schema.int(1).unwrap_or(0)))
            .with(2, Value::List(encodings))
            .with(3, Value::List(vec![self.name.as_str().into()]))
            .with(4, Value::Short(0))
            .with(5, Value::Int(rows))
            .with(6, Value::Int(size))
            .with(7, Value::Int(size))
            .with(9, Value::Int(offset))
            // Without a null count of 0 fastparquet converts integers to floats.
            .with(12, Value::Struct(Struct::default().with(3, Value::Int(missing.cast_signed()))));
        let chunk = Struct::default().with(2, Value::Int(offset)).with(3, Value::Struct(meta));
        Value::Struct(chunk)
    }
}
