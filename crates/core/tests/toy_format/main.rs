//! The conformance suite passes for a correct format and fails for broken ones.

#![cfg(feature = "testkit")]

#[path = "../support/meter.rs"]
mod meter;
mod toy;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};
use spile_core::source::Source;
use spile_core::testkit::object_hashes;
use spile_core::testkit::{Suite, assert_same_content, files};
use spile_core::{Dataset, OpenOptions};
use tempfile::TempDir;

use toy::{Fault, Toy};

/// Sample files; in the last, not all bytes are changed.
fn samples() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let samples = [("a", "a note", 3, 4), ("b", "", 0, 5), ("c", "long", 90, 50)];
    for (name, note, rows, columns) in samples {
        std::fs::write(folder.path().join(name), toy::file(note, rows, columns)).unwrap();
    }
    let good = files(folder.path());
    (folder, good)
}

fn suite(fault: Fault) -> (TempDir, Suite) {
    let (folder, good) = samples();
    // Leaked once per test.
    let format: &'static Toy = Box::leak(Box::new(Toy(fault)));
    (folder, Suite::new(format, good).with_meter(meter::METER))
}

/// The message with which `check` fails.
fn failure(fault: Fault, check: impl Fn(&Suite)) -> String {
    let (_folder, suite) = suite(fault);
    let panic = catch_unwind(AssertUnwindSafe(|| check(&suite))).expect_err("must fail");
    panic.downcast_ref::<String>().expect("a message").clone()
}

fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

/// SHA-256 of the numbers of a sample, computed independently.
fn hash(rows: u32, columns: u32) -> String {
    let mut sum = Sha256::new();
    for k in 0..rows * columns {
        sum.update(((k * 37) as u16).to_le_bytes());
    }
    sum.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn a_correct_format_passes() {
    let (_folder, suite) = suite(Fault::None);
    let hashes = [hash(3, 4), hash(0, 5), hash(90, 50)].map(|h| vec![h]);
    let golden = suite.good.iter().cloned().zip(hashes).collect();
    suite.with_golden(golden).run_all();
}

#[test]
fn missing_hashes_are_reported() {
    let message = failure(Fault::None, |suite| {
        let golden = vec![(suite.good[0].clone(), vec![hash(3, 4), hash(3, 4)])];
        suite.clone().with_golden(golden).golden();
    });
    assert_contains(&message, &["a: expected 2 objects, found 1", &hash(3, 4)]);
}

#[test]
fn a_panic_is_reported_with_file_and_byte() {
    let message = failure(Fault::Panics, Suite::corruption);
    assert_contains(&message, &["a: byte 4 set to 0xff", "panicked: range end index 255"]);
    assert_contains(&failure(Fault::Panics, Suite::truncation), &["cut to", "panicked"]);
}

#[test]
fn allocation_of_an_unchecked_length_is_detected() {
    let message = failure(Fault::Allocates, Suite::corruption);
    assert_contains(&message, &["byte 7 set to 0xff", "GiB of memory, the limit is 64.0 MiB"]);
}

#[test]
fn wrong_errors_for_a_truncated_file_are_detected() {
    let message = failure(Fault::IoError, Suite::truncation);
    assert_contains(
        &message,
        &["cut to 0 of 46 bytes: open: wrong error kind `io` for a damaged file"],
    );
    let message = failure(Fault::NoLocation, Suite::truncation);
    assert_contains(&message, &["cut to 0 of 46 bytes: open: an error without a location"]);
}

#[test]
fn blocking_forever_is_detected() {
    let message = failure(Fault::Hangs, |suite| {
        let patience = Duration::from_millis(300);
        Suite { patience, ..suite.clone() }.truncation();
    });
    assert_contains(&message, &["cut to 4 of 46 bytes: still running after"]);
}

#[test]
fn attributes_lost_in_writing_are_reported() {
    let message = failure(Fault::LosesNote, Suite::round_trip);
    assert_contains(&message, &["a: written and read back: data: attributes", "a note"]);
}

#[test]
fn recognising_random_bytes_is_detected() {
    assert_contains(&failure(Fault::RecognisesAll, Suite::probe), &["recognises 0 random bytes"]);
}

#[test]
fn ignored_limits_are_detected() {
    let message = failure(Fault::IgnoresLimits, Suite::limits);
    assert_contains(&message, &["nodes 0, depth 1000: the tree has 1 nodes"]);
}

#[test]
fn regions_outside_the_file_are_detected() {
    assert_contains(&failure(Fault::LongRegion, Suite::regions), &["region \"data\" (23 to 47)"]);
}

#[test]
fn run_all_names_the_check_and_continues() {
    let message = failure(Fault::NoLocation, Suite::run_all);
    assert_contains(
        &message,
        &["toy does not conform", "truncation: a: cut", "corruption: a: byte"],
    );
}

#[test]
fn files_are_compared_by_value() {
    let open = |bytes| {
        Dataset::open(&Toy(Fault::None), Source::memory(bytes), &OpenOptions::default()).unwrap()
    };
    let a = open(toy::file("x", 2, 3));
    assert_same_content(&a, &open(toy::file("x", 2, 3)));
    let mut other = toy::file("x", 2, 3);
    *other.last_mut().unwrap() ^= 1;
    let b = open(other);
    let panic = catch_unwind(AssertUnwindSafe(|| assert_same_content(&a, &b))).unwrap_err();
    assert_contains(panic.downcast_ref::<String>().unwrap(), &["data: values (SHA-256)"]);
    assert_eq!(object_hashes(&a).unwrap(), [hash(2, 3)]);
}
