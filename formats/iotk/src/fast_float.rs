//! Fast parsing of decimal numbers: the nearest double.
//!
//! The digits are multiplied by the first 128 bits of the power of ten (D. Lemire, *Number parsing at
//! a gigabyte per second*, 2021). The product determines the nearest double unless it is too close
//! to the midpoint of two. Such numbers, and those with more than 19 digits, out of range or in another
//! notation, are left to the caller.

/// Range of the powers of ten of doubles.
const LEAST: i32 = -342;
const MOST: i32 = 308;

/// The first 128 bits of 5^q for all powers q, highest bit set.
static POWERS: [u128; (MOST - LEAST + 1) as usize] = powers();

/// 64-bit words of the long integers from which the powers are computed.
const LONG: usize = 34;

const fn powers() -> [u128; (MOST - LEAST + 1) as usize] {
    let mut table = [0; (MOST - LEAST + 1) as usize];
    // 2^2048 / 5^n, rounded down: its highest bits are those of 5^-n.
    let mut long = [0; LONG];
    long[32] = 1;
    let mut n = 1;
    while n <= -LEAST {
        let mut rest = 0_u128;
        let mut k = LONG;
        while k > 0 {
            k -= 1;
            let value = rest << 64 | long[k] as u128;
            long[k] = (value / 5) as u64;
            rest = value % 5;
        }
        // The method requires that the small ones are rounded up.
        table[(-n - LEAST) as usize] = highest(&long) + (n <= 27) as u128;
        n += 1;
    }
    let mut long = [0; LONG];
    long[0] = 1;
    let mut n = 0;
    while n <= MOST {
        table[(n - LEAST) as usize] = highest(&long);
        let mut carry = 0_u128;
        let mut k = 0;
        while k < LONG {
            let value = long[k] as u128 * 5 + carry;
            long[k] = value as u64;
            carry = value >> 64;
            k += 1;
        }
        n += 1;
    }
    table
}

/// The first 128 bits of a long integer, from its highest set bit.
const fn highest(long: &[u64; LONG]) -> u128 {
    let mut top = LONG - 1;
    while long[top] == 0 {
        top -= 1;
    }
    let second = if top >= 1 { long[top - 1] } else { 0 };
    let third = if top >= 2 { long[top - 2] } else { 0 };
    let bits = (long[top] as u128) << 64 | second as u128;
    let shift = long[top].leading_zeros();
    if shift == 0 { bits } else { bits << shift | (third >> (64 - shift)) as u128 }
}

/// Parses a number at the beginning of `text`: sign, digits with an optional point, optional exponent
/// with a letter. Returns the value and its length in bytes; the rest of `text` is ignored.
pub(crate) fn read(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative || text.first() == Some(&b'+'));
    let start = at;
    let mut digits = 0;
    at = read_digits(text, at, &mut digits);
    let mut count = at - start;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        let point = at + 1;
        at = read_digits(text, point, &mut digits);
        fraction = at - point;
        count += fraction;
    }
    if count == 0 || count > 19 {
        return None;
    }
    let mut power = -(fraction as i32);
    if let Some(b'e' | b'E' | b'd' | b'D') = text.get(at) {
        let sign = text.get(at + 1).copied();
        let first = at + 1 + usize::from(matches!(sign, Some(b'+' | b'-')));
        let mut exponent = 0;
        at = read_digits(text, first, &mut exponent);
        if at == first || at - first > 4 {
            return None;
        }
        power += if sign == Some(b'-') { -(exponent as i32) } else { exponent as i32 };
    }
    let bits = nearest(digits, power)? | u64::from(negative) << 63;
    Some((f64::from_bits(bits), at))
}

/// Parses an integer of at most 18 digits at the beginning of `text`. Returns the value and its length.
pub(crate) fn read_integer(text: &[u8]) -> Option<(i64, usize)> {
    let negative = text.first() == Some(&b'-');
    let first = usize::from(negative || text.first() == Some(&b'+'));
    let mut digits = 0;
    let end = read_digits(text, first, &mut digits);
    let fits = end > first && end - first <= 18;
    fits.then(|| (if negative { -(digits as i64) } else { digits as i64 }, end))
}

