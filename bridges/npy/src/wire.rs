//! The header: a magic string, a length, and a Python dictionary as text.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::wire::{ByteOrder, Wire};

use crate::stream::Stream;
use crate::structured::{self, Field};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// Alignment of the array in bytes.
const ALIGNMENT: usize = 64;

/// Maximum length of the dictionary.
const LONGEST: u64 = 1 << 20;

/// The header of an array. Offsets are relative to the magic string.
pub(crate) struct Header {
    pub(crate) version: (u8, u8),
    pub(crate) dictionary_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) descr: String,
    pub(crate) element: Element,
    pub(crate) order: Order,
    pub(crate) shape: Shape,
}

/// Type of an element.
pub(crate) enum Element {
    /// A number, string or opaque bytes.
    Scalar(DType),
    /// A UTF-32 string: number of characters, byte order.
    Utf32(u32, ByteOrder),
    /// A date or time span: an integer and its units.
    Time(DType, String),
    /// A structured type: its fields, and the size of a record in bytes.
    Structured(Vec<Field>, usize),
}

impl Element {
    /// Size of an element in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Scalar(dtype) | Self::Time(dtype, _) => dtype.size(),
            Self::Utf32(count, _) => 4 * *count as usize,
            Self::Structured(_, size) => *size,
        }
    }

    /// Parses a `descr` string; `None` if the type is not supported.
    fn parse(descr: &str) -> Option<Self> {
        if let Some(dtype) = DType::from_numpy(descr) {
            return Some(Self::Scalar(dtype));
        }
        let order = if descr.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
        let rest = descr.strip_prefix(['<', '>', '='])?;
        if let Some(count) = rest.strip_prefix('U') {
            // The size in bytes is a `u32`.
            return count
                .parse()
                .ok()
                .filter(|n| *n <= u32::MAX / 4)
                .map(|n| Self::Utf32(n, order));
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
            // Months and years have no fixed length; multiples of units are not supported.
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
    /// Reads the header at the beginning of `stream`. Fails if the array does not fit in the stream.
    pub(crate) fn read(stream: &Stream<'_>, limits: &Limits) -> Result<Self> {
        let opening = stream.fetch(0, 12)?;
        if !opening.starts_with(&MAGIC[..MAGIC.len().min(opening.len())]) || opening.is_empty() {
            let message = "expected the magic string \\x93NUMPY";
            return Err(Error::not_this_format("npy-001", message).at(stream.offset_of(0)));
        }
        let mut wire = Wire::new(&opening, stream.offset_of(0), ByteOrder::Little, "npy-002");
        wire.skip(MAGIC.len())?;
        let version = (wire.u8()?, wire.u8()?);
        let length = match version.0 {
            1 => u64::from(wire.u16()?),
            2 | 3 => u64::from(wire.u32()?),
            other => {
                let message = format!("version {other} is not supported; the latest is 3");
                return Err(Error::unsupported("npy-003", message).at(stream.offset_of(6)));
            }
        };
        let dictionary_offset = (opening.len() - wire.remaining()) as u64;
        let at = stream.offset_of(dictionary_offset);
        if length > LONGEST {
            let message = format!("header of {length} bytes; the maximum is {LONGEST}");
            return Err(Error::malformed("npy-002", message).at(stream.offset_of(8)));
        }
        let text = stream.fetch(dictionary_offset, limits.allow(length, "the header")?)?;
        if (text.len() as u64) < length {
            let message = format!(
                "unexpected end of file: expected a header of {length} bytes, found {}",
                text.len()
            );
            return Err(Error::truncated("npy-002", message).at(at));
        }
        let data_offset = dictionary_offset + length;
        let bad = |what: &str| {
            Error::malformed("npy-004", format!("missing or invalid {what} in the header")).at(at)
        };
        let text = String::from_utf8_lossy(&text);
        let descr = entry(&text, "descr").ok_or_else(|| bad("descr"))?;
        let unsupported = |what: &str| {
            Error::unsupported("npy-006", format!("element type {what} is not supported")).at(at)
        };
        let (descr, element) = if descr.starts_with('[') {
            let (fields, size, length) = structured::parse(descr, limits)?
                .ok_or_else(|| unsupported("record with array or object fields"))?;
            (descr[..length].to_string(), Element::Structured(fields, size))
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
        let bytes = shape.bytes(element.size()).map_err(|_| bad("shape"))?;
        if data_offset.checked_add(bytes).is_none_or(|end| end > stream.len) {
            let found = stream.len.saturating_sub(data_offset);
            let message = format!(
                "unexpected end of the {shape} array: expected {bytes} bytes, found {found}"
            );
            return Err(Error::truncated("npy-005", message).at(stream.offset_of(data_offset)));
        }
        Ok(Self { version, dictionary_offset, data_offset, descr, element, order, shape })
    }

    /// First byte after the array.
    pub(crate) fn end(&self) -> Result<u64> {
        Ok(self.data_offset + self.shape.bytes(self.element.size())?)
    }
}

/// Encodes a header of version 1, or of version 2 if it is longer than 65535 bytes.
pub(crate) fn encode_header(descr: &str, fortran: bool, shape: &[u64]) -> Result<Vec<u8>> {
    let lengths: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", lengths.join(", "));
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let padded = |before: usize| {
        let len = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
        format!("{text:<width$}\n", width = len - 1)
    };
    let mut bytes = MAGIC.to_vec();
    let short = padded(10);
    if let Ok(len) = u16::try_from(short.len()) {
        bytes.extend([1, 0]);
        bytes.extend(len.to_le_bytes());
        bytes.extend(short.bytes());
        return Ok(bytes);
    }
    let long = padded(12);
    let len = u32::try_from(long.len())
        .map_err(|_| Error::unsupported("npy-011", "too many dimensions"))?;
    bytes.extend([2, 0]);
    bytes.extend(len.to_le_bytes());
    bytes.extend(long.bytes());
    Ok(bytes)
}

/// The text after `'key':` in the dictionary.
fn entry<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    // Field names may equal a key; `descr` comes first.
    let at = |quote: char| {
        let quoted = format!("{quote}{key}{quote}");
        if key == "descr" { text.find(&quoted) } else { text.rfind(&quoted) }
    };
    let rest = text[at('\'').or_else(|| at('"'))? + key.len() + 2..].trim_start();
    Some(rest.strip_prefix(':')?.trim_start())
}

/// Parses a Python string without escapes.
fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    Some(text[1..].split_once(quote)?.0.to_string())
}

/// Parses a Python tuple of integers.
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
    fn strings_and_times_are_parsed() {
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
    fn dictionaries_of_numpy_are_parsed() {
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
