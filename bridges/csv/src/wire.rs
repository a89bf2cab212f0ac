//! Records and fields: separated by line ends and a separator, quoted if they contain either (RFC 4180).

use memchr::{memchr, memchr2};
use spile_core::text_records::Records;

/// Separator that stands for any number of blanks and tabs.
pub(crate) const BLANKS: u8 = b' ';

/// How records are split into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Separator of fields, or [`BLANKS`].
    pub(crate) separator: u8,
    /// First character of lines that are not records.
    pub(crate) comment: Option<u8>,
}

impl Dialect {
    /// Finds the end of the first record: its length without and with the terminator. `None` if `text` ends
    /// inside the record.
    pub(crate) fn record_end(self, text: &[u8]) -> Option<(usize, usize)> {
        let without_cr = |end: usize| match end.checked_sub(1) {
            Some(last) if text[last] == b'\r' => last,
            _ => end,
        };
        if self.is_comment(text) {
            return memchr(b'\n', text).map(|end| (without_cr(end), end + 1));
        }
        let mut pos = 0;
        loop {
            pos += memchr2(b'\n', b'"', text.get(pos..)?)?;
            if text[pos] == b'\n' {
                return Some((without_cr(pos), pos + 1));
            }
            // A quote inside an unquoted field is an ordinary character.
            if pos == 0 || self.is_separator(text[pos - 1]) {
                pos = closing_quote(text, pos)?;
            }
            pos += 1;
        }
    }

    /// Iterates over the records of `text` that are neither empty nor comments.
    pub(crate) fn records(self, text: &[u8]) -> impl Iterator<Item = &[u8]> {
        let records = Records::new(text, move |text| self.record_end(text));
        records.filter(move |record| !self.is_skipped(record))
    }

    /// Whether a record has no fields: it is blank or a comment.
    pub(crate) fn is_skipped(self, record: &[u8]) -> bool {
        record.iter().all(|b| *b == b' ') || self.is_comment(record)
    }

    /// Iterates over the fields of a record, with their quotes.
    pub(crate) fn fields(self, record: &[u8]) -> Fields<'_> {
        let record = if self.separator == BLANKS { record.trim_ascii() } else { record };
        Fields { rest: Some(record), dialect: self }
    }

    fn is_comment(self, text: &[u8]) -> bool {
        self.comment.is_some() && text.first().copied() == self.comment
    }

    fn is_separator(self, byte: u8) -> bool {
        byte == self.separator || (self.separator == BLANKS && byte == b'\t')
    }
}

/// Position of the quote that closes the one at `open`.
fn closing_quote(text: &[u8], open: usize) -> Option<usize> {
    let mut pos = open + 1;
    loop {
        pos += memchr(b'"', text.get(pos..)?)?;
        if text.get(pos + 1) != Some(&b'"') {
            return Some(pos);
        }
        pos += 2;
    }
}

/// Iterator over the fields of a record, with their quotes.
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    dialect: Dialect,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        let quoted = text.first() == Some(&b'"');
        let from = if quoted { closing_quote(text, 0).unwrap_or(text.len()) } else { 0 };
        let rest = text.get(from..).unwrap_or_default();
        let blanks = self.dialect.separator == BLANKS;
        let found =
            if blanks { memchr2(b' ', b'\t', rest) } else { memchr(self.dialect.separator, rest) };
        let Some(found) = found else {
            self.rest = None;
            return Some(text);
        };
        let end = from + found;
        let after = &text[end + 1..];
        self.rest = Some(if blanks { after.trim_ascii_start() } else { after });
        Some(&text[..end])
    }
}

/// The content of a quoted field; `None` if the field is not quoted.
pub(crate) fn unquoted(field: &[u8]) -> Option<Vec<u8>> {
    let inside = field.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut out = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == b'"' && bytes.next() != Some(&b'"') {
            return None;
        }
    }
    Some(out)
}

/// Appends `text` in quotes.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for part in text.split_inclusive('"') {
        out.push_str(part);
        if part.ends_with('"') {
            out.push('"');
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect = Dialect { separator: b',', comment: None };

    fn fields(dialect: Dialect, record: &str) -> Vec<String> {
        let text = |f: &[u8]| String::from_utf8_lossy(&unquoted(f).unwrap_or(f.to_vec())).into();
        dialect.fields(record.as_bytes()).map(text).collect()
    }

    #[test]
    fn quoted_fields_contain_commas_line_ends_and_quotes() {
        let text = b"1,\"a,\nb\"\r\n\n,\"say \"\"x\"\"\"\n3,";
        let found: Vec<_> =
            COMMA.records(text).map(|r| fields(COMMA, std::str::from_utf8(r).unwrap())).collect();
        assert_eq!(found, [vec!["1", "a,\nb"], vec!["", "say \"x\""], vec!["3", ""]]);
        assert_eq!(fields(COMMA, "\"open,1"), ["\"open,1"]);
        assert_eq!(unquoted(b"\"a\"b\""), None);
        let mut out = String::new();
        quote("say \"x\"", &mut out);
        assert_eq!(out, "\"say \"\"x\"\"\"");
    }

    #[test]
    fn a_quote_inside_a_field_is_a_character() {
        let text = b"5\" disk,1\n\"a\"\"\n\",2\n";
        let found: Vec<_> =
            COMMA.records(text).map(|r| fields(COMMA, std::str::from_utf8(r).unwrap())).collect();
        assert_eq!(found, [["5\" disk", "1"], ["a\"\n", "2"]]);
    }

    #[test]
    fn blanks_and_comments_are_skipped() {
        let blanks = Dialect { separator: BLANKS, comment: Some(b'#') };
        let text = b"# it's \"one\n 1  \"a b\"\t3 \n";
        let found: Vec<_> =
            blanks.records(text).map(|r| fields(blanks, std::str::from_utf8(r).unwrap())).collect();
        assert_eq!(found, [["1", "a b", "3"]]);
    }
}
