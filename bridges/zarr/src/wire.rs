//! Metadata documents: `zarr.json` of version 3, `.zarray`, `.zgroup` and `.zattrs` of version 2.

mod data_type;
mod extension;
mod fill;
mod keys;

use serde_json::{Map, Value};
use spile_codecs::{Pipeline, Step};
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::tree;
use spile_core::wire::ByteOrder;

use crate::codec::{depends_on_order, step};
pub(crate) use data_type::{
    DataType, Element, Field, Time, numpy_element, type_name_3, zero_fill_3,
};
use data_type::{type_2, type_3};
use extension::must_be_understood;
pub(crate) use extension::name_and_configuration;
use fill::fill_value;
pub(crate) use keys::Keys;

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
    pub(crate) data_type: DataType,
    /// The data type as the metadata name it.
    pub(crate) type_name: String,
    /// The fill value as it would be stored; the text of elements of variable length.
    pub(crate) fill: Vec<u8>,
    /// The fill value is also a missing value, by the convention of xarray for version 2.
    pub(crate) fill_is_missing: bool,
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
    /// Elements have a variable length.
    pub(crate) is_variable: bool,
}

impl ChunkCodecs {
    /// The codecs of a chunk that is in addition a deflated member of a zip archive.
    pub(crate) fn inflated(&self) -> Self {
        Self { pipeline: self.pipeline.then(Step::Deflate), ..self.clone() }
    }
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

/// An error about invalid metadata.
pub(crate) fn malformed(message: impl Into<String>) -> Error {
    Error::malformed("zarr-002", message)
}

/// An error about valid metadata that are not supported.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("zarr-003", message)
}

/// Before `NaN`, `Infinity` or `-Infinity` in strings that stand for these numbers.
pub(crate) const NOT_FINITE: char = '\0';

/// Parses a metadata document. The numbers `NaN`, `Infinity` and `-Infinity`, which Python writes although they are
/// not JSON, become strings with [`NOT_FINITE`] before the name.
pub(crate) fn parse_object(text: &[u8]) -> Result<Object> {
    let parsed = serde_json::from_slice(text);
    let parsed = parsed.or_else(|e| match quote_not_finite(text) {
        Some(quoted) => serde_json::from_slice(&quoted),
        None => Err(e),
    });
    match parsed {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(malformed("metadata: expected a JSON object")),
        Err(e) => Err(malformed(format!("metadata: invalid JSON: {e}"))),
    }
}

/// The text with numbers that are not finite as strings; `None` if there are none.
fn quote_not_finite(text: &[u8]) -> Option<Vec<u8>> {
    let mut quoted = Vec::with_capacity(text.len() + 64);
    let (mut k, mut in_string, mut found) = (0, false, false);
    while let Some(byte) = text.get(k) {
        let rest = &text[k..];
        let names: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
        if let Some(name) = names.into_iter().find(|name| !in_string && rest.starts_with(name)) {
            quoted.extend_from_slice(b"\"\\u0000");
            quoted.extend_from_slice(name);
            quoted.push(b'"');
            (k, found) = (k + name.len(), true);
            continue;
        }
        if *byte == b'\\' && in_string {
            quoted.push(*byte);
            k += 1;
        }
        in_string ^= *byte == b'"';
        quoted.extend(text.get(k));
        k += 1;
    }
    found.then_some(quoted)
}

impl ArrayMeta {
    /// Parses `zarr.json` of an array.
    pub(crate) fn version_3(meta: &Object, limits: &Limits) -> Result<Self> {
        must_be_understood(meta)?;
        let shape = lengths(meta.get("shape"), "shape")?;
        let (type_name, data_type) = type_3(field(meta, "data_type")?)?;
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
        let parser = CodecParser { dtype: data_type.dtype(), limits };
        let (codecs, order) = parser.codecs(codecs, &chunk, 0)?;
        let data_type = data_type.with_order(order);
        let fill = fill_value(meta.get("fill_value"), &data_type, limits)?;
        let (rank, dims) = (shape.rank(), dimension_names(meta.get("dimension_names")));
        let dims = dims.unwrap_or_else(|| vec![None; rank]);
        if dims.len() != rank {
            let found = dims.len();
            return Err(malformed(format!("expected {rank} dimension_names, found {found}")));
        }
        let keys = Keys { prefix, separator };
        let fill_is_missing = false;
        Self { shape, chunk, data_type, type_name, fill, fill_is_missing, dims, keys, codecs }
            .checked()
    }

