//! Tick positions and labels.
//!
//! A tick is an integer times a power of ten, so its label is exact: no float is formatted.

use crate::figure::Axis;
use crate::range::Range;
use crate::unit::{self, Scale};

/// A tick: its position on the axis and its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// The ticks of one axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) marks: Vec<Tick>,
    /// Unit of the labels, including the SI prefix.
    pub(crate) unit: String,
    /// Factor and offset from labels to values that the unit does not express: `×10⁻⁶ + 10⁹`.
    pub(crate) note: String,
}

/// Labels with more digits get a common offset.
const MAX_DIGITS: u32 = 6;

/// Positions of 2, 3, ... 9 times the powers of ten inside `range`, without the `ticks`; none for ranges of many
/// powers, and for linear axes.
pub(crate) fn minor(axis: &Axis, range: Range, ticks: &[Tick]) -> Vec<f64> {
    const MOST_POWERS: f64 = 12.0;
    if !axis.log || range.span() > MOST_POWERS {
        return Vec::new();
    }
    let powers = range.low.floor() as i32..=range.high.ceil() as i32;
    let all =
        powers.flat_map(|power| (1..10).map(move |n| f64::from(n).log10() + f64::from(power)));
    let is_tick = |value: f64| ticks.iter().any(|tick| (tick.value - value).abs() < 1e-9);
    all.filter(|v| *v >= range.low && *v <= range.high && !is_tick(*v)).collect()
}

impl Ticks {
    /// About `max_count` ticks, or fewer, of an axis. `range` and the values of the ticks are positions:
    /// logarithms for a logarithmic axis.
    pub(crate) fn of(axis: &Axis, range: Range, max_count: usize) -> Self {
        if axis.log {
            Self::log(range, &axis.unit, max_count)
        } else {
            let min_step = if axis.integer { 1.0 } else { 0.0 };
            Self::steps(range, &axis.unit, max_count, min_step)
        }
    }

    /// Ticks of a logarithmic axis: powers of ten, with 2 and 5 times a power if there is space, or other
    /// round values if the range has fewer than two powers of ten.
    fn log(range: Range, unit: &str, max_count: usize) -> Self {
        let first = (range.low - 1e-9).ceil() as i32;
        let last = (range.high + 1e-9).floor() as i32;
        let unit_only = |marks| Self { marks, unit: unit.trim().to_owned(), note: String::new() };
        let inside =
            |tick: &Tick| tick.value >= range.low - 1e-9 && tick.value <= range.high + 1e-9;
        // These ticks are not uniform; this is the minimum distance between labels.
        let gap = 0.45 * range.span() / max_count.clamp(1, 100) as f64;
        if last - first <= max_count as i32 {
            // Write out small powers if all labels are short.
            let decimals = (first - 1..=last).all(|power| (-3..=3).contains(&power));
            let marks: Vec<Tick> = (first - 1..=last)
                .flat_map(|power| [1, 2, 5].map(|number| (number, power)))
                .map(|(number, power)| Tick {
                    value: f64::from(number).log10() + f64::from(power),
                    label: match number {
                        _ if decimals => decimal(i64::from(number), power),
                        1 => format!("10{}", unit::superscript(power)),
                        _ => format!("{number}×10{}", unit::superscript(power)),
                    },
                })
                .filter(inside)
                .collect();
            let crowded = marks.windows(2).any(|w| w[1].value - w[0].value < gap);
            if (3..=max_count.max(4)).contains(&marks.len()) && !crowded {
                return unit_only(marks);
            }
        }
        if last <= first {
            let values = Range::new(10f64.powf(range.low), 10f64.powf(range.high));
            let mut ticks = Self::steps(values, unit, max_count, 0.0);
            let mut last = f64::NEG_INFINITY;
            ticks.marks.retain_mut(|tick| {
                tick.value = tick.value.log10();
                let free = inside(tick) && tick.value - last >= gap;
                last = if free { tick.value } else { last };
                free
            });
            return ticks;
        }
        let step = 1 + (last - first) / max_count.clamp(1, 100) as i32;
        let power = |power: i32| Tick {
            value: f64::from(power),
            label: format!("10{}", unit::superscript(power)),
        };
        unit_only((first..=last).filter(|p| p.rem_euclid(step) == 0).map(power).collect())
    }

