//! Filters of numbers, as numcodecs applies them: differences, scaling, other element types, packed bits.

use spile_core::convert::element_f64;
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::wire::ByteOrder;

use crate::{expect_length, invalid, too_short};

/// A filter of numbers. `dtype` is the type before the filter, `astype` that of the encoded numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numeric {
    /// The first number, and the differences of neighbours.
    Delta {
        /// Type of the numbers.
        dtype: DType,
        /// Type of the differences.
        astype: DType,
    },
    /// `encoded = round((number - offset) * scale)`.
    ScaleOffset {
        /// Type of the numbers.
        dtype: DType,
        /// Type of the encoded numbers.
        astype: DType,
        /// Factor.
        scale: f64,
        /// Number that is encoded as 0.
        offset: f64,
    },
    /// Numbers of another type.
    AsType {
        /// Type of the numbers.
        dtype: DType,
        /// Type in which they are stored.
        astype: DType,
    },
    /// Booleans as bits, the first one highest, after a byte with the number of unused bits.
    PackBits,
}

/// A number of any type.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    UInt(u64),
    Float(f64),
}

impl Numeric {
    /// Name for listings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delta { .. } => "delta",
            Self::ScaleOffset { .. } => "fixedscaleoffset",
            Self::AsType { .. } => "astype",
            Self::PackBits => "packbits",
        }
    }

    /// Returns this filter with numbers before and after it in `order`.
    pub fn with_order(self, order: ByteOrder) -> Self {
        let mut own = self;
        match &mut own {
            Self::Delta { dtype, astype }
            | Self::ScaleOffset { dtype, astype, .. }
            | Self::AsType { dtype, astype } => {
                (*dtype, *astype) = (dtype.with_order(order), astype.with_order(order));
            }
            Self::PackBits => {}
        }
        own
    }

    /// Whether numbers of these types are supported.
    pub fn is_supported(self) -> bool {
        let is_half = |dtype: DType| dtype.kind() == Kind::Float && dtype.size() == 2;
        let is_number = |dtype: DType| {
            matches!(dtype.kind(), Kind::Int | Kind::UInt | Kind::Bool)
                || dtype.kind() == Kind::Float && dtype.size() <= 8
        };
        match self {
            Self::PackBits => true,
            Self::AsType { dtype, astype } => is_number(dtype) && is_number(astype),
            // NumPy rounds half floats after every operation.
            Self::Delta { dtype, astype } => {
                [dtype, astype].iter().all(|own| is_number(*own) && !is_half(*own))
                    && dtype.kind() != Kind::Bool
            }
            Self::ScaleOffset { dtype, astype, .. } => {
                is_number(dtype) && is_number(astype) && !is_half(astype)
            }
        }
    }

    fn types(self) -> Option<(DType, DType)> {
        match self {
            Self::Delta { dtype, astype }
            | Self::ScaleOffset { dtype, astype, .. }
            | Self::AsType { dtype, astype } => Some((dtype, astype)),
            Self::PackBits => None,
        }
    }

    /// Length of `len` bytes of numbers after the filter.
    pub(crate) fn encoded_len(self, len: usize) -> Option<usize> {
        match self.types() {
            Some((dtype, astype)) => (len / dtype.size().max(1)).checked_mul(astype.size()),
            None => Some(len.div_ceil(8) + 1),
        }
    }

    /// Length in bytes of the numbers that are encoded in `stored`.
    pub(crate) fn decoded_len(self, stored: &[u8]) -> Result<usize> {
        let len = if let Some((dtype, astype)) = self.types() {
            (stored.len() / astype.size().max(1)).checked_mul(dtype.size())
        } else {
            let unused = usize::from(*stored.first().ok_or_else(too_short)?);
            (8 * (stored.len() - 1)).checked_sub(unused)
        };
        len.ok_or_else(|| invalid(format!("{}: invalid length", self.name())))
    }

    /// Decodes numbers to `out`. Fails unless they are as long as `out`.
    pub(crate) fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        expect_length(self.decoded_len(stored)?, out)?;
        let Some((dtype, astype)) = self.types() else {
            for (k, value) in out.iter_mut().enumerate() {
                *value = stored[1 + k / 8] >> (7 - k % 8) & 1;
            }
            return Ok(());
        };
        let (from, to) = (astype.size().max(1), dtype.size().max(1));
        let numbers = stored.chunks_exact(from).map(|bytes| read(astype, bytes));
        let targets = out.chunks_exact_mut(to);
        match self {
            Self::Delta { .. } if dtype.is_integer() => {
                let mut sum = 0_i64;
                for (number, target) in numbers.zip(targets) {
                    sum = sum.wrapping_add(number.wrapped());
                    write(dtype, Number::Int(sum), target);
                }
            }
            Self::Delta { .. } => {
                // The sum has the precision of the numbers.
                let mut sum = None;
                for (number, target) in numbers.zip(targets) {
                    let number = rounded(dtype, number.float());
                    let next = sum.map_or(number, |sum: f64| rounded(dtype, sum + number));
                    write(dtype, Number::Float(next), target);
                    sum = Some(next);
                }
            }
            Self::ScaleOffset { scale, offset, .. } => {
                let (scale, offset) = (rounded(astype, scale), rounded(astype, offset));
                for (number, target) in numbers.zip(targets) {
                    let value = rounded(astype, rounded(astype, number.float() / scale) + offset);
                    write(dtype, Number::Float(value), target);
                }
            }
            _ => numbers.zip(targets).for_each(|(number, target)| write(dtype, number, target)),
        }
        Ok(())
    }
}

