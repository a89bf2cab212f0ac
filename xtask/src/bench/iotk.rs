//! `cargo xtask bench iotk`: numbers and tags, compared with Fortran and C.

use std::path::{Path, PathBuf};

use super::harness::{Bench, Implementation, Results, Setup, Task, Values, cold_task, paths, task};
use super::target::{Target, duration};
use super::{Options, compile, driver, optional};
use crate::shell::{output, program};
use crate::{Result, tools};

const C: &str = "C";
const FORTRAN: &str = "Fortran";
const ONE: &str = "1 thread";
const TWO: &str = "2 threads";

const WRITE_BINARY: &str = "write binary, 1 GiB";
const READ_BINARY: &str = "read binary, 1 GiB";
const WRITE_TEXT: &str = "write text, 10^7 doubles";
const READ_TEXT: &str = "read text, 10^7 doubles";
const TO_TEXT: &str = "binary to text, 100 MB";
const TO_BINARY: &str = "text to binary, 100 MB";
const INDEX: &str = "10^5 tags: index";
const INDEX_TEXT: &str = "10^5 tags as text: index";
const OPEN: &str = "10^5 tags: index and tree";
const SCAN: &str = "10^5 tags: all by name, in order";
const LAST: &str = "10^5 tags: the last by name";
const MISSING: &str = "10^5 tags: a missing name";

const BOTH: &[&str] = &[ONE, TWO];

const TASKS: [Task; 12] = [
    cold_task(
        WRITE_BINARY,
        1,
        &[
            (&[ONE], "write-binary {large} {large-count}"),
            (&[FORTRAN], "write-binary {peer} {large-count}"),
            (&[C], "write {peer} {large-bytes} {large-offset}"),
        ],
    ),
    task(
        READ_BINARY,
        1,
        &[
            (&[ONE, FORTRAN], "read-binary {large} {large-count}"),
            (&[C], "read {large} {large-bytes} {large-offset}"),
        ],
    ),
    cold_task(
        WRITE_TEXT,
        1,
        &[(BOTH, "write-text {text} {text-count}"), (&[FORTRAN], "write-text {peer} {text-count}")],
    ),
    task(READ_TEXT, 1, &[(&[ONE, TWO, FORTRAN], "read-text {text} {text-count}")]),
    task(
        TO_TEXT,
        1,
        &[
            (BOTH, "to-text {numbers} {text} {number-count}"),
            (&[FORTRAN], "to-text {numbers} {peer} {number-count}"),
        ],
    ),
    task(TO_BINARY, 1, &[(&[ONE, TWO, FORTRAN], "to-binary {text} {peer} {number-count}")]),
    task(
        INDEX,
        5,
        &[(&[ONE], "index {tags} {tag-count}"), (&[FORTRAN], "scan-tags {tags} {tag-count}")],
    ),
    task(INDEX_TEXT, 5, &[(&[ONE], "index {tag-text} {tag-count}")]),
    task(OPEN, 5, &[(&[ONE], "open {tags} {tag-count}")]),
    task(SCAN, 5, &[(&[ONE], "scan {tags} {tag-count}")]),
    task(LAST, 3, &[(&[ONE], "last {tags} {tag-count}")]),
    task(MISSING, 3, &[(&[ONE], "missing {tags} {tag-count}")]),
];

const METHOD: &str = "\
Sizes at scale 1: one array of 1 GiB of doubles; 10^7 doubles as text; 12.5 * 10^6 doubles converted from binary to
text and back; 10^5 elements with one double each (13 MB of records).

- **Fortran** is `benches/iotk/peer.f90`, gfortran with `-O3 -march=native`: `write(unit)`, `read(unit)`, a write
  with the format `es24.16e3` and a list-directed read. It reads the files written by spile and skips their tags.
  A conversion reads everything and then writes it. For the index it reads every record that contains a tag.
- **C** is `benches/plain.c`: one `write()` or `read()` of the same bytes at the same offset.
- **spile** is `formats/iotk/examples/bench_iotk`: writing ends with the atomic rename of the file, reading starts with
  opening the file. Doubles are preserved bit for bit, which is verified after the measurement.
- The numbers have all digits and many magnitudes: `sin(0.37 k) * 10^(k mod 41 - 20)`.
- Memory for the numbers is allocated before the measurement and reused, by all implementations.
- The index contains every tag with its attributes and offsets; the tree is what `spile ls` shows. All by name
  includes opening the file. The last and the missing name are searched in an existing index, without reading.
