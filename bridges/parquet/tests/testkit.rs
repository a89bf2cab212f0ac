//! The conformance suite on tables written by pyarrow.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn parquet_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/parquet");
    let mut good = files(folder);
    good.retain(|file| file.extension().is_some_and(|ending| ending == "parquet"));
    Suite::new(&spile_parquet::Parquet, good).with_meter(meter::METER).run_all();
}
