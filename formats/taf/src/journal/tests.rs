//! Failures and interrupted changes.

use spile_core::format::Checker as _;
use spile_core::testkit::faults::{Fault, arm, calls, disarm};
use spile_core::{Array, Dataset, OpenOptions};

use super::*;
use crate::Taf;
use crate::ops::{add_comment, append_up_to, example, set_comment, set_comment_up_to};

const LIMITS: Limits = Limits { memory: 64 << 20, nodes: 1000, depth: 10 };

/// A folder with a file of 101 x 3 elements and comments.
struct Fixture {
    folder: tempfile::TempDir,
    path: PathBuf,
    input: Array,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("x.taf"), folder.path().join("more.taf"));
        example(&path, 2, Overwrite::Never).unwrap();
        example(&other, 2, Overwrite::Never).unwrap();
        set_comment(&path, "first comment\nsecond comment\n", &LIMITS).unwrap();
        let input = File::open(&other, &LIMITS).unwrap().array().unwrap();
        Self { folder, path, input }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn names(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }

    /// Whether files are changed in place here: not on a file system with shared blocks.
    fn in_place(&self) -> bool {
        Sink::copy_of(&self.path, 0).unwrap().is_none()
    }
}

#[test]
fn a_failure_at_any_call_leaves_the_old_file_and_success_means_the_new_one() {
    for largest in [0, COPIED] {
        for set in [false, true] {
            let change = |fixture: &Fixture| {
                if set {
                    return set_comment_up_to(&fixture.path, "short", largest, &LIMITS);
                }
                append_up_to(&fixture.path, &fixture.input, largest, &LIMITS).map(drop)
            };
            let mut points = 0;
            for call in 0.. {
                let mut reached = false;
                for part in [0, 50, 100] {
                    let fixture = Fixture::new();
                    let (old, names) = (fixture.bytes(), fixture.names());
                    arm(Some(Fault { call, part, lasting: false }));
                    let done = change(&fixture);
                    reached = calls() > call;
                    disarm();
                    assert_eq!(done.is_err(), reached, "call {call}, part {part}");
                    assert_eq!(fixture.bytes() == old, reached, "call {call}, part {part}");
                    assert_eq!(fixture.names(), names, "call {call}, part {part}");
                    points += 1;
                }
                if !reached {
                    break;
                }
            }
            assert!(points >= 9, "{points}");
        }
    }
}

#[test]
fn an_interrupted_change_is_reported_and_undone_by_the_next_writer() {
    let complete = Fixture::new();
    append_up_to(&complete.path, &complete.input, 0, &LIMITS).unwrap();
    for call in 0.. {
        let fixture = Fixture::new();
        if !fixture.in_place() {
            return;
        }
        let old = fixture.bytes();
        // Everything after the fault fails, as after a kill: nothing is undone.
        arm(Some(Fault { call, part: 50, lasting: true }));
        let done = append_up_to(&fixture.path, &fixture.input, 0, &LIMITS);
        disarm();
        if done.is_ok() {
            assert!(call > 5, "{call}");
            return;
        }
        let warned = |source: &Source| {
            let report = Taf.check(source, &LIMITS, false).unwrap();
            report.findings.iter().any(|finding| finding.code == "taf-025")
        };
        let opened = Dataset::open_path(&Taf, &fixture.path, &OpenOptions::default()).unwrap();
        let left = journal_of(&fixture.path).unwrap().exists();
        assert_eq!(opened.warnings().len(), usize::from(left), "call {call}");
        assert_eq!(warned(opened.source()), left, "call {call}");
        // Without a journal the change is complete or has not begun.
        let kept = if left || fixture.bytes() == old { old } else { complete.bytes() };
        assert!(left || fixture.bytes() == kept, "call {call}");
        add_comment(&fixture.path, "third comment", &LIMITS).unwrap();
        assert_eq!(fixture.bytes(), [&kept[..], b"third comment\n"].concat(), "call {call}");
        assert!(!journal_of(&fixture.path).unwrap().exists());
    }
}

#[test]
fn a_journal_of_another_file_is_not_applied() {
    let fixture = Fixture::new();
    if !fixture.in_place() {
        return;
    }
    // The file is replaced after an interrupted change.
    arm(Some(Fault { call: 14, part: 0, lasting: true }));
    append_up_to(&fixture.path, &fixture.input, 0, &LIMITS).unwrap_err();
    disarm();
    assert!(journal_of(&fixture.path).unwrap().exists());
    example(&fixture.path, 3, Overwrite::Replace).unwrap();
    let new = fixture.bytes();
    let error = add_comment(&fixture.path, "x", &LIMITS).unwrap_err();
    assert_eq!(error.code(), "taf-027");
    assert_eq!(fixture.bytes(), new);
    fs::write(journal_of(&fixture.path).unwrap(), b"TAFUNDO1").unwrap();
    assert_eq!(add_comment(&fixture.path, "x", &LIMITS).unwrap_err().code(), "taf-028");
}

#[test]
fn elements_in_the_comments_are_reported() {
    let fixture = Fixture::new();
    let mut bytes = fixture.bytes();
    bytes.extend(1.5_f32.to_le_bytes());
    fs::write(&fixture.path, bytes).unwrap();
    let report = Taf.check(&Source::open(&fixture.path).unwrap(), &LIMITS, false).unwrap();
    assert_eq!(report.findings.iter().map(|f| f.code).collect::<Vec<_>>(), ["taf-026"]);
}
