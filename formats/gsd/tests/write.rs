//! The native writer: versions, growth, appending, modes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use spile_core::error::ErrorKind;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Form, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

fn about() -> About {
    About { application: "test".into(), schema: "mine".into(), schema_version: 1 << 16 | 4 }
}

fn create(path: &Path, version: Version) -> Writer {
    Writer::create(path, Overwrite::Replace, version, &about(), Mode::default()).unwrap()
}

fn append(path: &Path) -> Writer {
    Writer::append(path, Mode::default(), &Limits::default()).unwrap()
}

fn open(path: &Path) -> File {
    File::open(path, &Limits::default()).unwrap()
}

const VERSIONS: [Version; 4] = [Version::V0_0_1, Version::V1_0, Version::V2_0, Version::V2_1];

/// Distinct bytes per frame and name.
fn data(frame: u64, name: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|k| (frame * 31 + name * 7 + k) as u8).collect()
}

#[test]
fn files_of_0_0_1_are_identical_to_those_of_the_original_code() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd/v0.0.1");
    let temp = tempfile::tempdir().unwrap();
    let mut done = 0;
    for what in [
        "empty",
        "empty_frames",
        "index_exactly_full",
        "index_grow_by_one",
        "long_header_strings",
        "many_frames",
        "mixed_steps_in_frame",
        "names_sparse",
        "one_frame",
        "rejected_zero_dims",
        "sizes",
        "steps",
        "unknown_type",
    ] {
        let path = golden.join(format!("ce10462_{what}.gsd"));
        let old = open(&path);
        let copy = temp.path().join(what);
        let about = old.header().about();
        // "end frame and commit to disk" (design text).
        let mode = Mode { commit: Commit::Frames(1), durable: false };
        let mut new =
            Writer::create(&copy, Overwrite::Never, Version::V0_0_1, &about, mode).unwrap();
        old.each_chunk(|chunk| {
            let chunk = chunk.unwrap();
            while new.nframes() < chunk.entry.frame {
                new.end_frame()?;
            }
            new.set_step(chunk.entry.step);
            let bytes = old.read_chunk(&chunk)?;
            new.write_chunk(&chunk.name, chunk.data.kind, chunk.entry.n, chunk.entry.m, &bytes)
        })
        .unwrap();
        new.end_frame().unwrap();
        // A frame that was not completed leaves its data in the file.
        let bytes = fs::read(&path).unwrap();
        let left = &bytes[fs::metadata(&copy).unwrap().len() as usize..];
        if !left.is_empty() {
            new.write_chunk("left", Type::UInt8, left.len() as u64, 1, left).unwrap();
        }
        new.close().unwrap();
        assert!(bytes == fs::read(&copy).unwrap(), "{what}");
        done += 1;
    }
    assert_eq!(done, 13);

    // Closed before the end of a frame and opened again.
    let path = golden.join("ce10462_reopen_append.gsd");
    let (old, bytes) = (open(&path), fs::read(&path).unwrap());
    let copy = temp.path().join("reopen_append");
    let about = old.header().about();
    let mut new =
        Writer::create(&copy, Overwrite::Never, Version::V0_0_1, &about, Mode::default()).unwrap();
    for (step, at) in [(1, 1640), (2, 1644), (3, 1648)] {
        new.set_step(step);
        new.write_chunk("a", Type::UInt32, 1, 1, &bytes[at..at + 4]).unwrap();
        if step == 2 {
            new.close().unwrap();
            new = append(&copy);
        } else {
            new.end_frame().unwrap();
        }
    }
    new.close().unwrap();
    assert!(bytes == fs::read(&copy).unwrap());
}

