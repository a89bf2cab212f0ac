//! The table, the promises, and `docs/performance.md`.

use std::fmt::Write as _;

use super::contest::{Results, Who};
use super::tasks::{
    CROP, ENVELOPE, EXPORT, INFO, INFO_SMALL, STAT, TASKS, TRANSPOSE, WINDOW, WINDOW_SMALL,
};

const MEMORY_MIB: f64 = 64.0;
const INFO_SECONDS: f64 = 0.005;
/// Differences below this are the machine's, not the file's.
const NOISE_SECONDS: f64 = 0.002;

const HOW: &str = "\
Sizes at scale 1: 10^9 samples of uint8 (1 GB), 10^8 of int16 (0.2 GB), 20000 x 20000 of float32
(1.6 GB), 2 * 10^6 lines of text. At other scales everything shrinks alike, but for the window
(10^6 samples) and the small file (2 * 10^6).

- **C** is `benches/taf/limit.c`, one thread, `-O3 -march=native`, `read()` through a small buffer
  that is used again: about what one core can do at all. **numpy** and **h5py** are
  `benches/taf/peers.py`; h5py's file is chunked and compressed by deflate, and measured once.
- spile's time is that of the whole program from start to end. The others time only the task
  itself: starting Python and importing NumPy is not counted.
- The contestants take turns, round after round, and the median counts. The files are in the page
  cache. What is written is on the disk when the clock stops, for all of them.
- Statistics are count, minimum, maximum, mean and deviation of the mapped values. An envelope is
  the smallest and largest value of each of 1000 runs; spile also draws it and writes the SVG.
- Answers and written bytes of the contestants are compared with each other.
- Memory is the peak resident set of spile, with one or two threads, whichever is larger.
";

/// The table in Markdown.
pub(super) fn table(results: &Results) -> String {
    let mut text = String::from(
        "| task | C | numpy | h5py | spile -j 1 | spile -j 2 | -j 1 / C | numpy / -j 1 | numpy / -j 2 | memory |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for task in &TASKS {
        let time = |who| results.seconds(task.name, who);
        let seconds = |who| time(who).map_or("-".into(), duration);
        let ratio = |over, under| match (time(over), time(under)) {
            (Some(over), Some(under)) => format!("{:.2}", over / under),
            _ => "-".into(),
        };
        let memory = results.peak_mib(task.name).map_or("-".into(), |m| format!("{m:.0} MiB"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {memory} |",
            task.name,
            seconds(Who::Limit),
            seconds(Who::Numpy),
            seconds(Who::H5py),
            seconds(Who::One),
            seconds(Who::Two),
            ratio(Who::One, Who::Limit),
            ratio(Who::Numpy, Who::One),
            ratio(Who::Numpy, Who::Two),
        );
    }
    text
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    }
}

/// A promise, what was measured, and whether it held; nothing if it was not measured.
pub(super) struct Promise {
    pub(super) text: String,
    pub(super) found: Option<(String, bool)>,
}

impl Promise {
    pub(super) fn holds(&self) -> bool {
        self.found.as_ref().is_some_and(|(_, holds)| *holds)
    }

    pub(super) fn line(&self) -> String {
        match &self.found {
            Some((found, true)) => format!("OK      {}: {found}", self.text),
            Some((found, false)) => format!("NOT OK  {}: {found}", self.text),
            None => format!("NOT OK  {}: not measured", self.text),
        }
    }
}

/// What spile promises.
pub(super) fn promises(results: &Results) -> Vec<Promise> {
    let time = |task, who| results.seconds(task, who);
    // At most `times` as long as another.
    let within = |text: &str, mine: Option<f64>, other: Option<f64>, times: f64| Promise {
        text: text.into(),
        found: mine.zip(other).map(|(mine, other)| {
            (
                format!("{} and {}, ratio {:.2}", duration(mine), duration(other), mine / other),
                mine <= times * other,
            )
        }),
    };
    let same = |text: &str, large: Option<f64>, small: Option<f64>| Promise {
        text: text.into(),
        found: large.zip(small).map(|(large, small)| {
            (format!("{} and {}", duration(large), duration(small)), large - small < NOISE_SECONDS)
        }),
    };
    let limit = |task| time(task, Who::Limit);
    let (one, two) = (|task| time(task, Who::One), |task| time(task, Who::Two));
    let faster = 1.0 - f64::EPSILON;
    let mut all = vec![
        within("statistics on one thread take at most twice C's time", one(STAT), limit(STAT), 2.0),
        within(
            "statistics on two threads are faster than C on one",
            two(STAT),
            limit(STAT),
            faster,
        ),
        within("an envelope takes at most 1.5 times C's time", one(ENVELOPE), limit(ENVELOPE), 1.5),
        within(
            "a transpose in 256 MiB on two threads is faster than NumPy's by blocks",
            two(TRANSPOSE),
            time(TRANSPOSE, Who::Numpy),
            faster,
        ),
        Promise {
            text: "info takes less than 5 ms".into(),
            found: one(INFO).map(|t| (duration(t), t < INFO_SECONDS)),
        },
        same("info does not depend on the file's size", one(INFO), one(INFO_SMALL)),
        same("a window does not depend on the file's size", one(WINDOW), one(WINDOW_SMALL)),
    ];
    for (task, most) in [
        (STAT, MEMORY_MIB),
        (ENVELOPE, MEMORY_MIB),
        (CROP, MEMORY_MIB),
        (EXPORT, MEMORY_MIB),
        (TRANSPOSE, 256.0),
    ] {
        all.push(Promise {
            text: format!("{task}: less than {most:.0} MiB of memory"),
            found: results.peak_mib(task).map(|m| (format!("{m:.1} MiB"), m < most)),
        });
    }
    all
}

/// The part of the page.
pub(super) fn part(machine: &str, scale: f64, rounds: usize, results: &Results) -> String {
    let promises: Vec<String> = promises(results).iter().map(Promise::line).collect();
    let promises = promises.join("\n");
    format!(
        "# Performance\n\nMade by `cargo xtask bench taf --scale {scale}`, {rounds} rounds; run it to \
         repeat this on your machine.\n\n{machine}\n{}\n## What is promised\n\n```text\n{promises}\n```\n\n\
         ## What is measured\n\n{HOW}",
        table(results)
    )
}
