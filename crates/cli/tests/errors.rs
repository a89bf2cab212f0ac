//! Errors name the file that failed, not the one that was typed.

use std::fs;

#[path = "support/folder.rs"]
mod folder;
use folder::{Folder, golden};

#[test]
fn an_error_in_a_chunk_names_its_file_and_the_byte_in_it() {
    let folder = Folder::new();
    let chunks = ["zarr.json", "c/0/0/0", "c/0/1/0", "c/1/0/0", "c/1/1/0"];
    for name in chunks {
        let to = folder.path("x.zarr").join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(golden("zarr/v3.zarr/gzip").join(name), to).unwrap();
    }
    let chunk = folder.path("x.zarr/c/1/0/0");
    let mut bytes = fs::read(&chunk).unwrap();
    bytes[12..].fill(0x55);
    fs::write(&chunk, bytes).unwrap();
    let error = folder.bad(&["stat", "x.zarr"]);
    assert!(error.contains("x.zarr/c/1/0/0: "), "{error}");
    assert!(error.contains("chunk 2 at byte 0"), "{error}");
}
