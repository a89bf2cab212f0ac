//! Damaged files: errors when they are read, and recovery by salvage.

mod support;

use std::fs;

use spile_core::Dataset;
use spile_core::error::Hint;
use spile_core::format::{Checker as _, OpenOptions};
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_gsd::ops::NameRule;
use spile_gsd::semantics::{Precision, Snapshot, TrajectoryWriter};
use spile_gsd::wire::{About, Type};
use spile_gsd::{File, Gsd, Mode, Version, Writer};

use support::{
    assert_valid, content, entry_at, files, golden, open, salvage, snapshots, trajectory,
    without_logs,
};

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
        // Damage the type of one entry of frame 0.
        let mut bytes = fs::read(&path).unwrap();
        bytes[entry_at(&path, 0, "configuration/step") + 30] = 99;
        let report = salvage(&bytes, &saved).unwrap();
        assert!(report.lost.iter().any(|line| line.contains("frame 0:")), "{report:?}");
        let got = snapshots(&saved);
        assert_eq!(got.len(), all.len() - 1, "{name}");
        let reported = report.lost.iter().any(|line| line.contains("configuration/step"));
        for (got, want) in got.iter().zip(&all[1..]) {
            let mut want = want.clone();
            if reported {
                want.step = got.step;
            }
            assert_eq!(without_logs(got), without_logs(&want), "{name}");
        }
        assert_valid(&saved);
    }
    // Lost values are reported, and frames that depend on a lost count are lost.
    trajectory(&a, 3, |_| None);
    let mode = Mode::default();
    let mut file =
        TrajectoryWriter::create(&a, Overwrite::Replace, "t", Precision::Single, mode).unwrap();
    for step in 1..4 {
        let mut s = Snapshot::new(step, 2);
        s.particles.mass = vec![3.0; 2].into();
        s.particles.position = vec![step as f64; 6].into();
        file.write(&s).unwrap();
    }
    file.close().unwrap();
    let original = fs::read(&a).unwrap();
    let mut bytes = original.clone();
    bytes[entry_at(&a, 0, "particles/mass") + 30] = 99;
    let report = salvage(&bytes, &saved).unwrap();
    let expected = "\"particles/mass\" of 2 frames, first frame 1, stored in frame 0";
    assert!(report.lost.iter().any(|line| line.starts_with(expected)), "{report:?}");
    let got = snapshots(&saved);
    assert_eq!((got.len(), got[0].particles.mass[0], got[1].particles.position[0]), (2, 1.0, 3.0));
    let mut bytes = original;
    bytes[entry_at(&a, 0, "particles/N") + 30] = 99;
    let report = salvage(&bytes, &saved).unwrap();
    assert!(
        report.lost.iter().any(|line| line.contains("which it requires, is lost")),
        "{report:?}"
    );
    assert_eq!(open(&saved).nframes().unwrap(), 0);
}

