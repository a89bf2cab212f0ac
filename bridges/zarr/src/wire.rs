//! Metadata documents: `zarr.json` of version 3, `.zarray`, `.zgroup` and `.zattrs` of version 2.

mod data_type;

use serde_json::{Map, Value};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::tree;
use spile_core::wire::ByteOrder;

use crate::codec::{Filter, Pipeline};
use data_type::{fill_value, type_2, type_3};
pub(crate) use data_type::{stored_type, type_name_3, zero_fill_3};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Largest rank of an array.
pub(crate) const MAX_RANK: usize = 64;

/// The metadata of an array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayMeta {
    pub(crate) shape: Shape,
    /// Shape of a chunk, or of a shard.
    pub(crate) chunk: Shape,
    pub(crate) dtype: DType,
    /// The data type as the metadata name it.
    pub(crate) data_type: String,
    /// The fill value, in the byte order of the chunks.
    pub(crate) fill: Vec<u8>,
    pub(crate) dims: Vec<Option<String>>,
    pub(crate) keys: Keys,
    pub(crate) codecs: ChunkCodecs,
}

/// The codecs of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkCodecs {
    /// Dimensions from slowest to fastest.
    pub(crate) axes: Vec<usize>,
    pub(crate) pipeline: Pipeline,
    /// Set if chunks are shards.
    pub(crate) shard: Option<Box<Shard>>,
}

/// `sharding_indexed`: a file with several chunks and an index.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) chunk: Shape,
    pub(crate) codecs: ChunkCodecs,
    /// The index is at the start of the file, not at the end.
    pub(crate) at_start: bool,
    /// A CRC-32C checksum follows the index.
    pub(crate) checked: bool,
    pub(crate) order: ByteOrder,
}

/// The chunk key encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Keys start with `c`.
    pub(crate) prefix: bool,
    pub(crate) separator: char,
}

impl Keys {
    /// The number, in C order over `grid`, of the chunk with this key; `None` for other names.
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
            number = number.checked_mul(*length)?.checked_add(index)?;
        }
        (parts.next().is_none() && !name.contains('+')).then_some(number)
    }
}

/// An error about invalid metadata.
pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::malformed("zarr-002", message)
}

/// An error about valid metadata that are not supported.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("zarr-003", message)
}

/// Parses a metadata document.
pub(crate) fn parse_object(text: &[u8]) -> Result<Object> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(malformed("metadata: expected a JSON object")),
        Err(e) => Err(malformed(format!("metadata: invalid JSON: {e}"))),
    }
}

impl ArrayMeta {
    /// Parses `zarr.json` of an array.
    pub(crate) fn version_3(meta: &Object, limits: &Limits) -> Result<Self> {
        let shape = lengths(meta.get("shape"), "shape")?;
        let (data_type, dtype) = type_3(field(meta, "data_type")?)?;
        let (name, grid) = name_and_configuration(field(meta, "chunk_grid")?)?;
        if name != "regular" {
            return Err(unsupported(format!("chunk grid {name} is not supported")));
        }
        let chunk = lengths(grid.get("chunk_shape"), "chunk_shape")?;
        let (name, encoding) = name_and_configuration(field(meta, "chunk_key_encoding")?)?;
        let prefix = match name {
            "default" => true,
            "v2" => false,
            other => {
                return Err(unsupported(format!("chunk key encoding {other} is not supported")));
            }
        };
        let separator = separator(encoding.get("separator"), if prefix { '/' } else { '.' })?;
        let codecs = field(meta, "codecs")?
            .as_array()
            .ok_or_else(|| malformed("codecs: expected a list"))?;
        let (codecs, order) = parse_codecs(codecs, &chunk, dtype, 0)?;
        let dtype = dtype.with_order(order);
        let fill = fill_value(meta.get("fill_value"), dtype, limits)?;
        let mut dims = vec![None; shape.rank()];
        if let Some(Value::Array(names)) = meta.get("dimension_names") {
            if names.len() != dims.len() {
                let (rank, found) = (dims.len(), names.len());
                return Err(malformed(format!("expected {rank} dimension_names, found {found}")));
            }
            dims = names.iter().map(|name| name.as_str().map(Into::into)).collect();
        }
        let keys = Keys { prefix, separator };
        Self { shape, chunk, dtype, data_type, fill, dims, keys, codecs }.checked()
    }

