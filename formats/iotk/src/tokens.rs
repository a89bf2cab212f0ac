//! Splits text into tokens and parses them as numbers.
//!
//! Tokens are separated by all bytes that cannot be part of a number. A repeat count such as `3*1.0`
//! is one token and not a number.

use spile_core::Error;
use spile_core::decimal::Wide;

use crate::scalar::Scalar;

/// True for bytes that can be part of a token. The asterisk is one, because it is in repeat counts and
/// in `***`, which Fortran prints for numbers that do not fit.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-' | b'.' | b'*')
}

/// The tokens of `text` and their byte positions.
pub(crate) fn tokens(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].iter().position(|b| is_part(*b))?;
        let start = at;
        at += text[at..].iter().position(|b| !is_part(*b)).unwrap_or(text.len() - at);
        Some((start, &text[start..at]))
    })
}

/// The position of the last token of `text` if the text ends inside it, else the length.
pub(crate) fn last_token_start(text: &[u8]) -> usize {
    text.iter().rposition(|b| !is_part(*b)).map_or(0, |k| k + 1)
}

/// Appends all numbers of `text` as little-endian bytes. The error has the position in the text.
pub(crate) fn parse_all(scalar: Scalar, text: &[u8], out: &mut Vec<u8>) -> Result<(), BadToken> {
    let mut at = 0;
    while at < text.len() {
        if !is_part(text[at]) {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        // Most numbers are plain decimals; other notations are left to the general parser.
        if scalar == Scalar::F64
            && let Ok((value, len)) = fast_float2::parse_partial::<f64, _>(rest)
            && value.is_finite()
            && rest.get(len).is_none_or(|b| !is_part(*b))
        {
            out.extend_from_slice(&value.to_le_bytes());
            at += len;
            continue;
        }
        let token = &rest[..rest.iter().position(|b| !is_part(*b)).unwrap_or(rest.len())];
        let shown = || token[..token.len().min(40)].escape_ascii().to_string();
        let len = token.len();
        scalar.parse(token, out).ok_or_else(|| BadToken { at, len, token: shown() })?;
        at += token.len();
    }
    Ok(())
}

/// Like [`parse_all`], but reals that are too large for their kind are infinite.
pub(crate) fn parse_with_overflow(
    scalar: Scalar,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BadToken> {
    let mut from = 0;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        let Err(bad) = parse_all(scalar, rest, out) else { return Ok(()) };
        let token = rest.get(bad.at..bad.at + bad.len).unwrap_or_default();
        if scalar.overflow(token, out).is_none() {
            return Err(BadToken { at: from + bad.at, ..bad });
        }
        from += bad.at + bad.len;
    }
}

/// A token that is not a number of the expected type.
#[derive(Debug)]
pub(crate) struct BadToken {
    pub(crate) at: usize,
    len: usize,
    token: String,
}

impl BadToken {
    pub(crate) fn error(&self, scalar: Scalar) -> Error {
        let expected = match scalar {
            Scalar::Int(size) => format!("integer({size})"),
            Scalar::Bool(_) => "logical".into(),
            Scalar::Wide(Wide::X87) => "real(10)".into(),
            _ => format!("real({})", scalar.size()),
        };
        let error =
            Error::malformed("iotk-012", format!("expected {expected}, found \"{}\"", self.token));
        if self.token.contains("**") {
            return error.hint(
                "Fortran prints `***` for a number that does not fit its field; the value was lost \
                 when the file was written",
            );
        }
        if self.token.contains('*') {
            return error.hint("IOTK has no repeat counts");
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(text: &str) {
        let mut out = Vec::new();
        parse_all(Scalar::F64, text.as_bytes(), &mut out).unwrap();
        let value = text.replace(['d', 'D'], "e").parse::<f64>().unwrap();
        assert_eq!(out, value.to_le_bytes(), "{text}");
    }

    #[test]
    fn numbers_near_the_midpoint_of_two_doubles_are_rounded_correctly() {
        // 2^53 + 1, and its neighbours in the last of 19 digits.
        for text in [
            "9007199254740993",
            "9007199254740993.000",
            "9007199254740992.999",
            "9007199254740993.001",
            "9007199254740995",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "4503599627370496.5",
            "4503599627370497.5",
            "8.5e22",
            "5e-324",
            "12345678901234567890",
            "-0.0",
            "+3",
            "1.",
            ".5",
            "2.5d-3",
        ] {
            agrees(text);
        }
    }

    #[test]
    fn overflow_and_incomplete_numbers_are_errors() {
        for text in ["-", ".", "e5", "1e", "1e99999", "1e400", "1.5x", "1.0.0"] {
            assert!(parse_all(Scalar::F64, text.as_bytes(), &mut Vec::new()).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn every_double_is_the_nearest_to_its_digits(bits in any::<u64>(), digits in 0..19_usize) {
            let value = f64::from_bits(bits);
            let text = format!("{value:.digits$e}");
            if value.is_finite() && text.parse::<f64>().unwrap().is_finite() {
                agrees(&text);
                agrees(&format!("{value:e}"));
            }
        }

        #[test]
        fn any_digits_and_powers(digits in any::<u64>(), power in -360_i32..280, cut in 0..19_u32) {
            agrees(&format!("{}e{power}", digits / 10_u64.pow(cut)));
        }
    }
}
