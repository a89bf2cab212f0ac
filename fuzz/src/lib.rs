//! The operations that fuzz targets run on their input.
//!
//! The target of a format is a file `src/bin/<format>_open.rs` and a line in `Cargo.toml`. The targets of verbs, which
//! take files of all formats or programs of calls, are in `src/verbs`. `cargo xtask fuzz` uses the files in
//! `tests/golden/<format>` as seeds, and those in `corpus` and `seeds`. `crates/cli/tests/corpus.rs` runs the targets on
//! the corpus without libFuzzer.

mod budget;
pub mod drive;

pub use drive::{drive, drive_members, members, one_array};
