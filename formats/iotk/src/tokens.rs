//! Splits text into tokens and parses them as numbers.
//!
//! Tokens are separated by all bytes that cannot be part of a number. A repeat count such as `3*1.0`
//! is one token and not a number.

use spile_core::decimal::Wide;
use spile_core::error::Error;

use crate::fast_float;
use crate::scalar::{Scalar, put_integer};

/// Bytes that can be part of a token. The asterisk is one, because it is in repeat counts and in
/// `***`, which Fortran prints for numbers that do not fit.
static PART: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'+' | b'-' | b'.' | b'*');
        byte += 1;
    }
    table
};

fn is_part(byte: u8) -> bool {
    PART[usize::from(byte)]
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
    match scalar {
        Scalar::F64 => parse_tokens(scalar, text, out, |text, out| {
            let (value, len) = fast_float::read(text)?;
            out.extend_from_slice(&value.to_le_bytes());
            Some(len)
        }),
        Scalar::Int(size) => parse_tokens(scalar, text, out, |text, out| {
            let (value, len) = fast_float::read_integer(text)?;
            put_integer(value, size, out).map(|()| len)
        }),
        _ => parse_tokens(scalar, text, out, |_, _| None),
    }
}

/// Parses tokens with `quick`, which returns the length of a plain number; others are parsed with
/// [`Scalar::parse`].
fn parse_tokens(
    scalar: Scalar,
    text: &[u8],
    out: &mut Vec<u8>,
    quick: impl Fn(&[u8], &mut Vec<u8>) -> Option<usize>,
) -> Result<(), BadToken> {
    let ends = |at: usize| text.get(at).is_none_or(|b| !is_part(*b));
    let mut at = 0;
    while at < text.len() {
        if !is_part(text[at]) {
            at += 1;
            continue;
        }
        let before = out.len();
        if let Some(len) = quick(&text[at..], out) {
            if ends(at + len) {
                at += len;
                continue;
            }
            out.truncate(before);
        }
        let rest = &text[at..];
        let token = &rest[..rest.iter().position(|b| !is_part(*b)).unwrap_or(rest.len())];
        let shown = || token[..token.len().min(40)].escape_ascii().to_string();
        scalar.parse(token, out).ok_or_else(|| BadToken { at, token: shown() })?;
        at += token.len();
    }
    Ok(())
}

/// A token that is not a number of the expected type.
#[derive(Debug)]
pub(crate) struct BadToken {
    pub(crate) at: usize,
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
