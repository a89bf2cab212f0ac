//! Fields to values: type inference and parsing.

use spile_core::convert::Number as _;
use spile_core::dtype::{DType, Kind};
use spile_core::records::{is_float, is_integer};
use spile_core::with_number;

use crate::wire::unquoted;

/// Kinds of fields found in a column, from which its element type is inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Bit mask of the kinds below.
    kinds: u8,
    /// Length of the longest field in bytes, without quotes.
    longest: usize,
}

impl Seen {
    const INTEGER: u8 = 1;
    const FLOAT: u8 = 2;
    const BOOL: u8 = 4;
    const TEXT: u8 = 8;
    /// An empty field.
    pub(crate) const EMPTY: u8 = 16;
    /// An empty quoted field, which some programs write for a missing number.
    const BLANK: u8 = 32;

    /// Whether any of the kinds in `kind` was found.
    pub(crate) fn has(self, kind: u8) -> bool {
        self.kinds & kind != 0
    }

    pub(crate) fn add(&mut self, field: &[u8]) {
        let mut length = field.len();
        if field.len() >= 2 && field[0] == b'"' {
            // Subtract the enclosing quotes and one of each doubled quote.
            length -= 1 + memchr::memchr_iter(b'"', field).count() / 2;
        }
        self.longest = self.longest.max(length);
        self.kinds |= match field {
            [] => Self::EMPTY,
            b"\"\"" => Self::BLANK,
            b"true" | b"false" => Self::BOOL,
            _ if fits_i64(field) => Self::INTEGER,
            _ if is_float(field) => Self::FLOAT,
            _ => Self::TEXT,
        };
    }

    /// The kinds of two columns.
    pub(crate) fn join(self, other: Self) -> Self {
        let longest = self.longest.max(other.longest);
        Self { kinds: self.kinds | other.kinds, longest }
    }

    /// The element type that represents all fields. `gaps`: some rows have no value.
    pub(crate) fn dtype(self, gaps: bool) -> DType {
        let numbers = self.has(Self::INTEGER | Self::FLOAT);
        let gaps = gaps || self.has(Self::BLANK);
        let logical = self.has(Self::BOOL);
        let mixed = logical && (numbers || gaps);
        if self.has(Self::TEXT) || (self.has(Self::BLANK) && !numbers) || mixed {
            return DType::text(u32::try_from(self.longest).unwrap_or(u32::MAX));
        }
        match (logical, self.has(Self::FLOAT) || gaps || !numbers) {
            (true, _) => DType::new(Kind::Bool, 1, DType::U8.order()).unwrap_or(DType::U8),
            (_, true) => DType::F64,
            _ => DType::I64,
        }
    }
}

/// Whether a field is an integer in the range of `i64`.
fn fits_i64(field: &[u8]) -> bool {
    // Up to 18 characters always fit.
    is_integer(field)
        && (field.len() <= 18 || std::str::from_utf8(field).is_ok_and(|t| t.parse::<i64>().is_ok()))
}

/// Parses a field into a little-endian element. Returns `false` if it is not a value of `dtype`.
pub(crate) fn parse(field: &[u8], dtype: DType, out: &mut [u8]) -> bool {
    match dtype.kind() {
        Kind::Text => {
            let inside = unquoted(field);
            let text = inside.as_deref().unwrap_or(field);
            let fits = text.len() <= out.len();
            let text = &text[..text.len().min(out.len())];
            out.fill(0);
            out[..text.len()].copy_from_slice(text);
            fits
        }
        Kind::Bool => {
            out.fill(0);
            let known = matches!(field, b"true" | b"false");
            if let (b"true", [first, ..]) = (field, out) {
                *first = 1;
            }
            known
        }
        _ => {
            let Ok(text) = std::str::from_utf8(field) else { return false };
            let missing = matches!(text, "" | "\"\"") && dtype.kind() == Kind::Float;
            let text = if missing { "NaN" } else { text };
            with_number!(dtype, T => match text.parse::<T>() {
                Ok(value) => {
                    debug_assert_eq!(out.len(), T::SIZE);
                    out.copy_from_slice(&value.to_le_bytes());
                    true
                }
                Err(_) => false,
            }, else false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inferred_types_represent_all_fields() {
        let of = |fields: &[&str], gaps| {
            let mut seen = Seen::default();
            for field in fields {
                seen.add(field.as_bytes());
            }
            seen.dtype(gaps).to_string()
        };
        assert_eq!(of(&["1", "-2"], false), "int64");
        assert_eq!(of(&["1", ""], true), "float64");
        assert_eq!(of(&["1", "2.5e-3", "NaN", "-inf"], false), "float64");
        assert_eq!(of(&["99999999999999999999"], false), "float64");
        assert_eq!(of(&["true", "false"], false), "bool8");
        assert_eq!(of(&["true", "1"], false), "text[4]");
        assert_eq!(of(&["2020-01-02", "1"], false), "text[10]");
        assert_eq!(of(&[], false), "float64");
        assert_eq!(of(&["\"\"", "2"], false), "float64");
        assert_eq!(of(&["\"\"", "\"say \"\"x\"\"\""], false), "text[7]");
        assert_eq!(of(&["\"\""], false), "text[0]");
    }
}
