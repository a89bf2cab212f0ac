//! Upgrade, trim, merge and append.

mod support;

use std::fs;
use std::path::Path;

use spile_core::format::Checker as _;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{File, Gsd, Mode, Version, Writer, ops};

use support::{
    assert_valid, content, files, golden, open, real, salvage, snapshots, trajectory, without_logs,
};

#[test]
fn an_upgrade_preserves_the_content_of_every_old_file() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let mut done = 0;
    for old in files(&["v0.0.1", "code", "py-2"]) {
        // Truncated names are equal; the upgrade makes them unique.
        let name = old.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("names.gsd") || name.contains("duplicate") {
            continue;
        }
        fs::copy(&old, &path).unwrap();
        ops::upgrade(&path, ops::NameRule::Keep, &Limits::default()).unwrap();
        let new = open(&path);
        assert_eq!((new.header().version_text().as_str(), new.header().form), ("2.1", Form::V2));
        assert_eq!(new.header().about(), open(&old).header().about());
        assert_eq!(new.nframes().unwrap(), open(&old).nframes().unwrap(), "{name}");
        assert!(content(&old) == content(&path), "{}", old.display());
        assert_valid(&path);
        // It can be appended to.
        let mut file = Writer::append(&path, Mode::default(), &Limits::default()).unwrap();
        file.write_chunk("one/more", Type::Character, 3, 1, b"yes").unwrap();
        file.end_frame().unwrap();
        file.close().unwrap();
        assert_valid(&path);
        done += 1;
    }
    assert!(done > 180, "{done}");
}

#[test]
fn an_upgrade_interrupted_before_the_header_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let old = golden().join("code-v1.0.0/many_frames_growth.gsd");
    let before = fs::read(&old).unwrap();
    fs::write(&path, &before).unwrap();
    ops::upgrade(&path, ops::NameRule::Keep, &Limits::default()).unwrap();
    let after = fs::read(&path).unwrap();
    // Index, names and data of the old header are unchanged.
    assert_eq!(before[256..], after[256..before.len()]);
    for cut in [before.len(), before.len() + 100, after.len() - 1, after.len()] {
        let mut bytes = after[..cut].to_vec();
        bytes[..256].copy_from_slice(&before[..256]);
        fs::write(&path, &bytes).unwrap();
        assert!(content(&path) == content(&old));
    }
}

#[test]
fn trim_and_merge_preserve_the_values_of_frames() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (temp.path().join("a.gsd"), temp.path().join("b.gsd"));
    let limits = Limits::default();
    let mut all = Vec::new();
    let mut paths = Vec::new();
    let mut fell_back = 0;
    for path in files(&["py-5", "py-3.4", "edge"]) {
        if !path.file_name().unwrap().to_string_lossy().contains("hoomd") {
            continue;
        }
        let frames = snapshots(&path);
        let n = frames.len() as u64;
        // Reversed, without the first, each alone.
        let orders: Vec<Vec<u64>> = vec![
            (0..n).rev().collect(),
            (1..n).collect(),
            (0..n).step_by(2).collect(),
            vec![n.saturating_sub(1); 2],
        ];
        for order in orders.into_iter().filter(|_| n > 0) {
            ops::trim(&path, &order, &a, Overwrite::Replace, &limits).unwrap();
            let got = snapshots(&a);
            assert_eq!(got.len(), order.len(), "{path:?}");
            for (got, frame) in got.iter().zip(&order) {
                let want = &frames[*frame as usize];
                assert_eq!(without_logs(got), without_logs(want), "{path:?} frame {frame}");
                fell_back += 1;
            }
            assert_valid(&a);
        }
        all.extend(frames);
        paths.push(path);
    }
    // All files merged.
    ops::merge(&paths, &b, Overwrite::Never, &limits).unwrap();
    let merged = snapshots(&b);
    assert_eq!(merged.len(), all.len());
    for (got, want) in merged.iter().zip(&all) {
        assert_eq!(without_logs(got), without_logs(want));
    }
    assert!(paths.len() > 10 && fell_back > 100, "{fell_back}");
}

