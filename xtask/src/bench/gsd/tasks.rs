//! The tasks and their sizes.

use std::path::Path;

use super::super::rounds::{Task, Words};

pub(super) const SPILE: &str = "spile";
pub(super) const PLAIN: &str = "pread/pwrite";
pub(super) const LIBRARY: &str = "C library";
pub(super) const PYTHON: &str = "Python";
pub(super) const CRATE: &str = "hoomd-gsd";

pub(super) const OPEN_SMALL: &str = "open 10^6 entries";
pub(super) const OPEN_LARGE: &str = "open 10^7 entries";
pub(super) const FIND: &str = "find one of 10^7 entries";
pub(super) const TINY: &str = "10^7 tiny frames, with the close";
pub(super) const CLOSE: &str = "closing after 10^7 tiny frames";
pub(super) const COMMIT: &str = "frames of 3 chunks, each committed, no sync";
pub(super) const DURABLE: &str = "durable frames";
pub(super) const FRAMES: [&str; 2] =
    ["HOOMD frames, 100 particles", "HOOMD frames, 1000 particles"];
pub(super) const LOG: &str = "read_log, 4 quantities";

const ALL: &[&str] = &[SPILE, PLAIN, LIBRARY, PYTHON, CRATE];
const OPENERS: &[&str] = &[SPILE, LIBRARY, PYTHON, CRATE];
const COLD: &[&str] = &[SPILE, PLAIN, LIBRARY, PYTHON];

/// What a cell of the table says.
pub(super) enum Unit {
    Bytes,
    Frames,
    Time,
}

pub(super) fn unit(task: &str) -> Unit {
    if task.starts_with("open") || task.ends_with("open") || task == FIND || task == CLOSE {
        Unit::Time
    } else if PROTOCOL.iter().any(|file| task.starts_with(file.name)) {
        Unit::Bytes
    } else {
        Unit::Frames
    }
}

pub(super) fn is_cached_read(task: &str) -> bool {
    task.ends_with("read, cached") || task.ends_with("read at random")
}

/// A file of the protocol.
struct Protocol {
    name: &'static str,
    /// The words for its path, for the same on the disk, and for its frames.
    path: &'static str,
    disk: &'static str,
    frames: &'static str,
    bytes: f64,
    particles: u64,
}

macro_rules! protocol {
    ($size:literal, $bytes:literal, $side:literal, $particles:literal) => {
        Protocol {
            name: concat!($size, ", N = ", $side),
            path: concat!($size, " ", $side),
            disk: concat!($size, " ", $side, " disk"),
            frames: concat!($size, " ", $side, " frames"),
            bytes: $bytes,
            particles: $particles,
        }
    };
}

const PROTOCOL: [Protocol; 6] = [
    protocol!("100 MiB", 104_857_600.0, "32^2", 1024),
    protocol!("100 MiB", 104_857_600.0, "100^2", 10000),
    protocol!("100 MiB", 104_857_600.0, "1000^2", 1_000_000),
    protocol!("1 GiB", 1_073_741_824.0, "32^2", 1024),
    protocol!("1 GiB", 1_073_741_824.0, "100^2", 10000),
    protocol!("1 GiB", 1_073_741_824.0, "1000^2", 1_000_000),
];

macro_rules! row {
    ($name:expr, $times:expr, $warm:literal, $($who:expr => $line:expr),+) => {
        Task { name: $name, lines: &[$(($who, $line)),+], times: $times, warm: $warm }
    };
}

/// What is over soon is done more often, and most often what is nearest to what is promised: many small
/// reads. Large reads, which are as fast as pread() is, differ by a tenth from turn to turn, as pread() does
/// from itself. A disk that others use too is asked often as well.
macro_rules! times {
    (reads of "100 MiB", $side:literal) => {
        40
    };
    (reads of "1 GiB", "32^2") => {
        60
    };
    (reads of "1 GiB", $side:literal) => {
        40
    };
    (cold reads of $size:literal) => {
        40
    };
    (writes of "100 MiB") => {
        20
    };
    (writes of "1 GiB") => {
        16
    };
}

/// The rows of the protocol for a file.
macro_rules! open {
    ($size:tt, $side:tt, $n:literal) => {
        row!(concat!($size, ", N = ", $side, ": open"), 5, true,
            OPENERS => concat!("open {", $size, " ", $side, "} 100"))
    };
}
macro_rules! write {
    ($size:tt, $side:tt, $n:literal) => {
        // Memory that the machine below has not given us yet costs whoever fills it first.
        row!(concat!($size, ", N = ", $side, ": write"), times!(writes of $size), true,
            ALL => concat!("write {work} ", $n, " {", $size, " ", $side, " frames}"))
    };
}
macro_rules! cold {
    ($size:tt, $side:tt, $n:literal) => {
        // Below this machine there may be another with a cache: the first to read fills it.
        row!(concat!($size, ", N = ", $side, ": read, cold"), times!(cold reads of $size), true,
            COLD => concat!("cold {", $size, " ", $side, " disk} ", $n, " {", $size, " ", $side, " frames}"))
    };
}
macro_rules! cached {
    ($size:tt, $side:tt, $n:literal) => {
        row!(concat!($size, ", N = ", $side, ": read, cached"), times!(reads of $size, $side), true,
            ALL => concat!("read {", $size, " ", $side, "} ", $n, " {", $size, " ", $side, " frames}"))
    };
}
macro_rules! random {
    ($size:tt, $side:tt, $n:literal) => {
        row!(concat!($size, ", N = ", $side, ": read at random"), times!(reads of $size, $side), true,
            ALL => concat!("random {", $size, " ", $side, "} ", $n, " {", $size, " ", $side, " frames}"))
    };
}