/// Appends the digits from `at` on to `number`, wrapping on overflow. Returns the position after them.
fn read_digits(text: &[u8], mut at: usize, number: &mut u64) -> usize {
    while let Some(eight) =
        text.get(at..).and_then(<[u8]>::first_chunk).copied().and_then(eight_digits)
    {
        *number = number.wrapping_mul(100_000_000).wrapping_add(eight);
        at += 8;
    }
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// The value of eight digits, or `None` if a byte is not a digit. Neighbours are combined in pairs.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let word = u64::from_le_bytes(text);
    let digits =
        (word & HIGH) == ZEROS && (word.wrapping_add(0x0606_0606_0606_0606) & HIGH) == ZEROS;
    if !digits {
        return None;
    }
    let ones = word - ZEROS;
    let twos = (ones.wrapping_mul(10)).wrapping_add(ones >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100)).wrapping_add(twos >> 16) & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000)).wrapping_add(fours >> 32) & 0xffff_ffff)
}

/// The bits of the double nearest to `digits * 10^power`; `None` if it is not normal or not certain.
fn nearest(digits: u64, power: i32) -> Option<u64> {
    if digits == 0 {
        return Some(0);
    }
    if !(LEAST..=MOST).contains(&power) {
        return None;
    }
    let zeros = digits.leading_zeros();
    let digits = digits << zeros;
    let factor = POWERS[(power - LEAST) as usize];
    let product = u128::from(digits) * (factor >> 64);
    let (mut high, mut low) = ((product >> 64) as u64, product as u64);
    // The first 55 bits decide; the rest of the power matters only if all following bits are set.
    if high & 0x1ff == 0x1ff {
        let rest = (u128::from(digits) * (factor & u128::from(u64::MAX))) >> 64;
        let (sum, carry) = low.overflowing_add(rest as u64);
        (high, low) = (high + u64::from(carry), sum);
    }
    if low == u64::MAX && !(-27..=55).contains(&power) {
        return None;
    }
    let top = (high >> 63) as u32;
    let shift = top + 64 - 52 - 3;
    let mut mantissa = high >> shift;
    // log2(10^power) without its fraction.
    let mut exponent = ((217_706 * power) >> 16) + 63 + top as i32 - zeros as i32 + 1023;
    // Exactly at the midpoint: round to even.
    if low <= 1 && (-4..=23).contains(&power) && mantissa & 3 == 1 && mantissa << shift == high {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if mantissa == 1 << 53 {
        (mantissa, exponent) = (1 << 52, exponent + 1);
    }
    // Subnormal numbers and overflow are left to the caller.
    (1..2047).contains(&exponent).then_some((exponent as u64) << 52 | (mantissa & !(1 << 52)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(text: &str) {
        let read = read(text.as_bytes());
        if let Some((value, len)) = read {
            assert_eq!(len, text.len(), "{text}");
            let plain = text.replace(['d', 'D'], "e");
            assert_eq!(value.to_bits(), plain.parse::<f64>().unwrap().to_bits(), "{text}");
        }
    }

    #[test]
    fn powers_of_five_are_exact_where_they_can_be() {
        let at = |power: i32| POWERS[(power - LEAST) as usize];
        assert_eq!(at(0), 1 << 127);
        assert_eq!(at(55), 5_u128.pow(55) << 5_u128.pow(55).leading_zeros());
        assert_eq!(at(-1), u128::MAX / 5 * 4 + 1);
        assert!(POWERS.iter().all(|power| power >> 127 == 1));
    }

    #[test]
    fn only_plain_numbers_are_parsed() {
        for text in ["1.0", "-0.0", "+3", "1.", ".5", "1.5E+100", "2.5d-3", "1234567890123456789"] {
            assert!(read(text.as_bytes()).is_some(), "{text}");
            agrees(text);
        }
        for text in ["", "-", ".", "e5", "1e", "1e99999", "12345678901234567890", "1e400", "5e-324"]
        {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read(b"1.5 2"), Some((1.5, 3)));
        assert_eq!(read_integer(b"-12,"), Some((-12, 3)));
        assert_eq!(read_integer(b"1234567890123456789"), None);
        assert_eq!(read_integer(b"-9223372036854775808"), None);
    }

    #[test]
    fn numbers_near_the_midpoint_of_two_doubles_are_rounded_correctly() {
        // 2^53 + 1, and its neighbours in the last of 19 digits.
        for text in [
            "9007199254740993",
            "9007199254740993.000",
            "9007199254740992.999",
            "9007199254740993.001",
            "9007199254740995",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "4503599627370496.5",
            "4503599627370497.5",
            "8.5e22",
        ] {
            agrees(text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn every_double_is_the_nearest_to_its_digits(bits in any::<u64>(), digits in 0..19_usize) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                agrees(&format!("{value:.digits$e}"));
                agrees(&format!("{value:e}"));
            }
        }

        #[test]
        fn any_digits_and_powers(digits in any::<u64>(), power in -360_i32..330, cut in 0..19_u32) {
            agrees(&format!("{}e{power}", digits / 10_u64.pow(cut)));
        }
    }
}
