//! Element conversion: byte order, `f64`, text.
//!
//! The loops work on buffers so that the compiler can vectorise them.

mod text;

use zerocopy::{FromBytes, Immutable, IntoBytes as _};

use crate::decimal::{self, Wide};
use crate::semantics::Missing;
use crate::{ByteOrder, DType, Kind, Linear};

pub use text::{text_of, write_element, write_f64, write_general};

/// Evaluates `$body` with `$T` bound to the Rust type of an integer, `float32` or `float64` type, and
/// `$other` for other types.
#[macro_export]
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::with_number!(@ $dtype, $T, $body, $other, (UInt 1 u8) (UInt 2 u16) (UInt 4 u32)
            (UInt 8 u64) (Int 1 i8) (Int 2 i16) (Int 4 i32) (Int 8 i64) (Float 4 f32) (Float 8 f64))
    };
    (@ $dtype:expr, $T:ident, $body:expr, $other:expr, $(($kind:ident $size:literal $type:ty))*) => {{
        let dtype: $crate::DType = $dtype;
        match (dtype.kind(), dtype.size()) {
            $(($crate::Kind::$kind, $size) => {
                type $T = $type;
                $body
            })*
            _ => $other,
        }
    }};
}

/// A number type that can be read from little-endian bytes.
pub trait Number: FromBytes + Immutable + Copy + PartialOrd + Send + Sync + 'static {
    /// The element type, little-endian.
    const DTYPE: DType;
    /// Size in bytes.
    const SIZE: usize;
    /// Reads a number from exactly [`Number::SIZE`] little-endian bytes.
    fn read_le(bytes: &[u8]) -> Self;
    /// As `f64`; 64-bit integers are rounded.
    fn as_f64(self) -> f64;
    /// From `f64` as with `as`: rounded for `f32`, truncated and clipped for integers.
    fn from_f64(value: f64) -> Self;
}

macro_rules! numbers {
    ($($T:ty: $dtype:expr),*) => {$(
        impl Number for $T {
            const DTYPE: DType = $dtype;
            const SIZE: usize = size_of::<$T>();
            #[inline(always)]
            fn read_le(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$T>()];
                raw.copy_from_slice(bytes);
                Self::from_le_bytes(raw)
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $T
            }
        }
    )*};
}
numbers!(u8: DType::U8, u16: DType::U16, u32: DType::U32, u64: DType::U64, i8: DType::I8,
         i16: DType::I16, i32: DType::I32, i64: DType::I64, f32: DType::F32, f64: DType::F64);

/// The numbers in little-endian `bytes`; an incomplete number at the end is ignored.
pub fn decode<T: Number>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::read_le).collect()
}

/// Reverses the bytes of every group of `word` bytes.
pub fn swap(bytes: &mut [u8], word: usize) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        for group in bytes.as_chunks_mut::<N>().0 {
            group.reverse();
        }
    }
    match word {
        0 | 1 => {}
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        16 => each::<16>(bytes),
        _ => bytes.chunks_exact_mut(word).for_each(<[u8]>::reverse),
    }
}

/// Converts elements of `dtype` to little-endian byte order in place.
pub fn to_little(dtype: DType, bytes: &mut [u8]) {
    if dtype.needs_swap(ByteOrder::Little) {
        swap(bytes, dtype.word());
    }
}

/// Converts little-endian elements to `f64`, scaled by `map`; `out` is overwritten. Complex numbers give
/// their real part, text and opaque bytes NaN.
pub fn to_f64(dtype: DType, map: Option<Linear>, bytes: &[u8], out: &mut Vec<f64>) {
    out.clear();
    let n = bytes.len() / dtype.size().max(1);
    out.reserve(n);
    with_number!(dtype, T => {
        let numbers = bytes.as_chunks::<{ size_of::<T>() }>().0;
        match map {
            // Two roundings, not a fused multiply-add: the same result on every machine.
            Some(m) => out.extend(numbers.iter().map(|b| m.apply(T::from_le_bytes(*b) as f64))),
            None => out.extend(numbers.iter().map(|b| T::from_le_bytes(*b) as f64)),
        }
    }, else {
        for element in bytes.chunks_exact(dtype.size().max(1)) {
            let value = element_f64(dtype, element);
            out.push(map.map_or(value, |m| m.apply(value)));
        }
    });
}

/// Converts little-endian elements to physical values: scaled by `map`, missing ones NaN; `out` is
/// overwritten.
pub fn to_physical(
    dtype: DType,
    map: Option<Linear>,
    missing: &Missing,
    bytes: &[u8],
    out: &mut Vec<f64>,
) {
    if missing.is_none() {
        return to_f64(dtype, map, bytes, out);
    }
    to_f64(dtype, None, bytes, out);
    for value in out {
        *value = match map {
            _ if missing.matches(*value) => f64::NAN,
            Some(map) => map.apply(*value),
            None => *value,
        };
    }
}

/// The little-endian bytes of `values`, which are swapped in place on a big-endian machine.
pub fn little_bytes(values: &mut [f64]) -> &[u8] {
    let bytes = values.as_mut_bytes();
    if ByteOrder::NATIVE == ByteOrder::Big {
        swap(bytes, size_of::<f64>());
    }
    bytes
}

