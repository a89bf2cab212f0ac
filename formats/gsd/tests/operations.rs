//! Whole files: upgraded, trimmed, merged, salvaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spile_core::format::{Format as _, Salvage};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::Severity;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_gsd::schema::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{File, Gsd, Mode, Version, Writer, ops};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd")
}

fn open(path: &Path) -> File {
    File::open(path, &Limits::default()).unwrap()
}

/// All files of the golden folders that begin with one of `folders`.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(golden()).unwrap().map(|e| e.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if folder.is_dir() && folders.iter().any(|f| name.starts_with(f)) {
            found.extend(fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()));
        }
    }
    found.sort();
    found
}

type Content = BTreeMap<(u64, String), (u64, u64, Vec<u8>)>;

/// Everything in a file by frame and name; steps of 0.0.1 as the chunks they become.
fn content(path: &Path) -> Content {
    let file = open(path);
    let mut all = Content::new();
    file.each_chunk(|chunk| {
        let chunk = chunk.unwrap();
        let bytes = file.read_chunk(&chunk).unwrap();
        if file.header().form.is_first() {
            let key = (chunk.entry.frame, "configuration/step".to_string());
            all.insert(key, (1, 1, chunk.entry.step.to_le_bytes().to_vec()));
        }
        // Of chunks of one name the last counts.
        all.insert(
            (chunk.entry.frame, chunk.name.to_string()),
            (chunk.entry.n, chunk.entry.m, bytes),
        );
        Ok(())
    })
    .unwrap();
    all
}

fn sound(path: &Path) {
    let source = Source::open(path).unwrap();
    let report = Gsd.check(&source, &Limits::default(), true).unwrap();
    assert!(report.worst() < Some(Severity::Error), "{}: {:?}", path.display(), report.findings);
}

#[test]
fn every_old_file_is_upgraded_and_says_the_same() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let mut done = 0;
    for old in files(&["v0.0.1", "code", "py-2"]) {
        // Long names that were cut are equal; upgraded they are told apart.
        let name = old.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("names.gsd") || name.contains("duplicate") {
            continue;
        }
        fs::copy(&old, &path).unwrap();
        ops::upgrade(&path, &Limits::default()).unwrap();
        let new = open(&path);
        assert_eq!((new.header().version_text().as_str(), new.header().form), ("2.1", Form::List));
        assert_eq!(new.header().about(), open(&old).header().about());
        assert_eq!(new.nframes().unwrap(), open(&old).nframes().unwrap(), "{name}");
        assert!(content(&old) == content(&path), "{}", old.display());
        sound(&path);
        // It can be appended to.
        let mut file = Writer::append(&path, Mode::default(), &Limits::default()).unwrap();
        file.write_chunk("one/more", Type::Character, 3, 1, b"yes").unwrap();
        file.end_frame().unwrap();
        file.close().unwrap();
        sound(&path);
        done += 1;
    }
    assert!(done > 180, "{done}");
}

#[test]
fn an_upgrade_that_is_cut_before_the_header_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let old = golden().join("code-v1.0.0/many_frames_growth.gsd");
    let before = fs::read(&old).unwrap();
    fs::write(&path, &before).unwrap();
    ops::upgrade(&path, &Limits::default()).unwrap();
    let after = fs::read(&path).unwrap();
    // Nothing that the old header speaks of was touched.
    assert_eq!(before[256..], after[256..before.len()]);
    for cut in [before.len(), before.len() + 100, after.len() - 1, after.len()] {
        let mut bytes = after[..cut].to_vec();
        bytes[..256].copy_from_slice(&before[..256]);
        fs::write(&path, &bytes).unwrap();
        assert!(content(&path) == content(&old));
    }
}

fn snapshots(path: &Path) -> Vec<Snapshot> {
    let file = Trajectory::new(open(path)).unwrap();
    (0..file.len().unwrap()).map(|frame| file.read(frame).unwrap()).collect()
}

#[test]
fn frames_mean_the_same_wherever_they_are_put() {
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
        // Backwards, without the first, each alone.
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
            sound(&a);
        }
        all.extend(frames);
        paths.push(path);
    }
    // All of them one after the other.
    ops::merge(&paths, &b, Overwrite::Never, &limits).unwrap();
    let merged = snapshots(&b);
    assert_eq!(merged.len(), all.len());
    for (got, want) in merged.iter().zip(&all) {
        assert_eq!(without_logs(got), without_logs(want));
    }
    assert!(paths.len() > 10 && fell_back > 100, "{fell_back}");
}

