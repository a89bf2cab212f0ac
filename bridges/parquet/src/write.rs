//! Writer of files. Pages are plain, and can be read in place unless they are compressed; a row group has one page per
//! column.

use std::io::Write as _;

use rayon::prelude::*;
use spile_codecs::Encoder;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::sink::Sink;
use spile_interchange::table::{Piece, Table};

use crate::compression::code;
use crate::rle::push_run;
use crate::stored::Stored;
use crate::thrift::{self, Struct, Value};
use crate::wire::{self, MAGIC, PLAIN, RLE};

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

pub(crate) struct FileWriter<'a> {
    table: &'a Table<'a>,
    encoder: Option<Encoder>,
    sink: &'a mut Sink,
    leaves: Vec<Leaf>,
    /// Rows of the current row group.
    rows: u64,
    /// Rows of the row groups before.
    written: u64,
    groups: Vec<Value>,
}

impl<'a> FileWriter<'a> {
    /// Begins a file.
    pub(crate) fn new(
        table: &'a Table<'a>,
        encoder: Option<Encoder>,
        sink: &'a mut Sink,
    ) -> Result<Self> {
        sink.write_all(MAGIC)?;
        let fields = table.fields.iter().zip(table.titles());
        let leaves = fields.map(|(field, name)| Leaf::new(name, field.dtype, field.optional));
        let leaves = leaves.collect();
        Ok(Self { table, encoder, sink, leaves, rows: 0, written: 0, groups: Vec::new() })
    }

    /// Adds the rows of a piece to the current row group.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<()> {
        let rows = self.table.row_count(piece);
        for (leaf, bytes) in self.leaves.iter_mut().zip(self.table.read(piece)?) {
            leaf.add(bytes.as_deref().unwrap_or_default(), rows, bytes.is_some());
        }
        self.rows += rows;
        Ok(())
    }

    /// Writes the current row group, if it has rows.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let missing: Vec<u64> = self.leaves.iter().map(Leaf::missing).collect();
        let encoder = self.encoder;
        let pages = self.leaves.par_iter_mut().map(|leaf| leaf.page(self.rows, encoder));
        let pages: Vec<Page> = pages.collect::<Result<_>>()?;
        let (mut chunks, mut total) = (Vec::new(), 0);
        for ((leaf, page), missing) in self.leaves.iter_mut().zip(pages).zip(missing) {
            let offset = self.sink.position().cast_signed();
            self.sink.write_all(&page.head)?;
            self.sink.write_all(&page.body)?;
            let size = (page.head.len() + page.body.len()) as i64;
            let sizes = (page.head.len() as i64 + page.plain, size);
            total += sizes.0;
            let rows = self.rows.cast_signed();
            chunks.push(leaf.chunk(offset, sizes, rows, missing, code(encoder)));
        }
        let group = Struct::default()
            .with(1, Value::List(chunks))
            .with(2, Value::Int(total))
            .with(3, Value::Int(self.rows.cast_signed()));
        self.groups.push(Value::Struct(group));
        self.written += std::mem::take(&mut self.rows);
        Ok(())
    }

    /// Writes the footer with these keys and values.
    pub(crate) fn finish(self, metadata: &[(String, String)]) -> Result<()> {
        let count = i32::try_from(self.leaves.len()).unwrap_or(i32::MAX);
        let root = Struct::default().with(4, "schema".into()).with(5, Value::Short(count));
        let schema = std::iter::once(root).chain(self.leaves.into_iter().map(|leaf| leaf.schema));
        let pair = |(key, value): &(String, String)| {
            Value::Struct(Struct::default().with(1, key[..].into()).with(2, value[..].into()))
        };
        let pairs = metadata.iter().map(pair).collect();
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

/// An encoded page.
struct Page {
    head: Vec<u8>,
    /// Levels and values, maybe compressed.
    body: Vec<u8>,
    /// Length of the uncompressed body.
    plain: i64,
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

    /// Encodes the page of the current row group.
    fn page(&mut self, rows: u64, encoder: Option<Encoder>) -> Result<Page> {
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
        // Values are not copied where there are no levels.
        let mut body = if levels.is_empty() { values } else { [levels, values].concat() };
        let plain = body.len();
        if let Some(encoder) = encoder {
            body = encoder.encode(&body)?;
        }
        let head = wire::page_header(rows, plain as u64, body.len() as u64)?;
        Ok(Page { head, body, plain: plain as i64 })
    }

    /// Metadata of the column chunk.
    fn chunk(
        &self,
        offset: i64,
        (plain, size): (i64, i64),
        rows: i64,
        missing: u64,
        codec: i32,
    ) -> Value {
        let short = |n: i64| Value::Short(n as i32);
        let encodings = vec![short(PLAIN), short(RLE)];
        let meta = Struct::default()
            .with(1, short(self.schema.int(1).unwrap_or(0)))
            .with(2, Value::List(encodings))
            .with(3, Value::List(vec![self.name.as_str().into()]))
            .with(4, Value::Short(codec))
            .with(5, Value::Int(rows))
            .with(6, Value::Int(plain))
            .with(7, Value::Int(size))
            .with(9, Value::Int(offset))
            // Without a null count of 0 fastparquet converts integers to floats.
            .with(12, Value::Struct(Struct::default().with(3, Value::Int(missing.cast_signed()))));
        let chunk = Struct::default().with(2, Value::Int(offset)).with(3, Value::Struct(meta));
        Value::Struct(chunk)
    }
}