    /// About `max_count` ticks, or fewer, of a linear axis, labelled in `unit` with an SI prefix. The step is at
    /// least `min_step`; 1 restricts the ticks to integers.
    fn steps(range: Range, unit: &str, max_count: usize, min_step: f64) -> Self {
        let (mut factor, mut power) =
            nice_step((range.span() / max_count.clamp(1, 100) as f64).max(min_step));
        if min_step == 1.0 && power < 0 {
            // 2.5 is the only step above 1 that is not an integer.
            (factor, power) = (5, 0);
        }
        let step = value(factor, power);
        // Include ticks that are outside by a rounding error.
        let first = (range.low / step - 1e-6).ceil() as i64;
        let last = (range.high / step + 1e-6).floor() as i64;
        let numbers: Vec<i64> =
            (first..=last).take(128).map(|k| k.saturating_mul(factor)).collect();
        let (Some(&low), Some(&high)) = (numbers.first(), numbers.last()) else {
            return Self { unit: unit.to_owned(), ..Self::default() };
        };

        let long = numbers.iter().any(|&n| digits(n) > MAX_DIGITS);
        let offset = if long { round_offset(low, high) } else { 0 };
        let largest = (low - offset).unsigned_abs().max((high - offset).unsigned_abs());
        let lead = power + largest.checked_ilog10().unwrap_or(0) as i32;
        let Scale { power: shown, unit: prefixed, mut note } = unit::scale(unit, lead, power);
        if offset != 0 {
            // The offset is in the unit of the data, without the prefix of the labels.
            if !note.is_empty() {
                note.push(' ');
            }
            note.push_str(if offset < 0 { "− " } else { "+ " });
            note.push_str(&plain(offset.unsigned_abs(), power));
            if !unit.trim().is_empty() {
                note.push(' ');
                note.push_str(unit.trim());
            }
        }
        let marks = numbers
            .iter()
            .map(|&n| Tick { value: value(n, power), label: decimal(n - offset, power - shown) })
            .collect();
        Self { marks, unit: prefixed, note }
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `raw`, as an integer and an
/// exponent of ten.
fn nice_step(raw: f64) -> (i64, i32) {
    let power = raw.log10().floor() as i32;
    let lead = raw / 10f64.powi(power);
    [(1, 0), (2, 0), (25, -1), (5, 0), (1, 1), (2, 1)]
        .into_iter()
        .find(|&(n, p)| value(n, p) >= lead * (1.0 - 1e-9))
        .map_or((1, power + 2), |(n, p)| (n, power + p))
}

/// `number * 10^power`, rounded once if the power is exact.
fn value(number: i64, power: i32) -> f64 {
    if power < 0 { number as f64 / 10f64.powi(-power) } else { number as f64 * 10f64.powi(power) }
}

fn digits(number: i64) -> u32 {
    number.unsigned_abs().checked_ilog10().map_or(1, |d| d + 1)
}

/// Offset for the labels of `low..=high`, a range without zero: the roundest number in the range, or
/// the common leading digits.
fn round_offset(low: i64, high: i64) -> i64 {
    let span = high - low;
    let mut common = 0;
    for unit in (0..18).rev().map(|j| 10i64.pow(j)).take_while(|&unit| unit >= span) {
        let up = low.div_euclid(unit).saturating_add(i64::from(low.rem_euclid(unit) != 0));
        let up = up.saturating_mul(unit);
        if up <= high {
            return up;
        }
        common = if low > 0 { low / unit * unit } else { high / unit * unit };
    }
    common
}

/// `number * 10^power` in decimal notation with `-power` decimals and the sign U+2212.
fn decimal(number: i64, power: i32) -> String {
    let mut text = number.unsigned_abs().to_string();
    if power < 0 {
        let decimals = power.unsigned_abs() as usize;
        if text.len() <= decimals {
            text.insert_str(0, &"0".repeat(decimals + 1 - text.len()));
        }
        text.insert(text.len() - decimals, '.');
    } else if number != 0 {
        text.extend(std::iter::repeat_n('0', power as usize));
    }
    if number < 0 {
        text.insert(0, '−');
    }
    text
}

/// `number * 10^power` in decimal or scientific notation, whichever is easier to read.
fn plain(mut number: u64, mut power: i32) -> String {
    while number != 0 && number.is_multiple_of(10) {
        number /= 10;
        power += 1;
    }
    let text = number.to_string();
    let lead = power + text.len() as i32 - 1;
    let exponent = unit::superscript(lead);
    let (head, tail) = text.split_at(1);
    let short = match tail {
        "" if head == "1" => format!("10{exponent}"),
        "" => format!("{head}×10{exponent}"),
        _ => format!("{head}.{tail}×10{exponent}"),
    };
    // Scientific notation for many zeros.
    let zeros = power.max(-lead);
    if zeros >= 6 || lead > 15 { short } else { decimal(number as i64, power) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(low: f64, high: f64, unit: &str) -> (Vec<String>, String, String) {
        let t = Ticks::steps(Range::new(low, high), unit, 6, 0.0);
        (t.marks.into_iter().map(|t| t.label).collect(), t.unit, t.note)
    }

    #[test]
    fn labels_have_no_float_noise() {
        assert_eq!(labels(0.0, 1.0, "").0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(-0.3, 0.3, "").0, ["−0.3", "−0.2", "−0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(0.0, 10.0, "").0, ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(0.0, 15.0, "").0, ["0.0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
    }

    #[test]
    fn prefixes_and_powers_are_shared() {
        let (l, unit, note) = labels(0.0, 5e-6, "s");
        assert_eq!((l[1].as_str(), unit.as_str(), note.as_str()), ("1", "µs", ""));
        let (l, unit, note) = labels(0.0, 5e-6, "");
        assert_eq!((l[1].as_str(), unit.as_str(), note.as_str()), ("1", "", "×10⁻⁶"));
    }

    #[test]
    fn large_offsets_are_moved_to_the_note() {
        let (l, _, note) = labels(1e9, 1e9 + 1e-3, "");
        assert_eq!(note, "×10⁻³ + 10⁹");
        assert_eq!(l, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let (l, unit, note) = labels(-2000.0001, -1999.9999, "s");
        assert_eq!((unit.as_str(), note.as_str()), ("µs", "− 2000 s"));
        assert_eq!(l, ["−100", "−50", "0", "50", "100"]);
        let (l, _, note) = labels(1_234_567.11, 1_234_567.88, "");
        assert_eq!((l[0].as_str(), note.as_str()), ("0.2", "+ 1234567"));
        assert_eq!(labels(1e300, 1e300 + 1e288, "").2, "×10²⁸⁵ + 10³⁰⁰");
    }

    #[test]
    fn an_integer_axis_has_ticks_only_at_integers() {
        let integer = |low, high, max_count| {
            let t = Ticks::of(&Axis::integer("index"), Range::new(low, high), max_count);
            t.marks.into_iter().map(|t| t.label).collect::<Vec<_>>()
        };
        assert_eq!(integer(-0.5, 0.5, 6), ["0"]);
        assert_eq!(integer(-0.5, 3.5, 8), ["0", "1", "2", "3"]);
        assert_eq!(integer(0.0, 15.0, 6), ["0", "5", "10", "15"]);
        assert_eq!(integer(0.0, 150.0, 6), ["0", "25", "50", "75", "100", "125", "150"]);
    }

    #[test]
    fn minor_ticks_are_multiples_of_powers_of_ten_between_the_ticks() {
        let axis = Axis { log: true, ..Axis::new("", "") };
        let range = Range::new(0.0, 2.0);
        let ticks = Ticks::of(&axis, range, 3);
        let found: Vec<f64> =
            minor(&axis, range, &ticks.marks).iter().map(|v| 10_f64.powf(*v).round()).collect();
        let expected = [2, 3, 4, 5, 6, 7, 8, 9, 20, 30, 40, 50, 60, 70, 80, 90].map(f64::from);
        assert_eq!(found, expected);
        assert!(minor(&Axis::new("", ""), range, &[]).is_empty());
        assert!(minor(&axis, Range::new(-100.0, 100.0), &[]).is_empty());
    }

    #[test]
    fn logarithmic_axes_have_powers_of_ten_or_round_values() {
        let log = |low: f64, high: f64, max_count| {
            let axis = Axis { log: true, ..Axis::new("", "V") };
            Ticks::of(&axis, Range::new(low.log10(), high.log10()), max_count)
        };
        let all = |t: &Ticks| t.marks.iter().map(|t| t.label.clone()).collect::<Vec<_>>();
        let wide = log(1e-3, 1e3, 8);
        assert_eq!(all(&wide), ["10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²", "10³"]);
        assert_eq!((wide.marks[1].value, wide.unit.as_str()), (-2.0, "V"));
        assert_eq!(all(&log(1e-12, 1e12, 5)), ["10⁻¹⁰", "10⁻⁵", "10⁰", "10⁵", "10¹⁰"]);
        assert_eq!(all(&log(1.5, 60.0, 8)), ["2", "5", "10", "20", "50"]);
        assert_eq!(all(&log(3e7, 3e8, 5)), ["5×10⁷", "10⁸", "2×10⁸"]);
        let narrow = log(2.0, 4.9, 4);
        assert_eq!(all(&narrow), ["2", "3", "4"]);
        assert!((narrow.marks[1].value - 3f64.log10()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn ticks_are_round_and_inside_the_range(
            low in prop_oneof![any::<f64>(), -10.0..10.0, Just(0.0)],
            span in prop_oneof![any::<f64>(), 0.0..10.0, Just(1e-9), Just(1e-3)],
            max_count in 1usize..30,
        ) {
            let range = Range::new(low, low + span);
            let t = Ticks::steps(range, "V", max_count, 0.0);
            prop_assert!(t.marks.len() <= max_count + 2, "{} for {max_count}", t.marks.len());
            prop_assert!(max_count < 2 || !t.marks.is_empty());
            let tolerance = range.span() * 1e-3;
            for tick in &t.marks {
                prop_assert!(tick.value >= range.low - tolerance && tick.value <= range.high + tolerance);
                prop_assert!(tick.label.chars().count() <= 12, "{}", tick.label);
            }
            for pair in t.marks.windows(2) {
                prop_assert!(pair[0].value < pair[1].value);
                prop_assert!(pair[0].label != pair[1].label);
            }
        }

        #[test]
        fn steps_are_the_next_round_number(raw in 1e-300..1e300f64) {
            let (n, p) = nice_step(raw);
            prop_assert!([1, 2, 5, 25].contains(&n));
            prop_assert!(value(n, p) >= raw * 0.999_999 && value(n, p) <= raw * 2.6);
        }
    }
}
