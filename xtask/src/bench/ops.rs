//! `cargo xtask bench ops`: conversions and comparisons, compared with copying and reading.

use super::harness::{Bench, Implementation, Results, Setup, Task, paths, task};
use super::target::Target;
use super::{Options, compile, example, optional};
use crate::Result;

const C: &str = "C";
const SPILE: &str = "spile";

const SDF_ZARR: &str = "SDF to Zarr";
const SDF_NETCDF: &str = "SDF to NetCDF-4";
const SDF_SCDA: &str = "SDF to scda";
const GSD_NPZ: &str = "GSD to npz";
const TAF_NPY: &str = "TAF to npy";
const SCDA_NPY: &str = "scda to npy";
const DIFF: &str = "comparison of two SDF files";

macro_rules! conversion {
    ($name:expr, $from:literal, $to:literal) => {
        task(
            $name,
            3,
            &[
                (&[SPILE], concat!("convert {", $from, "} {new}.", $to)),
                (&[C], concat!("copy {", $from, "} {copy}")),
            ],
        )
    };
}

const TASKS: [Task; 7] = [
    conversion!(SDF_ZARR, "sdf", "zarr"),
    conversion!(SDF_NETCDF, "sdf", "nc"),
    conversion!(SDF_SCDA, "sdf", "scda"),
    conversion!(GSD_NPZ, "gsd", "npz"),
    conversion!(TAF_NPY, "taf", "npy"),
    conversion!(SCDA_NPY, "scda", "npy"),
    task(
        DIFF,
        3,
        &[(&[SPILE], "diff {sdf} {twin}"), (&[C], "read {sdf} {length of sdf} 0 262144")],
    ),
];

const METHOD: &str = "\
Files have 1 GB at scale 1: SDF eight three-dimensional fields in Fortran order, GSD frames of 10,000 positions,
TAF and scda one array of doubles.

- **C** is `benches/plain.c`: copies the file with `read()`, `write()` and `fsync()` through a buffer of 256 KiB;
  for the comparison it reads one of the two files.
- **spile** is `crates/cli/examples/bench_ops`: the work of `spile convert` and `spile diff`, from opening the file
  to the atomic rename of the new one. Fields keep their element order if the format supports it; for NetCDF
  they are transposed.
- New files are removed after each measurement. Implementations alternate; values are medians.
";

const BENCH: Bench = Bench {
    name: "ops",
    files: 6.0e9,
    tasks: &TASKS,
    columns: &[C, SPILE],
    ratios: &[(SPILE, C)],
    cell: |results, task, name| results.rate(task, name, name),
    note: |_| String::new(),
    targets,
    method: METHOD,
};

fn targets(results: &Results) -> Vec<Target> {
    let conversions = [SDF_ZARR, GSD_NPZ, TAF_NPY, SCDA_NPY].into_iter();
    let mut all: Vec<Target> =
        conversions.map(|task| results.faster(task, SPILE, C, 0.7)).collect();
    // Half the reading speed: spile reads two files and C one.
    all.push(results.faster(DIFF, SPILE, C, 0.25));
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = example("spile-cli", "bench_ops")?;
        let c = optional(C, compile(folder.join("c"), &["benches/plain.c"]));
        let values = paths(
            folder,
            &[
                ("sdf", "dump.sdf"),
                ("twin", "twin.sdf"),
                ("gsd", "run.gsd"),
                ("taf", "samples.taf"),
                ("scda", "fields.scda"),
                ("new", "new"),
                ("copy", "copy"),
            ],
        );
        let bytes = ((1e9 * options.scale) as u64).max(1);
        let mut spile = Implementation::program(SPILE, &driver, &[]);
        for (format, file) in
            [("sdf", "sdf"), ("gsd", "gsd"), ("taf", "taf"), ("scda", "scda"), ("sdf", "twin")]
        {
            spile.run(&format!("make {format} {} {bytes}", values[file]))?;
        }
        let mut setup = Setup::new(values);
        setup.add(spile);
        setup.add_optional(c.map(|c| Implementation::program(C, &c, &[])));
        Ok(setup)
    })
}
