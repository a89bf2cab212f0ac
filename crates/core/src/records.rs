//! Text files, record by record, in one pass with bounded memory.

use crate::error::{Error, Result};
use crate::format::{Region, RegionKind};
use crate::report::Report;
use crate::source::Source;

/// Buffer size in bytes; larger only for longer records.
const CHUNK: usize = 1 << 20;

/// A line, or a record with another terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its bytes without the terminator.
    pub bytes: &'a [u8],
    /// Offset of the first byte after its terminator.
    pub next: u64,
    /// Whether it has a terminator; the last record may have none.
    pub ended: bool,
}

/// Calls `each` with every record. `end` returns the length of the first record of a text without and with
/// its terminator, or `None` if there is no terminator. A record longer than `longest` bytes is the error
/// `too_long`.
pub fn each_record(
    source: &Source,
    longest: usize,
    end: impl Fn(&[u8]) -> Option<(usize, usize)>,
    too_long: impl FnOnce() -> Error,
    mut each: impl FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK.min(longest.max(1))];
    let mut base = 0;
    loop {
        let got = source.read_at_most(base, &mut buffer)?;
        let at_end = got < buffer.len();
        let text = &buffer[..got];
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let found = end(rest);
            let (len, next) = match found {
                Some(found) => found,
                None if at_end => (rest.len(), rest.len()),
                None => break,
            };
            each(Record {
                offset: base + at as u64,
                bytes: &rest[..len],
                next: base + (at + next) as u64,
                ended: found.is_some(),
            })?;
            at += next;
        }
        if at_end {
            return Ok(());
        }
        if at == 0 && buffer.len() >= longest {
            return Err(too_long().at(base));
        }
        if at == 0 {
            buffer.resize((2 * buffer.len()).min(longest), 0);
        }
        base += at as u64;
    }
}

/// Iterator over the records of a text in memory, without their terminators.
#[derive(Clone, Debug)]
pub struct Records<'a, F> {
    rest: &'a [u8],
    end: F,
}

impl<'a, F: Fn(&[u8]) -> Option<(usize, usize)>> Records<'a, F> {
    /// Splits `text` at the terminators found by `end`, as in [`each_record`]. The last record need not be
    /// terminated.
    pub fn new(text: &'a [u8], end: F) -> Self {
        Self { rest: text, end }
    }
}

impl<'a, F: Fn(&[u8]) -> Option<(usize, usize)>> Iterator for Records<'a, F> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = self.rest.len();
        if len == 0 {
            return None;
        }
        let (end, next) = (self.end)(self.rest).unwrap_or((len, len));
        let record = &self.rest[..end];
        self.rest = &self.rest[next..];
        Some(record)
    }
}

/// Finds the end of the first line: its length without and with the terminator, LF or CR. CRLF terminates
/// a line and an empty one.
pub fn line_end(text: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr2(b'\n', b'\r', text).map(|end| (end, end + 1))
}

/// Whether `token` is an integer: decimal digits with an optional sign.
pub fn is_integer(token: &[u8]) -> bool {
    let digits = &token[sign(token)..];
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Whether `token` is a floating-point number that `str::parse::<f64>` accepts. Cheaper than parsing.
pub fn is_float(token: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let n = text.iter().take_while(|b| b.is_ascii_digit()).count();
        (n, &text[n..])
    }
    let rest = &token[sign(token)..];
    if [&b"nan"[..], b"inf", b"infinity"].iter().any(|name| rest.eq_ignore_ascii_case(name)) {
        return true;
    }
    let (mut count, mut rest) = digits(rest);
    if let Some(fraction) = rest.strip_prefix(b".") {
        let (more, after) = digits(fraction);
        (count, rest) = (count + more, after);
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let (more, after) = digits(&exponent[sign(exponent)..]);
        return count > 0 && more > 0 && after.is_empty();
    }
    count > 0 && rest.is_empty()
}

/// Length of the sign of a number: 0 or 1.
fn sign(token: &[u8]) -> usize {
    usize::from(matches!(token.first(), Some(b'+' | b'-')))
}

/// Parses a floating-point number as C, Python or Fortran print it, `1.0D+00` and `1.0+100` included.
/// `None` if `token` is not a number.
pub fn parse_float(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(token).ok()?;
    text.parse().ok().or_else(|| {
        let digits =
            text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
        let (mantissa, exponent) = match text[digits..].strip_prefix(['D', 'd']) {
            Some(exponent) => (&text[..digits], exponent),
            // Fortran omits the letter before an exponent of three digits.
            None if digits == text.len() => {
                text.split_at(text.rfind(['+', '-']).filter(|k| *k > 0)?)
            }
            None => return None,
        };
        format!("{mantissa}e{exponent}").parse().ok()
    })
}

