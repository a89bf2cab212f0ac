//! On-disk structures: lead-in, objects, raw data indices, properties.

use spile_core::wire::fetch;
use spile_core::{ByteOrder, DType, Error, Kind, Result, Source, Value, Wire};

/// Type of DAQmx values whose type is that of their scalers.
const RAW_DAQMX: u32 = u32::MAX;

/// Size of a lead-in in bytes.
pub(crate) const LEAD_IN: u64 = 28;

/// Bits of the table of contents of a segment.
const META_DATA: u32 = 1 << 1;
const NEW_OBJECTS: u32 = 1 << 2;
const RAW_DATA: u32 = 1 << 3;
const INTERLEAVED: u32 = 1 << 5;
const BIG_ENDIAN: u32 = 1 << 6;

/// Start of a segment.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Bits of the table of contents.
pub(crate) struct LeadIn {
    pub(crate) order: ByteOrder,
    pub(crate) has_metadata: bool,
    pub(crate) new_objects: bool,
    pub(crate) has_data: bool,
    pub(crate) interleaved: bool,
    /// Bytes from the end of the lead-in to the next segment; `None` if the writer did not complete the segment.
    pub(crate) len: Option<u64>,
    /// Bytes from the end of the lead-in to the raw data.
    pub(crate) data: u64,
}

impl LeadIn {
    pub(crate) fn read(source: &Source, at: u64) -> Result<Self> {
        let bytes = fetch(source, at, LEAD_IN as usize)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "tdms-002");
        match wire.take(4)? {
            b"TDSm" => {}
            b"TDSh" => {
                let message = "this is an index file (.tdms_index) without values";
                let error = Error::unsupported("tdms-003", message).at(at);
                return Err(error.hint("open the file with the extension .tdms"));
            }
            _ if at == 0 => {
                let message = "expected \"TDSm\" at the start of the file";
                return Err(Error::not_this_format("tdms-001", message).at(0));
            }
            _ => {
                let message = "expected a segment that starts with \"TDSm\"";
                return Err(Error::malformed("tdms-004", message).at(at));
            }
        }
        let contents = wire.u32()?;
        let has = |bit: u32| contents & bit != 0;
        let order = if has(BIG_ENDIAN) { ByteOrder::Big } else { ByteOrder::Little };
        let mut wire = Wire::new(bytes.get(8..).unwrap_or_default(), at + 8, order, "tdms-002");
        wire.skip(4)?; // Version: 4712 or 4713.
        let (len, data) = (wire.u64()?, wire.u64()?);
        Ok(Self {
            order,
            has_metadata: has(META_DATA),
            new_objects: has(NEW_OBJECTS),
            has_data: has(RAW_DATA),
            interleaved: has(INTERLEAVED),
            len: Some(len).filter(|len| *len != u64::MAX),
            data,
        })
    }
}

/// Type of values or of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A type with elements of a constant size.
    Plain(DType),
    Text,
    Time,
    Void,
}

impl Type {
    /// The type of a number in the file; `None` if it is not supported.
    pub(crate) fn of(number: u32, order: ByteOrder) -> Option<Self> {
        let plain = |dtype: DType| Some(Self::Plain(dtype.with_order(order)));
        match number {
            0 => Some(Self::Void),
            1 => plain(DType::I8),
            2 => plain(DType::I16),
            3 => plain(DType::I32),
            4 => plain(DType::I64),
            5 => plain(DType::U8),
            6 => plain(DType::U16),
            7 => plain(DType::U32),
            8 => plain(DType::U64),
            9 | 0x19 => plain(DType::F32),
            10 | 0x1a => plain(DType::F64),
            0x20 => Some(Self::Text),
            0x21 => DType::new(Kind::Bool, 1, order).and_then(plain),
            0x44 => Some(Self::Time),
            0x08_000c => DType::new(Kind::Complex, 8, order).and_then(plain),
            0x10_000d => DType::new(Kind::Complex, 16, order).and_then(plain),
            _ => None,
        }
    }

