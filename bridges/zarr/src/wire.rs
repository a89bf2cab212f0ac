//! The metadata documents: `zarr.json` of version 3, `.zarray`, `.zgroup` and `.zattrs` of version 2.

use serde_json::{Map, Value};
use spile_core::convert::swap;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::shape::{Order, Shape};
use spile_core::wire::ByteOrder;

use crate::codec::{Filter, Pipe};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// More dimensions than any program uses.
const MOST_DIMENSIONS: usize = 64;

/// All that the metadata of an array say.
#[derive(Clone, Debug)]
pub(crate) struct ArrayMeta {
    pub(crate) shape: Shape,
    /// Lengths of what one file holds.
    pub(crate) chunk: Shape,
    pub(crate) dtype: DType,
    /// The type in the store's own words.
    pub(crate) words: String,
    /// The element of chunks that are not there, in the byte order of the others.
    pub(crate) fill: Vec<u8>,
    pub(crate) dims: Vec<Option<String>>,
    pub(crate) keys: Keys,
    pub(crate) coding: Coding,
}

/// What is done to the elements of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Coding {
    /// The dimensions from slowest to fastest.
    pub(crate) axes: Vec<usize>,
    pub(crate) pipe: Pipe,
    /// The chunks inside a chunk.
    pub(crate) shard: Option<Box<Shard>>,
}

/// `sharding_indexed`: a file holds many chunks and a table of where they are.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) chunk: Shape,
    pub(crate) coding: Coding,
    pub(crate) at_start: bool,
    /// A checksum of four bytes follows the table.
    pub(crate) checked: bool,
    pub(crate) order: ByteOrder,
}

/// How the files of chunks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// They begin with `c`.
    pub(crate) prefix: bool,
    pub(crate) separator: char,
}

impl Keys {
    /// The number, in C order over `grid`, of the chunk in the file of that name; nothing for other
    /// files.
    pub(crate) fn number(self, name: &str, grid: &Shape) -> Option<u64> {
        if grid.rank() == 0 {
            return (name == if self.prefix { "c" } else { "0" }).then_some(0);
        }
        let name =
            if self.prefix { name.strip_prefix('c')?.strip_prefix(self.separator)? } else { name };
        let mut number = 0_u64;
        let mut parts = name.split(self.separator);
        for length in grid.lengths() {
            let part = parts.next()?;
            let plain = part == "0" || !part.starts_with('0');
            let index: u64 = part.parse().ok().filter(|index| plain && index < length)?;
            // No overflow: there are fewer chunks than elements.
            number = number.checked_mul(*length)?.checked_add(index)?;
        }
        (parts.next().is_none() && !name.contains('+')).then_some(number)
    }
}

pub(crate) fn bad(message: impl Into<String>) -> Error {
    Error::malformed("zarr-002", message)
}

pub(crate) fn unknown(message: impl Into<String>) -> Error {
    Error::unsupported("zarr-003", message)
}

/// A document.
pub(crate) fn object(text: &[u8]) -> Result<Object> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(bad("the metadata are no JSON object")),
        Err(e) => Err(bad(format!("the metadata are no JSON: {e}"))),
    }
}

impl ArrayMeta {
    /// `zarr.json` of an array.
    pub(crate) fn version_3(meta: &Object) -> Result<Self> {
        let shape = lengths(meta.get("shape"), "shape")?;
        let (words, dtype) = type_3(field(meta, "data_type")?)?;
        let (name, grid) = named(field(meta, "chunk_grid")?)?;
        if name != "regular" {
            return Err(unknown(format!("chunks on a grid that is {name}, not regular")));
        }
        let chunk = lengths(grid.get("chunk_shape"), "chunk_shape")?;
        let (name, encoding) = named(field(meta, "chunk_key_encoding")?)?;
        let prefix = match name {
            "default" => true,
            "v2" => false,
            other => return Err(unknown(format!("names of chunks that are encoded as {other}"))),
        };
        let separator = separator(encoding.get("separator"), if prefix { '/' } else { '.' })?;
        let codecs = field(meta, "codecs")?.as_array().ok_or_else(|| bad("codecs is no list"))?;
        let (coding, order) = coding(codecs, &chunk, dtype, 0)?;
        let dtype = dtype.with_order(order);
        let fill = fill(meta.get("fill_value"), dtype)?;
        let mut dims = vec![None; shape.rank()];
        if let Some(Value::Array(names)) = meta.get("dimension_names") {
            if names.len() != dims.len() {
                return Err(bad("as many dimension_names as dimensions are wanted"));
            }
            dims = names.iter().map(|name| name.as_str().map(Into::into)).collect();
        }
        let keys = Keys { prefix, separator };
        Self { shape, chunk, dtype, words, fill, dims, keys, coding }.checked()
    }

