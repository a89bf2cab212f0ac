//! Meaning of columns: a first column that is the coordinate of the rows, names and units.

/// Largest deviation of a point from its position on a uniform grid, as a fraction of the step.
const TOLERANCE: f64 = 1e-6;

/// Largest error of printed points for which a grid is recognised, as a fraction of the step.
const PRINTED: f64 = 0.25;

/// Deviations that are allowed from a fitted line, in units of the error of the points.
const SLACK: f64 = 1.25;

/// Detects uniform spacing in one pass.
///
/// The step is known only after the last point; each point narrows the range of possible steps.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    count: u64,
    first: f64,
    last: f64,
    /// All points are finite and on the same side of the first.
    ordered: bool,
    /// No point is before the one above.
    rising: bool,
    /// Range of steps that all points so far permit.
    least: f64,
    most: f64,
    /// Range of steps that all points so far permit as printed, and the largest error of a printed point.
    printed: (f64, f64),
    error: f64,
    /// Points at equal distances, with their numbers and errors, and the distance.
    sample: Vec<(u64, f64, f64)>,
    stride: u64,
    /// The point with the smallest error.
    best: (u64, f64, f64),
}

/// Most points of the sample.
const SAMPLE: usize = 4096;

impl Spacing {
    /// Adds a point that was printed with an error of up to `error`.
    pub(crate) fn add(&mut self, point: f64, error: f64) {
        self.error = self.error.max(error);
        if self.count == 0 {
            (self.first, self.ordered) = (point, point.is_finite());
            (self.least, self.most) = (0.0, f64::INFINITY);
            self.printed = (0.0, f64::INFINITY);
        } else {
            // Descending points have positive distances, too.
            let distance = (point - self.first).abs();
            let same_side = self.count == 1 || (point > self.first) == (self.last > self.first);
            self.ordered &= same_side && distance.is_finite();
            self.least = self.least.max(distance / (self.count as f64 + TOLERANCE));
            self.most = self.most.min(distance / (self.count as f64 - TOLERANCE));
            let (count, error) = (self.count as f64, 2.0 * self.error);
            self.printed.0 = self.printed.0.max((distance - error) / count);
            self.printed.1 = self.printed.1.min((distance + error) / count);
        }
        self.rising = point.is_finite() && (self.count == 0 || self.rising && point >= self.last);
        self.collect(point, error);
        self.last = point;
        self.count += 1;
    }

    fn collect(&mut self, point: f64, error: f64) {
        if self.count == 0 || error < self.best.2 {
            self.best = (self.count, point, error);
        }
        self.stride = self.stride.max(1);
        if !self.count.is_multiple_of(self.stride) {
            return;
        }
        if self.sample.len() == SAMPLE {
            self.stride *= 2;
            self.sample.retain(|(number, ..)| number.is_multiple_of(self.stride));
        }
        if self.count.is_multiple_of(self.stride) {
            self.sample.push((self.count, point, error));
        }
    }

    /// Start and step of the times of an oscilloscope, which are uniform even if several are printed alike because
    /// they have few digits: those that agree with the digits of a sample of the points. `None` if there are none.
    pub(crate) fn clock(&self) -> Option<(f64, f64)> {
        if !self.rising || self.last <= self.first {
            return None;
        }
        // Times may be computed in single precision.
        let floor = f64::from(f32::EPSILON) / 2.0 * self.first.abs().max(self.last.abs());
        let error = |error: f64| error.max(floor);
        let (best, at, own) = self.best;
        let (mut least, mut most) = (0.0_f64, f64::INFINITY);
        let last = (self.count - 1, self.last, self.error);
        for (number, point, their) in self.sample.iter().copied().chain([last]) {
            let distance = number as f64 - best as f64;
            if distance != 0.0 {
                let (step, slack) =
                    ((point - at) / distance, (error(own) + error(their)) / distance.abs());
                (least, most) = (least.max(step - slack), most.min(step + slack));
            }
        }
        let step = shortest(least, most)?;
        self.is_line(error(self.error)).then(|| (at - best as f64 * step, step))
    }

