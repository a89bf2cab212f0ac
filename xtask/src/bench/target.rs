//! Performance targets and how results are printed.

/// A performance target, with the measured value and whether it meets the target. `found` is `None` if it
/// was not measured.
pub(super) struct Target {
    pub(super) text: String,
    pub(super) found: Option<(String, bool)>,
}

impl Target {
    pub(super) fn is_met(&self) -> bool {
        self.found.as_ref().is_some_and(|(_, met)| *met)
    }

    /// One line: `OK` or `NOT OK`, the target and the measured value.
    pub(super) fn line(&self) -> String {
        match &self.found {
            Some((found, true)) => format!("OK      {}: {found}", self.text),
            Some((found, false)) => format!("NOT OK  {}: {found}", self.text),
            None => format!("NOT OK  {}: not measured", self.text),
        }
    }
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Seconds as text, in a suitable unit.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    }
}

/// Bytes as MiB.
pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
