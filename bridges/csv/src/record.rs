//! Records and fields as RFC 4180 has them: commas, lines, and quotes around what contains either.

use memchr::{memchr2, memchr2_iter};

/// Where the first record of `text` ends, and where the next one begins; nothing where it goes on.
pub(crate) fn record_end(text: &[u8]) -> Option<(usize, usize)> {
    let mut quoted = false;
    for at in memchr2_iter(b'\n', b'"', text) {
        if text[at] == b'"' {
            quoted = !quoted;
        } else if !quoted {
            let end = if at > 0 && text[at - 1] == b'\r' { at - 1 } else { at };
            return Some((end, at + 1));
        }
    }
    None
}

/// The records of a text of whole ones, without blank lines.
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.0.is_empty() {
            let len = self.0.len();
            let (end, next) = record_end(self.0).unwrap_or((len, len));
            let record = &self.0[..end];
            self.0 = &self.0[next..];
            if !record.is_empty() {
                return Some(record);
            }
        }
        None
    }
}

/// The fields of a record, quotes and all.
pub(crate) struct Fields<'a>(pub(crate) Option<&'a [u8]>);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0?;
        let mut at = 0;
        loop {
            match memchr2(b',', b'"', &text[at..]) {
                None => {
                    self.0 = None;
                    return Some(text);
                }
                Some(found) if text[at + found] == b',' => {
                    self.0 = Some(&text[at + found + 1..]);
                    return Some(&text[..at + found]);
                }
                Some(found) => {
                    // To the quote that ends it; two of them stand for one, and begin it again.
                    let inside = at + found + 1;
                    let rest = text.get(inside..).unwrap_or_default();
                    let Some(close) = memchr::memchr(b'"', rest) else {
                        self.0 = None;
                        return Some(text);
                    };
                    at = inside + close + 1;
                }
            }
        }
    }
}

/// A field without its quotes, or nothing if it has none.
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

/// Appends a text in quotes.
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
    fn quotes_hold_commas_lines_and_quotes() {
        let text = b"1,\"a,\nb\"\r\n\n,\"say \"\"x\"\"\"\n3,";
        let records: Vec<_> =
            Records(text).map(|r| fields(std::str::from_utf8(r).unwrap())).collect();
        assert_eq!(records, [vec!["1", "a,\nb"], vec!["", "say \"x\""], vec!["3", ""]]);
        assert_eq!(fields("\"open,1"), ["\"open,1"]);
        assert_eq!(unquoted(b"\"a\"b\""), None);
        let mut out = String::new();
        quote("say \"x\"", &mut out);
        assert_eq!(out, "\"say \"\"x\"\"\"");
    }
}