/// In words, because NaN is not equal to itself. A logged quantity that a frame lacks cannot be
/// taken away from it again by frame 0.
fn without_logs(snapshot: &Snapshot) -> String {
    let mut plain = Snapshot { log: BTreeMap::new(), ..snapshot.clone() };
    plain.state.clear();
    format!("{plain:?}")
}

#[test]
fn frames_of_other_schemas_are_copied_as_they_are() {
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
    assert!(wrong.to_string().contains("there is no frame 150"), "{wrong}");
    let hoomd = golden().join("py-5.0.1/hoomd_full.gsd");
    let error = ops::merge(&[one, hoomd], &a, Overwrite::Replace, &limits).unwrap_err();
    assert!(error.to_string().contains("schema"), "{error}");
}

/// A small file of the schema, with a log where `log` gives a value for the frame.
fn trajectory(path: &Path, frames: u64, log: impl Fn(u64) -> Option<Values>) {
    let (mode, overwrite) = (Mode::default(), Overwrite::Replace);
    let mut file = TrajectoryWriter::create(path, overwrite, "t", Precision::Single, mode).unwrap();
    for step in 1..=frames {
        let log = log(step).map(|values| ("E".to_string(), Some(values)));
        file.write(&Snapshot { step, log: log.into_iter().collect(), ..Snapshot::default() })
            .unwrap();
    }
    file.close().unwrap();
}

/// Gives the last index entry of a file of version 2.1 another frame number.
fn renumber_last(path: &Path, frame: u64) {
    let file = open(path);
    let at = (file.header().index.location + (file.nchunks() - 1) * 32) as usize;
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + 8].copy_from_slice(&frame.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_frame_number_that_promises_too_much_is_over_the_limit() {
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
    sound(&to);
    assert_eq!(open(&to).nframes().unwrap(), 2);
    fs::remove_file(&to).unwrap();
    // A few of its frames can still be taken.
    assert_eq!(ops::trim(&path, [0, 1], &to, Overwrite::Never, &small).unwrap(), 2);
}

#[test]
fn a_merge_invents_no_logged_values() {
    let temp = tempfile::tempdir().unwrap();
    let [a, b, to] = ["a.gsd", "b.gsd", "c.gsd"].map(|name| temp.path().join(name));
    let limits = Limits::default();
    let real = Values { kind: Type::Double, n: 1, m: 1, bytes: 7.5_f64.to_le_bytes().to_vec() };
    let whole = Values { kind: Type::UInt64, ..real.clone() };
    trajectory(&a, 2, |_| Some(real.clone()));
    trajectory(&b, 2, |_| None);
    ops::merge(&[&a, &b], &to, Overwrite::Replace, &limits).unwrap();
    let log = Trajectory::new(open(&to)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].numbers()), "[7.5, 7.5, NaN, NaN]");
    ops::merge(&[&b, &a], &to, Overwrite::Replace, &limits).unwrap();
    let log = Trajectory::new(open(&to)).unwrap().read_log().unwrap();
    assert_eq!(log.columns[0].missing, [0, 1]);
    trajectory(&a, 2, |_| Some(whole.clone()));
    let error = ops::merge(&[&a, &b], &to, Overwrite::Replace, &limits).unwrap_err();
    assert_eq!(error.code(), "gsd-035");
}

