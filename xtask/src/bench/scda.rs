//! `cargo xtask bench scda`: sections written and read, next to what plain C does with the same
//! bytes, in one run.
//!
//! | file | what is in it |
//! |---|---|
//! | `tasks` | the jobs, the tasks and their sizes |
//! | `report` | the table, the promises, the part of the page |

mod report;
mod tasks;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::page;
use super::{BUSY, Options, machine, or_say, others};
use crate::shell::{cargo, output, program, root, succeeds, target};
use crate::{Result, tools};
use tasks::{JOBS, TASKS, Task};

/// A file system in memory: what a disk does is not ours to measure.
const MEMORY_FILES: &str = "/dev/shm";

/// Bytes of all files at scale 1.
const FILES: f64 = 3.0e9;

/// The contestants that are not spile: plain C, and C that keeps its memory (see `peer.c`).
const C: &str = "C";
const C_KEEPS: &str = "C, memory kept";

pub(super) fn run(options: &Options) -> Result<bool> {
    let folder = place(options.scale).join("spile-bench");
    // An earlier run may have been stopped.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let fine = measure(options, &folder);
    if !options.keep {
        let _ = fs::remove_dir_all(&folder);
    }
    fine
}

/// Where the files are: in memory if there is room.
fn place(scale: f64) -> PathBuf {
    let free = output(program("df").args(["-k", "--output=avail", MEMORY_FILES]));
    let free = free.ok().and_then(|text| text.lines().nth(1)?.trim().parse::<f64>().ok());
    match free {
        Some(kib) if kib * 1024.0 > FILES * scale => PathBuf::from(MEMORY_FILES),
        _ => {
            println!("{MEMORY_FILES} has no room; the files are on a disk, which may be slow");
            target()
        }
    }
}

fn measure(options: &Options, folder: &Path) -> Result<bool> {
    let driver = build()?;
    let peer = or_say("C", compile(folder));
    let words = tasks::words(folder, options.scale);
    tasks::make_fields(&words)?;
    let mpi = or_say("MPI", build_mpi());
    let mut contestants = Vec::new();
    for job in JOBS.iter().filter(|job| !job.mpi || mpi.is_some()) {
        let driver = driver.clone();
        let stays = !job.mpi;
        contestants.push(Contestant::new(job.name, stays, move || job.command(&driver)));
    }
    // Last: it does the same with files that spile has written.
    if let Some(peer) = peer {
        let keeping = peer.clone();
        contestants.push(Contestant::new(C, true, move || program(&peer)));
        contestants.push(Contestant::new(C_KEEPS, true, move || {
            let mut keeps = program(&keeping);
            keeps.arg("keep");
            keeps
        }));
    }
    let busy = others();
    if busy > BUSY {
        println!("warning: {busy:.1} other threads are running; do not trust these numbers");
    }
    let results = hold(&mut contestants, &words, options.rounds);

    println!("\n{}", report::table(&results));
    let promises = report::promises(&results);
    for promise in &promises {
        println!("{}", promise.line());
    }
    for problem in &results.problems {
        println!("problem: {problem}");
    }
    if results.problems.is_empty() && contestants.iter().any(|one| one.name == C) {
        let in_memory = folder.starts_with(MEMORY_FILES);
        let made = report::Made { scale: options.scale, rounds: options.rounds, in_memory };
        page::save(&report::part(&machine(None, busy), &made, &results))?;
    } else {
        println!("docs/performance.md is left alone: not everything was measured");
    }
    Ok(results.problems.is_empty() && promises.iter().all(super::report::Promise::holds))
}

/// The program that does spile's part.
fn build() -> Result<PathBuf> {
    let words = ["build", "--release", "--package", "spile-scda", "--example", "bench"];
    if !succeeds(&mut cargo(&words))? {
        return Err("the bench of spile-scda does not build".into());
    }
    Ok(target().join("release/examples/bench"))
}

/// The same for the processes of MPI.
fn build_mpi() -> Result<()> {
    tools::mpi()?;
    let words = ["build", "--release", "--package", "spile-mpi", "--features", "mpi"];
    if succeeds(cargo(&words).args(["--example", "bench_mpi"]))? {
        return Ok(());
    }
    Err("the bench of spile-mpi does not build".into())
}

/// The program in C, for this machine.
fn compile(folder: &Path) -> Result<PathBuf> {
    let program_path = folder.join("peer-in-c");
    let compiler = tools::cc()?;
    let compile = || {
        let mut command = program(&compiler);
        command.args(["-O3", "-march=native", "-o"]).arg(&program_path);
        output(command.arg("benches/scda/peer.c").arg("-lz")).map(drop)
    };
    if compile().is_err() {
        tools::zlib()?;
        compile()?;
    }
    Ok(program_path)
}

