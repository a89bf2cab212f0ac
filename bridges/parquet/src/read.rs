//! Leaf columns: positions of their pages, and which rows have values.

use std::ops::Range;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{Extent, Linear};
use spile_core::limits::{Budget, Limits};
use spile_core::report::Report;
use spile_core::source::Source;

use crate::compression::Compression;
use crate::decode::{Encoded, Survey};
use crate::rle;
use crate::schema;
use crate::stored::Stored;
use crate::thrift::{self, Struct};
use crate::types::{Type, column_type};
use crate::wire::{self, PAGE_CHECKSUM, PLAIN, RLE};

/// Codes of the encodings that are read.
const ENCODINGS: [i64; 9] = [0, 2, 3, 4, 5, 6, 7, 8, 9];

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
    /// Attributes of the array.
    pub(crate) attrs: Vec<(&'static str, String)>,
    /// Scaling of decimal numbers.
    pub(crate) map: Option<Linear>,
    /// Whether the stored number [`missing_number`](spile_interchange::table::missing_number) means missing.
    pub(crate) gaps: bool,
    /// What the element type does not keep.
    warning: Option<String>,
    /// Definition level of rows with a value.
    levels: u32,
    /// Byte arrays that are not annotated as strings.
    binary: bool,
}

pub(crate) fn missing(field: &str, at: u64) -> Error {
    Error::malformed("parquet-003", format!("missing or invalid {field}")).at(at)
}

/// The footer of a file.
pub(crate) struct Footer<'a> {
    pub(crate) content: &'a Struct,
    /// Its offset.
    pub(crate) start: u64,
    pub(crate) rows: u64,
    /// Whether the table has frames, in which columns may be missing.
    pub(crate) framed: bool,
}

