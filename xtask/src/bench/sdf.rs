//! `cargo xtask bench sdf`: SDF dumps listed, read, sliced and written, compared with sdf-xarray, sdfr and
//! `read()` and `write()`.

use std::path::Path;

use super::harness::{Bench, Implementation, Results, Setup, Task, Values, cold_task, paths, task};
use super::target::{Target, mib};
use super::{Options, compile, driver, optional, versions};
use crate::{Result, tools};

const ONE: &str = "spile";
const TWO: &str = "spile, 2 threads";
const FRESH: &str = "spile, new process";
const XARRAY: &str = "sdf-xarray";
const SDFR: &str = "sdfr";
const PLAIN: &str = "read/write";

const SPILE: &[&str] = &[ONE, TWO];
const PEERS: &[&str] = &[XARRAY, SDFR];
const READERS: &[&str] = &[ONE, TWO, XARRAY, SDFR];

const LIST: &str = "list 5,000 blocks";
const TREE: &str = "tree of 5,000 blocks";
const FIELD: &str = "read a field of 134 MB";
const ALL: &str = "read 1 GB, all arrays";
const ELEMENT: &str = "one element of a field";
const ROWS: &str = "a plane of a field, contiguous rows";
const POINTS: &str = "a plane of a field, single values";
const PARTICLES: &str = "10^6 of 2 * 10^7 particles";
const SERIES: &str = "open 200 dumps";
const LONG_SERIES: &str = "open 1,000 dumps";
const WRITE: &str = "write 1 GB";
const OPEN: &str = "open 1 GB";

const TASKS: [Task; 12] = [
    task(LIST, 5, &[(READERS, "list {blocks}")]),
    task(TREE, 5, &[(&[ONE, TWO, XARRAY], "tree {blocks}")]),
    task(
        FIELD,
        3,
        &[
            (SPILE, "read {dump} f0"),
            (PEERS, "read {dump} Field/F0"),
            (&[PLAIN], "read {dump} {field-bytes} {field-offset}"),
        ],
    ),
    task(
        ALL,
        1,
        &[
            (READERS, "all {dump}"),
            (&[PLAIN], "pieces {dump} {rest-bytes} {field-offset} {field-bytes}"),
        ],
    ),
    task(
        ELEMENT,
        3,
        &[
            (SPILE, "part {dump} f0 {middle} {middle} {middle}"),
            (PEERS, "part {dump} Field/F0 {middle} {middle} {middle}"),
        ],
    ),
    task(
        ROWS,
        3,
        &[(SPILE, "part {dump} f0 : {middle} :"), (PEERS, "part {dump} Field/F0 : {middle} :")],
    ),
    task(
        POINTS,
        3,
        &[(SPILE, "part {dump} f0 {middle} : :"), (PEERS, "part {dump} Field/F0 {middle} : :")],
    ),
    task(
        PARTICLES,
        3,
        &[
            (SPILE, "part {dump} Px/electron {from}:{to}"),
            (PEERS, "part {dump} Particles/Px/electron {from}:{to}"),
        ],
    ),
    task(SERIES, 1, &[(&[ONE, TWO, XARRAY], "series {short}")]),
    task(LONG_SERIES, 1, &[(SPILE, "series {series}")]),
    cold_task(
        WRITE,
        1,
        &[
            (&[ONE], "write {out} {cells} {fields} {particles}"),
            (&[SDFR], "write {peer} {cells} {fields} {particles}"),
            (&[PLAIN], "write {plain} {length of out}"),
        ],
    ),
    task(OPEN, 3, &[(&[FRESH], "open {dump}")]),
];

const METHOD: &str = "\
Sizes at scale 1: a dump of 1 GB with 4 fields of 256 x 256 x 256 doubles (134 MB each) and 2 * 10^7
particles (3 x 160 MB); a file of 5,000 blocks of 8 doubles; 1,000 dumps of 6 fields of 16 x 16 x 16 and
1,000 particles, the first 200 of which form a second series.

- **spile** is `formats/sdf/examples/bench_sdf`, on one thread and on two. Every task opens its file: it reads the
  header and all blocks and, except for the list, builds the tree.
- **sdf-xarray** and **sdfr** (the C library used by it) are `benches/sdf/peer.py`. The list is
  `SDFFile(path)` or `sdfr.read(path)`, the tree `xarray.open_dataset`, the series `sdf_xarray.open_mfdataset`. Parts
  of arrays are selected by xarray and NumPy. The start of Python and imports are not included. Both read into new
  memory; spile and C reuse memory.
