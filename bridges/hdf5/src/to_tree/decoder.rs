//! Values of attributes.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::tree::Value;
use spile_core::wire::ByteOrder;

use crate::wire::attribute::Attribute;
use crate::wire::datatype::{Class, Datatype};
use crate::wire::heap::GlobalHeaps;
use crate::wire::{Context, Fields, text};

/// Size of a value in memory, in bytes.
const VALUE: u64 = size_of::<Value>() as u64;

/// Decodes values of any datatype.
pub(crate) struct Decoder<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) heaps: &'a GlobalHeaps,
    /// The path of the object at an address, for references.
    pub(crate) path: &'a dyn Fn(u64) -> Option<String>,
}

impl Decoder<'_> {
    /// The value of an attribute; an empty list for a null dataspace.
    pub(crate) fn attribute(&self, attribute: &Attribute) -> Result<Value> {
        if attribute.space.null {
            return Ok(Value::List(Vec::new()));
        }
        self.array(&attribute.space.dims, &attribute.datatype, &attribute.data, attribute.at)
    }

    fn array(&self, dims: &[u64], datatype: &Datatype, bytes: &[u8], at: u64) -> Result<Value> {
        let size = datatype.size as usize;
        let count = dims.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
        let total = count.and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_mul(size));
        if size == 0 || total.is_none_or(|n| n > bytes.len()) {
            return Err(self.ctx.malformed(at, "value is shorter than its dataspace and datatype"));
        }
        let Some((first, rest)) = dims.split_first() else {
            return self.element(datatype, &bytes[..size], at);
        };
        let step = total.unwrap_or(0).checked_div(*first as usize).unwrap_or(0);
        let parts = bytes.chunks_exact(step.max(1)).take(*first as usize);
        self.ctx.charge(first.saturating_mul(VALUE))?;
        let values = parts.map(|part| self.array(rest, datatype, part, at));
        Ok(Value::List(values.collect::<Result<_>>()?))
    }

    fn element(&self, datatype: &Datatype, bytes: &[u8], at: u64) -> Result<Value> {
        match &datatype.class {
            Class::String => Ok(Value::Text(text(bytes))),
            Class::VariableLength { string: true, .. } => {
                let bytes = self.variable_length(bytes, 1, at)?;
                Ok(Value::Text(text(&bytes)))
            }
            Class::VariableLength { base, .. } => {
                let bytes = self.variable_length(bytes, u64::from(base.size), at)?;
                let count = (bytes.len() as u64).checked_div(u64::from(base.size)).unwrap_or(0);
                self.array(&[count], base, &bytes, at)
            }
            Class::Reference(0) if datatype.size as usize == self.ctx.sizes.offset => {
                let address = self.ctx.fields(bytes, at).uint(bytes.len())?;
                let path = (self.path)(address).unwrap_or_default();
                self.ctx.charge(path.len() as u64)?;
                Ok(Value::Text(path))
            }
            Class::Array { dims, base } => self.array(dims, base, bytes, at),
            Class::Compound(members) => {
                let element = datatype.element(at)?;
                if element.opaque.is_none() {
                    return Ok(scalar(element.dtype, bytes));
                }
                // Members may overlap, so their number is not bounded by the bytes.
                self.ctx.charge(members.len() as u64 * VALUE)?;
                let values = members.iter().map(|member| {
                    let from = member.offset as usize;
                    let part = bytes.get(from..from + member.datatype.size as usize);
                    self.element(&member.datatype, part.unwrap_or_default(), at)
                });
                Ok(Value::List(values.collect::<Result<_>>()?))
            }
            _ => Ok(scalar(datatype.element(at)?.dtype, bytes)),
        }
    }

    /// The bytes of a variable-length element with items of `size` bytes.
    pub(crate) fn variable_length(&self, bytes: &[u8], size: u64, at: u64) -> Result<Vec<u8>> {
        let mut fields = self.ctx.fields(bytes, at);
        match self.location(&mut fields, size)? {
            Some((address, len)) => self.ctx.read(address, len, "global heap object"),
            None => Ok(Vec::new()),
        }
    }

    /// Address and length in bytes of a variable-length element with items of `size` bytes; `None` if it
    /// is empty.
    pub(crate) fn location(
        &self,
        fields: &mut Fields<'_>,
        size: u64,
    ) -> Result<Option<(u64, u64)>> {
        let count = u64::from(fields.u32()?);
        let (address, index) = (fields.address()?, fields.u32()?);
        let address = address.filter(|a| *a != 0 && count > 0);
        let Some(address) = address else { return Ok(None) };
        let object = self.heaps.object(self.ctx, address, index)?;
        let len = count.checked_mul(size).filter(|len| *len <= object.len);
        let len = len.ok_or_else(|| {
            let message = format!(
                "variable-length element: expected {count} items of {size} bytes, found {} bytes",
                object.len
            );
            self.ctx.malformed(object.address, message)
        })?;
        Ok(Some((object.address, len)))
    }
}

/// One element as a value.
fn scalar(dtype: DType, bytes: &[u8]) -> Value {
    let mut little = bytes.to_vec();
    convert::to_little(dtype, &mut little);
    let half = dtype.size() / 2;
    let extended = |signed: bool| {
        let negative = signed && little.last().is_some_and(|b| b & 0x80 != 0);
        let mut bytes = [if negative { 0xff } else { 0 }; 8];
        let n = little.len().min(8);
        bytes[..n].copy_from_slice(&little[..n]);
        bytes
    };
    match dtype.kind() {
        Kind::Int => Value::Int(i64::from_le_bytes(extended(true))),
        Kind::UInt => Value::UInt(u64::from_le_bytes(extended(false))),
        Kind::Bool => Value::Bool(little.iter().any(|b| *b != 0)),
        Kind::Float | Kind::X87 => {
            Value::Float(convert::element_f64(dtype.with_order(ByteOrder::Little), &little))
        }
        Kind::Complex | Kind::ComplexX87 => {
            let part = convert::part(dtype).with_order(ByteOrder::Little);
            let [re, im] = [0, half].map(|k| convert::element_f64(part, &little[k..k + half]));
            Value::Complex(re, im)
        }
        Kind::Text => Value::Text(text(&little)),
        Kind::Opaque => Value::Bytes(little),
    }
}
