//! Contestants that are told tasks, a line each, and answer what they cost; round after round.
//!
//! A contestant is a program that reads a task from standard input, does it, and answers with
//! seconds and bytes in a line. It times the task itself: starting a program or importing a package
//! is nobody's cost. Every bench but that of TAF is held this way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::page;
use super::report::{Promise, duration, median};
use super::{BUSY, Options, machine, others};
use crate::Result;
use crate::shell::{output, program, root, target};

/// A file system in memory: what a disk does is not ours to measure.
const MEMORY_FILES: &str = "/dev/shm";

/// Something to do.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// Who does it, and by which line; words in braces are filled in, `{length of array}` with the
    /// length that the file `{array}` has by then.
    pub(super) lines: &'static [(&'static [&'static str], &'static str)],
    /// Repetitions in each round.
    pub(super) times: usize,
    /// Done once more, before it counts, by the first in each round: a file that is new costs whoever
    /// reads it first.
    pub(super) warm: bool,
}

impl Task {
    fn line(&self, who: &str) -> Option<&'static str> {
        self.lines.iter().find(|(names, _)| names.contains(&who)).map(|(_, line)| *line)
    }
}

/// What stands for the words in braces.
pub(super) type Words = BTreeMap<&'static str, String>;

fn filled(line: &str, words: &Words) -> Result<String> {
    let mut out = line.to_string();
    for (name, value) in words {
        out = out.replace(&format!("{{{name}}}"), value);
        let length = format!("{{length of {name}}}");
        if out.contains(&length) {
            let meta = fs::metadata(value).map_err(|e| format!("{value}: {e}"))?;
            out = out.replace(&length, &meta.len().to_string());
        }
    }
    Ok(out)
}

/// Who does tasks and says what they cost.
pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// Runs from the first task to the end, and not for one task only.
    stays: bool,
    /// Takes part in the first round only.
    once: bool,
    /// Takes part in one of so many turns.
    every: usize,
    command: Box<dyn Fn() -> Command>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    tasks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Contestant {
    pub(super) fn new(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        let command = Box::new(command);
        Self { name, stays: true, once: false, every: 1, command, running: None }
    }

    /// The same, started for each task.
    pub(super) fn started_each_time(self) -> Self {
        Self { stays: false, ..self }
    }

    /// The same, in the first round only.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// The same, in one of so many turns: what is slow and near to nobody would keep the others waiting.
    pub(super) fn every(self, turns: usize) -> Self {
        Self { every: turns, ..self }
    }

    /// Does a task: seconds and bytes.
    pub(super) fn ask(&mut self, task: &str) -> Result<Run> {
        if self.running.is_none() {
            self.running = Some(Running::start((self.command)())?);
        }
        let answer = self.running.as_mut().ok_or("the program has ended")?.ask(task);
        if !self.stays || answer.is_err() {
            self.running = None;
        }
        answer
    }
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        command.current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (tasks, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.ok_or("a program without output")?);
        Ok(Self { child, tasks, answers })
    }

    fn ask(&mut self, task: &str) -> Result<Run> {
        let tasks = self.tasks.as_mut().ok_or("the program has ended")?;
        writeln!(tasks, "{task}").map_err(|e| e.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| e.to_string())?;
        let (seconds, bytes) = line.trim().split_once(' ').ok_or("it gave up")?;
        let parsed = seconds.parse().ok().zip(bytes.parse().ok());
        let run = parsed.map(|(seconds, bytes)| Run { seconds, bytes });
        run.ok_or_else(|| format!("`{}` was not expected", line.trim()))
    }
}

impl Drop for Running {
    /// It ends when there are no more tasks.
    fn drop(&mut self) {
        drop(self.tasks.take());
        let _ = self.child.wait();
    }
}

/// What a task cost, and the bytes that the contestant named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    seconds: f64,
    pub(super) bytes: u64,
}

/// All runs, by task and contestant.
#[derive(Default)]
pub(super) struct Results {
    runs: BTreeMap<(&'static str, &'static str), Vec<Run>>,
    problems: Vec<String>,
}

impl Results {
    fn all(&self, task: &'static str, who: &'static str) -> Option<&[Run]> {
        self.runs.get(&(task, who)).map(Vec::as_slice)
    }