    /// Parses `.zarray`; `attrs` is the content of `.zattrs`.
    pub(crate) fn version_2(meta: &Object, attrs: &Object, limits: &Limits) -> Result<Self> {
        let shape = lengths(meta.get("shape"), "shape")?;
        let chunk = lengths(meta.get("chunks"), "chunks")?;
        let Some(data_type) = field(meta, "dtype")?.as_str() else {
            return Err(unsupported("structured data types are not supported"));
        };
        let dtype = type_2(data_type)
            .ok_or_else(|| unsupported(format!("data type {data_type} is not supported")))?;
        let order = match meta.get("order").and_then(Value::as_str) {
            Some("C") | None => Order::C,
            Some("F") => Order::F,
            Some(other) => return Err(malformed(format!("order: expected C or F, found {other}"))),
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
        let codecs = ChunkCodecs { axes, pipeline: Pipeline::new(filters)?, shard: None };
        let separator = separator(meta.get("dimension_separator"), '.')?;
        let keys = Keys { prefix: false, separator };
        let mut dims = vec![None; shape.rank()];
        if let Some(Value::Array(names)) = attrs.get(DIMENSIONS)
            && names.len() == dims.len()
        {
            dims = names.iter().map(|name| name.as_str().map(Into::into)).collect();
        }
        let fill = fill_value(meta.get("fill_value"), dtype, limits)?;
        Self { shape, chunk, dtype, data_type: data_type.into(), fill, dims, keys, codecs }
            .checked()
    }

    fn checked(self) -> Result<Self> {
        let rank = self.shape.rank();
        if self.chunk.rank() != rank || self.chunk.lengths().contains(&0) {
            return Err(malformed(format!(
                "chunk shape {} does not match the array shape {}",
                self.chunk, self.shape
            )));
        }
        if rank > MAX_RANK {
            return Err(unsupported(format!(
                "{rank} dimensions are not supported, at most {MAX_RANK}"
            )));
        }
        self.shape.bytes(self.dtype.size())?;
        self.chunk.bytes(self.dtype.size())?;
        Ok(self)
    }

    /// Number of chunks, or shards, along each dimension.
    pub(crate) fn grid(&self) -> Shape {
        let lengths = self.shape.lengths().iter().zip(self.chunk.lengths());
        Shape::new(lengths.map(|(n, c)| n.div_ceil(*c)).collect::<Vec<_>>())
    }
}

/// The attribute with dimension names in version 2, a convention of xarray.
pub(crate) const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

fn field<'a>(meta: &'a Object, name: &str) -> Result<&'a Value> {
    meta.get(name).ok_or_else(|| malformed(format!("metadata without {name}")))
}

/// Name and configuration of an extension, which may be only a name.
pub(crate) fn name_and_configuration(value: &Value) -> Result<(&str, Object)> {
    if let Some(name) = value.as_str() {
        return Ok((name, Object::new()));
    }
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| malformed("extension without a name"))?;
    let configuration = value.get("configuration").and_then(Value::as_object).cloned();
    Ok((name, configuration.unwrap_or_default()))
}

