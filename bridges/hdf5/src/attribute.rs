//! Attributes (section IV.A.2.m) and values of any type in memory.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::tree::Value;

use crate::btree::SecondTree;
use crate::datatype::{Class, Type};
use crate::header::{Header, Message, kind, resolve, shared_address};
use crate::heap::{FractalHeap, GlobalHeaps};
use crate::space::Space;
use crate::wire::{Fields, Ground, text};

/// An attribute as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) space: Space,
    pub(crate) data: Vec<u8>,
    pub(crate) at: u64,
    order: u64,
}

/// All attributes of an object, and what is wrong with others.
pub(crate) fn attributes(ground: &Ground, header: &Header) -> Result<(Vec<Attribute>, Vec<Error>)> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    let mut keep = |read: Result<Attribute>| match read {
        Ok(attribute) => found.push(attribute),
        Err(error) => errors.push(error),
    };
    for message in header.all(kind::ATTRIBUTE) {
        if message.shared {
            let message = "an attribute that is kept in a heap of the file";
            keep(Err(Error::unsupported("hdf5-007", message).at(ground.place(header.address))));
        } else {
            keep(attribute(ground, &message.body, message.at, message.order));
        }
    }
    if let Some(message) = header.find(kind::ATTRIBUTE_INFO) {
        let mut fields = ground.fields(&message.body, message.at);
        fields.version(&[0], "information on attributes")?;
        if fields.u8()? & 1 != 0 {
            fields.u16()?;
        }
        if let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) {
            let heap = FractalHeap::open(ground, heap)?;
            SecondTree::open(ground, tree, "index of attributes")?.each(&mut |record, at| {
                // Identifier, flags, order (types 8 and 9).
                let mut fields = ground.fields(record, at);
                let id = fields.take(heap.id_len())?;
                let shared = fields.u8()? & 2 != 0;
                let order = u64::from(fields.u32()?);
                if !shared {
                    let (bytes, at) = heap.object(id)?;
                    keep(attribute(ground, &bytes, at, order));
                }
                Ok(())
            })?;
        }
    }
    found.sort_by_key(|attribute| attribute.order);
    Ok((found, errors))
}

fn attribute(ground: &Ground, bytes: &[u8], at: u64, order: u64) -> Result<Attribute> {
    let mut fields = ground.fields(bytes, at);
    let version = fields.version(&[1, 2, 3], "an attribute")?;
    let flags = fields.u8()?;
    let lens = [fields.u16()?, fields.u16()?, fields.u16()?];
    if version == 3 {
        fields.skip(1)?;
    }
    // As 16 bits the largest lengths have no next multiple.
    let [name_len, type_len, space_len] =
        lens.map(usize::from).map(|len| if version == 1 { len.next_multiple_of(8) } else { len });
    let name = fields.name(name_len)?;
    let place = |e: Error| e.in_object(format!("attribute \"{name}\""));
    let mut part = |len: usize| -> Result<(u64, Vec<u8>)> {
        let at = fields.wire.offset() - ground.base;
        Ok((at, fields.take(len)?.to_vec()))
    };
    let (type_at, kind_bytes) = part(type_len).map_err(place)?;
    let (space_at, space_bytes) = part(space_len).map_err(place)?;
    let kind = if version > 1 && flags & 1 != 0 {
        let target = shared_address(&mut ground.fields(&kind_bytes, type_at)).map_err(place)?;
        committed(ground, target).map_err(place)?
    } else {
        Type::read(&mut ground.fields(&kind_bytes, type_at)).map_err(place)?
    };
    let space = Space::read(&mut ground.fields(&space_bytes, space_at)).map_err(place)?;
    let at = fields.wire.offset() - ground.base;
    let data = fields.take(fields.wire.remaining())?.to_vec();
    ground.charge((data.len() + 128) as u64)?;
    Ok(Attribute { name, kind, space, data, at, order })
}

/// A type that is an object of its own.
fn committed(ground: &Ground, address: u64) -> Result<Type> {
    let header = Header::read(ground, address)?;
    let message = header.find(kind::TYPE).filter(|m| !m.shared);
    let message =
        message.ok_or_else(|| ground.broken(address, "no datatype where one should be"))?;
    Type::read(&mut ground.fields(&message.body, message.at))
}

/// The type that a message tells, or leads to.
pub(crate) fn type_of(ground: &Ground, message: &Message) -> Result<Type> {
    let message = resolve(ground, message)?;
    Type::read(&mut ground.fields(&message.body, message.at))
}

/// What decoding needs besides the bytes.
pub(crate) struct Decoder<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) heaps: &'a GlobalHeaps,
    /// The path of an object that is referred to.
    pub(crate) path: &'a dyn Fn(u64) -> Option<String>,
}

