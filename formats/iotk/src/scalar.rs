//! Parsing and formatting of single numbers, exactly or in the format of the library.
//!
//! Fortran notations are parsed, too: `1.0D+00`, `1.0+100`, `1_8`. Values without decimal digits have
//! an extended notation: `NaN_7ff8000000000001` has the bits of a NaN, `T_ffffffff` those of a logical
//! that is neither 0 nor 1.

use std::str::FromStr;

use spile_core::decimal::{Value, Wide};
use spile_core::{DType, Kind};

use crate::wire::parse_logical;

/// The format of written numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// All digits that are needed to read the same bits back.
    Exact,
    /// The format of the library: 16 digits of a double, `***` for integers wider than their field.
    Library,
}

/// A number that is one token; complex numbers have two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Int(usize),
    Bool(usize),
    F32,
    F64,
    Wide(Wide),
}

impl Scalar {
    /// The type and number of the tokens of an element; `None` if it is not a number.
    pub(crate) fn of(dtype: DType) -> Option<(Self, usize)> {
        let real = |size: usize| match size {
            4 => Some(Self::F32),
            8 => Some(Self::F64),
            16 => Some(Self::Wide(Wide::Binary128)),
            _ => None,
        };
        match dtype.kind() {
            Kind::Int => Some((Self::Int(dtype.size()), 1)),
            Kind::Bool => Some((Self::Bool(dtype.size()), 1)),
            Kind::Float => Some((real(dtype.size())?, 1)),
            Kind::Complex => Some((real(dtype.word())?, 2)),
            Kind::X87 => Some((Self::Wide(Wide::X87), 1)),
            Kind::ComplexX87 => Some((Self::Wide(Wide::X87), 2)),
            _ => None,
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::Int(size) | Self::Bool(size) => size,
            Self::F32 => 4,
            Self::F64 => 8,
            Self::Wide(_) => 16,
        }
    }

    /// Parses `token` and appends the number in little-endian byte order. `None` if it is not a number
    /// of this type.
    pub(crate) fn parse(self, token: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let text = std::str::from_utf8(token).ok()?;
        match self {
            Self::Int(size) => {
                let digits = text.split_once('_').map_or(text, |(digits, _)| digits);
                put_integer(digits.parse().ok()?, size, out)
            }
            Self::Bool(size) => {
                let value = u64::from(parse_logical(token)?);
                let bits = match text.split_once('_') {
                    Some((_, hex)) => u64::from_str_radix(hex, 16).ok()?,
                    None => value,
                };
                out.extend_from_slice(&bits.to_le_bytes()[..size]);
                Some(())
            }
            Self::F32 => {
                let from_bits = |bits| u32::try_from(bits).ok().map(f32::from_bits);
                let value = parse_real(text, from_bits)?;
                let overflow = value.is_infinite() && has_digits(text);
                (!overflow).then(|| out.extend_from_slice(&value.to_le_bytes()))
            }
            Self::F64 => {
                let from_bits = |bits| u64::try_from(bits).ok().map(f64::from_bits);
                let value = parse_real(text, from_bits)?;
                let overflow = value.is_infinite() && has_digits(text);
                (!overflow).then(|| out.extend_from_slice(&value.to_le_bytes()))
            }
            Self::Wide(kind) => {
                let bits = nan_bits(text).or_else(|| parse_wide(kind, text))?;
                out.extend_from_slice(&bits.to_le_bytes());
                Some(())
            }
        }
    }

