//! Every loss of the writer is declared, and nothing else.

#[path = "../../../tests/support/losses.rs"]
#[allow(dead_code)] // Stores are folders.
mod losses;
#[path = "../../../tests/support/plain_arrays.rs"]
mod plain_arrays;

use std::path::Path;

use spile_core::Dataset;
use spile_core::format::{OpenOptions, write_file};
use spile_core::sink::Overwrite;
use spile_core::testkit::differences;
use spile_zarr::Zarr;

#[test]
fn losses_are_declared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/zarr");
    for name in ["v2.zarr", "v3.zarr"] {
        let content =
            Dataset::open_path(&Zarr, folder.join(name), &OpenOptions::default()).unwrap();
        losses::assert_losses_are_declared(&Zarr, &content, name);
    }
    let all = losses::samples().into_iter().chain(plain_arrays::samples());
    for content in all.chain([plain_arrays::of_rank(64), plain_arrays::of_rank(65)]) {
        losses::assert_losses_are_declared(&Zarr, &content, "x.zarr");
    }
}

#[test]
fn thousands_of_attributes_come_back_within_the_default_limits() {
    let content = plain_arrays::many_attributes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    write_file(&Zarr, &content, &path, Overwrite::Never).unwrap();
    let back = Dataset::open_path(&Zarr, &path, &OpenOptions::default()).unwrap();
    assert_eq!(back.warnings(), []);
    assert!(differences(&content, &back).unwrap().is_empty());
}