    /// Size of a value in bytes; `None` for text.
    pub(crate) fn size(self) -> Option<u64> {
        match self {
            Self::Plain(dtype) => Some(dtype.size() as u64),
            Self::Time => Some(16),
            Self::Void => Some(0),
            Self::Text => None,
        }
    }
}

/// Where a DAQmx channel is in the rows of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scaler {
    pub(crate) dtype: DType,
    pub(crate) buffer: u32,
    /// Offset in a row in bytes.
    pub(crate) offset: u64,
    /// Bit of the value, for digital lines.
    pub(crate) bit: Option<u8>,
    /// Number of the scale that stands for the stored values.
    pub(crate) scale: u32,
}

/// Raw data index: the values of a channel in each chunk of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) kind: Type,
    pub(crate) count: u64,
    /// Bytes of all values of text.
    pub(crate) text_bytes: u64,
    pub(crate) daqmx: Option<Daqmx>,
}

/// Index of a DAQmx channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Daqmx {
    pub(crate) scalers: Vec<Scaler>,
    /// Bytes of a row of each buffer.
    pub(crate) widths: Vec<u64>,
}

/// What a segment says about the values of an object.
pub(crate) enum Values {
    None,
    /// As in the segment before.
    Same,
    Index(Index),
    /// Values that cannot be read, and why.
    Unsupported(String),
}

/// An object of the metadata of a segment.
pub(crate) struct Object {
    pub(crate) path: String,
    pub(crate) values: Values,
    pub(crate) properties: Vec<(String, Value)>,
}

