//! One field as a value.

use spile_core::convert::Number as _;
use spile_core::dtype::{DType, Kind};
use spile_core::with_number;

use crate::record::unquoted;

/// What the fields of a column have been so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Kinds of fields, a bit each.
    kinds: u8,
    /// Bytes of the longest text.
    longest: usize,
}

impl Seen {
    const WHOLE: u8 = 1;
    const REAL: u8 = 2;
    const LOGICAL: u8 = 4;
    const TEXT: u8 = 8;
    /// Nothing between two commas.
    pub(crate) const EMPTY: u8 = 16;
    /// A text without letters, which some write where a number is missing.
    const BLANK: u8 = 32;

    pub(crate) fn has(self, kind: u8) -> bool {
        self.kinds & kind != 0
    }

    pub(crate) fn add(&mut self, field: &[u8]) {
        let mut length = field.len();
        if field.len() >= 2 && field[0] == b'"' {
            // Those around it, and one of each two inside, are not of the text.
            length -= 1 + memchr::memchr_iter(b'"', field).count() / 2;
        }
        self.longest = self.longest.max(length);
        self.kinds |= match field {
            [] => Self::EMPTY,
            b"\"\"" => Self::BLANK,
            b"true" | b"false" => Self::LOGICAL,
            _ if is_whole(field) => Self::WHOLE,
            _ if is_real(field) => Self::REAL,
            _ => Self::TEXT,
        };
    }

    pub(crate) fn join(self, other: Self) -> Self {
        let longest = self.longest.max(other.longest);
        Self { kinds: self.kinds | other.kinds, longest }
    }

    /// The type that holds all of them; `gaps`: something is missing where there are other values.
    pub(crate) fn dtype(self, gaps: bool) -> DType {
        let numbers = self.has(Self::WHOLE | Self::REAL);
        let gaps = gaps || self.has(Self::BLANK);
        let logical = self.has(Self::LOGICAL);
        let mixed = logical && (numbers || gaps);
        if self.has(Self::TEXT) || (self.has(Self::BLANK) && !numbers) || mixed {
            return DType::text(u32::try_from(self.longest).unwrap_or(u32::MAX));
        }
        match (logical, self.has(Self::REAL) || gaps || !numbers) {
            (true, _) => DType::new(Kind::Bool, 1, DType::U8.order()).unwrap_or(DType::U8),
            (_, true) => DType::F64,
            _ => DType::I64,
        }
    }
}

/// A whole number that 64 bits hold.
fn is_whole(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").or(field.strip_prefix(b"+")).unwrap_or(field);
    let short = digits.len() <= 18;
    !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && (short || std::str::from_utf8(field).is_ok_and(|t| t.parse::<i64>().is_ok()))
}

/// A number as Rust reads it; cheaper than reading it.
fn is_real(field: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let n = text.iter().take_while(|b| b.is_ascii_digit()).count();
        (n, &text[n..])
    }
    let sign = |text: &'_ [u8]| usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let rest = &field[sign(field)..];
    if ["nan", "inf", "infinity"].iter().any(|word| rest.eq_ignore_ascii_case(word.as_bytes())) {
        return true;
    }
    let (mut count, mut rest) = digits(rest);
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (more, behind) = digits(fraction);
        (count, rest) = (count + more, behind);
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let (more, behind) = digits(&exponent[sign(exponent)..]);
        return count > 0 && more > 0 && behind.is_empty();
    }
    count > 0 && rest.is_empty()
}

/// Writes a field's value as a little-endian element; whether it has one of that type.
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
    fn types_are_those_that_hold_all_fields() {
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
        for (text, real) in [
            ("1.", true),
            (".5", true),
            (".", false),
            ("1e", false),
            ("e5", false),
            ("1e5x", false),
            ("+", false),
        ] {
            assert_eq!(is_real(text.as_bytes()), real, "{text}");
            assert_eq!(text.parse::<f64>().is_ok(), real, "{text}");
        }
    }
}