#[test]
fn files_of_every_version_grow_and_are_read_back() {
    let temp = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let path = temp.path().join(format!("{version:?}"));
        let mut file = create(&path, version);
        let names = |frame: u64| (0..7).map(move |k| format!("group/name-{}", (frame + k) % 90));
        for frame in 0..200 {
            // Close and open again every 50 frames.
            if frame % 50 == 49 {
                file.close().unwrap();
                file = append(&path);
                assert_eq!(file.nframes(), frame);
            }
            for (k, name) in names(frame).enumerate() {
                let bytes = data(frame, k as u64, 12 * (k + 1));
                file.write_chunk(&name, Type::Float, k as u64 + 1, 3, &bytes).unwrap();
            }
            file.end_frame().unwrap();
            if frame % 7 == 0 {
                file.flush().unwrap();
            }
        }
        file.close().unwrap();
        let read = open(&path);
        assert_eq!((read.nframes().unwrap(), read.nchunks()), (200, 1400), "{version:?}");
        assert_eq!(read.find_matching_names("group/").len(), 90);
        for frame in 0..200 {
            assert_eq!(read.frame(frame).unwrap().len(), 7);
            for (k, name) in names(frame).enumerate() {
                let chunk = read.find_chunk(frame, &name).unwrap().unwrap();
                assert_eq!((chunk.entry.n, chunk.entry.m), (k as u64 + 1, 3));
                let want = data(frame, k as u64, 12 * (k + 1));
                assert_eq!(read.read_chunk(&chunk).unwrap(), want);
            }
            let other = format!("group/name-{}", (frame + 8) % 90);
            assert_eq!(read.find_chunk(frame, &other).unwrap(), None);
        }
        let report = spile_core::format::Checker::check(
            &spile_gsd::Gsd,
            read.source(),
            &Limits::default(),
            true,
        );
        assert_eq!(report.unwrap().findings, [], "{version:?}");
    }
}

#[test]
fn nothing_is_visible_before_its_commit() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let mut file = create(&path, Version::V2_1);
    let mut reader = open(&path);
    let mut frames = |file: &mut Writer| -> (u64, u64) {
        reader.refresh().unwrap();
        (file.nframes(), reader.nframes().unwrap())
    };
    for k in 0..3 {
        file.write_chunk("x", Type::UInt8, 1, 1, &[k]).unwrap();
        file.write_chunk("y", Type::UInt8, 1, 1, &[k]).unwrap();
        assert_eq!(frames(&mut file), (k.into(), 0));
        file.end_frame().unwrap();
    }
    assert_eq!(frames(&mut file), (3, 0));
    file.flush().unwrap();
    assert_eq!(frames(&mut file), (3, 3));
    // Chunks of an incomplete frame are not visible.
    file.write_chunk("x", Type::UInt8, 1, 1, &[9]).unwrap();
    file.flush().unwrap();
    assert_eq!(frames(&mut file), (3, 3));
    // `find_chunk` commits completed frames, as in the C library.
    file.end_frame().unwrap();
    let chunk = file.find_chunk(3, "x").unwrap().unwrap();
    assert_eq!(chunk.entry.frame, 3);
    assert_eq!(frames(&mut file), (4, 4));
    drop(file);

    for (commit, visible) in [
        (Commit::Frames(1), [1, 2, 3, 4, 5, 6]),
        (Commit::Frames(4), [0, 0, 0, 4, 4, 4]),
        (Commit::Every(Duration::from_hours(1)), [0, 0, 0, 0, 0, 0]),
        (Commit::Every(Duration::ZERO), [1, 2, 3, 4, 5, 6]),
    ] {
        for durable in [false, true] {
            let mode = Mode { commit, durable };
            let create = Writer::create(&path, Overwrite::Replace, Version::V2_1, &about(), mode);
            let mut file = create.unwrap();
            for want in visible {
                for name in ["a", "b", "c"] {
                    file.write_chunk(name, Type::UInt8, 1, 1, &[1]).unwrap();
                }
                file.end_frame().unwrap();
                assert_eq!(open(&path).nframes().unwrap(), want, "{mode:?}");
            }
            file.close().unwrap();
            assert_eq!(open(&path).nframes().unwrap(), 6);
        }
    }
}

#[test]
fn memory_stays_bounded_without_a_flush() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let mut file = create(&path, Version::V2_1);
    for _ in 0..70_000 {
        file.write_chunk("x", Type::UInt8, 1, 1, &[1]).unwrap();
        file.end_frame().unwrap();
    }
    // Entries are committed at the pending limit.
    assert_eq!(open(&path).nframes().unwrap(), 1 << 16);
    file.close().unwrap();
    assert_eq!(open(&path).nframes().unwrap(), 70_000);
}

