//! Text files, record by record, in one pass with bounded memory.

use crate::format::{Region, RegionKind};
use crate::{Error, Report, Result, Source};

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

/// Calls `each` with every record from byte `from` on. `end` returns the length of the first record of a text without and with
/// its terminator, or `None` if there is no terminator. A record longer than `longest` bytes is the error
/// `too_long`.
pub fn each_record(
    source: &Source,
    from: u64,
    longest: usize,
    end: impl Fn(&[u8]) -> Option<(usize, usize)>,
    too_long: impl FnOnce() -> Error,
    mut each: impl FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK.min(longest.max(1))];
    let mut base = from;
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

/// The number of the line that begins at byte `at`, counted from 1; 0 if the file cannot be read.
pub fn line_number(source: &Source, at: u64) -> u64 {
    let (mut line, mut from) = (1, 0);
    let mut buffer = vec![0; CHUNK];
    while from < at {
        let most = usize::try_from(at - from).unwrap_or(CHUNK).min(CHUNK);
        match source.read_at_most(from, &mut buffer[..most]) {
            Ok(got) if got > 0 => {
                line += memchr::memchr_iter(b'\n', &buffer[..got]).count() as u64;
                from += got as u64;
            }
            _ => return 0,
        }
    }
    line
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
            // Fortran omits the letter before an exponent of three digits. Without the decimal point it is a
            // date or a range: 2020-01.
            None if digits == text.len() => {
                let (mantissa, exponent) = text.split_at(text.rfind(['+', '-'])?);
                if exponent.len() != 4 || !mantissa.contains('.') {
                    return None;
                }
                (mantissa, exponent)
            }
            None => return None,
        };
        format!("{mantissa}e{exponent}").parse().ok()
    })
}

/// Whether `text` is a unit, as found in the row below the names of a table: a known symbol with an optional
/// SI prefix and exponent, products and quotients of such (`m/s^2`, `kg m^-3`), or anything in brackets.
pub fn is_unit(text: &str) -> bool {
    let text = text.trim();
    if [('(', ')'), ('[', ']')].iter().any(|(a, b)| text.starts_with(*a) && text.ends_with(*b)) {
        return true;
    }
    let is_word = |symbol: &str| {
        let singular = symbol.strip_suffix('s').unwrap_or(symbol);
        WORDS
            .iter()
            .any(|word| [symbol, singular].iter().any(|name| name.eq_ignore_ascii_case(word)))
    };
    let factor = |part: &str| {
        let end =
            part.trim_end_matches(|c: char| c.is_ascii_digit() || "^*-+\u{b2}\u{b3}".contains(c));
        let symbol = if end.is_empty() { part } else { end };
        let known = |symbol: &str| UNITS.contains(&symbol);
        let prefixed = || {
            let mut letters = symbol.chars();
            let is_prefix = letters.next().is_some_and(|c| PREFIXES.contains(c));
            is_prefix && known(letters.as_str()) && !["h", "d"].contains(&letters.as_str())
        };
        known(symbol) || prefixed() || is_word(symbol)
    };
    let parts = text.split(['/', ' ', '*', '.', '\u{b7}']).filter(|part| !part.is_empty());
    let mut parts = parts.peekable();
    is_word(text) || (parts.peek().is_some() && parts.all(factor))
}

/// SI prefixes.
const PREFIXES: &str = "fpnum\u{b5}\u{3bc}cdkMGT";

/// Symbols of units that take SI prefixes, and dimensionless ones.
const UNITS: [&str; 42] = [
    "s", "m", "g", "A", "K", "V", "W", "J", "N", "C", "F", "H", "T", "S", "Hz", "Pa", "Wb", "eV",
    "mol", "rad", "bar", "L", "l", "Ohm", "ohm", "\u{3a9}", "\u{2126}", "sr", "lm", "lx", "Bq",
    "Gy", "Sv", "min", "h", "deg", "%", "1", "-", "dB", "\u{b0}", "u",
];

/// Names of units, in any case, also in the plural, and symbols without prefixes.
const WORDS: [&str; 28] = [
    "second", "meter", "metre", "volt", "ampere", "amp", "watt", "joule", "kelvin", "hertz",
    "pascal", "newton", "tesla", "gram", "degC", "degF", "\u{b0}C", "\u{b0}F", "celsius",
    "angstrom", "\u{c5}", "a.u.", "arb", "count", "dBm", "degree", "percent", "day",
];

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

    /// The error for a row of `found` fields at byte `at`, with the number of its line.
    pub fn wrong_width(&self, code: &'static str, source: &Source, found: u64, at: u64) -> Error {
        let (line, expected) = (line_number(source, at), self.columns);
        let message = format!("line {line}: expected {expected} fields, found {found}");
        Error::malformed(code, message).at(at)
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
        each_record(&Source::memory(text.to_vec()), 0, longest, line, too_long, |record| {
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
        for bad in [
            "1,5", "abc", "d5", "0x10", "1.5DD2", "", "-", "1-", "+-1", "1+2+3", "2020-01",
            "1.5-10",
        ] {
            assert_eq!(parse_float(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn units_are_distinguished_from_names_and_values() {
        for unit in
            ["s", "mV", "kg m^-3", "m/s^2", "[px]", "(V)", "Volt", "seconds", "\u{b0}C", "%", "1"]
        {
            assert!(is_unit(unit), "{unit}");
        }
        for other in ["", "alice", "ch1", "x", "NaN", "true", "2020-01-02", "none", "3.5", "12"] {
            assert!(!is_unit(other), "{other}");
        }
    }

    #[test]
    fn records_in_memory_are_split_at_lf_and_cr() {
        let text = b"a\r\nbc\n\nd";
        let found: Vec<&[u8]> = Records::new(text, line_end).collect();
        assert_eq!(found, [&b"a"[..], b"", b"bc", b"", b"d"]);
    }
}
