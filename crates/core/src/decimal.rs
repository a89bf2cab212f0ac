//! Decimal conversion of numbers wider than `f64`: IEEE binary128 and x87 80-bit extended precision.
//!
//! Conversions in both directions are exact and rounded once, to nearest even, with schoolbook
//! arithmetic. For `f64` and `f32` use `zmij` and `str::parse`.

/// A floating-point type wider than `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// IEEE binary128: 113 bits of significand.
    Binary128,
    /// x87 extended precision: 64 bits of significand with explicit leading bit.
    X87,
}

/// A decoded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity; true if negative.
    Infinite(bool),
    /// `significand * 2^exponent`, negated if `negative`.
    Finite {
        /// Negative.
        negative: bool,
        /// The significand as an integer.
        significand: u128,
        /// The power of two.
        exponent: i32,
    },
}

const BIAS: i32 = 16383;

impl Wide {
    /// Bits of the significand.
    const fn bits(self) -> i32 {
        match self {
            Self::Binary128 => 113,
            Self::X87 => 64,
        }
    }

    /// Number of significant decimal digits sufficient for a round trip.
    pub const fn digits(self) -> usize {
        match self {
            Self::Binary128 => 36,
            Self::X87 => 21,
        }
    }

    /// The sign bit.
    const fn sign(self) -> u128 {
        match self {
            Self::Binary128 => 1 << 127,
            Self::X87 => 1 << 79,
        }
    }

    /// Decodes `bits`. Padding above the 80 bits of an x87 number is ignored.
    pub fn decode(self, bits: u128) -> Value {
        let negative = bits & self.sign() != 0;
        let low = self.bits() - i32::from(self == Self::Binary128);
        let exponent = ((bits & (self.sign() - 1)) >> low) as i32;
        let stored = bits & ((1 << low) - 1);
        let fraction = if self == Self::X87 { stored & !(1 << 63) } else { stored };
        match exponent {
            0x7fff if fraction == 0 => Value::Infinite(negative),
            0x7fff => Value::Nan,
            _ => {
                let hidden = u128::from(self == Self::Binary128 && exponent != 0) << 112;
                let exponent = exponent.max(1) - BIAS - (self.bits() - 1);
                Value::Finite { negative, significand: stored | hidden, exponent }
            }
        }
    }

    /// The first `count` significant digits, rounded, of a finite nonzero number, and the power of ten of the
    /// first digit. `count` is clamped to 1..=36.
    pub fn to_digits(significand: u128, exponent: i32, count: usize) -> (String, i32) {
        let count = count.clamp(1, 36) as i32;
        let top = 127 - significand.leading_zeros() as i32 + exponent;
        let mut power = (f64::from(top) * std::f64::consts::LOG10_2).floor() as i32;
        let (low, high) = (10_u128.pow(count as u32 - 1), 10_u128.pow(count as u32));
        loop {
            let shift = count - 1 - power;
            let mut numerator = Natural::from(significand);
            let mut denominator = Natural::from(1);
            scale(&mut numerator, &mut denominator, shift, exponent);
            let digits = numerator.divide(&denominator);
            if digits >= high {
                power += 1;
            } else if digits < low {
                power -= 1;
            } else {
                return (digits.to_string(), power);
            }
        }
    }

    /// Appends the number as text with the fewest digits that round-trip.
    pub fn write(self, bits: u128, out: &mut String) {
        let (negative, significand, exponent) = match self.decode(bits) {
            Value::Nan => return out.push_str("NaN"),
            Value::Infinite(negative) => {
                return out.push_str(if negative { "-inf" } else { "inf" });
            }
            Value::Finite { negative, significand, exponent } => (negative, significand, exponent),
        };
        out.push_str(if negative { "-" } else { "" });
        if significand == 0 {
            return out.push_str("0.0");
        }
        let significant = bits & (2 * (self.sign() - 1) + 1);
        let shown = |count: usize| Self::to_digits(significand, exponent, count);
        let same = |count: usize| {
            let (digits, power) = shown(count);
            let last = i64::from(power) - count as i64 + 1;
            self.from_digits(negative, digits.as_bytes(), last) == significant
        };
        // Binary search: if some number of digits round-trips, so does any larger one.
        let (mut few, mut enough) = (0, self.digits());
        while enough - few > 1 {
            let middle = usize::midpoint(few, enough);
            if same(middle) {
                enough = middle;
            } else {
                few = middle;
            }
        }
        let (digits, power) = shown(enough);
        let digits = digits.trim_end_matches('0');
        let (digits, all) = if digits.is_empty() { ("0", 1) } else { (digits, digits.len()) };
        match usize::try_from(power) {
            Ok(integer) if integer < 16 => {
                let (head, tail) = digits.split_at(all.min(integer + 1));
                let zeros = "0".repeat(integer + 1 - head.len());
                out.extend([head, &zeros, ".", if tail.is_empty() { "0" } else { tail }]);
            }
            Err(_) if power > -6 => {
                out.extend(["0.", &"0".repeat(-power as usize - 1), digits]);
            }
            _ => {
                let (head, tail) = digits.split_at(1);
                let point = if tail.is_empty() { "" } else { "." };
                let sign = if power < 0 { "-" } else { "+" };
                out.extend([head, point, tail, "e", sign, &power.unsigned_abs().to_string()]);
            }
        }
    }

