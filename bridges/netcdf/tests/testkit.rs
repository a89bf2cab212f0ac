//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::{Path, PathBuf};

use spile_core::testkit::{Suite, files, manifest};

#[test]
fn netcdf_classic_passes_the_conformance_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/netcdf3");
    let mut all = files(&folder);
    all.retain(|path| path.extension().is_some_and(|extension| extension == "nc"));
    let sums = manifest(folder.join("manifest.json"));
    let golden = all.iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let list = sums[name].as_array().unwrap_or_else(|| panic!("{name}: no sums"));
        (path.clone(), list.iter().map(|sum| sum.as_str().unwrap().to_string()).collect())
    });
    let golden: Vec<(PathBuf, Vec<String>)> = golden.collect();
    assert_eq!(golden.len(), sums.as_object().unwrap().len());
    Suite::new(&spile_netcdf::Classic, all).with_golden(golden).with_meter(meter::METER).run_all();
}
