//! `cargo xtask bench python`: what users of the Python package wait for, next to sdf-xarray, gsd.hoomd
//! and `numpy.memmap`, in one run.

use std::path::Path;

use super::report::Promise;
use super::rounds::{Arena, Bench, Contestant, Results, Task, Words};
use super::{Options, driver, versions};
use crate::python::release;
use crate::shell::{program, root};
use crate::{Result, tools};

const SPILE: &str = "spile";
const FRESH: &str = "spile, just started";
const XARRAY: &str = "sdf-xarray";
const XARRAY_FRESH: &str = "sdf-xarray, just started";
const GSD: &str = "gsd.hoomd";
const NUMPY: &str = "numpy.memmap";

const OPEN: &str = "open 1 GB with particles";
const PLANE: &str = "a plane of a field of 134 MB";
const BLOCKS: &str = "open 5,000 blocks";
const TREE: &str = "spile.open of 5,000 blocks";
const SERIES: &str = "open 200 dumps";
const MEAN: &str = "mean over 200 dumps";
const FEW: &str = "frames of 100 particles";
const MANY: &str = "frames of 1,000 particles";
const LOG: &str = "read_log, 4 quantities";
const VIEWS: &str = "1,000 windows of a mapped TAF file";
const COPIES: &str = "1,000 windows of a TAF file, copied";

/// Bytes of memory that opening a large dump may cost.
const OPEN_MEMORY: u64 = 60 << 20;

/// Who opens dumps, and who does so in a process of its own.
const BOTH: &[&str] = &[SPILE, XARRAY];
const BOTH_FRESH: &[&str] = &[FRESH, XARRAY_FRESH];

const TASKS: [Task; 11] = [
    Task { name: OPEN, lines: &[(BOTH_FRESH, "open {dump}")], times: 2, warm: true },
    Task { name: PLANE, lines: &[(BOTH, "plane {dump} {middle}")], times: 3, warm: true },
    Task { name: BLOCKS, lines: &[(BOTH, "blocks {blocks}")], times: 3, warm: true },
    Task { name: TREE, lines: &[(&[SPILE], "tree {blocks}")], times: 5, warm: true },
    Task { name: SERIES, lines: &[(BOTH, "series {short}")], times: 1, warm: true },
    Task { name: MEAN, lines: &[(BOTH_FRESH, "mean {short}")], times: 1, warm: true },
    Task { name: FEW, lines: &[(&[SPILE, GSD], "frames {few} {frames}")], times: 2, warm: true },
    Task { name: MANY, lines: &[(&[SPILE, GSD], "frames {many} {frames}")], times: 2, warm: true },
    Task { name: LOG, lines: &[(&[SPILE, GSD], "log {log}")], times: 2, warm: true },
    Task {
        name: VIEWS,
        lines: &[(&[SPILE, NUMPY], "windows {taf} {offset} {length}")],
        times: 3,
        warm: true,
    },
    Task {
        name: COPIES,
        lines: &[(&[SPILE, NUMPY], "copies {taf} {offset} {length}")],
        times: 3,
        warm: true,
    },
];

const HOW: &str = "\
Sizes at scale 1: the dumps of `bench sdf` (1 GB with 4 fields of 256 x 256 x 256 doubles and 2 * 10^7
particles; 5,000 blocks; 200 small dumps); 2,000 frames of 100 and of 1,000 particles and a log of 20,000
frames, as in `bench gsd`; a TAF file of 10^8 samples of float32.

- Everybody is `benches/python/peer.py` with another package, in the same Python. Starting it and importing
  is not counted.
- Dumps are opened by `xarray.open_dataset`, with `keep_particles=True` for the one of 1 GB; the series by
  `spile.open_series(...).to_xarray(chunks={\"time\": 1})` and by `sdf_xarray.open_mfdataset`. The mean is
  computed by dask.
- A frame is read, and positions, velocities and types are taken from it.
- Memory is what the peak resident set of a new process grows by.
- The contestants take turns, round after round, and the median counts. Files are in the page cache.
";

const BENCH: Bench = Bench {
    name: "python",
    files: 3.2e9,
    tasks: &TASKS,
    columns: &[SPILE, FRESH, XARRAY, XARRAY_FRESH, GSD, NUMPY],
    ratios: &[(SPILE, XARRAY), (FRESH, XARRAY_FRESH), (SPILE, GSD), (SPILE, NUMPY)],
    cell: Results::time,
    remark: |results| {
        let mib = |task, who| {
            let bytes = results.bytes(task, who);
            bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / 1_048_576.0))
        };
        let words = |task| format!("{} and {}", mib(task, FRESH), mib(task, XARRAY_FRESH));
        format!(
            "\nMemory of spile and sdf-xarray in MiB: {OPEN} {}, {MEAN} {}.\n",
            words(OPEN),
            words(MEAN)
        )
    },
    promises,
    how: HOW,
};

