//! `cargo xtask bench iotk`: numbers and tags, next to a plain Fortran program and plain C, in one
//! run.

use std::path::{Path, PathBuf};

use super::report::{Promise, duration};
use super::rounds::{Arena, Bench, Contestant, Results, Task, Words};
use super::{Options, compile, driver, or_say};
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
const LAST: &str = "10^5 tags: the last";
const MISSING: &str = "10^5 tags: one that is missing";

const BOTH: &[&str] = &[ONE, TWO];

const TASKS: [Task; 12] = [
    Task {
        name: WRITE_BINARY,
        lines: &[
            (&[ONE], "write-binary {large} {large-count}"),
            (&[FORTRAN], "write-binary {theirs} {large-count}"),
            (&[C], "write {theirs} {large-bytes} {large-place}"),
        ],
        times: 1,
        warm: false,
    },
    Task {
        name: READ_BINARY,
        lines: &[
            (&[ONE, FORTRAN], "read-binary {large} {large-count}"),
            (&[C], "read {large} {large-bytes} {large-place}"),
        ],
        times: 1,
        warm: true,
    },
    Task {
        name: WRITE_TEXT,
        lines: &[
            (BOTH, "write-text {text} {text-count}"),
            (&[FORTRAN], "write-text {theirs} {text-count}"),
        ],
        times: 1,
        warm: false,
    },
    Task {
        name: READ_TEXT,
        lines: &[(&[ONE, TWO, FORTRAN], "read-text {text} {text-count}")],
        times: 1,
        warm: true,
    },
    Task {
        name: TO_TEXT,
        lines: &[
            (BOTH, "to-text {numbers} {text} {number-count}"),
            (&[FORTRAN], "to-text {numbers} {theirs} {number-count}"),
        ],
        times: 1,
        warm: true,
    },
    Task {
        name: TO_BINARY,
        lines: &[
            (BOTH, "to-binary {text} {theirs} {number-count}"),
            (&[FORTRAN], "to-binary {text} {theirs} {number-count}"),
        ],
        times: 1,
        warm: true,
    },
    Task {
        name: INDEX,
        lines: &[
            (&[ONE], "index {tags} {tag-count}"),
            (&[FORTRAN], "scan-tags {tags} {tag-count}"),
        ],
        times: 5,
        warm: true,
    },
    Task {
        name: INDEX_TEXT,
        lines: &[(&[ONE], "index {tag-text} {tag-count}")],
        times: 5,
        warm: true,
    },
    Task { name: OPEN, lines: &[(&[ONE], "open {tags} {tag-count}")], times: 5, warm: true },
    Task { name: SCAN, lines: &[(&[ONE], "scan {tags} {tag-count}")], times: 5, warm: true },
    Task { name: LAST, lines: &[(&[ONE], "last {tags} {tag-count}")], times: 3, warm: true },
    Task { name: MISSING, lines: &[(&[ONE], "missing {tags} {tag-count}")], times: 3, warm: true },
];

const HOW: &str = "\
Sizes at scale 1: one array of 1 GiB of doubles; 10^7 doubles as text; 12.5 * 10^6 doubles from one form
to the other; 10^5 elements with one double each (13 MB in records).

- **Fortran** is `benches/iotk/peer.f90`, gfortran with `-O3 -march=native`: `write(unit)`,
  `read(unit)`, a write with the format `es24.16e3` and a list-directed read. It reads the files that spile
  writes, passing over their tags. Conversion is reading everything and writing it. Next to the index
  of the tags it reads every record that has a tag.
- **C** is `benches/plain.c`: one `write()` or `read()` of the same bytes at the same place of a file.
- **spile** is `formats/iotk/examples/bench_iotk`: a file that is written is complete and has its
  name when the clock stops; reading goes from opening the file to the last number in its place. All doubles
  come back bit for bit, which is looked at after the clock has stopped.
- Numbers have all digits and many sizes: `sin(0.37 k) * 10^(k mod 41 - 20)`.
- Memory for the numbers is there before the clock starts, on all sides, and is used again.
- An index has every tag with its attributes and places; the tree view is what `spile ls` shows. All by
  name goes from opening the file to the last of 10^5 names. The last and the missing name are looked
  for in an index that is there, and nothing is read from the file.
- The contestants take turns, round after round, and the median counts.
";

