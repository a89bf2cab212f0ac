//! The jobs, the tasks and their sizes.

use std::f64::consts::TAU;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use super::super::harness::{Task, Values, cold_task, paths, task};
use crate::Result;
use crate::shell::program;

/// C, with default settings and with memory that is kept (see `peer.c`).
pub(super) const C: &str = "C";
pub(super) const C_KEEPS: &str = "C, memory kept";

/// A configuration of the driver. Ranks that are threads share the threads that compress.
pub(super) struct Job {
    pub(super) name: &'static str,
    ranks: usize,
    threads: usize,
    /// Whether ranks are MPI processes.
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
    /// The command that starts the driver; for MPI, `bench_mpi` in the same folder.
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

/// Jobs that read and write plain sections, and jobs that encode.
const PLAIN: &[&str] = &[ONE, TWO_RANKS, MPI_ONE, MPI_TWO];
const ENCODED: &[&str] = &[ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO];

/// C writes or reads all bytes of the file that spile has written.
const C_WRITE: (&[&str], &str) = (&[C], "write {plain} {length of array}");
const C_READ: (&[&str], &str) = (&[C], "read {array} {length of array}");

pub(super) const TASKS: [Task; 16] = [
    cold_task(WRITE_8, 1, &[(PLAIN, "write-array {array} {bytes} 8"), C_WRITE]),
    task(READ_8, 1, &[(PLAIN, "read-array {array} {bytes} 8"), C_READ]),
    cold_task(WRITE_64, 1, &[(PLAIN, "write-array {array} {bytes} 64"), C_WRITE]),
    task(READ_64, 1, &[(PLAIN, "read-array {array} {bytes} 64"), C_READ]),
    cold_task(WRITE_MIB, 1, &[(PLAIN, "write-array {array} {bytes} 1048576"), C_WRITE]),
    task(READ_MIB, 1, &[(PLAIN, "read-array {array} {bytes} 1048576"), C_READ]),
    cold_task(WRITE_V, 3, &[(PLAIN, "write-varray {array} {number}"), C_WRITE]),
    task(READ_V, 3, &[(PLAIN, "read-varray {array} {number}"), C_READ]),
    cold_task(
        ENCODE,
        1,
        &[
            (ENCODED, "write-encoded {encoded} {single} 1024"),
            (&[C, C_KEEPS], "encode {peer} {single} 1024"),
        ],
    ),
    task(
        DECODE,
        3,
        &[(ENCODED, "read-encoded {encoded} {single} 1024"), (&[C], "decode {peer} {single} 1024")],
    ),
    cold_task(
        ENCODE_FULL,
        1,
        &[
            (ENCODED, "write-encoded {encoded} {double} 1024"),
            (&[C], "encode {peer} {double} 1024"),
        ],
    ),
    task(
        DECODE_FULL,
        3,
        &[(ENCODED, "read-encoded {encoded} {double} 1024"), (&[C], "decode {peer} {double} 1024")],
    ),
    cold_task(FORMAT_SHORT, 3, &[(&[ONE], "format-entries 2 {entries}")]),
    cold_task(PARSE_SHORT, 3, &[(&[ONE], "parse-entries 2 {entries}")]),
    cold_task(FORMAT_LONG, 3, &[(&[ONE], "format-entries 12 {entries}")]),
    cold_task(PARSE_LONG, 3, &[(&[ONE], "parse-entries 12 {entries}")]),
];

/// Size entries that are formatted and parsed.
pub(super) const NUMBER_OF_ENTRIES: u64 = 1_000_000;

pub(super) fn values(folder: &Path, scale: f64) -> Values {
    let files = ["array", "plain", "encoded", "peer", "single", "double"];
    let mut values = paths(folder, &files.map(|name| (name, name)));
    let scaled = |full: f64| ((full * scale) as u64).max(1);
    let numbers = [
        ("bytes", scaled(1024.0) << 20),
        ("number", scaled(1e6)),
        ("entries", NUMBER_OF_ENTRIES),
        ("single-count", scaled(1e5)),
        ("double-count", scaled(2e4)),
    ];
    values.extend(numbers.map(|(name, number)| (name, number.to_string())));
    values
}

/// Writes the elements to compress, 128 doubles each: two crossing waves, one of them damped, with all
/// digits and rounded to single precision.
pub(super) fn make_fields(values: &Values) -> Result<()> {
    for (file, count) in [("single", "single-count"), ("double", "double-count")] {
        let make = || -> std::io::Result<()> {
            let mut out = BufWriter::new(fs::File::create(&values[file])?);
            let count: u64 = values[count].parse().unwrap_or(0);
            for k in 0..128 * count {
                let (x, y) = ((k % 1280) as f64 / 1280.0, (k / 1280) as f64 / 1000.0);
                let damped = 0.5 * (TAU * (5.0 * y - 2.0 * x)).cos() * (-x).exp();
                let value = (TAU * (3.0 * x + y)).sin() + damped;
                let value = if file == "single" { f64::from(value as f32) } else { value };
                out.write_all(&value.to_le_bytes())?;
            }
            out.flush()
        };
        make().map_err(|e| format!("{}: {e}", values[file]))?;
    }
    Ok(())
}
