//! Memory and time of every verb on hostile files, at two sizes. The program runs with a limit of its data segment, which
//! the kernel enforces: an allocation beyond it ends the process. Linux only.
#![cfg(target_os = "linux")]

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::path::Path;
use std::process::Command;

use folder::{Folder, golden};

/// The memory limit that is given to the program, in MiB.
const BUDGET: u64 = 32;

/// Memory of the program itself: allocator, stacks of two threads, tables of the formats; in MiB.
const BASE: u64 = 24;

/// CPU seconds of a command that are not compared, and the largest factor between the two sizes beyond their ratio.
const IGNORED: f64 = 0.5;
const FACTOR: f64 = 2.5;

/// The larger file has this many times the objects of the smaller.
const RATIO: usize = 4;

const VERBS: [&str; 17] = [
    "info IN",
    "ls IN",
    "stat IN",
    "check IN",
    "hash IN",
    "diff IN IN",
    "map IN",
    "plot IN -o out.png --overwrite",
    "index IN out.json --overwrite",
    "salvage IN -o out.salvaged --overwrite",
    "merge IN IN -o out.npz --overwrite",
    "convert IN out.h5 --overwrite",
    "convert IN out.zarr --overwrite",
    "convert IN out.npz --overwrite",
    "convert IN out.csv --overwrite",
    "convert IN out.sdf --overwrite",
    "convert IN out.gsd --overwrite",
];

/// Names of hostile files, the number of objects in the smaller one, and how they are made.
type Make = fn(usize) -> Vec<u8>;
const FILES: [(&str, usize, Make); 9] = [
    ("sparse.gsd", 250, sparse_gsd),
    ("sections.scd", 5_000, scda),
    ("tags.xml", 5_000, iotk),
    ("arrays.vti", 2_000, vti),
    ("dimensions.npy", 20_000, npy),
    ("attributes.nc", 5_000, netcdf),
    ("columns.csv", 2_000, csv),
    ("absent.zarr", 10, zarr),
    ("comments.xml", 20_000, comments),
];

fn sparse_gsd(names: usize) -> Vec<u8> {
    let mut list: Vec<u8> = (0..names).flat_map(|k| format!("a{k}\0").into_bytes()).collect();
    list.resize(list.len().next_multiple_of(64) + 64, 0);
    let entries = names as u64 + 1;
    let list_at = 256 + 32 * entries;
    let mut file = Vec::new();
    for word in [0x65DF_65DF_65DF_65DF, 256, entries, list_at, list.len() as u64 / 64] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0x1_0000_u32.to_le_bytes());
    file.extend((2_u32 << 16).to_le_bytes());
    file.resize(256, 0);
    let frames = (0..names as u64).map(|k| (0, k)).chain([(65_536, 0)]);
    for (frame, id) in frames {
        for word in [frame, 1, list_at + list.len() as u64, 1 | id << 32 | 1 << 48] {
            file.extend(word.to_le_bytes());
        }
    }
    file.extend(list);
    file.push(7);
    file
}

fn scda(sections: usize) -> Vec<u8> {
    let mut file = fs::read(golden("scda/a_basic.scd")).unwrap()[..128].to_vec();
    let section = format!("I s {}\n{}", "-".repeat(59), "x".repeat(32));
    file.extend(section.repeat(sections).into_bytes());
    file
}

fn iotk(tags: usize) -> Vec<u8> {
    format!("<R>{}</R>", "<a type='real' size='1'>1.0</a>".repeat(tags)).into_bytes()
}

fn comments(count: usize) -> Vec<u8> {
    format!("<R>{}", "<!--".repeat(count)).into_bytes()
}

fn vti(arrays: usize) -> Vec<u8> {
    let extent = "0 0 0 0 0 0";
    let array = |k| format!("<DataArray type='Float64' Name='a{k}' format='ascii'>1</DataArray>");
    let arrays: String = (0..arrays).map(array).collect();
    format!(
        "<VTKFile type='ImageData' byte_order='LittleEndian'><ImageData WholeExtent='{extent}' Origin='0 0 0' \
         Spacing='1 1 1'><Piece Extent='{extent}'><PointData>{arrays}</PointData></Piece></ImageData></VTKFile>"
    )
    .into_bytes()
}

fn npy(dimensions: usize) -> Vec<u8> {
    let shape = "1, ".repeat(dimensions);
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut file = b"\x93NUMPY\x02\0".to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend(header.into_bytes());
    file.extend([0; 8]);
    file
}

fn netcdf(attributes: usize) -> Vec<u8> {
    let mut file = b"CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0c".to_vec();
    file.extend((attributes as u32).to_be_bytes());
    for k in 0..attributes {
        file.extend(8_u32.to_be_bytes());
        file.extend(format!("a{k:07}").into_bytes());
        file.extend(b"\0\0\0\x02\0\0\0\x01x\0\0\0");
    }
    file.extend([0; 8]);
    file
}

fn csv(columns: usize) -> Vec<u8> {
    let row = |cell: &dyn Fn(usize) -> String| (0..columns).map(cell).collect::<Vec<_>>().join(",");
    format!("{}\n{}\n{}\n", row(&|k| format!("c{k}")), row(&|_| "1".into()), row(&|_| "2".into()))
        .into_bytes()
}

/// An array of 2^40 elements, of which none is stored.
fn zarr(_: usize) -> Vec<u8> {
    br#"{"zarr_format":3,"node_type":"array","shape":[1099511627776],"data_type":"float64","chunk_grid":{"name":"regular",
    "configuration":{"chunk_shape":[1]}},"chunk_key_encoding":{"name":"default"},"fill_value":0.0,
    "codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#
        .to_vec()
}

/// CPU time of the children of this process that have ended, in seconds.
fn children_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |k: usize| fields[k].parse::<f64>().unwrap();
    // Fields 16 and 17 of proc(5); the first one here is field 3. A tick is 10 ms.
    (ticks(13) + ticks(14)) / 100.0
}

/// Runs a verb on a file; returns its CPU time in seconds. Fails if the program is ended by a signal, which an
/// allocation beyond the limit causes, or does not understand the command.
fn measure(folder: &Path, verb: &str, file: &str) -> f64 {
    let words = verb.replace("IN", file);
    let limit = (2 * BUDGET + BASE) * 1024;
    let line = format!("ulimit -d {limit} -t 60; exec \"$0\" -j2 --max-memory {BUDGET}M {words}");
    let mut command = Command::new("sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_spile")]).current_dir(folder);
    let before = children_time();
    let done = command.output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(matches!(done.status.code(), Some(0..=3)), "{words}: {} {error}", done.status);
    assert!(!error.contains("Usage:") && !error.contains("unknown"), "{words}: {error}");
    children_time() - before
}

#[test]
fn every_verb_stays_within_twice_the_memory_limit_and_takes_linear_time() {
    for (name, count, make) in FILES {
        let times = [count, RATIO * count].map(|count| {
            let folder = Folder::new();
            let path = folder.path(name);
            if name.ends_with(".zarr") {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("zarr.json"), make(count)).unwrap();
            } else {
                fs::write(path, make(count)).unwrap();
            }
            let root = folder.path(".");
            VERBS.map(|verb| measure(&root, verb, name))
        });
        for (k, verb) in VERBS.iter().enumerate() {
            let (small, large) = (times[0][k], times[1][k]);
            let most = IGNORED + FACTOR * RATIO as f64 * small.max(0.02);
            assert!(
                large <= most,
                "{verb} on {name}: {small} s, {large} s for {RATIO} times the size"
            );
        }
    }
}
