//! Runs the contestants in turn and keeps what they cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::report::median;
use super::sample::Words;
use super::tasks::{CROP, TASKS, TRANSPOSE, Task};
use crate::Result;
use crate::shell::{output, program};

/// Who does a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// One thread of C.
    Limit,
    Numpy,
    H5py,
    /// spile with one thread, and with two.
    One,
    Two,
}

/// Everything needed to run them.
pub(super) struct Arena {
    pub(super) words: Words,
    pub(super) limit: PathBuf,
    pub(super) peers: PathBuf,
    pub(super) python: Option<PathBuf>,
    pub(super) spile: Option<PathBuf>,
}

/// What one run cost. Memory is only known of spile.
#[derive(Clone, Copy, Debug)]
struct Run {
    seconds: f64,
    peak_kib: u64,
}

/// All runs, by task and contestant.
#[derive(Default)]
pub(super) struct Results {
    runs: BTreeMap<(&'static str, Who), Vec<Run>>,
    answers: BTreeMap<(&'static str, Who), Vec<f64>>,
    pub(super) problems: Vec<String>,
}

impl Results {
    /// The median.
    pub(super) fn seconds(&self, task: &'static str, who: Who) -> Option<f64> {
        median(self.runs.get(&(task, who))?.iter().map(|run| run.seconds))
    }

    /// The largest, with any number of threads.
    pub(super) fn peak_mib(&self, task: &'static str) -> Option<f64> {
        let runs = [Who::One, Who::Two].into_iter().filter_map(|who| self.runs.get(&(task, who)));
        runs.flatten().map(|r| r.peak_kib as f64 / 1024.0).max_by(f64::total_cmp)
    }

    pub(super) fn has_spile(&self) -> bool {
        self.runs.keys().any(|(_, who)| *who == Who::One)
    }

    fn problem(&mut self, text: String) {
        println!("  {text}");
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }
}

/// One round after the other, so that a slow minute of the machine is everybody's.
pub(super) fn hold(arena: &Arena, rounds: usize) -> Results {
    let mut results = Results::default();
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        for task in &TASKS {
            for who in [Who::Limit, Who::Numpy, Who::H5py, Who::One, Who::Two] {
                // Its times are so far from the others' that one is enough.
                let times =
                    if who == Who::H5py && round > 0 { 0 } else { 1 + 3 * usize::from(task.quick) };
                for _ in 0..times {
                    if let Err(why) = one(arena, task, who, &mut results) {
                        results.problem(format!("{} ({who:?}): {why}", task.name));
                        break;
                    }
                }
            }
        }
    }
    compare_answers(&arena.words, &mut results);
    results
}

fn one(arena: &Arena, task: &Task, who: Who, results: &mut Results) -> Result<()> {
    let line = match who {
        Who::Limit => task.limit,
        Who::Numpy => task.numpy,
        Who::H5py => task.h5py,
        // Without a number of threads there is nothing to measure twice.
        Who::Two if !task.spile.contains("{j}") => "",
        Who::One | Who::Two => task.spile,
    };
    let threads = if who == Who::Two { "2" } else { "1" };
    let Some(mut command) = arena.command(who) else { return Ok(()) };
    if line.is_empty() {
        return Ok(());
    }
    command.args(line.split_whitespace().map(|word| filled(word, &arena.words, threads)));
    let text = output(&mut command)?;
    let (run, answer) = match who {
        Who::One | Who::Two => (cost(&text)?, Vec::new()),
        _ => answer_and_seconds(&text)?,
    };
    results.runs.entry((task.name, who)).or_default().push(run);
    results.answers.insert((task.name, who), answer);
    keep_or_check_output(task, who, &arena.words)
}

impl Arena {
    fn command(&self, who: Who) -> Option<Command> {
        let mut command = program(&self.limit);
        match who {
            Who::Limit => {}
            Who::Numpy | Who::H5py => {
                command = program(self.python.as_ref()?);
                command.arg(&self.peers);
            }
            Who::One | Who::Two => {
                command.arg("run").arg(self.spile.as_ref()?);
            }
        }
        Some(command)
    }
}

fn filled(word: &str, words: &Words, threads: &str) -> String {
    let mut out = word.replace("{j}", threads);
    for (name, value) in words {
        out = out.replace(&format!("{{{name}}}"), value);
    }
    out
}

/// `seconds peak exit`, from `limit run`.
fn cost(text: &str) -> Result<Run> {
    let parts: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match parts[..] {
        [seconds, peak, 0.0] => Ok(Run { seconds, peak_kib: peak as u64 }),
        [_, _, code] => Err(format!("spile ended with {code}")),
        _ => Err(format!("`{text}` was not expected")),
    }
}

/// A line with the answer and one with the seconds.
fn answer_and_seconds(text: &str) -> Result<(Run, Vec<f64>)> {
    let (answer, seconds) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim()));
    let seconds = seconds.parse().map_err(|_| format!("`{text}` was not expected"))?;
    let answer = answer.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Ok((Run { seconds, peak_kib: 0 }, answer))
}