fn lengths(value: Option<&Value>, what: &str) -> Result<Shape> {
    let list = value.and_then(Value::as_array);
    let lengths = list.and_then(|list| list.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
    lengths
        .map(Shape::new)
        .ok_or_else(|| malformed(format!("{what}: expected a list of non-negative integers")))
}

fn separator(value: Option<&Value>, usual: char) -> Result<char> {
    match value.map(Value::as_str) {
        None => Ok(usual),
        Some(Some("/")) => Ok('/'),
        Some(Some(".")) => Ok('.'),
        _ => Err(malformed("chunk key separator: expected / or .")),
    }
}

/// Parses the codecs of a chunk of shape `chunk`. Also returns the byte order of the elements.
fn parse_codecs(
    list: &[Value],
    chunk: &Shape,
    dtype: DType,
    depth: u32,
) -> Result<(ChunkCodecs, ByteOrder)> {
    let rank = chunk.rank();
    let mut axes: Vec<usize> = (0..rank).collect();
    let (mut order, mut shard, mut filters) = (None, None, Vec::new());
    for codec in list {
        let (name, configuration) = name_and_configuration(codec)?;
        match name {
            "transpose" if order.is_none() => {
                let list = match configuration.get("order") {
                    Some(Value::String(text)) if text == "C" => (0..rank as u64).collect(),
                    Some(Value::String(text)) if text == "F" => (0..rank as u64).rev().collect(),
                    other => lengths(other, "order")?.lengths().to_vec(),
                };
                // Repeated dimensions are an error of core when the array is opened.
                let moved = list.iter().map(|k| axes.get(*k as usize).copied());
                axes = moved
                    .collect::<Option<_>>()
                    .ok_or_else(|| malformed("transpose: dimension out of range"))?;
            }
            "bytes" if order.is_none() => {
                order = Some(match configuration.get("endian").and_then(Value::as_str) {
                    Some("big") => ByteOrder::Big,
                    Some("little") | None => ByteOrder::Little,
                    Some(other) => {
                        return Err(malformed(format!(
                            "endian: expected little or big, found {other}"
                        )));
                    }
                });
            }
            "sharding_indexed" if order.is_none() && depth == 0 => {
                let (inner, own) = Shard::new(&configuration, chunk, dtype, depth)?;
                (shard, order) = (Some(Box::new(inner)), Some(own));
            }
            _ if order.is_some() => filters.push(Filter::version_3(name, &configuration)?),
            other => return Err(unsupported(format!("codec {other} is not supported"))),
        }
    }
    let order =
        order.ok_or_else(|| malformed("codecs: no codec converts the elements to bytes"))?;
    if shard.is_some() && (!filters.is_empty() || !axes.iter().copied().eq(0..rank)) {
        return Err(unsupported("codecs of a complete shard are not supported"));
    }
    Ok((ChunkCodecs { axes, pipeline: Pipeline::new(filters)?, shard }, order))
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
            return Err(malformed(format!(
                "shard shape {outer} is not a multiple of the chunk shape {chunk}"
            )));
        }
        let list = |name: &str| {
            let list = configuration.get(name).and_then(Value::as_array);
            list.ok_or_else(|| malformed(format!("{name}: expected a list")))
        };
        let (codecs, own) = parse_codecs(list("codecs")?, &chunk, dtype, depth + 1)?;
        let (mut order, mut checked) = (ByteOrder::Little, false);
        for codec in list("index_codecs")? {
            match name_and_configuration(codec)? {
                ("bytes", index) if index.get("endian").and_then(Value::as_str) == Some("big") => {
                    order = ByteOrder::Big;
                }
                ("bytes", _) => {}
                ("crc32c", _) => checked = true,
                (other, _) => {
                    return Err(unsupported(format!("index codec {other} is not supported")));
                }
            }
        }
        let at_start = match configuration.get("index_location").and_then(Value::as_str) {
            Some("start") => true,
            Some("end") | None => false,
            Some(other) => {
                return Err(malformed(format!(
                    "index_location: expected start or end, found {other}"
                )));
            }
        };
        Ok((Self { chunk, codecs, at_start, checked, order }, own))
    }
}

/// An attribute value as JSON. Complex numbers are lists of two, bytes their text form.
pub(crate) fn to_json(value: &tree::Value) -> Value {
    match value {
        tree::Value::Bool(v) => (*v).into(),
        tree::Value::Int(v) => (*v).into(),
        tree::Value::UInt(v) => (*v).into(),
        tree::Value::Float(v) => float_to_json(*v),
        tree::Value::Complex(re, im) => vec![float_to_json(*re), float_to_json(*im)].into(),
        tree::Value::Text(v) => v.as_str().into(),
        tree::Value::Bytes(_) => value.to_string().into(),
        tree::Value::List(v) => v.iter().map(to_json).collect::<Vec<_>>().into(),
    }
}

/// A float as JSON; `NaN`, `Infinity` and `-Infinity` are strings.
fn float_to_json(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(
        || {
            let name = match value {
                f64::INFINITY => "Infinity",
                f64::NEG_INFINITY => "-Infinity",
                _ => "NaN",
            };
            name.into()
        },
        Value::Number,
    )
}