    /// Parses `.zarray`; `attrs` is the content of `.zattrs`.
    pub(crate) fn version_2(meta: &Object, attrs: &Object, limits: &Limits) -> Result<Self> {
        let shape = lengths(meta.get("shape"), "shape")?;
        let chunk = lengths(meta.get("chunks"), "chunks")?;
        let dtype = field(meta, "dtype")?;
        let type_name = dtype.as_str().map_or_else(|| dtype.to_string(), Into::into);
        let filters = meta.get("filters").and_then(Value::as_array).into_iter().flatten();
        let compressor = meta.get("compressor").filter(|c| !c.is_null());
        let mut codecs = filters.chain(compressor).peekable();
        let id = |codec: &Value| codec.get("id").and_then(Value::as_str).unwrap_or("").to_string();
        let data_type = if type_name == "|O" {
            let is_text = match codecs.next().map(id).as_deref() {
                Some("vlen-utf8") => true,
                Some("vlen-bytes") => false,
                Some(other) => {
                    return Err(unsupported(format!(
                        "objects encoded by {other} are not supported"
                    )));
                }
                None => return Err(unsupported("objects without a codec are not supported")),
            };
            DataType::Variable { is_text }
        } else {
            type_2(dtype)?
        };
        let order = match meta.get("order").and_then(Value::as_str) {
            Some("C") | None => Order::C,
            Some("F") => Order::F,
            Some(other) => return Err(malformed(format!("order: expected C or F, found {other}"))),
        };
        let axes = order.slowest_first(shape.rank());
        let mut steps = Vec::new();
        for codec in codecs {
            let name = codec.get("id").and_then(Value::as_str);
            let name = name.ok_or_else(|| malformed("filter without an id"))?;
            let configuration = codec.as_object().cloned().unwrap_or_default();
            steps.extend(step(name, &configuration, data_type.dtype())?);
        }
        let pipeline = Pipeline::chained(steps, "zarr-005", limits.memory / 4);
        let is_variable = matches!(data_type, DataType::Variable { .. });
        let codecs = ChunkCodecs { axes, pipeline, shard: None, is_variable };
        let separator = separator(meta.get("dimension_separator"), '.')?;
        let keys = Keys { prefix: false, separator };
        let dims = dimension_names(attrs.get(DIMENSIONS)).filter(|d| d.len() == shape.rank());
        let stored_fill = meta.get("fill_value").filter(|value| !value.is_null());
        let fill_is_missing = dims.is_some() && stored_fill.is_some();
        let dims = dims.unwrap_or_else(|| vec![None; shape.rank()]);
        let fill = fill_value(stored_fill, &data_type, limits)?;
        Self { shape, chunk, data_type, type_name, fill, fill_is_missing, dims, keys, codecs }
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
        let size = self.data_type.size().max(1);
        self.shape.bytes(size)?;
        self.chunk.bytes(size)?;
        let mut inner = &self.codecs;
        while let Some(shard) = &inner.shard {
            inner = &shard.codecs;
        }
        if inner.is_variable != matches!(self.data_type, DataType::Variable { .. }) {
            let name = &self.type_name;
            return Err(malformed(format!("the codecs do not fit the data type {name}")));
        }
        Ok(self)
    }

    /// The shards, if each chunk of them can be read separately: other codecs change only the chunks in them.
    pub(crate) fn simple_shard(&self) -> Option<&Shard> {
        let ChunkCodecs { axes, pipeline, shard, .. } = &self.codecs;
        let is_simple = axes.iter().copied().eq(0..axes.len()) && pipeline.is_empty();
        shard.as_deref().filter(|shard| is_simple && shard.codecs.shard.is_none())
    }

    /// Shape and codecs of the chunks that are read separately.
    pub(crate) fn inner(&self) -> (&Shape, &ChunkCodecs) {
        match self.simple_shard() {
            Some(shard) => (&shard.chunk, &shard.codecs),
            None => (&self.chunk, &self.codecs),
        }
    }

    /// Number of chunks, or shards, along each dimension.
    pub(crate) fn grid(&self) -> Shape {
        let lengths = self.shape.lengths().iter().zip(self.chunk.lengths());
        Shape::new(lengths.map(|(n, c)| n.div_ceil(*c)).collect::<Vec<_>>())
    }
}