    /// Whether one line is within `error` of all points of the sample: each of them may have been rounded, but not
    /// several in different directions by more than that.
    fn is_line(&self, error: f64) -> bool {
        let count = self.sample.len() as f64;
        let (x, y) = self.sample.iter().fold((0.0, 0.0), |(x, y), (number, point, _)| {
            (x + *number as f64 / count, y + (point - self.first) / count)
        });
        let (xy, xx) = self.sample.iter().fold((0.0, 0.0), |(xy, xx), (number, point, _)| {
            let distance = *number as f64 - x;
            (xy + distance * (point - self.first - y), xx + distance * distance)
        });
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        let rests = self.sample.iter().map(|(n, point, _)| point - self.first - slope * *n as f64);
        let range = rests.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rest| {
            (low.min(rest), high.max(rest))
        });
        // The line of least squares need not be the one with the smallest deviations.
        range.1 - range.0 <= 2.0 * SLACK * error
    }

    /// Start and step; `None` if the points are not uniformly spaced.
    pub(crate) fn grid(&self) -> Option<(f64, f64)> {
        let step = (self.last - self.first) / self.count.checked_sub(1)? as f64;
        let uniform = step != 0.0 && step.abs() >= self.least && step.abs() <= self.most;
        if uniform || !self.ordered || step == 0.0 {
            return (uniform && self.ordered).then_some((self.first, step));
        }
        let (least, most) = self.printed;
        let printed =
            least <= most && self.error <= PRINTED * step.abs() && self.is_line(self.error);
        printed.then(|| (self.first, step.abs().clamp(least, most).copysign(step)))
    }
}

/// The number with the fewest digits from `least` to `most`; `None` if `least` is larger.
fn shortest(least: f64, most: f64) -> Option<f64> {
    let middle = f64::midpoint(least, most);
    let rounded = |digits: usize| format!("{middle:.digits$e}").parse::<f64>().ok();
    let fits = |number: &f64| *number > 0.0 && (least..=most).contains(number);
    (0..17).filter_map(rounded).find(fits)
}

/// Largest error of a printed number: half a unit of its last digit, or that of a 32-bit float if it has at most
/// nine digits.
pub(crate) fn printed_error(token: &[u8]) -> f64 {
    let end = token.iter().position(|b| b"eEdD".contains(b)).unwrap_or(token.len());
    let (mantissa, exponent) = token.split_at(end);
    let exponent = exponent.get(1..).and_then(|text| std::str::from_utf8(text).ok());
    let exponent: i32 = exponent.and_then(|text| text.parse().ok()).unwrap_or(0);
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let decimals = mantissa[point..].iter().filter(|b| b.is_ascii_digit()).count() as i32;
    let digits = mantissa.iter().filter(|b| b.is_ascii_digit()).skip_while(|b| **b == b'0').count();
    let rounding = 0.5 * 10_f64.powi(exponent.saturating_sub(decimals));
    // A zero has no digits that say how exact it is.
    if digits == 0 {
        return 0.0;
    }
    if digits <= 9 {
        let value = std::str::from_utf8(token).ok().and_then(|t| t.parse::<f64>().ok());
        return rounding.max(value.map_or(0.0, f64::abs) * f64::from(f32::EPSILON));
    }
    rounding
}

/// Name and unit of a column; the unit may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) unit: String,
}

/// Names of the columns from the last header line with one name per column; empty if there is none.
pub(crate) fn names(header: &str, columns: u64) -> Vec<Name> {
    header
        .lines()
        .rev()
        .map(split_names)
        .find(|names| {
            names.len() as u64 == columns && names.iter().all(|name| !name.text.is_empty())
        })
        .unwrap_or_default()
}

