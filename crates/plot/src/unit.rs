//! SI prefixes and powers of ten of units.

/// SI prefixes from 10^-30 to 10^30, each 1000 times the one before; a space for 1.
const PREFIXES: &str = "qryzafpnµm kMGTPEZYRQ";

/// Other spellings of micro, accepted on input: Greek mu and the letter u.
const MICRO: [char; 2] = ['μ', 'u'];

/// Units that are used with SI prefixes.
const TAKES_PREFIX: [&str; 31] = [
    "s", "m", "g", "A", "K", "mol", "cd", "V", "W", "J", "N", "Pa", "Hz", "C", "F", "H", "T", "S",
    "Wb", "Ω", "ohm", "eV", "rad", "lm", "lx", "Bq", "Gy", "Sv", "bar", "B", "L",
];

/// Power of ten of the labels of an axis, and its notation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// A tick's label is its value divided by ten to this power.
    pub(crate) power: i32,
    /// Unit for the axis label.
    pub(crate) unit: String,
    /// Factor at the end of the axis if there is no prefix for it, such as `×10⁻⁶`.
    pub(crate) note: String,
}

/// Scale for labels with the first digit of the largest one at `10^lead` and the last digit of all at
/// `10^last` or above.
pub(crate) fn scale(unit: &str, lead: i32, last: i32) -> Scale {
    let unit = unit.trim();
    let unprefixed = |power: i32| Scale {
        power,
        unit: unit.to_owned(),
        note: if power == 0 { String::new() } else { format!("×10{}", superscript(power)) },
    };
    if let Some((own, base)) = split(unit) {
        let in_range = (0..=3).contains(&lead) || (lead == -1 && last >= -1);
        if in_range {
            return unprefixed(0);
        }
        let total = (lead + own).div_euclid(3) * 3;
        // Kiloseconds are not used.
        let common = total <= 0 || base != "s";
        if let Some(prefix) = prefix(total).filter(|_| common) {
            let unit = format!("{prefix}{base}");
            return Scale { power: total - own, unit, note: String::new() };
        }
    }
    if (-2..=4).contains(&lead) { unprefixed(0) } else { unprefixed(lead.div_euclid(3) * 3) }
}

/// The prefix for a power of ten that is a multiple of 3; `None` if there is none.
fn prefix(power: i32) -> Option<&'static str> {
    let number = usize::try_from(power / 3 + 10).ok()?;
    let (at, prefix) = PREFIXES.char_indices().nth(number)?;
    Some(PREFIXES[at..at + prefix.len_utf8()].trim())
}

/// Power of the prefix of `unit` and the unit without it; `None` if the unit takes no prefix, such as
/// `m²` or `%`.
fn split(unit: &str) -> Option<(i32, &str)> {
    // `kV/m` and `N·m` scale with their first factor unless that has an exponent.
    let end = unit.find(['/', '·', '*', ' ']).unwrap_or(unit.len());
    let first = &unit[..end];
    if TAKES_PREFIX.contains(&first) {
        return Some((0, unit));
    }
    let powers = (-30..).step_by(3);
    let prefixes = PREFIXES.chars().zip(powers).chain(MICRO.map(|micro| (micro, -6)));
    for (prefix, power) in prefixes {
        if first.strip_prefix(prefix).is_some_and(|base| TAKES_PREFIX.contains(&base)) {
            return Some((power, &unit[prefix.len_utf8()..]));
        }
    }
    None
}

/// Typographic form of a unit: `A/m^2` becomes `A/m²`, `kg.m/s` becomes `kg·m/s`.
pub(crate) fn pretty(unit: &str) -> String {
    let mut parts = unit.split('^');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let power = &part[..part.len() - after.len()];
        if let Ok(power) = power.parse() {
            out.push_str(&superscript(power));
        } else {
            out.push('^');
            out.push_str(power);
        }
        out.push_str(after);
    }
    let chars: Vec<char> = out.chars().collect();
    let letter = |k: Option<usize>| k.and_then(|k| chars.get(k)).is_some_and(|c| c.is_alphabetic());
    // A full stop between two letters is a multiplication, elsewhere a decimal point.
    let dot = |k: usize| chars[k] == '.' && letter(k.checked_sub(1)) && letter(Some(k + 1));
    (0..chars.len()).map(|k| if dot(k) { '·' } else { chars[k] }).collect()
}

/// An integer in superscript digits.
pub(crate) fn superscript(number: i32) -> String {
    number
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(unit: &str, lead: i32) -> (i32, String, String) {
        let s = scale(unit, lead, lead - 1);
        (s.power, s.unit, s.note)
    }

    fn want(power: i32, unit: &str, note: &str) -> (i32, String, String) {
        (power, unit.into(), note.into())
    }

    #[test]
    fn seconds_become_microseconds() {
        assert_eq!(shown("s", -5), want(-6, "µs", ""));
        assert_eq!(shown("s", -6), want(-6, "µs", ""));
        assert_eq!(shown("s", -7), want(-9, "ns", ""));
        assert_eq!(shown("s", 2), want(0, "s", ""));
        assert_eq!(shown("s", 6), want(6, "s", "×10⁶"));
    }

    #[test]
    fn an_existing_prefix_is_replaced() {
        assert_eq!(shown("ms", -2), want(-3, "µs", ""));
        assert_eq!(shown("us", 4), want(3, "ms", ""));
        assert_eq!(shown("kHz", 7), want(6, "GHz", ""));
        assert_eq!(shown("kg", -3), want(-3, "g", ""));
        assert_eq!(shown("mm", 1), want(0, "mm", ""));
    }

    #[test]
    fn only_a_linear_unit_takes_a_prefix() {
        assert_eq!(shown("V/m", 9), want(9, "GV/m", ""));
        assert_eq!(shown("m^-3", 25), want(24, "m^-3", "×10²⁴"));
        assert_eq!(shown("m²", -5), want(-6, "m²", "×10⁻⁶"));
        assert_eq!(shown("%", -5), want(-6, "%", "×10⁻⁶"));
        assert_eq!(shown("", -5), want(-6, "", "×10⁻⁶"));
        assert_eq!(shown("V", 200), want(198, "V", "×10¹⁹⁸"));
        assert_eq!(shown("min", 7), want(6, "min", "×10⁶"));
    }

    #[test]
    fn units_are_printed_in_typographic_form() {
        for (plain, printed) in [
            ("A/m^2", "A/m²"),
            ("kg.m/s", "kg·m/s"),
            ("m^-3 s^-1", "m⁻³ s⁻¹"),
            ("1.5 m", "1.5 m"),
            ("2^x^", "2^x^"),
            ("^99999999999", "^99999999999"),
            ("", ""),
        ] {
            assert_eq!(pretty(plain), printed);
        }
    }

    #[test]
    fn superscript_digits() {
        assert_eq!(superscript(-1_234_567_890), "⁻¹²³⁴⁵⁶⁷⁸⁹⁰");
    }
}
