//! The conformance suite that every format runs (feature `testkit`).
//!
//! A format crate hands over sample files and gets back the tests that every format must pass.
//! Its `tests/testkit.rs` is about ten lines:
//!
//! ```no_run
//! # use spile_core::format::Format;
//! # static TAF: std::sync::OnceLock<&'static dyn Format> = std::sync::OnceLock::new();
//! # let format: &'static dyn Format = *TAF.get().unwrap();
//! use spile_core::testkit::{Suite, files};
//!
//! // In a crate: `#[test] fn conformance() { ... }`
//! let good = files("../../tests/golden/taf/good");
//! let hashes = good.iter().map(|f| (f.clone(), vec!["5ed14ec5...".to_string()])).collect();
//! Suite::new(format, good).with_golden(hashes).run_all();
//! ```
//!
//! What is tested, each also on its own as a method of [`Suite`]:
//!
//! | check | a format passes if |
//! |---|---|
//! | `probe` | it knows every good file by its bytes, and does not claim noise or nothing |
//! | `check` | its own `check` finds no error in a good file, and nothing without a code and a place |
//! | `regions` | the regions of a good file lie inside it, in order, without overlap |
//! | `golden` | the objects of each file hash to what the reference program stored |
//! | `round_trip` | what it writes reads back as the same content (skipped for read-only formats) |
//! | `sources` | file, map and memory give the same |
//! | `split_reads` | any window, in any order, in any block size gives what one whole read gives |
//! | `limits` | a tight budget is kept to, or refused with a `Limit` error |
//! | `truncation` | a file cut anywhere reads, or fails with an error that names its place and rule |
//! | `corruption` | a file with any one byte changed does the same |
//!
//! The last two open, check, walk and read thousands of damaged files. Code under test may not
//! panic, may not take longer than [`Suite::patience`] a case, and may not hold more memory than
//! [`Suite::limits`] allow. Memory is only watched where the test crate has a counting allocator
//! and hands over its [`Meter`]; `crates/core/tests/support/meter.rs` is one to include:
//!
//! ```text
//! #[path = "../../../crates/core/tests/support/meter.rs"]
//! mod meter;
//! Suite::new(&Taf, good).with_meter(meter::METER).run_all();
//! ```
//!
//! A failure names the file, the damage (`cut to 512 of 1153 bytes`, `byte 17 set to 0xff`) and
//! what happened, so that the case can be made again by hand. Everything is the same in every run.
//!
//! This is test code: it panics, because that is how a test fails.

#![allow(clippy::missing_panics_doc)]

mod content;
mod damage;
mod exercise;
pub mod faults;
mod guard;
mod reading;
mod same;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dataset::Dataset;
use crate::error::Result;
use crate::format::{Format, OpenOptions};
use crate::limits::Limits;
use crate::report::Finding;
use crate::source::Source;

pub use guard::Meter;
pub use same::{assert_same_content, differences, object_hashes};
pub use serde_json::Value as Json;

/// Failures of one check that `run_all` shows.
const SHOWN: usize = 10;

/// Gives back what is wrong, a sentence each.
type Check = fn(&Suite) -> Vec<String>;

/// A format and the files to try it on.
#[derive(Clone)]
pub struct Suite {
    /// The format.
    pub format: &'static dyn Format,
    /// Files that it must read.
    pub good: Vec<PathBuf>,
    /// Files with the SHA-256 of each of their objects ([`object_hashes`]), in any order.
    pub golden: Vec<(PathBuf, Vec<String>)>,
    /// What the format may spend on one file.
    pub limits: Limits,
    /// How long one damaged file may keep it busy.
    pub patience: Duration,
    /// Watches the memory, where there is someone to ask.
    pub meter: Option<Meter>,
    /// Bytes of damaged copies made of one file by one check. Where that is not enough for all
    /// places they are thinned out evenly; files of up to 4 KiB are always done completely.
    pub work: u64,
}

impl Suite {
    /// A suite with limits that suit small samples: 64 MiB of memory, ten seconds a case.
    pub fn new(format: &'static dyn Format, good: Vec<PathBuf>) -> Self {
        Self {
            format,
            good,
            golden: Vec::new(),
            limits: Limits { memory: 64 << 20, nodes: 1_000_000, depth: 1_000 },
            patience: Duration::from_secs(10),
            meter: None,
            work: 1 << 30,
        }
    }

