//! Whole files: upgraded, trimmed, merged, salvaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spile_core::format::{Format as _, Salvage};
use spile_core::limits::Limits;
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
        all.insert((chunk.entry.frame, chunk.name), (chunk.entry.n, chunk.entry.m, bytes));
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
