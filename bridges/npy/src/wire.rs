//! The header: a magic string, a length, and a Python dictionary written as text.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::wire::{ByteOrder, Wire};

use crate::place::Place;
use crate::record::{self, Field};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// No writer makes a longer dictionary for the types that are read here.
const LONGEST: u64 = 1 << 20;

/// Offsets count from the magic, which may stand in an archive.
pub(crate) struct Header {
    pub(crate) version: (u8, u8),
    pub(crate) dictionary_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) descr: String,
    pub(crate) element: Element,
    pub(crate) order: Order,
    pub(crate) shape: Shape,
}

/// What an element is.
pub(crate) enum Element {
    /// A number, a text, bytes.
    One(DType),
    /// Text of 32-bit characters, so many, in this order.
    Letters(u32, ByteOrder),
    /// Moments or spans of time: whole numbers of these units.
    Time(DType, String),
    /// Several of them under names.
    Record(Vec<Field>, usize),
}

impl Element {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::One(dtype) | Self::Time(dtype, _) => dtype.size(),
            Self::Letters(count, _) => 4 * *count as usize,
            Self::Record(_, size) => *size,
        }
    }
}

impl Element {
    fn parse(descr: &str) -> Option<Self> {
        if let Some(dtype) = DType::from_numpy(descr) {
            return Some(Self::One(dtype));
        }
        let order = if descr.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
        let rest = descr.strip_prefix(['<', '>', '='])?;
        if let Some(count) = rest.strip_prefix('U') {
            // As many as fit a type that counts bytes.
            return count
                .parse()
                .ok()
                .filter(|n| *n <= u32::MAX / 4)
                .map(|n| Self::Letters(n, order));
        }
        let (kind, units) = rest.split_at_checked(2)?;
        let units = units.strip_prefix('[')?.strip_suffix(']')?;
        let name = match units {
            "ns" => "nanoseconds",
            "us" => "microseconds",
            "ms" => "milliseconds",
            "s" => "seconds",
            "m" => "minutes",
            "h" => "hours",
            "D" => "days",
            // Months and years have no length, and NumPy allows any multiple.
            _ => return None,
        };
        let units = match kind {
            "M8" => format!("{name} since 1970-01-01"),
            "m8" => name.to_string(),
            _ => return None,
        };
        Some(Self::Time(DType::I64.with_order(order), units))
    }
}

impl Header {
    pub(crate) fn read(place: &Place<'_>, limits: &Limits) -> Result<Self> {
        let opening = place.fetch(0, 12)?;
        if !opening.starts_with(&MAGIC[..MAGIC.len().min(opening.len())]) || opening.is_empty() {
            let message = "a .npy file begins with \\x93NUMPY";
            return Err(Error::not_this_format("npy-001", message).at(place.byte(0)));
        }
        let mut wire = Wire::new(&opening, place.byte(0), ByteOrder::Little, "npy-002");
        wire.skip(MAGIC.len())?;
        let version = (wire.u8()?, wire.u8()?);
        let length = match version.0 {
            1 => u64::from(wire.u16()?),
            2 | 3 => u64::from(wire.u32()?),
            other => {
                let message = format!("version {other} is newer than 3");
                return Err(Error::unsupported("npy-003", message).at(place.byte(6)));
            }
        };
        let dictionary_offset = (opening.len() - wire.remaining()) as u64;
        let at = place.byte(dictionary_offset);
        if length > LONGEST {
            let message = format!("a header of {length} bytes is not a plain array's");
            return Err(Error::malformed("npy-002", message).at(place.byte(8)));
        }
        let text = place.fetch(dictionary_offset, limits.allow(length, "the header")?)?;
        if (text.len() as u64) < length {
            let message = format!("the header has {} of {length} bytes", text.len());
            return Err(Error::truncated("npy-002", message).at(at));
        }
        let data_offset = dictionary_offset + length;
        let bad = |what: &str| {
            Error::malformed("npy-004", format!("the header has no usable {what}")).at(at)
        };
        let text = String::from_utf8_lossy(&text);
        let descr = entry(&text, "descr").ok_or_else(|| bad("descr"))?;
        let unsupported = |what: &str| {
            Error::unsupported("npy-006", format!("elements of type {what} are not read")).at(at)
        };
        let (descr, element) = if descr.starts_with('[') {
            let record =
                record::parse(descr).ok_or_else(|| unsupported("record with these fields"));
            let (fields, size, length) = record?;
            (descr[..length].to_string(), Element::Record(fields, size))
        } else {
            let descr = quoted(descr).ok_or_else(|| bad("descr"))?;
            let element = Element::parse(&descr).ok_or_else(|| unsupported(&descr))?;
            (descr, element)
        };
        let order = match entry(&text, "fortran_order") {
            Some(rest) if rest.starts_with("True") => Order::F,
            Some(rest) if rest.starts_with("False") => Order::C,
            _ => return Err(bad("fortran_order")),
        };
        let shape = entry(&text, "shape").and_then(tuple).ok_or_else(|| bad("shape"))?;
        let bytes =
            shape.bytes(element.size()).map_err(|_| bad("shape (no file is that large)"))?;
        if data_offset.checked_add(bytes).is_none_or(|end| end > place.len) {
            let left = place.len.saturating_sub(data_offset);
            let message = format!("the {shape} array needs {bytes} bytes, {left} are there");
            return Err(crate::cut(place.byte(data_offset), message));
        }
        Ok(Self { version, dictionary_offset, data_offset, descr, element, order, shape })
    }

    /// Where the array ends.
    pub(crate) fn end(&self) -> Result<u64> {
        Ok(self.data_offset + self.shape.bytes(self.element.size())?)
    }
}

/// What follows `'key':` in the dictionary.
fn entry<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    // The names of fields may be anything, and `descr` comes first.
    let at = |quote: char| {
        let word = format!("{quote}{key}{quote}");
        if key == "descr" { text.find(&word) } else { text.rfind(&word) }
    };
    let rest = text[at('\'').or_else(|| at('"'))? + key.len() + 2..].trim_start();
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
    fn texts_and_times_have_types_of_their_own() {
        let units = |descr: &str| match Element::parse(descr) {
            Some(Element::Time(dtype, units)) => format!("{dtype} {units}"),
            Some(other) => other.size().to_string(),
            None => "none".into(),
        };
        assert_eq!(units("<M8[ns]"), "int64 nanoseconds since 1970-01-01");
        assert_eq!(units(">m8[D]"), "int64-be days");
        assert_eq!(units("<U5"), "20");
        for bad in ["<M8[25s]", "<M8", "<U99999999999", "<U2000000000", "<M8[Y]", "O", "<q"] {
            assert_eq!(units(bad), "none", "{bad}");
        }
    }

    #[test]
    fn dictionaries_are_read_as_numpy_writes_them() {
        let text = "{'descr': '>f8', 'fortran_order': True, 'shape': (3L, 4L), }   \n";
        assert_eq!(entry(text, "descr").and_then(quoted).as_deref(), Some(">f8"));
        assert_eq!(entry(text, "shape").and_then(tuple), Some(Shape::new([3, 4])));
        assert_eq!(tuple("()"), Some(Shape::scalar()));
        assert_eq!(tuple("(5,)"), Some(Shape::new([5])));
        assert_eq!(tuple("(-5,)"), None);
        assert_eq!(tuple("(99999999999999999999,)"), None);
        let text = "{'descr': [('shape', '<i2')], 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(entry(text, "shape").and_then(tuple), Some(Shape::new([2])));
    }
}
