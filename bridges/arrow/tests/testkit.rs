//! The conformance suite on tables written by pyarrow.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn arrow_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/arrow");
    let mut good = files(folder);
    good.retain(|file| file.extension().is_some_and(|ending| ending == "arrow"));
    Suite::new(&spile_arrow::Arrow, good).with_meter(meter::METER).run_all();
}
