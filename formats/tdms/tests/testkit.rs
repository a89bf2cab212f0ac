//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;
#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use spile_core::testkit::Suite;

#[test]
fn tdms_passes_the_conformance_suite() {
    let files = recordings::golden_files("tdms");
    assert_eq!(files.len(), 5);
    Suite::new(&spile_tdms::Tdms, files).with_meter(meter::METER).run_all();
}
