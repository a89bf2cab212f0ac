//! Leaf columns: positions of their pages, and which rows have values.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{Codec as _, Extent, Extents};
use spile_core::limits::{Budget, Limits};
use spile_core::report::Report;
use spile_core::source::Source;

use crate::decode::{Compression, Encoded};
use crate::levels;
use crate::thrift::{self, Struct};

use crate::wire::{self, BIT_PACKED, DICTIONARY, OLD_DICTIONARY, PLAIN, RLE, Stored};

/// Memory charged for a column: schema, leaf, tree node.
const COLUMN: u64 = 1 << 10;

/// Memory charged for a page or chunk.
const PAGE: u64 = 128;

/// Memory charged for a run of rows.
const RUN: u64 = 16;

/// A leaf column.
pub(crate) struct Leaf {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) stored: Stored,
    /// Bytes and number of the values of each page, or of each chunk if `encoded` is set.
    pub(crate) pages: Vec<(Extent, u64)>,
    /// Set if the values are not plain: codec of its chunks.
    pub(crate) encoded: Option<Encoded>,
    /// Runs of rows with (`true`) and without a value.
    pub(crate) runs: Vec<(u64, bool)>,
    /// Byte ranges of the column chunks.
    pub(crate) chunks: Vec<Extent>,
}

pub(crate) fn missing(field: &str, at: u64) -> Error {
    Error::malformed("parquet-003", format!("missing or invalid {field}")).at(at)
}

/// A column of the root of the schema.
struct TopLevel<'a> {
    schema: &'a Struct,
    /// Number of its first leaf.
    leaf: usize,
    nested: bool,
}

/// Top-level columns of a schema, whose elements are in depth-first order.
fn top_level<'a>(schema: &[&'a Struct]) -> Vec<TopLevel<'a>> {
    let mut columns = Vec::new();
    // Number of children that are still to come, for each group around the current element.
    let mut groups: Vec<u64> = Vec::new();
    let mut leaf = 0;
    for schema in schema.iter().skip(1).copied() {
        let children = schema.size(5).unwrap_or(0);
        while groups.last() == Some(&0) {
            groups.pop();
        }
        match groups.last_mut() {
            Some(left) => *left -= 1,
            None => columns.push(TopLevel { schema, leaf, nested: children > 0 }),
        }
        if children > 0 {
            groups.push(children);
        } else {
            leaf += 1;
        }
    }
    columns
}

/// Reads the columns of a file. A column that cannot be read is reported, and the others are read. Fails with
/// the first error if none can be read.
pub(crate) fn columns(
    source: &Source,
    footer: &Struct,
    start: u64,
    rows: u64,
    limits: &Limits,
    report: &mut Report,
) -> Result<Vec<Leaf>> {
    let groups: Vec<Vec<&Struct>> =
        structs(footer.list(4)).iter().map(|group| structs(group.list(1))).collect();
    let mut memory = Budget::new(limits);
    let (mut leaves, mut errors) = (Vec::new(), Vec::new());
    for column in top_level(&structs(footer.list(2))) {
        memory.charge(COLUMN, "the columns")?;
        let TopLevel { schema, leaf, nested } = column;
        let name = schema.text(4).unwrap_or_default();
        let object = format!("\"{name}\"");
        let reason = match column_type(schema) {
            _ if nested => "nested columns are not supported".into(),
            _ if schema.int(3) == Some(2) => "repeated columns are not supported".into(),
            Some((dtype, stored)) => {
                let chunks = groups.iter().map(|group| group.get(leaf)?.inner(3));
                let chunks: Option<Vec<&Struct>> = chunks.collect();
                let read =
                    chunks.ok_or_else(|| missing("column chunk", start)).and_then(|chunks| {
                        let optional = schema.int(3) == Some(1);
                        let leaf = Leaf::new(name, dtype, stored);
                        leaf.read(source, &chunks, optional, start, rows, &mut memory)
                    });
                match read {
                    Ok(leaf) => leaves.push(leaf),
                    Err(e) if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => {
                        return Err(e);
                    }
                    Err(e) => errors.push(e.in_object(object).at(start)),
                }
                continue;
            }
            None => format!("type {} is not supported", wire::type_name(schema)),
        };
        report.error("parquet-020", reason).in_object(object).at(start);
    }
    if leaves.is_empty() && !errors.is_empty() {
        return Err(errors.swap_remove(0));
    }
    for error in errors {
        report.absorb(error)?;
    }
    Ok(leaves)
}

/// The value of a key in the footer.
pub(crate) fn value_of(footer: &Struct, key: &str) -> Option<String> {
    let pairs = structs(footer.list(5));
    pairs.iter().find(|pair| pair.text(1).as_deref() == Some(key))?.text(2)
}

