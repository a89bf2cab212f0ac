//! Fields to values: type inference and parsing.

use spile_core::convert::Number as _;
use spile_core::dtype::{DType, Kind};
use spile_core::text_records::{is_float, parse_float};
use spile_core::with_number;

use crate::wire::unquoted;

/// Fields that stand for a missing number, those of pandas and R.
const MISSING: [&[u8]; 12] = [
    b"NA", b"N/A", b"n/a", b"NULL", b"null", b"None", b"<NA>", b"#N/A", b"#NA", b"-nan", b"-NaN",
    b"NaT",
];

/// Integers up to this one are exact in float64.
const EXACT: u64 = 1 << 53;

/// How the fields of a column are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// The comma is the decimal mark.
    pub(crate) comma: bool,
}

/// Kinds of fields found in a column, from which its element type is inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Bit mask of the kinds below.
    kinds: u16,
    /// Length of the longest field in bytes, without quotes.
    longest: usize,
}

impl Seen {
    const INTEGER: u16 = 1;
    const FLOAT: u16 = 1 << 1;
    const BOOL: u16 = 1 << 2;
    const TEXT: u16 = 1 << 3;
    /// An empty field.
    pub(crate) const EMPTY: u16 = 1 << 4;
    /// An empty quoted field, which some programs write for a missing number.
    const BLANK: u16 = 1 << 5;
    /// A word for a missing number.
    const MISSING: u16 = 1 << 6;
    /// A number with a decimal comma.
    const COMMA: u16 = 1 << 7;
    /// An integer that float64 does not represent exactly.
    const INEXACT: u16 = 1 << 8;
    /// An integer beyond int64.
    const UNSIGNED: u16 = 1 << 9;
    /// An integer below zero.
    const NEGATIVE: u16 = 1 << 10;
    /// A quoted number; text unless all fields of the file are quoted.
    const QUOTED: u16 = 1 << 11;
    /// A quoted field that is not a number.
    const QUOTED_TEXT: u16 = 1 << 12;
    /// Digits after a leading zero: an identifier rather than a number, if quoted.
    const PADDED: u16 = 1 << 13;
    /// A field that is not quoted.
    const PLAIN: u16 = 1 << 14;
    /// A text that is not UTF-8.
    pub(crate) const NOT_UTF8: u16 = 1 << 15;
    const NUMBERS: u16 = Self::INTEGER | Self::FLOAT | Self::COMMA;

    /// Whether any of the kinds in `kind` was found.
    pub(crate) fn has(self, kind: u16) -> bool {
        self.kinds & kind != 0
    }

    pub(crate) fn add(&mut self, field: &[u8]) {
        if let [b'"', rest @ ..] = field {
            return self.add_quoted(field, rest);
        }
        self.longest = self.longest.max(field.len());
        let kind = kind(field);
        self.kinds |= match kind {
            Self::EMPTY => kind,
            Self::TEXT => kind | Self::PLAIN | not_utf8(field),
            _ => kind | Self::PLAIN,
        };
    }

    fn add_quoted(&mut self, field: &[u8], rest: &[u8]) {
        let inside = rest.strip_suffix(b"\"").unwrap_or(rest);
        // A field with a single quote inside is not quoted.
        let length = match memchr::memchr(b'"', inside) {
            None if inside.len() < rest.len() => inside.len(),
            _ => unquoted(field).map_or(field.len(), |text| text.len()),
        };
        self.longest = self.longest.max(length);
        self.kinds |= match inside {
            [] => Self::BLANK,
            _ => match kind(inside) {
                number if number & Self::NUMBERS != 0 => {
                    let digits = inside.trim_ascii().trim_ascii_start();
                    let padded =
                        digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
                    number | Self::QUOTED | if padded { Self::PADDED } else { 0 }
                }
                found @ (Self::MISSING | Self::BOOL) => found | Self::QUOTED,
                _ => Self::QUOTED_TEXT | not_utf8(inside),
            },
        };
    }

    /// The kinds of two columns.
    pub(crate) fn join(self, other: Self) -> Self {
        let longest = self.longest.max(other.longest);
        Self { kinds: self.kinds | other.kinds, longest }
    }

    /// Whether quoted numbers are numbers: no column has fields that are not quoted.
    pub(crate) fn are_all_quoted(columns: &[Self]) -> bool {
        !columns.iter().any(|seen| seen.has(Self::PLAIN))
    }

    /// Whether the comma is the decimal mark of the file.
    pub(crate) fn have_commas(columns: &[Self]) -> bool {
        let is_number = |seen: &&Self| seen.has(Self::COMMA) && !seen.has(Self::TEXT | Self::FLOAT);
        columns.iter().any(|seen| is_number(&seen))
    }

