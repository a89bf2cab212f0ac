//! Columns of a file: where the values of their pages lie, and which rows have any.

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{Codec as _, Extent, Extents};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use crate::levels;
use crate::packed::{Compression, Packed};
use crate::thrift::{self, Struct};
use crate::wire::{self, BIT_PACKED, DICTIONARY, OLD_DICTIONARY, PLAIN, RLE, Stored};

/// A column of the file.
pub(crate) struct Leaf {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) stored: Stored,
    /// The values of its pages, and how many there are.
    pub(crate) pages: Vec<(Extent, u64)>,
    /// Its pages do not lie as they are: whole chunks are in their place.
    pub(crate) packed: Option<Packed>,
    /// Rows that have a value, or have none.
    pub(crate) runs: Vec<(u64, bool)>,
    /// Its bytes, headers and all.
    pub(crate) chunks: Vec<Extent>,
}

pub(crate) fn bad(what: &str, at: u64) -> Error {
    Error::malformed("parquet-003", format!("{what} cannot be read")).at(at)
}

/// The columns that can be read in place; others are told of.
pub(crate) fn columns(
    source: &Source,
    footer: &Struct,
    start: u64,
    rows: u64,
    limits: &Limits,
    report: &mut Report,
) -> Result<Vec<Leaf>> {
    let schema = structs(footer.list(2));
    let groups: Vec<Vec<&Struct>> =
        structs(footer.list(4)).iter().map(|group| structs(group.list(1))).collect();
    // Columns in columns have children; only the root may.
    let nested = schema.iter().skip(1).any(|column| column.int(5).unwrap_or(0) > 0);
    let (mut leaves, mut refused) = (Vec::new(), None);
    for (k, column) in schema.iter().skip(1).enumerate() {
        let name = column.text(4).unwrap_or_default();
        let dtype = column_type(column);
        let (Some(dtype), Some(stored), false) = (dtype, dtype.and_then(Stored::of), nested) else {
            let message = "a column of a type that is not read is passed over";
            report.note("parquet-020", message).in_object(format!("\"{name}\"")).at(start);
            continue;
        };
        let mut leaf = Leaf {
            name: name.clone(),
            dtype,
            stored,
            pages: Vec::new(),
            packed: None,
            runs: Vec::new(),
            chunks: Vec::new(),
        };
        let optional = column.int(3) == Some(1);
        let chunks: Option<Vec<&Struct>> =
            groups.iter().map(|group| group.get(k).and_then(|chunk| chunk.inner(3))).collect();
        let chunks = chunks.ok_or_else(|| bad("a chunk of a column", start))?;
        let mut read =
            chunks.iter().try_for_each(|meta| leaf.chunk(source, meta, optional, start, limits));
        if read.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unsupported) {
            (leaf.pages, leaf.runs, leaf.chunks) = (Vec::new(), Vec::new(), Vec::new());
            read = chunks.iter().try_for_each(|meta| leaf.pack(meta, optional, start, limits));
        }
        let counted: u64 = leaf.runs.iter().fold(0, |sum, (n, _)| sum.saturating_add(*n));
        match read {
            // One column that is not read is no reason not to read the others.
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                let finding = report.note("parquet-006", e.message());
                finding.in_object(format!("\"{name}\"")).at(e.offset().unwrap_or(start));
                refused = Some(e);
            }
            Err(e) => return Err(e.in_object(format!("\"{name}\""))),
            Ok(()) if counted != rows => {
                let message = format!("{counted} rows, the file has {rows}");
                let error = Error::malformed("parquet-005", message);
                return Err(error.in_object(format!("\"{name}\"")).at(start));
            }
            Ok(()) => leaves.push(leaf),
        }
    }
    match refused {
        Some(error) if leaves.is_empty() => Err(error),
        _ => Ok(leaves),
    }
}

