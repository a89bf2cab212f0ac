//! Files of text, record by record: one pass in bounded memory, for formats that have to look at all
//! of it once.

use crate::error::{Error, Result};
use crate::source::Source;

/// Bytes read at once; more only for a record that is longer.
const CHUNK: usize = 1 << 20;

/// A line, or what a format has instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes, without what ends it.
    pub bytes: &'a [u8],
    /// The first byte behind it and its end.
    pub next: u64,
    /// It has an end; the last one may just stop.
    pub ended: bool,
}

/// Calls `each` with every record. `end` finds the first end in some text: the length of the record, and
/// the same with its end. A record that is longer than `longest` bytes is the error `too_long`.
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
        let whole = got < buffer.len();
        let text = &buffer[..got];
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let found = end(rest);
            let (len, next) = match found {
                Some(found) => found,
                None if whole => (rest.len(), rest.len()),
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
        if whole {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[u8]) -> Option<(usize, usize)> {
        text.iter().position(|b| *b == b'\n').map(|end| (end, end + 1))
    }

    /// Offset, bytes, what follows and whether it ends.
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
    fn records_know_where_they_are_and_whether_they_end() {
        let found = lines(b"ab\n\nc", 64).unwrap();
        let ab = (0, b"ab".to_vec(), 3, true);
        assert_eq!(found, [ab, (3, Vec::new(), 4, true), (4, b"c".to_vec(), 5, false)]);
        assert!(lines(b"", 64).unwrap().is_empty());
    }

    #[test]
    fn buffers_of_any_size_give_the_same_records() {
        let text = b"a\nbcd\n\nefghij\nk\n".repeat(7);
        let whole = lines(&text, CHUNK).unwrap();
        for longest in 7..40 {
            assert_eq!(lines(&text, longest).unwrap(), whole, "{longest}");
        }
    }

    #[test]
    fn a_record_that_never_ends_takes_no_memory() {
        let long = [b"ok\n".to_vec(), vec![b'x'; 3 * CHUNK]].concat();
        let error = lines(&long, 2 * CHUNK).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("x-001", Some(3)));
        assert_eq!(lines(&long, 4 * CHUNK).unwrap().len(), 2);
    }
}