fn real(value: f64) -> Values {
    Values { kind: Type::Double, n: 1, m: 1, bytes: value.to_le_bytes().to_vec() }
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
    assert_eq!(format!("{:?}", log.columns[0].numbers()), "[7.5, 7.5, NaN, 1.5]");
    // A quantity that the other file does not know at all.
    trajectory(&b, 1, |_| None);
    ops::append(&a, &b, Mode::default(), &limits).unwrap();
    let log = Trajectory::new(open(&a)).unwrap().read_log().unwrap();
    assert_eq!(format!("{:?}", log.columns[0].numbers()), "[7.5, 7.5, NaN, 1.5, NaN]");
    // What is no real number cannot be absent: nothing is added.
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

/// Where the entry of that frame and name is in the file.
fn entry_at(path: &Path, frame: u64, name: &str) -> usize {
    let file = open(path);
    let chunk = file.find_chunk(frame, name).unwrap().unwrap();
    (file.header().index.location + chunk.number * file.header().form.entry_size()) as usize
}

#[test]
fn frames_that_leaned_on_a_lost_frame_0_keep_what_they_took_from_it() {
    let temp = tempfile::tempdir().unwrap();
    let [a, saved] = ["a.gsd", "s.gsd"].map(|name| temp.path().join(name));
    for path in files(&["py-5", "py-3.4"]) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let all = if name.contains("hoomd") { snapshots(&path) } else { Vec::new() };
        if all.len() < 2 || open(&path).find_chunk(0, "configuration/step").unwrap().is_none() {
            continue;
        }
        // The type of one entry of frame 0 is damaged; every frame has a step of its own.
        let mut bytes = fs::read(&path).unwrap();
        bytes[entry_at(&path, 0, "configuration/step") + 30] = 99;
        let report = salvage(&bytes, &saved).unwrap();
        assert!(report.lost.iter().any(|line| line.contains("frame 0:")), "{report:?}");
        let got = snapshots(&saved);
        assert_eq!(got.len(), all.len() - 1, "{name}");
        let told = report.lost.iter().any(|line| line.contains("configuration/step"));
        for (got, want) in got.iter().zip(&all[1..]) {
            let mut want = want.clone();
            if told {
                want.step = got.step;
            }
            assert_eq!(without_logs(got), without_logs(&want), "{name}");
        }
        sound(&saved);
    }
    // What cannot be had any more is told, and a number of particles is not guessed.
    trajectory(&a, 3, |_| None);
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&a, Overwrite::Replace, "t", Precision::Single, mode).unwrap();
    for step in 1..4 {
        let mut s = Snapshot::plain(step, 2);
        s.particles.mass = vec![3.0; 2].into();
        s.particles.position = vec![step as f64; 6].into();
        file.write(&s).unwrap();
    }
    file.close().unwrap();
    let whole = fs::read(&a).unwrap();
    let mut bytes = whole.clone();
    bytes[entry_at(&a, 0, "particles/mass") + 30] = 99;
    let report = salvage(&bytes, &saved).unwrap();
    let told = "\"particles/mass\" of 2 frames from frame 1 on, which was in frame 0";
    assert!(report.lost.iter().any(|line| line.starts_with(told)), "{report:?}");
    let got = snapshots(&saved);
    assert_eq!((got.len(), got[0].particles.mass[0], got[1].particles.position[0]), (2, 1.0, 3.0));
    let mut bytes = whole;
    bytes[entry_at(&a, 0, "particles/N") + 30] = 99;
    let report = salvage(&bytes, &saved).unwrap();
    assert!(report.lost.iter().any(|line| line.contains("which it needs, is lost")), "{report:?}");
    assert_eq!(open(&saved).nframes().unwrap(), 0);
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
        // Every chunk is there, but for those that another of the same number replaces.
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
        sound(&a);
    }
    assert!(doubled > 0);
}

#[test]
fn a_hole_in_the_index_hides_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let [path, saved] = ["a.gsd", "s.gsd"].map(|name| temp.path().join(name));
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    let mode = Mode::default();
    let mut file = Writer::create(&path, Overwrite::Never, Version::V2_1, &about, mode).unwrap();
    for frame in 0..1000_u32 {
        file.write_chunk("x", Type::UInt32, 1, 1, &frame.to_le_bytes()).unwrap();
        file.end_frame().unwrap();
    }
    file.close().unwrap();
    let (whole, limits) = (fs::read(&path).unwrap(), Limits::default());
    for hole in [3, 127, 511, 512, 767, 998] {
        let at = entry_at(&path, hole, "x");
        let mut bytes = whole.clone();
        // Its location alone is gone: the entry is lost, nothing else is.
        bytes[at + 16..at + 24].fill(0);
        let file = File::from_source(&Source::memory(bytes.clone()), &limits).unwrap();
        assert_eq!(file.nframes().unwrap(), 1000, "{hole}");
        assert_eq!(file.find_chunk(hole, "x").unwrap_err().code(), "gsd-015");
        assert!(file.find_chunk(hole + 1, "x").unwrap().is_some());
        let report = salvage(&bytes, &saved).unwrap();
        assert_eq!((open(&saved).nframes().unwrap(), report.lost.len()), (999, 1), "{report:?}");
        // All of it is gone, with some neighbours.
        for count in [1, 2, 100, 300] {
            let end = (at + 32 * count).min(entry_at(&path, 998, "x") + 32);
            bytes[at..end].fill(0);
            let source = Source::memory(bytes.clone());
            let opened = Gsd.open(source.clone(), &limits).err().map(|e| e.code());
            let report = Gsd.check(&source, &limits, false).unwrap();
            let file = File::from_source(&source, &limits).unwrap();
            if file.nframes().unwrap() == 1000 {
                // Bisection has passed beside the hole; the entries in it are empty.
                assert_eq!(opened, Some("gsd-012"), "{hole} {count}");
            } else {
                assert_eq!(opened, Some("gsd-015"), "{hole} {count}");
            }
            assert!(report.worst() == Some(Severity::Error), "{hole} {count}");
            let lost = (end - at) as u64 / 32;
            let report = salvage(&bytes, &saved).unwrap();
            let got: Vec<Vec<u8>> = content(&saved).into_values().map(|(_, _, b)| b).collect();
            let want: Vec<Vec<u8>> = (0..1000)
                .filter(|k| !(hole..hole + lost).contains(k))
                .map(|k| (k as u32).to_le_bytes().to_vec())
                .collect();
            assert!(got == want, "{hole} {count}: {} of {}, {report:?}", got.len(), want.len());
            assert!(!report.lost.is_empty());
            if count < 200 && opened == Some("gsd-015") {
                let copy = temp.path().join("copy.gsd");
                fs::write(&copy, &bytes).unwrap();
                let error = Writer::append(&copy, mode, &limits).err().unwrap();
                assert_eq!(error.code(), "gsd-015");
            }
        }
    }
}

