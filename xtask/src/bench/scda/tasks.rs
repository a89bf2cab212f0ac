//! The jobs, the tasks and their sizes.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::shell::program;

/// What spile's driver runs as. Ranks that are threads share the threads that compress.
pub(super) struct Job {
    pub(super) name: &'static str,
    ranks: usize,
    threads: usize,
    /// Ranks are processes of MPI. They wait for each other without rest, so they run for one
    /// task only: nothing else could be measured while they are there.
    pub(super) mpi: bool,
}

pub(super) const ONE: &str = "1 rank";
pub(super) const TWO_THREADS: &str = "1 rank, 2 threads";
pub(super) const TWO_RANKS: &str = "2 ranks";
pub(super) const MPI_ONE: &str = "MPI, 1 rank";
pub(super) const MPI_TWO: &str = "MPI, 2 ranks";

pub(super) const JOBS: [Job; 5] = [
    Job { name: ONE, ranks: 1, threads: 1, mpi: false },
    Job { name: TWO_THREADS, ranks: 1, threads: 2, mpi: false },
    Job { name: TWO_RANKS, ranks: 2, threads: 2, mpi: false },
    Job { name: MPI_ONE, ranks: 1, threads: 1, mpi: true },
    Job { name: MPI_TWO, ranks: 2, threads: 1, mpi: true },
];

impl Job {
    /// Starts the driver, which is `driver` with `_mpi` at its end for MPI.
    pub(super) fn command(&self, driver: &Path) -> Command {
        let (ranks, threads) = (self.ranks.to_string(), self.threads.to_string());
        let mut command = if self.mpi {
            let mut command = program("mpirun");
            command.args(["--allow-run-as-root", "--oversubscribe", "-np", &ranks]);
            command.arg(driver.with_file_name("bench_mpi"));
            command
        } else {
            let mut command = program(driver);
            command.arg(ranks);
            command
        };
        command.env("RAYON_NUM_THREADS", threads);
        command
    }
}

/// Something to do, for spile and for C. Words in braces are filled in; `{length}` is the length of
/// `file`, which spile has written.
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) spile: &'static str,
    pub(super) c: &'static str,
    /// The jobs that do it.
    pub(super) jobs: &'static [&'static str],
    pub(super) file: &'static str,
    /// What is compressed.
    pub(super) field: &'static str,
    /// Repetitions in each round.
    pub(super) times: usize,
}

impl Task {
    /// It reads what the task before it has written.
    pub(super) fn reads(&self) -> bool {
        self.spile.starts_with("read-")
    }
}

pub(super) const WRITE_8: &str = "write A, E = 8";
pub(super) const READ_8: &str = "read A, E = 8";
pub(super) const WRITE_64: &str = "write A, E = 64";
pub(super) const READ_64: &str = "read A, E = 64";
pub(super) const WRITE_MIB: &str = "write A, E = 1 MiB";
pub(super) const READ_MIB: &str = "read A, E = 1 MiB";
pub(super) const ENCODE: &str = "write encoded A, single precision";
pub(super) const DECODE: &str = "read encoded A, single precision";
pub(super) const ENCODE_FULL: &str = "write encoded A, all digits";
pub(super) const DECODE_FULL: &str = "read encoded A, all digits";
pub(super) const FORMAT_SHORT: &str = "format sizes, 1 or 2 digits";
pub(super) const PARSE_SHORT: &str = "parse sizes, 1 or 2 digits";
pub(super) const FORMAT_LONG: &str = "format sizes, 1 to 12 digits";
pub(super) const PARSE_LONG: &str = "parse sizes, 1 to 12 digits";

/// A section written or read from memory, next to all its bytes by `write()` or `read()`.
const PLAIN: Task = Task {
    name: "",
    spile: "",
    c: "",
    jobs: &[ONE, TWO_RANKS, MPI_ONE, MPI_TWO],
    file: "{array}",
    field: "",
    times: 1,
};
const ENCODED: Task = Task {
    jobs: &[ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO],
    file: "{encoded}",
    field: "{single}",
    ..PLAIN
};
const ENTRIES: Task = Task { jobs: &[ONE], times: 3, ..PLAIN };

