//! The corpus of the fuzz targets, without libFuzzer: every input that reached new code once runs in every test run.
//!
//! `cargo xtask fuzz --minimise` writes `fuzz/corpus`. A file has the inputs of one target, each after its length (32 bits,
//! little-endian). Inputs in `fuzz/seeds` are files; those that were failures once are kept there. `SPILE_CORPUS=NAME` runs one
//! target only.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;

// They are the public modules of the crate of the fuzz targets.
#[path = "../../../fuzz/src/drive.rs"]
#[allow(unreachable_pub)]
mod drive;
#[path = "../../../fuzz/src/verbs/mod.rs"]
#[allow(unreachable_pub)]
mod verbs;

/// Longest time for one input.
const PATIENCE: Duration = Duration::from_secs(10);

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

/// The inputs of a file of the corpus.
fn unpack(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut inputs = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (input, next) = after.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input);
        rest = next;
    }
    assert!(rest.is_empty(), "a length is missing");
    inputs
}

/// Runs a target on an input.
fn run(target: &str, input: &[u8]) {
    if let Some((_, run)) = verbs::ALL.iter().find(|(name, _)| *name == target) {
        return run(input);
    }
    match target {
        "zarr_nodes" => drive::drive_members(zarr(), &drive::members(input)),
        "zarr_open" => drive::drive_members(zarr(), &drive::one_array(input)),
        // Their programs contain the test itself.
        "core_dtype" | "core_select" => {}
        _ => {
            let name = target.strip_suffix("_open").expect("the name of a target");
            drive::drive(spile::REGISTRY.named(name).expect("a format"), input);
        }
    }
}

fn zarr() -> &'static dyn spile::Format {
    spile::REGISTRY.named("zarr").unwrap()
}

/// Runs all inputs of a target; returns those that failed or took too long.
fn failures(target: &str, inputs: &[&[u8]]) -> Vec<String> {
    let mut failed = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| run(target, input)));
        if done.is_err() || start.elapsed() > PATIENCE {
            failed.push(format!(
                "{target}: input {number} of {} bytes: {:?}",
                input.len(),
                start.elapsed()
            ));
        }
    }
    failed
}

#[test]
fn no_input_of_the_corpus_fails() {
    // One file after the other for targets that use a path; formats run beside each other.
    let mut packed: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in fs::read_dir(folder("corpus")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            packed.push((name, fs::read(&path).unwrap()));
        }
    }
    assert!(packed.len() > 20, "{} targets have a corpus", packed.len());
    let only = std::env::var("SPILE_CORPUS").ok();
    packed.retain(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let (verbs, formats): (Vec<_>, Vec<_>) =
        packed.iter().partition(|(name, _)| verbs::ALL.iter().any(|(verb, _)| verb == name));
    let of = |(name, bytes): &(String, Vec<u8>)| {
        let start = Instant::now();
        let failed = failures(name, &unpack(bytes));
        println!("{name}: {} bytes, {:.1?}", bytes.len(), start.elapsed());
        failed
    };
    let mut failed: Vec<String> = formats.into_par_iter().flat_map_iter(of).collect();
    failed.extend(verbs.into_iter().flat_map(of));
    for target in fs::read_dir(folder("seeds")).unwrap() {
        let target = target.unwrap().path();
        let name = target.file_name().unwrap().to_string_lossy().into_owned();
        for file in fs::read_dir(&target).unwrap() {
            let input = fs::read(file.unwrap().path()).unwrap();
            failed.extend(failures(&name, &[&input]));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
