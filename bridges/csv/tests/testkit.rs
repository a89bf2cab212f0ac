//! The conformance suite on tables written by pandas.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::testkit::{Suite, files};

#[test]
fn csv_passes_the_conformance_suite() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/csv");
    let mut good = files(folder);
    // Element types in names are read, but no longer written.
    let tagged = |file: &PathBuf| file.ends_with("frames.csv");
    good.retain(|file| file.extension().is_some_and(|ending| ending == "csv") && !tagged(file));
    assert!(good.len() > 5);
    Suite::new(&spile_csv::Csv, good).with_meter(meter::METER).run_all();
}
