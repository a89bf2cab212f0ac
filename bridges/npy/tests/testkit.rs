//! The conformance suite on arrays that NumPy saved.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn npy_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/npy");
    Suite::new(&spile_npy::Npy, files(folder)).with_meter(meter::METER).run_all();
}