const BENCH: Bench = Bench {
    name: "iotk",
    files: 2.6e9,
    tasks: &TASKS,
    columns: &[C, FORTRAN, ONE, TWO],
    ratios: &[(ONE, C), (ONE, FORTRAN), (TWO, ONE)],
    cell,
    remark: |_| String::new(),
    promises,
    how: HOW,
};

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("iotk")?;
        let c = or_say("C", compile(folder.join("peer-in-c"), &["benches/plain.c"]));
        let fortran = or_say("Fortran", fortran(folder));
        let incomplete = c.is_none() || fortran.is_none();
        let mut words = words(folder, options.scale);
        prepare(&driver, &mut words)?;
        let mut contestants = Vec::new();
        for (name, threads) in [(ONE, "1"), (TWO, "2")] {
            let driver = driver.clone();
            contestants.push(Contestant::new(name, move || {
                let mut command = program(&driver);
                command.env("RAYON_NUM_THREADS", threads);
                command
            }));
        }
        let versions = match &fortran {
            Some(_) => output(program("gfortran").arg("--version")).unwrap_or_default(),
            None => String::new(),
        };
        let versions = versions.lines().next().unwrap_or_default().to_string();
        for (name, peer) in [(FORTRAN, fortran), (C, c)] {
            if let Some(peer) = peer {
                contestants.push(Contestant::new(name, move || program(&peer)));
            }
        }
        Ok(Arena { contestants, words, incomplete, versions })
    })
}

fn words(folder: &Path, scale: f64) -> Words {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let scaled = |full: f64| ((full * scale) as u64).max(1).to_string();
    let mut words = Words::new();
    for (name, file) in [
        ("large", "large.dat"),
        ("text", "text.xml"),
        ("numbers", "numbers.dat"),
        ("tags", "tags.dat"),
        ("tag-text", "tags.xml"),
        ("theirs", "theirs"),
    ] {
        words.insert(name, path(file));
    }
    let large = ((f64::from(1 << 27) * scale) as u64).max(1);
    words.insert("large-count", large.to_string());
    words.insert("large-bytes", (large * 8).to_string());
    words.insert("text-count", scaled(1e7));
    words.insert("number-count", scaled(12.5e6));
    // The promise is about so many, at any scale.
    words.insert("tag-count", "100000".into());
    words
}

/// The files that nobody is measured at.
fn prepare(driver: &Path, words: &mut Words) -> Result<()> {
    let (numbers, count) = (&words["numbers"], &words["number-count"]);
    let (tags, text, tag_count) = (&words["tags"], &words["tag-text"], &words["tag-count"]);
    let mut command = program(driver);
    command.arg(format!("write-binary {numbers} {count}"));
    command.arg(format!("make-tags {tags} {tag_count}"));
    command.arg(format!("to-text {tags} {text} {tag_count}"));
    let (large, large_count) = (&words["large"], &words["large-count"]);
    command.arg(format!("write-binary {large} {large_count}"));
    command.arg(format!("place {large} {large_count}"));
    let answers = output(&mut command)?;
    let place = answers.lines().last().and_then(|line| line.split(' ').nth(1));
    let place = place.ok_or("the place of the numbers is not known")?.to_string();
    words.insert("large-place", place);
    Ok(())
}

/// The program in Fortran.
fn fortran(folder: &Path) -> Result<PathBuf> {
    tools::fortran()?;
    let path = folder.join("peer-in-fortran");
    let mut command = program("gfortran");
    command.args(["-O3", "-march=native", "-J"]).arg(folder).arg("-o").arg(&path);
    output(command.arg("benches/iotk/peer.f90")).map(|_| path)
}

/// Megabytes of numbers in a second; for tags, how long it takes.
fn cell(results: &Results, task: &'static str, who: &'static str) -> String {
    let Some(seconds) = results.seconds(task, who) else { return "-".into() };
    if task.contains("tags") {
        return duration(seconds);
    }
    // C counts the tags, too.
    let bytes = results.bytes(task, ONE).unwrap_or(0);
    format!("{:.0} MB/s", bytes as f64 / seconds / 1e6)
}

fn promises(results: &Results) -> Vec<Promise> {
    let mut all = Vec::new();
    for task in [WRITE_BINARY, READ_BINARY] {
        let text = format!("{task}: 0.9 times as fast as C or faster");
        all.push(results.faster(text, task, ONE, C, 0.9));
    }
    for task in [WRITE_TEXT, READ_TEXT] {
        let text = format!("{task}: 5 times as fast as Fortran or faster, on one thread");
        all.push(results.faster(text, task, ONE, FORTRAN, 5.0));
    }
    all.push(results.within(format!("{INDEX}: less than 50 ms"), INDEX, ONE, 0.05));
    for task in [LAST, MISSING] {
        let found = results.seconds(task, ONE).zip(results.bytes(task, ONE)).map(|(time, read)| {
            let text = format!("{}, {read} bytes read", duration(time));
            (text, read == 0 && time < 1e-3)
        });
        all.push(Promise { text: format!("{task}: nothing is read again"), found });
    }
    all
}
