//! `cargo xtask bench taf`: TAF files, compared with NumPy, h5py and C.
//!
//! | file | content |
//! |---|---|
//! | `tasks` | the tasks and the targets |
//! | `files` | creates the files |

mod files;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};

use super::harness::{Bench, Implementation, Results, Setup, Values};
use super::target::mib;
use super::{Options, build, compile, optional, versions};
use crate::shell::{output, program};
use crate::{Result, tools};
use tasks::{ANSWERS, C, CROP, H5PY, NUMPY, ONE, TASKS, TRANSPOSE, TWO};

const METHOD: &str = "\
Sizes at scale 1: 10^9 samples of uint8 (1 GB), 10^8 of int16 (0.2 GB), 20000 x 20000 of float32
(1.6 GB), 2 * 10^6 lines of text. Other scales change all sizes except the window
(10^6 samples) and the small file (2 * 10^6).

- **C** is `benches/taf/peer.c`, one thread, `-O3 -march=native`, `read()` through a small reused buffer: about the
  limit of one core. **numpy** and **h5py** are `benches/taf/peer.py`; the HDF5 file is chunked and compressed with
  deflate, and measured once.
- The time of spile is that of the entire program, from start to end. The others measure only the task: the start of
  Python and imports are not included.
- Implementations alternate; values are medians. Files are in the page cache. Writing includes `fsync()`.
- Statistics are count, minimum, maximum, mean and standard deviation of the scaled values. An envelope is the minimum
  and maximum of each of 1000 intervals; spile also draws it and writes the SVG.
- Results and written bytes of the implementations are compared with each other.
- Memory is the peak resident set of spile.
";

const BENCH: Bench = Bench {
    name: "taf",
    files: 12.0e9,
    tasks: &TASKS,
    columns: &[C, NUMPY, H5PY, ONE, TWO],
    ratios: &[(ONE, C), (ONE, NUMPY), (TWO, NUMPY)],
    cell: Results::time,
    note: |results| {
        let memory =
            |task: &'static str| Some(format!("{task} {}", mib(results.bytes(task, ONE)?)));
        let all: Vec<String> = TASKS.iter().filter_map(|task| memory(task.name)).collect();
        format!("\nMemory of spile on one thread: {}.\n", all.join("; "))
    },
    targets: tasks::targets,
    method: METHOD,
};

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let c = compile(folder.join("c"), &["benches/taf/peer.c"])?;
        let spile = options.spile.clone().map_or_else(build, Ok)?;
        let packages = ["numpy", "h5py"];
        let python = optional("NumPy and h5py", tools::python(&packages.map(String::from)));
        println!("creating files at scale {}", options.scale);
        let values = files::make(folder, options.scale)?;
        let peer = "benches/taf/peer.py";
        if let Some(python) = &python {
            output(program(python).args([peer, "pack", &values["u8"], &values["h5"]]))?;
        }
        let mut setup = Setup::new(values);
        setup.add(Implementation::program(C, &c, &[]));
        for name in [NUMPY, H5PY] {
            let one = python.as_deref().map(|p| Implementation::program(name, p, &[peer, name]));
            setup.add_optional(one.map(|one| if name == H5PY { one.once() } else { one }));
        }
        for name in [ONE, TWO] {
            let prefix = format!("run {} ", spile.display());
            setup.add(Implementation::program(name, &c, &[]).prefixed(prefix));
        }
        setup.versions = python.map_or(String::new(), |p| versions(&p, &packages));
        setup.after_run = compare_output;
        setup.after_all = compare_results;
        Ok(setup)
    })
}

/// Compares written files with those of C, which are kept, and removes all others.
fn compare_output(values: &Values, task: &str, name: &str) -> Result<()> {
    let path = |extension: &str| PathBuf::from(format!("{}.{extension}", values["out"]));
    let reference = path(&format!("{}-reference", task.replace(' ', "-")));
    let result = match name {
        C if path("raw").exists() => fs::rename(path("raw"), &reference).map_err(|e| e.to_string()),
        NUMPY if path("raw").exists() => same_data(&path("raw"), 0, &reference),
        ONE | TWO if [CROP, TRANSPOSE].contains(&task) => {
            same_data(&path("taf"), values["offset"].parse().unwrap_or(0), &reference)
        }
        _ => Ok(()),
    };
    for extension in ["raw", "taf", "txt", "svg"] {
        let _ = fs::remove_file(path(extension));
    }
    result
}

/// Fails unless `file` has the bytes of `reference` at `offset`, or there is no reference yet.
fn same_data(file: &Path, offset: u64, reference: &Path) -> Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    if !reference.exists() {
        return Ok(());
    }
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
            return Err("the output differs from that of C".into());
        }
    }
}

/// Compares the results of NumPy and h5py with those of C.
fn compare_results(values: &Values, results: &mut Results) {
    let number = |name: &str| values[name].parse::<f64>().unwrap_or(f64::NAN);
    let (a, b) = (number("intercept"), number("slope"));
    for (task, count) in ANSWERS {
        let Some(c) = results.result(task, C) else { continue };
        // For statistics, C returns sums of stored values and the others those of scaled values.
        let expected = match *c {
            [low, high, sum, squares] => {
                let mean = sum / number(count);
                let deviation = b.abs() * (squares / number(count) - mean * mean).sqrt();
                vec![a + b * low, a + b * high, a + b * mean, deviation]
            }
            _ => c.to_vec(),
        };
        for name in [NUMPY, H5PY] {
            let Some(found) = results.result(task, name) else { continue };
            let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * (1.0 + y.abs());
            if found.len() != expected.len() || !found.iter().zip(&expected).all(close) {
                let text = format!("{task} ({name}): expected {expected:?}, found {found:?}");
                results.problem(text);
            }
        }
    }
}