    /// The median.
    pub(super) fn seconds(&self, task: &'static str, who: &'static str) -> Option<f64> {
        median(self.all(task, who)?.iter().map(|run| run.seconds))
    }

    /// The bytes that the contestant named last.
    pub(super) fn bytes(&self, task: &'static str, who: &'static str) -> Option<u64> {
        Some(self.all(task, who)?.last()?.bytes)
    }

    /// A duration for a table.
    pub(super) fn time(&self, task: &'static str, who: &'static str) -> String {
        self.seconds(task, who).map_or("-".into(), duration)
    }

    /// How many times as fast as `than`. Each turn is compared with the other's of the same moment: a
    /// machine that is slower for some seconds is so for both. Where one has fewer turns, by medians.
    pub(super) fn speed(
        &self,
        task: &'static str,
        who: &'static str,
        than: &'static str,
    ) -> Option<f64> {
        let (ours, theirs) = (self.all(task, who)?, self.all(task, than)?);
        if ours.len() != theirs.len() {
            return Some(self.seconds(task, than)? / self.seconds(task, who)?);
        }
        median(ours.iter().zip(theirs).map(|(ours, theirs)| theirs.seconds / ours.seconds))
    }

    /// Promises that `who` is at least `times` as fast as another.
    pub(super) fn faster(
        &self,
        text: String,
        task: &'static str,
        who: &'static str,
        than: &'static str,
        times: f64,
    ) -> Promise {
        let speed = self.speed(task, who, than);
        Promise { text, found: speed.map(|ratio| (format!("{ratio:.2}"), ratio >= times)) }
    }

    /// Promises that a task takes less than `most` seconds.
    pub(super) fn within(
        &self,
        text: String,
        task: &'static str,
        who: &'static str,
        most: f64,
    ) -> Promise {
        let found = self.seconds(task, who).map(|seconds| (duration(seconds), seconds < most));
        Promise { text, found }
    }

    fn problem(&mut self, text: String) {
        println!("  {text}");
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }
}

/// A bench: what differs from format to format.
pub(super) struct Bench {
    /// The format.
    pub(super) name: &'static str,
    /// Bytes of all files at scale 1.
    pub(super) files: f64,
    pub(super) tasks: &'static [Task],
    /// The columns of the table: contestants.
    pub(super) columns: &'static [&'static str],
    /// More columns: how many times as fast the first is as the second.
    pub(super) ratios: &'static [(&'static str, &'static str)],
    /// What stands in a cell.
    pub(super) cell: fn(&Results, &'static str, &'static str) -> String,
    /// Words below the table.
    pub(super) remark: fn(&Results) -> String,
    pub(super) promises: fn(&Results) -> Vec<Promise>,
    /// How it is measured.
    pub(super) how: &'static str,
}

/// Who takes part, with which words, and with which packages of Python.
pub(super) struct Arena {
    pub(super) contestants: Vec<Contestant>,
    pub(super) words: Words,
    /// One that should be there is not: nothing is published.
    pub(super) incomplete: bool,
    /// A line that says versions.
    pub(super) versions: String,
}

impl Bench {
    /// Makes the files by `arena`, holds the rounds, prints, and writes the part of the page.
    pub(super) fn run(
        &self,
        options: &Options,
        arena: impl FnOnce(&Path) -> Result<Arena>,
    ) -> Result<bool> {
        if options.spile.is_some() {
            return Err(format!(
                "bench {} builds a program of its own; --spile is for bench taf",
                self.name
            ));
        }
        let folder = place(self.files * options.scale).join("spile-bench");
        // An earlier run may have been stopped.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let fine = arena(&folder).and_then(|arena| self.measure(options, arena, &folder));
        if !options.keep {
            let _ = fs::remove_dir_all(&folder);
        }
        fine
    }

