//! The conformance suite on files written by VTK and meshio.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn vtk_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/vtk");
    let data = |path: &PathBuf| {
        path.extension().is_some_and(|e| e.to_str().is_some_and(|e| e.starts_with("vt")))
    };
    let good = files(folder).into_iter().filter(data).collect();
    Suite::new(&spile_vtk::Vtk, good).with_meter(meter::METER).run_all();
}
