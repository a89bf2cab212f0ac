//! Data types of arrays.

use serde_json::Value;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::wire::ByteOrder;

use super::{malformed, name_and_configuration, unsupported};

/// Deepest nesting of structured types.
const MAX_DEPTH: u32 = 16;
/// Largest number of fields of a structured type.
const MAX_FIELDS: usize = 10_000;

/// An element, or a field of a structured element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    /// The element type that readers see.
    pub(crate) dtype: DType,
    /// Stored as UTF-32 in the byte order of `dtype`.
    pub(crate) is_utf32: bool,
    /// The unit of a date or time.
    pub(crate) time: Option<Time>,
}

/// The unit of a date or time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    /// A unit that xarray decodes, for example `nanoseconds since 1970-01-01`.
    pub(crate) units: String,
    /// Stored numbers are multiples of `factor` units.
    pub(crate) factor: f64,
    /// Dates in months and years, which have no fixed length, count from the beginning of 1970.
    pub(crate) is_calendar: bool,
}

/// A field of a structured element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Names from the outermost to the innermost structure, separated by slashes.
    pub(crate) path: String,
    pub(crate) element: Element,
    /// Offset in the element in bytes.
    pub(crate) offset: usize,
    /// Shape of a field that is an array.
    pub(crate) dims: Vec<u64>,
}

/// A data type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DataType {
    /// Elements of one type.
    Plain(Element),
    /// Elements with several fields.
    Structured {
        fields: Vec<Field>,
        /// Size of an element in bytes.
        size: usize,
    },
    /// Strings or bytes of variable length.
    Variable { is_text: bool },
}

impl Element {
    fn plain(dtype: DType) -> Self {
        Self { dtype, is_utf32: false, time: None }
    }

    /// UTF-32 of `size` bytes.
    fn utf32(size: u32, order: ByteOrder) -> Self {
        Self { is_utf32: true, ..Self::plain(DType::text(size).with_order(order)) }
    }

    /// A date (since 1970) or a time of 64 bits.
    fn time(unit: &str, factor: u64, is_date: bool, order: ByteOrder) -> Option<Self> {
        let (name, own) = match unit {
            "Y" => ("years", 1.0),
            "M" => ("months", 1.0),
            "W" => ("days", 7.0),
            "D" => ("days", 1.0),
            "h" => ("hours", 1.0),
            "m" => ("minutes", 1.0),
            "s" => ("seconds", 1.0),
            "ms" => ("milliseconds", 1.0),
            "us" | "\u{3bc}s" => ("microseconds", 1.0),
            "ns" => ("nanoseconds", 1.0),
            "ps" => ("nanoseconds", 1e-3),
            "fs" => ("nanoseconds", 1e-6),
            "as" => ("nanoseconds", 1e-9),
            "generic" | "" => ("", 1.0),
            _ => return None,
        };
        let is_calendar = is_date && matches!(unit, "Y" | "M");
        let since = if is_date && !is_calendar { " since 1970-01-01" } else { "" };
        let units = format!("{name}{since}");
        let time = Time { units, factor: factor as f64 * own, is_calendar };
        let time = (!name.is_empty()).then_some(time);
        Some(Self { time, ..Self::plain(DType::I64.with_order(order)) })
    }
}

impl DataType {
    /// Size of a stored element in bytes; 0 for elements of variable length.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Plain(element) => element.dtype.size(),
            Self::Structured { size, .. } => *size,
            Self::Variable { .. } => 0,
        }
    }

    /// Returns this type with all numbers in `order`.
    pub(crate) fn with_order(mut self, order: ByteOrder) -> Self {
        let set = |element: &mut Element| element.dtype = element.dtype.with_order(order);
        match &mut self {
            Self::Plain(element) => set(element),
            Self::Structured { fields, .. } => {
                for field in fields {
                    set(&mut field.element);
                }
            }
            Self::Variable { .. } => {}
        }
        self
    }

    /// The element type of plain elements, opaque bytes for others.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Plain(element) => element.dtype,
            _ => DType::opaque(u32::try_from(self.size()).unwrap_or(u32::MAX)),
        }
    }
}

/// A data type of version 3: its name and the type, little-endian.
pub(super) fn type_3(value: &Value) -> Result<(String, DataType)> {
    parse_3(value, 0)
}

