//! The conformance suite on the golden files.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::path::{Path, PathBuf};

use spile_core::format::Format;
use spile_core::testkit::{Suite, files, manifest};

/// Files with checksums in the manifest: all except those with variable-length or compound datasets.
fn golden(folder: &Path, all: &[PathBuf]) -> Vec<(PathBuf, Vec<String>)> {
    let sums = manifest(folder.join("manifest.json"));
    let has_sums = |name: &str| !name.starts_with("text_") && !name.starts_with("table_");
    let named = all.iter().map(|path| (path, path.file_name().unwrap().to_str().unwrap()));
    let golden = named.filter(|(_, name)| has_sums(name)).map(|(path, name)| {
        let list = sums[name].as_array().unwrap_or_else(|| panic!("{name}: no sums"));
        let list = list.iter().map(|sum| sum.as_str().unwrap().to_string());
        (path.clone(), list.collect())
    });
    golden.collect()
}

fn suite(format: &'static dyn Format, name: &str, extension: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    let mut all = files(&folder);
    // The suite expects files without errors.
    all.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.extension().is_some_and(|e| e == extension) && !name.starts_with("unsupported_")
    });
    let suite = |files: &[PathBuf]| {
        let suite = Suite::new(format, files.to_vec()).with_golden(golden(&folder, files));
        // The files have many structures; a sample of each kind is damaged.
        Suite { work: 24 << 20, ..suite }.with_meter(meter::METER)
    };
    // External links are errors.
    let (links, whole): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|path| path.file_name().unwrap().to_str().unwrap().starts_with("links_"));
    suite(&whole).run_all();
    let links = suite(&links);
    links.golden();
    links.round_trip();
    links.split_reads();
    links.truncation();
    links.corruption();
}

#[test]
fn hdf5_passes_the_conformance_suite() {
    suite(&spile_hdf5::Hdf5, "hdf5", "h5");
}

#[test]
fn netcdf_passes_the_conformance_suite() {
    suite(&spile_hdf5::NetCdf, "netcdf", "nc");
}
