//! Runs tasks with several implementations, in alternation.
//!
//! An implementation is a program that reads tasks from standard input and replies with seconds and a count
//! (`benches/common.h`). It measures the task itself: the start of a program and imports are not included.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::Options;
use super::results::Results;
use super::table::{Implementation, Table, Task, Values, fill_in};
use crate::Result;
use crate::shell::program;

/// The cost of a task.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) seconds: f64,
    /// Bytes, or what else the implementation counts.
    pub(super) count: u64,
    /// Numbers of the result, for comparison.
    pub(super) result: Vec<f64>,
}

impl Run {
    /// Parses `SECONDS COUNT [NUMBER...]`.
    fn parse(line: &str) -> Result<Self> {
        let invalid = || match line.trim() {
            "" => "the program failed".to_string(),
            line => format!("unexpected reply `{line}`"),
        };
        let mut fields = line.split_whitespace();
        let seconds = fields.next().and_then(|f| f.parse().ok()).ok_or_else(invalid)?;
        let count = fields.next().and_then(|f| f.parse().ok()).ok_or_else(invalid)?;
        let result = fields.map(|f| f.parse().map_err(|_| invalid())).collect::<Result<_>>()?;
        Ok(Self { seconds, count, result })
    }
}

/// An implementation, started when its first task runs.
struct Runner<'a> {
    spec: &'a Implementation,
    command: Vec<String>,
    prefix: String,
    process: Option<Process>,
}

struct Process {
    child: Child,
    tasks: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl<'a> Runner<'a> {
    /// Fails if one of its programs is not available.
    fn new(spec: &'a Implementation, values: &Values) -> Result<Self> {
        let command = spec.run.split(' ').map(|part| fill_in(part, values));
        let prefix = fill_in(&spec.prefix, values)?;
        Ok(Self { spec, command: command.collect::<Result<_>>()?, prefix, process: None })
    }

    fn run(&mut self, task: &str) -> Result<Run> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        let run = process.run(&format!("{}{task}", self.prefix))?;
        if !self.spec.restarted {
            self.process = Some(process);
        }
        Ok(run)
    }