#[test]
fn a_damaged_entry_is_an_error_where_it_is_missed() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    let mode = Mode::default();
    let mut file = Writer::create(&path, Overwrite::Never, Version::V2_1, &about, mode).unwrap();
    for frame in 0..4_u32 {
        file.write_chunk("x", Type::UInt32, 1, 1, &frame.to_le_bytes()).unwrap();
        if frame == 2 {
            file.write_chunk("once", Type::UInt8, 1, 1, &[1]).unwrap();
        }
        file.end_frame().unwrap();
    }
    file.close().unwrap();
    let (whole, limits) = (fs::read(&path).unwrap(), Limits::default());
    // Type, flags, number of the name, rows, location.
    for (byte, value, code) in [
        (30, 77, "gsd-007"),
        (31, 1, "gsd-008"),
        (28, 50, "gsd-011"),
        (15, 0xf7, "gsd-014"),
        (13, 1, "gsd-009"),
        (23, 0xff, "gsd-010"),
    ] {
        for name in ["x", "once"] {
            let mut bytes = whole.clone();
            bytes[entry_at(&path, 2, name) + byte] = value;
            let opened = Gsd.open(Source::memory(bytes), &limits).unwrap();
            let tree = opened.tree();
            let mut errors = 0;
            for (_, _, desc) in tree.arrays() {
                for frame in 0..4 {
                    let cell = Array::open_frame(opened.source(), tree, desc, frame, &limits);
                    if let Err(error) = cell {
                        assert_eq!((error.code(), frame), (code, 2), "{name} {error}");
                        errors += 1;
                    }
                }
            }
            assert!(errors > 0, "{name} {code}: nobody was told");
            // The rest can be read.
            let x = tree.node(tree.find("x").unwrap()).array.as_ref().unwrap();
            for frame in [0, 1, 3] {
                assert!(
                    Array::open_frame(opened.source(), tree, x, frame, &limits).unwrap().is_some()
                );
            }
        }
    }
}

fn salvage(bytes: &[u8], to: &Path) -> spile_core::error::Result<Salvage> {
    let mut sink = Sink::create(to, Overwrite::Replace).unwrap();
    let saved = Gsd.salvage(&Source::memory(bytes), &mut sink, &Limits::default())?;
    sink.commit().unwrap();
    Ok(saved)
}

#[test]
fn of_a_cut_file_every_whole_frame_is_saved() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("cut.gsd");
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    // Sixty frames in a first index, then two that move it.
    for version in [Version::V2_1, Version::V1_0, Version::V0_0_1] {
        let mode = Mode::default();
        let mut file = Writer::create(&path, Overwrite::Replace, version, &about, mode).unwrap();
        for frame in 0..300_u32 {
            for name in ["first", "second"] {
                let bytes = frame.to_le_bytes().repeat(20);
                file.write_chunk(name, Type::UInt32, 20, 1, &bytes).unwrap();
            }
            file.end_frame().unwrap();
            file.flush().unwrap();
        }
        file.close().unwrap();
        let whole = fs::read(&path).unwrap();
        let all = content(&path);
        let saved = temp.path().join("saved.gsd");
        let mut best = 0;
        for cut in (6000..=whole.len()).step_by(997).chain([whole.len() - 1, whole.len()]) {
            let Ok(report) = salvage(&whole[..cut], &saved) else {
                assert!(cut < 12_000, "{version:?}: nothing of {cut} bytes");
                continue;
            };
            sound(&saved);
            let got = content(&saved);
            for (key, value) in &got {
                assert_eq!(all.get(key), Some(value), "{version:?} {cut} {key:?}");
            }
            let frames = open(&saved).nframes().unwrap();
            assert_eq!(frames == 300, cut + 80 >= whole.len() && frames == 300, "{cut}");
            assert!(frames + 40 >= best, "{version:?}: {frames} of {cut} bytes, {best} of fewer");
            best = best.max(frames);
            assert_eq!(report.lost.is_empty(), frames == 300, "{cut} {report:?}");
        }
        assert_eq!(best, 300);
    }
}

