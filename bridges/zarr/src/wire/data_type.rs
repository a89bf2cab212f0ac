//! Data types and fill values.

use serde_json::Value;
use spile_core::convert::swap;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::wire::ByteOrder;

use super::{malformed, name_and_configuration, unsupported};

/// A data type of version 3: its name and the element type, little-endian.
pub(super) fn type_3(value: &Value) -> Result<(String, DType)> {
    let (name, configuration) = name_and_configuration(value)?;
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
    Ok((name.to_string(), found))
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

/// The element type that is read again after `dtype` was written; `None` for elements of 0 bytes.
pub(crate) fn stored_type(dtype: DType) -> Option<DType> {
    type_3(&type_name_3(dtype)?).ok().map(|(_, dtype)| dtype)
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

/// A data type in the notation of NumPy; `None` if it is not supported.
pub(super) fn type_2(name: &str) -> Option<DType> {
    let order = if name.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    match name.get(1..2)? {
        // Times are 64-bit integers; a character has four bytes.
        "M" | "m" => DType::new(Kind::Int, 8, order),
        "U" => Some(DType::opaque(name[2..].parse::<u32>().ok()?.checked_mul(4)?)),
        _ => DType::from_numpy(name),
    }
}

/// The bytes of a fill value.
pub(super) fn fill_value(value: Option<&Value>, dtype: DType, limits: &Limits) -> Result<Vec<u8>> {
    let size = dtype.size();
    limits.allow(size as u64, "an element").map_err(|e| unsupported(e.message()))?;
    let mut bytes = vec![0; size];
    let wrong = || malformed("fill_value does not match the data type");
    let value = value.unwrap_or(&Value::Null);
    match (dtype.kind(), value) {
        (_, Value::Null) => {}
        (Kind::Bool, Value::Bool(value)) => bytes[0] = u8::from(*value),
        (Kind::Bool, _) => bytes[0] = u8::from(value.as_u64().ok_or_else(wrong)? != 0),
        (Kind::UInt, _) => {
            let number = value.as_u64().or_else(|| value.as_f64().map(|v| v as u64));
            bytes.copy_from_slice(&number.ok_or_else(wrong)?.to_le_bytes()[..size]);
        }
        (Kind::Int, Value::String(text)) if text == "NaT" => {
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
        // zarr-python writes 0 for bytes.
        (_, Value::Number(zero)) if zero.as_u64() == Some(0) => {}
        _ => return Err(wrong()),
    }
    if dtype.order() == ByteOrder::Big {
        swap(&mut bytes, dtype.word());
    }
    Ok(bytes)
}

/// Writes a float of 2, 4 or 8 bytes, given as a JSON number, `NaN`, `Infinity`, or hexadecimal bits.
/// `None` if it is none of these.
fn real(value: &Value, bytes: &mut [u8]) -> Option<()> {
    let text = value.as_str();
    if let Some(digits) = text.and_then(|text| text.strip_prefix("0x")) {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        return Some(());
    }
    let number = match text {
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
            // Only common fill values.
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
