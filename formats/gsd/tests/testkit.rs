//! The conformance suite on golden files of every version.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Json, Suite, manifest};

/// Files of every layout; the others differ from these in their bytes, not in their structure.
const SAMPLES: [&str; 22] = [
    "v0.0.1/1232f6c_many_frames.gsd",
    "v0.0.1/ce10462_names.gsd",
    "v0.0.1/ce10462_one_frame.gsd",
    "v0.0.1/ce10462_unknown_type.gsd",
    "v0.0.1/ce10462_empty_frames.gsd",
    "v0.0.1-other-abi/i386_one_frame.gsd",
    "v0.0.1-other-abi/packed_many_frames.gsd",
    "code-f02/all_types.gsd",
    "code-v0.1.0/names.gsd",
    "code-v1.0.0/all_types.gsd",
    "code-v1.10.0/index_grow_by_one.gsd",
    "code-v2.0.0/zero_length.gsd",
    "code-v3.4.1/all_types.gsd",
    "code-v5.0.1/names.gsd",
    "code-v5.0.1/empty_frames.gsd",
    "code-v5.0.1/many_frames_growth.gsd",
    "py-5.0.1/hoomd_full_double.gsd",
    "py-5.0.1/hoomd_varying_N.gsd",
    "py-5.0.1/fl_nonascii_string_attempt.gsd",
    "py-2.9.0/hoomd_state.gsd",
    "edge/empty_chunk_name_REFERENCE_CALLS_CORRUPT.gsd",
    "edge/200_empty_frames_then_chunk_REFERENCE_CALLS_CORRUPT.gsd",
];

#[test]
fn gsd_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd");
    let all = manifest(folder.join("manifest.json"));
    let golden = all.as_object().unwrap().iter().filter(|(name, _)| !name.starts_with("corrupt/"));
    let golden = golden.map(|(name, file): (&String, &Json)| {
        let chunks = file["chunks"].as_array().unwrap();
        let sums = chunks.iter().map(|c| c["sha256"].as_str().unwrap().to_string());
        (folder.join(name), sums.collect())
    });
    let mut suite =
        Suite::new(&spile_gsd::Gsd, SAMPLES.iter().map(|name| folder.join(name)).collect())
            .with_golden(golden.collect())
            .with_meter(meter::METER);
    // Two dozen files of ten kilobytes: damage is thinned out to what a minute allows.
    suite.work = 16 << 20;
    suite.run_all();
}