    /// Appends the infinity that a real too large for its kind is rounded to, or NaN for `***`, which Fortran prints
    /// for a real that does not fit its field. `None` if `token` is something else.
    pub(crate) fn overflow(self, token: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if !token.is_empty() && token.iter().all(|b| *b == b'*') {
            match self {
                Self::F32 => out.extend_from_slice(&f32::NAN.to_le_bytes()),
                Self::F64 => out.extend_from_slice(&f64::NAN.to_le_bytes()),
                _ => return None,
            }
            return Some(());
        }
        let text = std::str::from_utf8(token).ok().filter(|text| has_digits(text))?;
        let infinite = |value: f64| value.is_infinite().then_some(value);
        match self {
            Self::F32 => {
                let value = infinite(f64::from(parse_real::<f32>(text, |_| None)?))?;
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
            Self::F64 => {
                let value = infinite(parse_real::<f64>(text, |_| None)?)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            _ => return None,
        }
        Some(())
    }

    /// Appends the text of a number in little-endian byte order.
    pub(crate) fn write(self, bytes: &[u8], style: Style, out: &mut Vec<u8>) {
        match (self, style) {
            (Self::Int(size), _) => {
                let text = integer(bytes).to_string();
                let exact = style == Style::Exact;
                let width = match size {
                    1 => 3,
                    2 => 5,
                    4 => 10,
                    _ => 19,
                } + usize::from(exact);
                if text.len() > width {
                    out.extend(std::iter::repeat_n(b'*', width));
                } else {
                    justify(text.as_bytes(), width, out);
                }
            }
            (Self::Bool(_), _) => {
                let bits = unsigned(bytes);
                out.push(if bits == 0 { b'F' } else { b'T' });
                if bits > 1 && style == Style::Exact {
                    out.extend_from_slice(format!("_{bits:x}").as_bytes());
                }
            }
            (Self::F32, Style::Exact) => {
                let value = f32::from_bits(unsigned(bytes) as u32);
                if value.is_nan() && value.to_bits() != 0x7fc0_0000 {
                    write_bits(u128::from(value.to_bits()), out);
                } else {
                    shortest(zmij::Buffer::new().format(value), out);
                }
            }
            (Self::F64, Style::Exact) => {
                let value = f64::from_bits(unsigned(bytes));
                if value.is_nan() && value.to_bits() != 0x7ff8_0000_0000_0000 {
                    write_bits(u128::from(value.to_bits()), out);
                } else {
                    shortest(zmij::Buffer::new().format(value), out);
                }
            }
            (Self::F32, Style::Library) => {
                let value = f32::from_bits(unsigned(bytes) as u32);
                scientific(&format!("{value:.6e}"), 13, 2, out);
            }
            (Self::F64, Style::Library) => {
                let value = f64::from_bits(unsigned(bytes));
                scientific(&format!("{value:.15e}"), 23, 3, out);
            }
            (Self::Wide(kind), _) => write_wide(kind, bytes, style, out),
        }
    }
}

/// Up to eight little-endian bytes as an unsigned integer.
fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn integer(bytes: &[u8]) -> i64 {
    let spare = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << spare) as i64 >> spare
}

fn justify(text: &[u8], width: usize, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
    out.extend_from_slice(text);
}

fn write_bits(bits: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(" NaN_{bits:x}").as_bytes());
}

fn nan_bits(text: &str) -> Option<u128> {
    u128::from_str_radix(text.strip_prefix("NaN_")?, 16).ok()
}

/// Appends the shortest digits, with a point: the library reads `3` as 3e-95.
fn shortest(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    if text[0] != b'-' {
        out.push(b' ');
    }
    match text {
        b"inf" => return out.extend_from_slice(b"Infinity"),
        b"-inf" => return out.extend_from_slice(b"-Infinity"),
        b"NaN" => return out.extend_from_slice(b"NaN"),
        _ => {}
    }
    match text.iter().position(|b| matches!(b, b'.' | b'e')) {
        Some(at) if text[at] == b'.' => out.extend_from_slice(text),
        at => {
            let (mantissa, exponent) = text.split_at(at.unwrap_or(text.len()));
            out.extend_from_slice(mantissa);
            out.extend_from_slice(b".0");
            out.extend_from_slice(exponent);
        }
    }
}

/// Appends Rust's `1.5e-7` in the format of Fortran's `ES` edit descriptor.
fn scientific(text: &str, width: usize, digits: usize, out: &mut Vec<u8>) {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        let special = match text {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            other => other,
        };
        return justify(special.as_bytes(), width, out);
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let text = format!("{mantissa}E{sign}{:0digits$}", exponent.abs());
    justify(text.as_bytes(), width, out);
}

