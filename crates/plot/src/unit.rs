//! Units and the powers of ten that go with them.

/// SI prefixes with the power of ten they stand for; `u` is only read, never written.
const PREFIXES: [(&str, i32); 20] = [
    ("q", -30),
    ("r", -27),
    ("y", -24),
    ("z", -21),
    ("a", -18),
    ("f", -15),
    ("p", -12),
    ("n", -9),
    ("µ", -6),
    ("m", -3),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
    ("Z", 21),
    ("Y", 24),
    ("R", 27),
    ("Q", 30),
];
/// Other spellings of micro: the Greek letter and the letter of plain typewriters.
const MICRO: [&str; 2] = ["μ", "u"];

/// Units that people write prefixes in front of.
const TAKES_PREFIX: [&str; 31] = [
    "s", "m", "g", "A", "K", "mol", "cd", "V", "W", "J", "N", "Pa", "Hz", "C", "F", "H", "T", "S",
    "Wb", "Ω", "ohm", "eV", "rad", "lm", "lx", "Bq", "Gy", "Sv", "bar", "B", "L",
];

/// The power of ten shown by an axis and how the axis says so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// A tick's label is its value divided by ten to this power.
    pub(crate) power: i32,
    /// The unit to write after the axis label.
    pub(crate) unit: String,
    /// What to put at the end of the axis when no prefix says it, such as `×10⁻⁶`.
    pub(crate) note: String,
}

/// The scale for labels whose largest has its first digit at `10^lead` and that all end at or
/// before `10^last`.
pub(crate) fn scale(unit: &str, lead: i32, last: i32) -> Scale {
    let unit = unit.trim();
    let plain = |power: i32| Scale {
        power,
        unit: unit.to_owned(),
        note: if power == 0 { String::new() } else { format!("×10{}", superscript(power)) },
    };
    if let Some((own, base)) = split(unit) {
        let bare = (0..=3).contains(&lead) || (lead == -1 && last >= -1);
        if bare {
            return plain(0);
        }
        let total = (lead + own).div_euclid(3) * 3;
        // Nobody counts in kiloseconds.
        let spoken = total <= 0 || base != "s";
        if let Some(prefix) = prefix(total).filter(|_| spoken) {
            let unit = format!("{prefix}{base}");
            return Scale { power: total - own, unit, note: String::new() };
        }
    }
    if (-2..=4).contains(&lead) { plain(0) } else { plain(lead.div_euclid(3) * 3) }
}

fn prefix(power: i32) -> Option<&'static str> {
    if power == 0 {
        return Some("");
    }
    PREFIXES.iter().find(|p| p.1 == power).map(|p| p.0)
}

/// The power of the prefix that `unit` already has and the unit without it; `None` if a prefix in
/// front would not mean a plain factor, as in `m²`, or would look odd, as in `m%`.
fn split(unit: &str) -> Option<(i32, &str)> {
    // `kV/m` and `N·m` scale with their first factor, as long as that is not raised to a power.
    let end = unit.find(['/', '·', '*', ' ']).unwrap_or(unit.len());
    let first = &unit[..end];
    if TAKES_PREFIX.contains(&first) {
        return Some((0, unit));
    }
    let read = PREFIXES.iter().copied().chain(MICRO.map(|u| (u, -6)));
    for (prefix, power) in read {
        if first.strip_prefix(prefix).is_some_and(|base| TAKES_PREFIX.contains(&base)) {
            return Some((power, &unit[prefix.len()..]));
        }
    }
    None
}

/// A unit as it is printed: `A/m^2` as `A/m²`, `kg.m/s` as `kg·m/s`.
pub(crate) fn pretty(unit: &str) -> String {
    let mut parts = unit.split('^');
    let mut raised = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let power = &part[..part.len() - after.len()];
        if let Ok(power) = power.parse() {
            raised.push_str(&superscript(power));
        } else {
            raised.push('^');
            raised.push_str(power);
        }
        raised.push_str(after);
    }
    let signs: Vec<char> = raised.chars().collect();
    let letter = |k: Option<usize>| k.and_then(|k| signs.get(k)).is_some_and(|c| c.is_alphabetic());
    // A full stop between two letters multiplies; in a number it is something else.
    let dot = |k: usize| signs[k] == '.' && letter(k.checked_sub(1)) && letter(Some(k + 1));
    (0..signs.len()).map(|k| if dot(k) { '·' } else { signs[k] }).collect()
}

/// A whole number in raised digits.
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
    fn a_prefix_already_there_is_replaced() {
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
    fn units_are_printed_as_people_write_them() {
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
    fn raised_digits() {
        assert_eq!(superscript(-1_234_567_890), "⁻¹²³⁴⁵⁶⁷⁸⁹⁰");
    }
}