impl Decoder<'_> {
    /// The value of an attribute.
    pub(crate) fn attribute(&self, attribute: &Attribute) -> Result<Value> {
        if attribute.space.null {
            return Ok(Value::List(Vec::new()));
        }
        self.array(&attribute.space.dims, &attribute.kind, &attribute.data, attribute.at)
    }

    fn array(&self, dims: &[u64], kind: &Type, bytes: &[u8], at: u64) -> Result<Value> {
        let size = kind.size as usize;
        let count = dims.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
        let needed = count.and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_mul(size));
        if size == 0 || needed.is_none_or(|n| n > bytes.len()) {
            return Err(self.ground.broken(at, "a value with less bytes than it needs"));
        }
        let Some((first, rest)) = dims.split_first() else {
            return self.element(kind, &bytes[..size], at);
        };
        let step = needed.unwrap_or(0).checked_div(*first as usize).unwrap_or(0);
        let parts = bytes.chunks_exact(step.max(1)).take(*first as usize);
        self.ground.charge(first.saturating_mul(size_of::<Value>() as u64))?;
        let values = parts.map(|part| self.array(rest, kind, part, at));
        Ok(Value::List(values.collect::<Result<_>>()?))
    }

    fn element(&self, kind: &Type, bytes: &[u8], at: u64) -> Result<Value> {
        match &kind.class {
            Class::Text => Ok(Value::Text(text(bytes))),
            Class::Many { text: true, .. } => {
                let bytes = self.many(bytes, 1, at)?;
                Ok(Value::Text(text(&bytes)))
            }
            Class::Many { base, .. } => {
                let bytes = self.many(bytes, u64::from(base.size), at)?;
                let count = (bytes.len() as u64).checked_div(u64::from(base.size)).unwrap_or(0);
                self.array(&[count], base, &bytes, at)
            }
            Class::Reference(0) if kind.size as usize == self.ground.sizes.offset => {
                let address = self.ground.fields(bytes, at).uint(bytes.len())?;
                Ok(Value::Text((self.path)(address).unwrap_or_default()))
            }
            Class::Array { dims, base } => self.array(dims, base, bytes, at),
            Class::Compound(members) => {
                let element = kind.element(at)?;
                if element.bare.is_none() {
                    return Ok(value(element.dtype, bytes));
                }
                let values = members.iter().map(|member| {
                    let from = member.offset as usize;
                    let part = bytes.get(from..from + member.kind.size as usize);
                    self.element(&member.kind, part.unwrap_or_default(), at)
                });
                Ok(Value::List(values.collect::<Result<_>>()?))
            }
            _ => Ok(value(kind.element(at)?.dtype, bytes)),
        }
    }

    /// The bytes of an element that lies in a heap: `size` for each of its parts.
    pub(crate) fn many(&self, bytes: &[u8], size: u64, at: u64) -> Result<Vec<u8>> {
        let mut fields = self.ground.fields(bytes, at);
        match self.place(&mut fields, size)? {
            Some((address, len)) => self.ground.fetch(address, len, "global heap object"),
            None => Ok(Vec::new()),
        }
    }

    /// Where such an element lies, and how many bytes it has.
    pub(crate) fn place(&self, fields: &mut Fields<'_>, size: u64) -> Result<Option<(u64, u64)>> {
        let count = u64::from(fields.u32()?);
        let (address, index) = (fields.address()?, fields.u32()?);
        let address = address.filter(|a| *a != 0 && count > 0);
        let Some(address) = address else { return Ok(None) };
        let slot = self.heaps.slot(self.ground, address, index)?;
        let len = count.checked_mul(size).filter(|len| *len <= slot.len);
        let len = len.ok_or_else(|| {
            self.ground.broken(slot.address, format!("{count} elements are more than are there"))
        })?;
        Ok(Some((slot.address, len)))
    }
}

/// An element of one of our types as a value.
fn value(dtype: DType, bytes: &[u8]) -> Value {
    let mut little = bytes.to_vec();
    convert::to_little(dtype, &mut little);
    let half = dtype.size() / 2;
    let wide = |signed: bool| {
        let mut whole =
            [if signed && little.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 8];
        let n = little.len().min(8);
        whole[..n].copy_from_slice(&little[..n]);
        whole
    };
    match dtype.kind() {
        Kind::Int => Value::Int(i64::from_le_bytes(wide(true))),
        Kind::UInt => Value::UInt(u64::from_le_bytes(wide(false))),
        Kind::Bool => Value::Bool(little.iter().any(|b| *b != 0)),
        Kind::Float | Kind::X87 => Value::Float(convert::element_f64(
            dtype.with_order(spile_core::wire::ByteOrder::Little),
            &little,
        )),
        Kind::Complex | Kind::ComplexX87 => {
            let part = convert::part(dtype).with_order(spile_core::wire::ByteOrder::Little);
            let [re, im] = [0, half].map(|k| convert::element_f64(part, &little[k..k + half]));
            Value::Complex(re, im)
        }
        Kind::Text => Value::Text(text(&little)),
        Kind::Opaque => Value::Bytes(little),
    }
}
