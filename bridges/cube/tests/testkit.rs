//! The conformance suite on files written by ASE.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

fn golden(folder: &str) -> Vec<PathBuf> {
    let mut good =
        files(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder));
    good.retain(|file| file.extension().is_some_and(|ending| ending != "py"));
    good
}

#[test]
fn cube_passes_the_conformance_suite() {
    Suite::new(&spile_cube::Cube, golden("cube")).with_meter(meter::METER).run_all();
}

#[test]
fn xsf_passes_the_conformance_suite() {
    Suite::new(&spile_cube::Xsf, golden("xsf")).with_meter(meter::METER).run_all();
}
