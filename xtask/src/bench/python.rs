//! `cargo xtask bench python`: the Python package, compared with sdf-xarray, gsd.hoomd and `numpy.memmap`.

use std::path::Path;

use super::harness::{Bench, Implementation, Results, Setup, Task, Values, paths, task};
use super::target::{Target, mib};
use super::{Options, driver, versions};
use crate::python::install_release;
use crate::{Result, tools};

const SPILE: &str = "spile";
const FRESH: &str = "spile, new process";
const XARRAY: &str = "sdf-xarray";
const XARRAY_FRESH: &str = "sdf-xarray, new process";
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

const BOTH: &[&str] = &[SPILE, XARRAY];
const BOTH_FRESH: &[&str] = &[FRESH, XARRAY_FRESH];

const TASKS: [Task; 11] = [
    task(OPEN, 2, &[(BOTH_FRESH, "open {dump}")]),
    task(PLANE, 3, &[(BOTH, "plane {dump} {middle}")]),
    task(BLOCKS, 3, &[(BOTH, "blocks {blocks}")]),
    task(TREE, 5, &[(&[SPILE], "tree {blocks}")]),
    task(SERIES, 1, &[(BOTH, "series {short}")]),
    task(MEAN, 1, &[(BOTH_FRESH, "mean {short}")]),
    task(FEW, 2, &[(&[SPILE, GSD], "frames {few} {frames}")]),
    task(MANY, 2, &[(&[SPILE, GSD], "frames {many} {frames}")]),
    task(LOG, 2, &[(&[SPILE, GSD], "log {log}")]),
    task(VIEWS, 3, &[(&[SPILE, NUMPY], "windows {taf} {offset} {length}")]),
    task(COPIES, 3, &[(&[SPILE, NUMPY], "copies {taf} {offset} {length}")]),
];

const METHOD: &str = "\
Sizes at scale 1: the dumps of `bench sdf` (1 GB with 4 fields of 256 x 256 x 256 doubles and 2 * 10^7
particles; 5,000 blocks; 200 small dumps); 2,000 frames of 100 and of 1,000 particles and a log of 20,000
frames, as in `bench gsd`; a TAF file of 10^8 samples of float32.

- All implementations are `benches/python/peer.py` with different packages, in the same Python. Its start and
  imports are not included.
- Dumps are opened by `xarray.open_dataset`, the one of 1 GB with `keep_particles=True`; the series by
  `spile.open_series(...).to_xarray(chunks={\"time\": 1})` and by `sdf_xarray.open_mfdataset`. The mean is
  computed by dask.
- A frame is read and its positions, velocities and types are accessed.
- Memory is the increase of the peak resident set of a new process.
- Implementations alternate; values are medians. Files are in the page cache.
";

const BENCH: Bench = Bench {
    name: "python",
    files: 3.2e9,
    tasks: &TASKS,
    columns: &[SPILE, FRESH, XARRAY, XARRAY_FRESH, GSD, NUMPY],
    ratios: &[(SPILE, XARRAY), (FRESH, XARRAY_FRESH), (SPILE, GSD), (SPILE, NUMPY)],
    cell: Results::time,
    note: |results| {
        let memory = |task| {
            let [ours, theirs] =
                [FRESH, XARRAY_FRESH].map(|name| results.bytes(task, name).map_or("-".into(), mib));
            format!("{task}: {ours} and {theirs}")
        };
        format!("\nMemory of spile and sdf-xarray: {}; {}.\n", memory(OPEN), memory(MEAN))
    },
    targets,
    method: METHOD,
};

fn targets(results: &Results) -> Vec<Target> {
    let mut all = vec![
        results.faster(OPEN, FRESH, XARRAY_FRESH, 20.0),
        results.memory(OPEN, FRESH, 60),
        results.faster(BLOCKS, SPILE, XARRAY, 3.0),
        results.within(TREE, SPILE, 0.015),
        results.within(SERIES, SPILE, 2.0),
    ];
    all.extend([FEW, LOG].map(|task| results.faster(task, SPILE, GSD, 10.0)));
    all
}

fn peer(name: &'static str, python: &Path, package: &str) -> Implementation {
    Implementation::program(name, python, &["benches/python/peer.py", package])
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let packages = ["xarray", "dask", "sdf-xarray", "gsd", "numpy"];
        let mut all = packages.map(String::from).to_vec();
        all.extend(["maturin", "wheel"].map(String::from));
        let python = tools::python(&all)?;
        install_release(&python)?;
        let mut setup = Setup::new(make_files(folder, &python, options.scale)?);
        for (name, package) in
            [(SPILE, "spile"), (XARRAY, "sdf-xarray"), (GSD, "gsd"), (NUMPY, "numpy")]
        {
            setup.add(peer(name, &python, package));
        }
        for (name, package) in [(FRESH, "spile"), (XARRAY_FRESH, "sdf-xarray")] {
            setup.add(peer(name, &python, package).restarted());
        }
        setup.versions = versions(&python, &packages);
        Ok(setup)
    })
}

/// Creates the files with the drivers of the formats and with the package.
fn make_files(folder: &Path, python: &Path, scale: f64) -> Result<Values> {
    let mut values = paths(
        folder,
        &[
            ("dump", "dump.sdf"),
            ("blocks", "blocks.sdf"),
            ("short", "series"),
            ("few", "few.gsd"),
            ("many", "many.gsd"),
            ("log", "log.gsd"),
            ("taf", "samples.taf"),
        ],
    );
    let side = (256.0 * scale.cbrt()).round().max(8.0) as u64;
    let particles = (2e7 * scale).round().max(40.0) as u64;
    let frames = (2e3 * scale).round().max(20.0) as u64;
    let length = (1e8 * scale).round().max(1e4) as u64;
    let mut sdf = Implementation::program(SPILE, &driver("sdf")?, &[]);
    sdf.run(&format!("make {} {} 4 {particles} 5000 200", folder.display(), side.pow(3)))?;
    let mut gsd = Implementation::program(SPILE, &driver("gsd")?, &[]);
    for (file, particles, frames) in
        [("few", 100, frames), ("many", 1000, frames), ("log", 1, 10 * frames)]
    {
        gsd.run(&format!("make-hoomd {} {particles} {frames}", values[file]))?;
    }
    let mut package = peer(SPILE, python, "spile");
    let offset = package.run(&format!("make-taf {} {length}", values["taf"]))?.bytes;
    let numbers =
        [("middle", side / 2), ("frames", frames), ("length", length), ("offset", offset)];
    values.extend(numbers.map(|(name, number)| (name, number.to_string())));
    Ok(values)
}
