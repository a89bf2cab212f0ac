//! The words of a text, and the numbers that they are.
//!
//! Between numbers stands everything that cannot be part of one; a repeat count such as `3*1.0` is
//! one word, and no number.

use spile_core::decimal::Wide;
use spile_core::error::Error;

use crate::fast_float;
use crate::scalar::{Scalar, put_integer};

/// What can be part of a number; everything else separates, but for the asterisk: a repeat count
/// and a number that Fortran could not print are no separators. A table, because this is asked of
/// every byte of a text.
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

/// The words of a text and their places.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].iter().position(|b| is_part(*b))?;
        let start = at;
        at += text[at..].iter().position(|b| !is_part(*b)).unwrap_or(text.len() - at);
        Some((start, &text[start..at]))
    })
}

/// Where the last word of `text` begins if the text may end inside it.
pub(crate) fn last_token_start(text: &[u8]) -> usize {
    text.iter().rposition(|b| !is_part(*b)).map_or(0, |k| k + 1)
}

/// Appends all numbers of `text`; an error has its place in the text.
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

/// Most words are plain numbers, which `quick` reads and gives their length; others get a closer
/// look.
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
        let word = &rest[..rest.iter().position(|b| !is_part(*b)).unwrap_or(rest.len())];
        let bad = || BadToken { at, word: word[..word.len().min(40)].escape_ascii().to_string() };
        scalar.parse(word, out).ok_or_else(bad)?;
        at += word.len();
    }
    Ok(())
}

/// A word that is no number of the wanted type.
#[derive(Debug)]
pub(crate) struct BadToken {
    pub(crate) at: usize,
    word: String,
}

impl BadToken {
    pub(crate) fn error(&self, scalar: Scalar) -> Error {
        let wanted = match scalar {
            Scalar::Int(size) => format!("integer({size})"),
            Scalar::Bool(_) => "logical".into(),
            Scalar::Wide(Wide::X87) => "real(10)".into(),
            _ => format!("real({})", scalar.size()),
        };
        let error = Error::malformed("iotk-012", format!("\"{}\" is no {wanted}", self.word));
        if self.word.contains("**") {
            return error.hint(
                "`***` is what Fortran prints for a number that does not fit: the \
                 value was lost when the file was written",
            );
        }
        if self.word.contains('*') {
            return error.hint("repeat counts are not part of the format");
        }
        error
    }
}
