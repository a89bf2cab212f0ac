//! Count entries: numbers as 32 bytes of text (section 2.1.1).

use std::sync::Arc;

use rayon::prelude::*;
use spile_core::error::{Error, Result};
use spile_core::source::Source;

use super::digits::{put_count, quick_count};
use super::{Breaks, ENTRY, unpad};

/// Count entries that one thread parses at once.
pub(crate) const ENTRIES_AT_ONCE: usize = 4096;

/// Replaces `out` by the count entries of `values`, 32 bytes each.
pub fn format_entries(letter: u8, values: &[u64], breaks: Breaks, out: &mut Vec<u8>) {
    let mut blank = [b'-'; ENTRY as usize];
    (blank[0], blank[1]) = (letter, b' ');
    blank[30..].copy_from_slice(if breaks == Breaks::Mime { b"\r\n" } else { b"-\n" });
    out.resize(values.len() * ENTRY as usize, 0);
    for (entry, value) in out.as_chunks_mut::<{ ENTRY as usize }>().0.iter_mut().zip(values) {
        *entry = blank;
        put_count(entry, *value);
    }
}

/// Value and line break style of a 32-byte count entry at `offset`. Counts have 1 to 26 digits and no
/// leading zero; values of 2^63 and more are an error.
pub fn count(entry: &[u8], letter: u8, offset: u64) -> Result<(u64, Breaks)> {
    let bad = |message: String| Error::malformed("scda-005", message).at(offset);
    if entry.first() != Some(&letter) || entry.get(1) != Some(&b' ') {
        let found = entry[..2.min(entry.len())].escape_ascii();
        return Err(bad(format!(
            "expected a count entry \"{} \", found \"{found}\"",
            letter as char
        )));
    }
    let (digits, breaks) =
        unpad(&entry[2..]).ok_or_else(|| bad("invalid padding of a count".into()))?;
    let plain = !digits.is_empty()
        && digits.len() <= 26
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1);
    if !plain {
        return Err(bad(format!(
            "expected a count of 1 to 26 digits, found \"{}\"",
            digits.escape_ascii()
        )));
    }
    let value = digits.iter().fold(0_u128, |v, d| v * 10 + u128::from(d - b'0'));
    match u64::try_from(value) {
        Ok(value) if value < 1 << 63 => Ok((value, breaks)),
        _ => Err(Error::malformed("scda-006", format!("{value} exceeds the maximum file size"))
            .at(offset)),
    }
}

/// Adds up sizes. The total of a section must be less than 2^63 bytes.
struct Sum {
    table: u64,
    entries: u64,
    total: u64,
}

impl Sum {
    fn new(table: u64) -> Self {
        Self { table, entries: 0, total: 0 }
    }

    /// Adds the size of the next element and returns the bytes before it.
    fn add(&mut self, size: u64) -> Result<u64> {
        let before = self.total;
        let total = before.checked_add(size).filter(|total| *total < 1 << 63);
        self.total = total.ok_or_else(|| {
            let at = self.table + self.entries * ENTRY;
            Error::malformed("scda-006", "the sum of the sizes exceeds the maximum file size")
                .at(at)
        })?;
        self.entries += 1;
        Ok(before)
    }
}

/// Bytes before each of the `number` elements whose size entries begin at `offset`, and the total at
/// the end. Allocates `8 * (number + 1)` bytes, which the caller has charged; fails before that if
/// the entries exceed the file.
pub(crate) fn read_starts(
    source: &Source,
    offset: u64,
    number: u64,
    letter: u8,
) -> Result<Arc<[u64]>> {
    check_entries(number, offset, source.len())?;
    // Collected from an iterator of known length: a vector would have to be copied.
    let mut starts: Arc<[u64]> = (0..=number as usize).map(|_| 0).collect();
    let Some(values) = Arc::get_mut(&mut starts) else { return Ok(starts) };
    read_entries(source, offset, letter, &mut values[..number as usize])?;
    let mut sum = Sum::new(offset);
    for value in values.iter_mut().take(number as usize) {
        *value = sum.add(*value)?;
    }
    values[number as usize] = sum.total;
    Ok(starts)
}

/// Sum of `number` size entries at `offset`, in constant memory.
pub(crate) fn sum_sizes(source: &Source, offset: u64, number: u64, letter: u8) -> Result<u64> {
    check_entries(number, offset, source.len())?;
    let mut values = vec![0; number.min(16 * ENTRIES_AT_ONCE as u64) as usize];
    let (mut sum, mut done) = (Sum::new(offset), 0);
    while done < number {
        let part = (number - done).min(values.len() as u64) as usize;
        read_entries(source, offset + done * ENTRY, letter, &mut values[..part])?;
        values[..part].iter().try_for_each(|size| sum.add(*size).map(drop))?;
        done += part as u64;
    }
    Ok(sum.total)
}

/// Fills `values` from the count entries at `offset`, on all threads.
fn read_entries(source: &Source, offset: u64, letter: u8, values: &mut [u64]) -> Result<()> {
    values.par_chunks_mut(ENTRIES_AT_ONCE).enumerate().try_for_each_init(
        Vec::new,
        |bytes, (part, values)| {
            let at = offset + (part * ENTRIES_AT_ONCE) as u64 * ENTRY;
            bytes.resize(values.len() * ENTRY as usize, 0);
            source.read_exact_at(at, bytes)?;
            parse_entries(bytes, letter, at, values)
        },
    )
}

/// Fails unless `number` count entries at `offset` are inside a file of `file_len` bytes.
pub(crate) fn check_entries(number: u64, offset: u64, file_len: u64) -> Result<()> {
    let end = number.checked_mul(ENTRY).and_then(|bytes| bytes.checked_add(offset));
    if end.is_some_and(|end| end <= file_len) {
        return Ok(());
    }
    let found = file_len.saturating_sub(offset) / ENTRY;
    let message = format!("unexpected end of file: expected {number} size entries, found {found}");
    Err(Error::truncated("scda-007", message).at(offset))
}

/// Parses the count entries in `bytes`, which begin at `offset` of the file, into `values`.
pub fn parse_entries(bytes: &[u8], letter: u8, offset: u64, values: &mut [u64]) -> Result<()> {
    let entries = bytes.as_chunks::<{ ENTRY as usize }>().0;
    for (k, (entry, value)) in entries.iter().zip(values).enumerate() {
        *value = match quick_count(entry, letter) {
            Some(value) => value,
            None => count(entry, letter, offset + k as u64 * ENTRY)?.0,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::pad;

    #[test]
    fn counts_are_strict() {
        let entry = |digits: &str| {
            let mut bytes = b"E ".to_vec();
            bytes.extend(pad(digits.as_bytes(), 30, Breaks::Unix));
            count(&bytes, b'E', 0).map(|c| c.0)
        };
        assert_eq!(entry("0").unwrap(), 0);
        assert_eq!(entry("9223372036854775807").unwrap(), (1 << 63) - 1);
        for bad in ["", "05", "+5", "5a", " 5", "5 ", "-1"] {
            assert_eq!(entry(bad).unwrap_err().code(), "scda-005", "{bad}");
        }
        for large in ["9223372036854775808", "99999999999999999999999999"] {
            assert_eq!(entry(large).unwrap_err().code(), "scda-006", "{large}");
        }
    }
}