#[test]
fn appending_after_the_largest_frame_number_is_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    for number in [u64::MAX, u64::MAX - 1, 1 << 63] {
        fs::copy(golden().join("code-v5.0.1/one_frame.gsd"), &path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // Change all entries of its only frame.
        for entry in bytes[256..4352].as_chunks_mut::<32>().0 {
            if entry[16..24] != [0; 8] {
                entry[..8].copy_from_slice(&number.to_le_bytes());
            }
        }
        fs::write(&path, &bytes).unwrap();
        let error = Writer::append(&path, Mode::default(), &Limits::default()).err().unwrap();
        assert_eq!(error.code(), "gsd-016", "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
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
    let (original, limits) = (fs::read(&path).unwrap(), Limits::default());
    for hole in [3, 127, 511, 512, 767, 998] {
        let at = entry_at(&path, hole, "x");
        let mut bytes = original.clone();
        // The location alone is lost: only that entry is invalid.
        bytes[at + 16..at + 24].fill(0);
        let file = File::from_source(&Source::memory(bytes.clone()), &limits).unwrap();
        assert_eq!(file.nframes().unwrap(), 1000, "{hole}");
        assert_eq!(file.find_chunk(hole, "x").unwrap_err().code(), "gsd-015");
        assert!(file.find_chunk(hole + 1, "x").unwrap().is_some());
        let report = salvage(&bytes, &saved).unwrap();
        assert_eq!((open(&saved).nframes().unwrap(), report.lost.len()), (999, 1), "{report:?}");
        // The entry and some that follow are lost.
        for count in [1, 2, 100, 300] {
            let end = (at + 32 * count).min(entry_at(&path, 998, "x") + 32);
            bytes[at..end].fill(0);
            let source = Source::memory(bytes.clone());
            let opened = Dataset::open(&Gsd, source.clone(), &OpenOptions::default());
            let opened = opened.err().map(|e| e.code());
            let report = Gsd.check(&source, &limits, false).unwrap();
            let file = File::from_source(&source, &limits).unwrap();
            if file.nframes().unwrap() == 1000 {
                // The bisection did not hit the gap, which is part of the index then.
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
    let original = fs::read(&path).unwrap();
    // Type, flags, name id, rows, location.
    for (byte, value, code) in [
        (30, 77, "gsd-007"),
        (31, 1, "gsd-008"),
        (28, 50, "gsd-011"),
        (15, 0xf7, "gsd-014"),
        (13, 1, "gsd-009"),
        (23, 0xff, "gsd-010"),
    ] {
        for name in ["x", "once"] {
            let mut bytes = original.clone();
            bytes[entry_at(&path, 2, name) + byte] = value;
            let source = Source::memory(bytes);
            let opened = Dataset::open(&Gsd, source, &OpenOptions::default()).unwrap();
            let tree = opened.tree();
            let mut errors = 0;
            let damaged: Vec<&str> =
                opened.warnings().iter().filter_map(|f| f.object.as_deref()).collect();
            for (id, node, _) in tree.arrays() {
                for frame in 0..4 {
                    let cell = opened.array_in_frame(id, frame);
                    if let Err(error) = cell {
                        assert_eq!((error.code(), frame), (code, 2), "{name} {error}");
                        errors += 1;
                        // Opening has reported it.
                        let path = node.path.as_str();
                        assert!(code == "gsd-011" || damaged.contains(&path), "{path} {code}");
                    }
                }
            }
            assert!(errors > 0, "{name} {code}: no error");
            // All other frames are readable.
            let x = tree.find("x").unwrap();
            for frame in [0, 1, 3] {
                assert!(opened.array_in_frame(x, frame).unwrap().is_some());
            }
            let report = opened.warnings();
            assert!(report.iter().all(|f| f.code == code && f.severity == Severity::Error));
            assert_eq!(damaged.len(), 1, "{name} {code}");
        }
    }
}

#[test]
fn salvage_recovers_every_complete_frame_of_a_truncated_file() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("cut.gsd");
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    // The index is moved twice.
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
        let original = fs::read(&path).unwrap();
        let all = content(&path);
        let saved = temp.path().join("saved.gsd");
        let mut best = 0;
        for cut in (6000..=original.len()).step_by(997).chain([original.len() - 1, original.len()])
        {
            let Ok(report) = salvage(&original[..cut], &saved) else {
                assert!(cut < 12_000, "{version:?}: nothing of {cut} bytes");
                continue;
            };
            assert_valid(&saved);
            let got = content(&saved);
            for (key, value) in &got {
                assert_eq!(all.get(key), Some(value), "{version:?} {cut} {key:?}");
            }
            let frames = open(&saved).nframes().unwrap();
            assert!(frames + 40 >= best, "{version:?}: {frames} of {cut} bytes, {best} of fewer");
            best = best.max(frames);
            assert_eq!(report.lost.is_empty(), got.len() == all.len(), "{cut} {report:?}");
        }
        assert_eq!(best, 300);
    }
}

#[test]
fn the_last_frame_of_a_cut_index_is_not_kept_by_half() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let path = golden().join("py-5.0.1/hoomd_many_frames.gsd");
    let (original, all) = (fs::read(&path).unwrap(), snapshots(&path));
    for cut in [19_964, 19_996, 20_000] {
        let report = salvage(&original[..cut], &saved).unwrap();
        let got = snapshots(&saved);
        assert!(!got.is_empty() && got.len() < all.len(), "{cut}");
        assert_eq!(format!("{got:?}"), format!("{:?}", &all[..got.len()]), "{cut}");
        let lost = format!("frame {}:", got.len());
        assert!(report.lost.iter().any(|line| line.starts_with(&lost)), "{report:?}");
    }
}

#[test]
fn salvage_of_an_intact_file_loses_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let mut done = 0;
    for path in files(&["v0.0.1", "code", "py"]) {
        // Truncated names are equal and cannot be found by name.
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
fn salvage_recovers_the_complete_frames_of_corrupt_files() {
    let temp = tempfile::tempdir().unwrap();
    let saved = temp.path().join("saved.gsd");
    let expected = [
        ("v001_bad_checksum_entry1", 1),
        ("v2_entry0_N_overflow", 9),
        ("v2_entry3_type_0_unprobed", 8),
        ("v2_entry5_N_past_eof_unprobed", 9),
        ("v2_entry5_loc_in_header", 9),
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
        assert_valid(&saved);
    }
    let edge = golden().join("edge/empty_chunk_name_REFERENCE_CALLS_CORRUPT.gsd");
    salvage(&fs::read(edge).unwrap(), &saved).unwrap();
    assert_eq!(open(&saved).find_matching_names(""), ["unnamed-0", "b"]);
}

#[test]
fn salvage_of_random_damage_fails_with_an_error_only() {
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
        let original = fs::read(golden().join(name)).unwrap();
        for round in 0..150 {
            let mut bytes = original.clone();
            for _ in 0..=round % 3 {
                // Damage to header and index.
                let at = next(bytes.len().min(1000));
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)];
            }
            if round % 4 == 0 {
                bytes.truncate(next(original.len()));
            }
            if salvage(&bytes, &saved).is_ok() {
                assert_valid(&saved);
                saves += 1;
            }
        }
    }
    assert!(saves > 500, "{saves}");
}