fn parse_3(value: &Value, depth: u32) -> Result<(String, DataType)> {
    let (name, configuration) = name_and_configuration(value)?;
    let little = |kind, size| DType::new(kind, size, ByteOrder::Little).map(Element::plain);
    let length = configuration.get("length_bytes").and_then(Value::as_u64);
    let length = length.and_then(|n| u32::try_from(n).ok());
    let found = match (name, length) {
        ("bool", _) => little(Kind::Bool, 1),
        ("string", _) => return Ok((name.into(), DataType::Variable { is_text: true })),
        ("bytes" | "variable_length_bytes", _) => {
            return Ok((name.into(), DataType::Variable { is_text: false }));
        }
        ("structured" | "struct", _) => {
            let fields = configuration.get("fields").and_then(Value::as_array);
            let fields = fields.ok_or_else(|| malformed("structured data type without fields"))?;
            let mut list = Fields::new(depth)?;
            for field in fields {
                let named = field.get("name").zip(field.get("data_type"));
                let pair = named.or_else(|| field.get(0).zip(field.get(1)));
                let (field, data_type) = pair
                    .and_then(|(name, data_type)| Some((name.as_str()?, data_type)))
                    .ok_or_else(|| malformed("structured data type: invalid field"))?;
                let (_, data_type) = parse_3(data_type, depth + 1)?;
                list.push(field, data_type, &[])?;
            }
            return Ok((name.into(), list.into_type()));
        }
        ("null_terminated_bytes", Some(n)) => Some(Element::plain(DType::text(n))),
        ("raw_bytes", Some(n)) => Some(Element::plain(DType::opaque(n))),
        ("fixed_length_utf32", Some(n)) => Some(Element::utf32(n, ByteOrder::Little)),
        ("numpy.datetime64" | "numpy.timedelta64", _) => {
            let unit = configuration.get("unit").and_then(Value::as_str).unwrap_or("");
            let factor = configuration.get("scale_factor").and_then(Value::as_u64).unwrap_or(1);
            Element::time(unit, factor, name == "numpy.datetime64", ByteOrder::Little)
        }
        _ => {
            let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
            let (kind, bits) = name.split_at(digits);
            let size = bits.parse::<u32>().ok().filter(|n| *n > 0 && n.is_multiple_of(8));
            let kind = match kind {
                "int" => Some(Kind::Int),
                "uint" => Some(Kind::UInt),
                "float" => Some(Kind::Float),
                "complex" => Some(Kind::Complex),
                "r" => Some(Kind::Opaque),
                _ => None,
            };
            kind.zip(size).and_then(|(kind, bits)| little(kind, bits / 8))
        }
    };
    let found = found.ok_or_else(|| unsupported(format!("data type {name} is not supported")))?;
    Ok((name.to_string(), DataType::Plain(found)))
}

/// The data type of version 3 for an element type; `None` for elements of 0 bytes.
pub(crate) fn type_name_3(dtype: DType) -> Option<Value> {
    let bits = dtype.size() as u64 * 8;
    Some(match (dtype.kind(), dtype.size()) {
        (_, 0) => return None,
        (Kind::Int, _) => format!("int{bits}").into(),
        (Kind::Float, 2 | 4 | 8) => format!("float{bits}").into(),
        (Kind::Complex, 8 | 16) => format!("complex{bits}").into(),
        (Kind::Bool, 1) => "bool".into(),
        (Kind::UInt | Kind::Bool, _) => format!("uint{bits}").into(),
        (Kind::Text, size) => serde_json::json!({
            "name": "null_terminated_bytes", "configuration": { "length_bytes": size }
        }),
        (Kind::Opaque, 1) => "uint8".into(),
        // Floats of 16 bytes, complex numbers of 32 bytes and opaque bytes.
        (_, size) => serde_json::json!({
            "name": "raw_bytes", "configuration": { "length_bytes": size }
        }),
    })
}

/// The fill value of all zero bytes.
pub(crate) fn zero_fill_3(dtype: DType) -> Value {
    match (dtype.kind(), dtype.size()) {
        (Kind::Bool, 1) => false.into(),
        (Kind::Float, 2 | 4 | 8) => 0.0.into(),
        (Kind::Complex, 8 | 16) => serde_json::json!([0.0, 0.0]),
        (Kind::Int | Kind::UInt | Kind::Bool, _) | (Kind::Opaque, 1) => 0.into(),
        (Kind::Text, _) => "".into(),
        (_, size) => base64_simd::STANDARD.encode_to_string(vec![0; size]).into(),
    }
}

