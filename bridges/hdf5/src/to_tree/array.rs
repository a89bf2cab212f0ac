//! A dataset as the description of an array.

use std::sync::Arc;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::tree::Tree;

use super::value::Decoder;
use crate::chunks;
use crate::codec::Filters;
use crate::wire::Context;
use crate::wire::attribute::datatype_of;
use crate::wire::chunk_index::read_chunk_index;
use crate::wire::datatype::{Class, Datatype, Element, Member};
use crate::wire::header::{Header, Message, kind, resolve_shared};
use crate::wire::heap::LocalHeap;
use crate::wire::messages::{DataLayout, Dataspace, ExternalFiles, fill_value, filter_pipeline};

/// What a dataset becomes in the tree. `opaque` names a datatype that is read as opaque bytes.
pub(crate) enum Content {
    Array {
        desc: ArrayDesc,
        opaque: Option<&'static str>,
    },
    /// A contiguous dataset of a compound datatype: one array per member.
    Table(Vec<Column>),
}

/// A member of a table.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) desc: ArrayDesc,
    pub(crate) opaque: Option<&'static str>,
}

/// The messages of a dataset.
pub(crate) struct Dataset<'a> {
    ctx: &'a Context,
    header: &'a Header,
    datatype: Datatype,
    space: Dataspace,
    fill: Option<Vec<u8>>,
}

