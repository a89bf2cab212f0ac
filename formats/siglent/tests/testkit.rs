//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;
#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use spile_core::testkit::Suite;

#[test]
fn siglent_passes_the_conformance_suite() {
    let files = recordings::golden_files("siglent");
    let golden = files.iter().map(|file| {
        let expected = recordings::records(file).iter().map(|r| r.sha256_raw.clone()).collect();
        (file.clone(), expected)
    });
    Suite::new(&spile_siglent::Siglent, files.clone())
        .with_golden(golden.collect())
        .with_meter(meter::METER)
        .run_all();
}