    fn start(&self) -> Result<Process> {
        let mut command = program(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(threads) = self.spec.threads {
            command.env("RAYON_NUM_THREADS", threads.to_string());
        }
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (tasks, replies) = (child.stdin.take(), child.stdout.take());
        let replies = BufReader::new(replies.ok_or("the program has no output")?);
        Ok(Process { child, tasks, replies })
    }
}

impl Process {
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

/// Creates the files and measures all tasks. Also returns whether a required implementation is not available.
pub(super) fn measure(
    table: &Table,
    options: &Options,
    values: &mut Values,
) -> Result<(Results, bool)> {
    let mut incomplete = false;
    let mut runners = Vec::new();
    for spec in &table.implementations {
        match Runner::new(spec, values) {
            Ok(runner) => runners.push(runner),
            Err(why) => {
                println!("{}: not measured: {why}", spec.name);
                incomplete |= !spec.optional;
            }
        }
    }
    println!("creating files at scale {}", options.scale);
    for step in &table.make {
        let [name, command, count @ ..] = step.as_slice() else {
            return Err(format!("make: {step:?}: expected an implementation and a command"));
        };
        let Some(runner) = runners.iter_mut().find(|runner| runner.spec.name == *name) else {
            continue;
        };
        let run =
            runner.run(&fill_in(command, values)?).map_err(|why| format!("{command}: {why}"))?;
        values.extend(count.iter().map(|name| (name.clone(), run.count.to_string())));
        // Otherwise it keeps the memory that it needed for the files.
        runner.process = None;
    }
    Ok((measure_all(table, options, values, &mut runners), incomplete))
}

/// Alternates between the implementations, so that variations of the machine affect all of them. Their
/// order changes, so that none always runs after the same other one.
fn measure_all(
    table: &Table,
    options: &Options,
    values: &Values,
    runners: &mut [Runner<'_>],
) -> Results {
    let mut results = Results::default();
    let mut order: Vec<usize> = (0..runners.len()).collect();
    let mut state = 1;
    for round in 0..options.rounds {
        println!("round {} of {}", round + 1, options.rounds);
        for task in &table.tasks {
            let mut warm_up = task.warm_up && !options.quick;
            for repetition in 0..if options.quick { 1 } else { task.repetitions } {
                shuffle(&mut order, &mut state);
                for k in &order {
                    let runner = &mut runners[*k];
                    let Implementation { name, once, every, .. } = runner.spec;
                    let Some(command) = task.command(name) else { continue };
                    if (*once && round > 0) || repetition % every > 0 {
                        continue;
                    }
                    let mut measure = || -> Result<Run> {
                        let mut run = runner.run(&fill_in(command, values)?)?;
                        run.result.extend(checksum(task, name, values)?);
                        Ok(run)
                    };
                    let run = if std::mem::take(&mut warm_up) {
                        measure().and_then(|_| measure())
                    } else {
                        measure()
                    };
                    remove_outputs(values);
                    match run {
                        Ok(run) => results.add(&task.name, name, run),
                        Err(why) => results.problem(format!("{} ({name}): {why}", task.name)),
                    }
                }
            }
        }
    }
    results.compare();
    results
}

/// Another order, the same in every run of the benchmark.
fn shuffle(order: &mut [usize], state: &mut u64) {
    for k in (1..order.len()).rev() {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(k, ((*state >> 33) % (k as u64 + 1)) as usize);
    }
}

/// Removes the files `out.*`, so that all implementations have the same free memory.
fn remove_outputs(values: &Values) {
    let entries = values.get("dir").and_then(|folder| fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("out.") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A number that depends on the data that the implementation has written, if the task compares them.
fn checksum(task: &Task, name: &str, values: &Values) -> Result<Option<f64>> {
    let Some((file, offset, length)) = task.output(name) else { return Ok(None) };
    let number = |text: &str| -> Result<u64> {
        fill_in(text, values)?.parse().map_err(|_| format!("{text}: not a number"))
    };
    let (offset, length) = (number(offset)?, number(length)?);
    let path = Path::new(&values["dir"]).join(file);
    let fail = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut data = fs::File::open(&path).map_err(fail)?;
    data.seek(SeekFrom::Start(offset)).map_err(fail)?;
    let mut hasher = DefaultHasher::new();
    let mut block = vec![0; 1 << 20];
    for start in (0..length).step_by(block.len()) {
        let part = &mut block[..(length - start).min(1 << 20) as usize];
        data.read_exact(part).map_err(fail)?;
        hasher.write(part);
    }
    // A double represents 52 bits exactly.
    Ok(Some((hasher.finish() >> 12) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_seconds_a_count_and_numbers() {
        let run = Run::parse("0.5 1024 1 -2.5\n").unwrap();
        assert_eq!((run.seconds, run.count, &run.result[..]), (0.5, 1024, &[1.0, -2.5][..]));
        assert!(Run::parse("").unwrap_err().contains("failed"));
        assert!(Run::parse("0.5 x").unwrap_err().contains("0.5 x"));
    }

    #[test]
    fn a_warm_up_is_not_counted_and_failures_are_problems() {
        let table: Table = serde_json::from_value(serde_json::json!({
            "files": 0, "columns": ["cat"], "ratios": [], "programs": [],
            "implementations": [{"name": "cat", "run": "cat"}, {"name": "none", "run": "{none}"}],
            "make": [["cat", "1 7", "n"]],
            "tasks": [
                {"name": "t", "repetitions": 2, "commands": {"cat | none": "0.5 {n}"}},
                {"name": "f", "commands": {"cat": "x"}},
            ],
        }))
        .unwrap();
        let mut options = Options::parse(&["--rounds", "1"]).unwrap();
        let (results, incomplete) = measure(&table, &options, &mut Values::new()).unwrap();
        assert!(incomplete);
        assert_eq!(results.all("t", "cat").map(<[Run]>::len), Some(2));
        assert_eq!(results.count("t", "cat"), Some(7));
        assert_eq!(results.problems.len(), 1, "{:?}", results.problems);
        options.quick = true;
        let (results, _) = measure(&table, &options, &mut Values::new()).unwrap();
        assert_eq!(results.all("t", "cat").map(<[Run]>::len), Some(1));
    }
}