pub(crate) fn structs(list: &[thrift::Value]) -> Vec<&Struct> {
    list.iter()
        .filter_map(|value| match value {
            thrift::Value::Struct(inner) => Some(inner),
            _ => None,
        })
        .collect()
}

fn column_type(column: &Struct) -> Option<DType> {
    // Repeated values are lists.
    (column.int(3)? < 2).then(|| wire::column_type(column)).flatten()
}

/// Where the pages of a chunk begin, their bytes, and their rows; the metadata begin at `end`.
fn place(meta: &Struct, end: u64) -> Result<(u64, u64, u64)> {
    let found = meta.size(9).zip(meta.size(7)).zip(meta.size(5));
    let ((data, size), count) = found.ok_or_else(|| bad("the place of a chunk", end))?;
    // The dictionary comes first, if there is one.
    let dictionary = meta.size(11).filter(|at| *at > 0).unwrap_or(data);
    let first = data.min(dictionary);
    if first.checked_add(size).is_none_or(|stop| stop > end) {
        let message = format!("a chunk of {size} bytes reaches into the metadata");
        return Err(Error::malformed("parquet-005", message).at(first));
    }
    Ok((first, size, count))
}

impl Leaf {
    /// Notes the pages of a chunk whose values lie as they are.
    fn chunk(
        &mut self,
        source: &Source,
        meta: &Struct,
        optional: bool,
        end: u64,
        limits: &Limits,
    ) -> Result<()> {
        let (first, size, count) = place(meta, end)?;
        let dictionary = meta.int(11).is_some_and(|at| at > 0);
        if meta.int(4) != Some(0) || dictionary {
            return Err(Error::unsupported("parquet-006", "it does not lie as it is").at(first));
        }
        let stop = first + size;
        self.chunks.push(Extent { offset: first, len: size });
        let (mut at, mut seen) = (first, 0_u64);
        while seen < count {
            let (header, len) = wire::read_page_header(source, at, stop)?;
            let wrong = |what: &str| Error::malformed("parquet-005", what.to_string()).at(at);
            let body = header.size(3).ok_or_else(|| wrong("a page without a size"))?;
            let data = header.inner(5).ok_or_else(|| {
                Error::unsupported("parquet-006", "pages of the second version are not read").at(at)
            })?;
            let next = (at + len).checked_add(body).filter(|next| *next <= stop);
            let next = next.ok_or_else(|| wrong("a page reaches behind its chunk"))?;
            let values = data.size(1).filter(|n| *n > 0 && *n <= count - seen);
            let values = values.ok_or_else(|| wrong("a page with another number of values"))?;
            if data.int(2) != Some(PLAIN) || (optional && data.int(3) != Some(RLE)) {
                let message = "encodings other than the plain one are not read";
                return Err(Error::unsupported("parquet-006", message).at(at));
            }
            let (mut offset, mut there) = (at + len, values);
            if optional {
                let runs = levels::read(source, offset, next, values, limits)?;
                there = runs.1.iter().filter(|(_, there)| *there).map(|(n, _)| n).sum();
                offset += runs.0;
                for run in runs.1 {
                    self.run(run);
                }
            } else {
                self.run((values, true));
            }
            self.page(Extent { offset, len: next - offset }, there)?;
            limits.allow(self.pages.len() as u64 * 64, "the pages of a column")?;
            (at, seen) = (next, seen + values);
        }
        Ok(())
    }