/// Converts `f64` to little-endian elements, the inverse of [`to_f64`]; `out` is overwritten. Integers are
/// rounded to nearest (halves away from zero) and clipped to their type, NaN becomes 0. Returns the number
/// of clipped values (for floats, of those that became infinite), or `None` if `dtype` is not an integer,
/// `float32` or `float64`.
pub fn from_f64(
    dtype: DType,
    map: Option<Linear>,
    values: &[f64],
    out: &mut Vec<u8>,
) -> Option<u64> {
    out.clear();
    out.reserve(values.len() * dtype.size());
    let inverse = |y: f64| map.map_or(y, |m| m.inverse(y));
    let mut clipped = 0;
    if dtype.is_integer() {
        // The largest value plus 1: a power of two, so exact for every type.
        let bits = 8 * dtype.size() as i32 - i32::from(dtype.kind() == Kind::Int);
        let above = 2_f64.powi(bits);
        with_number!(dtype, T => for y in values {
            let x = inverse(*y).round();
            // `as` saturates, and turns NaN into 0.
            let stored = x as T;
            clipped += u64::from(!(x >= T::MIN as f64 && x < above));
            out.extend_from_slice(&stored.to_le_bytes());
        }, else return None);
    } else {
        with_number!(dtype, T => for y in values {
            let x = inverse(*y);
            clipped += u64::from(x.is_finite() && !(x as T as f64).is_finite());
            out.extend_from_slice(&(x as T).to_le_bytes());
        }, else return None);
    }
    Some(clipped)
}

/// Converts little-endian integers to another integer type, without the rounding of `f64`; `out` is
/// overwritten. Returns the number of clipped values, or `None` if one of the types is not an integer.
pub fn recode_integers(from: DType, to: DType, bytes: &[u8], out: &mut Vec<u8>) -> Option<u64> {
    out.clear();
    if !from.is_integer() || !to.is_integer() {
        return None;
    }
    let mut clipped = 0;
    with_number!(from, F => for b in bytes.as_chunks::<{ size_of::<F>() }>().0 {
        let value = F::from_le_bytes(*b) as i128;
        with_number!(to, T => {
            let stored = value.clamp(T::MIN as i128, T::MAX as i128);
            clipped += u64::from(stored != value);
            out.extend_from_slice(&(stored as T).to_le_bytes());
        }, else return None);
    }, else return None);
    Some(clipped)
}

/// One little-endian element as `f64`; see [`to_f64`].
pub fn element_f64(dtype: DType, element: &[u8]) -> f64 {
    with_number!(dtype, T => <T as Number>::read_le(element).as_f64(), else match dtype.kind() {
        Kind::Float if dtype.size() == 2 => half::f16::from_le_bytes([element[0], element[1]]).to_f64(),
        Kind::Float => wide_to_f64(Wide::Binary128, u128::from_le_bytes(sixteen(element))),
        Kind::X87 => wide_to_f64(Wide::X87, u128::from_le_bytes(sixteen(element))),
        Kind::Complex | Kind::ComplexX87 => element_f64(part(dtype), &element[..dtype.word()]),
        Kind::Bool => f64::from(u8::from(element.iter().any(|b| *b != 0))),
        _ => f64::NAN,
    })
}

/// The type of the real and imaginary part of a complex type; other types are returned unchanged.
pub fn part(dtype: DType) -> DType {
    let kind = match dtype.kind() {
        Kind::Complex => Kind::Float,
        Kind::ComplexX87 => Kind::X87,
        _ => return dtype,
    };
    DType::new(kind, dtype.word() as u32, dtype.order()).unwrap_or(dtype)
}

fn sixteen(element: &[u8]) -> [u8; 16] {
    let mut raw = [0; 16];
    raw.copy_from_slice(&element[..16]);
    raw
}

fn wide_to_f64(wide: Wide, bits: u128) -> f64 {
    let (value, negative) = match wide.decode(bits) {
        decimal::Value::Nan => return f64::NAN,
        decimal::Value::Infinite(negative) => (f64::INFINITY, negative),
        decimal::Value::Finite { negative, significand, exponent } => {
            (scaled(significand, exponent), negative)
        }
    };
    if negative { -value } else { value }
}