/// The rows of a text table: their byte range and number, and an incomplete last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// First byte of the first row.
    pub start: u64,
    /// First byte after the last complete row.
    pub end: u64,
    /// Number of complete rows.
    pub count: u64,
    /// Number of fields of a row.
    pub columns: u64,
    /// Number of fields of an incomplete last row.
    pub partial: Option<u64>,
}

impl Rows {
    /// Adds a complete row; the next record begins at byte `next`.
    pub fn push(&mut self, next: u64) {
        self.count += 1;
        self.end = next;
    }

    /// The error for a row of `found` fields that follows the complete rows.
    pub fn wrong_width(&self, code: &'static str, found: u64) -> Error {
        let (row, expected) = (self.count + 1, self.columns);
        let message = format!("row {row}: expected {expected} fields, found {found}");
        Error::malformed(code, message)
    }

    /// The error for rows that differ from those counted when the file was opened.
    pub fn changed(code: &'static str) -> Error {
        let message = "the number of rows changed since the file was opened; is it being written?";
        Error::malformed(code, message)
    }

    /// Reports an incomplete last row as a warning.
    pub fn report_partial(&self, code: &'static str, report: &mut Report) {
        if let Some(found) = self.partial {
            let expected = self.columns;
            let message =
                format!("the last row is not read: expected {expected} fields, found {found}");
            report.warn(code, message).at(self.end);
        }
    }

    /// Regions of a file of `len` bytes: `header` before the rows, the rows, the incomplete last row.
    pub fn regions(
        &self,
        (kind, header): (RegionKind, &str),
        len: u64,
        each: &mut dyn FnMut(Region) -> Result<()>,
    ) -> Result<()> {
        let rows = format!("{} rows of {}", self.count, self.columns);
        for (offset, to, kind, name, value) in [
            (0, self.start, kind, header, String::new()),
            (self.start, self.end, RegionKind::Data, "rows", rows),
            (self.end, len, RegionKind::Unknown, "partial row", String::new()),
        ] {
            if to > offset {
                each(Region { offset, len: to - offset, kind, name: name.into(), value })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[u8]) -> Option<(usize, usize)> {
        text.iter().position(|b| *b == b'\n').map(|end| (end, end + 1))
    }

    /// Offset, bytes, next offset, whether it is terminated.
    type Line = (u64, Vec<u8>, u64, bool);

    fn lines(text: &[u8], longest: usize) -> Result<Vec<Line>> {
        let mut found = Vec::new();
        let too_long = || Error::malformed("x-001", "too long");
        each_record(&Source::memory(text.to_vec()), longest, line, too_long, |record| {
            found.push((record.offset, record.bytes.to_vec(), record.next, record.ended));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn records_have_offsets_and_terminators() {
        let found = lines(b"ab\n\nc", 64).unwrap();
        let ab = (0, b"ab".to_vec(), 3, true);
        assert_eq!(found, [ab, (3, Vec::new(), 4, true), (4, b"c".to_vec(), 5, false)]);
        assert!(lines(b"", 64).unwrap().is_empty());
    }

    #[test]
    fn records_do_not_depend_on_the_buffer_size() {
        let text = b"a\nbcd\n\nefghij\nk\n".repeat(7);
        let expected = lines(&text, CHUNK).unwrap();
        for longest in 7..40 {
            assert_eq!(lines(&text, longest).unwrap(), expected, "{longest}");
        }
    }

    #[test]
    fn a_record_without_end_uses_bounded_memory() {
        let long = [b"ok\n".to_vec(), vec![b'x'; 3 * CHUNK]].concat();
        let error = lines(&long, 2 * CHUNK).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("x-001", Some(3)));
        assert_eq!(lines(&long, 4 * CHUNK).unwrap().len(), 2);
    }

    #[test]
    fn float_syntax_is_that_of_str_parse() {
        for text in
            ["1.", ".5", ".", "1e", "e5", "1e5x", "+", "-1.5E-3", "NaN", "-inf", "", "1-", "1_0"]
        {
            assert_eq!(is_float(text.as_bytes()), text.parse::<f64>().is_ok(), "{text}");
        }
        assert!(is_integer(b"-12") && is_integer(b"+0"));
        assert!(!is_integer(b"") && !is_integer(b"-") && !is_integer(b"1."));
    }

    #[test]
    fn fortran_exponents_are_parsed() {
        for (text, value) in [
            ("1.5D+02", 150.0),
            ("-2d-1", -0.2),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("1.5+100", 1.5e100),
            ("-1.5-100", -1.5e-100),
            ("-Inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse_float(b"NaN").unwrap().is_nan());
        for bad in ["1,5", "abc", "d5", "0x10", "1.5DD2", "", "-", "1-", "+-1", "1+2+3"] {
            assert_eq!(parse_float(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn records_in_memory_are_split_at_lf_and_cr() {
        let text = b"a\r\nbc\n\nd";
        let found: Vec<&[u8]> = Records::new(text, line_end).collect();
        assert_eq!(found, [&b"a"[..], b"", b"bc", b"", b"d"]);
    }
}