#[test]
fn the_last_frame_of_a_cut_index_is_not_kept_by_half() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let path = golden().join("py-5.0.1/hoomd_many_frames.gsd");
    let (whole, all) = (fs::read(&path).unwrap(), snapshots(&path));
    for cut in [19_964, 19_996, 20_000] {
        let report = salvage(&whole[..cut], &saved).unwrap();
        let got = snapshots(&saved);
        assert!(!got.is_empty() && got.len() < all.len(), "{cut}");
        assert_eq!(format!("{got:?}"), format!("{:?}", &all[..got.len()]), "{cut}");
        let lost = format!("frame {}:", got.len());
        assert!(report.lost.iter().any(|line| line.starts_with(&lost)), "{report:?}");
    }
}

#[test]
fn a_sound_file_is_saved_whole() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let mut done = 0;
    for path in files(&["v0.0.1", "code", "py"]) {
        // Names that were cut are equal, and are not found again by name.
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with("names.gsd") || name.contains("duplicate") {
            continue;
        }
        let report = salvage(&fs::read(&path).unwrap(), &saved).unwrap();
        assert_eq!(report.lost, [""; 0], "{path:?}");
        assert!(content(&path) == content(&saved), "{path:?}");
        done += 1;
    }
    assert!(done > 200, "{done}");
}

#[test]
fn corrupt_files_give_what_is_whole_in_them() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let expected = [
        ("v001_bad_checksum_entry1", 0),
        ("v2_entry0_N_overflow", 8),
        ("v2_entry3_type_0_unprobed", 8),
        ("v2_entry5_N_past_eof_unprobed", 8),
        ("v2_entry5_loc_in_header", 8),
        ("v2_entry5_frame_decreasing", 9),
        ("v2_unsorted_ids", 9),
        ("v2_index_alloc_overflow", 9),
        ("v2_index_loc_zero", 9),
        ("v2_index_alloc_zero", 9),
        ("v2_namelist_past_eof", 9),
        ("v2_namelist_alloc_zero", 9),
        ("v2_reserved_nonzero", 9),
    ];
    for (name, frames) in expected {
        let bytes = fs::read(golden().join(format!("corrupt/{name}.gsd"))).unwrap();
        let report = salvage(&bytes, &saved).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(open(&saved).nframes().unwrap(), frames, "{name}: {report:?}");
        sound(&saved);
    }
    let edge = golden().join("edge/empty_chunk_name_REFERENCE_CALLS_CORRUPT.gsd");
    salvage(&fs::read(edge).unwrap(), &saved).unwrap();
    assert_eq!(open(&saved).find_matching_names(""), ["unnamed-0", "b"]);
}

#[test]
fn no_damage_makes_salvage_fail_in_another_way_than_by_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let samples = [
        "v0.0.1/ce10462_one_frame.gsd",
        "v0.0.1/1232f6c_index_grow_by_one.gsd",
        "v0.0.1-other-abi/packed_one_frame.gsd",
        "code-f02/all_types.gsd",
        "code-v1.0.0/names.gsd",
        "code-v5.0.1/names_growth.gsd",
        "py-5.0.1/hoomd_varying_N.gsd",
        "upgraded/many_frames_growth_1.0_to_2.1.gsd",
    ];
    let (mut random, mut saves) = (7_u64, 0);
    let mut next = |end: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % end
    };
    for name in samples {
        let whole = fs::read(golden().join(name)).unwrap();
        for round in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..=round % 3 {
                // Header and index are where damage hurts.
                let at = next(bytes.len().min(1000));
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)];
            }
            if round % 4 == 0 {
                bytes.truncate(next(whole.len()));
            }
            if salvage(&bytes, &saved).is_ok() {
                sound(&saved);
                saves += 1;
            }
        }
    }
    assert!(saves > 500, "{saves}");
}