- Implementations alternate; values are medians.
";

const BENCH: Bench = Bench {
    name: "iotk",
    files: 2.6e9,
    tasks: &TASKS,
    columns: &[C, FORTRAN, ONE, TWO],
    ratios: &[(ONE, C), (ONE, FORTRAN), (TWO, ONE)],
    cell,
    note: |_| String::new(),
    targets,
    method: METHOD,
};

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("iotk")?;
        let c = optional(C, compile(folder.join("c"), &["benches/plain.c"]));
        let fortran = optional(FORTRAN, fortran(folder));
        let mut setup = Setup::new(make_files(&driver, folder, options.scale)?);
        setup.add(Implementation::threads(ONE, &driver, 1));
        setup.add(Implementation::threads(TWO, &driver, 2));
        if fortran.is_some() {
            let version = output(program("gfortran").arg("--version")).unwrap_or_default();
            setup.versions = version.lines().next().unwrap_or_default().to_string();
        }
        for (name, peer) in [(FORTRAN, fortran), (C, c)] {
            setup.add_optional(peer.map(|peer| Implementation::program(name, &peer, &[])));
        }
        Ok(setup)
    })
}

fn make_files(driver: &Path, folder: &Path, scale: f64) -> Result<Values> {
    let mut values = paths(
        folder,
        &[
            ("large", "large.dat"),
            ("text", "text.xml"),
            ("numbers", "numbers.dat"),
            ("tags", "tags.dat"),
            ("tag-text", "tags.xml"),
            ("peer", "peer"),
        ],
    );
    let scaled = |full: f64| ((full * scale) as u64).max(1);
    let (large, count) = (scaled(f64::from(1 << 27)), scaled(12.5e6));
    // The targets are for this number, at any scale.
    let tags = 100_000;
    let mut maker = Implementation::program(ONE, driver, &[]);
    maker.run(&format!("write-binary {} {count}", values["numbers"]))?;
    maker.run(&format!("make-tags {} {tags}", values["tags"]))?;
    maker.run(&format!("to-text {} {} {tags}", values["tags"], values["tag-text"]))?;
    maker.run(&format!("write-binary {} {large}", values["large"]))?;
    let offset = maker.run(&format!("offset {} {large}", values["large"]))?.bytes;
    let numbers = [
        ("large-count", large),
        ("large-bytes", large * 8),
        ("large-offset", offset),
        ("text-count", scaled(1e7)),
        ("number-count", count),
        ("tag-count", tags),
    ];
    values.extend(numbers.map(|(name, number)| (name, number.to_string())));
    Ok(values)
}

/// Compiles the Fortran program.
fn fortran(folder: &Path) -> Result<PathBuf> {
    tools::fortran()?;
    let path = folder.join("fortran");
    let mut command = program("gfortran");
    command.args(["-O3", "-march=native", "-J"]).arg(folder).arg("-o").arg(&path);
    output(command.arg("benches/iotk/peer.f90")).map(|_| path)
}

/// Megabytes of numbers per second; for tags, the duration.
fn cell(results: &Results, task: &'static str, name: &'static str) -> String {
    let Some(seconds) = results.seconds(task, name) else { return "-".into() };
    if task.contains("tags") {
        return duration(seconds);
    }
    // C also counts the bytes of the tags.
    let bytes = results.bytes(task, ONE).unwrap_or(0);
    format!("{:.0} MB/s", bytes as f64 / seconds / 1e6)
}

fn targets(results: &Results) -> Vec<Target> {
    let mut all: Vec<Target> =
        [WRITE_BINARY, READ_BINARY].map(|task| results.faster(task, ONE, C, 0.9)).into();
    all.extend([WRITE_TEXT, READ_TEXT].map(|task| results.faster(task, ONE, FORTRAN, 5.0)));
    all.push(results.within(INDEX, ONE, 0.05));
    for task in [LAST, MISSING] {
        let found = results.seconds(task, ONE).zip(results.bytes(task, ONE)).map(|(time, read)| {
            let text = format!("{}, {read} bytes read", duration(time));
            (text, read == 0 && time < 1e-3)
        });
        all.push(Target { text: format!("{task}: no bytes are read"), found });
    }
    all
}