    /// The bits of the number closest to `digits * 10^power`; `digits` are ASCII decimal digits.
    pub fn from_digits(self, negative: bool, digits: &[u8], power: i64) -> u128 {
        let sign = if negative { self.sign() } else { 0 };
        let zeros = digits.iter().take_while(|d| **d == b'0').count();
        let digits = &digits[zeros..];
        // Underflow or overflow for any digits.
        let first = power.saturating_add(digits.len() as i64);
        if digits.is_empty() || first < -5_000 {
            return sign;
        }
        if first > 5_000 {
            return sign | self.infinity();
        }
        // Further digits matter only if one of them is nonzero.
        let (kept, rest) = digits.split_at(digits.len().min(20_000));
        let more = u32::from(rest.iter().any(|d| *d != b'0'));
        let power = (power + rest.len() as i64) as i32 - 1;
        let mut numerator = Natural::from_decimal(kept);
        numerator.multiply(10, more);
        let mut denominator = Natural::from(1);
        scale(&mut numerator, &mut denominator, power, 0);
        let lowest = 1 - BIAS - (self.bits() - 1);
        // Scaled so that the quotient has as many bits as the significand, or one more.
        let mut twos = (numerator.len() - denominator.len() - self.bits()).max(lowest);
        loop {
            let (mut n, mut d) = (numerator.clone(), denominator.clone());
            scale(&mut n, &mut d, 0, -twos);
            let significand = n.divide(&d);
            if significand >> self.bits() == 0 {
                return sign | self.encode(significand, twos);
            }
            twos += 1;
        }
    }

    /// The bits of infinity.
    fn infinity(self) -> u128 {
        match self {
            Self::Binary128 => 0x7fff << 112,
            Self::X87 => 0x7fff << 64 | 1 << 63,
        }
    }

    fn encode(self, significand: u128, scale: i32) -> u128 {
        let leading = 1_u128 << (self.bits() - 1);
        let normal = significand & leading != 0;
        let exponent = if normal { scale + self.bits() - 1 + BIAS } else { 0 };
        if exponent >= 0x7fff {
            return self.infinity();
        }
        match self {
            Self::Binary128 => (exponent as u128) << 112 | (significand & !leading),
            Self::X87 => (exponent as u128) << 64 | significand,
        }
    }
}

/// Multiplies the fraction `numerator / denominator` by powers of ten and two.
fn scale(numerator: &mut Natural, denominator: &mut Natural, tens: i32, twos: i32) {
    let tens_to = if tens >= 0 { &mut *numerator } else { &mut *denominator };
    tens_to.times_ten(tens.abs());
    let twos_to = if twos >= 0 { numerator } else { denominator };
    twos_to.shift(twos.abs());
}

/// An arbitrary-precision natural number, least significant word first.
#[derive(Clone)]
struct Natural(Vec<u32>);

impl From<u128> for Natural {
    fn from(mut value: u128) -> Self {
        let mut words = Vec::new();
        while value > 0 {
            words.push(value as u32);
            value >>= 32;
        }
        Self(words)
    }
}

impl Natural {
    fn from_decimal(digits: &[u8]) -> Self {
        let mut out = Self(Vec::new());
        for group in digits.chunks(9) {
            let value = group.iter().fold(0, |v, d| 10 * v + u32::from(d - b'0'));
            out.multiply(10_u32.pow(group.len() as u32), value);
        }
        out
    }

