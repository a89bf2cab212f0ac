//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, manifest};

#[test]
fn scda_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scda");
    let all = manifest(folder.join("manifest.json"));
    let files = all["files"].as_array().unwrap();
    let golden: Vec<(PathBuf, Vec<String>)> = files
        .iter()
        .map(|file: &Json| {
            let sections = file["sections"].as_array().unwrap();
            let sums = sections.iter().map(|s| s["data_sha256"].as_str().unwrap().to_string());
            (folder.join(file["file"].as_str().unwrap()), sums.collect())
        })
        .collect();
    // The large one is golden, but a thousand damaged copies of it say nothing new.
    let small = golden.iter().map(|(path, _)| path.clone());
    let small = small.filter(|path| !path.ends_with("big_1mb.scd")).collect();
    Suite::new(&spile_scda::Scda, small).with_golden(golden).with_meter(meter::METER).run_all();
}
