//! Conversion of elements to text.

use std::fmt::Write as _;

use super::{Number, element_f64, part, sixteen};
use crate::decimal::Wide;
use crate::{DType, Kind, with_number};

/// Appends one little-endian element as text: floats with the fewest digits that round-trip, text without
/// padding, opaque bytes in hexadecimal, complex numbers as `1.5-2.0j`.
pub fn write_element(dtype: DType, element: &[u8], out: &mut String) {
    match dtype.kind() {
        Kind::Float if dtype.size() == 4 => write_f32(f32::read_le(element), out),
        // Wider than `f64`.
        Kind::Float if dtype.size() == 16 => {
            Wide::Binary128.write(u128::from_le_bytes(sixteen(element)), out);
        }
        Kind::X87 => Wide::X87.write(u128::from_le_bytes(sixteen(element)), out),
        Kind::Float => write_f64(element_f64(dtype, element), out),
        Kind::Complex | Kind::ComplexX87 => {
            let half = part(dtype);
            write_element(half, &element[..half.size()], out);
            let mark = out.len();
            write_element(half, &element[half.size()..], out);
            if !out[mark..].starts_with('-') {
                out.insert(mark, '+');
            }
            out.push('j');
        }
        Kind::Bool => out.push_str(if element.iter().any(|b| *b != 0) { "true" } else { "false" }),
        Kind::Text => out.push_str(&text_of(element)),
        Kind::Opaque => element.iter().for_each(|b| {
            let _ = write!(out, "{b:02x}");
        }),
        Kind::Int | Kind::UInt => {
            let _ = with_number!(dtype, T => write!(out, "{}", <T as Number>::read_le(element)), else Ok(()));
        }
    }
}

/// Appends `value` as C's `%.{digits}g`: `digits` significant digits without trailing zeros, an exponent
/// only for very large and very small numbers. 17 digits round-trip.
pub fn write_general(value: f64, digits: usize, out: &mut String) {
    if !value.is_finite() {
        out.push_str(match value {
            v if v.is_nan() => "nan",
            v if v > 0.0 => "inf",
            _ => "-inf",
        });
        return;
    }
    let digits = digits.max(1);
    let mark = out.len();
    let _ = write!(out, "{value:.0$e}", digits - 1);
    let split = out[mark..].rfind('e').map_or(out.len(), |at| mark + at);
    let exponent: i32 = out[split + 1..].parse().unwrap_or(0);
    out.truncate(split);
    if exponent < -4 || exponent >= digits as i32 {
        drop_zeros(mark, out);
        let _ = write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    } else {
        out.truncate(mark);
        // The same digits without an exponent.
        let _ = write!(out, "{value:.0$}", (digits as i32 - 1 - exponent) as usize);
        drop_zeros(mark, out);
    }
}

fn drop_zeros(mark: usize, out: &mut String) {
    if out[mark..].contains('.') {
        out.truncate(out.trim_end_matches('0').trim_end_matches('.').len());
    }
}

/// A text field without padding: truncated at the first NUL, trailing spaces removed.
pub fn text_of(field: &[u8]) -> String {
    let cut = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..cut]).trim_end_matches(' ').to_string()
}

/// Appends `value` with the fewest digits that round-trip.
pub fn write_f64(value: f64, out: &mut String) {
    out.push_str(zmij::Buffer::new().format(value));
}

