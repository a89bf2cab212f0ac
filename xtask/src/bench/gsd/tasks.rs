//! The tasks and their sizes.

use std::path::Path;

use super::super::harness::{Task, Values, cold_task, paths, task};

pub(super) const SPILE: &str = "spile";
pub(super) const PLAIN: &str = "pread/pwrite";
pub(super) const LIBRARY: &str = "C library";
pub(super) const PYTHON: &str = "Python";
pub(super) const CRATE: &str = "hoomd-gsd";

pub(super) const OPEN_SMALL: &str = "open 10^6 entries";
pub(super) const OPEN_LARGE: &str = "open 10^7 entries";
pub(super) const FIND: &str = "find one of 10^7 entries";
pub(super) const TINY: &str = "10^7 tiny frames and close";
pub(super) const CLOSE: &str = "close after 10^7 tiny frames";
pub(super) const COMMIT: &str = "frames of 3 chunks, each committed, no sync";
pub(super) const DURABLE: &str = "durable frames";
pub(super) const FRAMES: [&str; 2] =
    ["HOOMD frames, 100 particles", "HOOMD frames, 1000 particles"];
pub(super) const LOG: &str = "read_log, 4 quantities";

const ALL: &[&str] = &[SPILE, PLAIN, LIBRARY, PYTHON, CRATE];
const OPENERS: &[&str] = &[SPILE, LIBRARY, PYTHON, CRATE];
const COLD: &[&str] = &[SPILE, PLAIN, LIBRARY, PYTHON];

/// What a cell of the table shows.
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
    /// Placeholders for its path in memory, its path on disk, and its number of frames.
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

/// The rows of a file of the protocol.
///
/// Short tasks are repeated more often, and most often those close to their targets: many small reads. Large
/// reads, like `pread()` itself, vary by 10 %. The disk may be shared with others.
macro_rules! rows {
    ($($size:literal $side:literal $n:literal $writes:literal $reads:literal)+) => {
        [$(
            task(concat!($size, ", N = ", $side, ": open"), 5,
                &[(OPENERS, concat!("open {", $size, " ", $side, "} 100"))]),
            // Warm-up: memory that the hypervisor has not yet assigned is slow on first use.
            task(concat!($size, ", N = ", $side, ": write"), $writes,
                &[(ALL, concat!("write {work} ", $n, " {", $size, " ", $side, " frames}"))]),
            // Warm-up: the host may cache the disk.
            task(concat!($size, ", N = ", $side, ": read, cold"), 40,
                &[(COLD, concat!("cold {", $size, " ", $side, " disk} ", $n, " {", $size, " ", $side, " frames}"))]),
            task(concat!($size, ", N = ", $side, ": read, cached"), $reads,
                &[(ALL, concat!("read {", $size, " ", $side, "} ", $n, " {", $size, " ", $side, " frames}"))]),
            task(concat!($size, ", N = ", $side, ": read at random"), $reads,
                &[(ALL, concat!("random {", $size, " ", $side, "} ", $n, " {", $size, " ", $side, " frames}"))]),
        )+
            task(OPEN_SMALL, 5, &[(OPENERS, "open {small} 100")]),
            task(OPEN_LARGE, 5, &[(OPENERS, "open {large} 100")]),
            task(FIND, 15, &[(&[SPILE, LIBRARY], "find {large} {tiny} 200000")]),
            cold_task(TINY, 1, &[(&[SPILE, LIBRARY, CRATE], "tiny {work} {tiny}")]),
            cold_task(CLOSE, 1, &[(&[SPILE, LIBRARY, PLAIN], "close {work} {tiny}")]),
            cold_task(COMMIT, 2, &[(&[SPILE, PLAIN], "commit {work} {commits}")]),
            cold_task(DURABLE, 3, &[(ALL, "durable {disk} {durable}")]),
            task(FRAMES[0], 20, &[(&[SPILE, PYTHON], "frames {few} {few frames}")]),
            task(FRAMES[1], 20, &[(&[SPILE, PYTHON], "frames {many} {many frames}")]),
            task(LOG, 12, &[(&[SPILE, PYTHON], "log {log}")]),
        ]
    };
}

pub(super) const TASKS: [Task; 40] = rows![
    "100 MiB" "32^2" 1024 20 40
    "100 MiB" "100^2" 10000 20 40
    "100 MiB" "1000^2" 1_000_000 20 40
    "1 GiB" "32^2" 1024 16 60
    "1 GiB" "100^2" 10000 16 40
    "1 GiB" "1000^2" 1_000_000 16 40
];

pub(super) fn values(folder: &Path, disk: &Path, scale: f64) -> Values {
    let mut values = paths(
        folder,
        &[
            ("work", "work.gsd"),
            ("small", "small.gsd"),
            ("large", "large.gsd"),
            ("few", "few.gsd"),
            ("many", "many.gsd"),
            ("log", "log.gsd"),
        ],
    );
    values.extend(paths(disk, &[("disk", "durable.gsd")]));
    for (k, file) in PROTOCOL.iter().enumerate() {
        let name = format!("{k}.gsd");
        values.extend(paths(folder, &[(file.path, &name)]));
        values.extend(paths(disk, &[(file.disk, &name)]));
        let frames = (file.bytes * scale / (28.0 * file.particles as f64)).round().max(2.0);
        values.insert(file.frames, frames.to_string());
    }
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
        values.insert(name, number.round().max(20.0).to_string());
    }
    values
}

/// Tasks that create the files.
pub(super) fn files(values: &Values) -> Vec<String> {
    let mut tasks = Vec::new();
    for file in &PROTOCOL {
        for path in [file.path, file.disk] {
            tasks
                .push(format!("write {} {} {}", values[path], file.particles, values[file.frames]));
        }
    }
    tasks.push(format!("tiny {} {}", values["small"], values["tiny small"]));
    tasks.push(format!("tiny {} {}", values["large"], values["tiny"]));
    for (name, frames, particles) in
        [("few", "few frames", 100), ("many", "many frames", 1000), ("log", "log frames", 1)]
    {
        tasks.push(format!("make-hoomd {} {particles} {}", values[name], values[frames]));
    }
    tasks
}