/// The structures of a list.
pub(crate) fn structs(list: &[thrift::Value]) -> Vec<&Struct> {
    list.iter()
        .filter_map(|value| match value {
            thrift::Value::Struct(inner) => Some(inner),
            _ => None,
        })
        .collect()
}

fn column_type(schema: &Struct) -> Option<(DType, Stored)> {
    let dtype = wire::column_type(schema)?;
    Some((dtype, Stored::of(dtype)?))
}

/// Offset, size in bytes and number of rows of a chunk. Fails if it overlaps the metadata, which begin at `end`.
fn chunk_range(meta: &Struct, end: u64) -> Result<(u64, u64, u64)> {
    let found = meta.size(9).zip(meta.size(7)).zip(meta.size(5));
    let ((data, size), count) = found.ok_or_else(|| missing("position of a column chunk", end))?;
    // A dictionary precedes the data pages.
    let dictionary = meta.size(11).filter(|at| *at > 0).unwrap_or(data);
    let first = data.min(dictionary);
    if first.checked_add(size).is_none_or(|stop| stop > end) {
        let message = format!("chunk of {size} bytes overlaps the metadata");
        return Err(Error::malformed("parquet-005", message).at(first));
    }
    Ok((first, size, count))
}

impl Leaf {
    fn new(name: String, dtype: DType, stored: Stored) -> Self {
        let (pages, runs, chunks) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, dtype, stored, pages, encoded: None, runs, chunks }
    }

    /// Finds the pages of all chunks: plain pages that are read in place, or chunks to be decoded.
    fn read(
        mut self,
        source: &Source,
        chunks: &[&Struct],
        optional: bool,
        end: u64,
        rows: u64,
        memory: &mut Budget,
    ) -> Result<Self> {
        let plain = chunks
            .iter()
            .try_for_each(|meta| self.plain_chunk(source, meta, optional, end, memory));
        match plain {
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                (self.pages, self.runs, self.chunks) = (Vec::new(), Vec::new(), Vec::new());
                let mut chunks = chunks.iter();
                chunks.try_for_each(|meta| self.encoded_chunk(meta, optional, end, memory))?;
            }
            plain => plain?,
        }
        let counted: u64 = self.runs.iter().fold(0, |sum, (n, _)| sum.saturating_add(*n));
        if counted != rows {
            let message = format!("expected {rows} rows, found {counted}");
            return Err(Error::malformed("parquet-005", message));
        }
        if self.dtype.kind() == Kind::Text {
            self.measure_strings(source, memory.limits())?;
        }
        Ok(self)
    }

    /// Adds the pages of a chunk of plain values. Fails with `Unsupported` for other chunks.
    fn plain_chunk(
        &mut self,
        source: &Source,
        meta: &Struct,
        optional: bool,
        end: u64,
        memory: &mut Budget,
    ) -> Result<()> {
        let (first, size, count) = chunk_range(meta, end)?;
        let dictionary = meta.int(11).is_some_and(|at| at > 0);
        if meta.int(4) != Some(0) || dictionary {
            return Err(Error::unsupported("parquet-006", "not a plain chunk").at(first));
        }
        let stop = first + size;
        self.chunks.push(Extent { offset: first, len: size });
        let (mut at, mut seen) = (first, 0_u64);
        while seen < count {
            let (header, len) = wire::read_page_header(source, at, stop)?;
            let invalid = |message: &str| Error::malformed("parquet-005", message).at(at);
            let body = header.size(3).ok_or_else(|| invalid("page without a size"))?;
            let data = header.inner(5).ok_or_else(|| {
                Error::unsupported("parquet-006", "not a version 1 data page").at(at)
            })?;
            let next = (at + len).checked_add(body).filter(|next| *next <= stop);
            let next = next.ok_or_else(|| invalid("page exceeds its chunk"))?;
            let values = data.size(1).filter(|n| *n > 0 && *n <= count - seen);
            let values =
                values.ok_or_else(|| invalid("number of values of a page exceeds its chunk"))?;
            if data.int(2) != Some(PLAIN) || (optional && data.int(3) != Some(RLE)) {
                return Err(Error::unsupported("parquet-006", "not a plain page").at(at));
            }
            let (mut offset, mut defined) = (at + len, values);
            if optional {
                let (len, runs) = levels::read(source, offset, next, values, memory.limits())?;
                defined = runs.iter().filter(|(_, defined)| *defined).map(|(n, _)| n).sum();
                offset += len;
                memory.charge(runs.len() as u64 * RUN, "the runs of missing values")?;
                for run in runs {
                    self.run(run);
                }
            } else {
                self.run((values, true));
            }
            memory.charge(PAGE, "the pages")?;
            self.page(Extent { offset, len: next - offset }, defined)?;
            (at, seen) = (next, seen + values);
        }
        Ok(())
    }

    /// Adds a chunk that has to be decoded.
    fn encoded_chunk(
        &mut self,
        meta: &Struct,
        optional: bool,
        end: u64,
        memory: &mut Budget,
    ) -> Result<()> {
        let (first, size, count) = chunk_range(meta, end)?;
        let compression = Compression::of(meta.int(4)).ok_or_else(|| {
            let codec = meta.int(4).map_or("none".into(), |codec| codec.to_string());
            Error::unsupported("parquet-006", format!("compression codec {codec} is not supported"))
                .at(first)
                .hint("supported are snappy, gzip, zstd and lz4 (raw)")
        })?;
        let known = [PLAIN, OLD_DICTIONARY, RLE, BIT_PACKED, DICTIONARY];
        let encodings = meta.list(2).iter().map(thrift::Value::int);
        if let Some(other) = encodings.flatten().find(|encoding| !known.contains(encoding)) {
            let message = format!("encoding {other} is not supported");
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        let encoded = Encoded {
            dtype: self.dtype,
            stored: self.stored,
            compression,
            optional,
            limits: *memory.limits(),
        };
        if self.encoded.get_or_insert(encoded).compression != compression {
            let message = "chunks with different compression codecs are not supported";
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        // A missing float is NaN, as in pandas.
        let missing = meta.inner(12).and_then(|statistics| statistics.int(3)).unwrap_or(0) > 0;
        self.run((count, !missing || self.dtype.kind() == Kind::Float));
        memory.charge(PAGE, "the column chunks")?;
        let bytes = Extent { offset: first, len: size };
        self.chunks.push(bytes);
        self.pages.push((bytes, count));
        Ok(())
    }

    fn run(&mut self, (count, defined): (u64, bool)) {
        match self.runs.last_mut() {
            Some((n, own)) if *own == defined => *n = n.saturating_add(count),
            _ => self.runs.push((count, defined)),
        }
    }

    /// Adds the values of a plain page. Fails if the page is too short.
    fn page(&mut self, mut bytes: Extent, count: u64) -> Result<()> {
        let needed = match self.stored {
            Stored::Plain => count.checked_mul(self.dtype.size() as u64),
            Stored::Wide => count.checked_mul(4),
            Stored::Bits => Some(count.div_ceil(8)),
            Stored::ByteArrays => Some(bytes.len),
        };
        let needed = needed.filter(|needed| *needed <= bytes.len).ok_or_else(|| {
            let message = format!("page of {} bytes is too short for {count} values", bytes.len);
            Error::malformed("parquet-005", message).at(bytes.offset)
        })?;
        bytes.len = needed;
        self.pages.push((bytes, count));
        Ok(())
    }

    /// Sets the type to the length of the longest string, which requires reading them all.
    fn measure_strings(&mut self, source: &Source, limits: &Limits) -> Result<()> {
        let mut longest = self.dtype.size().max(1);
        for (page, count) in &self.pages {
            limits.allow(page.len, "a page of strings")?;
            let bytes = source.read_vec(page.offset, page.len)?;
            if let Some(encoded) = &self.encoded {
                let own = encoded.longest(&bytes).map_err(|e| e.at(page.offset))?;
                longest = longest.max(own);
                continue;
            }
            let mut rest = &bytes[..];
            for _ in 0..*count {
                let (text, after) = wire::next_byte_array(rest).ok_or_else(|| {
                    Error::malformed("parquet-005", "string exceeds its page").at(page.offset)
                })?;
                longest = longest.max(text.len());
                rest = after;
            }
        }
        self.dtype = DType::text(u32::try_from(longest).unwrap_or(u32::MAX));
        if let Some(encoded) = &mut self.encoded {
            encoded.dtype = self.dtype;
        }
        Ok(())
    }

    /// Decodes every chunk that is not plain, and discards the values.
    pub(crate) fn verify(&self, source: &Source, limits: &Limits) -> Result<()> {
        let Some(encoded) = &self.encoded else { return Ok(()) };
        for (chunk, count) in &self.pages {
            let named = |e: Error| e.in_object(format!("\"{}\"", self.name)).at(chunk.offset);
            limits.allow(chunk.len, "a chunk of a column").map_err(named)?;
            let stored = source.read_vec(chunk.offset, chunk.len)?;
            let size = count.saturating_mul(self.dtype.size() as u64);
            let mut values = vec![0; limits.allow(size, "a chunk of a column").map_err(named)?];
            encoded.decode(&stored, &mut values).map_err(named)?;
        }
        Ok(())
    }

    /// Byte ranges of the values.
    pub(crate) fn extents(&self) -> Result<Extents> {
        Extents::several(self.pages.iter().map(|(bytes, _)| *bytes).collect())
    }

    /// Whether every row has a value.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.iter().all(|(_, defined)| *defined)
    }
}