    /// The same with hashes to compare with.
    pub fn with_golden(mut self, golden: Vec<(PathBuf, Vec<String>)>) -> Self {
        self.golden = golden;
        self
    }

    /// The same with an eye on memory. The meter counts for the whole process: keep the suite the
    /// only test of its file, or have all tests there go through suites, which wait for each other.
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Runs every check and fails with what all of them found.
    pub fn run_all(&self) {
        let checks: [(&str, Check); 10] = [
            ("probe", content::probe),
            ("check", content::check),
            ("regions", content::regions),
            ("golden", content::golden),
            ("round trip", content::round_trip),
            ("sources", reading::sources),
            ("split reads", reading::split_reads),
            ("limits", reading::limits),
            ("truncation", damage::truncation),
            ("corruption", damage::corruption),
        ];
        assert!(!self.good.is_empty(), "{}: no sample files", self.format.info().name);
        let mut all = Vec::new();
        for (name, check) in checks {
            let found = check(self);
            let more = found.len().saturating_sub(SHOWN);
            all.extend(found.into_iter().take(SHOWN).map(|f| format!("{name}: {f}")));
            if more > 0 {
                all.push(format!("{name}: and {more} more"));
            }
        }
        self.settle(&all);
    }

    /// Every good file is recognised by its bytes alone; noise and nothing are not.
    pub fn probe(&self) {
        self.settle(&content::probe(self));
    }

    /// No good file has a finding of severity error; every finding has a code and a place.
    pub fn check(&self) {
        self.settle(&content::check(self));
    }

    /// The regions of a good file lie inside it, in order, without overlap.
    pub fn regions(&self) {
        self.settle(&content::regions(self));
    }

    /// The objects of [`Suite::golden`] hash to what is expected.
    pub fn golden(&self) {
        self.settle(&content::golden(self));
    }

    /// Good files are written and read back as the same content. Nothing happens where the format
    /// is never written.
    pub fn round_trip(&self) {
        self.settle(&content::round_trip(self));
    }

    /// File, map and memory give the same.
    pub fn sources(&self) {
        self.settle(&reading::sources(self));
    }

    /// Elements one by one, random windows and blocks of one element agree with one whole read.
    pub fn split_reads(&self) {
        self.settle(&reading::split_reads(self));
    }

    /// Tight budgets are kept to or refused.
    pub fn limits(&self) {
        self.settle(&reading::limits(self));
    }

    /// Files cut at every boundary of a structure, beside it, and at 200 places more.
    pub fn truncation(&self) {
        self.settle(&damage::truncation(self));
    }

    /// Files with one byte changed.
    pub fn corruption(&self) {
        self.settle(&damage::corruption(self));
    }

    fn open(&self, source: Source) -> Result<Dataset> {
        Dataset::open(self.format, source, &OpenOptions::with_limits(self.limits))
    }

    /// The findings of the format's checker; none where it has none.
    fn findings(&self, source: &Source, strict: bool) -> Result<Vec<Finding>> {
        let checker = self.format.abilities().checker;
        let report = checker.map(|checker| checker.check(source, &self.limits, strict));
        Ok(report.transpose()?.unwrap_or_default().findings)
    }

    /// Runs `look` on every good file, ready opened; failures carry the file's name.
    fn each_good(&self, mut look: impl FnMut(&Dataset) -> Result<Vec<String>>) -> Vec<String> {
        let mut failures = Vec::new();
        for path in &self.good {
            let found = Source::open(path)
                .and_then(|source| self.open(source))
                .and_then(|dataset| look(&dataset));
            let found = found.unwrap_or_else(|error| vec![format!("{error:?}")]);
            failures.extend(found.into_iter().map(|f| format!("{}: {f}", name(path))));
        }
        failures
    }

    fn settle(&self, failures: &[String]) {
        let name = self.format.info().name;
        assert!(failures.is_empty(), "{name} does not conform:\n  {}", failures.join("\n  "));
    }
}

/// All files of a folder, sorted; a test without its samples fails here.
pub fn files(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| entry.ok().map(|e| e.path()).filter(|p| p.is_file()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{}: no files", folder.display());
    found
}

/// A manifest, parsed; what is in it differs from format to format.
pub fn manifest(path: impl AsRef<Path>) -> Json {
    let path = path.as_ref();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64: one line of state, no dependency.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if there is none.
    fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }
}