fn write_f32(value: f32, out: &mut String) {
    out.push_str(zmij::Buffer::new().format(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Value;
    use crate::wire::ByteOrder;
    use proptest::prelude::*;

    #[test]
    fn wide_numbers_are_formatted_with_all_digits() {
        let (wide, x87) = (
            DType::new(Kind::Float, 16, ByteOrder::Little).unwrap(),
            DType::new(Kind::X87, 16, ByteOrder::Little).unwrap(),
        );
        for (digits, power, text) in [
            ("11", -1, "1.1"),
            ("1", 4000, "1e+4000"),
            ("1", -4000, "1e-4000"),
            ("125", -7, "0.0000125"),
            ("15", -8, "1.5e-7"),
            ("12345678901234567", 0, "1.2345678901234567e+16"),
            ("120", 0, "120.0"),
            ("0", 0, "0.0"),
        ] {
            for (dtype, kind) in [(wide, Wide::Binary128), (x87, Wide::X87)] {
                for (negative, sign) in [(false, ""), (true, "-")] {
                    let bits = kind.from_digits(negative, digits.as_bytes(), power);
                    let mut out = String::new();
                    write_element(dtype, &bits.to_le_bytes(), &mut out);
                    assert_eq!(out, format!("{sign}{text}"));
                }
            }
        }
        let mut out = String::new();
        let third = Wide::Binary128.from_digits(false, "3".repeat(40).as_bytes(), -40);
        write_element(wide, &third.to_le_bytes(), &mut out);
        assert_eq!(out, "0.3333333333333333333333333333333333");
        out.clear();
        write_element(wide, &(0xffff_u128 << 112).to_le_bytes(), &mut out);
        assert_eq!(out, "-inf");
    }

    proptest! {
        #[test]
        fn wide_numbers_round_trip(bits in any::<u128>()) {
            for kind in [Wide::Binary128, Wide::X87] {
                // The leading bit of normal x87 numbers is set.
                let bits = if kind == Wide::X87 { (bits >> 48) | 1 << 63 } else { bits };
                let exponent = (bits >> 64) as u16 & 0x7fff;
                let normal = kind == Wide::Binary128 || exponent > 0;
                let (Value::Finite { .. }, true) = (kind.decode(bits), normal) else { continue };
                let mut out = String::new();
                kind.write(bits, &mut out);
                let plain = out.trim_start_matches('-');
                let (mantissa, power) = plain.split_once('e').unwrap_or((plain, "0"));
                let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                let power: i64 = power.parse().unwrap();
                let digits = format!("{integer}{fraction}");
                let back = kind.from_digits(out.starts_with('-'), digits.as_bytes(), power - fraction.len() as i64);
                prop_assert_eq!(back, bits, "{}", out);
            }
        }
    }

    #[test]
    fn write_general_matches_printf() {
        let show = |value: f64, digits: usize| {
            let mut out = String::from("x");
            write_general(value, digits, &mut out);
            out.split_off(1)
        };
        for (value, digits, text) in [
            (0.1, 17, "0.10000000000000001"),
            (1.0, 17, "1"),
            (-0.0, 17, "-0"),
            (100_000.0, 17, "100000"),
            (1e17, 17, "1e+17"),
            (123_456_789.0, 9, "123456789"),
            (1_234_567_890.0, 9, "1.23456789e+09"),
            (1e-5, 17, "1.0000000000000001e-05"),
            (0.0001, 9, "0.0001"),
            (9.999_999_999e9, 9, "1e+10"),
            (999_999_999.6, 9, "1e+09"),
            (f64::MIN_POSITIVE, 17, "2.2250738585072014e-308"),
            (f64::NEG_INFINITY, 17, "-inf"),
        ] {
            assert_eq!(show(value, digits), text);
        }
    }

    #[test]
    fn elements_are_formatted_exactly() {
        let show = |dtype: DType, bytes: &[u8]| {
            let mut out = String::new();
            write_element(dtype, bytes, &mut out);
            out
        };
        assert_eq!(show(DType::U64, &u64::MAX.to_le_bytes()), "18446744073709551615");
        assert_eq!(show(DType::F32, &0.1_f32.to_le_bytes()), "0.1");
        let z: Vec<u8> = [1.5_f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(show("complex128".parse().unwrap(), &z), "1.5-2.0j");
        assert_eq!(show(DType::text(5), b"ab \0x"), "ab");
        assert_eq!(show("bool32".parse().unwrap(), &[0, 0, 1, 0]), "true");
        assert_eq!(show("float16".parse().unwrap(), &[0, 0x3c]), "1.0");
    }
}
