//! Runs tasks with several implementations, in alternation, and writes the results.
//!
//! An implementation is a program that reads tasks from standard input and replies with seconds and a count
//! (`benches/common.h`). It measures the task itself: the start of a program and imports are not included.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::target::{Target, duration, median, mib};
use super::{Options, machine, other_threads, page};
use crate::Result;
use crate::shell::{output, program, root, target as target_dir};

/// A file system in memory, so that the disk is not measured.
const MEMORY_FILES: &str = "/dev/shm";

/// Implementations, and the command that these receive.
type Commands = &'static [(&'static [&'static str], &'static str)];

/// A measured task.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// Placeholders in braces are replaced; `{length of array}` by the length of the file `{array}`.
    commands: Commands,
    /// Repetitions per round.
    repetitions: usize,
    /// Whether the first implementation of each round runs the task once before it is measured: the
    /// first access to a new file is slower.
    warm_up: bool,
}

/// A task with a warm-up.
pub(super) const fn task(name: &'static str, repetitions: usize, commands: Commands) -> Task {
    Task { name, commands, repetitions, warm_up: true }
}

/// A task without a warm-up.
pub(super) const fn cold_task(name: &'static str, repetitions: usize, commands: Commands) -> Task {
    Task { name, commands, repetitions, warm_up: false }
}

/// Values of the placeholders.
pub(super) type Values = BTreeMap<&'static str, String>;