#[test]
fn a_failed_salvage_does_not_recommend_salvage() {
    let temp = tempfile::tempdir().unwrap();
    let path = golden().join("corrupt/v2_trunc_in_index.gsd");
    let error = salvage(&fs::read(path).unwrap(), &temp.path().join("saved.gsd")).unwrap_err();
    assert_eq!(error.code(), "gsd-005");
    assert!(matches!(error.suggestion(), Some(Hint::Text(_))), "{error}");
}

#[test]
fn a_damaged_frame_number_adds_no_frames() {
    let temp = tempfile::tempdir().unwrap();
    let [a, saved] = ["a.gsd", "s.gsd"].map(|name| temp.path().join(name));
    trajectory(&a, 10, |_| None);
    let original = fs::read(&a).unwrap();
    for frame in [0, 4, 9] {
        for number in [frame + 64, frame + 3_932_160, u64::MAX] {
            // The last frame may be 64 frames later: frames may have no chunks.
            if number == 9 + 64 {
                continue;
            }
            let mut bytes = original.clone();
            let at = entry_at(&a, frame, "configuration/step");
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            let report = salvage(&bytes, &saved).unwrap();
            assert!(!report.lost.is_empty(), "{frame} {number}");
            let frames = open(&saved).nframes().unwrap();
            assert!((9..=10).contains(&frames), "{frame} {number}: {frames} frames");
        }
    }
}