/// Who does tasks and says what they cost: a program that runs from the first task to the end, or
/// for one task only.
struct Contestant {
    name: &'static str,
    stays: bool,
    command: Box<dyn Fn() -> Command>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    tasks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Contestant {
    fn new(name: &'static str, stays: bool, command: impl Fn() -> Command + 'static) -> Self {
        Self { name, stays, command: Box::new(command), running: None }
    }

    /// Does a task: seconds and bytes.
    fn ask(&mut self, task: &str) -> Result<(f64, u64)> {
        if self.running.is_none() {
            self.running = Some(Running::start((self.command)())?);
        }
        let answer = self.running.as_mut().ok_or("the program has ended")?.ask(task);
        if !self.stays {
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

    fn ask(&mut self, task: &str) -> Result<(f64, u64)> {
        let tasks = self.tasks.as_mut().ok_or("the program has ended")?;
        writeln!(tasks, "{task}").map_err(|e| e.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| e.to_string())?;
        let (seconds, bytes) = line.trim().split_once(' ').ok_or("it gave up")?;
        let parsed = seconds.parse().ok().zip(bytes.parse().ok());
        parsed.ok_or_else(|| format!("`{line}` was not expected"))
    }
}

impl Drop for Running {
    /// It ends when there are no more tasks.
    fn drop(&mut self) {
        drop(self.tasks.take());
        let _ = self.child.wait();
    }
}

/// What a task cost, the bytes that the contestant named, and those of the data before they were
/// compressed.
#[derive(Clone, Copy, Debug)]
struct Run {
    seconds: f64,
    bytes: u64,
    data: u64,
}

/// All runs, by task and contestant.
#[derive(Default)]
struct Results {
    runs: BTreeMap<(&'static str, &'static str), Vec<Run>>,
    problems: Vec<String>,
}

impl Results {
    /// The median.
    fn seconds(&self, task: &'static str, who: &'static str) -> Option<f64> {
        let mut all: Vec<f64> = self.runs.get(&(task, who))?.iter().map(|r| r.seconds).collect();
        all.sort_by(f64::total_cmp);
        let (low, high) = (all.get((all.len() - 1) / 2)?, all.get(all.len() / 2)?);
        Some(f64::midpoint(*low, *high))
    }

    /// Bytes that are stored for a byte of the data.
    fn stored(&self, task: &'static str, who: &'static str) -> Option<f64> {
        self.runs.get(&(task, who))?.last().map(|run| run.bytes as f64 / run.data as f64)
    }

    /// Megabytes of a task's data in a second. C also counts headers; spile says what the data are.
    fn rate(&self, task: &'static str, who: &'static str) -> Option<f64> {
        let data = self.runs.get(&(task, tasks::ONE))?.last()?.data;
        Some(data as f64 / self.seconds(task, who)? / 1e6)
    }

    fn add(&mut self, task: &Task, who: &'static str, run: Run) {
        self.runs.entry((task.name, who)).or_default().push(run);
    }

    fn problem(&mut self, text: String) {
        println!("  {text}");
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }
}

/// One round after the other, so that a slow minute of the machine is everybody's.
fn hold(contestants: &mut [Contestant], words: &tasks::Words, rounds: usize) -> Results {
    let mut results = Results::default();
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        for task in &TASKS {
            for repetition in 0..task.times {
                for (k, one) in contestants.iter_mut().enumerate() {
                    // For information, and it takes long.
                    if one.name == C_KEEPS && (round > 0 || task.name != tasks::ENCODE) {
                        continue;
                    }
                    // Who is the first to read a new file pays for it; that would be the first.
                    let first = k == 0 && repetition == 0 && task.reads();
                    let done = if first { turn(one, task, words).map(drop) } else { Ok(()) };
                    let done = done.and_then(|()| turn(one, task, words));
                    match done {
                        Ok(Some(run)) => results.add(task, one.name, run),
                        Ok(None) => {}
                        Err(why) => results.problem(format!("{} ({}): {why}", task.name, one.name)),
                    }
                }
            }
        }
    }
    results
}

/// Has a contestant do a task, if it is one of its tasks.
fn turn(one: &mut Contestant, task: &Task, words: &tasks::Words) -> Result<Option<Run>> {
    let spile = JOBS.iter().any(|job| job.name == one.name);
    let line = if spile { task.spile } else { task.c };
    if line.is_empty() || (spile && !task.jobs.contains(&one.name)) {
        return Ok(None);
    }
    let mut line = tasks::filled(line, words);
    let length = |file| {
        let path = tasks::filled(file, words);
        fs::metadata(&path).map(|meta| meta.len()).map_err(|e| format!("{path}: {e}"))
    };
    if line.contains("{length}") {
        line = line.replace("{length}", &length(task.file)?.to_string());
    }
    let (seconds, bytes) = one.ask(&line)?;
    let data = if task.field.is_empty() { bytes } else { length(task.field)? };
    Ok(Some(Run { seconds, bytes, data }))
}