- **read/write** is `benches/plain.c`: reads the same bytes of the same file (all arrays: from the first field
  on, in pieces of one field), or writes a new file of the same length, with `fsync()`. Buffers are page-aligned in
  both programs.
- A plane of contiguous rows is 256 x 256 values in 256 ranges of 2 KiB; in a plane of single values, no two are
  adjacent.
- Implementations alternate; values are medians. Files are in the page cache.
- Memory is the peak resident set of a program that only opens the dump.
";

const BENCH: Bench = Bench {
    name: "sdf",
    files: 3.5e9,
    tasks: &TASKS,
    columns: &[PLAIN, XARRAY, SDFR, ONE, TWO, FRESH],
    ratios: &[(ONE, PLAIN), (ONE, XARRAY), (ONE, SDFR)],
    cell: Results::time,
    note: |results| match results.bytes(OPEN, FRESH) {
        Some(bytes) => format!("\n{OPEN}: {} of memory.\n", mib(bytes)),
        None => String::new(),
    },
    targets,
    method: METHOD,
};

fn targets(results: &Results) -> Vec<Target> {
    let mut all: Vec<Target> =
        [FIELD, ALL].map(|task| results.faster(task, ONE, PLAIN, 0.9)).into();
    let compared = [LIST, FIELD, ALL, ELEMENT, ROWS, POINTS, PARTICLES];
    all.extend(compared.map(|task| results.faster(task, ONE, SDFR, 1.0)));
    all.extend([LIST, TREE].map(|task| results.faster(task, ONE, XARRAY, 5.0)));
    all.extend([
        results.within(LIST, ONE, 0.010),
        results.within(ELEMENT, ONE, 0.001),
        results.within(LONG_SERIES, ONE, 2.0),
        results.memory(OPEN, FRESH, 50),
    ]);
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("sdf")?;
        let plain = optional("C", compile(folder.join("c"), &["benches/plain.c"]));
        let packages = ["sdf-xarray", "sdfr", "numpy", "dask"];
        let python = optional("sdf-xarray and sdfr", tools::python(&packages.map(String::from)));
        let mut setup = Setup::new(make_files(&driver, folder, options.scale)?);
        setup.add(Implementation::threads(ONE, &driver, 1));
        setup.add(Implementation::threads(TWO, &driver, 2));
        setup.add(Implementation::threads(FRESH, &driver, 1).restarted());
        setup.add_optional(plain.map(|plain| Implementation::program(PLAIN, &plain, &[])));
        for name in [XARRAY, SDFR] {
            let peer =
                |python| Implementation::program(name, python, &["benches/sdf/peer.py", name]);
            setup.add_optional(python.as_deref().map(peer));
        }
        setup.versions = python.map_or(String::new(), |python| versions(&python, &packages));
        Ok(setup)
    })
}

/// Creates the files; the short series consists of the first dumps of the long one.
fn make_files(driver: &Path, folder: &Path, scale: f64) -> Result<Values> {
    let mut values = paths(
        folder,
        &[
            ("dump", "dump.sdf"),
            ("blocks", "blocks.sdf"),
            ("series", "series"),
            ("short", "short"),
            ("out", "out.sdf"),
            ("peer", "peer.sdf"),
            ("plain", "plain"),
        ],
    );
    let side = (256.0 * scale.cbrt()).round().max(8.0) as u64;
    let cells = side.pow(3);
    let particles = (2e7 * scale).round().max(40.0) as u64;
    let mut maker = Implementation::program(ONE, driver, &[]);
    let field = maker.run(&format!("make {} {cells} 4 {particles} 5000 1000", folder.display()))?;
    let length = std::fs::metadata(&values["dump"]).map_err(|e| e.to_string())?.len();
    let numbers = [
        ("cells", cells),
        ("fields", 4),
        ("particles", particles),
        ("field-bytes", cells * 8),
        ("middle", side / 2),
        ("from", particles / 4),
        ("to", particles / 4 + particles / 20),
        ("field-offset", field.bytes),
        ("rest-bytes", length - field.bytes),
    ];
    values.extend(numbers.map(|(name, number)| (name, number.to_string())));
    std::fs::create_dir(&values["short"]).map_err(|e| e.to_string())?;
    for k in 0..200 {
        let [from, to] = ["series", "short"].map(|name| format!("{}/{k:04}.sdf", values[name]));
        std::os::unix::fs::symlink(from, to).map_err(|e| e.to_string())?;
    }
    Ok(values)
}
