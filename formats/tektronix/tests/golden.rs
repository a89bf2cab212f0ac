//! Golden files match the manifest in samples, scale, grid and counts.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder};
use spile_tektronix::Tektronix;

#[test]
fn golden_files_match_the_manifest() {
    check_all(&Tektronix, &folder("tektronix"));
}