/// Splits a header line into names.
fn split_names(line: &str) -> Vec<Name> {
    let line = line.trim().trim_start_matches('#').trim();
    let separators: &[char] = &['\t', ',', ';', '&'];
    if line.contains(separators) {
        return line.split(separators).map(parse_name).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for part in line.split_whitespace() {
        match names.last_mut() {
            // A unit belongs to the name before it.
            Some(before) if part.starts_with(['(', '[']) => {
                before.push(' ');
                before.push_str(part);
            }
            _ => names.push(part.to_string()),
        }
    }
    names.iter().map(|text| parse_name(text)).collect()
}

/// Parses `Time (s)` or `"Time [s]"` as name and unit.
pub(crate) fn parse_name(text: &str) -> Name {
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

    #[test]
    fn printed_digits_decide_whether_points_are_uniform() {
        let grid = |points: &[&str]| {
            let mut spacing = Spacing::default();
            for text in points {
                spacing.add(text.parse().unwrap(), printed_error(text.as_bytes()));
            }
            spacing.grid()
        };
        // Rounded to the last digit.
        let (start, step) =
            grid(&["-0.00468800", "-0.00467799", "-0.00466798", "-0.00465797", "-0.00464796"])
                .unwrap();
        assert!(start == -0.004_688 && (step - 1.001e-5).abs() < 1e-9, "{step}");
        // Single precision, printed with eight digits.
        assert!(grid(&["-5.9999998e-06", "-5.9800000e-06", "-5.9599998e-06"]).is_some());
        assert_eq!(printed_error(b"12.50e-3"), 0.5e-5);
        // Errors as large as the steps are no grid.
        assert_eq!(grid(&["0.1", "0.2", "0.4"]), None);
        assert_eq!(grid(&["1", "2", "4", "5"]), None);
        assert_eq!(grid(&["1.000", "2.000", "3.003"]), None);
    }

    #[test]
    fn times_of_an_oscilloscope_with_few_digits_are_uniform() {
        let clock = |start: f64, step: f64, count: u32, digits: usize| {
            let mut spacing = Spacing::default();
            for k in 0..count {
                let text = format!("{:.digits$e}", start + f64::from(k) * step);
                spacing.add(text.parse().unwrap(), printed_error(text.as_bytes()));
            }
            (spacing.grid(), spacing.clock())
        };
        // A DS1042C with half a million samples prints three digits.
        let (grid, found) = clock(-0.005_107_2, 5e-8, 524_288, 2);
        let (start, step) = found.unwrap();
        assert_eq!((grid, step), (None, 5e-8));
        assert!((start + 0.005_107_2).abs() < 5e-8, "{start}");
        let (_, found) = clock(0.0, 2e-6, 1000, 2);
        assert!(found.is_some_and(|(start, step)| start.abs() < 1e-12 && step == 2e-6));
        // Times that are not those of a clock.
        let mut spacing = Spacing::default();
        for (k, point) in [0.0, 1.0, 2.0, 4.0, 8.0, 16.0].into_iter().enumerate() {
            spacing.add(point + k as f64 * 1e-9, 0.05);
        }
        assert_eq!(spacing.clock(), None);
        assert_eq!(Spacing::default().clock(), None);
    }

    #[test]
    fn times_that_are_not_uniform_are_not_taken_for_rounded_ones() {
        for texts in [&["0", "1", "5", "6"][..], &["10", "11", "15", "16"], &["1", "2", "6", "7"]] {
            let mut spacing = Spacing::default();
            for text in texts {
                spacing.add(text.parse().unwrap(), printed_error(text.as_bytes()));
            }
            assert_eq!((spacing.grid(), spacing.clock()), (None, None), "{texts:?}");
        }
        // Thirds with one digit.
        let mut spacing = Spacing::default();
        for k in 0..10 {
            let text = format!("{:.1}", f64::from(k) / 3.0);
            spacing.add(text.parse().unwrap(), printed_error(text.as_bytes()));
        }
        let (start, step) = spacing.grid().unwrap();
        assert!(start == 0.0 && (step - 1.0 / 3.0).abs() < 0.02, "{step}");
    }

    fn grid(points: &[f64]) -> Option<(f64, f64)> {
        let mut spacing = Spacing::default();
        for point in points {
            spacing.add(*point, 0.0);
        }
        spacing.grid()
    }

    #[test]
    fn points_within_a_millionth_of_a_step_are_uniform() {
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
    fn the_result_is_that_of_comparing_every_point_with_the_mean_step() {
        // Compared with a direct implementation, for points near the tolerance.
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
            if (worst / step / TOLERANCE - 1.0).abs() > 1e-3 {
                let uniform = worst <= TOLERANCE * step;
                assert_eq!(grid(&points).is_some(), uniform, "{points:?}");
                kinds[usize::from(uniform)] += 1;
            }
        }
        assert!(kinds[0] > 100 && kinds[1] > 100, "{kinds:?}");
    }

    #[test]
    fn names_are_the_last_line_with_one_name_per_column() {
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