    /// `.zarray`; `attrs` is what `.zattrs` says.
    pub(crate) fn version_2(meta: &Object, attrs: &Object) -> Result<Self> {
        let shape = lengths(meta.get("shape"), "shape")?;
        let chunk = lengths(meta.get("chunks"), "chunks")?;
        let Some(words) = field(meta, "dtype")?.as_str() else {
            return Err(unknown("records of several fields are not read"));
        };
        let dtype = type_2(words)
            .ok_or_else(|| unknown(format!("elements of type {words} are not read")))?;
        let order = match meta.get("order").and_then(Value::as_str) {
            Some("C") | None => Order::C,
            Some("F") => Order::F,
            Some(other) => return Err(bad(format!("order is {other}, not C or F"))),
        };
        let axes = spile_core::chunks::Chunks::axes(shape.rank(), order);
        let mut filters = Vec::new();
        if let Some(Value::Array(list)) = meta.get("filters") {
            for filter in list {
                filters.push(Filter::version_2(filter, dtype)?);
            }
        }
        if let Some(compressor) = meta.get("compressor").filter(|c| !c.is_null()) {
            filters.push(Filter::version_2(compressor, dtype)?);
        }
        let coding = Coding { axes, pipe: Pipe::new(filters)?, shard: None };
        let separator = separator(meta.get("dimension_separator"), '.')?;
        let keys = Keys { prefix: false, separator };
        let mut dims = vec![None; shape.rank()];
        if let Some(Value::Array(names)) = attrs.get(DIMENSIONS)
            && names.len() == dims.len()
        {
            dims = names.iter().map(|name| name.as_str().map(Into::into)).collect();
        }
        let fill = fill(meta.get("fill_value"), dtype)?;
        Self { shape, chunk, dtype, words: words.into(), fill, dims, keys, coding }.checked()
    }

    fn checked(self) -> Result<Self> {
        let rank = self.shape.rank();
        if self.chunk.rank() != rank || self.chunk.lengths().contains(&0) {
            return Err(bad(format!("chunks of {} for an array of {}", self.chunk, self.shape)));
        }
        if rank > MOST_DIMENSIONS {
            return Err(unknown(format!("{rank} dimensions")));
        }
        self.shape.bytes(self.dtype.size())?;
        self.chunk.bytes(self.dtype.size())?;
        Ok(self)
    }
}

/// The attribute in which version 2 keeps the names of dimensions, by xarray's convention.
pub(crate) const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

fn field<'a>(meta: &'a Object, name: &str) -> Result<&'a Value> {
    meta.get(name).ok_or_else(|| bad(format!("the metadata have no {name}")))
}

/// The name of an extension and its configuration; a bare name is allowed, too.
pub(crate) fn named(value: &Value) -> Result<(&str, Object)> {
    if let Some(name) = value.as_str() {
        return Ok((name, Object::new()));
    }
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| bad("something without a name where one is wanted"))?;
    let configuration = value.get("configuration").and_then(Value::as_object).cloned();
    Ok((name, configuration.unwrap_or_default()))
}