#[test]
fn frames_of_other_schemas_are_copied_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (temp.path().join("a.gsd"), temp.path().join("b.gsd"));
    let limits = Limits::default();
    let one = golden().join("code-v1.0.0/many_frames_growth.gsd");
    let two = golden().join("v0.0.1/ce10462_many_frames.gsd");
    ops::trim(&one, [7, 3], &a, Overwrite::Never, &limits).unwrap();
    let (old, new) = (content(&one), content(&a));
    assert_eq!(open(&a).nframes().unwrap(), 2);
    for ((frame, name), value) in &new {
        let from = [7, 3][*frame as usize];
        assert_eq!(old.get(&(from, name.clone())), Some(value));
    }
    assert_eq!(ops::merge(&[&one, &two], &b, Overwrite::Never, &limits).unwrap(), 190);
    let (merged, second) = (content(&b), content(&two));
    assert_eq!(merged.len(), old.len() + second.len());
    for ((frame, name), value) in &second {
        assert_eq!(merged.get(&(frame + 150, name.clone())), Some(value));
    }
    let wrong = ops::trim(&one, [150], &a, Overwrite::Replace, &limits).unwrap_err();
    assert!(wrong.to_string().contains("no frame 150"), "{wrong}");
    let hoomd = golden().join("py-5.0.1/hoomd_full.gsd");
    let error = ops::merge(&[one, hoomd], &a, Overwrite::Replace, &limits).unwrap_err();
    assert!(error.to_string().contains("schema"), "{error}");
}

/// Sets the frame number of the last index entry of a file of version 2.1.
fn renumber_last(path: &Path, frame: u64) {
    let file = open(path);
    let at = (file.header().index.location + (file.nchunks() - 1) * 32) as usize;
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + 8].copy_from_slice(&frame.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_huge_frame_number_exceeds_the_limit() {
    let temp = tempfile::tempdir().unwrap();
    let (path, to) = (temp.path().join("a.gsd"), temp.path().join("b.gsd"));
    trajectory(&path, 3, |_| None);
    let small = Limits::default().with_memory(1 << 20);
    for (frame, limits) in [(1 << 60, Limits::default()), (9_000_000, small)] {
        renumber_last(&path, frame);
        let error = ops::trim(&path, 0..frame, &to, Overwrite::Never, &limits).unwrap_err();
        assert_eq!(error.code(), "core-limit", "trim: {error}");
        let error = ops::merge(&[&path], &to, Overwrite::Never, &limits).unwrap_err();
        assert_eq!(error.code(), "core-limit", "merge: {error}");
        assert!(!to.exists());
        let file = Trajectory::new(File::open(&path, &limits).unwrap()).unwrap();
        assert_eq!(file.read_log().unwrap_err().code(), "core-limit");
    }
    renumber_last(&path, 1 << 60);
    let source = Source::open(&path).unwrap();
    let report = Gsd.check(&source, &Limits::default(), false).unwrap();
    assert!(report.findings.iter().any(|f| f.code == "gsd-033"), "{:?}", report.findings);
    let report = salvage(&fs::read(&path).unwrap(), &to).unwrap();
    assert_eq!(report.lost.len(), 1);
    assert_valid(&to);
    assert_eq!(open(&to).nframes().unwrap(), 2);
    fs::remove_file(&to).unwrap();
    // Single frames can still be extracted.
    assert_eq!(ops::trim(&path, [0, 1], &to, Overwrite::Never, &small).unwrap(), 2);
}

#[test]
fn a_merge_invents_no_logged_values() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b, to] = ["a.gsd", "b.gsd", "c.gsd"].map(|name| temp.path().join(name));
    let limits = Limits::default();
    let real = Values { kind: Type::Double, n: 1, m: 1, bytes: 7.5_f64.to_le_bytes().to_vec() };
    let integers = Values { kind: Type::UInt64, ..real.clone() };
    trajectory(&a, 2, |_| Some(real.clone()));
    trajectory(&b, 2, |_| None);
    ops::merge(&[&a, &b], &to, Overwrite::Replace, &limits).unwrap();
    let log = Trajectory::new(open(&to)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].first_elements()), "[7.5, 7.5, NaN, NaN]");
    ops::merge(&[&b, &a], &to, Overwrite::Replace, &limits).unwrap();
    let log = Trajectory::new(open(&to)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].first_elements()), "[NaN, NaN, 7.5, 7.5]");
    // gsd.hoomd reads no frame without a quantity that frame 0 lacks.
    let name = format!("log/{}", log.columns[0].name);
    assert!(open(&to).find_chunk(0, &name).unwrap().is_some());
    trajectory(&a, 2, |_| Some(integers.clone()));
    let error = ops::merge(&[&a, &b], &to, Overwrite::Replace, &limits).unwrap_err();
    assert_eq!(error.code(), "gsd-035");
}