/// Values that are files in `folder`.
pub(super) fn paths(folder: &Path, files: &[(&'static str, &str)]) -> Values {
    let path = |file: &str| folder.join(file).to_string_lossy().into_owned();
    files.iter().map(|(name, file)| (*name, path(file))).collect()
}

fn fill_in(command: &str, values: &Values) -> Result<String> {
    let mut out = command.to_string();
    for (name, value) in values {
        out = out.replace(&format!("{{{name}}}"), value);
        let length = format!("{{length of {name}}}");
        if out.contains(&length) {
            let meta = fs::metadata(value).map_err(|e| format!("{value}: {e}"))?;
            out = out.replace(&length, &meta.len().to_string());
        }
    }
    Ok(out)
}

/// A program that runs tasks and reports their cost.
pub(super) struct Implementation {
    pub(super) name: &'static str,
    /// Precedes every command.
    prefix: String,
    /// Whether the program is started for each task.
    restarted: bool,
    /// Whether it is only measured in the first round.
    once: bool,
    /// It is measured in one of so many repetitions.
    every: usize,
    command: Box<dyn Fn() -> Command>,
    process: Option<Process>,
}

struct Process {
    child: Child,
    tasks: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Implementation {
    pub(super) fn new(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Self {
            name,
            prefix: String::new(),
            restarted: false,
            once: false,
            every: 1,
            command: Box::new(command),
            process: None,
        }
    }

    /// A program with arguments.
    pub(super) fn program(name: &'static str, path: &Path, args: &[&str]) -> Self {
        let (path, args) = (path.to_path_buf(), args.iter().map(ToString::to_string));
        let args: Vec<String> = args.collect();
        Self::new(name, move || {
            let mut command = program(&path);
            command.args(&args);
            command
        })
    }

    /// A program with a number of threads.
    pub(super) fn threads(name: &'static str, path: &Path, threads: usize) -> Self {
        let path = path.to_path_buf();
        Self::new(name, move || {
            let mut command = program(&path);
            command.env("RAYON_NUM_THREADS", threads.to_string());
            command
        })
    }

    /// Starts the program anew for each task.
    pub(super) fn restarted(self) -> Self {
        Self { restarted: true, ..self }
    }

    /// Measures it in the first round only.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Measures a slow implementation in one of `repetitions`.
    pub(super) fn every(self, repetitions: usize) -> Self {
        Self { every: repetitions, ..self }
    }

    /// Sends `prefix` before every command.
    pub(super) fn prefixed(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Runs a task.
    pub(super) fn run(&mut self, task: &str) -> Result<Run> {
        if self.process.is_none() {
            self.process = Some(Process::start((self.command)())?);
        }
        let task = format!("{}{task}", self.prefix);
        let run = self.process.as_mut().ok_or("the program has ended")?.run(&task);
        if self.restarted || run.is_err() {
            self.process = None;
        }
        run
    }
}

impl Process {
    fn start(mut command: Command) -> Result<Self> {
        command.current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (tasks, replies) = (child.stdin.take(), child.stdout.take());
        let replies = BufReader::new(replies.ok_or("the program has no output")?);
        Ok(Self { child, tasks, replies })
    }

    fn run(&mut self, task: &str) -> Result<Run> {
        let tasks = self.tasks.as_mut().ok_or("the program has ended")?;
        writeln!(tasks, "{task}").map_err(|e| e.to_string())?;
        let mut line = String::new();
        self.replies.read_line(&mut line).map_err(|e| e.to_string())?;
        Run::parse(&line)
    }
}

impl Drop for Process {
    /// The program ends at the end of its input.
    fn drop(&mut self) {
        drop(self.tasks.take());
        let _ = self.child.wait();
    }
}

/// The cost of a task.
#[derive(Clone, Debug)]
pub(super) struct Run {
    seconds: f64,
    /// Bytes, or what else the implementation counts.
    pub(super) bytes: u64,
    /// Numbers of the result, for comparison.
    result: Vec<f64>,
}

impl Run {
    /// Parses `SECONDS BYTES [NUMBER...]`.
    fn parse(line: &str) -> Result<Self> {
        let invalid = || match line.trim() {
            "" => "the program failed".to_string(),
            line => format!("unexpected reply `{line}`"),
        };
        let mut fields = line.split_whitespace();
        let seconds = fields.next().and_then(|f| f.parse().ok()).ok_or_else(invalid)?;
        let bytes = fields.next().and_then(|f| f.parse().ok()).ok_or_else(invalid)?;
        let result = fields.map(|f| f.parse().map_err(|_| invalid())).collect::<Result<_>>()?;
        Ok(Self { seconds, bytes, result })
    }
}

/// All measurements, by task and implementation.
#[derive(Default)]
pub(super) struct Results {
    runs: BTreeMap<(&'static str, &'static str), Vec<Run>>,
    problems: Vec<String>,
}

impl Results {
    fn all(&self, task: &'static str, name: &'static str) -> Option<&[Run]> {
        self.runs.get(&(task, name)).map(Vec::as_slice)
    }

    /// The median.
    pub(super) fn seconds(&self, task: &'static str, name: &'static str) -> Option<f64> {
        median(self.all(task, name)?.iter().map(|run| run.seconds))
    }

    /// The last count.
    pub(super) fn bytes(&self, task: &'static str, name: &'static str) -> Option<u64> {
        Some(self.all(task, name)?.last()?.bytes)
    }

    /// The last numbers of the result.
    pub(super) fn result(&self, task: &'static str, name: &'static str) -> Option<&[f64]> {
        Some(&self.all(task, name)?.last()?.result)
    }

    /// A duration for a table.
    pub(super) fn time(&self, task: &'static str, name: &'static str) -> String {
        self.seconds(task, name).map_or("-".into(), duration)
    }

    /// Gigabytes per second for a table; the bytes are those that `counted` reports.
    pub(super) fn rate(
        &self,
        task: &'static str,
        name: &'static str,
        counted: &'static str,
    ) -> String {
        let found = self.seconds(task, name).zip(self.bytes(task, counted));
        found.map_or("-".into(), |(s, bytes)| format!("{:.2} GB/s", bytes as f64 / s / 1e9))
    }

    /// Speed relative to `than`: the median of the ratios of single repetitions, because the load of the
    /// machine is the same for both; the ratio of medians if their numbers of repetitions differ.
    pub(super) fn speed(
        &self,
        task: &'static str,
        name: &'static str,
        than: &'static str,
    ) -> Option<f64> {
        let (ours, theirs) = (self.all(task, name)?, self.all(task, than)?);
        if ours.len() != theirs.len() {
            return Some(self.seconds(task, than)? / self.seconds(task, name)?);
        }
        median(ours.iter().zip(theirs).map(|(ours, theirs)| theirs.seconds / ours.seconds))
    }

    /// The target that `name` is at least `factor` times as fast as `than`.
    pub(super) fn faster(
        &self,
        task: &'static str,
        name: &'static str,
        than: &'static str,
        factor: f64,
    ) -> Target {
        let times = if factor == 1.0 { String::new() } else { format!("{factor} times ") };
        let text = format!("{task}: {name} is at least {times}as fast as {than}");
        let speed = self.speed(task, name, than);
        Target { text, found: speed.map(|ratio| (format!("{ratio:.2}"), ratio >= factor)) }
    }

    /// The target that a task takes less than `most` seconds.
    pub(super) fn within(&self, task: &'static str, name: &'static str, most: f64) -> Target {
        let found = self.seconds(task, name).map(|seconds| (duration(seconds), seconds < most));
        Target { text: format!("{task}: less than {}", duration(most)), found }
    }

    /// The target that a task, which counts its peak memory, needs less than `most` MiB.
    pub(super) fn memory(&self, task: &'static str, name: &'static str, most: u64) -> Target {
        let found = self.bytes(task, name).map(|bytes| (mib(bytes), bytes < most << 20));
        Target { text: format!("{task}: less than {most} MiB of memory"), found }
    }

    pub(super) fn problem(&mut self, text: String) {
        println!("  {text}");
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }
}

/// A benchmark.
pub(super) struct Bench {
    pub(super) name: &'static str,
    /// Bytes of all files at scale 1.
    pub(super) files: f64,
    pub(super) tasks: &'static [Task],
    /// Columns of the table: implementations.
    pub(super) columns: &'static [&'static str],
    /// More columns: the speed of the first implementation relative to the second.
    pub(super) ratios: &'static [(&'static str, &'static str)],
    /// The text of a cell.
    pub(super) cell: fn(&Results, &'static str, &'static str) -> String,
    /// Text below the table.
    pub(super) note: fn(&Results) -> String,
    pub(super) targets: fn(&Results) -> Vec<Target>,
    /// Description of the measurement.
    pub(super) method: &'static str,
}

/// Implementations and files of a benchmark.
pub(super) struct Setup {
    pub(super) implementations: Vec<Implementation>,
    pub(super) values: Values,
    /// Whether an implementation is missing; then no results are written.
    pub(super) incomplete: bool,
    /// Versions of the implementations, as text.
    pub(super) versions: String,
    /// Called after each run, with the task and the implementation; an error is reported as a problem.
    pub(super) after_run: fn(&Values, &str, &str) -> Result<()>,
    /// Called after all runs.
    pub(super) after_all: fn(&Values, &mut Results),
}

impl Setup {
    pub(super) fn new(values: Values) -> Self {
        Self {
            implementations: Vec::new(),
            values,
            incomplete: false,
            versions: String::new(),
            after_run: |_, _, _| Ok(()),
            after_all: |_, _| {},
        }
    }

    pub(super) fn add(&mut self, implementation: Implementation) {
        self.implementations.push(implementation);
    }

    /// Adds an implementation that may be unavailable.
    pub(super) fn add_optional(&mut self, implementation: Option<Implementation>) {
        self.incomplete |= implementation.is_none();
        self.implementations.extend(implementation);
    }
}

impl Bench {
    /// Runs the benchmark with the files and implementations that `setup` creates in a folder, and writes its
    /// section of the page. Returns whether all targets are met.
    pub(super) fn run(
        &self,
        options: &Options,
        setup: impl FnOnce(&Path) -> Result<Setup>,
    ) -> Result<bool> {
        if options.spile.is_some() && self.name != "taf" {
            return Err("--spile is only an option of bench taf".into());
        }
        let folder = base_folder(self.files * options.scale).join("spile-bench");
        // Left over from an interrupted run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let met = setup(&folder).and_then(|setup| self.measure(options, setup, &folder));
        if !options.keep {
            let _ = fs::remove_dir_all(&folder);
        }
        met
    }

    fn measure(&self, options: &Options, mut setup: Setup, folder: &Path) -> Result<bool> {
        let busy = other_threads();
        let mut results = self.measure_all(&mut setup, options.rounds);
        (setup.after_all)(&setup.values, &mut results);
        let table = self.table(&results);
        println!("\n{table}");
        let targets = (self.targets)(&results);
        let lines: Vec<String> = targets.iter().map(Target::line).collect();
        for line in &lines {
            println!("{line}");
        }
        for problem in &results.problems {
            println!("problem: {problem}");
        }
        if results.problems.is_empty() && !setup.incomplete {
            let memory = folder.starts_with(MEMORY_FILES);
            let medium = if memory { "in memory (tmpfs)" } else { "on a disk" };
            let Self { name, method, .. } = self;
            page::save(&format!(
                "# Performance: {name}\n\nMeasured by `cargo xtask bench {name} --scale {}`, {} rounds, \
                 files {medium}. A ratio is the median of the ratios of single repetitions.\n\n\
                 {}\n{table}\n\
                 ## Targets: {name}\n\n```text\n{}\n```\n\n\
                 ## Method: {name}\n\n{method}",
                options.scale,
                options.rounds,
                machine(&setup.versions, busy),
                lines.join("\n"),
            ))?;
        } else {
            println!("docs/performance.md is not changed: the measurement is incomplete");
        }
        Ok(results.problems.is_empty() && targets.iter().all(Target::is_met))
    }

    /// Alternates between the implementations, so that variations of the machine affect all of them. Their
    /// order changes, so that none always runs after the same other one.
    fn measure_all(&self, setup: &mut Setup, rounds: usize) -> Results {
        let mut results = Results::default();
        let mut order: Vec<usize> = (0..setup.implementations.len()).collect();
        let mut state = 1;
        for round in 0..rounds {
            println!("round {} of {rounds}", round + 1);
            for task in self.tasks {
                let mut warm_up = task.warm_up;
                for repetition in 0..task.repetitions {
                    shuffle(&mut order, &mut state);
                    for k in &order {
                        let one = &mut setup.implementations[*k];
                        if (one.once && round > 0) || repetition % one.every > 0 {
                            continue;
                        }
                        let command = task.commands.iter().find(|(all, _)| all.contains(&one.name));
                        let Some((_, command)) = command else { continue };
                        let mut measure = || -> Result<Run> {
                            let run = one.run(&fill_in(command, &setup.values)?)?;
                            (setup.after_run)(&setup.values, task.name, one.name)?;
                            Ok(run)
                        };
                        let run = if std::mem::take(&mut warm_up) {
                            measure().and_then(|_| measure())
                        } else {
                            measure()
                        };
                        match run {
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
        let ratios = self.ratios.iter().map(|(name, than)| format!("{name} / {than}"));
        let columns: Vec<String> =
            self.columns.iter().map(|c| (*c).to_string()).chain(ratios).collect();
        let mut text =
            format!("| | {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len()));
        for task in self.tasks {
            let cells = self.columns.iter().map(|name| (self.cell)(results, task.name, name));
            let ratios = self.ratios.iter().map(|(name, than)| {
                let speed = results.speed(task.name, name, than);
                speed.map_or("-".into(), |ratio| format!("{ratio:.2}"))
            });
            let cells: Vec<String> = cells.chain(ratios).collect();
            let _ = writeln!(text, "| {} | {} |", task.name, cells.join(" | "));
        }
        text + &(self.note)(results)
    }
}

/// Another order, the same in every run of the benchmark.
fn shuffle(order: &mut [usize], state: &mut u64) {
    for k in (1..order.len()).rev() {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(k, ((*state >> 33) % (k as u64 + 1)) as usize);
    }
}

/// A folder for files of so many bytes, in memory if there is enough.
fn base_folder(bytes: f64) -> PathBuf {
    let free = output(program("df").args(["-k", "--output=avail", MEMORY_FILES]));
    let free = free.ok().and_then(|text| text.lines().nth(1)?.trim().parse::<f64>().ok());
    match free {
        Some(kib) if kib * 1024.0 > bytes => PathBuf::from(MEMORY_FILES),
        _ => {
            println!("{MEMORY_FILES} is too small; the files are on a disk, which may be slow");
            target_dir()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_seconds_bytes_and_numbers() {
        let run = Run::parse("0.5 1024 1 -2.5\n").unwrap();
        assert_eq!((run.seconds, run.bytes, &run.result[..]), (0.5, 1024, &[1.0, -2.5][..]));
        assert!(Run::parse("").unwrap_err().contains("failed"));
        assert!(Run::parse("0.5 x").unwrap_err().contains("0.5 x"));
    }

    #[test]
    fn speeds_are_medians_of_ratios() {
        let mut results = Results::default();
        for (name, all) in [("a", [3.0, 1.0, 2.0]), ("b", [6.0, 1.0, 8.0])] {
            let runs = all.map(|seconds| Run { seconds, bytes: 2 << 20, result: Vec::new() });
            results.runs.insert(("t", name), runs.to_vec());
        }
        assert_eq!(results.seconds("t", "a"), Some(2.0));
        assert_eq!(results.speed("t", "a", "b"), Some(2.0));
        assert!(results.faster("t", "a", "b", 2.0).is_met());
        assert!(!results.memory("t", "a", 2).is_met() && results.memory("t", "a", 3).is_met());
        assert_eq!(results.seconds("t", "c"), None);
    }

    #[test]
    fn a_warm_up_is_not_counted_and_failures_are_problems() {
        const TASKS: [Task; 2] =
            [task("t", 2, &[(&["cat"], "0.5 {n}")]), task("f", 1, &[(&["cat"], "x")])];
        let bench = Bench {
            name: "test",
            files: 0.0,
            tasks: &TASKS,
            columns: &["cat"],
            ratios: &[],
            cell: Results::time,
            note: |_| String::new(),
            targets: |_| Vec::new(),
            method: "",
        };
        let mut setup = Setup::new(Values::from([("n", "7".into())]));
        setup.add(Implementation::program("cat", Path::new("cat"), &[]));
        let results = bench.measure_all(&mut setup, 1);
        assert_eq!(results.all("t", "cat").map(<[Run]>::len), Some(2));
        assert_eq!(results.bytes("t", "cat"), Some(7));
        assert_eq!(results.problems.len(), 1, "{:?}", results.problems);
    }
}
