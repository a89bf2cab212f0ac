//! The jobs, the tasks and their sizes.

use std::f64::consts::TAU;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use super::super::rounds::{Task, Words};
use crate::Result;
use crate::shell::program;

/// The contestants that are not spile: plain C, and C that keeps its memory (see `peer.c`).
pub(super) const C: &str = "C";
pub(super) const C_KEEPS: &str = "C, memory kept";

/// What spile's driver runs as. Ranks that are threads share the threads that compress.
pub(super) struct Job {
    pub(super) name: &'static str,
    ranks: usize,
    threads: usize,
    /// Ranks are processes of MPI.
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

pub(super) const WRITE_8: &str = "write A, E = 8";
pub(super) const READ_8: &str = "read A, E = 8";
pub(super) const WRITE_64: &str = "write A, E = 64";
pub(super) const READ_64: &str = "read A, E = 64";
pub(super) const WRITE_MIB: &str = "write A, E = 1 MiB";
pub(super) const READ_MIB: &str = "read A, E = 1 MiB";
pub(super) const WRITE_V: &str = "write V";
pub(super) const READ_V: &str = "read V";
pub(super) const ENCODE: &str = "write encoded A, single precision";
pub(super) const DECODE: &str = "read encoded A, single precision";
pub(super) const ENCODE_FULL: &str = "write encoded A, all digits";
pub(super) const DECODE_FULL: &str = "read encoded A, all digits";
pub(super) const FORMAT_SHORT: &str = "format sizes, 1 or 2 digits";
pub(super) const PARSE_SHORT: &str = "parse sizes, 1 or 2 digits";
pub(super) const FORMAT_LONG: &str = "format sizes, 1 to 12 digits";
pub(super) const PARSE_LONG: &str = "parse sizes, 1 to 12 digits";

/// Those that read and write plain sections, and those that encode.
const PLAIN: &[&str] = &[ONE, TWO_RANKS, MPI_ONE, MPI_TWO];
const ENCODED: &[&str] = &[ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO];

/// What C does next to a section that spile writes or reads: all its bytes.
const C_WRITE: (&[&str], &str) = (&[C], "write {plain} {length of array}");
const C_READ: (&[&str], &str) = (&[C], "read {array} {length of array}");

pub(super) const TASKS: [Task; 16] = [
    Task {
        name: WRITE_8,
        lines: &[(PLAIN, "write-array {array} {bytes} 8"), C_WRITE],
        times: 1,
        warm: false,
    },
    Task {
        name: READ_8,
        lines: &[(PLAIN, "read-array {array} {bytes} 8"), C_READ],
        times: 1,
        warm: true,
    },
    Task {
        name: WRITE_64,
        lines: &[(PLAIN, "write-array {array} {bytes} 64"), C_WRITE],
        times: 1,
        warm: false,
    },
    Task {
        name: READ_64,
        lines: &[(PLAIN, "read-array {array} {bytes} 64"), C_READ],
        times: 1,
        warm: true,
    },
    Task {
        name: WRITE_MIB,
        lines: &[(PLAIN, "write-array {array} {bytes} 1048576"), C_WRITE],
        times: 1,
        warm: false,
    },
    Task {
        name: READ_MIB,
        lines: &[(PLAIN, "read-array {array} {bytes} 1048576"), C_READ],
        times: 1,
        warm: true,
    },
    Task {
        name: WRITE_V,
        lines: &[(PLAIN, "write-varray {array} {number}"), C_WRITE],
        times: 3,
        warm: false,
    },
    Task {
        name: READ_V,
        lines: &[(PLAIN, "read-varray {array} {number}"), C_READ],
        times: 3,
        warm: true,
    },
    Task {
        name: ENCODE,
        lines: &[
            (ENCODED, "write-encoded {encoded} {single} 1024"),
            (&[C, C_KEEPS], "encode {peer} {single} 1024"),
        ],
        times: 1,
        warm: false,
    },
    Task {
        name: DECODE,
        lines: &[
            (ENCODED, "read-encoded {encoded} {single} 1024"),
            (&[C], "decode {peer} {single} 1024"),
        ],
        times: 3,
        warm: true,
    },
    Task {
        name: ENCODE_FULL,
        lines: &[
            (ENCODED, "write-encoded {encoded} {double} 1024"),
            (&[C], "encode {peer} {double} 1024"),
        ],
        times: 1,
        warm: false,
    },
    Task {
        name: DECODE_FULL,
        lines: &[
            (ENCODED, "read-encoded {encoded} {double} 1024"),
            (&[C], "decode {peer} {double} 1024"),
        ],
        times: 3,
        warm: true,
    },
    entries(FORMAT_SHORT, &[(&[ONE], "format-entries 2 {entries}")]),
    entries(PARSE_SHORT, &[(&[ONE], "parse-entries 2 {entries}")]),
    entries(FORMAT_LONG, &[(&[ONE], "format-entries 12 {entries}")]),
    entries(PARSE_LONG, &[(&[ONE], "parse-entries 12 {entries}")]),
];

const fn entries(
    name: &'static str,
    lines: &'static [(&'static [&'static str], &'static str)],
) -> Task {
    Task { name, lines, times: 3, warm: false }
}

/// Size entries that are formatted and parsed.
pub(super) const NUMBER_OF_ENTRIES: u64 = 1_000_000;

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
