//! The conformance suite on files written by ASE.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn xyz_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/xyz");
    let mut good = files(folder);
    good.retain(|file| file.extension().is_some_and(|ending| ending != "py"));
    Suite::new(&spile_xyz::Xyz, good).with_meter(meter::METER).run_all();
}
