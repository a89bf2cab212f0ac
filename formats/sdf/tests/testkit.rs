//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, manifest};

/// Golden files that readers refuse.
const BAD: [&str; 5] = ["bad_version", "truncated", "unfinished", "nblocks0", "nblocks_minus"];

/// Small files of every kind, for tests with many damaged copies.
const SMALL: [&str; 9] = [
    "drv_station.sdf",
    "drv_strlen64.sdf",
    "drv_noblocks_closed.sdf",
    "epoch1d_single_subsets_0000.sdf",
    "hand_future_rev1_9_extra_meta_padded_headers.sdf",
    "hand_nosummary.sdf",
    "hand_rev1_0.sdf",
    "hand_rev1_0_nosummary.sdf",
    "sdfr_written.sdf",
];

fn golden() -> (PathBuf, Vec<(PathBuf, Vec<String>)>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    let all = manifest(folder.join("manifest.json"));
    let files = all["files"].as_array().unwrap();
    let good =
        files.iter().filter(|f| !BAD.iter().any(|b| f["file"].as_str().unwrap().contains(b)));
    let sums = |file: &Json| {
        let blocks = file["blocks"].as_array().unwrap();
        blocks.iter().filter_map(|b| Some(b["sha256"].as_str()?.to_string())).collect()
    };
    let golden = good.map(|f| (folder.join(f["file"].as_str().unwrap()), sums(f))).collect();
    (folder, golden)
}

#[test]
fn sdf_passes_the_conformance_suite() {
    let (folder, golden) = golden();
    let small = SMALL.iter().map(|name| folder.join(name)).collect();
    let mut suite = Suite::new(&spile_sdf::Sdf, small).with_golden(golden).with_meter(meter::METER);
    suite.work = 32 << 20;
    suite.run_all();
}

#[test]
fn every_good_file_passes_the_tests_without_damage() {
    let (_, golden) = golden();
    let all = golden.iter().map(|(path, _)| path.clone()).collect();
    let suite = Suite::new(&spile_sdf::Sdf, all);
    suite.probe();
    suite.check();
    suite.regions();
    suite.round_trip();
    suite.sources();
    suite.split_reads();
}
