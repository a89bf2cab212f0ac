//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, manifest};

/// Files in which the library or its converter lost data; see `golden.rs`.
const LOSSY: [&str; 3] = ["types.xml", "special.xml", "conv/"];

/// One file of each kind, to be damaged in thousands of ways.
const DAMAGED: [&str; 18] = [
    "be/types.dat",
    "m8/types.dat",
    "subrec/subrec.dat",
    "golden/attrs.dat",
    "golden/empty.dat",
    "golden/empty.xml",
    "golden/hand_written.xml",
    "golden/link_main.xml",
    "golden/plain_unit.dat",
    "golden/plain_unit.xml",
    "golden/qe_syntax.dat",
    "golden/qe_syntax.xml",
    "golden/raw.dat",
    "golden/skip_root.xml",
    "golden/strings.xml",
    "golden/tags.dat",
    "si.save/charge-density.dat",
    "K00001/eigenval.xml",
];

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
        good.push(path.clone());
        if file["format"] == "binary" {
            let data = file["nodes"].as_array().unwrap().iter();
            let data = data.filter(|node: &&Json| node["kind_of_node"] == "data");
            let sums = data.map(|node| node["sha256"].as_str().unwrap().to_string());
            golden.push((path, sums.collect()));
        }
    }
    assert!(good.len() > 40, "{}", good.len());
    let suite = Suite::new(&spile_iotk::Iotk, good).with_golden(golden).with_meter(meter::METER);
    suite.probe();
    suite.check();
    suite.regions();
    suite.golden();
    suite.round_trip();
    suite.sources();
    suite.split_reads();
    suite.limits();
    let mut damaged = suite;
    damaged.good.retain(|path| DAMAGED.iter().any(|name| path.ends_with(name)));
    assert_eq!(damaged.good.len(), DAMAGED.len());
    damaged.work = 32 << 20;
    damaged.truncation();
    damaged.corruption();
}