pub(super) const TASKS: [Task; 40] = [
    open!("100 MiB", "32^2", 1024),
    write!("100 MiB", "32^2", 1024),
    cold!("100 MiB", "32^2", 1024),
    cached!("100 MiB", "32^2", 1024),
    random!("100 MiB", "32^2", 1024),
    open!("100 MiB", "100^2", 10000),
    write!("100 MiB", "100^2", 10000),
    cold!("100 MiB", "100^2", 10000),
    cached!("100 MiB", "100^2", 10000),
    random!("100 MiB", "100^2", 10000),
    open!("100 MiB", "1000^2", 1_000_000),
    write!("100 MiB", "1000^2", 1_000_000),
    cold!("100 MiB", "1000^2", 1_000_000),
    cached!("100 MiB", "1000^2", 1_000_000),
    random!("100 MiB", "1000^2", 1_000_000),
    open!("1 GiB", "32^2", 1024),
    write!("1 GiB", "32^2", 1024),
    cold!("1 GiB", "32^2", 1024),
    cached!("1 GiB", "32^2", 1024),
    random!("1 GiB", "32^2", 1024),
    open!("1 GiB", "100^2", 10000),
    write!("1 GiB", "100^2", 10000),
    cold!("1 GiB", "100^2", 10000),
    cached!("1 GiB", "100^2", 10000),
    random!("1 GiB", "100^2", 10000),
    open!("1 GiB", "1000^2", 1_000_000),
    write!("1 GiB", "1000^2", 1_000_000),
    cold!("1 GiB", "1000^2", 1_000_000),
    cached!("1 GiB", "1000^2", 1_000_000),
    random!("1 GiB", "1000^2", 1_000_000),
    row!(OPEN_SMALL, 5, true, OPENERS => "open {small} 100"),
    row!(OPEN_LARGE, 5, true, OPENERS => "open {large} 100"),
    row!(FIND, 15, true, &[SPILE, LIBRARY] => "find {large} {tiny} 200000"),
    row!(TINY, 1, false, &[SPILE, LIBRARY, CRATE] => "tiny {work} {tiny}"),
    row!(CLOSE, 1, false, &[SPILE, LIBRARY, PLAIN] => "close {work} {tiny}"),
    row!(COMMIT, 2, false, &[SPILE, PLAIN] => "commit {work} {commits}"),
    row!(DURABLE, 3, false, ALL => "durable {disk} {durable}"),
    row!(FRAMES[0], 20, true, &[SPILE, PYTHON] => "frames {few} {few frames}"),
    row!(FRAMES[1], 20, true, &[SPILE, PYTHON] => "frames {many} {many frames}"),
    row!(LOG, 12, true, &[SPILE, PYTHON] => "log {log}"),
];

pub(super) fn words(folder: &Path, disk: &Path, scale: f64) -> Words {
    let mut words = Words::new();
    for (k, file) in PROTOCOL.iter().enumerate() {
        let name = format!("{k}.gsd");
        words.insert(file.path, folder.join(&name).to_string_lossy().into());
        words.insert(file.disk, disk.join(&name).to_string_lossy().into());
        let frames = (file.bytes * scale / (28.0 * file.particles as f64)).round().max(2.0);
        words.insert(file.frames, frames.to_string());
    }
    for (name, file) in [
        ("work", "work.gsd"),
        ("small", "small.gsd"),
        ("large", "large.gsd"),
        ("few", "few.gsd"),
        ("many", "many.gsd"),
        ("log", "log.gsd"),
    ] {
        words.insert(name, folder.join(file).to_string_lossy().into());
    }
    words.insert("disk", disk.join("durable.gsd").to_string_lossy().into());
    for (name, number) in [
        ("tiny", 1e7),
        ("tiny small", 1e6),
        ("commits", 2e5),
        ("durable", 300.0),
        ("few frames", 5e3),
        ("many frames", 1e3),
        ("log frames", 2e4),
    ] {
        let number: f64 = number * scale;
        words.insert(name, number.round().max(20.0).to_string());
    }
    words
}

/// What makes the files that are read.
pub(super) fn files(words: &Words) -> Vec<String> {
    let mut tasks = Vec::new();
    for file in &PROTOCOL {
        for path in [file.path, file.disk] {
            tasks.push(format!("write {} {} {}", words[path], file.particles, words[file.frames]));
        }
    }
    tasks.push(format!("tiny {} {}", words["small"], words["tiny small"]));
    tasks.push(format!("tiny {} {}", words["large"], words["tiny"]));
    for (name, frames, particles) in
        [("few", "few frames", 100), ("many", "many frames", 1000), ("log", "log frames", 1)]
    {
        tasks.push(format!("make-hoomd {} {particles} {}", words[name], words[frames]));
    }
    tasks
}
