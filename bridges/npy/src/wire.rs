//! The header: a magic string, a length, and a Python dictionary written as text.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// No writer makes a longer dictionary for the simple types that are read here.
const LONGEST: u64 = 1 << 20;

pub(crate) struct Header {
    pub(crate) version: (u8, u8),
    pub(crate) dictionary_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) descr: String,
    pub(crate) dtype: DType,
    pub(crate) order: Order,
    pub(crate) shape: Shape,
}

impl Header {
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let opening = fetch(source, 0, 12)?;
        if !opening.starts_with(&MAGIC[..MAGIC.len().min(opening.len())]) || opening.is_empty() {
            let message = "a .npy file begins with \\x93NUMPY";
            return Err(Error::not_this_format("npy-001", message).at(0));
        }
        let mut wire = Wire::new(&opening, 0, ByteOrder::Little, "npy-002");
        wire.skip(MAGIC.len())?;
        let version = (wire.u8()?, wire.u8()?);
        let length = match version.0 {
            1 => u64::from(wire.u16()?),
            2 | 3 => u64::from(wire.u32()?),
            other => {
                let message = format!("version {other} is newer than 3");
                return Err(Error::unsupported("npy-003", message).at(6));
            }
        };
        let dictionary_offset = wire.offset();
        if length > LONGEST {
            let message = format!("a header of {length} bytes is not a plain array's");
            return Err(Error::malformed("npy-002", message).at(8));
        }
        let text = fetch(source, dictionary_offset, limits.allow(length, "the header")?)?;
        if (text.len() as u64) < length {
            let message = format!("the header has {} of {length} bytes", text.len());
            return Err(Error::truncated("npy-002", message).at(dictionary_offset));
        }
        let data_offset = dictionary_offset + length;
        let bad = |what: &str| {
            Error::malformed("npy-004", format!("the header has no usable {what}"))
                .at(dictionary_offset)
        };
        let text = String::from_utf8_lossy(&text);
        let descr = entry(&text, "descr").and_then(quoted).ok_or_else(|| {
            if entry(&text, "descr").is_some_and(|d| d.starts_with('[')) {
                return Error::unsupported("npy-006", "records of several fields are not read")
                    .at(dictionary_offset);
            }
            bad("descr")
        })?;
        let dtype = DType::from_numpy(&descr).ok_or_else(|| {
            Error::unsupported("npy-006", format!("elements of type {descr} are not read"))
                .at(dictionary_offset)
        })?;
        let order = match entry(&text, "fortran_order") {
            Some(rest) if rest.starts_with("True") => Order::F,
            Some(rest) if rest.starts_with("False") => Order::C,
            _ => return Err(bad("fortran_order")),
        };
        let shape = entry(&text, "shape").and_then(tuple).ok_or_else(|| bad("shape"))?;
        let bytes = shape.bytes(dtype.size()).map_err(|_| bad("shape (no file is that large)"))?;
        if data_offset.checked_add(bytes).is_none_or(|end| end > source.len()) {
            let left = source.len().saturating_sub(data_offset);
            let message = format!("the {shape} array needs {bytes} bytes, {left} are there");
            return Err(crate::cut(data_offset, message));
        }
        Ok(Self { version, dictionary_offset, data_offset, descr, dtype, order, shape })
    }
}

/// What follows `'key':` in the dictionary.
fn entry<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = text.find(&format!("'{key}'")).or_else(|| text.find(&format!("\"{key}\"")))?;
    let rest = text[at + key.len() + 2..].trim_start();
    Some(rest.strip_prefix(':')?.trim_start())
}

fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    Some(text[1..].split_once(quote)?.0.to_string())
}

fn tuple(text: &str) -> Option<Shape> {
    let inner = text.strip_prefix('(')?.split_once(')')?.0;
    let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    // Python 2 wrote long integers with an L.
    let lengths = parts.map(|part| part.trim_end_matches('L').parse().ok());
    lengths.collect::<Option<Vec<u64>>>().map(Shape::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_read_as_numpy_writes_them() {
        let text = "{'descr': '>f8', 'fortran_order': True, 'shape': (3L, 4L), }   \n";
        assert_eq!(entry(text, "descr").and_then(quoted).as_deref(), Some(">f8"));
        assert_eq!(entry(text, "shape").and_then(tuple), Some(Shape::new([3, 4])));
        assert_eq!(tuple("()"), Some(Shape::scalar()));
        assert_eq!(tuple("(5,)"), Some(Shape::new([5])));
        assert_eq!(tuple("(-5,)"), None);
        assert_eq!(tuple("(99999999999999999999,)"), None);
    }
}
