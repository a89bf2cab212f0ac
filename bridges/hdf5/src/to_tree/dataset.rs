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
use spile_core::wire::ByteOrder;

use super::chunked::StoredChunks;
use super::decoder::Decoder;
use super::fields::Part;
use super::files::OtherFiles;
use super::{chunked, fields};
use crate::wire::Context;
use crate::wire::attribute::datatype_of;
use crate::wire::chunk_index::read_chunk_index;
use crate::wire::datatype::{Class, Datatype, Element};
use crate::wire::header::{Header, Message, kind, resolve_shared};
use crate::wire::heap::LocalHeap;
use crate::wire::mapping::{Mapping, mappings};
use crate::wire::messages::{DataLayout, Dataspace, ExternalFiles, fill_value, filter_pipeline};

/// What a dataset becomes in the tree. `opaque` names a datatype that is read as opaque bytes.
pub(crate) enum Content {
    Array {
        desc: ArrayDesc,
        opaque: Option<&'static str>,
    },
    /// Variable-length numbers: the items of all elements, and the number of items of each element.
    Items {
        values: ArrayDesc,
        sizes: ArrayDesc,
    },
    /// References to objects, to be replaced by the paths of the objects.
    References(ArrayDesc),
    /// A compound datatype: the content of each member.
    Members(Vec<(String, Result<Content>)>),
}

/// The messages of a dataset.
pub(crate) struct StoredDataset<'a> {
    ctx: &'a Context,
    header: &'a Header,
    datatype: Datatype,
    space: Dataspace,
    fill: Option<Vec<u8>>,
    files: &'a OtherFiles,
}

impl<'a> StoredDataset<'a> {
    /// Reads datatype, dataspace and fill value.
    pub(crate) fn read(
        ctx: &'a Context,
        header: &'a Header,
        files: &'a OtherFiles,
    ) -> Result<Self> {
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
        Ok(Self { ctx, header, datatype, space, fill, files })
    }

    /// Whether each dimension is unlimited.
    pub(crate) fn unlimited(&self) -> Vec<bool> {
        self.space.max_dims.iter().map(Option::is_none).collect()
    }

    /// Whether the elements have lengths of their own.
    pub(crate) fn is_variable_length(&self) -> bool {
        matches!(self.datatype.class, Class::VariableLength { .. })
    }

    /// Describes the dataset. Fails with `Unsupported` if its data cannot be decoded.
    pub(crate) fn content(&self, decoder: &Decoder<'_>) -> Result<Content> {
        self.part_content(&self.datatype, 0, decoder)
    }

    /// The content of the part with this datatype at byte `offset` of each element.
    fn part_content(
        &self,
        datatype: &Datatype,
        offset: u64,
        decoder: &Decoder<'_>,
    ) -> Result<Content> {
        let at = self.ctx.file_offset(self.header.address);
        let record = self.datatype.size as usize;
        let (offset, len) = (offset as usize, datatype.size as usize);
        let mut part = Part { record, offset, len, reduced: None };
        if let Class::VariableLength { string, base } = &datatype.class {
            let content = self.variable_length(part, *string, base, decoder);
            // Too large for the budget: the other datasets are still read.
            return content.map_err(|error| {
                if error.kind() != ErrorKind::Limit {
                    return error;
                }
                let unsupported = Error::unsupported("hdf5-015", error.message()).at(at);
                match error.suggestion() {
                    Some(hint) => unsupported.hint(hint.clone()),
                    None => unsupported,
                }
            });
        }
        let extended = datatype.reduced().and_then(|_| datatype.extended());
        if extended.is_some() {
            part.reduced = datatype.reduced();
        }
        let element = extended.as_ref().unwrap_or(datatype).element(at)?;
        match &datatype.class {
            Class::Compound(members) if element.opaque.is_some() && record > 0 => {
                let mut contents = Vec::new();
                for member in members {
                    self.ctx.charge(512 + member.name.len() as u64)?;
                    let inner = (part.offset as u64).saturating_add(member.offset);
                    let content = self.part_content(&member.datatype, inner, decoder);
                    contents.push((member.name.clone(), content));
                }
                Ok(Content::Members(contents))
            }
            Class::Reference(0 | 1) => Ok(Content::References(self.array(&element, part)?)),
            _ => Ok(Content::Array { desc: self.array(&element, part)?, opaque: element.opaque }),
        }
    }

    fn shape(&self, element: &Element) -> Result<Shape> {
        let dims = if self.space.null { vec![0] } else { self.space.dims.clone() };
        let shape = Shape::new([dims, element.dims.clone()].concat());
        let at = |e: Error| e.at(self.ctx.file_offset(self.header.address));
        shape.bytes(element.dtype.size()).map_err(at)?;
        Ok(shape)
    }