#[test]
fn index_capacity_includes_empty_frames() {
    // The C library rejects frame numbers that are not below the index capacity.
    let temp = tempfile::tempdir().unwrap();
    for version in [Version::V1_0, Version::V2_0, Version::V2_1] {
        let path = temp.path().join(format!("{version:?}"));
        let mut file = create(&path, version);
        for frame in 0..1000_u64 {
            if [150, 600, 999].contains(&frame) {
                file.write_chunk("x", Type::UInt64, 1, 1, &frame.to_le_bytes()).unwrap();
            }
            file.end_frame().unwrap();
        }
        file.close().unwrap();
        let file = open(&path);
        assert_eq!((file.nframes().unwrap(), file.nchunks()), (1000, 3));
        assert_eq!(file.header().index.allocated, 1024);
    }
}

#[test]
fn invalid_chunks_are_rejected_and_change_nothing() {
    let temp = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let path = temp.path().join(format!("{version:?}"));
        let mut file = create(&path, version);
        let mut bad = |name: &str, kind, n, m, bytes: &[u8]| {
            let error = file.write_chunk(name, kind, n, m, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        };
        bad("", Type::UInt8, 1, 1, &[1]);
        bad("a\0b", Type::UInt8, 1, 1, &[1]);
        bad("a", Type::UInt32, 1, 1, &[1]);
        bad("a", Type::UInt32, u64::MAX, u64::MAX, &[1; 4]);
        match version {
            Version::V0_0_1 => {
                bad("a", Type::UInt64, 1, 1, &[0; 8]);
                bad("a", Type::UInt8, 0, 1, &[]);
                bad(&"a".repeat(33), Type::UInt8, 1, 1, &[1]);
            }
            Version::V1_0 => bad(&"a".repeat(64), Type::UInt8, 1, 1, &[1]),
            _ => bad("a", Type::Unknown(3), 1, 1, &[1]),
        }
        file.write_chunk("a", Type::UInt8, 1, 1, &[1]).unwrap();
        let twice = file.write_chunk("a", Type::UInt8, 1, 1, &[2]).unwrap_err();
        assert!(twice.to_string().contains("already has this chunk"), "{twice}");
        file.end_frame().unwrap();
        file.close().unwrap();
        let file = open(&path);
        let chunk = file.find_chunk(0, "a").unwrap().unwrap();
        assert_eq!((file.nchunks(), file.read_chunk(&chunk).unwrap()), (1, vec![1]));
    }
}

#[test]
fn truncate_leaves_an_empty_file_of_the_same_version() {
    let temp = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let path = temp.path().join(format!("{version:?}"));
        let empty = {
            create(&path, version).close().unwrap();
            fs::read(&path).unwrap()
        };
        let mut file = append(&path);
        for _ in 0..40 {
            file.write_chunk("x", Type::UInt8, 3, 1, &[1, 2, 3]).unwrap();
            file.end_frame().unwrap();
        }
        file.flush().unwrap();
        let mut file = file.truncate().unwrap();
        assert!(fs::read(&path).unwrap() == empty);
        file.write_chunk("y", Type::UInt8, 1, 1, &[7]).unwrap();
        file.end_frame().unwrap();
        file.close().unwrap();
        assert_eq!(open(&path).find_matching_names(""), ["y"]);
    }
}

/// Writes a file with `frames` committed frames of `chunks` chunks; returns its bytes before and after
/// the last commit.
fn two_states(path: &Path, version: Version, frames: u64, chunks: u64) -> (Vec<u8>, Vec<u8>) {
    let mut file = create(path, version);
    let mut before = Vec::new();
    for frame in 0..frames {
        for k in 0..chunks {
            let name = format!("c{k}");
            file.write_chunk(&name, Type::UInt8, 2, 1, &[frame as u8, k as u8]).unwrap();
        }
        if frame + 1 == frames {
            before = fs::read(path).unwrap();
        }
        file.end_frame().unwrap();
        file.flush().unwrap();
    }
    let after = fs::read(path).unwrap();
    file.close().unwrap();
    (before, after)
}