fn write_wide(kind: Wide, bytes: &[u8], style: Style, out: &mut Vec<u8>) {
    let mut raw = [0; 16];
    raw.copy_from_slice(&bytes[..16]);
    let bits = u128::from_le_bytes(raw);
    let exact = style == Style::Exact;
    let digits = match (kind, exact) {
        (_, true) => kind.digits(),
        (Wide::X87, false) => 19,
        (Wide::Binary128, false) => 34,
    };
    // Sign, point, and an exponent of six characters.
    let width = digits + 8;
    let start = out.len();
    match kind.decode(bits) {
        Value::Nan => justify(b"NaN", width, out),
        Value::Infinite(negative) => {
            justify(if negative { b"-Infinity" } else { b"Infinity" }, width, out);
        }
        Value::Finite { negative, significand, exponent } => {
            let (text, power) = match significand {
                0 => ("0".repeat(digits), 0),
                _ => Wide::to_digits(significand, exponent, digits),
            };
            let sign = if negative { "-" } else { "" };
            let (first, rest) = text.split_at(1);
            let point = if power < 0 { '-' } else { '+' };
            let text = format!("{sign}{first}.{rest}E{point}{:04}", power.abs());
            justify(text.as_bytes(), width, out);
        }
    }
    // Bit patterns without decimal digits: payloads, X87 numbers without their leading bit.
    let back = std::str::from_utf8(&out[start..]).ok().and_then(|t| parse_wide(kind, t.trim()));
    let bits = if kind == Wide::X87 { bits & ((1 << 80) - 1) } else { bits };
    if exact && back != Some(bits) {
        out.truncate(start);
        write_bits(bits, out);
    }
}

