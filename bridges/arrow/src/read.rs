//! Columns of a file: their types, and the positions of their buffers in the record batches.

use std::sync::Arc;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Codec, Extent, Extents, Layout};
use spile_core::limits::{Budget, Limits};
use spile_core::report::Report;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::wire::fetch;
use spile_interchange::table::{StoredColumn, missing_number};

use crate::decode::{BatchPosition, ColumnCodec, Dictionary, record};
use crate::types::{Conversion, Storage, Type, buffer_count, column_type};
use crate::wire::{self, Block, DICTIONARY_BATCH, RECORD_BATCH};
use spile_interchange::arrow::{self, LENGTH};
use spile_interchange::flatbuffers::Table;

/// Levels of nested types.
const DEPTH: u32 = 60;

/// Memory charged for a column.
const COLUMN: u64 = 1 << 10;

/// Code of the type of unions.
const UNION: u8 = 14;

/// A leaf field of the schema, or one that cannot be read.
struct Field<'a> {
    path: String,
    table: Table<'a>,
    position: BatchPosition,
    /// Nodes of the structures around it.
    parents: Vec<usize>,
    problem: Option<String>,
}

/// Position of the next field in the lists of a record batch.
struct Walk<'a, 'b> {
    next: BatchPosition,
    fields: Vec<Field<'a>>,
    /// Charged for each field that is visited: fields of a damaged schema may share their children.
    memory: &'b mut Budget,
    /// Version of the metadata; 4 is version 5.
    version: i16,
}

impl<'a> Walk<'a, '_> {
    /// Adds a field and its children. Fails if the buffers of later fields cannot be found.
    fn field(
        &mut self,
        table: Table<'a>,
        above: &str,
        parents: &[usize],
        silent: bool,
        depth: u32,
    ) -> Result<()> {
        let name = table.text(0).unwrap_or_default();
        self.memory
            .charge(COLUMN.saturating_add((above.len() + name.len()) as u64), "the columns")?;
        let path = if above.is_empty() { name } else { format!("{above}/{name}") };
        let (position, code) = (self.next, table.u8(2).unwrap_or(0));
        self.next.node += 1;
        let is_dictionary = table.table(4).is_some();
        if code == UNION && self.version < 4 {
            let message = format!("column \"{path}\" is a union of a version before 5");
            return Err(Error::unsupported("arrow-020", message));
        }
        match buffer_count(table) {
            Some(count) => self.next.buffer += count,
            None if matches!(code, 23 | 24) => {
                self.next.buffer += 2;
                self.next.views += 1;
            }
            None => {
                let message = format!("type {code} of column \"{path}\" is not known");
                return Err(Error::unsupported("arrow-020", message));
            }
        }
        let children = if is_dictionary { Vec::new() } else { table.tables(5) };
        if depth == 0 {
            return Err(wire::invalid("nesting of types"));
        }
        let is_struct = code == 13 && !is_dictionary;
        let problem = match column_type(table) {
            Err(name) if !is_struct => Some(format!("columns of type {name} are not supported")),
            _ => None,
        };
        let nested = silent || problem.is_some();
        let parents = [parents, &[position.node]].concat();
        if !silent && !is_struct {
            let parents = parents[..parents.len() - 1].to_vec();
            self.fields.push(Field { path: path.clone(), table, position, parents, problem });
        }
        for child in children {
            self.field(child, &path, &parents, nested, depth - 1)?;
        }
        Ok(())
    }
}

/// The record batches of a file.
pub(crate) struct Batches {
    pub(crate) blocks: Vec<Block>,
    /// Metadata of each.
    headers: Vec<Vec<u8>>,
    pub(crate) rows: u64,
}

impl Batches {
    /// Reads the metadata of these messages.
    pub(crate) fn read(
        source: &Source,
        blocks: &[[u8; 24]],
        end: u64,
        memory: &mut Budget,
    ) -> Result<Self> {
        let mut all = Self { blocks: Vec::new(), headers: Vec::new(), rows: 0 };
        for bytes in blocks {
            let block = Block::parse(bytes, end)?;
            let charged = memory.charge(block.metadata.saturating_add(128), "the record batches");
            charged.map_err(|e| e.at(block.offset))?;
            let header = fetch(source, block.offset, block.metadata as usize)?;
            if let Some((batch, _)) = wire::batch(&header, RECORD_BATCH) {
                let rows = u64::try_from(batch.i64(0).unwrap_or(0));
                let rows = rows.ok().and_then(|rows| all.rows.checked_add(rows));
                all.rows = rows.ok_or_else(|| wire::invalid("number of rows").at(block.offset))?;
            }
            all.blocks.push(block);
            all.headers.push(header);
        }
        Ok(all)
    }
}