    fn array(&self, element: &Element, part: Part) -> Result<ArrayDesc> {
        let shape = self.shape(element)?;
        let bytes = shape.bytes(element.dtype.size())?;
        let layout = self.layout(element, part, bytes)?;
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

    fn layout(&self, element: &Element, part: Part, bytes: u64) -> Result<Layout> {
        if let Some(message) = self.header.find(kind::EXTERNAL) {
            return self.external(message, part, bytes);
        }
        let (storage, at) = self.data_layout()?;
        match storage {
            DataLayout::Compact(mut data) => {
                let stored = (bytes / part.len.max(1) as u64).saturating_mul(part.record as u64);
                if (data.len() as u64) < stored {
                    let message =
                        format!("compact dataset: expected {stored} bytes, found {}", data.len());
                    return Err(Error::malformed("hdf5-008", message).at(at));
                }
                data.truncate(stored as usize);
                if !part.is_whole() {
                    self.ctx.charge(bytes)?;
                    let mut own = vec![0; bytes as usize];
                    part.copy(&data, &mut own);
                    data = own;
                }
                convert::to_little(element.dtype, &mut data);
                Ok(Layout::Inline(data.into(), Order::C))
            }
            DataLayout::Contiguous(Some(address)) if bytes > 0 && !part.is_whole() => {
                let stored = Shape::new(&self.space.dims[..]).bytes(part.record)?;
                self.extents(address, stored)?;
                let offset = self.ctx.file_offset(address);
                fields::contiguous(offset, &self.space.dims, element, part)
            }
            DataLayout::Contiguous(Some(address)) if bytes > 0 => {
                Ok(Layout::Plain { extents: self.extents(address, bytes)?, order: Order::C })
            }
            DataLayout::Contiguous(_) if bytes == 0 => {
                Ok(Layout::Plain { extents: Extents::one(0, 0), order: Order::C })
            }
            DataLayout::Contiguous(_) => self.filled(element, part),
            DataLayout::Chunked(storage) => {
                let mut filters = Vec::new();
                if let Some(message) = self.header.find(kind::FILTERS) {
                    let message = resolve_shared(self.ctx, message)?;
                    filters = filter_pipeline(&mut self.ctx.fields(&message.body, message.at))?;
                }
                let pipeline = chunked::pipeline(&filters, storage.element, at)?;
                let filtered = !filters.is_empty();
                let records = read_chunk_index(self.ctx, &storage, &self.space, filtered)?;
                if storage.element != u64::from(self.datatype.size) {
                    let message = format!(
                        "chunk elements have {} bytes, the datatype {}",
                        storage.element, self.datatype.size
                    );
                    return Err(self.ctx.malformed(self.header.address, message));
                }
                if records.is_empty() || bytes == 0 {
                    return self.filled(element, part);
                }
                let chunk = Shape::new(&storage.dims[..]).bytes(part.record)?;
                if !part.is_whole() {
                    self.ctx.allow(chunk, "a chunk")?;
                }
                // In the byte order of the chunks.
                let fill = self.fill_element(element, part)?.into();
                let stored = StoredChunks { records, pipeline, fill };
                Ok(chunked::layout(self.ctx, element, &storage, &self.space, stored, part))
            }
            DataLayout::Virtual(..) => {
                let message = "a virtual dataset of this datatype is not supported";
                Err(Error::unsupported("hdf5-011", message).at(at))
            }
        }
    }

    /// Description with the fill value as layout, and mappings, of a virtual dataset of numbers or fixed-length strings;
    /// `None` for other datasets.
    pub(crate) fn virtual_dataset(
        &self,
        decoder: &Decoder<'_>,
    ) -> Result<Option<(ArrayDesc, Vec<Mapping>)>> {
        let (DataLayout::Virtual(heap, index), at) = self.data_layout()? else { return Ok(None) };
        let element = self.datatype.element(at)?;
        let refused = matches!(
            self.datatype.class,
            Class::VariableLength { .. } | Class::Reference(_) | Class::Array { .. }
        );
        if refused || element.opaque.is_some() || self.datatype.reduced().is_some() {
            return Ok(None);
        }
        let (record, offset, len) = (self.datatype.size as usize, 0, self.datatype.size as usize);
        let part = Part { record, offset, len, reduced: None };
        let mut fill = self.fill_element(&element, part)?;
        convert::to_little(element.dtype, &mut fill);
        let dtype = element.dtype.with_order(ByteOrder::Little);
        let desc = ArrayDesc::new(dtype, self.shape(&element)?, Layout::Fill(fill.into()));
        let mut list = Vec::new();
        if let Some(heap) = heap {
            let object = decoder.heaps.object(self.ctx, heap, index)?;
            let bytes = self.ctx.read(object.address, object.len, "virtual dataset mappings")?;
            list = mappings(self.ctx, &bytes, object.address)?;
        }
        Ok(Some((desc, list)))
    }

    /// The layout of data in external files.
    fn external(&self, message: &Message, part: Part, bytes: u64) -> Result<Layout> {
        let at = self.ctx.file_offset(message.at);
        let refused = |message: String| Error::unsupported("hdf5-013", message).at(at);
        if !part.is_whole() {
            return Err(refused("compound data in external files are not supported".into()));
        }
        let list = ExternalFiles::read(&mut self.ctx.fields(&message.body, message.at))?;
        let heap = LocalHeap::read(self.ctx, list.heap)?;
        self.ctx.charge(list.slots.len() as u64 * 64)?;
        let (mut parts, mut rest) = (Vec::new(), bytes);
        for (name, offset, len) in &list.slots {
            if rest == 0 {
                break;
            }
            let name = heap.text(self.ctx, *name)?;
            let source = &self.ctx.source;
            let path = OtherFiles::find(source, &name, "hdf5-013")?;
            let missing = || refused(format!("external file \"{name}\" does not exist"));
            let (start, length) = self.files.add(source, &path.ok_or_else(missing)?)?;
            let own = rest.min(*len);
            if offset.checked_add(own).is_none_or(|end| end > length) {
                let message = format!(
                    "external file \"{name}\": expected {own} bytes at byte {offset}, the file has {length}"
                );
                return Err(refused(message));
            }
            parts.push(Extent { offset: start + offset, len: own });
            rest -= own;
        }
        if rest > 0 {
            return Err(refused(format!("data in external files: {rest} bytes are missing")));
        }
        Ok(Layout::Plain { extents: Extents::several(parts)?, order: Order::C })
    }

    /// The layout of a dataset without allocated data.
    fn filled(&self, element: &Element, part: Part) -> Result<Layout> {
        let mut value = self.fill_element(element, part)?;
        convert::to_little(element.dtype, &mut value);
        Ok(Layout::Fill(value.into()))
    }

    /// The part of the fill value, or zeros, as an element. Fails if the items of an array datatype have different
    /// fill values.
    fn fill_element(&self, element: &Element, part: Part) -> Result<Vec<u8>> {
        let size = element.dtype.size();
        self.ctx.charge(2 * part.len as u64)?;
        let Some(fill) = self.fill.as_ref().filter(|fill| fill.len() == part.record) else {
            return Ok(vec![0; size]);
        };
        let mut own = vec![0; part.len];
        part.copy(fill, &mut own);
        let mut items = own.chunks_exact(size.max(1));
        let first = items.next().unwrap_or_default();
        if items.any(|item| item != first) {
            let message = "array datatype with different fill values";
            return Err(Error::unsupported("hdf5-025", message)
                .at(self.ctx.file_offset(self.header.address)));
        }
        let mut first = first.to_vec();
        first.resize(size, 0);
        Ok(first)
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

    /// Variable-length data. Strings become fixed strings of the longest length if they fit in a quarter
    /// of the budget. Numbers are their items and the number of items per element. Everything else is a ragged array
    /// of bytes.
    fn variable_length(
        &self,
        part: Part,
        string: bool,
        base: &Datatype,
        decoder: &Decoder<'_>,
    ) -> Result<Content> {
        let ctx = self.ctx;
        let at = ctx.file_offset(self.header.address);
        let size = u64::from(base.size);
        if !string && matches!(base.class, Class::VariableLength { .. } | Class::Reference(_)) {
            let message =
                "variable-length data of variable-length data or references are not supported";
            return Err(Error::unsupported("hdf5-026", message).at(at));
        }
        let dtype = DType::opaque(part.len as u32);
        let desc = self.array(&Element { dtype, dims: Vec::new(), opaque: None }, part)?;
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
            let desc = ArrayDesc::new(DType::text(longest as u32), shape, layout);
            return Ok(Content::Array { desc, opaque: None });
        }
        ctx.charge(count.saturating_mul(40))?;
        let extent = |location: &Option<(u64, u64)>| {
            location.map_or(Extent { offset: 0, len: 0 }, |(address, len)| Extent {
                offset: ctx.file_offset(address),
                len,
            })
        };
        let data = Extents::several(locations.iter().map(extent).collect())?;
        let element = base.element(at)?;
        if !string && element.opaque.is_none() && size > 0 {
            let lens = locations.iter().map(|l| l.map_or(0, |(_, len)| len / size));
            let sizes: Vec<u8> = lens.flat_map(u64::to_le_bytes).collect();
            let sizes = Layout::Inline(sizes.into(), Order::C);
            let items = Shape::new([&[total / size], &element.dims[..]].concat());
            let values = Layout::Plain { extents: data, order: Order::C };
            return Ok(Content::Items {
                values: ArrayDesc::new(element.dtype, items, values),
                sizes: ArrayDesc::new(DType::U64, shape, sizes),
            });
        }
        let mut starts = Vec::with_capacity(locations.len() + 1);
        starts.push(0);
        let mut end = 0;
        for location in &locations {
            end += location.map_or(0, |(_, len)| len);
            starts.push(end);
        }
        let layout = Layout::Ragged { starts: Arc::from(starts), data };
        let desc = ArrayDesc::new(DType::opaque(1), Shape::new([count]), layout);
        Ok(Content::Array { desc, opaque: (!string).then_some("variable-length data") })
    }
}
