//! The conformance suite on files written by other programs.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn columns_pass_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/columns");
    Suite::new(&spile_columns::Columns, files(folder)).with_meter(meter::METER).run_all();
}
