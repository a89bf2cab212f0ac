//! A dataset's header as a description of an array.

use std::sync::Arc;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::tree::Tree;

use crate::attribute::{Decoder, type_of};
use crate::chunked;
use crate::chunks::pieces;
use crate::codec::Filters;
use crate::datatype::{Class, Element, Member, Type};
use crate::header::{Header, Message, kind, resolve};
use crate::space::{External, Space, Storage, fill, filters, unsupported};
use crate::wire::Ground;

/// What a dataset is to the tree.
pub(crate) enum Found {
    /// An array, and what of its type is lost.
    Array { desc: ArrayDesc, bare: Option<&'static str> },
    /// A table: an array for each of its fields.
    Table(Vec<(String, ArrayDesc)>),
}

/// The messages of a dataset.
pub(crate) struct Dataset<'a> {
    ground: &'a Ground,
    header: &'a Header,
    pub(crate) kind: Type,
    space: Space,
    fill: Option<Vec<u8>>,
}

impl<'a> Dataset<'a> {
    pub(crate) fn read(ground: &'a Ground, header: &'a Header) -> Result<Self> {
        let needed = |kind: u16, what: &str| -> Result<&'a Message> {
            let missing = || ground.broken(header.address, format!("a dataset without {what}"));
            header.find(kind).ok_or_else(missing)
        };
        let kind = type_of(ground, needed(kind::TYPE, "a datatype")?)?;
        let space = resolve(ground, needed(kind::SPACE, "a dataspace")?)?;
        let space = Space::read(&mut ground.fields(&space.body, space.at))?;
        let mut value = None;
        for (number, old) in [(kind::FILL, false), (kind::OLD_FILL, true)] {
            if let (Some(message), None) = (header.find(number), &value) {
                let message = resolve(ground, message)?;
                value = fill(&mut ground.fields(&message.body, message.at), old)?;
            }
        }
        Ok(Self { ground, header, kind, space, fill: value })
    }

    /// Its array, or its table.
    pub(crate) fn describe(&self, decoder: &Decoder<'_>) -> Result<Found> {
        let at = self.ground.place(self.header.address);
        if let Class::Many { text, base } = &self.kind.class {
            let desc = self.many(*text, u64::from(base.size), decoder)?;
            return Ok(Found::Array { desc, bare: None });
        }
        let element = self.kind.element(at)?;
        if let (Class::Compound(members), true) = (&self.kind.class, element.bare.is_some())
            && let Some(table) = self.table(members)?
        {
            return Ok(Found::Table(table));
        }
        let bare = element.bare;
        Ok(Found::Array { desc: self.array(&element)?, bare })
    }

    fn shape(&self, element: &Element) -> Result<Shape> {
        let dims = if self.space.null { vec![0] } else { self.space.dims.clone() };
        let shape = Shape::new([dims, element.dims.clone()].concat());
        let place = |e: Error| e.at(self.ground.place(self.header.address));
        shape.bytes(element.dtype.size()).map_err(place)?;
        Ok(shape)
    }

    fn array(&self, element: &Element) -> Result<ArrayDesc> {
        let shape = self.shape(element)?;
        let bytes = shape.bytes(element.dtype.size())?;
        let layout = self.layout(element, bytes)?;
        Ok(ArrayDesc::new(element.dtype, shape, layout))
    }

    fn storage(&self) -> Result<(Storage, u64)> {
        let message = self.header.find(kind::LAYOUT);
        let missing = || self.ground.broken(self.header.address, "a dataset without a layout");
        let message = message.ok_or_else(missing)?;
        let at = self.ground.place(message.at);
        Ok((Storage::read(&mut self.ground.fields(&message.body, message.at))?, at))
    }

    fn layout(&self, element: &Element, bytes: u64) -> Result<Layout> {
        if let Some(message) = self.header.find(kind::EXTERNAL) {
            return Err(self.elsewhere(message));
        }
        let (storage, at) = self.storage()?;
        match storage {
            Storage::Compact(mut data) => {
                if (data.len() as u64) < bytes {
                    let message = format!("{} bytes of data, {bytes} are needed", data.len());
                    return Err(Error::malformed("hdf5-008", message).at(at));
                }
                data.truncate(bytes as usize);
                convert::to_little(element.dtype, &mut data);
                Ok(Layout::Inline(data.into(), Order::C))
            }
            Storage::Contiguous(Some(address)) if bytes > 0 => {
                Ok(Layout::Plain { extents: self.one(address, bytes)?, order: Order::C })
            }
            Storage::Contiguous(_) if bytes == 0 => {
                Ok(Layout::Plain { extents: Extents::one(0, 0), order: Order::C })
            }
            Storage::Contiguous(_) => Ok(self.filled(element)),
            Storage::Chunked(chunking) => {
                let mut steps = Vec::new();
                if let Some(message) = self.header.find(kind::FILTERS) {
                    let message = resolve(self.ground, message)?;
                    steps = filters(&mut self.ground.fields(&message.body, message.at))?;
                }
                let decode = Filters::new(&steps, chunking.element, at)?;
                let list = pieces(self.ground, &chunking, &self.space, !steps.is_empty())?;
                if chunking.element != u64::from(self.kind.size) {
                    return Err(self
                        .ground
                        .broken(self.header.address, "chunks of other elements"));
                }
                if list.is_empty() || bytes == 0 {
                    return Ok(self.filled(element));
                }
                // In the byte order of the chunks.
                let fill = self.fill_value(element.dtype.size()).into();
                let (ground, space) = (self.ground, &self.space);
                Ok(chunked::layout(ground, element, &chunking, space, list, decode, fill))
            }
            Storage::Virtual => Err(unsupported(at, "a virtual dataset, made of others")
                .hint("h5repack makes a file that has the data itself")),
        }
    }

    /// The data are in other files.
    fn elsewhere(&self, message: &Message) -> Error {
        let name = || -> Result<String> {
            let list = External::read(&mut self.ground.fields(&message.body, message.at))?;
            let heap = crate::heap::LocalHeap::read(self.ground, list.heap)?;
            let place = list.slots.first().map_or(0, |slot| slot.0);
            heap.text(self.ground, place)
        };
        match name() {
            Ok(name) => {
                let at = self.ground.place(message.at);
                Error::unsupported("hdf5-013", format!("its data lie in the file \"{name}\""))
                    .at(at)
            }
            Err(error) => error,
        }
    }

    /// Elements that were never written.
    fn filled(&self, element: &Element) -> Layout {
        let mut value = self.fill_value(element.dtype.size());
        convert::to_little(element.dtype, &mut value);
        Layout::Fill(value.into())
    }

    fn fill_value(&self, size: usize) -> Vec<u8> {
        let given = self.fill.as_ref().filter(|fill| fill.len() == size);
        given.cloned().unwrap_or_else(|| vec![0; size])
    }

    /// Bytes at an address, if the file has them.
    fn one(&self, address: u64, bytes: u64) -> Result<Extents> {
        let at = self.ground.place(address);
        if at.checked_add(bytes).is_none_or(|end| end > self.ground.source.len()) {
            let left = self.ground.source.len().saturating_sub(at);
            let message = format!("the data need {bytes} bytes, {left} are there");
            return Err(Error::truncated("hdf5-003", message).at(at));
        }
        Ok(Extents::one(at, bytes))
    }

    /// The fields of a table that lies in one place, a row after the other.
    fn table(&self, members: &[Member]) -> Result<Option<Vec<(String, ArrayDesc)>>> {
        let rows = match self.space.dims[..] {
            [] => None,
            [rows] => Some(rows),
            _ => return Ok(None),
        };
        let (Storage::Contiguous(Some(address)), _) = self.storage()? else { return Ok(None) };
        let (size, count) = (u64::from(self.kind.size), rows.unwrap_or(1));
        if self.header.find(kind::EXTERNAL).is_some() || size == 0 || count == 0 || self.space.null
        {
            return Ok(None);
        }
        let broken = || self.ground.broken(self.header.address, "a table larger than any file");
        let bytes = count.checked_mul(size).ok_or_else(broken)?;
        self.one(address, bytes)?;
        let mut columns = Vec::new();
        for member in members {
            let mut element = member.kind.element(self.ground.place(self.header.address))?;
            if !element.dims.is_empty() {
                element =
                    Element { dtype: DType::opaque(member.kind.size), dims: Vec::new(), ..element };
            }
            let first = address + member.offset;
            let len = (count - 1) * size + u64::from(member.kind.size);
            let extents = self.one(first, len)?;
            let (shape, layout) = match rows {
                Some(rows) => {
                    (Shape::new([rows]), Layout::Rows { extents, stride: size, order: Order::C })
                }
                None => (Shape::scalar(), Layout::Plain { extents, order: Order::C }),
            };
            self.ground.charge(256)?;
            columns.push((member.name.clone(), ArrayDesc::new(element.dtype, shape, layout)));
        }
        Ok(Some(columns))
    }

    /// Elements of different lengths: texts as fields that hold the longest, others as bytes.
    fn many(&self, text: bool, size: u64, decoder: &Decoder<'_>) -> Result<ArrayDesc> {
        let ground = self.ground;
        let element =
            Element { dtype: DType::opaque(self.kind.size), dims: Vec::new(), bare: None };
        let desc = self.array(&element)?;
        let shape = desc.shape.clone();
        ground.charge(desc.bytes()?.saturating_mul(2))?;
        let empty = Tree::new(&ground.limits);
        let array = Array::open(&ground.source, &empty, &desc, &ground.limits)?;
        let raw = array.read(&Selection::all(), Axes::Order(Order::C))?;
        let mut places = Vec::new();
        let at = self.header.address;
        for bytes in raw.chunks_exact(element.dtype.size().max(1)) {
            places.push(decoder.place(&mut ground.fields(bytes, at), if text { 1 } else { size })?);
        }
        let longest = places.iter().flatten().map(|(_, len)| *len).max().unwrap_or(0).max(1);
        let count = places.len() as u64;
        let whole = longest.saturating_mul(count);
        let total: u64 = places.iter().flatten().map(|(_, len)| *len).sum();
        let fits = whole <= ground.limits.memory / 4 && u32::try_from(longest).is_ok();
        if text && fits {
            ground.charge(whole.saturating_add(total))?;
            let mut bytes = vec![0; whole as usize];
            for (field, place) in bytes.chunks_exact_mut(longest as usize).zip(&places) {
                if let Some((address, len)) = place {
                    let at = ground.place(*address);
                    ground.source.read_exact_at(at, &mut field[..*len as usize])?;
                }
            }
            let layout = Layout::Inline(bytes.into(), Order::C);
            return Ok(ArrayDesc::new(DType::text(longest as u32), shape, layout));
        }
        let parts = places.iter().map(|place| {
            place.map_or(Extent { offset: 0, len: 0 }, |(address, len)| Extent {
                offset: ground.place(address),
                len,
            })
        });
        let data = Extents::several(parts.collect())?;
        let mut starts = vec![0];
        for place in &places {
            let before = starts.last().copied().unwrap_or(0);
            starts.push(before + place.map_or(0, |(_, len)| len));
        }
        let layout = Layout::Ragged { starts: Arc::from(starts), data };
        Ok(ArrayDesc::new(DType::opaque(1), Shape::new([count]), layout))
    }
}