/// `significand * 2^exponent`, rounded once, to nearest even.
fn scaled(significand: u128, exponent: i32) -> f64 {
    if significand == 0 {
        return 0.0;
    }
    let top = 127 - significand.leading_zeros() as i32;
    // The result has 53 bits, fewer for subnormal numbers.
    let lowest = (top + exponent - 52).max(-1074);
    let shift = lowest - exponent;
    let rounded = if shift <= 0 {
        significand << -shift.max(-127)
    } else if shift > 127 {
        0
    } else {
        let kept = significand >> shift;
        let rest = significand & ((1 << shift) - 1);
        let half = 1_u128 << (shift - 1);
        kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
    };
    // At most 2^53, so exact; the power of two is applied in two exact steps.
    let power = |e: i32| f64::from_bits(((e.clamp(-1022, 1023) + 1023) as u64) << 52);
    if lowest > 1023 {
        return f64::INFINITY;
    }
    let (first, second) = if lowest < -1022 { (-1022, lowest + 1022) } else { (lowest, 0) };
    (rounded as f64) * power(second) * power(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The exact binary128 of an `f64`.
    fn widen(value: f64) -> u128 {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        match (exponent, fraction) {
            (0x7ff, f) => sign | 0x7fff << 112 | u128::from(f) << 60,
            (0, 0) => sign,
            (0, f) => {
                let top = f.ilog2();
                let exponent = u128::from(16383 - 1074 + u64::from(top));
                sign | exponent << 112 | (u128::from(f) << (112 - top)) & ((1 << 112) - 1)
            }
            (e, f) => sign | u128::from(e + 16383 - 1023) << 112 | u128::from(f) << 60,
        }
    }

    #[test]
    fn incomplete_numbers_are_ignored() {
        assert_eq!(decode::<u16>(&[1, 0, 2, 1, 9]), [1, 258]);
        assert_eq!(decode::<f32>(&1.5_f32.to_le_bytes()), [1.5]);
    }

    proptest! {
        #[test]
        fn binary128_round_trips_every_double(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let back = wide_to_f64(Wide::Binary128, widen(value));
            prop_assert!(back.to_bits() == bits || (value.is_nan() && back.is_nan()));
        }

        #[test]
        fn swapping_twice_is_the_identity(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let before = bytes.clone();
            for word in [1, 2, 3, 4, 8, 16] {
                swap(&mut bytes, word);
                swap(&mut bytes, word);
                prop_assert_eq!(&bytes, &before);
            }
        }
    }

    #[test]
    fn wide_floats_round_to_nearest_even() {
        let one = 16383_u128 << 112;
        // Half a ULP above 1.0 rounds down to even, slightly more rounds up.
        assert_eq!(wide_to_f64(Wide::Binary128, one | 1 << 59), 1.0);
        assert_eq!(wide_to_f64(Wide::Binary128, one | 1 << 59 | 1), 1.0 + f64::EPSILON);
        assert_eq!(wide_to_f64(Wide::Binary128, one | 3 << 59), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(wide_to_f64(Wide::Binary128, 0x7ffe << 112), f64::INFINITY);
        assert_eq!(wide_to_f64(Wide::Binary128, 1), 0.0);
        assert!(wide_to_f64(Wide::Binary128, 1 << 127).is_sign_negative());
        let x87 = |exponent: u128, significand: u64| {
            wide_to_f64(Wide::X87, exponent << 64 | u128::from(significand))
        };
        assert_eq!(x87(16383, 1 << 63), 1.0);
        assert_eq!(x87(16384, 0xc90f_daa2_2168_c235), std::f64::consts::PI);
        assert_eq!(x87(16383, u64::MAX), 2.0);
        assert_eq!(x87(0x7fff, 1 << 63), f64::INFINITY);
        assert!(x87(0x7fff, 3 << 62).is_nan());
        assert_eq!(x87(0, 1), 0.0);
        assert_eq!(scaled(1, -1074), f64::from_bits(1));
        assert_eq!(scaled(3, -1075), f64::from_bits(2));
    }

    #[test]
    fn the_inverse_rounds_clips_and_counts() {
        let map = Some(Linear::new(-1.0, 0.5));
        let mut out = Vec::new();
        let values = [-1.0, -0.74, -1000.0, 1000.0, f64::INFINITY, f64::NAN];
        assert_eq!(from_f64(DType::U8, map, &values, &mut out), Some(4));
        assert_eq!(out, [0, 1, 0, 255, 255, 0]);
        assert_eq!(from_f64(DType::F32, None, &[f64::NAN, 0.1], &mut out), Some(0));
        assert!(f32::read_le(&out[..4]).is_nan() && f32::read_le(&out[4..]) == 0.1);
        assert_eq!(from_f64(DType::text(3), None, &[1.0], &mut out), None);
        assert_eq!(from_f64(DType::F32, None, &[1e300, f64::INFINITY], &mut out), Some(1));
        let edge = [2_f64.powi(63), -(2_f64.powi(63)), 2_f64.powi(64)];
        assert_eq!(from_f64(DType::I64, None, &edge, &mut out), Some(2));
        assert_eq!(from_f64(DType::U64, None, &edge, &mut out), Some(2));
    }

    #[test]
    fn integers_are_converted_exactly() {
        let mut out = Vec::new();
        let value = (1_i64 << 53) + 1;
        let recode = recode_integers(DType::I64, DType::U64, &value.to_le_bytes(), &mut out);
        assert_eq!((recode, u64::read_le(&out)), (Some(0), value as u64));
        let large = ((1_u64 << 63) + 3).to_le_bytes();
        assert_eq!(recode_integers(DType::U64, DType::I64, &large, &mut out), Some(1));
        assert_eq!(i64::read_le(&out), i64::MAX);
        assert_eq!(recode_integers(DType::F32, DType::I64, &large, &mut out), None);
    }
}