/// Length of a text in bytes, then the text. Fails if it exceeds the metadata.
fn text(wire: &mut Wire<'_>) -> Result<String> {
    let len = wire.u32()? as usize;
    let bytes = wire.take(len)?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

impl Object {
    pub(crate) fn read(wire: &mut Wire<'_>, order: ByteOrder) -> Result<Self> {
        let path = text(wire)?;
        let values = match wire.u32()? {
            u32::MAX => Values::None,
            0 => Values::Same,
            kind @ (0x1269 | 0x126a) => daqmx(wire, kind == 0x126a, order)?,
            _ => plain(wire, order)?,
        };
        let count = wire.u32()?;
        let mut properties = Vec::new();
        for _ in 0..count {
            properties.push(property(wire, order)?);
        }
        Ok(Self { path, values, properties })
    }
}

/// The index of a channel with values of one type.
fn plain(wire: &mut Wire<'_>, order: ByteOrder) -> Result<Values> {
    let number = wire.u32()?;
    let dimensions = wire.u32()?;
    let count = wire.u64()?;
    let kind = Type::of(number, order);
    let text_bytes = if kind == Some(Type::Text) { wire.u64()? } else { 0 };
    Ok(match kind {
        Some(kind) if dimensions == 1 => {
            Values::Index(Index { kind, count, text_bytes, daqmx: None })
        }
        Some(_) => Values::Unsupported(format!("values of {dimensions} dimensions")),
        None => Values::Unsupported(format!("values of type {number:#x}")),
    })
}

/// The index of a DAQmx channel: its scalers, and the widths of the buffers.
fn daqmx(wire: &mut Wire<'_>, digital: bool, order: ByteOrder) -> Result<Values> {
    let number = wire.u32()?;
    wire.skip(4)?; // Number of dimensions.
    let count = wire.u64()?;
    let declared = wire.u32()?;
    let mut scalers = Vec::new();
    let mut unknown = None;
    for _ in 0..declared {
        let (kind, buffer, offset) = (wire.u32()?, wire.u32()?, wire.u32()?);
        wire.skip(if digital { 1 } else { 4 })?; // Sample format.
        let scale = wire.u32()?;
        let dtype = match kind {
            0 => DType::U8,
            1 => DType::I8,
            2 => DType::U16,
            3 => DType::I16,
            4 => DType::U32,
            5 => DType::I32,
            6 => DType::U64,
            7 => DType::I64,
            8 => DType::F32,
            9 => DType::F64,
            u32::MAX => DType::opaque(16),
            other => {
                unknown = Some(format!("DAQmx values of type {other}"));
                DType::U8
            }
        };
        let dtype = dtype.with_order(order);
        scalers.push(if digital {
            // The lowest byte has the bits of the line.
            let last = if order == ByteOrder::Big { dtype.size() as u64 - 1 } else { 0 };
            let (offset, bit) = (u64::from(offset / 8) + last, Some((offset % 8) as u8));
            Scaler { dtype: DType::U8, buffer, offset, bit, scale }
        } else {
            Scaler { dtype, buffer, offset: offset.into(), bit: None, scale }
        });
    }
    let buffers = wire.u32()?;
    let mut widths = Vec::new();
    for _ in 0..buffers {
        widths.push(u64::from(wire.u32()?));
    }
    // Values are those of the scalers, or have a type of their own.
    let kind = match (number, &scalers[..]) {
        (RAW_DAQMX, [first, ..]) => Type::Plain(first.dtype),
        (_, [first]) => match Type::of(number, order) {
            Some(kind) if kind.size() == Some(first.dtype.size() as u64) => kind,
            _ => return Ok(Values::Unsupported(format!("DAQmx values of type {number:#x}"))),
        },
        (_, all) => {
            return Ok(Values::Unsupported(format!("a DAQmx channel with {} scalers", all.len())));
        }
    };
    if let Some(unknown) = unknown {
        return Ok(Values::Unsupported(unknown));
    }
    let daqmx = Some(Daqmx { scalers, widths });
    Ok(Values::Index(Index { kind, count, text_bytes: 0, daqmx }))
}

/// Name and value of a property.
fn property(wire: &mut Wire<'_>, order: ByteOrder) -> Result<(String, Value)> {
    let name = text(wire)?;
    let at = wire.offset();
    let number = wire.u32()?;
    let value = match Type::of(number, order) {
        Some(Type::Text) => Value::from(text(wire)?),
        Some(Type::Time) => crate::values::iso_time(wire.take(16)?, order).into(),
        Some(Type::Plain(dtype)) => match (dtype.kind(), dtype.size()) {
            (Kind::Int, 1) => i64::from(wire.i8()?).into(),
            (Kind::Int, 2) => i64::from(wire.i16()?).into(),
            (Kind::Int, 4) => i64::from(wire.i32()?).into(),
            (Kind::Int, _) => wire.i64()?.into(),
            (Kind::UInt, 1) => u64::from(wire.u8()?).into(),
            (Kind::UInt, 2) => u64::from(wire.u16()?).into(),
            (Kind::UInt, 4) => u64::from(wire.u32()?).into(),
            (Kind::UInt, _) => wire.u64()?.into(),
            (Kind::Float, 4) => f64::from(wire.f32()?).into(),
            (Kind::Float, _) => wire.f64()?.into(),
            (Kind::Bool, _) => (wire.u8()? != 0).into(),
            (_, 8) => Value::Complex(wire.f32()?.into(), wire.f32()?.into()),
            _ => Value::Complex(wire.f64()?, wire.f64()?),
        },
        Some(Type::Void) | None => {
            // Its length is unknown, so the rest of the metadata cannot be read.
            let message = format!("property \"{name}\" has the unsupported type {number:#x}");
            return Err(Error::unsupported("tdms-005", message).at(at));
        }
    };
    Ok((name, value))
}

/// Parts of an object path such as `/'group'/'channel'`, in which a quote is doubled; `None` if it is not one.
pub(crate) fn path_parts(path: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = path.trim_end_matches('/');
    while !rest.is_empty() {
        rest = rest.strip_prefix("/'")?;
        let mut part = String::new();
        loop {
            let (before, after) = rest.split_once('\'')?;
            part.push_str(before);
            if let Some(after) = after.strip_prefix('\'') {
                part.push('\'');
                rest = after;
            } else {
                rest = after;
                break;
            }
        }
        parts.push(part);
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_paths_have_quoted_parts() {
        let parts = |path: &str| path_parts(path);
        assert_eq!(parts("/"), Some(vec![]));
        assert_eq!(parts("/'a'/'b/c'"), Some(vec!["a".into(), "b/c".into()]));
        assert_eq!(parts("/'it''s'"), Some(vec!["it's".into()]));
        assert_eq!(parts("/'a"), None);
        assert_eq!(parts("a"), None);
    }
}