    /// The element type that represents all fields. `gaps`: some rows have no value. `quoted`: quoted numbers
    /// are numbers. In a file with decimal commas, numbers with a point are text: it may separate thousands.
    pub(crate) fn dtype(self, gaps: bool, quoted: bool, spelling: Spelling) -> DType {
        let numbers = self.has(Self::NUMBERS);
        let gaps = gaps || self.has(Self::BLANK | Self::MISSING);
        let logical = self.has(Self::BOOL);
        let inexact = self.has(Self::INEXACT) && !self.has(Self::FLOAT | Self::COMMA);
        let text = self.has(Self::TEXT | Self::QUOTED_TEXT)
            || (self.has(Self::BLANK | Self::MISSING) && !numbers)
            || (self.has(Self::QUOTED) && (!quoted || self.has(Self::PADDED)))
            || (logical && (numbers || gaps))
            || (self.has(Self::COMMA) && !spelling.comma)
            || (self.has(Self::FLOAT) && spelling.comma)
            // As float64 they would be other numbers.
            || (inexact && (gaps || self.has(Self::UNSIGNED) && self.has(Self::NEGATIVE)));
        if text {
            return DType::text(u32::try_from(self.longest).unwrap_or(u32::MAX));
        }
        match (logical, self.has(Self::FLOAT | Self::COMMA) || gaps || !numbers) {
            (true, _) => DType::new(Kind::Bool, 1, DType::U8.order()).unwrap_or(DType::U8),
            (_, true) => DType::F64,
            _ if self.has(Self::UNSIGNED) => DType::U64,
            _ => DType::I64,
        }
    }
}

/// [`Seen::NOT_UTF8`] for bytes that are not UTF-8.
fn not_utf8(text: &[u8]) -> u16 {
    if std::str::from_utf8(text).is_err() { Seen::NOT_UTF8 } else { 0 }
}

/// The kind of a field without quotes.
fn kind(field: &[u8]) -> u16 {
    let Some(first) = field.first() else { return Seen::EMPTY };
    if !(first.is_ascii_digit() || b"+-.".contains(first)) {
        return other_kind(field);
    }
    let sign = usize::from(b"+-".contains(first));
    let digits = field[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = &field[sign + digits..];
    match rest {
        // Up to 15 digits are exact in float64.
        [] if digits > 0 && digits <= 15 => {
            Seen::INTEGER | if *first == b'-' { Seen::NEGATIVE } else { 0 }
        }
        [] if digits > 0 => integer_kind(field),
        _ if is_float(field) => Seen::FLOAT,
        [b',', fraction @ ..] if digits > 0 && has_decimals(fraction) => Seen::COMMA,
        _ => other_kind(field),
    }
}

/// The kind of a field of more than 15 digits.
fn integer_kind(field: &[u8]) -> u16 {
    let text = std::str::from_utf8(field).unwrap_or_default();
    let inexact = |size: u64| if size > EXACT { Seen::INEXACT } else { 0 };
    if let Ok(value) = text.parse::<i64>() {
        let negative = if value < 0 { Seen::NEGATIVE } else { 0 };
        return Seen::INTEGER | negative | inexact(value.unsigned_abs());
    }
    match text.parse::<u64>() {
        Ok(_) => Seen::INTEGER | Seen::UNSIGNED | Seen::INEXACT,
        // No type of numbers represents it.
        Err(_) => Seen::TEXT,
    }
}

/// The kind of a field that does not begin with a digit, or is not a plain number.
fn other_kind(field: &[u8]) -> u16 {
    let trimmed = field.trim_ascii();
    if trimmed.len() < field.len() {
        return if trimmed.is_empty() { Seen::EMPTY } else { kind(trimmed) };
    }
    match field {
        b"true" | b"True" | b"TRUE" | b"false" | b"False" | b"FALSE" => Seen::BOOL,
        _ if is_float(field) => Seen::FLOAT,
        _ if MISSING.contains(&field) => Seen::MISSING,
        // Exponents of Fortran.
        _ if parse_float(field).is_some() => Seen::FLOAT,
        _ => Seen::TEXT,
    }
}

/// Whether this follows a decimal comma: digits and an optional exponent.
fn has_decimals(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit) && !text.contains(&b'.') && is_float(text)
}

/// Whether a field is a number, or stands for a missing one.
pub(crate) fn is_number(field: &[u8]) -> bool {
    kind(field) & Seen::NUMBERS != 0
}

/// Whether a field is empty or stands for a missing number.
pub(crate) fn is_missing(field: &[u8]) -> bool {
    kind(field) & (Seen::EMPTY | Seen::MISSING) != 0 || field == b"\"\""
}