/// A file with two chunks in each of `frames` frames.
fn pairs(path: &std::path::Path, schema: &str, frames: u32) {
    let about = About { application: "t".into(), schema: schema.into(), schema_version: 1 << 16 };
    let mode = Mode::default();
    let mut file = Writer::create(path, Overwrite::Replace, Version::V2_1, &about, mode).unwrap();
    for frame in 0..frames {
        for name in ["x", "y"] {
            file.write_chunk(name, Type::UInt32, 1, 1, &frame.to_le_bytes()).unwrap();
        }
        file.end_frame().unwrap();
    }
    file.close().unwrap();
}

#[test]
fn a_bad_chunk_costs_the_frame_only_where_other_values_depend_on_it() {
    let temp = tempfile::tempdir().unwrap();
    let [path, saved] = ["a.gsd", "s.gsd"].map(|name| temp.path().join(name));
    for (schema, frames) in [("mine", 5), ("hoomd", 4)] {
        pairs(&path, schema, 5);
        let mut bytes = fs::read(&path).unwrap();
        bytes[entry_at(&path, 2, "x") + 30] = 99;
        let report = salvage(&bytes, &saved).unwrap();
        let file = open(&saved);
        assert_eq!(file.nframes().unwrap(), frames, "{report:?}");
        assert_eq!(report.lost.len(), 1, "{report:?}");
        assert_valid(&saved);
        if schema == "mine" {
            assert!(report.lost[0].starts_with("chunk \"x\" of frame 2: unknown element type"));
            assert!(file.find_chunk(2, "x").unwrap().is_none());
            let other = file.find_chunk(2, "y").unwrap().unwrap();
            assert_eq!(file.read_chunk(&other).unwrap(), 2_u32.to_le_bytes());
            // A frame without any readable chunk is lost.
            bytes[entry_at(&path, 2, "y") + 30] = 99;
            let report = salvage(&bytes, &saved).unwrap();
            assert_eq!(open(&saved).nframes().unwrap(), 4, "{report:?}");
            assert!(report.lost.iter().all(|line| line.starts_with("frame 2:")), "{report:?}");
        }
    }
}

#[test]
fn a_damaged_last_frame_number_adds_no_frames_to_a_long_file() {
    let temp = tempfile::tempdir().unwrap();
    let [path, saved] = ["a.gsd", "s.gsd"].map(|name| temp.path().join(name));
    pairs(&path, "mine", 3000);
    let original = fs::read(&path).unwrap();
    // The number of the last frame becomes 2999 + 8192, less than four times the number of chunks.
    let mut bytes = original.clone();
    for name in ["x", "y"] {
        bytes[entry_at(&path, 2999, name) + 1] ^= 0x20;
    }
    let report = salvage(&bytes, &saved).unwrap();
    assert_eq!(open(&saved).nframes().unwrap(), 2999, "{report:?}");
    assert!(report.lost.iter().any(|line| line.contains("far larger")), "{report:?}");
}

#[test]
fn names_that_are_not_utf8_get_readable_substitutes_on_request() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    pairs(&path, "mine", 3);
    let mut bytes = fs::read(&path).unwrap();
    // The name list follows the initial index.
    assert_eq!(&bytes[4352..4356], b"x\0y\0");
    bytes[4352..4358].copy_from_slice(b"x\xe9\0y\0\0");
    fs::write(&path, &bytes).unwrap();
    let limits = Limits::default();
    assert_eq!(open(&path).find_matching_names(""), ["x\u{fffd}", "y"]);
    spile_gsd::ops::upgrade(&path, NameRule::Keep, &limits).unwrap();
    assert_eq!(open(&path).find_matching_names(""), ["x\u{fffd}", "y"]);
    spile_gsd::ops::upgrade(&path, NameRule::Utf8, &limits).unwrap();
    let file = open(&path);
    assert_eq!(file.find_matching_names(""), ["x%E9", "y"]);
    let chunk = file.find_chunk(2, "x%E9").unwrap().unwrap();
    assert_eq!(file.read_chunk(&chunk).unwrap(), 2_u32.to_le_bytes());
    let report = Gsd.check(file.source(), &limits, true).unwrap();
    assert!(report.findings.iter().all(|finding| finding.code != "gsd-026"));
}
