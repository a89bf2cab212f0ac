//! `cargo xtask bench ops`: conversions and comparisons, next to plain copying and reading.

use std::path::Path;

use super::report::Promise;
use super::rounds::{Arena, Bench, Contestant, Results, Task, Words};
use super::{Options, compile, example, or_say};
use crate::Result;
use crate::shell::program;

const C: &str = "C";
const SPILE: &str = "spile";

const SDF_ZARR: &str = "SDF to Zarr";
const SDF_NETCDF: &str = "SDF to NetCDF-4";
const SDF_SCDA: &str = "SDF to scda";
const GSD_NPZ: &str = "GSD to npz";
const TAF_NPY: &str = "TAF to npy";
const SCDA_NPY: &str = "scda to npy";
const DIFF: &str = "two SDF files compared";

const PROMISED: [&str; 4] = [SDF_ZARR, GSD_NPZ, TAF_NPY, SCDA_NPY];

macro_rules! conversion {
    ($name:expr, $from:literal, $to:literal) => {
        Task {
            name: $name,
            lines: &[
                (&[SPILE], concat!("convert {", $from, "} {new}.", $to)),
                (&[C], concat!("copy {", $from, "} {copy}")),
            ],
            times: 3,
            warm: true,
        }
    };
}

const TASKS: [Task; 7] = [
    conversion!(SDF_ZARR, "sdf", "zarr"),
    conversion!(SDF_NETCDF, "sdf", "nc"),
    conversion!(SDF_SCDA, "sdf", "scda"),
    conversion!(GSD_NPZ, "gsd", "npz"),
    conversion!(TAF_NPY, "taf", "npy"),
    conversion!(SCDA_NPY, "scda", "npy"),
    Task {
        name: DIFF,
        lines: &[(&[SPILE], "diff {sdf} {twin}"), (&[C], "read {sdf} {length of sdf} 0 262144")],
        times: 3,
        warm: true,
    },
];

const HOW: &str = "\
Files have 1 GB at scale 1: SDF eight fields of three dimensions whose first index runs fastest, GSD frames of
10,000 positions, TAF and scda one array of doubles.

- **C** is `benches/plain.c`: the file copied with `read()` and `write()` through 256 KiB, and synced; for the
  comparison one of the two files is read.
- **spile** is `crates/cli/examples/bench_ops`: what `spile convert` and `spile diff` do, from opening the file
  to the new one having its name. The fields stay in the order they have wherever the format can say so;
  NetCDF cannot, and they are turned.
- A new file is removed when the clock has stopped. The contestants take turns, and the median counts.
";

const BENCH: Bench = Bench {
    name: "ops",
    files: 6.0e9,
    tasks: &TASKS,
    columns: &[C, SPILE],
    ratios: &[(SPILE, C)],
    cell,
    remark: |_| String::new(),
    promises,
    how: HOW,
};

/// Gigabytes in a second, of what the contestant went through.
fn cell(results: &Results, task: &'static str, who: &'static str) -> String {
    let found = results.seconds(task, who).zip(results.bytes(task, who));
    found.map_or("-".into(), |(seconds, bytes)| format!("{:.2} GB/s", bytes as f64 / seconds / 1e9))
}

fn promises(results: &Results) -> Vec<Promise> {
    let conversion = |task: &'static str| {
        let text = format!("{task}: 0.7 times as fast as copying or faster");
        results.faster(text, task, SPILE, C, 0.7)
    };
    let mut all: Vec<Promise> = PROMISED.into_iter().map(conversion).collect();
    // Two files are read where C reads one.
    let text = format!("{DIFF}: at half the speed of reading them or faster");
    all.push(results.faster(text, DIFF, SPILE, C, 0.25));
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = example("spile-cli", "bench_ops")?;
        let c = or_say("C", compile(folder.join("peer-in-c"), &["benches/plain.c"]));
        let words = words(folder);
        let bytes = ((1e9 * options.scale) as u64).max(1);
        let mut maker = Contestant::new(SPILE, {
            let driver = driver.clone();
            move || program(&driver)
        });
        for format in ["sdf", "gsd", "taf", "scda"] {
            maker.ask(&format!("make {format} {} {bytes}", words[format]))?;
        }
        maker.ask(&format!("make sdf {} {bytes}", words["twin"]))?;
        let incomplete = c.is_none();
        let programs = [(SPILE, Some(driver)), (C, c)];
        let contestants = programs
            .into_iter()
            .filter_map(|(name, path)| {
                path.map(|path| Contestant::new(name, move || program(&path)))
            })
            .collect();
        Ok(Arena { contestants, words, incomplete, versions: String::new() })
    })
}

fn words(folder: &Path) -> Words {
    let files = [
        ("sdf", "dump.sdf"),
        ("twin", "twin.sdf"),
        ("gsd", "run.gsd"),
        ("taf", "samples.taf"),
        ("scda", "fields.scda"),
        ("new", "new"),
        ("copy", "copy"),
    ];
    let path = |file: &str| folder.join(file).to_string_lossy().into_owned();
    files.into_iter().map(|(name, file)| (name, path(file))).collect()
}
