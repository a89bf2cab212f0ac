//! Count entries: numbers as 32 bytes of text (section 2.1.1).

use std::sync::Arc;

use rayon::prelude::*;
use spile_core::{Error, Result, Source};

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
        // The digits from the right; faster than formatting, and files may contain billions of counts.
        let (mut digits, mut from, mut rest) = ([0; 20], 20, *value);
        while rest > 0 || from == 20 {
            from -= 1;
            digits[from] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let end = 2 + digits.len() - from;
        entry[2..end].copy_from_slice(&digits[from..]);
        entry[end] = b' ';
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
    let mut total = 0_u64;
    for (k, value) in values.iter_mut().enumerate() {
        let sum = total.checked_add(*value).filter(|sum| *sum < 1 << 63);
        let sum = sum.ok_or_else(|| {
            let message = "the sum of the sizes exceeds the maximum file size";
            Error::malformed("scda-006", message).at(offset + k as u64 * ENTRY)
        })?;
        // The last value is 0 and becomes the total.
        *value = std::mem::replace(&mut total, sum);
    }
    Ok(starts)
}

/// Sum of the `number` count entries at `offset`, in constant memory, on all threads.
pub(crate) fn sum_entries(source: &Source, offset: u64, number: u64, letter: u8) -> Result<u64> {
    check_entries(number, offset, source.len())?;
    let each = ENTRIES_AT_ONCE as u64;
    let sums = (0..number.div_ceil(each)).into_par_iter().map_init(
        || vec![0; ENTRIES_AT_ONCE],
        |values, part| {
            let count = (number - part * each).min(each) as usize;
            let at = offset + part * each * ENTRY;
            let bytes = source.read_vec(at, count as u64 * ENTRY)?;
            parse_entries(&bytes, letter, at, &mut values[..count])?;
            Ok::<_, Error>(values[..count].iter().map(|value| u128::from(*value)).sum::<u128>())
        },
    );
    let sum = sums.try_reduce(|| 0, |a, b| Ok(a + b))?;
    u64::try_from(sum).ok().filter(|sum| *sum < 1 << 63).ok_or_else(|| {
        let message = "the sum of the sizes exceeds the maximum file size";
        Error::malformed("scda-006", message).at(offset)
    })
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

/// Value of a well-formed count entry of up to 15 digits, as from [`count`] but faster; `None` for any
/// other entry.
fn quick_count(entry: &[u8; ENTRY as usize], letter: u8) -> Option<u64> {
    const PADDING: [u8; 28] = *b" ---------------------------";
    let digits = entry[2..17].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = entry[2..2 + digits].iter().fold(0, |v, d| v * 10 + u64::from(d - b'0'));
    let plain = digits == 1 || (digits > 1 && entry[2] != b'0');
    let padded = entry[2 + digits..30] == PADDING[..28 - digits];
    (plain && padded && entry[..2] == [letter, b' ']).then_some(value)
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

    /// A correctly padded count entry with arbitrary digits.
    fn entry(digits: &[u8], breaks: Breaks) -> [u8; ENTRY as usize] {
        let mut bytes = b"E ".to_vec();
        bytes.extend(pad(digits, 30, breaks));
        bytes.try_into().unwrap()
    }

    #[test]
    fn entries_of_all_lengths_are_formatted_and_parsed() {
        let mut values: Vec<u64> = (0..1000).collect();
        for power in (0..19).map(|k| 10_u64.pow(k)) {
            let some = 123_456_789_987_654_321 % power;
            values.extend([power - 1, power, power + 1, 9 * power, some]);
        }
        values.push((1 << 63) - 1);
        for breaks in [Breaks::Unix, Breaks::Mime] {
            let mut bytes = vec![b'?'; 100];
            format_entries(b'E', &values, breaks, &mut bytes);
            let entries = bytes.as_chunks::<{ ENTRY as usize }>().0;
            for (found, value) in entries.iter().zip(&values) {
                assert_eq!(*found, entry(value.to_string().as_bytes(), breaks), "{value}");
                let quick = quick_count(found, b'E');
                assert_eq!(quick, Some(*value).filter(|v| *v < 10_u64.pow(15)), "{value}");
            }
            let mut back = vec![0; values.len()];
            parse_entries(&bytes, b'E', 0, &mut back).unwrap();
            assert_eq!(back, values);
        }
    }

    #[test]
    fn the_fast_parser_agrees_with_the_strict_one() {
        let numbers = ["", "0", "7", "42", "1234567", "12345678", "123456789", "123456789012345"];
        for digits in numbers {
            let good = entry(digits.as_bytes(), Breaks::Mime);
            for at in 0..good.len() {
                for byte in 0..=255 {
                    let mut bytes = good;
                    bytes[at] = byte;
                    let strict = count(&bytes, b'E', 0).ok().map(|(value, _)| value);
                    let expected = strict.filter(|value| *value < 10_u64.pow(15));
                    assert_eq!(quick_count(&bytes, b'E'), expected, "{}", bytes.escape_ascii());
                }
            }
        }
    }
}