    fn measure(&self, options: &Options, mut arena: Arena, folder: &Path) -> Result<bool> {
        let busy = others();
        if busy > BUSY {
            println!("warning: {busy:.1} other threads are running; do not trust these numbers");
        }
        let results = self.hold(&mut arena, options.rounds);
        let table = self.table(&results);
        println!("\n{table}");
        let promises = (self.promises)(&results);
        let lines: Vec<String> = promises.iter().map(Promise::line).collect();
        for line in &lines {
            println!("{line}");
        }
        for problem in &results.problems {
            println!("problem: {problem}");
        }
        if results.problems.is_empty() && !arena.incomplete {
            let memory = folder.starts_with(MEMORY_FILES);
            let place = if memory { "in memory (tmpfs)" } else { "on a disk" };
            let Self { name, how, .. } = self;
            page::save(&format!(
                "# Performance: {name}\n\nMade by `cargo xtask bench {name} --scale {}`, {} rounds, \
                 files {place}; run it to repeat this on your machine. A ratio is the median of the \
                 ratios of single turns: what the machine does meanwhile is the same for both.\n\n\
                 {}\n{table}\n\
                 ## What is promised of {name}\n\n```text\n{}\n```\n\n\
                 ## What is measured of {name}\n\n{how}",
                options.scale,
                options.rounds,
                machine(&arena.versions, busy),
                lines.join("\n"),
            ))?;
        } else {
            println!("docs/performance.md is left alone: not everything was measured");
        }
        Ok(results.problems.is_empty() && promises.iter().all(Promise::holds))
    }

    /// One round after the other, so that a slow minute of the machine is everybody's; the order
    /// changes, so that nobody always finds what the same one before left behind.
    fn hold(&self, arena: &mut Arena, rounds: usize) -> Results {
        let mut results = Results::default();
        let mut order: Vec<usize> = (0..arena.contestants.len()).collect();
        let mut state = 1;
        for round in 0..rounds {
            println!("round {} of {rounds}", round + 1);
            for task in self.tasks {
                let mut cold = task.warm;
                for turn in 0..task.times {
                    shuffle(&mut order, &mut state);
                    for k in &order {
                        let one = &mut arena.contestants[*k];
                        if (one.once && round > 0) || turn % one.every > 0 {
                            continue;
                        }
                        let Some(line) = task.line(one.name) else { continue };
                        let mut ask = || one.ask(&filled(line, &arena.words)?);
                        let warmed =
                            if std::mem::take(&mut cold) { ask().map(drop) } else { Ok(()) };
                        match warmed.and_then(|()| ask()) {
                            Ok(run) => {
                                results.runs.entry((task.name, one.name)).or_default().push(run);
                            }
                            Err(why) => {
                                results.problem(format!("{} ({}): {why}", task.name, one.name));
                            }
                        }
                    }
                }
            }
        }
        results
    }

    /// The table in Markdown.
    fn table(&self, results: &Results) -> String {
        let ratios = self.ratios.iter().map(|(who, than)| format!("{who} / {than}"));
        let columns: Vec<String> =
            self.columns.iter().map(|c| (*c).to_string()).chain(ratios).collect();
        let mut text =
            format!("| | {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len()));
        for task in self.tasks {
            let cells = self.columns.iter().map(|who| (self.cell)(results, task.name, who));
            let ratios = self.ratios.iter().map(|(who, than)| {
                let speed = results.speed(task.name, who, than);
                speed.map_or("-".into(), |ratio| format!("{ratio:.2}"))
            });
            let cells: Vec<String> = cells.chain(ratios).collect();
            let _ = writeln!(text, "| {} | {} |", task.name, cells.join(" | "));
        }
        text + &(self.remark)(results)
    }
}

/// Another order, the same in every run of the bench.
fn shuffle(order: &mut [usize], state: &mut u64) {
    for k in (1..order.len()).rev() {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(k, ((*state >> 33) % (k as u64 + 1)) as usize);
    }
}

/// Where the files are: in memory if there is room.
fn place(bytes: f64) -> PathBuf {
    let free = output(program("df").args(["-k", "--output=avail", MEMORY_FILES]));
    let free = free.ok().and_then(|text| text.lines().nth(1)?.trim().parse::<f64>().ok());
    match free {
        Some(kib) if kib * 1024.0 > bytes => PathBuf::from(MEMORY_FILES),
        _ => {
            println!("{MEMORY_FILES} has no room; the files are on a disk, which may be slow");
            target()
        }
    }
}