fn parse_wide(kind: Wide, text: &str) -> Option<u128> {
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if ["nan", "inf", "infinity"].iter().any(|name| plain.eq_ignore_ascii_case(name)) {
        let nan = plain.eq_ignore_ascii_case("nan");
        let quiet = u128::from(nan);
        let bits = match kind {
            Wide::Binary128 => 0x7fff << 112 | quiet << 111,
            Wide::X87 => 0x7fff << 64 | 1 << 63 | quiet << 62,
        };
        let sign = if kind == Wide::X87 { 79 } else { 127 };
        return Some(bits | u128::from(negative) << sign);
    }
    let plain = fortran(plain).unwrap_or_else(|| plain.to_string());
    let (mantissa, exponent) = plain.split_once(['e', 'E']).unwrap_or((&plain, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let power = exponent.parse::<i64>().ok()?.checked_sub(fraction.len() as i64)?;
    let bits = kind.from_digits(negative, digits.as_bytes(), power);
    (!matches!(kind.decode(bits), Value::Infinite(_))).then_some(bits)
}

/// Parses a number in the notation of Rust or Fortran, or the bits of a NaN.
fn parse_real<T: FromStr>(text: &str, from_bits: impl Fn(u128) -> Option<T>) -> Option<T> {
    text.parse().ok().or_else(|| match nan_bits(text) {
        Some(bits) => from_bits(bits),
        None => fortran(text)?.parse().ok(),
    })
}

/// True if an infinite result is an overflow and not the word `Infinity`.
fn has_digits(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// Rewrites a number in Fortran notation so that Rust can parse it.
fn fortran(text: &str) -> Option<String> {
    let text = text.split_once('_').map_or(text, |(number, _)| number);
    let digits = |c: char| matches!(c, '0'..='9' | '.' | '+' | '-');
    let end = text.find(|c| !digits(c)).unwrap_or(text.len());
    let (mantissa, exponent) = match text[end..].strip_prefix(['d', 'D', 'q', 'Q', 'e', 'E']) {
        Some(exponent) => (&text[..end], exponent),
        None if end < text.len() => return None,
        // Fortran omits the letter before an exponent of three digits.
        None => match text.rfind(['+', '-']).filter(|k| *k > 0) {
            Some(k) => text.split_at(k),
            None => (text, "0"),
        },
    };
    Some(format!("{mantissa}e{exponent}"))
}

/// Appends an integer of `size` bytes, if it fits.
fn put_integer(value: i64, size: usize, out: &mut Vec<u8>) -> Option<()> {
    let spare = 64 - 8 * size as u32;
    // The omitted bytes must be the sign extension.
    (value << spare >> spare == value).then(|| out.extend_from_slice(&value.to_le_bytes()[..size]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;
    use proptest::prelude::*;

    fn parse(scalar: Scalar, text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        scalar.parse(text.as_bytes(), &mut out).map(|()| out)
    }

    fn round_trip(scalar: Scalar, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        scalar.write(bytes, Style::Exact, &mut text);
        let found: Vec<_> = tokens(&text).collect();
        assert_eq!(found.len(), 1, "{}", text.escape_ascii());
        let mut out = Vec::new();
        scalar.parse(found[0].1, &mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn every_double_reads_back(bits in any::<u64>()) {
            prop_assert_eq!(round_trip(Scalar::F64, &bits.to_le_bytes()), bits.to_le_bytes());
        }

        #[test]
        fn every_single_reads_back(bits in any::<u32>()) {
            prop_assert_eq!(round_trip(Scalar::F32, &bits.to_le_bytes()), bits.to_le_bytes());
        }

        #[test]
        fn every_integer_and_logical_reads_back(bits in any::<u64>()) {
            for size in [1, 2, 4, 8] {
                let bytes = &bits.to_le_bytes()[..size];
                prop_assert_eq!(round_trip(Scalar::Int(size), bytes), bytes);
                prop_assert_eq!(round_trip(Scalar::Bool(size), bytes), bytes);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_wide_number_reads_back(bits in any::<u128>()) {
            let binary = Scalar::Wide(Wide::Binary128);
            prop_assert_eq!(round_trip(binary, &bits.to_le_bytes()), bits.to_le_bytes());
            // Any pattern of 80 bits, valid or not; the padding has no meaning.
            let bits = bits >> 48;
            prop_assert_eq!(round_trip(Scalar::Wide(Wide::X87), &bits.to_le_bytes()), bits.to_le_bytes());
        }
    }

    #[test]
    fn special_values_read_back() {
        for bits in [
            0x7ff8_0000_0000_0000,
            0xfff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            1 << 63,
            0,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            1,
            u64::MAX,
            0x7fef_ffff_ffff_ffff_u64,
        ] {
            assert_eq!(
                round_trip(Scalar::F64, &bits.to_le_bytes()),
                bits.to_le_bytes(),
                "{bits:x}"
            );
        }
        let mut text = Vec::new();
        Scalar::F64.write(&3.0_f64.to_le_bytes(), Style::Exact, &mut text);
        Scalar::F64.write(&1e100_f64.to_le_bytes(), Style::Exact, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.split_whitespace().all(|t| t.contains('.')), "{text}");
    }

    #[test]
    fn fortran_notations_are_parsed() {
        let double = |text: &str| {
            parse(Scalar::F64, text).map(|b| f64::from_le_bytes(b.try_into().unwrap()))
        };
        for (text, value) in [
            ("1.0D+02", 100.0),
            ("1.0+100", 1e100),
            ("-2.5d-1", -0.25),
            ("1.", 1.0),
            ("3", 3.0),
            ("1_8", 1.0),
            ("-1.5-003", -0.0015),
            ("+1.", 1.0),
            ("Infinity", f64::INFINITY),
        ] {
            assert_eq!(double(text), Some(value), "{text}");
        }
        for bad in ["3*1.0", "", "T", "1.0.0", "0x10", "+", "e5", "1e999", "-1.0D+400", "1.0+310"] {
            assert_eq!(double(bad), None, "{bad}");
        }
        // Overflow is an error for all kinds; only the word gives infinity.
        assert_eq!(parse(Scalar::F32, "1.0E+300"), None);
        assert_eq!(parse(Scalar::F32, "-Infinity"), Some((-f32::INFINITY).to_le_bytes().to_vec()));
        for kind in [Wide::X87, Wide::Binary128] {
            assert_eq!(parse(Scalar::Wide(kind), "1.0E+5000"), None);
            assert!(parse(Scalar::Wide(kind), "1.0E+4000").is_some());
            assert!(parse(Scalar::Wide(kind), "-Infinity").is_some());
        }
        assert_eq!(parse(Scalar::Int(1), "128"), None);
        assert_eq!(parse(Scalar::Int(1), "-128"), Some(vec![0x80]));
        assert_eq!(parse(Scalar::Int(4), "1e3"), None);
        assert_eq!(parse(Scalar::Bool(4), ".TRUE."), Some(vec![1, 0, 0, 0]));
        assert_eq!(parse(Scalar::Bool(4), "yes"), None);
    }
}
