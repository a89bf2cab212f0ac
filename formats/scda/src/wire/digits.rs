//! Fast conversion of counts from and to decimal digits, eight at a time: eight digits are one
//! 64-bit word whose lowest byte is the first digit. A file may contain billions of counts.

use super::ENTRY;

/// Numbers below this have eight digits or less.
const EIGHT: u64 = 100_000_000;

/// A word of eight equal bytes.
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The digits of a number below [`EIGHT`], with leading zeros. Splits into halves, pairs, digits.
fn eight_digits(value: u64) -> u64 {
    let halves = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((halves * 5243) >> 19) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    (tens | (pairs - tens * 10) << 8) + eight(b'0')
}

/// Inverse of [`eight_digits`], for digits given as values instead of characters.
fn value_of_eight(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let halves = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    halves.wrapping_mul(10_000).wrapping_add(halves >> 32) & 0xffff_ffff
}

/// The digits of a number below [`EIGHT`] without leading zeros, followed by dashes, and their count.
fn left_digits(value: u64) -> (u64, usize) {
    let all = eight_digits(value);
    // The number 0 keeps one digit.
    let zeros = (all - eight(b'0')).trailing_zeros().min(7 * 8) / 8 * 8;
    (all >> zeros | eight(b'-').checked_shl(64 - zeros).unwrap_or(0), 8 - zeros as usize / 8)
}

/// Sets the highest bit of the first byte greater than nine; the bytes above it are arbitrary.
fn non_digits(digits: u64) -> u64 {
    (digits.wrapping_add(eight(0x7f - 9)) | digits) & eight(0x80)
}

/// Value and number of up to seven digits that are followed by a space and dashes.
fn short_count(bytes: u64) -> Option<(u64, usize)> {
    const AFTER: u64 = eight(b'-') ^ (b'-' ^ b' ') as u64;
    let digits = bytes ^ eight(b'0');
    let bits = non_digits(digits).trailing_zeros() / 8 * 8;
    if bits == 64 || (bytes ^ AFTER << bits) >> bits != 0 {
        return None;
    }
    Some((value_of_eight(digits.checked_shl(64 - bits).unwrap_or(0)), bits as usize / 8))
}

/// Value of a well-formed count entry of up to 15 digits, as from [`super::count`]; `None` for any
/// other entry.
pub(crate) fn quick_count(entry: &[u8; ENTRY as usize], letter: u8) -> Option<u64> {
    const POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];
    let (head, rest) = entry.split_first_chunk::<2>()?;
    let (first, rest) = rest.split_first_chunk::<8>()?;
    if *head != [letter, b' '] {
        return None;
    }
    let bytes = u64::from_le_bytes(*first);
    if let Some((value, digits)) = short_count(bytes) {
        let plain = digits == 1 || (digits > 1 && first[0] != b'0');
        return (plain && rest[..20] == [b'-'; 20]).then_some(value);
    }
    let (second, rest) = rest.split_first_chunk::<8>()?;
    let (low, digits) = short_count(u64::from_le_bytes(*second))?;
    let plain = first[0] != b'0' && non_digits(bytes ^ eight(b'0')) == 0;
    let high = value_of_eight(bytes ^ eight(b'0'));
    (plain && rest[..12] == [b'-'; 12]).then(|| high * POWERS[digits] + low)
}

/// Writes the digits of a count and the following space into an entry filled with dashes.
pub(crate) fn put_count(entry: &mut [u8; ENTRY as usize], value: u64) {
    let mut at = 2;
    let mut put = |eight: u64, digits: usize| {
        entry[at..at + 8].copy_from_slice(&eight.to_le_bytes());
        at += digits;
    };
    match (value / EIGHT, value % EIGHT) {
        (0, low) => {
            let (eight, digits) = left_digits(low);
            put(eight, digits);
        }
        (high @ 1..EIGHT, low) => {
            let (eight, digits) = left_digits(high);
            put(eight, digits);
            put(eight_digits(low), 8);
        }
        _ => {
            let digits = value.to_string();
            entry[2..2 + digits.len()].copy_from_slice(digits.as_bytes());
            at += digits.len();
        }
    }
    entry[at] = b' ';
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Breaks, count, format_entries, pad, parse_entries};

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
