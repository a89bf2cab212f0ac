//! The conformance suite on arrays and archives written by NumPy.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::PathBuf;

use spile_core::format::Format;
use spile_core::testkit::{Suite, files};

fn suite(format: &'static dyn Format) {
    let name = format.info().name;
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut good = files(golden.join(name));
    good.retain(|file| file.extension().is_some_and(|ending| ending == name));
    Suite::new(format, good).with_meter(meter::METER).run_all();
}

#[test]
fn npy_passes_the_conformance_suite() {
    suite(&spile_npy::Npy);
}

#[test]
fn npz_passes_the_conformance_suite() {
    suite(&spile_npy::Npz);
}