impl<'a> Dataset<'a> {
    /// Reads datatype, dataspace and fill value.
    pub(crate) fn read(ctx: &'a Context, header: &'a Header) -> Result<Self> {
        let required = |kind: u16, what: &str| -> Result<&'a Message> {
            let missing = || ctx.malformed(header.address, format!("dataset without a {what}"));
            header.find(kind).ok_or_else(missing)
        };
        let datatype = datatype_of(ctx, required(kind::DATATYPE, "datatype")?)?;
        let space = resolve_shared(ctx, required(kind::DATASPACE, "dataspace")?)?;
        let space = Dataspace::read(&mut ctx.fields(&space.body, space.at))?;
        let mut fill = None;
        for (number, old) in [(kind::FILL_VALUE, false), (kind::OLD_FILL_VALUE, true)] {
            if let (Some(message), None) = (header.find(number), &fill) {
                let message = resolve_shared(ctx, message)?;
                fill = fill_value(&mut ctx.fields(&message.body, message.at), old)?;
            }
        }
        Ok(Self { ctx, header, datatype, space, fill })
    }

    /// Describes the dataset. Fails with `Unsupported` if its data cannot be decoded.
    pub(crate) fn content(&self, decoder: &Decoder<'_>) -> Result<Content> {
        let at = self.ctx.file_offset(self.header.address);
        if let Class::VariableLength { string, base } = &self.datatype.class {
            let desc = self.variable_length(*string, u64::from(base.size), decoder);
            // Too large for the budget: the other datasets are still read.
            let desc = desc.map_err(|error| {
                if error.kind() != ErrorKind::Limit {
                    return error;
                }
                let unsupported = Error::unsupported("hdf5-015", error.message()).at(at);
                match error.suggestion() {
                    Some(hint) => unsupported.hint(hint.clone()),
                    None => unsupported,
                }
            })?;
            return Ok(Content::Array { desc, opaque: None });
        }
        let element = self.datatype.element(at)?;
        if let (Class::Compound(members), true) = (&self.datatype.class, element.opaque.is_some())
            && let Some(table) = self.table(members)?
        {
            return Ok(Content::Table(table));
        }
        let opaque = element.opaque;
        Ok(Content::Array { desc: self.array(&element)?, opaque })
    }

    fn shape(&self, element: &Element) -> Result<Shape> {
        let dims = if self.space.null { vec![0] } else { self.space.dims.clone() };
        let shape = Shape::new([dims, element.dims.clone()].concat());
        let at = |e: Error| e.at(self.ctx.file_offset(self.header.address));
        shape.bytes(element.dtype.size()).map_err(at)?;
        Ok(shape)
    }

    fn array(&self, element: &Element) -> Result<ArrayDesc> {
        let shape = self.shape(element)?;
        let bytes = shape.bytes(element.dtype.size())?;
        let layout = self.layout(element, bytes)?;
        Ok(ArrayDesc::new(element.dtype, shape, layout))
    }

    /// The data layout message and its file offset.
    fn data_layout(&self) -> Result<(DataLayout, u64)> {
        let message = self.header.find(kind::LAYOUT);
        let missing = || self.ctx.malformed(self.header.address, "dataset without a data layout");
        let message = message.ok_or_else(missing)?;
        let at = self.ctx.file_offset(message.at);
        Ok((DataLayout::read(&mut self.ctx.fields(&message.body, message.at))?, at))
    }

    fn layout(&self, element: &Element, bytes: u64) -> Result<Layout> {
        if let Some(message) = self.header.find(kind::EXTERNAL) {
            return Err(self.external(message));
        }
        let (storage, at) = self.data_layout()?;
        match storage {
            DataLayout::Compact(mut data) => {
                if (data.len() as u64) < bytes {
                    let message =
                        format!("compact dataset: expected {bytes} bytes, found {}", data.len());
                    return Err(Error::malformed("hdf5-008", message).at(at));
                }
                data.truncate(bytes as usize);
                convert::to_little(element.dtype, &mut data);
                Ok(Layout::Inline(data.into(), Order::C))
            }
            DataLayout::Contiguous(Some(address)) if bytes > 0 => {
                Ok(Layout::Plain { extents: self.extents(address, bytes)?, order: Order::C })
            }
            DataLayout::Contiguous(_) if bytes == 0 => {
                Ok(Layout::Plain { extents: Extents::one(0, 0), order: Order::C })
            }
            DataLayout::Contiguous(_) => self.filled(element),
            DataLayout::Chunked(chunked) => {
                let mut pipeline = Vec::new();
                if let Some(message) = self.header.find(kind::FILTERS) {
                    let message = resolve_shared(self.ctx, message)?;
                    pipeline = filter_pipeline(&mut self.ctx.fields(&message.body, message.at))?;
                }
                let filters = Filters::new(&pipeline, chunked.element, at)?;
                let filtered = !pipeline.is_empty();
                let records = read_chunk_index(self.ctx, &chunked, &self.space, filtered)?;
                if chunked.element != u64::from(self.datatype.size) {
                    let message = format!(
                        "chunk elements have {} bytes, the datatype {}",
                        chunked.element, self.datatype.size
                    );
                    return Err(self.ctx.malformed(self.header.address, message));
                }
                if records.is_empty() || bytes == 0 {
                    return self.filled(element);
                }
                // In the byte order of the chunks.
                let fill = self.fill_element(element.dtype.size())?.into();
                let (ctx, space) = (self.ctx, &self.space);
                Ok(chunks::layout(ctx, element, &chunked, space, records, filters, fill))
            }
            DataLayout::Virtual => {
                let message = "virtual datasets are not supported";
                let error = Error::unsupported("hdf5-011", message).at(at);
                Err(error.hint("h5repack -l CONTI IN OUT copies the data into one file"))
            }
        }
    }

    /// The error for data in external files, with the name of the first file.
    fn external(&self, message: &Message) -> Error {
        let name = || -> Result<String> {
            let list = ExternalFiles::read(&mut self.ctx.fields(&message.body, message.at))?;
            let heap = LocalHeap::read(self.ctx, list.heap)?;
            heap.text(self.ctx, list.slots.first().map_or(0, |slot| slot.0))
        };
        let at = self.ctx.file_offset(message.at);
        match name() {
            Ok(name) => {
                let message = format!("data in the external file \"{name}\" are not supported");
                Error::unsupported("hdf5-013", message).at(at)
            }
            Err(error) => error,
        }
    }

    /// The layout of a dataset without allocated data.
    fn filled(&self, element: &Element) -> Result<Layout> {
        let mut value = self.fill_element(element.dtype.size())?;
        convert::to_little(element.dtype, &mut value);
        Ok(Layout::Fill(value.into()))
    }

    /// The fill value, or zeros, in `size` bytes.
    fn fill_element(&self, size: usize) -> Result<Vec<u8>> {
        self.ctx.charge(2 * size as u64)?;
        let defined = self.fill.as_ref().filter(|fill| fill.len() == size);
        Ok(defined.cloned().unwrap_or_else(|| vec![0; size]))
    }

    /// The range of `bytes` bytes at `address`. Fails with `Truncated` if the file is shorter.
    fn extents(&self, address: u64, bytes: u64) -> Result<Extents> {
        let at = self.ctx.file_offset(address);
        if at.checked_add(bytes).is_none_or(|end| end > self.ctx.source.len()) {
            let left = self.ctx.source.len().saturating_sub(at);
            let message =
                format!("data: unexpected end of file: expected {bytes} bytes, found {left}");
            return Err(Error::truncated("hdf5-003", message).at(at));
        }
        Ok(Extents::one(at, bytes))
    }

    /// The columns of a contiguous table of rank 0 or 1; `None` for other datasets.
    fn table(&self, members: &[Member]) -> Result<Option<Vec<Column>>> {
        let rows = match self.space.dims[..] {
            [] => None,
            [rows] => Some(rows),
            _ => return Ok(None),
        };
        let (DataLayout::Contiguous(Some(address)), _) = self.data_layout()? else {
            return Ok(None);
        };
        let (size, count) = (u64::from(self.datatype.size), rows.unwrap_or(1));
        if self.header.find(kind::EXTERNAL).is_some() || size == 0 || count == 0 || self.space.null
        {
            return Ok(None);
        }
        let too_large = || self.ctx.malformed(self.header.address, "table size exceeds 64 bits");
        let bytes = count.checked_mul(size).ok_or_else(too_large)?;
        self.extents(address, bytes)?;
        let mut columns = Vec::new();
        for member in members {
            self.ctx.charge(512 + member.name.len() as u64)?;
            let mut element = member.datatype.element(self.ctx.file_offset(self.header.address))?;
            if !element.dims.is_empty() {
                element = Element {
                    dtype: DType::opaque(member.datatype.size),
                    dims: Vec::new(),
                    opaque: element.opaque.or(Some("array member of a compound datatype")),
                };
            }
            let first = address + member.offset;
            let len = (count - 1) * size + u64::from(member.datatype.size);
            let extents = self.extents(first, len)?;
            let (shape, layout) = match rows {
                Some(rows) => {
                    (Shape::new([rows]), Layout::Rows { extents, stride: size, order: Order::C })
                }
                None => (Shape::scalar(), Layout::Plain { extents, order: Order::C }),
            };
            let desc = ArrayDesc::new(element.dtype, shape, layout);
            columns.push(Column { name: member.name.clone(), desc, opaque: element.opaque });
        }
        Ok(Some(columns))
    }

    /// Variable-length data. Strings become fixed strings of the longest length if they fit in a quarter
    /// of the budget; everything else is a ragged array of bytes. `size` is the size of an item in bytes.
    fn variable_length(&self, string: bool, size: u64, decoder: &Decoder<'_>) -> Result<ArrayDesc> {
        let ctx = self.ctx;
        let dtype = DType::opaque(self.datatype.size);
        let desc = self.array(&Element { dtype, dims: Vec::new(), opaque: None })?;
        let shape = desc.shape.clone();
        let count = desc.bytes()?.checked_div(dtype.size() as u64).unwrap_or(0);
        // The references, and the location and start of each element.
        let temporary = count.saturating_mul(size_of::<Option<(u64, u64)>>() as u64 + 40);
        ctx.allow(desc.bytes()?.saturating_add(temporary), "variable-length data")?;
        let references = spile_core::Dataset::new(ctx.source.clone(), Tree::new(&ctx.limits));
        let raw =
            references.open_array(&desc)?.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
        let mut locations = Vec::with_capacity(count as usize);
        for bytes in raw.chunks_exact(dtype.size().max(1)) {
            let mut fields = ctx.fields(bytes, self.header.address);
            locations.push(decoder.location(&mut fields, if string { 1 } else { size })?);
        }
        let longest = locations.iter().flatten().map(|(_, len)| *len).max().unwrap_or(0).max(1);
        let padded = longest.saturating_mul(count);
        let total: u64 = locations.iter().flatten().map(|(_, len)| *len).sum();
        let fits = padded <= ctx.limits.memory / 4 && u32::try_from(longest).is_ok();
        if string && fits {
            ctx.charge(padded.saturating_add(total))?;
            let mut bytes = vec![0; padded as usize];
            for (field, location) in bytes.chunks_exact_mut(longest as usize).zip(&locations) {
                if let Some((address, len)) = location {
                    let at = ctx.file_offset(*address);
                    ctx.source.read_exact_at(at, &mut field[..*len as usize])?;
                }
            }
            let layout = Layout::Inline(bytes.into(), Order::C);
            return Ok(ArrayDesc::new(DType::text(longest as u32), shape, layout));
        }
        ctx.charge(count.saturating_mul(40))?;
        let extent = |location: &Option<(u64, u64)>| {
            location.map_or(Extent { offset: 0, len: 0 }, |(address, len)| Extent {
                offset: ctx.file_offset(address),
                len,
            })
        };
        let data = Extents::several(locations.iter().map(extent).collect())?;
        let mut starts = Vec::with_capacity(locations.len() + 1);
        starts.push(0);
        let mut end = 0;
        for location in &locations {
            end += location.map_or(0, |(_, len)| len);
            starts.push(end);
        }
        let layout = Layout::Ragged { starts: Arc::from(starts), data };
        Ok(ArrayDesc::new(DType::opaque(1), Shape::new([count]), layout))
    }
}
