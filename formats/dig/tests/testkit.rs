//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;
#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use spile_core::testkit::{Suite, files};

#[test]
fn dig_passes_the_conformance_suite() {
    let folder = recordings::folder("dig");
    let golden = files(&folder).into_iter().map(|file| {
        let expected = recordings::records(&file).iter().map(|r| r.sha256_raw.clone()).collect();
        (file, expected)
    });
    Suite::new(&spile_dig::Dig, files(&folder))
        .with_golden(golden.collect())
        .with_meter(meter::METER)
        .run_all();
}
