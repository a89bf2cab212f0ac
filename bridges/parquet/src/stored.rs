//! Plain values of the physical types, and their conversion to elements.

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};

/// Julian day number of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// Representation of a type in the plain encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// As in memory.
    Plain,
    /// As 32-bit integers.
    Wide,
    /// As bits.
    Bits,
    /// As byte arrays, each preceded by its length.
    ByteArrays,
    /// Numbers of float64 stored as integers of this type: those with missing values.
    Integers(DType),
    /// Numbers of float64 stored as bits: booleans with missing values.
    FloatBits,
    /// Nanoseconds since 1970 stored as nanoseconds of the day and Julian day (INT96).
    JulianDays,
    /// A decimal number, as its digits in int64 or as float64.
    Decimal {
        /// Representation of the digits.
        digits: Digits,
        /// Number of digits after the decimal point.
        scale: u32,
    },
}

/// Representation of the digits of a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Int32,
    Int64,
    /// Big-endian, of this many bytes.
    Fixed(u32),
    /// Big-endian byte arrays.
    ByteArrays,
}

impl Stored {
    /// The representation of a type in files of this writer; `None` if it is not supported. Opaque bytes are
    /// byte arrays because fastparquet drops trailing zeros of fixed-length ones.
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        match (dtype.kind(), dtype.size()) {
            (Kind::Int | Kind::UInt | Kind::Float, 4 | 8) | (Kind::Float, 2) => Some(Self::Plain),
            (Kind::Int | Kind::UInt, _) => Some(Self::Wide),
            (Kind::Bool, 1) => Some(Self::Bits),
            (Kind::Text, _) | (Kind::Opaque, 1..) => Some(Self::ByteArrays),
            _ => None,
        }
    }

    /// Size in bytes of a plain value that becomes an element of `dtype`; `None` for bits and byte arrays.
    pub(crate) fn width(self, dtype: DType) -> Option<usize> {
        match self {
            Self::Plain => Some(dtype.size()),
            Self::Wide => Some(4),
            Self::Integers(own) => Some(own.size()),
            Self::JulianDays => Some(12),
            Self::Decimal { digits, .. } => digits.width(),
            Self::Bits | Self::FloatBits | Self::ByteArrays => None,
        }
    }

    /// Whether plain values are byte arrays.
    pub(crate) fn is_byte_arrays(self) -> bool {
        matches!(self, Self::ByteArrays | Self::Decimal { digits: Digits::ByteArrays, .. })
    }

    /// Encodes little-endian elements. Fails for strings that are not UTF-8.
    pub(crate) fn encode(self, dtype: DType, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Wide => {
                convert::recode_integers(dtype, wide(dtype), &bytes, &mut out);
            }
            Self::Bits => {
                out.extend(bytes.chunks(8).map(|group| {
                    group.iter().enumerate().fold(0, |byte, (k, b)| byte | u8::from(*b != 0) << k)
                }));
            }
            Self::ByteArrays => {
                let size = dtype.size();
                for k in 0..bytes.len().checked_div(size).unwrap_or(0) {
                    let text = &bytes[k * size..(k + 1) * size];
                    let is_text = dtype.kind() == Kind::Text;
                    let used = text.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                    let end = if is_text { used } else { size };
                    if is_text && std::str::from_utf8(&text[..end]).is_err() {
                        let message = "a string is not UTF-8";
                        return Err(Error::unsupported("parquet-011", message));
                    }
                    out.extend((end as u32).to_le_bytes());
                    out.extend(&text[..end]);
                }
            }
            // The others are not written.
            _ => return Ok(bytes),
        }
        Ok(out)
    }

    /// Decodes plain values into little-endian elements that fill `out`.
    pub(crate) fn decode(self, dtype: DType, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let short =
            || Error::malformed("parquet-005", "page has fewer values than its header states");
        let size = dtype.size().max(1);
        let count = out.len() / size;
        let used = |width: usize| stored.get(..width.checked_mul(count)?);
        match self {
            Self::Plain => {
                let stored = stored.get(..out.len()).ok_or_else(short)?;
                out.copy_from_slice(stored);
            }
            Self::Wide => {
                let mut narrow = Vec::new();
                let stored = used(4).ok_or_else(short)?;
                convert::recode_integers(wide(dtype), dtype, stored, &mut narrow);
                out.copy_from_slice(narrow.get(..out.len()).ok_or_else(short)?);
            }
            Self::Integers(own) => {
                let stored = used(own.size()).ok_or_else(short)?;
                for (slot, value) in out.chunks_exact_mut(8).zip(stored.chunks_exact(own.size())) {
                    slot.copy_from_slice(&convert::element_f64(own, value).to_le_bytes());
                }
            }
            Self::Bits | Self::FloatBits => {
                for (k, slot) in out.chunks_exact_mut(size).enumerate() {
                    let bit = stored.get(k / 8).ok_or_else(short)? >> (k % 8) & 1;
                    if self == Self::Bits {
                        slot[0] = bit;
                    } else {
                        slot.copy_from_slice(&f64::from(bit).to_le_bytes());
                    }
                }
            }
            Self::ByteArrays => {
                let mut rest = stored;
                for slot in out.chunks_exact_mut(size) {
                    let (text, after) = next_byte_array(rest).ok_or_else(short)?;
                    let text = text.get(..slot.len()).unwrap_or(text);
                    slot.fill(0);
                    slot[..text.len()].copy_from_slice(text);
                    rest = after;
                }
            }
            Self::JulianDays => {
                let stored = used(12).ok_or_else(short)?;
                for (slot, value) in out.chunks_exact_mut(8).zip(stored.as_chunks::<12>().0) {
                    slot.copy_from_slice(&nanoseconds(value)?.to_le_bytes());
                }
            }
            Self::Decimal { digits, scale } => {
                let mut rest = stored;
                for slot in out.chunks_exact_mut(8) {
                    let bytes = digits.next(&mut rest).ok_or_else(short)?;
                    let number = digits.number(bytes).ok_or_else(|| {
                        let message = "a decimal number has more than 38 digits";
                        Error::unsupported("parquet-020", message)
                    })?;
                    if dtype.kind() == Kind::Float {
                        slot.copy_from_slice(&decimal(number, scale).to_le_bytes());
                        continue;
                    }
                    let number = i64::try_from(number).map_err(|_| {
                        let message = "a decimal number exceeds the precision of its column";
                        Error::malformed("parquet-005", message)
                    })?;
                    slot.copy_from_slice(&number.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}

impl Digits {
    fn width(self) -> Option<usize> {
        match self {
            Self::Int32 => Some(4),
            Self::Int64 => Some(8),
            Self::Fixed(size) => Some(size as usize),
            Self::ByteArrays => None,
        }
    }

    /// Splits off the bytes of the first number; `None` if `rest` is too short.
    fn next<'a>(self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (bytes, after) = match self.width() {
            Some(width) => rest.split_at_checked(width)?,
            None => next_byte_array(rest)?,
        };
        *rest = after;
        Some(bytes)
    }

    /// The number in these bytes; `None` if it exceeds 128 bits.
    fn number(self, bytes: &[u8]) -> Option<i128> {
        match self {
            Self::Int32 => return Some(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            Self::Int64 => return Some(i64::from_le_bytes(*bytes.first_chunk()?).into()),
            Self::Fixed(_) | Self::ByteArrays => {}
        }
        let sign = if bytes.first().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
        let excess = bytes.len().saturating_sub(16);
        if bytes[..excess].iter().any(|b| *b != sign) {
            return None;
        }
        let mut all = [sign; 16];
        all[16 - (bytes.len() - excess)..].copy_from_slice(&bytes[excess..]);
        let number = i128::from_be_bytes(all);
        // Bytes that were dropped may have had another sign.
        (excess == 0 || (number < 0) == (sign == 0xff)).then_some(number)
    }
}

/// The floating-point number nearest to `digits / 10^scale`.
fn decimal(digits: i128, scale: u32) -> f64 {
    if digits.unsigned_abs() < 1 << 53 && scale <= 22 {
        // Both are exact, so that the quotient is rounded once.
        return digits as f64 / 10_u128.pow(scale) as f64;
    }
    format!("{digits}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// Nanoseconds since 1970 of an INT96 time. Fails if they exceed 64 bits.
fn nanoseconds(value: &[u8; 12]) -> Result<i64> {
    let (time, day) = value.split_at(8);
    let time = time.try_into().map_or(0, i64::from_le_bytes);
    let day = i64::from(day.try_into().map_or(0, i32::from_le_bytes));
    let days = (day - JULIAN_1970).checked_mul(DAY);
    days.and_then(|days| days.checked_add(time)).ok_or_else(|| {
        let message = "an INT96 time is beyond the range of 64-bit nanoseconds";
        Error::unsupported("parquet-020", message)
    })
}

/// The 32-bit type for a narrower integer type.
pub(crate) fn wide(dtype: DType) -> DType {
    if dtype.kind() == Kind::UInt { DType::U32 } else { DType::I32 }
}

/// Splits off the first byte array; `None` if it exceeds `bytes`.
pub(crate) fn next_byte_array(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_once() {
        assert_eq!(decimal(3, 1), 0.3);
        assert_eq!(decimal(-12345, 2), -123.45);
        assert_eq!(decimal(123_456_789_012_345_678_901_234, 5), 1_234_567_890_123_456_789.012_34);
        assert_eq!(decimal(1, 30), 1e-30);
        let next = |digits: Digits, bytes: &[u8]| {
            digits.next(&mut &bytes[..]).map(|bytes| digits.number(bytes))
        };
        assert_eq!(next(Digits::Fixed(3), &[0xff, 0xff, 0xfe]), Some(Some(-2)));
        assert_eq!(next(Digits::Fixed(2), &[1, 0]), Some(Some(256)));
        assert_eq!(next(Digits::ByteArrays, &[1, 0, 0, 0, 0x80]), Some(Some(-128)));
        assert_eq!(next(Digits::ByteArrays, &[0, 0, 0, 0]), Some(Some(0)));
        assert_eq!(next(Digits::Int64, &(-5_i64).to_le_bytes()), Some(Some(-5)));
        assert_eq!(next(Digits::Fixed(17), &[1; 17]), Some(None));
        let mut large = [0; 17];
        large[1] = 0x80;
        assert_eq!(next(Digits::Fixed(17), &large), Some(None));
        assert_eq!(next(Digits::Fixed(4), &[1]), None);
    }

    #[test]
    fn the_epoch_is_a_julian_day() {
        let mut value = [0; 12];
        value[..8].copy_from_slice(&5_i64.to_le_bytes());
        value[8..].copy_from_slice(&2_440_589_i32.to_le_bytes());
        assert_eq!(nanoseconds(&value).unwrap(), DAY + 5);
        value[8..].copy_from_slice(&0_i32.to_le_bytes());
        assert!(nanoseconds(&value).is_err());
    }
}