/// The attribute with dimension names in version 2, a convention of xarray.
pub(crate) const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// A list of names, some of which may be null; `None` for other values.
fn dimension_names(value: Option<&Value>) -> Option<Vec<Option<String>>> {
    let names = value?.as_array()?.iter();
    Some(names.map(|name| name.as_str().map(Into::into)).collect())
}

fn field<'a>(meta: &'a Object, name: &str) -> Result<&'a Value> {
    meta.get(name).ok_or_else(|| malformed(format!("metadata without {name}")))
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

/// Deepest nesting of shards.
const MAX_SHARDS: u32 = 4;

/// Parses the codecs of an array of elements of type `dtype`.
struct CodecParser<'a> {
    dtype: DType,
    limits: &'a Limits,
}

impl CodecParser<'_> {
    /// The codecs of a chunk of shape `chunk`, and the byte order of the elements.
    fn codecs(
        &self,
        list: &[Value],
        chunk: &Shape,
        depth: u32,
    ) -> Result<(ChunkCodecs, ByteOrder)> {
        let rank = chunk.rank();
        let mut axes: Vec<usize> = (0..rank).collect();
        let (mut order, mut shard, mut is_variable) = (None, None, false);
        let (mut filters, mut steps) = (Vec::new(), Vec::new());
        for codec in list {
            let (name, configuration) = name_and_configuration(codec)?;
            match name {
                "transpose" if order.is_none() => {
                    let list = match configuration.get("order") {
                        Some(Value::String(text)) if text == "C" => (0..rank as u64).collect(),
                        Some(Value::String(text)) if text == "F" => {
                            (0..rank as u64).rev().collect()
                        }
                        other => lengths(other, "order")?.lengths().to_vec(),
                    };
                    let moved = list.iter().map(|k| axes.get(*k as usize).copied());
                    axes = moved
                        .collect::<Option<_>>()
                        .ok_or_else(|| malformed("transpose: dimension out of range"))?;
                    let mut sorted = axes.clone();
                    sorted.sort_unstable();
                    if !sorted.into_iter().eq(0..rank) {
                        return Err(malformed("transpose: expected each dimension once"));
                    }
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
                "vlen-utf8" | "vlen-bytes" if order.is_none() => {
                    (order, is_variable) = (Some(ByteOrder::Little), true);
                }
                "sharding_indexed" if order.is_none() && depth < MAX_SHARDS => {
                    let outer: Vec<u64> = axes.iter().map(|axis| chunk.lengths()[*axis]).collect();
                    let (inner, own) = self.shard(&configuration, &Shape::new(outer), depth)?;
                    (shard, order) = (Some(Box::new(inner)), Some(own));
                }
                _ => {
                    let name = name.strip_prefix("numcodecs.").unwrap_or(name);
                    let step = step(name, &configuration, self.dtype)?;
                    let is_filter = matches!(step, Some(Step::Numeric(_)));
                    if is_filter != order.is_none() && step.is_some() {
                        return Err(unsupported(format!(
                            "codec {name} in this place of the codecs is not supported"
                        )));
                    }
                    if is_filter { filters.extend(step) } else { steps.extend(step) }
                }
            }
        }
        let order =
            order.ok_or_else(|| malformed("codecs: no codec converts the elements to bytes"))?;
        let is_moved = !axes.iter().copied().eq(0..rank);
        if filters.iter().any(|step| shard.is_some() || is_moved && depends_on_order(*step)) {
            return Err(unsupported("filters of transposed or sharded elements are not supported"));
        }
        let filters = filters.into_iter().map(|step| match step {
            Step::Numeric(filter) => Step::Numeric(filter.with_order(order)),
            other => other,
        });
        let steps = filters.chain(steps).collect();
        let pipeline = Pipeline::chained(steps, "zarr-005", self.limits.memory / 4);
        Ok((ChunkCodecs { axes, pipeline, shard, is_variable }, order))
    }

    /// The shards of shape `outer`, and the byte order of the elements.
    fn shard(
        &self,
        configuration: &Object,
        outer: &Shape,
        depth: u32,
    ) -> Result<(Shard, ByteOrder)> {
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
        let (codecs, own) = self.codecs(list("codecs")?, &chunk, depth + 1)?;
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
        Ok((Shard { chunk, codecs, at_start, checked, order }, own))
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
