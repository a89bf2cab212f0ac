//! Measurements, the table of results, and the targets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::runner::Run;
use super::table::{Goal, Table, Task, Unit, replace};
use crate::Result;

/// Differences below this, in seconds, are noise.
const NOISE: f64 = 0.002;

/// All measurements, by task and implementation.
#[derive(Default)]
pub(super) struct Results {
    runs: BTreeMap<String, BTreeMap<String, Vec<Run>>>,
    pub(super) problems: Vec<String>,
}

impl Results {
    pub(super) fn add(&mut self, task: &str, name: &str, run: Run) {
        self.runs.entry(task.into()).or_default().entry(name.into()).or_default().push(run);
    }

    pub(super) fn problem(&mut self, text: String) {
        println!("  {text}");
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    pub(super) fn all(&self, task: &str, name: &str) -> Option<&[Run]> {
        self.runs.get(task)?.get(name).map(Vec::as_slice)
    }

    /// The median.
    fn seconds(&self, task: &str, name: &str) -> Option<f64> {
        median(self.all(task, name)?.iter().map(|run| run.seconds))
    }

    /// The last count.
    pub(super) fn count(&self, task: &str, name: &str) -> Option<u64> {
        Some(self.all(task, name)?.last()?.count)
    }

    /// Speed relative to `than`: the median of the ratios of single repetitions, because the load of the
    /// machine is the same for both; the ratio of medians if their numbers of repetitions differ.
    fn speed(&self, task: &str, name: &str, than: &str) -> Option<f64> {
        let (ours, theirs) = (self.all(task, name)?, self.all(task, than)?);
        if ours.len() != theirs.len() {
            return Some(self.seconds(task, than)? / self.seconds(task, name)?);
        }
        median(ours.iter().zip(theirs).map(|(ours, theirs)| theirs.seconds / ours.seconds))
    }

    /// Implementations with results of the same task must agree.
    pub(super) fn compare(&mut self) {
        let mut problems = Vec::new();
        for (task, all) in &self.runs {
            let last = all.iter().filter_map(|(name, runs)| Some((name, &runs.last()?.result)));
            let mut results = last.filter(|(_, result)| !result.is_empty());
            let Some((first, expected)) = results.next() else { continue };
            for (name, found) in results {
                let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * (1.0 + y.abs());
                if found.len() != expected.len() || !found.iter().zip(expected).all(close) {
                    let differ = format!("{name} returns {found:?}, {first} {expected:?}");
                    problems.push(format!("{task}: {differ}"));
                }
            }
        }
        for problem in problems {
            self.problem(problem);
        }
    }

    /// Counts per second. Tasks can have the count of another task or of one implementation.
    fn rate(&self, table: &Table, task: &Task, name: &str) -> Option<f64> {
        Some(self.amount(table, task, name)? / self.seconds(&task.name, name)?)
    }

    fn amount(&self, table: &Table, task: &Task, name: &str) -> Option<f64> {
        let counted = task.count.as_ref().unwrap_or(&task.name);
        Some(self.count(counted, table.count.as_deref().unwrap_or(name))? as f64)
    }

    /// The text of a cell; `-` if it was not measured.
    fn cell(&self, table: &Table, task: &Task, name: &str) -> String {
        let text = match task.unit.unwrap_or(table.unit) {
            Unit::Time => self.seconds(&task.name, name).map(duration),
            unit => self.rate(table, task, name).map(|rate| match unit {
                Unit::Gigabytes => format!("{:.2} GB/s", rate / 1e9),
                Unit::Megabytes => format!("{:.0} MB/s", rate / 1e6),
                Unit::PlainMegabytes => format!("{:.0}", rate / 1e6),
                Unit::Nanoseconds => format!("{:.1} ns", 1e9 / rate),
                _ if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
                _ => format!("{rate:.0}/s"),
            }),
        };
        text.unwrap_or("-".into())
    }

    fn ratio(&self, task: &str, name: &str, than: &str) -> String {
        self.speed(task, name, than).map_or("-".into(), |ratio| format!("{ratio:.2}"))
    }

    /// The results in Markdown, with the note of the benchmark.
    pub(super) fn markdown(&self, table: &Table) -> Result<String> {
        let ratios = table.ratios.iter().map(|(name, than)| format!("{name} / {than}"));
        let columns: Vec<String> = table.columns.iter().cloned().chain(ratios).collect();
        let mut text =
            format!("| | {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len()));
        for task in &table.tasks {
            let cells = table.columns.iter().map(|name| self.cell(table, task, name));
            let ratios = table.ratios.iter().map(|(name, than)| self.ratio(&task.name, name, than));
            let cells: Vec<String> = cells.chain(ratios).collect();
            let _ = writeln!(text, "| {} | {} |", task.name, cells.join(" | "));
        }
        let note = replace(&table.note, |value| {
            let parts: Vec<&str> = value.split("; ").collect();
            let task = |name: &str| table.task(name).ok_or(format!("note: no task `{name}`"));
            Ok(match *parts.as_slice() {
                ["memory", task, name] => self.count(task, name).map_or("-".into(), mib),
                ["cell", name, one] => self.cell(table, task(name)?, one),
                ["speed", task, name, than] => self.ratio(task, name, than),
                _ => return Err(format!("note: {{{value}}} is unknown")),
            })
        })?;
        Ok(if note.is_empty() { text } else { format!("{text}\n{note}\n") })
    }

    /// All targets, one line each (`OK` or `NOT OK`, the target and the measured value), and whether all are met.
    pub(super) fn targets(&self, table: &Table) -> (Vec<String>, bool) {
        let mut met = true;
        let mut lines = Vec::new();
        for task in &table.tasks {
            for goal in &task.targets {
                let (text, found) = self.target(table, task, goal);
                let (found, is_met) = found.unwrap_or(("not measured".into(), false));
                let word = if is_met { "OK    " } else { "NOT OK" };
                lines.push(format!("{word}  {}: {text}: {found}", task.name));
                met &= is_met;
            }
        }
        (lines, met)
    }

    /// The text of a target; the measured value and whether it meets the target.
    fn target(&self, table: &Table, task: &Task, goal: &Goal) -> (String, Option<(String, bool)>) {
        let seconds = |name: &str| self.seconds(&task.name, name);
        let count = |name: &str| self.count(&task.name, name);
        match goal {
            Goal::Faster(name, than, factor) => {
                let times = if *factor == 1.0 { String::new() } else { format!("{factor} times ") };
                let speed = self.speed(&task.name, name, than);
                (
                    format!("{name} is at least {times}as fast as {than}"),
                    speed.map(|ratio| (format!("{ratio:.2}"), ratio >= *factor)),
                )
            }
            Goal::Within(name, most) => (
                format!("less than {}", duration(*most)),
                seconds(name).map(|s| (duration(s), s < *most)),
            ),
            Goal::Memory(name, most) => (
                format!("less than {most} MiB of memory"),
                count(name).map(|bytes| (mib(bytes), bytes < most << 20)),
            ),
            Goal::FramesPerSecond(name, least) => (
                format!("at least {least} frames per second"),
                self.rate(table, task, name).map(|rate| (format!("{rate:.0}"), rate >= *least)),
            ),
            Goal::AsFastAs(name, other) => {
                let both = seconds(name).zip(self.seconds(other, name));
                let text = |(l, s)| (format!("{} and {}", duration(l), duration(s)), l - s < NOISE);
                ("independent of the file size".into(), both.map(text))
            }
            Goal::NotLarger(name, than) => {
                let share = |name| Some(count(name)? as f64 / self.amount(table, task, name)?);
                let both = share(name).zip(share(than));
                let text = |(ours, theirs)| {
                    let [a, b] = [ours, theirs].map(|share: f64| format!("{:.2} %", share * 1e2));
                    (format!("{a} and {b} of the data"), ours <= theirs)
                };
                (format!("not more bytes than {than}"), both.map(text))
            }
            Goal::NanosecondsEach(name, most) => {
                let each = self.rate(table, task, name).map(|rate| 1e9 / rate);
                let text = format!("at most {most} ns each");
                (text, each.map(|each| (format!("{each:.1} ns"), each <= *most)))
            }
            Goal::ReadsNothing(name) => {
                let text = |(time, read)| {
                    let text = format!("{}, {read} bytes read", duration(time));
                    (text, read == 0 && time < 1e-3)
                };
                ("no bytes are read".into(), seconds(name).zip(count(name)).map(text))
            }
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Seconds as text, in a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    }
}

/// Bytes as MiB.
fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_medians_of_ratios() {
        let mut results = Results::default();
        for (name, all) in [("a", [3.0, 1.0, 2.0]), ("b", [6.0, 1.0, 8.0])] {
            for seconds in all {
                results.add("t", name, Run { seconds, count: 2 << 20, result: Vec::new() });
            }
        }
        assert_eq!(results.seconds("t", "a"), Some(2.0));
        assert_eq!(results.speed("t", "a", "b"), Some(2.0));
        assert_eq!(results.seconds("t", "c"), None);
        let targets =
            [("faster", "[\"a\", \"b\", 2]"), ("memory", "[\"a\", 2]"), ("memory", "[\"a\", 3]")];
        let targets = targets.map(|(kind, args)| format!("{{\"{kind}\": {args}}}")).join(",");
        let text = format!(
            "{{\"files\": 0, \"columns\": [\"a\"], \"ratios\": [[\"a\", \"b\"]], \"programs\": [],
              \"implementations\": [], \"make\": [], \"note\": \"needs {{memory; t; a}}\",
              \"tasks\": [{{\"name\": \"t\", \"commands\": {{}}, \"targets\": [{targets}]}}]}}"
        );
        let table: Table = serde_json::from_str(&text).unwrap();
        let (lines, met) = results.targets(&table);
        assert!(!met);
        assert_eq!(
            lines,
            [
                "OK      t: a is at least 2 times as fast as b: 2.00",
                "NOT OK  t: less than 2 MiB of memory: 2.0 MiB",
                "OK      t: less than 3 MiB of memory: 2.0 MiB",
            ]
        );
        let page = "| | a | a / b |\n|---|--:|--:|\n| t | 2.00 s | 2.00 |\n\nneeds 2.0 MiB\n";
        assert_eq!(results.markdown(&table).unwrap(), page);
    }

    #[test]
    fn different_results_of_implementations_are_problems() {
        let mut results = Results::default();
        for (task, name, result) in [
            ("t", "a", vec![1.0]),
            ("t", "b", vec![1.0 + 1e-12]),
            ("u", "a", vec![1.0]),
            ("u", "b", vec![2.0]),
        ] {
            results.add(task, name, Run { seconds: 1.0, count: 0, result });
        }
        results.compare();
        assert_eq!(results.problems.len(), 1, "{:?}", results.problems);
        assert!(results.problems[0].starts_with("u: b"), "{:?}", results.problems);
    }
}
