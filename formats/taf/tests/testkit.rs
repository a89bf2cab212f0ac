//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, files, manifest};

#[test]
fn taf_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/taf");
    let all = manifest(folder.join("manifest.json"));
    let golden = all["good"].as_object().unwrap().values().map(|file: &Json| {
        let path = folder.join(file["file"].as_str().unwrap());
        (path, vec![file["sha256_raw"].as_str().unwrap().to_string()])
    });
    Suite::new(&spile_taf::Taf, files(folder.join("good")))
        .with_golden(golden.collect())
        .with_meter(meter::METER)
        .run_all();
}
