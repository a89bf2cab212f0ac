//! A first column that says where the others were measured, and the names of columns.

/// Points are evenly spaced if each is within this part of a step of its place.
const UNIFORM: f64 = 1e-6;

/// Sees whether points are evenly spaced while they go by.
///
/// The step is known only when the last point is; until then each point narrows down what it may be.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    count: u64,
    first: f64,
    last: f64,
    /// The steps that all points so far allow.
    least: f64,
    most: f64,
}

impl Spacing {
    pub(crate) fn add(&mut self, point: f64) {
        if self.count == 0 {
            (self.first, self.least, self.most) = (point, 0.0, f64::INFINITY);
        } else {
            // Steps that lead downwards are counted as their size.
            let way = (point - self.first).abs();
            let same = self.count == 1 || (point > self.first) == (self.last > self.first);
            // What is no number allows no step.
            let way = if same && way.is_finite() { way } else { f64::NAN };
            self.least = maximum(self.least, way / (self.count as f64 + UNIFORM));
            self.most = minimum(self.most, way / (self.count as f64 - UNIFORM));
        }
        self.last = point;
        self.count += 1;
    }

    /// Start and step, if the points are evenly spaced.
    pub(crate) fn grid(&self) -> Option<(f64, f64)> {
        let step = (self.last - self.first) / self.count.checked_sub(1)? as f64;
        let even = step != 0.0 && step.abs() >= self.least && step.abs() <= self.most;
        (even && self.first.is_finite()).then_some((self.first, step))
    }
}

/// The larger number, or NaN if one is.
fn maximum(a: f64, b: f64) -> f64 {
    if a >= b {
        a
    } else if b.is_nan() || b > a {
        b
    } else {
        a
    }
}

/// The smaller number, or NaN if one is.
fn minimum(a: f64, b: f64) -> f64 {
    if a <= b {
        a
    } else if b.is_nan() || b < a {
        b
    } else {
        a
    }
}

/// The name of a column and its unit, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) unit: String,
}

/// The names of the columns: the last line of the header that has as many words as there are columns.
pub(crate) fn names(header: &str, columns: u64) -> Vec<Name> {
    header
        .lines()
        .rev()
        .map(words)
        .find(|names| {
            names.len() as u64 == columns && names.iter().all(|name| !name.text.is_empty())
        })
        .unwrap_or_default()
}

fn words(line: &str) -> Vec<Name> {
    let line = line.trim().trim_start_matches('#').trim();
    let marks: &[char] = &['\t', ',', ';', '&'];
    if line.contains(marks) {
        return line.split(marks).map(word).collect();
    }
    let mut words: Vec<String> = Vec::new();
    for part in line.split_whitespace() {
        match words.last_mut() {
            // A unit belongs to the word before it.
            Some(before) if part.starts_with(['(', '[']) => {
                before.push(' ');
                before.push_str(part);
            }
            _ => words.push(part.to_string()),
        }
    }
    words.iter().map(|text| word(text)).collect()
}

/// `Time (s)` or `"Time [s]"` as name and unit.
fn word(text: &str) -> Name {
    let text = text.trim().trim_matches('"').trim();
    let unit = [('(', ')'), ('[', ']')].into_iter().find_map(|(open, close)| {
        let (name, unit) = text.strip_suffix(close)?.rsplit_once(open)?;
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_string(), unit.trim().to_string()))
    });
    let (text, unit) = unit.unwrap_or_else(|| (text.to_string(), String::new()));
    Name { text, unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(points: &[f64]) -> Option<(f64, f64)> {
        let mut spacing = Spacing::default();
        for point in points {
            spacing.add(*point);
        }
        spacing.grid()
    }

    #[test]
    fn points_within_a_millionth_of_a_step_are_evenly_spaced() {
        assert_eq!(grid(&[1.0, 1.5, 2.0]), Some((1.0, 0.5)));
        assert_eq!(grid(&[3.0, 1.0, -1.0]), Some((3.0, -2.0)));
        assert_eq!(grid(&[0.0, 1.000_000_5, 2.0]), Some((0.0, 1.0)));
        assert_eq!(grid(&[0.0, 1.0, 2.000_000_5]), Some((0.0, 1.000_000_25)));
        for odd in [
            &[0.0, 1.000_002, 2.0][..],
            &[0.0, 1.0, 2.0, 2.9],
            &[0.0, 1.0, 0.0],
            &[0.0, -1.0, 2.0],
            &[0.0, 0.0],
            &[1.0, 1.0, 1.0],
            &[5.0],
            &[],
            &[0.0, f64::NAN, 2.0],
            &[f64::NAN, 1.0, 2.0],
            &[0.0, f64::INFINITY, 2.0],
            &[0.0, 1.0, f64::INFINITY],
        ] {
            assert_eq!(grid(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_rule_is_that_of_every_point_against_the_mean_step() {
        // Against the rule written out, for points that are near the border of it.
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / f64::from(u32::MAX >> 1) - 0.5
        };
        let mut kinds = [0; 2];
        for _ in 0..2000 {
            let points: Vec<f64> = (0..5).map(|k| f64::from(k) + 3e-6 * random()).collect();
            let step = (points[4] - points[0]) / 4.0;
            let off = |(k, x): (usize, &f64)| (points[0] + k as f64 * step - x).abs();
            let worst = points.iter().enumerate().map(off).fold(0.0, f64::max);
            if (worst / step / UNIFORM - 1.0).abs() > 1e-3 {
                let even = worst <= UNIFORM * step;
                assert_eq!(grid(&points).is_some(), even, "{points:?}");
                kinds[usize::from(even)] += 1;
            }
        }
        assert!(kinds[0] > 100 && kinds[1] > 100, "{kinds:?}");
    }

    #[test]
    fn names_are_the_last_line_with_as_many_words_as_columns() {
        let name = |text: &str, unit: &str| Name { text: text.into(), unit: unit.into() };
        assert_eq!(names("time,ch1", 2), [name("time", ""), name("ch1", "")]);
        let header = "Shot 1234\nTime (s) ch1 ch2\n# units s V V\n\n";
        assert_eq!(names(header, 3), [name("Time", "s"), name("ch1", ""), name("ch2", "")]);
        assert_eq!(names("# \"t [ns]\";\"U (V)\"", 2), [name("t", "ns"), name("U", "V")]);
        assert_eq!(names("only words here", 2), []);
        assert_eq!(names("a,,c", 3), []);
        assert_eq!(names("", 1), []);
    }
}