/// A data type of version 2: a string in the notation of NumPy, or a list of fields. `|O` is an object, whose type
/// depends on the filters.
pub(super) fn type_2(value: &Value) -> Result<DataType> {
    parse_2(value, 0)
}

fn parse_2(value: &Value, depth: u32) -> Result<DataType> {
    let Some(fields) = value.as_array() else {
        let name = value.as_str().ok_or_else(|| malformed("dtype: expected a string or a list"))?;
        let element = numpy_element(name);
        let element =
            element.ok_or_else(|| unsupported(format!("data type {name} is not supported")))?;
        return Ok(DataType::Plain(element));
    };
    let mut list = Fields::new(depth)?;
    for field in fields {
        let invalid = || malformed("dtype: expected a name and a type for each field");
        let name = field.get(0).and_then(Value::as_str).ok_or_else(invalid)?;
        let data_type = parse_2(field.get(1).ok_or_else(invalid)?, depth + 1)?;
        let dims = match field.get(2) {
            None => Vec::new(),
            Some(Value::Number(one)) => vec![one.as_u64().ok_or_else(invalid)?],
            Some(list) => {
                let list = list.as_array().into_iter().flatten().map(Value::as_u64);
                list.collect::<Option<Vec<_>>>().ok_or_else(invalid)?
            }
        };
        list.push(name, data_type, &dims)?;
    }
    Ok(list.into_type())
}

/// The element type with a name of NumPy: `<f8`, `float64`, `<M8[ns]`, `>U5`; `None` if it is not supported.
pub(crate) fn numpy_element(name: &str) -> Option<Element> {
    let order = if name.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    let plain = name.trim_start_matches(['<', '>', '|', '=']);
    let date = plain.strip_prefix("M8").or_else(|| plain.strip_prefix("datetime64"));
    let time = plain.strip_prefix("m8").or_else(|| plain.strip_prefix("timedelta64"));
    if let Some(unit) = date.or(time) {
        let unit = unit.trim_start_matches('[').trim_end_matches(']');
        let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(unit.len());
        let factor = if digits == 0 { 1 } else { unit[..digits].parse().ok()? };
        return Element::time(&unit[digits..], factor, date.is_some(), order);
    }
    if let Some(count) = plain.strip_prefix('U') {
        return Some(Element::utf32(count.parse::<u32>().ok()?.checked_mul(4)?, order));
    }
    let dtype = match plain {
        "bool" | "?" => DType::from_numpy("|b1"),
        _ => DType::from_numpy(plain).or_else(|| plain.parse().ok()),
    };
    dtype.map(|dtype| Element::plain(dtype.with_order(order)))
}

/// The fields of a structured type, one after the other.
struct Fields {
    list: Vec<Field>,
    size: usize,
}

impl Fields {
    fn new(depth: u32) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(unsupported("the data type is nested too deeply"));
        }
        Ok(Self { list: Vec::new(), size: 0 })
    }

    /// Adds a field; `dims` is its shape if it is an array.
    fn push(&mut self, name: &str, data_type: DataType, dims: &[u64]) -> Result<()> {
        let count = dims.iter().try_fold(1_u64, |count, n| count.checked_mul(*n));
        let bytes = count.and_then(|n| n.checked_mul(data_type.size() as u64));
        let end = bytes.and_then(|n| n.checked_add(self.size as u64));
        let end = end.filter(|end| u32::try_from(*end).is_ok());
        let end = end.ok_or_else(|| unsupported("the data type is too long"))? as usize;
        let offset = std::mem::replace(&mut self.size, end);
        let name = name.replace('/', "_");
        match data_type {
            // A field without a name is padding.
            _ if name.is_empty() => {}
            DataType::Plain(element) => {
                self.list.push(Field { path: name, element, offset, dims: dims.into() });
            }
            DataType::Structured { fields, .. } if dims.is_empty() => {
                self.list.extend(fields.into_iter().map(|field| Field {
                    path: format!("{name}/{}", field.path),
                    offset: offset + field.offset,
                    ..field
                }));
            }
            DataType::Structured { .. } => {
                return Err(unsupported("arrays of structures in a data type are not supported"));
            }
            DataType::Variable { .. } => {
                return Err(unsupported("fields of variable length are not supported"));
            }
        }
        if self.list.len() > MAX_FIELDS {
            return Err(unsupported("the data type has too many fields"));
        }
        Ok(())
    }

    fn into_type(self) -> DataType {
        DataType::Structured { fields: self.list, size: self.size }
    }
}
