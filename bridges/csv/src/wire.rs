//! Records and fields of RFC 4180: separated by line ends and commas, quoted if they contain either.

use memchr::{memchr2, memchr2_iter};
use spile_core::records::Records;

/// Finds the end of the first record: its length without and with the terminator. `None` if `text` ends
/// inside the record.
pub(crate) fn record_end(text: &[u8]) -> Option<(usize, usize)> {
    let mut quoted = false;
    for pos in memchr2_iter(b'\n', b'"', text) {
        if text[pos] == b'"' {
            quoted = !quoted;
        } else if !quoted {
            let end = if pos > 0 && text[pos - 1] == b'\r' { pos - 1 } else { pos };
            return Some((end, pos + 1));
        }
    }
    None
}

/// Iterates over the records of `text` that are not empty.
pub(crate) fn records(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    Records::new(text, record_end).filter(|record| !record.is_empty())
}

/// Iterator over the fields of a record, with their quotes.
pub(crate) struct Fields<'a>(pub(crate) Option<&'a [u8]>);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0?;
        let mut pos = 0;
        loop {
            match memchr2(b',', b'"', &text[pos..]) {
                None => {
                    self.0 = None;
                    return Some(text);
                }
                Some(found) if text[pos + found] == b',' => {
                    self.0 = Some(&text[pos + found + 1..]);
                    return Some(&text[..pos + found]);
                }
                Some(found) => {
                    // Skip to the closing quote. A doubled quote closes and reopens the field.
                    let inside = pos + found + 1;
                    let rest = text.get(inside..).unwrap_or_default();
                    let Some(close) = memchr::memchr(b'"', rest) else {
                        self.0 = None;
                        return Some(text);
                    };
                    pos = inside + close + 1;
                }
            }
        }
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

    fn fields(record: &str) -> Vec<String> {
        let text = |f: &[u8]| String::from_utf8_lossy(&unquoted(f).unwrap_or(f.to_vec())).into();
        Fields(Some(record.as_bytes())).map(text).collect()
    }

    #[test]
    fn quoted_fields_contain_commas_line_ends_and_quotes() {
        let text = b"1,\"a,\nb\"\r\n\n,\"say \"\"x\"\"\"\n3,";
        let found: Vec<_> =
            records(text).map(|r| fields(std::str::from_utf8(r).unwrap())).collect();
        assert_eq!(found, [vec!["1", "a,\nb"], vec!["", "say \"x\""], vec!["3", ""]]);
        assert_eq!(fields("\"open,1"), ["\"open,1"]);
        assert_eq!(unquoted(b"\"a\"b\""), None);
        let mut out = String::new();
        quote("say \"x\"", &mut out);
        assert_eq!(out, "\"say \"\"x\"\"\"");
    }
}
