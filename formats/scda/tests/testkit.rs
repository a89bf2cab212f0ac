//! The conformance suite on golden files and checkpoints.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::comm::Serial;
use spile_core::testkit::{Json, Suite, manifest};
use spile_core::tree::Value;
use spile_scda::{Checkpoint, Field, Options};

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
    // Damaged copies of the large file take long and test nothing new.
    let small = golden.iter().map(|(path, _)| path.clone());
    let small = small.filter(|path| !path.ends_with("big_1mb.scd")).collect();
    Suite::new(&spile_scda::Scda, small).with_golden(golden).with_meter(meter::METER).run_all();
}

#[test]
fn checkpoints_pass_the_conformance_suite() {
    let folder = tempfile::tempdir().unwrap();
    let files = [false, true].map(|encode| {
        let path = folder.path().join(if encode { "compressed.scda" } else { "plain.scda" });
        let mut file = Checkpoint::create(&Serial, &path, "suite", 1, Options::default()).unwrap();
        file.value("step", 7_u64).unwrap();
        file.value("grid/spacing", Value::List(vec![0.5.into(), 0.25.into()])).unwrap();
        let mut field = Field::of::<f64>("grid/e").shaped(&[2]).attr("units", "V/m");
        field.compressed = encode;
        file.write(&field, &[2], &[0.5, -1.0, 2.0, 1e300]).unwrap();
        let mut lists = Field::of::<f64>("lists");
        lists.compressed = encode;
        file.write_ragged(&lists, &[3], &[1, 0, 2], &[1.0, 2.0, 3.0]).unwrap();
        file.close().unwrap();
        path
    });
    Suite::new(&spile_scda::Scda, files.to_vec()).with_meter(meter::METER).run_all();
}