#[test]
fn an_interrupted_commit_is_invisible_and_the_file_can_be_appended_to() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("cut.gsd");
    for version in VERSIONS {
        let (before, after) = two_states(&path, version, 3, 5);
        // The last commit wrote entries 10 to 14.
        fs::write(&path, &after).unwrap();
        let whole = open(&path);
        let (location, size) =
            (whole.header().index.location as usize, whole.header().form.entry_size() as usize);
        assert_eq!(whole.nchunks(), 15);
        // Any subset of its entries may have reached the disk.
        for mask in 0..32_u32 {
            let mut bytes = after.clone();
            for k in 0..5 {
                if mask & 1 << k == 0 {
                    let at = location + (10 + k) * size;
                    bytes[at..at + size].fill(0);
                }
            }
            fs::write(&path, &bytes).unwrap();
            let file = open(&path);
            let want = if mask == 31 { 3 } else { 2 };
            assert_eq!(file.nframes().unwrap(), want, "{version:?} {mask:05b}");
            assert_eq!(file.has_torn_commit(), mask != 31);
            let mut file = append(&path);
            assert_eq!(file.nframes(), want);
            file.write_chunk("c0", Type::UInt8, 1, 1, &[77]).unwrap();
            file.end_frame().unwrap();
            file.close().unwrap();
            let file = open(&path);
            assert_eq!((file.nframes().unwrap(), file.nchunks()), (want + 1, want * 5 + 1));
            let chunk = file.find_chunk(want, "c0").unwrap().unwrap();
            assert_eq!(file.read_chunk(&chunk).unwrap(), [77]);
            let report = spile_core::format::Checker::check(
                &spile_gsd::Gsd,
                file.source(),
                &Limits::default(),
                true,
            );
            assert_eq!(report.unwrap().findings, [], "{version:?} {mask:05b}");
        }
        // Data without entries.
        fs::write(&path, &before).unwrap();
        assert_eq!(open(&path).nframes().unwrap(), 2);
    }
}

#[test]
fn a_kill_during_index_growth_keeps_every_committed_frame() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("growth.gsd");
    for (version, frames) in [(Version::V0_0_1, 4), (Version::V1_0, 26), (Version::V2_1, 26)] {
        let (before, after) = two_states(&path, version, frames, 5);
        let header = {
            fs::write(&path, &after).unwrap();
            open(&path).header().clone()
        };
        assert_ne!(header.index.location, header.form.header_size(), "{version:?}");
        // The new index is written, completely or in part, but the header still refers to the old one.
        let mut bytes = after.clone();
        let size = header.form.header_size() as usize;
        bytes[..size].copy_from_slice(&before[..size]);
        for cut in [0, 1, 31, 32, 33, 100, 4096] {
            let mut bytes = bytes.clone();
            let from = header.index.location as usize + cut;
            let end = from.max(bytes.len().min(
                header.index.location as usize
                    + (header.index.allocated * header.form.entry_size()) as usize,
            ));
            bytes[from..end].fill(0);
            fs::write(&path, &bytes).unwrap();
            let file = open(&path);
            assert_eq!(file.nframes().unwrap(), frames - 1, "{version:?} {cut}");
            let mut file = append(&path);
            for k in 0..5_u8 {
                file.write_chunk(&format!("c{k}"), Type::UInt8, 1, 1, &[k]).unwrap();
            }
            file.end_frame().unwrap();
            file.close().unwrap();
            let file = open(&path);
            assert_eq!(file.nframes().unwrap(), frames);
            file.each_chunk(|chunk| chunk.map(drop)).unwrap();
        }
    }
}

