//! The conformance suite of formats (feature `testkit`).
//!
//! A format crate runs it on its sample files, in a `tests/testkit.rs` of about ten lines:
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
//! Checks, each also available as a method of [`Suite`]:
//!
//! | check | a format passes if |
//! |---|---|
//! | `probe` | it recognises every good file by its content, and neither random bytes nor an empty file |
//! | `check` | `check` finds no error in a good file, and every finding has a code and a location |
//! | `regions` | the regions of a good file are within it, in order, without overlap |
//! | `golden` | the objects of each file have the SHA-256 of the reference |
//! | `round_trip` | a written file has the same content (skipped for read-only formats) |
//! | `sources` | file, map and memory give the same content |
//! | `split_reads` | any selection, order and block size gives the same elements as one read of the array |
//! | `limits` | small memory limits are respected, or rejected with a `Limit` error |
//! | `truncation` | a truncated file can be read, or gives an error with a location and a code |
//! | `corruption` | a file with one changed byte can be read, or gives an error with a location and a code |
//!
//! The last two open, check and read thousands of damaged files. The code under test must not panic, take
//! longer than [`Suite::patience`] per case, or use more memory than [`Suite::limits`]. Memory is measured
//! if the test crate has a counting allocator and passes its [`Meter`], for example
//! `crates/core/tests/support/meter.rs`:
//!
//! ```text
//! #[path = "../../../crates/core/tests/support/meter.rs"]
//! mod meter;
//! Suite::new(&Taf, good).with_meter(meter::METER).run_all();
//! ```
//!
//! A failure message contains the file, the damage (`cut to 512 of 1153 bytes`, `byte 17 set to 0xff`) and
//! the result, so that it can be reproduced. Runs are deterministic. Failures are panics.

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

use crate::{Dataset, Finding, Format, Limits, OpenOptions, Result, Source};

pub use guard::Meter;
pub use same::{assert_same_content, differences, object_hashes};
pub use serde_json::Value as Json;

/// Number of failures per check that `run_all` prints.
const SHOWN: usize = 10;

/// Returns failure messages.
type Check = fn(&Suite) -> Vec<String>;

/// A format and its sample files.
#[derive(Clone)]
pub struct Suite {
    /// The format.
    pub format: &'static dyn Format,
    /// Valid files.
    pub good: Vec<PathBuf>,
    /// Files with the SHA-256 of each of their objects ([`object_hashes`]), in any order.
    pub golden: Vec<(PathBuf, Vec<String>)>,
    /// Limits for one file.
    pub limits: Limits,
    /// Longest time for one damaged file.
    pub patience: Duration,
    /// Measures memory, if the test crate has a counting allocator.
    pub meter: Option<Meter>,
    /// Total size in bytes of the damaged copies of one file per check. If it is not enough for all offsets,
    /// they are thinned out evenly; files up to 4 KiB are always tested completely.
    pub work: u64,
}

impl Suite {
    /// A suite for small samples: 64 MiB of memory, ten seconds per case.
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

    /// Returns this suite with expected hashes.
    pub fn with_golden(mut self, golden: Vec<(PathBuf, Vec<String>)>) -> Self {
        self.golden = golden;
        self
    }

    /// Returns this suite with memory measurement. The meter counts for the entire process: the test binary must not
    /// run other tests than suites, which are serialised.
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Runs every check and fails with all failures.
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
        self.assert_passed(&all);
    }

    /// Every good file is recognised by its content; random bytes and an empty file are not.
    pub fn probe(&self) {
        self.assert_passed(&content::probe(self));
    }

    /// No good file has a finding of severity error; every finding has a code and a location.
    pub fn check(&self) {
        self.assert_passed(&content::check(self));
    }

    /// The regions of a good file are within it, in order, without overlap.
    pub fn regions(&self) {
        self.assert_passed(&content::regions(self));
    }

    /// The objects of [`Suite::golden`] have the expected hashes.
    pub fn golden(&self) {
        self.assert_passed(&content::golden(self));
    }

    /// Good files that are written and read again have the same content. Skipped for read-only formats.
    pub fn round_trip(&self) {
        self.assert_passed(&content::round_trip(self));
    }

    /// File, map and memory give the same content.
    pub fn sources(&self) {
        self.assert_passed(&reading::sources(self));
    }

    /// Single elements, random selections and blocks of one element equal one read of the array.
    pub fn split_reads(&self) {
        self.assert_passed(&reading::split_reads(self));
    }

    /// Small memory limits are respected or rejected with a `Limit` error.
    pub fn limits(&self) {
        self.assert_passed(&reading::limits(self));
    }

    /// Files truncated at and next to every boundary of a region, and at 200 other offsets.
    pub fn truncation(&self) {
        self.assert_passed(&damage::truncation(self));
    }

    /// Files with one byte changed.
    pub fn corruption(&self) {
        self.assert_passed(&damage::corruption(self));
    }

    fn open(&self, source: Source) -> Result<Dataset> {
        Dataset::open(self.format, source, &OpenOptions::with_limits(self.limits))
    }

    /// The findings of the format's checker; `None` if it has no checker.
    fn findings(&self, source: &Source, strict: bool) -> Result<Vec<Finding>> {
        let checker = self.format.abilities().checker;
        let report = checker.map(|checker| checker.check(source, &self.limits, strict));
        Ok(report.transpose()?.unwrap_or_default().findings)
    }

    /// Runs `look` on every good file; failures are prefixed with the file name.
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

    fn assert_passed(&self, failures: &[String]) {
        let name = self.format.info().name;
        assert!(failures.is_empty(), "{name} does not conform:\n  {}", failures.join("\n  "));
    }
}

/// All files of a folder, sorted. Panics if there are none.
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

/// Parses a JSON manifest. Panics if it cannot be read.
pub fn manifest(path: impl AsRef<Path>) -> Json {
    let path = path.as_ref();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }
}