/// Bytes that C wrote are kept for comparison; all other output goes.
fn keep_or_check_output(task: &Task, who: Who, words: &Words) -> Result<()> {
    let path = |ending: &str| PathBuf::from(format!("{}.{ending}", words["out"]));
    let reference = path("reference");
    let result = match who {
        Who::Limit if path("raw").exists() => {
            fs::rename(path("raw"), &reference).map_err(|e| e.to_string())
        }
        Who::Numpy if path("raw").exists() => same_data(&path("raw"), 0, &reference),
        Who::One | Who::Two if [CROP, TRANSPOSE].contains(&task.name) => {
            same_data(&path("taf"), words["offset"].parse().unwrap_or(0), &reference)
        }
        _ => Ok(()),
    };
    for ending in ["raw", "taf", "txt", "svg"] {
        let _ = fs::remove_file(path(ending));
    }
    result
}

/// `file` has the bytes of `reference` at `offset`.
fn same_data(file: &Path, offset: u64, reference: &Path) -> Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let open = |path: &Path| fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()));
    let (mut one, mut other) = (open(file)?, open(reference)?);
    one.seek(SeekFrom::Start(offset)).map_err(|e| e.to_string())?;
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let count = other.read(&mut right).map_err(|e| e.to_string())?;
        if count == 0 {
            return Ok(());
        }
        one.read_exact(&mut left[..count]).map_err(|e| format!("the output is too short: {e}"))?;
        if left[..count] != right[..count] {
            return Err("the output differs from C's".into());
        }
    }
}

/// A contestant with another answer has measured something else.
fn compare_answers(words: &Words, results: &mut Results) {
    let number = |name: &str| words[name].parse::<f64>().unwrap_or(f64::NAN);
    let (a, b) = (number("intercept"), number("slope"));
    for task in &TASKS {
        let Some(limit) = results.answers.get(&(task.name, Who::Limit)).cloned() else { continue };
        let mut words_of_c = task.limit.split_whitespace().map(|word| filled(word, words, ""));
        let count = words_of_c.nth(3).and_then(|word| word.parse::<f64>().ok());
        // C sums what is stored; the others what it stands for.
        let expected = match (&limit[..], count) {
            (&[low, high, sum, squares], Some(count)) => {
                let mean = sum / count;
                let deviation = b.abs() * (squares / count - mean * mean).sqrt();
                vec![a + b * low, a + b * high, a + b * mean, deviation]
            }
            // A copy has no answer; its bytes are compared.
            ([], _) => continue,
            _ => limit,
        };
        for who in [Who::Numpy, Who::H5py] {
            let Some(answer) = results.answers.get(&(task.name, who)) else { continue };
            let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * (1.0 + y.abs());
            if answer.len() != expected.len() || !answer.iter().zip(&expected).all(close) {
                let text = format!("{} ({who:?}): {answer:?}, C has {expected:?}", task.name);
                results.problem(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_costs() {
        let mut results = Results::default();
        for seconds in [3.0, 1.0, 2.0, 9.0] {
            let runs = results.runs.entry((CROP, Who::One)).or_default();
            runs.push(Run { seconds, peak_kib: 2048 });
        }
        assert_eq!(results.seconds(CROP, Who::One), Some(2.5));
        assert_eq!(results.seconds(CROP, Who::Two), None);
        assert_eq!(results.peak_mib(CROP), Some(2.0));
        assert!(cost("0.1 1000 0\n").is_ok());
        assert!(cost("0.1 1000 2\n").unwrap_err().contains("ended with 2"));
        assert_eq!(answer_and_seconds(" 1 2\n0.5\n").unwrap().1, [1.0, 2.0]);
    }
}