#[test]
fn the_entry_count_in_headers_of_0_0_1_is_updated() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd");
    let temp = tempfile::tempdir().unwrap();
    for name in [
        "v0.0.1/1232f6c_index_exactly_full.gsd",
        "v0.0.1/1232f6c_many_frames.gsd",
        "v0.0.1-other-abi/i386_index_exactly_full.gsd",
        "v0.0.1-other-abi/packed_many_frames.gsd",
        "code-f02/many_frames_growth.gsd",
        "code-v0.1.0/names.gsd",
        "code-v2.0.0/index_exactly_full.gsd",
        "code-v5.0.1/names_growth.gsd",
        "py-5.0.1/fl_1000_names.gsd",
    ] {
        let path = temp.path().join("a.gsd");
        fs::copy(golden.join(name), &path).unwrap();
        let old = open(&golden.join(name));
        let (frames, chunks) = (old.nframes().unwrap(), old.nchunks());
        let mut entries = Vec::new();
        old.each_chunk(|chunk| chunk.map(|chunk| entries.push(chunk.entry))).unwrap();
        let mut file = append(&path);
        for frame in 0..30_u8 {
            file.set_step(1000 + u64::from(frame));
            file.write_chunk("new", Type::UInt32, 1, 1, &[frame; 4]).unwrap();
            file.write_chunk("newer", Type::UInt8, 1, 1, &[frame]).unwrap();
            file.end_frame().unwrap();
            file.flush().unwrap();
        }
        file.close().unwrap();
        let new = open(&path);
        assert_eq!(new.header().form, old.header().form);
        assert_eq!((new.nframes().unwrap(), new.nchunks()), (frames + 30, chunks + 60), "{name}");
        let mut k = 0;
        new.each_chunk(|chunk| {
            let chunk = chunk.unwrap();
            if k < chunks {
                assert_eq!(chunk.entry, entries[k as usize], "{name}");
            }
            k += 1;
            Ok(())
        })
        .unwrap();
        if new.header().form.is_v0_0_1() {
            assert_eq!(new.last_step().unwrap(), Some(1029));
        }
        assert!(matches!(new.header().form, Form::V0_0_1(_)) || new.header().names.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Arbitrary frames and chunks, in every version and commit mode.
    #[test]
    fn written_chunks_are_read_back(
        version in 0..4_usize,
        commit in 0..4_u64,
        frames in prop::collection::vec(
            prop::collection::vec((0..40_u32, 1..9_u64, 1..4_u64), 0..12), 0..40),
    ) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("p.gsd");
        let commit = if commit == 0 { Commit::OnFlush } else { Commit::Frames(commit) };
        let mode = Mode { commit, durable: false };
        let mut file =
            Writer::create(&path, Overwrite::Never, VERSIONS[version], &about(), mode).unwrap();
        let mut want = Vec::new();
        for (frame, chunks) in frames.iter().enumerate() {
            let mut seen = std::collections::HashSet::new();
            for (name, n, m) in chunks.iter().filter(|c| seen.insert(c.0)) {
                let bytes = data(frame as u64, u64::from(*name), (n * m * 4) as usize);
                let name = format!("long/name/of/{name}");
                file.write_chunk(&name, Type::UInt32, *n, *m, &bytes).unwrap();
                want.push((frame as u64, name, *n, *m, bytes));
            }
            file.end_frame().unwrap();
        }
        file.close().unwrap();
        let file = File::open(&path, &Limits::default()).unwrap();
        prop_assert_eq!(file.nchunks(), want.len() as u64);
        for (frame, name, n, m, bytes) in want {
            let chunk = file.find_chunk(frame, &name).unwrap().unwrap();
            prop_assert_eq!((chunk.entry.n, chunk.entry.m), (n, m));
            prop_assert_eq!(file.read_chunk(&chunk).unwrap(), bytes);
        }
    }
}

#[test]
fn files_of_version_1_take_more_than_128_names() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("names.gsd");
    let about = About { application: "t".into(), schema: "s".into(), schema_version: 1 << 16 };
    let mode = Mode::default();
    let mut file = Writer::create(&path, Overwrite::Never, Version::V1_0, &about, mode).unwrap();
    for k in 0_u32..300 {
        file.write_chunk(&format!("name-{k}"), Type::UInt32, 1, 1, &k.to_le_bytes()).unwrap();
    }
    file.end_frame().unwrap();
    file.close().unwrap();
    let file = File::open(&path, &Limits::default()).unwrap();
    for k in 0_u32..300 {
        let chunk = file.find_chunk(0, &format!("name-{k}")).unwrap().unwrap();
        assert_eq!(file.read_chunk(&chunk).unwrap(), k.to_le_bytes());
    }
}
