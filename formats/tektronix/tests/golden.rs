//! Every golden file gives the samples, scale, grid and counts of the manifest.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder};
use spile_tektronix::Tektronix;

#[test]
fn golden_files_give_what_the_manifest_says() {
    check_all(&Tektronix, &folder("tektronix"));
}