fn lengths(value: Option<&Value>, what: &str) -> Result<Shape> {
    let list = value.and_then(Value::as_array);
    let lengths = list.and_then(|list| list.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
    lengths.map(Shape::new).ok_or_else(|| bad(format!("{what} is no list of lengths")))
}

fn separator(value: Option<&Value>, usual: char) -> Result<char> {
    match value.map(Value::as_str) {
        None => Ok(usual),
        Some(Some("/")) => Ok('/'),
        Some(Some(".")) => Ok('.'),
        _ => Err(bad("the separator of chunk names is / or .")),
    }
}

/// The codecs of a chunk: its elements moved, made bytes, and the bytes changed.
fn coding(
    codecs: &[Value],
    chunk: &Shape,
    dtype: DType,
    depth: u32,
) -> Result<(Coding, ByteOrder)> {
    let rank = chunk.rank();
    let mut axes: Vec<usize> = (0..rank).collect();
    let (mut order, mut shard, mut filters) = (None, None, Vec::new());
    for codec in codecs {
        let (name, configuration) = named(codec)?;
        match name {
            "transpose" if order.is_none() => {
                let list = match configuration.get("order") {
                    Some(Value::String(word)) if word == "C" => (0..rank as u64).collect(),
                    Some(Value::String(word)) if word == "F" => (0..rank as u64).rev().collect(),
                    other => lengths(other, "order")?.lengths().to_vec(),
                };
                // Every dimension once, or the layout is refused when it is opened.
                let moved = list.iter().map(|k| axes.get(*k as usize).copied());
                axes = moved.collect::<Option<_>>().ok_or_else(|| bad("a transposition"))?;
            }
            "bytes" if order.is_none() => {
                order = Some(match configuration.get("endian").and_then(Value::as_str) {
                    Some("big") => ByteOrder::Big,
                    Some("little") | None => ByteOrder::Little,
                    Some(other) => return Err(bad(format!("bytes are {other}-endian"))),
                });
            }
            "sharding_indexed" if order.is_none() && depth == 0 => {
                let (inner, own) = Shard::new(&configuration, chunk, dtype, depth)?;
                (shard, order) = (Some(Box::new(inner)), Some(own));
            }
            _ if order.is_some() => filters.push(Filter::version_3(name, &configuration)?),
            other => return Err(unknown(format!("elements that are encoded by {other}"))),
        }
    }
    let order = order.ok_or_else(|| bad("no codec makes bytes of the elements"))?;
    if shard.is_some() && (!filters.is_empty() || !axes.iter().copied().eq(0..rank)) {
        return Err(unknown("shards that are encoded as a whole"));
    }
    Ok((Coding { axes, pipe: Pipe::new(filters)?, shard }, order))
}

impl Shard {
    fn new(
        configuration: &Object,
        outer: &Shape,
        dtype: DType,
        depth: u32,
    ) -> Result<(Self, ByteOrder)> {
        let chunk = lengths(configuration.get("chunk_shape"), "chunk_shape")?;
        let fits = |(outer, inner): (&u64, &u64)| *inner > 0 && outer.is_multiple_of(*inner);
        if chunk.rank() != outer.rank() || !outer.lengths().iter().zip(chunk.lengths()).all(fits) {
            return Err(bad(format!("shards of {outer} do not hold whole chunks of {chunk}")));
        }
        let list = |name: &str| {
            let list = configuration.get(name).and_then(Value::as_array);
            list.ok_or_else(|| bad(format!("{name} is no list")))
        };
        let (coding, own) = coding(list("codecs")?, &chunk, dtype, depth + 1)?;
        let (mut order, mut checked) = (ByteOrder::Little, false);
        for codec in list("index_codecs")? {
            match named(codec)? {
                ("bytes", index) if index.get("endian").and_then(Value::as_str) == Some("big") => {
                    order = ByteOrder::Big;
                }
                ("bytes", _) => {}
                ("crc32c", _) => checked = true,
                (other, _) => return Err(unknown(format!("an index encoded by {other}"))),
            }
        }
        let at_start = match configuration.get("index_location").and_then(Value::as_str) {
            Some("start") => true,
            Some("end") | None => false,
            Some(other) => return Err(bad(format!("the index of a shard at its {other}"))),
        };
        Ok((Self { chunk, coding, at_start, checked, order }, own))
    }
}

/// A type by its name in version 3, in the machine-independent order of its numbers.
fn type_3(value: &Value) -> Result<(String, DType)> {
    let (name, configuration) = named(value)?;
    let length = configuration.get("length_bytes").and_then(Value::as_u64);
    let length = length.and_then(|n| u32::try_from(n).ok());
    let little = |kind, size| DType::new(kind, size, ByteOrder::Little);
    let found = match (name, length) {
        ("bool", _) => little(Kind::Bool, 1),
        ("null_terminated_bytes", Some(n)) => Some(DType::text(n)),
        ("raw_bytes" | "fixed_length_utf32", Some(n)) => Some(DType::opaque(n)),
        ("numpy.datetime64" | "numpy.timedelta64", _) => little(Kind::Int, 8),
        _ => {
            let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
            let (word, bits) = name.split_at(digits);
            let size = bits.parse::<u32>().ok().filter(|n| *n > 0 && n.is_multiple_of(8));
            let kind = match word {
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
    let found = found.ok_or_else(|| unknown(format!("elements of type {name} are not read")))?;
    Ok((name.to_string(), found))
}

/// The name of a type in version 3; nothing where it has none.
pub(crate) fn words_3(dtype: DType) -> Option<Value> {
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
        // Numbers of 16 bytes, and bytes without a meaning.
        (_, size) => serde_json::json!({
            "name": "raw_bytes", "configuration": { "length_bytes": size }
        }),
    })
}

/// The element of nothing but zeros.
pub(crate) fn zero_3(dtype: DType) -> Value {
    match (dtype.kind(), dtype.size()) {
        (Kind::Bool, 1) => false.into(),
        (Kind::Float, 2 | 4 | 8) => 0.0.into(),
        (Kind::Complex, 8 | 16) => serde_json::json!([0.0, 0.0]),
        (Kind::Int | Kind::UInt | Kind::Bool, _) | (Kind::Opaque, 1) => 0.into(),
        (Kind::Text, _) => "".into(),
        (_, size) => base64_simd::STANDARD.encode_to_string(vec![0; size]).into(),
    }
}

/// A type in NumPy's notation.
fn type_2(words: &str) -> Option<DType> {
    let order = if words.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    match words.get(1..2)? {
        // Times are numbers of their unit; characters are four bytes each.
        "M" | "m" => DType::new(Kind::Int, 8, order),
        "U" => Some(DType::opaque(words[2..].parse::<u32>().ok()?.checked_mul(4)?)),
        _ => DType::from_numpy(words),
    }
}

/// The bytes of a fill value.
fn fill(value: Option<&Value>, dtype: DType) -> Result<Vec<u8>> {
    let size = dtype.size();
    let mut bytes = vec![0; size];
    let wrong = || bad("the fill value is no element");
    let value = value.unwrap_or(&Value::Null);
    match (dtype.kind(), value) {
        (_, Value::Null) => {}
        (Kind::Bool, Value::Bool(truth)) => bytes[0] = u8::from(*truth),
        (Kind::Bool, _) => bytes[0] = u8::from(value.as_u64().ok_or_else(wrong)? != 0),
        (Kind::UInt, _) => {
            let number = value.as_u64().or_else(|| value.as_f64().map(|v| v as u64));
            bytes.copy_from_slice(&number.ok_or_else(wrong)?.to_le_bytes()[..size]);
        }
        (Kind::Int, Value::String(word)) if word == "NaT" => {
            bytes.copy_from_slice(&i64::MIN.to_le_bytes()[8 - size..]);
        }
        (Kind::Int, _) => {
            let number = value.as_i64().or_else(|| value.as_f64().map(|v| v as i64));
            bytes.copy_from_slice(&number.ok_or_else(wrong)?.to_le_bytes()[..size]);
        }
        (Kind::Float, _) => real(value, &mut bytes).ok_or_else(wrong)?,
        (Kind::Complex, Value::Array(parts)) if parts.len() == 2 => {
            let (re, im) = bytes.split_at_mut(size / 2);
            real(&parts[0], re).and_then(|()| real(&parts[1], im)).ok_or_else(wrong)?;
        }
        (_, Value::Array(list)) if list.len() == size => {
            for (byte, number) in bytes.iter_mut().zip(list) {
                let number = number.as_u64().and_then(|n| u8::try_from(n).ok());
                *byte = number.ok_or_else(wrong)?;
            }
        }
        (_, Value::String(text)) => {
            let decoded = base64_simd::STANDARD.decode_to_vec(text).map_err(|_| wrong())?;
            let fits = decoded.len().min(size);
            bytes[..fits].copy_from_slice(&decoded[..fits]);
        }
        // NumPy's zero of a field of bytes.
        (_, Value::Number(zero)) if zero.as_u64() == Some(0) => {}
        _ => return Err(wrong()),
    }
    if dtype.order() == ByteOrder::Big {
        swap(&mut bytes, dtype.word());
    }
    Ok(bytes)
}

/// A real number as JSON has it, or by the name or bits that JSON lacks, into two, four or eight bytes.
fn real(value: &Value, bytes: &mut [u8]) -> Option<()> {
    let word = value.as_str();
    if let Some(digits) = word.and_then(|word| word.strip_prefix("0x")) {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        return Some(());
    }
    let number = match word {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(_) => return None,
        None => value.as_f64()?,
    };
    match bytes.len() {
        8 => bytes.copy_from_slice(&number.to_le_bytes()),
        4 => bytes.copy_from_slice(&(number as f32).to_le_bytes()),
        2 => {
            // Those that are used to fill.
            let half = match number {
                0.0 => 0_u16,
                v if v.is_nan() => 0x7e00,
                f64::INFINITY => 0x7c00,
                f64::NEG_INFINITY => 0xfc00,
                _ => return None,
            };
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        _ => return None,
    }
    Some(())
}
