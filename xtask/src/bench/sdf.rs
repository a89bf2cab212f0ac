//! `cargo xtask bench sdf`: dumps listed, read, sliced and written, next to sdf-xarray, sdfr and plain
//! `read()` and `write()`, in one run.

use std::path::Path;

use super::report::Promise;
use super::rounds::{Arena, Bench, Contestant, Results, Task, Words};
use super::{Options, compile, driver, or_say, versions};
use crate::shell::{program, root};
use crate::{Result, tools};

const ONE: &str = "spile";
const TWO: &str = "spile, 2 threads";
const FRESH: &str = "spile, just started";
const XARRAY: &str = "sdf-xarray";
const SDFR: &str = "sdfr";
const PLAIN: &str = "read/write";

const SPILE: &[&str] = &[ONE, TWO];
const READERS: &[&str] = &[ONE, TWO, XARRAY, SDFR];

const LIST: &str = "list 5,000 blocks";
const TREE: &str = "tree of 5,000 blocks";
const FIELD: &str = "read a field of 134 MB";
const ALL: &str = "read all of 1 GB";
const ELEMENT: &str = "one element of a field";
const ROWS: &str = "a plane of a field, in rows";
const POINTS: &str = "a plane of a field, in points";
const PARTICLES: &str = "10^6 of 2 * 10^7 particles";
const SERIES: &str = "open 200 dumps";
const LONG_SERIES: &str = "open 1,000 dumps";
const WRITE: &str = "write 1 GB";
const OPEN: &str = "open 1 GB";

/// Bytes of memory that opening a large dump may cost, the program itself included.
const OPEN_MEMORY: u64 = 50 << 20;

const TASKS: [Task; 12] = [
    Task { name: LIST, lines: &[(READERS, "list {blocks}")], times: 5, warm: true },
    Task {
        name: TREE,
        lines: &[(SPILE, "tree {blocks}"), (&[XARRAY], "tree {blocks}")],
        times: 5,
        warm: true,
    },
    Task {
        name: FIELD,
        lines: &[
            (SPILE, "read {dump} f0"),
            (&[XARRAY], "read {dump} Field/F0"),
            (&[SDFR], "read {dump} Field/F0"),
            (&[PLAIN], "read {dump} {field-bytes} {field-offset}"),
        ],
        times: 3,
        warm: true,
    },
    Task {
        name: ALL,
        lines: &[
            (READERS, "all {dump}"),
            (&[PLAIN], "pieces {dump} {rest-bytes} {field-offset} {field-bytes}"),
        ],
        times: 1,
        warm: true,
    },
    Task {
        name: ELEMENT,
        lines: &[
            (SPILE, "part {dump} f0 {middle} {middle} {middle}"),
            (&[XARRAY, SDFR], "part {dump} Field/F0 {middle} {middle} {middle}"),
        ],
        times: 3,
        warm: true,
    },
    Task {
        name: ROWS,
        lines: &[
            (SPILE, "part {dump} f0 : {middle} :"),
            (&[XARRAY, SDFR], "part {dump} Field/F0 : {middle} :"),
        ],
        times: 3,
        warm: true,
    },
    Task {
        name: POINTS,
        lines: &[
            (SPILE, "part {dump} f0 {middle} : :"),
            (&[XARRAY, SDFR], "part {dump} Field/F0 {middle} : :"),
        ],
        times: 3,
        warm: true,
    },
    Task {
        name: PARTICLES,
        lines: &[
            (SPILE, "part {dump} Px/electron {from}:{to}"),
            (&[XARRAY, SDFR], "part {dump} Particles/Px/electron {from}:{to}"),
        ],
        times: 3,
        warm: true,
    },
    Task { name: SERIES, lines: &[(&[ONE, TWO, XARRAY], "series {short}")], times: 1, warm: true },
    Task { name: LONG_SERIES, lines: &[(SPILE, "series {series}")], times: 1, warm: true },
    Task {
        name: WRITE,
        lines: &[
            (&[ONE], "write {out} {cells} {fields} {particles}"),
            (&[SDFR], "write {peer} {cells} {fields} {particles}"),
            (&[PLAIN], "write {plain} {length of out}"),
        ],
        times: 1,
        warm: false,
    },
    Task { name: OPEN, lines: &[(&[FRESH], "open {dump}")], times: 3, warm: true },
];

const HOW: &str = "\
Sizes at scale 1: a dump of 1 GB with 4 fields of 256 x 256 x 256 doubles (134 MB each) and 2 * 10^7
particles (3 x 160 MB); a file of 5,000 blocks of 8 doubles; 1,000 dumps of 6 fields of 16 x 16 x 16 and
1,000 particles, of which the first 200 are a series of their own.

- **spile** is `formats/sdf/examples/bench_sdf`, on one thread and on two. Every task opens its file: header,
  all blocks and, but for the list, the tree.
- **sdf-xarray** and **sdfr** (the C library behind it) are `benches/sdf/peers.py`. A list is
  `SDFFile(path)` and `sdfr.read(path)`, the tree is `xarray.open_dataset`; parts of arrays are taken by xarray and by NumPy; the series is
  `sdf_xarray.open_mfdataset`. Starting Python and importing is not counted. They read into new memory,
  spile and C into memory that is used again.
