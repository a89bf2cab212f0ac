//! The suite passes a sound format and fails broken ones: a test that the tests can fail.

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

/// Sample files; the last is too long to have all of its bytes changed.
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
    // One small leak a test.
    let format: &'static Toy = Box::leak(Box::new(Toy(fault)));
    (folder, Suite::new(format, good).with_meter(meter::METER))
}

/// The message with which `check` fails.
fn failure(fault: Fault, check: impl Fn(&Suite)) -> String {
    let (_folder, suite) = suite(fault);
    let panic = catch_unwind(AssertUnwindSafe(|| check(&suite))).expect_err("must fail");
    panic.downcast_ref::<String>().expect("a message").clone()
}

fn assert_names(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

/// SHA-256 of the numbers of a sample, made without the code under test.
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
fn a_sound_format_passes() {
    let (_folder, suite) = suite(Fault::None);
    let hashes = [hash(3, 4), hash(0, 5), hash(90, 50)].map(|h| vec![h]);
    let golden = suite.good.iter().cloned().zip(hashes).collect();
    suite.with_golden(golden).run_all();
}

#[test]
fn wrong_hashes_are_told_apart() {
    let message = failure(Fault::None, |suite| {
        let golden = vec![(suite.good[0].clone(), vec![hash(3, 4), hash(3, 4)])];
        suite.clone().with_golden(golden).golden();
    });
    assert_names(&message, &["a: 1 objects, 2 expected", &hash(3, 4)]);
}

#[test]
fn a_panic_is_reported_with_the_file_and_the_byte() {
    let message = failure(Fault::Panics, Suite::corruption);
    assert_names(&message, &["a: byte 4 set to 0xff", "panicked: range end index 255"]);
    assert_names(&failure(Fault::Panics, Suite::truncation), &["cut to", "panicked"]);
}

#[test]
fn memory_for_an_unchecked_length_is_noticed() {
    let message = failure(Fault::Allocates, Suite::corruption);
    assert_names(&message, &["byte 7 set to 0xff", "GiB of memory, the budget is 64.0 MiB"]);
}

#[test]
fn wrong_errors_for_a_cut_file_are_noticed() {
    let message = failure(Fault::BlamesTheSystem, Suite::truncation);
    assert_names(&message, &["cut to 0 of 46 bytes: open: a damaged file is no `io` error"]);
    let message = failure(Fault::NoPlace, Suite::truncation);
    assert_names(&message, &["cut to 0 of 46 bytes: open: an error without a place"]);
}

#[test]
fn waiting_forever_is_noticed() {
    let message = failure(Fault::Hangs, |suite| {
        let patience = Duration::from_millis(300);
        Suite { patience, ..suite.clone() }.truncation();
    });
    assert_names(&message, &["cut to 4 of 46 bytes: still busy after"]);
}

#[test]
fn what_is_lost_in_writing_is_named() {
    let message = failure(Fault::Forgets, Suite::round_trip);
    assert_names(&message, &["a: written and read back: data: attributes", "a note"]);
}

#[test]
fn claiming_noise_is_noticed() {
    assert_names(&failure(Fault::ClaimsAll, Suite::probe), &["claims 0 random bytes"]);
}

#[test]
fn limits_that_are_not_kept_are_noticed() {
    let message = failure(Fault::NoLimits, Suite::limits);
    assert_names(&message, &["nodes 0, depth 1000: the tree has 1 nodes"]);
}

#[test]
fn regions_outside_the_file_are_noticed() {
    assert_names(&failure(Fault::LongRegion, Suite::regions), &["region \"data\" (23 to 47)"]);
}

#[test]
fn run_all_names_the_check_and_goes_on() {
    let message = failure(Fault::NoPlace, Suite::run_all);
    assert_names(&message, &["toy does not conform", "truncation: a: cut", "corruption: a: byte"]);
}

#[test]
fn two_files_are_compared_value_by_value() {
    let open = |bytes| {
        Dataset::open(&Toy(Fault::None), Source::memory(bytes), &OpenOptions::default()).unwrap()
    };
    let a = open(toy::file("x", 2, 3));
    assert_same_content(&a, &open(toy::file("x", 2, 3)));
    let mut other = toy::file("x", 2, 3);
    *other.last_mut().unwrap() ^= 1;
    let b = open(other);
    let panic = catch_unwind(AssertUnwindSafe(|| assert_same_content(&a, &b))).unwrap_err();
    assert_names(panic.downcast_ref::<String>().unwrap(), &["data: values (SHA-256)"]);
    assert_eq!(object_hashes(&a).unwrap(), [hash(2, 3)]);
}