#[test]
fn appended_frames_take_no_logged_value_from_their_new_file() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = ["a.gsd", "b.gsd"].map(|name| temp.path().join(name));
    let limits = Limits::default();
    trajectory(&a, 2, |_| Some(real(7.5)));
    trajectory(&b, 2, |step| (step == 2).then(|| real(1.5)));
    assert_eq!(ops::append(&a, &b, Mode::default(), &limits).unwrap(), 2);
    let log = Trajectory::new(open(&a)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].first_elements()), "[7.5, 7.5, NaN, 1.5]");
    // A quantity that the other file lacks.
    trajectory(&b, 1, |_| None);
    ops::append(&a, &b, Mode::default(), &limits).unwrap();
    let log = Trajectory::new(open(&a)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].first_elements()), "[7.5, 7.5, NaN, 1.5, NaN]");
    // Types without NaN: nothing is appended.
    trajectory(&a, 2, |_| Some(Values { kind: Type::UInt64, ..real(7.5) }));
    let error = ops::append(&a, &b, Mode::default(), &limits).unwrap_err();
    assert_eq!((error.code(), open(&a).nframes().unwrap()), ("gsd-035", 2));
}

#[test]
fn the_state_of_an_integrator_is_in_its_own_frame_only() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = ["a.gsd", "b.gsd"].map(|name| temp.path().join(name));
    let limits = Limits::default();
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&a, Overwrite::Never, "t", Precision::Single, mode).unwrap();
    let state = |value: Option<f64>| {
        value.map(|v| ("hpmc/integrate/d".to_string(), real(v))).into_iter().collect()
    };
    let values = [Some(0.5), None, Some(0.5), Some(0.25)];
    for (step, value) in values.into_iter().enumerate() {
        let step = step as u64;
        file.write(&Snapshot { step, state: state(value), ..Snapshot::default() }).unwrap();
    }
    file.close().unwrap();
    let states = |path: &Path| -> Vec<_> { snapshots(path).into_iter().map(|s| s.state).collect() };
    assert_eq!(states(&a), values.map(state));
    for order in [vec![3, 1, 0, 2], vec![0, 0, 1], vec![1, 2]] {
        ops::trim(&a, &order, &b, Overwrite::Replace, &limits).unwrap();
        let want: Vec<_> = order.iter().map(|k: &u64| state(values[*k as usize])).collect();
        assert_eq!(states(&b), want, "{order:?}");
    }
    ops::trim(&a, [0], &b, Overwrite::Replace, &limits).unwrap();
    ops::append(&b, &a, Mode::default(), &limits).unwrap();
    assert_eq!(states(&b)[1..], values.map(state));
}

#[test]
fn names_that_old_code_cut_stay_apart_in_new_files() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b] = ["a.gsd", "b.gsd"].map(|name| temp.path().join(name));
    let limits = Limits::default();
    let mut doubled = 0;
    for path in files(&["code-v0", "code-v1", "edge", "py-5"]) {
        let old = open(&path);
        if old.header().schema == "hoomd" || old.nchunks() == 0 {
            continue;
        }
        let frames = old.nframes().unwrap();
        ops::trim(&path, 0..frames, &a, Overwrite::Replace, &limits).unwrap();
        ops::merge(&[&path, &path], &b, Overwrite::Replace, &limits).unwrap();
        // Every chunk is present, except those replaced by another with the same id.
        let mut numbers = std::collections::BTreeSet::new();
        old.each_chunk(|chunk| {
            let entry = chunk?.entry;
            numbers.insert((entry.frame, entry.id));
            Ok(())
        })
        .unwrap();
        let names: std::collections::BTreeSet<String> =
            old.find_matching_names("").into_iter().collect();
        doubled += u64::from(names.len() < old.find_matching_names("").len());
        assert_eq!(content(&a).len(), numbers.len(), "{path:?}");
        assert_eq!(content(&b).len(), 2 * numbers.len(), "{path:?}");
        assert_valid(&a);
    }
    assert!(doubled > 0);
}

#[test]
fn steps_of_an_old_file_are_appended_as_chunks() {
    let temp = tempfile::tempdir().unwrap();
    let [old, new] = ["old.gsd", "new.gsd"].map(|name| temp.path().join(name));
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    for (path, version) in [(&old, Version::V0_0_1), (&new, Version::V2_1)] {
        let mode = Mode::default();
        let mut file = Writer::create(path, Overwrite::Never, version, &about, mode).unwrap();
        for step in [30, 70] {
            file.set_step(step);
            file.write_chunk("x", Type::UInt8, 1, 1, &[1]).unwrap();
            file.end_frame().unwrap();
        }
        file.close().unwrap();
    }
    let steps: Vec<_> = (0..2).map(|frame| open(&old).step(frame).unwrap()).collect();
    ops::append(&new, &old, Mode::default(), &Limits::default()).unwrap();
    assert_eq!(steps, [Some(30), Some(70)]);
    let file = open(&new);
    assert_eq!([2, 3].map(|frame| file.step(frame).unwrap()), [Some(30), Some(70)]);
    assert_valid(&new);
}
