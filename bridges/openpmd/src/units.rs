//! Units as powers of the SI base units.

/// Powers of length, mass, time, electric current, temperature, amount of substance and luminous intensity.
pub(crate) type Dimension = [f64; 7];

/// No unit.
pub(crate) const NONE: Dimension = [0.0; 7];

/// Length.
pub(crate) const LENGTH: Dimension = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// SI units without prefixes, with their dimensions.
const UNITS: [(&str, Dimension); 22] = [
    ("m", LENGTH),
    ("kg", [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    ("s", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
    ("A", [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
    ("K", [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
    ("mol", [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
    ("cd", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    ("rad", NONE),
    ("sr", NONE),
    ("#", NONE),
    ("Hz", [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0]),
    ("N", [1.0, 1.0, -2.0, 0.0, 0.0, 0.0, 0.0]),
    ("Pa", [-1.0, 1.0, -2.0, 0.0, 0.0, 0.0, 0.0]),
    ("J", [2.0, 1.0, -2.0, 0.0, 0.0, 0.0, 0.0]),
    ("W", [2.0, 1.0, -3.0, 0.0, 0.0, 0.0, 0.0]),
    ("C", [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]),
    ("V", [2.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0]),
    ("F", [-2.0, -1.0, 4.0, 2.0, 0.0, 0.0, 0.0]),
    ("ohm", [2.0, 1.0, -3.0, -2.0, 0.0, 0.0, 0.0]),
    ("S", [-2.0, -1.0, 3.0, 2.0, 0.0, 0.0, 0.0]),
    ("Wb", [2.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0]),
    ("T", [0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0]),
];

/// The dimension of a product of SI units such as `V/m`, `kg.m/s`, `1/m^3` or `A m-2`; `None` for other texts. Each `/`
/// applies to the unit after it.
pub(crate) fn dimension(text: &str) -> Option<Dimension> {
    let mut sum = NONE;
    let mut rest = text.trim();
    let mut sign = 1.0;
    while !rest.is_empty() {
        let end = rest.find(['/', '.', '*', ' ', '\u{b7}']).unwrap_or(rest.len());
        let (factor, after) = rest.split_at(end);
        if !factor.is_empty() {
            let (unit, power) = factor_of(factor)?;
            for (total, own) in sum.iter_mut().zip(unit) {
                *total += sign * power * own;
            }
            sign = 1.0;
        }
        let mut separators = after.chars();
        if let Some(separator) = separators.next() {
            if separator == '/' {
                sign = -1.0;
            }
            rest = separators.as_str();
        } else {
            rest = "";
        }
    }
    Some(sum)
}

/// The dimension and the power of one factor: `m^3`, `m3`, `s-1`, `1`.
fn factor_of(text: &str) -> Option<(Dimension, f64)> {
    if text == "1" {
        return Some((NONE, 1.0));
    }
    let is_power = |c: char| c.is_ascii_digit() || c == '-' || c == '+';
    let end = text.find(|c| c == '^' || is_power(c)).unwrap_or(text.len());
    let (name, power) = text.split_at(end);
    let power = power.trim_start_matches('^');
    let power = if power.is_empty() { 1.0 } else { power.parse::<i8>().ok().map(f64::from)? };
    let (_, dimension) = UNITS.iter().find(|(known, _)| *known == name)?;
    Some((*dimension, power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_epoch_have_the_dimensions_of_si() {
        let cases: [(&str, Dimension); 9] = [
            ("V/m", [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0]),
            ("T", [0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0]),
            ("kg.m/s", [1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0]),
            ("1/m^3", [-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            ("A/m^2", [-2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
            ("W/m^2", [0.0, 1.0, -3.0, 0.0, 0.0, 0.0, 0.0]),
            ("C m-3", [-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]),
            ("", NONE),
            ("#", NONE),
        ];
        for (text, expected) in cases {
            assert_eq!(dimension(text), Some(expected), "{text}");
        }
        assert_eq!(dimension("eV"), None);
        assert_eq!(dimension("m^x"), None);
    }
}