    /// Notes a chunk that has to be decoded.
    fn pack(&mut self, meta: &Struct, optional: bool, end: u64, limits: &Limits) -> Result<()> {
        let (first, size, count) = place(meta, end)?;
        let compression = Compression::of(meta.int(4)).ok_or_else(|| {
            let message = "its compression is not known";
            Error::unsupported("parquet-006", message)
                .at(first)
                .hint("snappy, gzip, zstd and lz4 are")
        })?;
        let known = [PLAIN, OLD_DICTIONARY, RLE, BIT_PACKED, DICTIONARY];
        let encodings = meta.list(2).iter().map(thrift::Value::int);
        if let Some(other) = encodings.flatten().find(|encoding| !known.contains(encoding)) {
            let message = format!("encoding {other} is not read");
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        let packed = Packed {
            dtype: self.dtype,
            stored: self.stored,
            compression,
            optional,
            limits: *limits,
        };
        if self.packed.get_or_insert(packed).compression != compression {
            let message = "its chunks are compressed in different ways";
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        // A float that is missing is a NaN, as pandas has it.
        let missing = meta.inner(12).and_then(|statistics| statistics.int(3)).unwrap_or(0) > 0;
        self.run((count, !missing || self.dtype.kind() == Kind::Float));
        let bytes = Extent { offset: first, len: size };
        self.chunks.push(bytes);
        self.pages.push((bytes, count));
        Ok(())
    }

    fn run(&mut self, (count, there): (u64, bool)) {
        match self.runs.last_mut() {
            Some((n, own)) if *own == there => *n = n.saturating_add(count),
            _ => self.runs.push((count, there)),
        }
    }

    /// Notes the values of a page, as many bytes as they need.
    fn page(&mut self, mut bytes: Extent, count: u64) -> Result<()> {
        let needed = match self.stored {
            Stored::Plain => count.checked_mul(self.dtype.size() as u64),
            Stored::Wide => count.checked_mul(4),
            Stored::Bits => Some(count.div_ceil(8)),
            Stored::Texts => Some(bytes.len),
        };
        let needed = needed.filter(|needed| *needed <= bytes.len).ok_or_else(|| {
            let message = format!("{count} values in a page of {} bytes", bytes.len);
            Error::malformed("parquet-005", message).at(bytes.offset)
        })?;
        bytes.len = needed;
        self.pages.push((bytes, count));
        Ok(())
    }

    /// The type that holds the longest text.
    pub(crate) fn longest(&mut self, source: &Source, limits: &Limits) -> Result<()> {
        let mut longest = self.dtype.size().max(1);
        for (page, count) in &self.pages {
            limits.allow(page.len, "a page of texts")?;
            let bytes = source.read_vec(page.offset, page.len)?;
            if let Some(packed) = &self.packed {
                let own = packed.longest(&bytes).map_err(|e| e.at(page.offset))?;
                longest = longest.max(own);
                continue;
            }
            let mut rest = &bytes[..];
            for _ in 0..*count {
                let (text, behind) = wire::next_text(rest).ok_or_else(|| {
                    Error::malformed("parquet-005", "a text reaches behind its page")
                        .at(page.offset)
                })?;
                longest = longest.max(text.len());
                rest = behind;
            }
        }
        self.dtype = DType::text(u32::try_from(longest).unwrap_or(u32::MAX));
        if let Some(packed) = &mut self.packed {
            packed.dtype = self.dtype;
        }
        Ok(())
    }

    /// Decodes every chunk that has to be decoded.
    pub(crate) fn verify(&self, source: &Source, limits: &Limits) -> Result<()> {
        let Some(packed) = &self.packed else { return Ok(()) };
        for (chunk, count) in &self.pages {
            let place = |e: Error| e.in_object(format!("\"{}\"", self.name)).at(chunk.offset);
            limits.allow(chunk.len, "a chunk of a column").map_err(place)?;
            let stored = source.read_vec(chunk.offset, chunk.len)?;
            let size = count.saturating_mul(self.dtype.size() as u64);
            let mut values = vec![0; limits.allow(size, "a chunk of a column").map_err(place)?];
            packed.decode(&stored, &mut values).map_err(place)?;
        }
        Ok(())
    }

    pub(crate) fn extents(&self) -> Result<Extents> {
        Extents::several(self.pages.iter().map(|(bytes, _)| *bytes).collect())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.runs.iter().all(|(_, there)| *there)
    }
}