/// The file from which columns are read.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a Source,
    pub(crate) limits: &'a Limits,
    pub(crate) batches: &'a Batches,
    pub(crate) dictionaries: &'a Batches,
    /// Whether the table has frames, in which columns may be missing.
    pub(crate) framed: bool,
    /// Offset of the footer, which has the schema.
    pub(crate) start: u64,
    /// Version of the metadata; 4 is version 5.
    pub(crate) version: i16,
}

/// The columns of a schema. A column that cannot be read is reported, and the others are read.
pub(crate) fn read_columns(
    context: &Context<'_>,
    schema: Table<'_>,
    memory: &mut Budget,
    report: &mut Report,
) -> Result<Vec<StoredColumn>> {
    let next = BatchPosition { node: 0, buffer: 0, views: 0 };
    let mut walk = Walk { next, fields: Vec::new(), memory, version: context.version };
    let mut top = schema.tables(1).into_iter();
    for field in top.by_ref() {
        if let Err(error) = walk.field(field, "", &[], false, DEPTH) {
            report.absorb(error.at(context.start))?;
            break;
        }
    }
    let Walk { fields, memory, .. } = walk;
    for field in top {
        let name = format!("\"{}\"", field.text(0).unwrap_or_default());
        let message = "its buffers are after those of a column of unknown type";
        report.error("arrow-022", message).in_object(name).at(context.start);
    }
    let mut columns = Vec::new();
    for field in fields {
        let object = format!("\"{}\"", field.path);
        if let Some(problem) = field.problem {
            report.error("arrow-020", problem).in_object(object).at(context.start);
            continue;
        }
        let locate = |e: Error| {
            let e = e.in_object(object.clone());
            if e.offset().is_none() { e.at(context.start) } else { e }
        };
        match context.column(&field, memory, report).map_err(locate) {
            Ok(column) => columns.push(column),
            Err(e) if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => return Err(e),
            Err(e) => report.absorb(e)?,
        }
    }
    Ok(columns)
}

/// Byte range of a column in a record batch.
struct Part {
    header: Extent,
    values: Extent,
    rows: u64,
}