pub(super) const TASKS: [Task; 16] = [
    Task {
        name: WRITE_8,
        spile: "write-array {array} {bytes} 8",
        c: "write {plain} {length}",
        ..PLAIN
    },
    Task {
        name: READ_8,
        spile: "read-array {array} {bytes} 8",
        c: "read {array} {length}",
        ..PLAIN
    },
    Task {
        name: WRITE_64,
        spile: "write-array {array} {bytes} 64",
        c: "write {plain} {length}",
        ..PLAIN
    },
    Task {
        name: READ_64,
        spile: "read-array {array} {bytes} 64",
        c: "read {array} {length}",
        ..PLAIN
    },
    Task {
        name: WRITE_MIB,
        spile: "write-array {array} {bytes} 1048576",
        c: "write {plain} {length}",
        ..PLAIN
    },
    Task {
        name: READ_MIB,
        spile: "read-array {array} {bytes} 1048576",
        c: "read {array} {length}",
        ..PLAIN
    },
    Task {
        name: "write V",
        spile: "write-varray {array} {number}",
        c: "write {plain} {length}",
        times: 3,
        ..PLAIN
    },
    Task {
        name: "read V",
        spile: "read-varray {array} {number}",
        c: "read {array} {length}",
        times: 3,
        ..PLAIN
    },
    Task {
        name: ENCODE,
        spile: "write-encoded {encoded} {single} 1024",
        c: "encode {peer} {single} 1024",
        ..ENCODED
    },
    Task {
        name: DECODE,
        spile: "read-encoded {encoded} {single} 1024",
        c: "decode {peer} {single} 1024",
        times: 3,
        ..ENCODED
    },
    Task {
        name: ENCODE_FULL,
        spile: "write-encoded {encoded} {double} 1024",
        c: "encode {peer} {double} 1024",
        field: "{double}",
        ..ENCODED
    },
    Task {
        name: DECODE_FULL,
        spile: "read-encoded {encoded} {double} 1024",
        c: "decode {peer} {double} 1024",
        field: "{double}",
        times: 3,
        ..ENCODED
    },
    Task { name: FORMAT_SHORT, spile: "format-entries 2 {entries}", ..ENTRIES },
    Task { name: PARSE_SHORT, spile: "parse-entries 2 {entries}", ..ENTRIES },
    Task { name: FORMAT_LONG, spile: "format-entries 12 {entries}", ..ENTRIES },
    Task { name: PARSE_LONG, spile: "parse-entries 12 {entries}", ..ENTRIES },
];

/// Size entries that are formatted and parsed.
pub(super) const NUMBER_OF_ENTRIES: u64 = 1_000_000;

/// What stands for the words in braces.
pub(super) type Words = BTreeMap<&'static str, String>;

pub(super) fn words(folder: &Path, scale: f64) -> Words {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let scaled = |full: f64| ((full * scale) as u64).max(1);
    let mut words = Words::new();
    for name in ["array", "plain", "encoded", "peer", "single", "double"] {
        words.insert(name, path(name));
    }
    words.insert("bytes", (scaled(1024.0) << 20).to_string());
    words.insert("number", scaled(1e6).to_string());
    words.insert("entries", NUMBER_OF_ENTRIES.to_string());
    words.insert("single-count", scaled(1e5).to_string());
    words.insert("double-count", scaled(2e4).to_string());
    words
}

pub(super) fn filled(line: &str, words: &Words) -> String {
    let mut out = line.to_string();
    for (name, value) in words {
        out = out.replace(&format!("{{{name}}}"), value);
    }
    out
}

/// Elements of 128 doubles, rows of ten of them: two waves that cross, one of them damped, with all
/// digits and rounded to single precision.
pub(super) fn make_fields(words: &Words) -> Result<()> {
    for (file, count) in [("single", "single-count"), ("double", "double-count")] {
        let make = || -> std::io::Result<()> {
            let mut out = BufWriter::new(fs::File::create(&words[file])?);
            let count: u64 = words[count].parse().unwrap_or(0);
            for k in 0..128 * count {
                let (x, y) = ((k % 1280) as f64 / 1280.0, (k / 1280) as f64 / 1000.0);
                let damped = 0.5 * (TAU * (5.0 * y - 2.0 * x)).cos() * (-x).exp();
                let value = (TAU * (3.0 * x + y)).sin() + damped;
                let value = if file == "single" { f64::from(value as f32) } else { value };
                out.write_all(&value.to_le_bytes())?;
            }
            out.flush()
        };
        make().map_err(|e| format!("{}: {e}", words[file]))?;
    }
    Ok(())
}