    fn multiply(&mut self, factor: u32, plus: u32) {
        let mut carry = u64::from(plus);
        for word in &mut self.0 {
            let sum = u64::from(*word) * u64::from(factor) + carry;
            *word = sum as u32;
            carry = sum >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn times_ten(&mut self, power: i32) {
        for _ in 0..power / 9 {
            self.multiply(1_000_000_000, 0);
        }
        self.multiply(10_u32.pow((power % 9) as u32), 0);
    }

    fn shift(&mut self, bits: i32) {
        self.multiply(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, (bits / 32) as usize));
    }

    /// Number of bits.
    fn len(&self) -> i32 {
        let top = self.0.last().map_or(0, |w| 32 - w.leading_zeros() as i32);
        32 * (self.0.len() as i32 - 1).max(0) + top
    }

    fn at_least(&self, other: &Self) -> bool {
        let order = self.0.len().cmp(&other.0.len());
        order.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0_i64;
        for (k, word) in self.0.iter_mut().enumerate() {
            let rest = i64::from(*word) - borrow - i64::from(other.0.get(k).copied().unwrap_or(0));
            *word = rest as u32;
            borrow = i64::from(rest < 0);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The quotient, which must fit 128 bits, rounded to nearest even.
    fn divide(mut self, by: &Self) -> u128 {
        let steps = (self.len() - by.len()).clamp(0, 127);
        let mut part = by.clone();
        part.shift(steps);
        let mut quotient = 0_u128;
        for step in 0..=steps {
            // The remainder is doubled instead of halving the divisor, which avoids copies.
            if step > 0 {
                self.multiply(2, 0);
            }
            let fits = self.at_least(&part);
            if fits {
                self.subtract(&part);
            }
            quotient = quotient << 1 | u128::from(fits);
        }
        self.multiply(2, 0);
        let numerator = self.at_least(&part);
        let tie = numerator && part.at_least(&self);
        quotient + u128::from(numerator && (!tie || quotient & 1 == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(kind: Wide, bits: u128) -> u128 {
        let Value::Finite { negative, significand, exponent } = kind.decode(bits) else {
            return bits;
        };
        if significand == 0 {
            return kind.from_digits(negative, b"0", 0);
        }
        let (digits, power) = Wide::to_digits(significand, exponent, kind.digits());
        kind.from_digits(negative, digits.as_bytes(), i64::from(power) - digits.len() as i64 + 1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_binary128_round_trips(bits in any::<u128>()) {
            prop_assert_eq!(back(Wide::Binary128, bits), bits);
        }

        #[test]
        fn every_x87_number_round_trips(exponent in 0_u128..0x7fff, fraction in any::<u64>(), s in 0_u128..2) {
            // The leading bit is set unless the exponent is zero; other numbers are invalid.
            let leading = if exponent == 0 { 0 } else { 1_u64 << 63 };
            let bits = s << 79 | exponent << 64 | u128::from(fraction >> 1 | leading);
            prop_assert_eq!(back(Wide::X87, bits), bits);
        }

        #[test]
        fn digits_agree_with_those_of_doubles(value in any::<f64>()) {
            prop_assume!(value.is_normal());
            let bits = value.to_bits();
            let significand = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
            let exponent = ((bits >> 52) & 0x7ff) as i32 - 1075;
            let (digits, power) = Wide::to_digits(significand, exponent, 17);
            let text = format!("{:.16e}", value.abs());
            let plain: String = text.split('e').next().unwrap().replace('.', "");
            prop_assert_eq!(digits, plain);
            prop_assert_eq!(power.to_string(), text.split('e').nth(1).unwrap());
        }
    }

    #[test]
    fn the_limits_of_the_range_round_trip() {
        for kind in [Wide::Binary128, Wide::X87] {
            let smallest = 1_u128;
            let largest = kind.infinity() - if kind == Wide::X87 { (1 << 63) + 1 } else { 1 };
            let largest = if kind == Wide::X87 { largest | u128::from(u64::MAX) } else { largest };
            for bits in [0, smallest, largest, kind.sign(), kind.sign() | smallest] {
                assert_eq!(back(kind, bits), bits, "{kind:?} {bits:x}");
            }
            assert_eq!(kind.from_digits(false, b"1", 4_940), kind.infinity());
            assert_eq!(kind.from_digits(true, b"1", -9_999_999_999), kind.sign());
            // 1.1 as encoded by compilers.
            let one = kind.from_digits(false, b"11", -1);
            let expected = match kind {
                Wide::Binary128 => 0x3fff_1999_9999_9999_9999_9999_9999_999a,
                Wide::X87 => 0x3fff_8ccc_cccc_cccc_cccd,
            };
            assert_eq!(one, expected);
        }
    }
}
