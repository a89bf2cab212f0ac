//! Fill values: one element for chunks that are not stored.

use serde_json::Value;
use spile_core::convert::swap;
use spile_core::dtype::Kind;
use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::wire::ByteOrder;

use super::data_type::{DataType, Element};
use super::{NOT_FINITE, malformed, unsupported};

/// The stored bytes of a fill value; for elements of variable length, its text.
pub(super) fn fill_value(
    value: Option<&Value>,
    data_type: &DataType,
    limits: &Limits,
) -> Result<Vec<u8>> {
    limits.allow(data_type.size() as u64, "an element").map_err(|e| unsupported(e.message()))?;
    let value = value.unwrap_or(&Value::Null);
    match (data_type, value) {
        (DataType::Plain(element), _) => plain(value, element),
        (DataType::Variable { is_text: true }, Value::String(text)) => Ok(text.as_bytes().into()),
        (DataType::Variable { is_text: false }, Value::String(text)) => base64(text),
        (DataType::Variable { .. }, _) if is_zero(value) => Ok(Vec::new()),
        (DataType::Structured { size, .. }, _) if is_zero(value) => Ok(vec![0; *size]),
        (DataType::Structured { size, .. }, Value::String(text)) => {
            let bytes = base64(text)?;
            if bytes.len() == *size { Ok(bytes) } else { Err(wrong()) }
        }
        _ => Err(unsupported("this fill_value of the data type is not supported")),
    }
}

fn wrong() -> spile_core::Error {
    malformed("fill_value does not match the data type")
}

/// Whether all bytes are 0: zarr-python also writes 0 for bytes and structures.
fn is_zero(value: &Value) -> bool {
    value.is_null() || value.as_f64() == Some(0.0)
}

fn base64(text: &str) -> Result<Vec<u8>> {
    base64_simd::STANDARD.decode_to_vec(text).map_err(|_| wrong())
}

fn plain(value: &Value, element: &Element) -> Result<Vec<u8>> {
    let dtype = element.dtype;
    let size = dtype.size();
    let mut bytes = vec![0; size];
    match (dtype.kind(), value) {
        (_, Value::Null) => {}
        (_, Value::String(text)) if element.is_utf32 => {
            let chars = bytes.as_chunks_mut::<4>().0.iter_mut();
            for (c, target) in text.chars().zip(chars) {
                *target = match dtype.order() {
                    ByteOrder::Little => u32::from(c).to_le_bytes(),
                    ByteOrder::Big => u32::from(c).to_be_bytes(),
                };
            }
            return Ok(bytes);
        }
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
        (Kind::Float | Kind::X87, _) => real(value, &mut bytes).ok_or_else(wrong)?,
        (Kind::Complex | Kind::ComplexX87, _) => {
            let (re, im) = bytes.split_at_mut(size / 2);
            let (first, second) = match value {
                Value::Array(parts) if parts.len() == 2 => (&parts[0], &parts[1]),
                number => (number, &Value::Null),
            };
            real(first, re).ok_or_else(wrong)?;
            if !second.is_null() {
                real(second, im).ok_or_else(wrong)?;
            }
        }
        (_, Value::Array(list)) if list.len() == size => {
            for (byte, number) in bytes.iter_mut().zip(list) {
                let number = number.as_u64().and_then(|n| u8::try_from(n).ok());
                *byte = number.ok_or_else(wrong)?;
            }
        }
        (_, Value::String(text)) => {
            let decoded = base64(text)?;
            let fits = decoded.len().min(size);
            bytes[..fits].copy_from_slice(&decoded[..fits]);
        }
        _ if is_zero(value) => {}
        _ => return Err(wrong()),
    }
    if dtype.order() == ByteOrder::Big {
        swap(&mut bytes, dtype.word());
    }
    Ok(bytes)
}

/// Writes a float, given as a JSON number, `NaN`, `Infinity`, or hexadecimal bits. `None` if it is none of these.
fn real(value: &Value, bytes: &mut [u8]) -> Option<()> {
    let text = value.as_str();
    if let Some(digits) = text.and_then(|text| text.strip_prefix("0x")) {
        let bits = u128::from_str_radix(digits, 16).ok()?;
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        return Some(());
    }
    let number = match text.map(|text| text.trim_start_matches(NOT_FINITE)) {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(_) => return None,
        None => value.as_f64()?,
    };
    match bytes.len() {
        8 => bytes.copy_from_slice(&number.to_le_bytes()),
        4 => bytes.copy_from_slice(&(number as f32).to_le_bytes()),
        2 => bytes.copy_from_slice(&half::f16::from_f64(number).to_le_bytes()),
        16 => bytes.copy_from_slice(&extended(number).to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// The x87 number with the value of `number`.
fn extended(number: f64) -> u128 {
    let bits = number.to_bits();
    let (sign, exponent) = ((bits >> 63) as u128, (bits >> 52 & 0x7ff) as u128);
    let fraction = bits << 12 >> 1;
    let (exponent, significand) = match (exponent, fraction) {
        (0x7ff, _) => (0x7fff, fraction | 1 << 63),
        (0, 0) => (0, 0),
        // Subnormal numbers are normal ones in extended precision.
        (0, _) => {
            let shift = fraction.leading_zeros();
            (u128::from(0x3c01 - shift), fraction << shift)
        }
        _ => (exponent + 0x3c00, fraction | 1 << 63),
    };
    sign << 79 | exponent << 64 | u128::from(significand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::data_type::numpy_element;
    use serde_json::json;
    use spile_core::convert::element_f64;

    #[test]
    fn fill_values_have_the_bytes_of_the_element() {
        let fill = |name: &str, value: Value| {
            plain(&value, &numpy_element(name).unwrap()).map_err(|e| e.message().to_string())
        };
        assert_eq!(fill("<f2", json!(1.5)).unwrap(), [0, 0x3e]);
        assert_eq!(fill(">i4", json!(-2)).unwrap(), [255, 255, 255, 254]);
        assert_eq!(fill("<f4", json!("0x7fc00001")).unwrap(), [1, 0, 0xc0, 0x7f]);
        assert_eq!(fill(">U2", json!("a\u{e9}")).unwrap(), [0, 0, 0, 97, 0, 0, 0, 233]);
        assert_eq!(fill("|S3", json!("YWI=")).unwrap(), *b"ab\0");
        assert_eq!(fill("<c8", json!([0.5, "NaN"])).unwrap()[..4], 0.5_f32.to_le_bytes());
        assert!(fill("<f8", json!("text")).is_err());
        for value in [0.0, -0.0, 1.0, -2.5, 1e300, f64::MIN_POSITIVE / 1e3, f64::INFINITY] {
            let bytes = extended(value).to_le_bytes();
            let dtype = numpy_element("<f16").unwrap().dtype;
            assert_eq!(element_f64(dtype, &bytes).to_bits(), value.to_bits(), "{value}");
        }
        assert!(
            element_f64(numpy_element("<f16").unwrap().dtype, &extended(f64::NAN).to_le_bytes())
                .is_nan()
        );
    }
}
