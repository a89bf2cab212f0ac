//! Type, shape and layout of the data of an element, from its tag and length.

use std::sync::Arc;

use spile_core::{
    ArrayDesc, ByteOrder, Codec, DType, Dataset, Error, ErrorKind, Extents, Layout, Order, Report,
    Result, Shape,
};

use crate::event::{Data, Form};
use crate::scalar::Scalar;
use crate::text_codec::{Escapes, Numbers, Strings, integer_kind};
use crate::tokens::tokens;
use crate::wire::{Tag, Type};

/// Description of the data of an element.
#[derive(Clone, Debug)]
pub struct ElementData {
    /// Fortran type; `None` if the tag has no type.
    pub kind: Option<Type>,
    /// Type, shape and layout of the elements.
    pub array: ArrayDesc,
    /// A deviation from the format that loses no data: code and message.
    pub warning: Option<(&'static str, String)>,
    /// Why the data do not match the tag: code and message. `array` has the stored bytes then.
    pub fault: Option<(&'static str, String)>,
}

impl ElementData {
    fn new(kind: Option<Type>, array: ArrayDesc) -> Self {
        Self { kind, array, warning: None, fault: None }
    }

    /// Adds warning and fault to `report`.
    pub(crate) fn report(&self, offset: u64, report: &mut Report) {
        if let Some((code, message)) = &self.warning {
            report.warn(code, message).at(offset);
        }
        if let Some((code, message)) = &self.fault {
            report.error(code, message).at(offset);
        }
    }

    /// Fails with the fault, if there is one.
    pub fn checked(self) -> Result<Self> {
        match self.fault {
            Some((code, message)) => Err(Error::malformed(code, message)),
            None => Ok(self),
        }
    }
}

/// Reals in text that are too large for their kind, or for the field that they were printed in (`***`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// An error of the element.
    Error,
    /// Infinity, or NaN for `***`, so that the other values can be read.
    Infinity,
}

/// Describes the data, in the file of `bytes`, of the element that begins with `tag`. Overflow is an error.
pub(crate) fn describe_data(
    tag: &Tag,
    kind: Option<Type>,
    data: &Data,
    form: Form,
    bytes: &Dataset,
) -> Result<ElementData> {
    describe_data_with(tag, kind, data, (form, Overflow::Error), bytes)
}

/// [`describe_data`] with a rule for overflow.
pub(crate) fn describe_data_with(
    tag: &Tag,
    kind: Option<Type>,
    data: &Data,
    (form, overflow): (Form, Overflow),
    bytes: &Dataset,
) -> Result<ElementData> {
    let described = match form {
        Form::Binary(framing) => binary(tag, kind, data, framing.order),
        Form::Text => text(tag, kind, data, overflow, bytes),
    };
    match described {
        // Data that do not match the tag are bytes.
        Err(error) if error.kind() == ErrorKind::Malformed => {
            let fault = Some((error.code(), error.message().to_string()));
            Ok(ElementData { fault, ..ElementData::new(kind, stored_bytes(&data.extents)) })
        }
        other => other.map_err(|e| e.at(data.offset())),
    }
}

/// An array of the bytes in `extents`.
pub(crate) fn stored_bytes(extents: &Extents) -> ArrayDesc {
    let layout = Layout::Plain { extents: extents.clone(), order: Order::F };
    ArrayDesc::new(DType::opaque(1), Shape::new([extents.len()]), layout)
}

/// The number of elements and shape declared by a tag: `size`, or `n1`, `n2`, ...
fn declared_shape(tag: &Tag) -> Result<Option<(u64, Shape)>> {
    let shape = match (tag.get_u64("size"), tag.get_u64("rank")) {
        (Some(size), _) => Shape::new([size]),
        (None, Some(rank @ 1..=7)) => {
            let lengths: Option<Vec<u64>> =
                (1..=rank).map(|k| tag.get_u64(&format!("n{k}"))).collect();
            let Some(lengths) = lengths else { return Ok(None) };
            Shape::new(lengths)
        }
        (None, None) if tag.get_raw("type").is_none() => Shape::scalar(),
        _ => return Ok(None),
    };
    let message = || format!("{shape} elements exceed the largest possible file");
    let count = shape.count().ok_or_else(|| Error::malformed("iotk-010", message()))?;
    Ok(Some((count, shape)))
}

/// Packed elements (IOTK binary files, section 3). If the kind and the length of the record disagree, the record
/// decides: the numbering of kinds depends on the compiler.
fn binary(tag: &Tag, kind: Option<Type>, data: &Data, order: ByteOrder) -> Result<ElementData> {
    let len = data.extents.len();
    let mut array = stored_bytes(&data.extents);
    let Some(kind) = kind else {
        if let Ok(len) = u32::try_from(len) {
            array = ArrayDesc::new(DType::text(len), Shape::new([1]), array.layout);
        }
        return Ok(ElementData::new(None, array));
    };
    let declared = if kind == Type::Character { tag.get_u64("len") } else { tag.get_u64("kind") };
    let by_kind = declared.and_then(|k| kind.dtype(k, order));
    let shape = declared_shape(tag)?;
    let count = match (&shape, by_kind) {
        (Some((count, _)), _) => *count,
        (None, Some(dtype)) => len / dtype.size().max(1) as u64,
        (None, None) => 1,
    };
    let by_record = (count > 0 && len.is_multiple_of(count))
        .then(|| len / count)
        .and_then(|size| Some((size, kind.kind_of_size(size)?)))
        .and_then(|(size, k)| {
            // Two kinds have sixteen bytes; the tag decides.
            let same = by_kind.filter(|dtype| dtype.size() as u64 == size);
            same.or_else(|| kind.dtype(k, order))
        });
    let mut warning = None;
    let dtype = match (by_kind, by_record) {
        // Strings have the length in the tag; the rest of a longer record is ignored.
        (Some(dtype), _) if kind == Type::Character => dtype,
        (Some(by_kind), Some(by_record)) if by_kind == by_record => by_kind,
        (_, Some(by_record)) => {
            let kind = declared.map_or("no kind".to_string(), |k| format!("kind {k}"));
            let message = format!("the tag has {kind}, the record has {by_record} elements");
            warning = Some(("iotk-034", message));
            by_record
        }
        (Some(by_kind), None) => by_kind,
        (None, None) => {
            let (name, given) = (kind.name(), declared.unwrap_or(0));
            let message =
                format!("expected {count} elements of {name} kind {given}, found {len} bytes");
            return Err(Error::malformed("iotk-011", message));
        }
    };
    let shape = shape.map_or_else(|| Shape::new([count]), |(_, shape)| shape);
    let needed = shape.bytes(dtype.size())?;
    if needed > len {
        let message =
            format!("expected {needed} bytes for {count} elements of {dtype}, found {len}");
        return Err(Error::malformed("iotk-011", message));
    }
    if needed < len {
        let message = format!("expected a record of {needed} bytes, found {len}");
        warning.get_or_insert(("iotk-035", message));
    }
    let array = ArrayDesc::new(dtype, shape, array.layout);
    Ok(ElementData { warning, ..ElementData::new(Some(kind), array) })
}

/// Numbers or strings as text, which is parsed on reading.
fn text(
    tag: &Tag,
    kind: Option<Type>,
    data: &Data,
    overflow: Overflow,
    bytes: &Dataset,
) -> Result<ElementData> {
    let extents = &data.extents;
    let formatted = tag.get_raw("fmt").is_some();
    let load = || -> Result<Vec<u8>> {
        bytes.limits().allow(data.extents.len(), "the text of an element")?;
        let mut text = Vec::new();
        for part in data.extents.parts() {
            text.extend_from_slice(&bytes.source().read_vec(part.offset, part.len)?);
        }
        Ok(text)
    };
    let base = data.offset();
    let make = |kind, dtype, shape, codec: Arc<dyn Codec>| {
        let layout = Layout::EncodedWhole { extents: extents.clone(), codec, order: Order::F };
        ElementData::new(kind, ArrayDesc::new(dtype, shape, layout))
    };
    let number = kind.filter(|kind| *kind != Type::Character);
    let Some(number) = number else {
        if kind.is_none() && data.extents.len() > bytes.limits().memory {
            return Ok(ElementData::new(None, stored_bytes(extents)));
        }
        let escapes =
            if formatted { Escapes::None } else { Escapes::Outside(data.literal.clone()) };
        let declared = kind.map_or(Ok(None), |_| declared_shape(tag))?;
        let (count, shape) = declared.unwrap_or((1, Shape::new([1])));
        let len = match tag.get_u64("len").filter(|_| kind.is_some()) {
            Some(len) => len,
            None => escapes.longest(&load()?, count),
        };
        let len = u32::try_from(len).map_err(|_| {
            Error::malformed("iotk-010", format!("strings of {len} bytes are too long"))
        })?;
        let codec =
            Strings { len: len as usize, escapes, star: tag.get_raw("fmt") == Some(b"*"), base };
        return Ok(make(kind, DType::text(len), shape, Arc::new(codec)));
    };
    // `spile_kind` is the kind if the tag has the number of another compiler.
    let named = tag.get_u64("spile_kind").or_else(|| tag.get_u64("kind"));
    let given = named.and_then(|k| number.dtype(k, ByteOrder::Little));
    // Text without a kind is read as the kind that it gets in a binary file.
    let dtype = match (given, number) {
        (Some(dtype), _) => Some(dtype),
        (None, Type::Integer) => number.dtype(integer_kind(bytes, data)?, ByteOrder::Little),
        (None, Type::Logical) => number.dtype(4, ByteOrder::Little),
        (None, _) => number.dtype(8, ByteOrder::Little),
    };
    let Some((dtype, (scalar, components))) = dtype.and_then(|d| Some((d, Scalar::of(d)?))) else {
        return Err(Error::malformed("iotk-021", "unknown kind"));
    };
    let width = tag.get_raw("fmt").and_then(field_width);
    let shape = match declared_shape(tag)? {
        // A number has at least one character.
        Some((count, _)) if count.saturating_mul(components as u64) > data.extents.len() => {
            let message = format!("expected {count} numbers, found {} bytes", data.extents.len());
            return Err(Error::malformed("iotk-013", message));
        }
        Some((_, shape)) => shape,
        None => Shape::new([tokens(&load()?).count() as u64 / components as u64]),
    };
    let overflow = overflow == Overflow::Infinity;
    let codec = Numbers { scalar, width, base, overflow, parts: data.extents.parts().len() };
    Ok(make(Some(number), dtype, shape, Arc::new(codec)))
}

/// The field width of a format with one repeated descriptor, such as `(3f8.3)`. Such fields may have
/// no blanks between them.
fn field_width(format: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(format).ok()?.trim();
    let text = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let letters = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let descriptors = ["i", "f", "e", "es", "en", "d", "g", "l"];
    if !descriptors.iter().any(|word| text[..letters].eq_ignore_ascii_case(word)) {
        return None;
    }
    let rest = &text[letters..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let tail = &rest[end..];
    let simple = tail.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E'));
    rest[..end].parse().ok().filter(|width| simple && *width > 0)
}