- **read/write** is `benches/plain.c`: the same bytes of the same file into memory (all of it from the
  first field on, a field's length at a time), or a new file of as many bytes, with `fsync`. Memory begins with a page in both programs.
- A plane in rows is 256 x 256 values in 256 runs of 2 KiB; in points every value is alone.
- The contestants take turns, round after round, and the median counts. Files are in the page cache.
- Memory is the peak resident set of a program that does nothing but open the dump.
";

const BENCH: Bench = Bench {
    name: "sdf",
    files: 3.5e9,
    tasks: &TASKS,
    columns: &[PLAIN, XARRAY, SDFR, ONE, TWO, FRESH],
    ratios: &[(ONE, PLAIN), (ONE, XARRAY), (ONE, SDFR)],
    cell: Results::time,
    remark: |results| match results.bytes(OPEN, FRESH) {
        Some(bytes) => format!("\n{OPEN}: {:.1} MiB of memory.\n", bytes as f64 / 1_048_576.0),
        None => String::new(),
    },
    promises,
    how: HOW,
};

fn promises(results: &Results) -> Vec<Promise> {
    let mut all = Vec::new();
    for task in [FIELD, ALL] {
        let text = format!("{task}: 0.9 times as fast as read() or faster, on one thread");
        all.push(results.faster(text, task, ONE, PLAIN, 0.9));
    }
    for task in [LIST, FIELD, ALL, ELEMENT, ROWS, POINTS, PARTICLES] {
        let text = format!("{task}: not behind sdfr");
        all.push(results.faster(text, task, ONE, SDFR, 1.0));
    }
    all.push(results.within(format!("{LIST}: less than 10 ms"), LIST, ONE, 0.010));
    for task in [LIST, TREE] {
        let text = format!("{task}: 5 times as fast as sdf-xarray or faster");
        all.push(results.faster(text, task, ONE, XARRAY, 5.0));
    }
    all.push(results.within(format!("{ELEMENT}: less than 1 ms"), ELEMENT, ONE, 0.001));
    all.push(results.within(format!("{LONG_SERIES}: less than 2 s"), LONG_SERIES, ONE, 2.0));
    let bytes = results.bytes(OPEN, FRESH);
    all.push(Promise {
        text: format!("{OPEN}: less than 50 MiB of memory"),
        found: bytes.map(|n| (format!("{:.1} MiB", n as f64 / 1_048_576.0), n < OPEN_MEMORY)),
    });
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("sdf")?;
        let plain = or_say("C", compile(folder.join("plain-c"), &["benches/plain.c"]));
        let packages = ["sdf-xarray", "sdfr", "numpy", "dask"];
        let python = tools::python(&packages.map(String::from));
        let python = or_say("sdf-xarray and sdfr", python);
        let mut words = words(folder, options.scale);
        make(&driver, folder, &mut words)?;

        let mut contestants = Vec::new();
        for (name, threads) in [(ONE, "1"), (TWO, "2"), (FRESH, "1")] {
            let driver = driver.clone();
            let one = Contestant::new(name, move || {
                let mut command = program(&driver);
                command.env("RAYON_NUM_THREADS", threads);
                command
            });
            contestants.push(if name == FRESH { one.started_each_time() } else { one });
        }
        let incomplete = plain.is_none() || python.is_none();
        if let Some(plain) = plain {
            contestants.push(Contestant::new(PLAIN, move || program(&plain)));
        }
        let versions = python.as_ref().map_or(String::new(), |python| versions(python, &packages));
        for name in [XARRAY, SDFR] {
            let Some(python) = python.clone() else { continue };
            contestants.push(Contestant::new(name, move || {
                let mut command = program(&python);
                command.arg(root().join("benches/sdf/peers.py")).arg(name);
                command
            }));
        }
        Ok(Arena { contestants, words, incomplete, versions })
    })
}

fn words(folder: &Path, scale: f64) -> Words {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let side = (256.0 * scale.cbrt()).round().max(8.0) as u64;
    let particles = (2e7 * scale).round().max(40.0) as u64;
    let mut words = Words::new();
    for (name, file) in [
        ("dump", "dump.sdf"),
        ("blocks", "blocks.sdf"),
        ("series", "series"),
        ("short", "short"),
        ("out", "out.sdf"),
        ("peer", "peer.sdf"),
        ("plain", "plain"),
    ] {
        words.insert(name, path(file));
    }
    for (name, number) in [
        ("cells", side.pow(3)),
        ("fields", 4),
        ("particles", particles),
        ("field-bytes", side.pow(3) * 8),
        ("middle", side / 2),
        ("from", particles / 4),
        ("to", particles / 4 + particles / 20),
    ] {
        words.insert(name, number.to_string());
    }
    words
}

/// The files; the short series are the first dumps of the long one.
fn make(driver: &Path, folder: &Path, words: &mut Words) -> Result<()> {
    let size = ["cells", "fields", "particles"].map(|name| words[name].as_str()).join(" ");
    let task = format!("make {} {size} 5000 1000", folder.display());
    let mut one = Contestant::new(ONE, {
        let driver = driver.to_path_buf();
        move || program(&driver)
    });
    let field = one.ask(&task)?.bytes;
    words.insert("field-offset", field.to_string());
    let all = std::fs::metadata(&words["dump"]).map_err(|e| e.to_string())?.len();
    words.insert("rest-bytes", (all - field).to_string());
    std::fs::create_dir(&words["short"]).map_err(|e| e.to_string())?;
    for k in 0..200 {
        let [from, to] = ["series", "short"].map(|name| format!("{}/{k:04}.sdf", words[name]));
        std::os::unix::fs::symlink(from, to).map_err(|e| e.to_string())?;
    }
    Ok(())
}