/// Reads the columns of a file. A column that cannot be read is reported, and the others are read. Fails with
/// the first error if none can be read.
pub(crate) fn read_columns(
    source: &Source,
    footer: &Footer<'_>,
    limits: &Limits,
    report: &mut Report,
) -> Result<Vec<Leaf>> {
    let (content, start) = (footer.content, footer.start);
    let groups: Vec<Vec<&Struct>> =
        structs(content.list(4)).iter().map(|group| structs(group.list(1))).collect();
    let mut memory = Budget::new(limits);
    let (mut leaves, mut errors) = (Vec::new(), Vec::new());
    for field in schema::fields(&structs(content.list(2))) {
        memory.charge(COLUMN.saturating_add(field.path.len() as u64), "the columns")?;
        let object = format!("\"{}\"", field.path);
        let own = match (field.problem, column_type(field.schema)) {
            (Some(problem), _) => Err(problem.to_string()),
            (None, Err(name)) => Err(format!("type {name} is not supported")),
            (None, Ok(own)) => Ok(own),
        };
        let own = match own {
            Ok(own) => own,
            Err(reason) => {
                report.error("parquet-020", reason).in_object(object).at(start);
                continue;
            }
        };
        let chunks = groups.iter().map(|group| {
            let chunk = group.get(field.leaf).ok_or_else(|| missing("column chunk", start))?;
            if chunk.get(8).is_some() {
                let message = "encrypted columns are not supported";
                return Err(Error::unsupported("parquet-006", message));
            }
            chunk.inner(3).ok_or_else(|| missing("column chunk", start))
        });
        let read = chunks.collect::<Result<Vec<&Struct>>>().and_then(|chunks| {
            let leaf = Leaf::new(field.path, own, field.levels);
            leaf.read(source, &chunks, footer, &mut memory)
        });
        match read {
            Ok(leaf) => {
                if let Some(warning) = &leaf.warning {
                    let code =
                        if warning.starts_with("missing") { "parquet-021" } else { "parquet-020" };
                    report.warn(code, warning.clone()).in_object(object).at(start);
                }
                leaves.push(leaf);
            }
            Err(e) if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => return Err(e),
            Err(e) => errors.push(e.in_object(object).at(start)),
        }
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
    fn new(name: String, own: Type, levels: u32) -> Self {
        let Type { dtype, stored, attrs, map, warning, binary } = own;
        let (pages, runs, chunks) = (Vec::new(), Vec::new(), Vec::new());
        let (encoded, gaps) = (None, false);
        Self {
            name,
            dtype,
            stored,
            pages,
            encoded,
            runs,
            chunks,
            attrs,
            map,
            gaps,
            warning,
            levels,
            binary,
        }
    }

    /// Finds the pages of all chunks: plain pages that are read in place, or chunks to be decoded.
    fn read(
        mut self,
        source: &Source,
        chunks: &[&Struct],
        footer: &Footer<'_>,
        memory: &mut Budget,
    ) -> Result<Self> {
        let end = footer.start;
        // Chunks of empty tables need not have pages.
        let chunks: Vec<&Struct> =
            chunks.iter().filter(|meta| meta.int(5) != Some(0)).copied().collect();
        let plain = chunks.iter().try_fold(true, |plain, meta| {
            Ok(plain && self.plain_chunk(source, meta, end, memory)?)
        });
        let plain = match plain {
            Err(e) if Error::kind(&e) == ErrorKind::Unsupported => false,
            plain => plain? && self.is_full(),
        };
        if !plain {
            (self.pages, self.runs, self.chunks) = (Vec::new(), Vec::new(), Vec::new());
            chunks.iter().try_for_each(|meta| self.encoded_chunk(meta, end, memory))?;
        }
        let counted: u64 = self.runs.iter().fold(0, |sum, (n, _)| sum.saturating_add(*n));
        if counted != footer.rows {
            let message = format!("expected {} rows, found {counted}", footer.rows);
            return Err(Error::malformed("parquet-005", message));
        }
        self.survey(source, &chunks, footer.framed, memory.limits())?;
        Ok(self)
    }

    /// Finds the number of missing values and the lengths of byte arrays, which requires reading them all unless
    /// the metadata have the former and there are none of the latter.
    fn survey(
        &mut self,
        source: &Source,
        chunks: &[&Struct],
        framed: bool,
        limits: &Limits,
    ) -> Result<()> {
        let mut known = chunks.iter().map(|meta| {
            let statistics = meta.inner(12);
            if self.levels == 0 { Some(0) } else { statistics.and_then(|own| own.size(3)) }
        });
        let known: Option<u64> = known.try_fold(0_u64, |sum, n| Some(sum.saturating_add(n?)));
        let mut survey = Survey { missing: known.unwrap_or(0), ..Survey::default() };
        let variable = self.stored == Stored::ByteArrays && self.dtype.kind() == Kind::Text;
        let mut found = Survey::default();
        for (page, count) in &self.pages {
            if !variable && (self.encoded.is_none() || known.is_some()) {
                break;
            }
            limits.allow(page.len, "a column chunk")?;
            let bytes = source.read_vec(page.offset, page.len)?;
            match &self.encoded {
                Some(encoded) => {
                    encoded.survey(&bytes, &mut found).map_err(|e| e.at(page.offset))?;
                }
                None => found.measure(&bytes, *count).ok_or_else(|| {
                    Error::malformed("parquet-005", "string exceeds its page").at(page.offset)
                })?,
            }
        }
        survey.missing = survey.missing.max(found.missing);
        if variable {
            self.set_length(&found)?;
        }
        if let Some(encoded) = &mut self.encoded {
            let own = Type {
                dtype: self.dtype,
                stored: self.stored,
                attrs: Vec::new(),
                map: None,
                warning: self.warning.take(),
                binary: false,
            };
            // Frames without the array are not read.
            let own = if survey.missing > 0 && !framed { own.with_missing() } else { own };
            (self.dtype, self.stored, self.warning) = (own.dtype, own.stored, own.warning);
            self.gaps = survey.missing > 0 && !framed;
            (encoded.dtype, encoded.stored) = (self.dtype, self.stored);
            (encoded.gaps, encoded.framed) = (survey.missing > 0, framed);
        }
        Ok(())
    }

    /// Sets the type of byte arrays: strings of the greatest length, or bytes.
    fn set_length(&mut self, found: &Survey) -> Result<()> {
        let (least, most) = found.lengths.unwrap_or((0, 0));
        let size = u32::try_from(most.max(self.dtype.size()).max(1)).unwrap_or(u32::MAX);
        if self.binary && least == most && most > 0 {
            self.dtype = DType::opaque(size);
        } else if found.zero {
            let message = "values of different lengths that end with zero bytes are not supported";
            return Err(Error::unsupported("parquet-020", message));
        } else {
            self.dtype = DType::text(size);
        }
        Ok(())
    }

    /// Adds the pages of a chunk of plain values. Returns false for other chunks.
    fn plain_chunk(
        &mut self,
        source: &Source,
        meta: &Struct,
        end: u64,
        memory: &mut Budget,
    ) -> Result<bool> {
        let (first, size, count) = chunk_range(meta, end)?;
        let dictionary = meta.int(11).is_some_and(|at| at > 0);
        if meta.int(4) != Some(0) || dictionary {
            return Ok(false);
        }
        let stop = first + size;
        self.chunks.push(Extent { offset: first, len: size });
        let (mut at, mut seen) = (first, 0_u64);
        while seen < count {
            let (header, len) = wire::read_page_header(source, at, stop, memory.limits())?;
            let invalid = |message: &str| Error::malformed("parquet-005", message).at(at);
            let body = header.size(3).ok_or_else(|| invalid("page without a size"))?;
            let Some(data) = header.inner(5) else { return Ok(false) };
            let next = (at + len).checked_add(body).filter(|next| *next <= stop);
            let next = next.ok_or_else(|| invalid("page exceeds its chunk"))?;
            let values = data.size(1).filter(|n| *n > 0 && *n <= count - seen);
            let values =
                values.ok_or_else(|| invalid("number of values of a page exceeds its chunk"))?;
            // Decoding verifies checksums.
            if data.int(2) != Some(PLAIN)
                || (self.levels > 0 && data.int(3) != Some(RLE))
                || header.get(PAGE_CHECKSUM).is_some()
            {
                return Ok(false);
            }
            let (mut offset, mut defined) = (at + len, values);
            if self.levels > 0 {
                let range = offset..next;
                let (len, runs) = read_levels(source, range, values, self.levels, memory.limits())?;
                defined = runs.iter().filter(|(_, defined)| *defined).map(|(n, _)| n).sum();
                offset += len;
                memory.charge(runs.len() as u64 * RUN, "the runs of missing values")?;
                for (count, defined) in runs {
                    rle::push_run(&mut self.runs, count, defined);
                }
            } else {
                rle::push_run(&mut self.runs, values, true);
            }
            memory.charge(PAGE, "the pages")?;
            self.page(Extent { offset, len: next - offset }, defined)?;
            (at, seen) = (next, seen + values);
        }
        Ok(true)
    }

    /// Adds a chunk that has to be decoded.
    fn encoded_chunk(&mut self, meta: &Struct, end: u64, memory: &mut Budget) -> Result<()> {
        let (first, size, count) = chunk_range(meta, end)?;
        let compression = Compression::new(meta.int(4)).map_err(|e| e.at(first))?;
        let encodings = meta.list(2).iter().map(thrift::Value::int);
        if let Some(other) = encodings.flatten().find(|encoding| !ENCODINGS.contains(encoding)) {
            let message = format!("encoding {other} is not supported");
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        let encoded = Encoded {
            dtype: self.dtype,
            stored: self.stored,
            compression,
            levels: self.levels,
            gaps: false,
            framed: false,
            limits: *memory.limits(),
        };
        if *self.encoded.get_or_insert_with(|| encoded.clone()) != encoded {
            let message = "chunks with different compression codecs are not supported";
            return Err(Error::unsupported("parquet-006", message).at(first));
        }
        // Rows without a value become elements that mean missing.
        rle::push_run(&mut self.runs, count, true);
        memory.charge(PAGE, "the column chunks")?;
        let bytes = Extent { offset: first, len: size };
        self.chunks.push(bytes);
        self.pages.push((bytes, count));
        Ok(())
    }

    /// Adds the values of a plain page. Fails if the page is too short.
    fn page(&mut self, mut bytes: Extent, count: u64) -> Result<()> {
        let needed = match self.stored {
            Stored::Bits | Stored::FloatBits => Some(count.div_ceil(8)),
            stored => match stored.width(self.dtype) {
                Some(width) => count.checked_mul(width as u64),
                None => Some(bytes.len),
            },
        };
        let needed = needed.filter(|needed| *needed <= bytes.len).ok_or_else(|| {
            let message = format!("page of {} bytes is too short for {count} values", bytes.len);
            Error::malformed("parquet-005", message).at(bytes.offset)
        })?;
        bytes.len = needed;
        self.pages.push((bytes, count));
        Ok(())
    }

    /// Whether every row has a value.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.iter().all(|(_, defined)| *defined)
    }
}

/// Reads the definition levels of `values` rows at `offset`. Returns their length in bytes, and runs of rows with and
/// without a value.
fn read_levels(
    source: &Source,
    Range { start: offset, end }: Range<u64>,
    values: u64,
    most: u32,
    limits: &Limits,
) -> Result<(u64, Vec<(u64, bool)>)> {
    let bad = |what: &str| Error::malformed("parquet-005", what.to_string()).at(offset);
    let short = || bad("definition levels exceed the page");
    if end - offset < 4 {
        return Err(short());
    }
    let mut len = [0; 4];
    source.read_exact_at(offset, &mut len)?;
    let len = u64::from(u32::from_le_bytes(len));
    if len > end - offset - 4 {
        return Err(short());
    }
    limits.allow(len.saturating_mul(8 * 16), "the definition levels")?;
    let bytes = source.read_vec(offset + 4, len)?;
    let runs =
        rle::decode_levels(&bytes, values, most).ok_or_else(|| bad("invalid definition levels"))?;
    Ok((len + 4, runs))
}