/// Parses a field into a little-endian element. Returns `false` if it is not a value of `dtype`.
pub(crate) fn parse(field: &[u8], dtype: DType, spelling: Spelling, out: &mut [u8]) -> bool {
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
            let bare = field.trim_ascii();
            let bare = bare
                .strip_prefix(b"\"")
                .and_then(|f| f.strip_suffix(b"\""))
                .unwrap_or(bare)
                .trim_ascii();
            let (value, known) = match bare {
                b"true" | b"True" | b"TRUE" => (1, true),
                b"false" | b"False" | b"FALSE" => (0, true),
                _ => (0, false),
            };
            if let [first, ..] = out {
                *first = value;
            }
            known
        }
        Kind::Float => {
            let Some(value) = parse_real(field, spelling) else { return false };
            with_number!(dtype, T => {
                debug_assert_eq!(out.len(), T::SIZE);
                // The digits of a float32 are parsed as such: parsing them as float64 would round twice.
                let text = std::str::from_utf8(field).unwrap_or_default();
                let own = if T::SIZE < 8 { text.parse::<T>().ok() } else { None };
                out.copy_from_slice(&own.unwrap_or(T::from_f64(value)).to_le_bytes());
                true
            }, else false)
        }
        _ => {
            let bare =
                field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field);
            let Ok(text) = std::str::from_utf8(bare.trim_ascii()) else { return false };
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

/// The number of a field; NaN if it is missing, `None` if the field is something else.
pub(crate) fn parse_real(field: &[u8], spelling: Spelling) -> Option<f64> {
    let fast = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<f64>().ok();
    if let Some(value) = fast(field) {
        return Some(value);
    }
    let bare = field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field);
    let bare = bare.trim_ascii();
    if bare.is_empty() || MISSING.contains(&bare) {
        return Some(f64::NAN);
    }
    match bare.iter().position(|b| *b == b',') {
        Some(comma) if spelling.comma => {
            let mut text = bare.to_vec();
            text[comma] = b'.';
            fast(&text)
        }
        Some(_) => None,
        None => parse_float(bare),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(fields: &[&str], gaps: bool, spelling: Spelling) -> String {
        let mut seen = Seen::default();
        for field in fields {
            seen.add(field.as_bytes());
        }
        seen.dtype(gaps, Seen::are_all_quoted(&[seen]), spelling).to_string()
    }

    #[test]
    fn inferred_types_represent_all_fields() {
        let of = |fields: &[&str], gaps| infer(fields, gaps, Spelling::default());
        assert_eq!(of(&["1", "-2"], false), "int64");
        assert_eq!(of(&["1", ""], true), "float64");
        assert_eq!(of(&["1", "2.5e-3", "NaN", "-inf"], false), "float64");
        assert_eq!(of(&[" 1", "2.5D+03 ", "NA"], false), "float64");
        assert_eq!(of(&["18446744073709551615", "0"], false), "uint64");
        // No number type is exact.
        assert_eq!(of(&["18446744073709551615", "-1"], false), "text[20]");
        assert_eq!(of(&["99999999999999999999"], false), "text[20]");
        assert_eq!(of(&["9007199254740993", ""], true), "text[16]");
        assert_eq!(of(&["true", "false"], false), "bool8");
        assert_eq!(of(&["True", "FALSE"], false), "bool8");
        assert_eq!(of(&["true", "1"], false), "text[4]");
        assert_eq!(of(&["2020-01-02", "1"], false), "text[10]");
        assert_eq!(of(&["2020-01", "2020-02"], false), "text[7]");
        assert_eq!(of(&["0x1F", "1"], false), "text[4]");
        assert_eq!(of(&["NA"], false), "text[2]");
        assert_eq!(of(&[], false), "float64");
        assert_eq!(of(&["\"\"", "2"], false), "float64");
        assert_eq!(of(&["\"\"", "\"say \"\"x\"\"\""], false), "text[7]");
        assert_eq!(of(&["\"\""], false), "text[0]");
        // Quoted numbers are numbers if everything is quoted.
        assert_eq!(of(&["\"1\"", "\"2\""], false), "int64");
        assert_eq!(of(&["\"1\"", "2"], false), "text[1]");
        assert_eq!(of(&["\"007\"", "\"1\""], false), "text[3]");
        assert_eq!(of(&["\"True\"", "\"False\""], false), "bool8");
        assert_eq!(of(&["\"True\"", "False"], false), "text[5]");
    }

    #[test]
    fn a_comma_is_a_decimal_mark_or_part_of_a_text() {
        let comma = Spelling { comma: true };
        assert_eq!(infer(&["1,5", "2"], false, comma), "float64");
        assert_eq!(infer(&["1,5", "2"], false, Spelling::default()), "text[3]");
        assert_eq!(infer(&["1,234,567"], false, comma), "text[9]");
        assert_eq!(infer(&["1.000", "2"], false, comma), "text[5]");
        assert_eq!(parse_real(b"-1,5e3", comma), Some(-1500.0));
        assert_eq!(parse_real(b"1,5", Spelling::default()), None);
        assert!(parse_real(b"N/A", comma).unwrap().is_nan());
    }
}
