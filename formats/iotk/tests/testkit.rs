//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, manifest};

/// Files in which the library or its converter lost something; see `golden.rs`.
const LOSSY: [&str; 3] = ["types.xml", "special.xml", "conv/"];

#[test]
fn iotk_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/iotk");
    let all = manifest(folder.join("manifest.json"));
    let mut good = Vec::new();
    let mut golden = Vec::new();
    for (name, file) in all.as_object().unwrap() {
        let lossy = LOSSY.iter().any(|part| name.contains(part));
        if lossy || file["format"] == "raw-text" {
            continue;
        }
        let path = folder.join(name);
        // Three k-points are three times the same damage.
        if !name.contains("K00002") && !name.contains("K00003") {
            good.push(path.clone());
        }
        if file["format"] == "binary" {
            let data = file["nodes"].as_array().unwrap().iter();
            let data = data.filter(|node: &&Json| node["kind_of_node"] == "data");
            let sums = data.map(|node| node["sha256"].as_str().unwrap().to_string());
            golden.push((path, sums.collect()));
        }
    }
    assert!(good.len() > 35, "{}", good.len());
    let mut suite =
        Suite::new(&spile_iotk::Iotk, good).with_golden(golden).with_meter(meter::METER);
    suite.work = 32 << 20;
    suite.run_all();
}