/// The result of an operation with numbers of `dtype`: in single precision for `float32`, in double precision for
/// all others. One rounding of a double is that of a single operation.
fn rounded(dtype: DType, value: f64) -> f64 {
    let is_single = dtype.kind() == Kind::Float && dtype.size() == 4;
    if is_single { f64::from(value as f32) } else { value }
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::UInt(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// The number modulo 2^64.
    fn wrapped(self) -> i64 {
        match self {
            Self::Int(value) => value,
            Self::UInt(value) => value.cast_signed(),
            Self::Float(value) => value as i64,
        }
    }
}

fn read(dtype: DType, bytes: &[u8]) -> Number {
    let size = bytes.len();
    let mut raw = [0; 8];
    raw[..size].copy_from_slice(bytes);
    if dtype.order() == ByteOrder::Big {
        raw[..size].reverse();
    }
    let word = u64::from_le_bytes(raw);
    match dtype.kind() {
        Kind::Int => {
            let unused = 64 - 8 * size as u32;
            Number::Int((word << unused).cast_signed() >> unused)
        }
        Kind::Float => {
            Number::Float(element_f64(dtype.with_order(ByteOrder::Little), &raw[..size]))
        }
        Kind::Bool => Number::UInt(u64::from(word != 0)),
        _ => Number::UInt(word),
    }
}

fn write(dtype: DType, number: Number, out: &mut [u8]) {
    let size = out.len();
    let raw = match (dtype.kind(), size) {
        (Kind::Float, 2) => u64::from(half::f16::from_f64(number.float()).to_bits()),
        (Kind::Float, 4) => {
            // Directly from the integer: two roundings could differ.
            let single = match number {
                Number::Int(value) => value as f32,
                Number::UInt(value) => value as f32,
                Number::Float(value) => value as f32,
            };
            u64::from(single.to_bits())
        }
        (Kind::Float, _) => number.float().to_bits(),
        (Kind::Bool, _) => u64::from(number.float() != 0.0),
        (Kind::UInt, _) if matches!(number, Number::Float(_)) => number.float() as u64,
        _ => number.wrapped().cast_unsigned(),
    };
    let mut bytes = raw.to_le_bytes();
    if dtype.order() == ByteOrder::Big {
        bytes[..size].reverse();
    }
    out.copy_from_slice(&bytes[..size]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::convert::decode;

    fn le<const N: usize, T>(values: &[T], bytes: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(bytes).collect()
    }

    #[test]
    fn differences_are_summed_in_the_type_of_the_numbers() {
        let filter = Numeric::Delta { dtype: DType::U16, astype: DType::I8 };
        let mut out = [0; 8];
        filter.decode(&[10, 255, 5, 128], &mut out).unwrap();
        assert_eq!(decode::<u16>(&out), [10, 9, 14, 65422]);
        assert_eq!(filter.encoded_len(8), Some(4));
        let big = DType::F32.with_order(ByteOrder::Big);
        let filter = Numeric::Delta { dtype: DType::F32, astype: big };
        let mut out = [0; 12];
        filter.decode(&le(&[0.1_f32, 0.2, 0.7], |v| v.to_be_bytes()), &mut out).unwrap();
        assert_eq!(decode::<f32>(&out), [0.1, 0.1_f32 + 0.2, 0.1_f32 + 0.2 + 0.7]);
    }

    #[test]
    fn scaled_numbers_are_divided_then_shifted() {
        let filter = Numeric::ScaleOffset {
            dtype: DType::F64,
            astype: DType::U8,
            scale: 10.0,
            offset: 1000.0,
        };
        let mut out = [0; 16];
        filter.decode(&[3, 255], &mut out).unwrap();
        assert_eq!(decode::<f64>(&out), [3.0 / 10.0 + 1000.0, 255.0 / 10.0 + 1000.0]);
    }

    #[test]
    fn numbers_of_another_type_are_converted() {
        let half = DType::new(Kind::Float, 2, ByteOrder::Little).unwrap();
        let filter = Numeric::AsType { dtype: DType::F32, astype: half };
        let mut out = [0; 4];
        filter.decode(&half::f16::from_f32(1.5).to_le_bytes(), &mut out).unwrap();
        assert_eq!(decode::<f32>(&out), [1.5]);
        let filter = Numeric::AsType { dtype: DType::I8, astype: DType::I64 };
        let mut out = [0; 2];
        filter.decode(&le(&[-2_i64, 300], |v| v.to_le_bytes()), &mut out).unwrap();
        assert_eq!(decode::<i8>(&out), [-2, 44]);
        assert!(filter.decode(&[0; 9], &mut out).is_err());
    }

    #[test]
    fn packed_bits_are_booleans() {
        let mut out = [7; 10];
        Numeric::PackBits.decode(&[6, 0b1010_0000, 0b0100_0000], &mut out).unwrap();
        assert_eq!(out, [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert!(Numeric::PackBits.decode(&[9, 0], &mut out).is_err());
        assert!(Numeric::PackBits.decode(&[], &mut out).is_err());
    }
}
