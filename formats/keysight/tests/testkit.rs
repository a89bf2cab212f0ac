//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;
#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use spile_core::testkit::{Suite, files};
use spile_keysight::Keysight;

static FORMAT: Keysight = Keysight { hdf5: &spile_hdf5::Hdf5 };

#[test]
fn keysight_passes_the_conformance_suite() {
    let folder = recordings::folder("keysight");
    let golden = files(&folder).into_iter().map(|file| {
        let expected = recordings::records(&file).iter().map(|r| r.sha256_raw.clone()).collect();
        (file, expected)
    });
    Suite::new(&FORMAT, files(&folder))
        .with_golden(golden.collect())
        .with_meter(meter::METER)
        .run_all();
}