impl Context<'_> {
    fn column(
        &self,
        field: &Field<'_>,
        memory: &mut Budget,
        report: &mut Report,
    ) -> Result<StoredColumn> {
        let unsupported = |name| {
            let message = format!("columns of type {name} are not supported");
            Error::unsupported("arrow-020", message)
        };
        let mut own = column_type(field.table).map_err(unsupported)?;
        let mut codec = self.codec(&own, field.position, RECORD_BATCH);
        if let Some(encoding) = field.table.table(4) {
            codec.dictionary = Some(Arc::new(self.dictionary(&own, encoding, memory)?));
        }
        let (mut parts, mut missing, mut plain) = (Vec::new(), 0, Some(Vec::new()));
        for (block, header) in self.batches.blocks.iter().zip(&self.batches.headers) {
            let locate = |e: Error| e.at(block.offset);
            let batch = wire::batch(header, RECORD_BATCH);
            let (batch, _) = batch.ok_or_else(|| locate(wire::invalid("record batch")))?;
            for parent in &field.parents {
                let outer = ColumnCodec {
                    position: BatchPosition { node: *parent, ..field.position },
                    ..codec.clone()
                };
                if outer.node(batch).map_err(locate)?.1 > 0 {
                    let message = "missing values of structures are not supported";
                    return Err(locate(Error::unsupported("arrow-021", message)));
                }
            }
            let (part, none, ranges) = part(&codec, block, batch).map_err(locate)?;
            if batch.i64(0).unwrap_or(0).cast_unsigned() != part.rows {
                return Err(locate(wire::invalid("number of rows of a column")));
            }
            missing += none;
            if part.rows == 0 {
                continue;
            }
            let in_place = match (own.storage, own.conversion, ranges.get(1)) {
                (Storage::Fixed(size), Conversion::Copy, Some((at, len)))
                    if batch.table(3).is_none() && none == 0 && codec.dictionary.is_none() =>
                {
                    let needed = part.rows.checked_mul(size as u64).filter(|needed| needed <= len);
                    let message = "a buffer is shorter than its column";
                    let needed =
                        needed.ok_or_else(|| locate(Error::malformed("arrow-005", message)))?;
                    let offset = block.offset + block.metadata + at;
                    Some(Extent { offset, len: needed })
                }
                _ => None,
            };
            plain = plain.zip(in_place).map(|(mut all, own)| {
                all.push(own);
                all
            });
            parts.push(part);
        }
        if own.storage == Storage::Null && codec.dictionary.is_none() {
            missing = self.batches.rows;
        }
        self.measure(&mut own, &mut codec, field, &parts)?;
        codec.gaps = missing > 0;
        if codec.gaps && !self.framed {
            own.with_missing();
        }
        (codec.dtype, codec.conversion) = (own.dtype, own.conversion);
        if let Some(warning) = &own.warning {
            let code = if codec.gaps { "arrow-021" } else { "arrow-020" };
            let object = format!("\"{}\"", field.path);
            report.warn(code, warning.clone()).in_object(object).at(self.start);
        }
        let gaps = codec.gaps && !self.framed;
        let layout = match plain.filter(|_| missing == 0) {
            Some(extents) => Layout::Plain { extents: Extents::several(extents)?, order: Order::C },
            None => encoded(&parts, own.dtype, Arc::new(codec))?,
        };
        let mut array = ArrayDesc::new(own.dtype, Shape::new([self.batches.rows]), layout);
        array.shape.bytes(own.dtype.size())?;
        array.map = own.map;
        if let Some(number) = missing_number(own.dtype).filter(|_| gaps) {
            array.semantics_mut().missing.values.push(number);
        }
        let mut attrs = own.attrs;
        if let Some(units) = arrow::value_of(field.table, 6, "units") {
            attrs.push(("units", units));
        }
        Ok(StoredColumn { name: field.path.clone(), array, attrs })
    }

    fn codec(&self, own: &Type, position: BatchPosition, kind: u8) -> ColumnCodec {
        ColumnCodec {
            position,
            kind,
            storage: own.storage,
            conversion: own.conversion,
            dtype: own.dtype,
            gaps: false,
            framed: self.framed,
            dictionary: None,
            limits: *self.limits,
        }
    }

    /// Finds the lengths of strings, for which all of them are read.
    fn measure(
        &self,
        own: &mut Type,
        codec: &mut ColumnCodec,
        field: &Field<'_>,
        parts: &[Part],
    ) -> Result<()> {
        if own.dtype.kind() != Kind::Text {
            return Ok(());
        }
        let (mut least, mut most, mut zero) = (usize::MAX, 0, false);
        for part in parts {
            let stored = [part.header, part.values].map(|extent| {
                self.limits.allow(extent.len, "a column of a record batch")?;
                self.source.read_vec(extent.offset, extent.len)
            });
            let [header, values] = stored;
            codec.rows(&[header?, values?].concat(), |value| {
                if let Some(value) = value {
                    (least, most) = (least.min(value.len()), most.max(value.len()));
                    zero |= value.last() == Some(&0);
                }
                Ok(())
            })?;
        }
        let known = arrow::value_of(field.table, 6, LENGTH).and_then(|text| text.parse().ok());
        let known = known.filter(|known: &usize| *known <= 1 << 20).unwrap_or(1);
        let size = u32::try_from(most.max(known)).unwrap_or(u32::MAX);
        if own.binary && least == most && most > 0 {
            own.dtype = DType::opaque(size);
        } else if zero {
            let message = "values of different lengths that end with zero bytes are not supported";
            return Err(Error::unsupported("arrow-020", message));
        } else {
            own.dtype = DType::text(size);
        }
        Ok(())
    }

    /// Reads the values of a dictionary. They are kept with the column and charged to `memory`.
    fn dictionary(
        &self,
        own: &Type,
        encoding: Table<'_>,
        memory: &mut Budget,
    ) -> Result<Dictionary> {
        let id = encoding.i64(0).unwrap_or(0);
        let index = encoding.table(1).map_or(Some(DType::I32), |own| {
            let kind = if own.u8(1) == Some(1) { Kind::Int } else { Kind::UInt };
            let bytes = u32::try_from(own.i32(0)?).ok()? / 8;
            DType::new(kind, bytes, spile_core::wire::ByteOrder::Little)
        });
        let index = Some(index.ok_or_else(|| wire::invalid("index type of a dictionary"))?);
        let codec =
            self.codec(own, BatchPosition { node: 0, buffer: 0, views: 0 }, DICTIONARY_BATCH);
        let mut found = Dictionary { bytes: Vec::new(), starts: vec![0], index };
        for (block, header) in self.dictionaries.blocks.iter().zip(&self.dictionaries.headers) {
            let Some((message, _)) = wire::batch(header, DICTIONARY_BATCH) else { continue };
            if message.i64(0).unwrap_or(0) != id {
                continue;
            }
            let batch = record(message, DICTIONARY_BATCH);
            let batch = batch.ok_or_else(|| wire::invalid("dictionary").at(block.offset))?;
            if message.u8(2) != Some(1) {
                found = Dictionary { bytes: Vec::new(), starts: vec![0], index };
            }
            let (part, ..) = part(&codec, block, batch).map_err(|e| e.at(block.offset))?;
            let buffers = part.values.len.saturating_add(part.rows.saturating_mul(24));
            self.limits.allow(buffers.saturating_add(part.header.len), "a dictionary")?;
            let values = self.source.read_vec(part.values.offset, part.values.len)?;
            codec.rows(&[&header[..], &values].concat(), |value| {
                let value = value.ok_or_else(|| {
                    let message = "missing values in a dictionary are not supported";
                    Error::unsupported("arrow-021", message)
                })?;
                memory.charge((value.len() + size_of::<usize>()) as u64, "the dictionaries")?;
                found.bytes.extend_from_slice(value);
                found.starts.push(found.bytes.len());
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// Offset and length of a buffer in bytes.
type Range = (u64, u64);

/// The bytes of a column in a record batch, its missing values, and its buffers in the body.
fn part(codec: &ColumnCodec, block: &Block, batch: Table<'_>) -> Result<(Part, u64, Vec<Range>)> {
    let (rows, missing) = codec.node(batch)?;
    let ranges = codec.ranges(batch)?;
    let used = ranges.iter().filter(|(_, len)| *len > 0);
    let from = used.clone().map(|(at, _)| *at).min().unwrap_or(0);
    let to = used.map(|(at, len)| at.saturating_add(*len)).max().unwrap_or(0);
    if to > block.body {
        return Err(Error::malformed("arrow-005", "a buffer exceeds its message"));
    }
    let body = block.offset + block.metadata;
    // Bits are the smallest values, except for those that are all missing or the same.
    let bits = matches!(codec.storage, Storage::Null) || ranges.get(1).is_some();
    if !bits || (codec.storage != Storage::Null && rows > 0 && to == from) {
        return Err(Error::malformed("arrow-005", "a column has rows but no buffers"));
    }
    let header = Extent { offset: block.offset, len: block.metadata };
    let values = Extent { offset: body + from, len: to - from };
    Ok((Part { header, values, rows }, missing, ranges))
}

fn encoded(parts: &[Part], dtype: DType, codec: Arc<dyn Codec>) -> Result<Layout> {
    let (mut extents, mut starts, mut decoded) = (Vec::new(), vec![0], vec![0]);
    let (mut before, mut elements) = (0_u64, 0_u64);
    for part in parts {
        extents.extend([part.header, part.values].into_iter().filter(|extent| extent.len > 0));
        before = before.saturating_add(part.header.len).saturating_add(part.values.len);
        elements = elements.saturating_add(part.rows);
        starts.push(before);
        decoded.push(elements.saturating_mul(dtype.size() as u64));
    }
    let data = Extents::several(extents)?;
    let (starts, decoded) = (starts.into(), decoded.into());
    Ok(Layout::Encoded { starts, decoded, data, codec, order: Order::C })
}