fn promises(results: &Results) -> Vec<Promise> {
    let bytes = results.bytes(OPEN, FRESH);
    let twenty = format!("{OPEN}: 20 times as fast as sdf-xarray or faster");
    let three = format!("{BLOCKS}: 3 times as fast as sdf-xarray or faster");
    let mut all = vec![
        results.faster(twenty, OPEN, FRESH, XARRAY_FRESH, 20.0),
        Promise {
            text: format!("{OPEN}: less than 60 MiB of memory"),
            found: bytes.map(|n| (format!("{:.1} MiB", n as f64 / 1_048_576.0), n < OPEN_MEMORY)),
        },
        results.faster(three, BLOCKS, SPILE, XARRAY, 3.0),
        results.within(format!("{TREE}: less than 15 ms"), TREE, SPILE, 0.015),
        results.within(format!("{SERIES}: less than 2 s"), SERIES, SPILE, 2.0),
    ];
    for task in [FEW, LOG] {
        let text = format!("{task}: 10 times as fast as gsd.hoomd or faster");
        all.push(results.faster(text, task, SPILE, GSD, 10.0));
    }
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let packages = ["xarray", "dask", "sdf-xarray", "gsd", "numpy"];
        let mut all = packages.map(String::from).to_vec();
        all.extend(["maturin", "wheel"].map(String::from));
        let python = tools::python(&all)?;
        release(&python)?;
        let words = files(folder, &python, options.scale)?;
        let one = |name: &'static str, who: &'static str| {
            let python = python.clone();
            Contestant::new(name, move || {
                let mut command = program(&python);
                command.arg(root().join("benches/python/peer.py")).arg(who);
                command
            })
        };
        let contestants = vec![
            one(SPILE, "spile"),
            one(FRESH, "spile").started_each_time(),
            one(XARRAY, "sdf-xarray"),
            one(XARRAY_FRESH, "sdf-xarray").started_each_time(),
            one(GSD, "gsd"),
            one(NUMPY, "numpy"),
        ];
        let versions = versions(&python, &packages);
        Ok(Arena { contestants, words, incomplete: false, versions })
    })
}

/// The files, made by the benches of the formats and by the package itself.
fn files(folder: &Path, python: &Path, scale: f64) -> Result<Words> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let side = (256.0 * scale.cbrt()).round().max(8.0) as u64;
    let frames = (2e3 * scale).round().max(20.0) as u64;
    let length = (1e8 * scale).round().max(1e4) as u64;
    let mut words = Words::new();
    for (name, file) in [
        ("dump", "dump.sdf"),
        ("blocks", "blocks.sdf"),
        ("short", "series"),
        ("few", "few.gsd"),
        ("many", "many.gsd"),
        ("log", "log.gsd"),
        ("taf", "samples.taf"),
    ] {
        words.insert(name, path(file));
    }
    let numbers = [("middle", side / 2), ("frames", frames), ("length", length)];
    words.extend(numbers.map(|(name, number)| (name, number.to_string())));
    let ask = |format: &str, tasks: &[String]| -> Result<()> {
        let driver = driver(format)?;
        let mut maker = Contestant::new(SPILE, move || program(&driver));
        tasks.iter().try_for_each(|task| maker.ask(task).map(drop))
    };
    let particles = (2e7 * scale).round().max(40.0) as u64;
    let cells = side.pow(3);
    ask("sdf", &[format!("make {} {cells} 4 {particles} 5000 200", folder.display())])?;
    let logged = 10 * frames;
    ask(
        "gsd",
        &[
            format!("make-hoomd {} 100 {frames}", words["few"]),
            format!("make-hoomd {} 1000 {frames}", words["many"]),
            format!("make-hoomd {} 1 {logged}", words["log"]),
        ],
    )?;
    let python = python.to_path_buf();
    let mut maker = Contestant::new(SPILE, move || {
        let mut command = program(&python);
        command.arg(root().join("benches/python/peer.py")).arg("spile");
        command
    });
    let offset = maker.ask(&format!("make-taf {} {length}", words["taf"]))?.bytes;
    words.insert("offset", offset.to_string());
    Ok(words)
}
