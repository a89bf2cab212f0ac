//! Failure of every call that writes, reserves or syncs, with none or a part of its bytes written:
//! permanent, as after a kill or a lost disk, or temporary.

use std::path::Path;

use spile_core::error::Result;
use spile_core::format::{Checker as _, Salvager as _};
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_core::testkit::faults::{Call, Fault, arm, calls, disarm};
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter};
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Gsd, Mode, Version, Writer, ops};

/// More entries than the initial index capacity, in version 2.1 also more names.
const FRAMES: u64 = 23;
const CHUNKS: u64 = 6;

fn name(frame: u64, k: u64) -> String {
    if k == 0 { format!("a-name-of-{}", frame % 100) } else { format!("c{k}") }
}

fn bytes(frame: u64, k: u64) -> Vec<u8> {
    vec![(frame * 7 + k) as u8; 40]
}

/// Repeats a failed operation once if faults are temporary.
fn again(lasting: bool, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    match work() {
        Err(_) if !lasting => work(),
        done => done,
    }
}

/// Writes all frames and sets `committed` to the number of committed frames.
fn write(file: &mut Writer, every: u64, lasting: bool, committed: &mut u64) -> Result<()> {
    while file.nframes() < FRAMES {
        let frame = file.nframes();
        for k in 0..CHUNKS {
            let (name, bytes) = (name(frame, k), bytes(frame, k));
            again(lasting, || file.write_chunk(&name, Type::UInt8, 40, 1, &bytes))?;
        }
        // The frame is completed even if the commit failed.
        if let Err(error) = file.end_frame() {
            if lasting {
                return Err(error);
            }
            file.flush()?;
        }
        if (frame + 1).is_multiple_of(every) {
            again(lasting, || file.flush())?;
            *committed = file.nframes();
        }
    }
    Ok(())
}

/// Checks that all frames are complete and returns their number.
fn examine(path: &Path, what: &str) -> u64 {
    let file = File::open(path, &Limits::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let frames = file.nframes().unwrap();
    assert_eq!(file.nchunks(), frames * CHUNKS, "{what}: incomplete frame");
    for frame in 0..frames {
        for k in 0..CHUNKS {
            let chunk = file.find_chunk(frame, &name(frame, k)).unwrap();
            let chunk = chunk.unwrap_or_else(|| panic!("{what}: frame {frame} lacks {k}"));
            assert!(file.read_chunk(&chunk).unwrap() == bytes(frame, k), "{what}: frame {frame}");
        }
    }
    frames
}

fn create(path: &Path, version: Version, mode: Mode) -> Writer {
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    Writer::create(path, Overwrite::Replace, version, &about, mode).unwrap()
}

#[test]
fn a_fault_at_any_call_costs_no_committed_frame_and_halves_none() {
    // Syncs are fast in memory.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = temp.path().join("a.gsd");
    let mut runs = 0;
    for (version, commit, durable, every) in [
        (Version::V2_1, Commit::Frames(1), false, 7),
        (Version::V2_1, Commit::Frames(1), true, 100),
        (Version::V2_1, Commit::OnFlush, false, 4),
        (Version::V2_0, Commit::Frames(3), false, 9),
        (Version::V1_0, Commit::Frames(1), false, 100),
        (Version::V0_0_1, Commit::Frames(2), false, 6),
    ] {
        let mode = Mode { commit, durable };
        let mut file = create(&path, version, mode);
        arm(None);
        write(&mut file, every, true, &mut 0).unwrap();
        let in_write = calls();
        file.close().unwrap();
        let calls = disarm().len();
        assert!(in_write > FRAMES as usize / 2, "{in_write}");
        for call in 0..calls {
            for (part, lasting) in [(0, true), (50, true), (99, true), (0, false), (50, false)] {
                let what = format!("{version:?} {commit:?} call {call} {part} {lasting}");
                let mut file = create(&path, version, mode);
                arm(Some(Fault { call, part, lasting }));
                let mut committed = 0;
                let written = write(&mut file, every, lasting, &mut committed);
                if lasting {
                    assert_eq!(written.is_err(), call < in_write, "{what}");
                    // Writes on drop fail as well.
                    drop(file);
                } else {
                    written.unwrap_or_else(|e| panic!("{what}: {e}"));
                    // The fault may occur in close. Without an error all frames are there.
                    let closed = file.close();
                    assert!(closed.is_ok() || call >= in_write, "{what}: {closed:?}");
                    assert!(closed.is_err() || examine(&path, &what) == FRAMES, "{what}");
                }
                disarm();
                let frames = examine(&path, &what);
                assert!(frames >= committed, "{what}: {committed} were committed, {frames} seen");
                assert!(lasting || call >= in_write || frames == FRAMES, "{what}: {frames}");
                // The file can be continued and passes all checks.
                let mut file = Writer::append(&path, mode, &Limits::default()).unwrap();
                assert_eq!(file.nframes(), frames, "{what}");
                write(&mut file, every, true, &mut 0).unwrap();
                file.close().unwrap();
                assert_eq!(examine(&path, &what), FRAMES);
                let file = File::open(&path, &Limits::default()).unwrap();
                let report = Gsd.check(file.source(), &Limits::default(), true).unwrap();
                assert!(report.worst() < Some(Severity::Note), "{what}: {:?}", report.findings);
                runs += 1;
            }
        }
    }
    assert!(runs > 1500, "{runs}");
}

#[test]
fn a_hoomd_frame_that_could_not_be_written_is_written_again() {
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = temp.path().join("a.gsd");
    let snapshot = |k: u32| {
        let mut s = Snapshot::new(k.into(), 5);
        s.particles.position = (0..15).map(|j| f64::from(j + k)).collect();
        s.particles.charge = vec![f64::from(k); 5].into();
        s
    };
    let begin = || {
        let (mode, precision) = (Mode::default(), Precision::Single);
        let file = TrajectoryWriter::create(&path, Overwrite::Replace, "t", precision, mode);
        let mut file = file.unwrap();
        // One call per chunk.
        file.writer().set_buffer_size(1);
        file
    };
    arm(None);
    let mut file = begin();
    (0..3).for_each(|k| file.write(&snapshot(k)).unwrap());
    file.close().unwrap();
    let (calls, mut failed) = (disarm().len(), 0);
    for call in 0..calls {
        let mut file = begin();
        arm(Some(Fault { call, part: 50, lasting: false }));
        for k in 0..3 {
            if file.write(&snapshot(k)).is_err() {
                failed += 1;
                file.write(&snapshot(k)).unwrap();
            }
        }
        again(false, || file.writer().flush()).unwrap();
        drop(file);
        disarm();
        let file = Trajectory::new(File::open(&path, &Limits::default()).unwrap()).unwrap();
        assert_eq!(file.len().unwrap(), 3, "call {call}");
        (0..3).for_each(|k| assert_eq!(file.read(k.into()).unwrap(), snapshot(k), "call {call}"));
    }
    assert!(failed > 5, "{failed} of {calls}");
}

#[test]
fn an_upgrade_that_fails_anywhere_leaves_the_old_file() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    for version in [Version::V0_0_1, Version::V1_0] {
        let mut file = create(&path, version, Mode::default());
        write(&mut file, 100, true, &mut 0).unwrap();
        file.close().unwrap();
        let old = std::fs::read(&path).unwrap();
        let form = File::open(&path, &Limits::default()).unwrap().header().form;
        arm(None);
        ops::upgrade(&path, ops::NameRule::Keep, &Limits::default()).unwrap();
        let calls = disarm().len();
        for call in 0..calls {
            for (part, lasting) in [(0, true), (0, false), (50, false)] {
                std::fs::write(&path, &old).unwrap();
                arm(Some(Fault { call, part, lasting }));
                let done = ops::upgrade(&path, ops::NameRule::Keep, &Limits::default());
                disarm();
                assert!(done.is_err(), "call {call}");
                if lasting {
                    // The old header cannot be written if the last sync fails and all calls after it.
                    let file = File::open(&path, &Limits::default()).unwrap();
                    let is_old = file.header().form == form;
                    assert!(is_old || call + 1 == calls, "call {call}");
                    assert!(!is_old || examine(&path, "upgrade") == FRAMES);
                } else {
                    assert!(std::fs::read(&path).unwrap() == old, "call {call} {part}");
                }
            }
        }
    }
}

#[test]
fn an_append_that_fails_anywhere_leaves_the_old_frames() {
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let [path, more, short] = ["a", "more", "short"].map(|name| temp.path().join(name));
    let mut file = create(&short, Version::V2_1, Mode::default());
    (0..6).for_each(|k| file.write_chunk(&name(0, k), Type::UInt8, 40, 1, &bytes(0, k)).unwrap());
    file.end_frame().unwrap();
    file.close().unwrap();
    let mut file = create(&more, Version::V2_1, Mode::default());
    write(&mut file, 100, true, &mut 0).unwrap();
    file.close().unwrap();
    let old = std::fs::read(&short).unwrap();
    // Each frame is committed, or all of them at the end. The index moves with all frames.
    for (commit, from) in
        [(Commit::OnFlush, &more), (Commit::Frames(1), &more), (Commit::OnFlush, &short)]
    {
        let mode = Mode { commit, durable: false };
        std::fs::write(&path, &old).unwrap();
        arm(None);
        let frames = ops::append(&path, from, mode, &Limits::default()).unwrap();
        let calls = disarm().len();
        let mut failed = 0;
        for call in 0..calls {
            for part in [0, 50] {
                let what = format!("{commit:?} call {call} of {calls}, {part}");
                std::fs::write(&path, &old).unwrap();
                arm(Some(Fault { call, part, lasting: false }));
                let done = ops::append(&path, from, mode, &Limits::default());
                disarm();
                let file = File::open(&path, &Limits::default()).unwrap();
                assert!(!file.has_torn_commit(), "{what}");
                let expected = if done.is_ok() { 1 + frames } else { 1 };
                assert_eq!(file.nframes().unwrap(), expected, "{what}: {done:?}");
                if from == &short && done.is_err() {
                    let len = std::fs::metadata(&path).unwrap().len();
                    assert_eq!(len, old.len() as u64, "{what}: unused bytes remain");
                }
                failed += u32::from(done.is_err());
            }
        }
        // Only the removal of the marker may fail without an error.
        assert!(failed as usize >= 2 * (calls - 1), "{failed} of {calls}");
    }
}

#[test]
fn space_of_discarded_and_interrupted_frames_is_used_again() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let limits = Limits::default();
    let mut file = create(&path, Version::V2_1, Mode::default());
    // Chunks larger than the buffer are written at once.
    file.set_buffer_size(100);
    let large = vec![7; 5000];
    for _ in 0..20 {
        file.write_chunk("large", Type::UInt8, 5000, 1, &large).unwrap();
        file.write_chunk("small", Type::UInt8, 10, 1, &large[..10]).unwrap();
        file.discard_frame();
    }
    file.write_chunk("small", Type::UInt8, 10, 1, &[1; 10]).unwrap();
    file.end_frame().unwrap();
    file.close().unwrap();
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(len < 5500, "{len}");
    // A process that was killed leaves data without entries.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([9; 3000]);
    std::fs::write(&path, &bytes).unwrap();
    let finding = |code| {
        let source = Source::open(&path).unwrap();
        let report = Gsd.check(&source, &limits, true).unwrap();
        report.findings.into_iter().find(|finding| finding.code == code)
    };
    let found = finding("gsd-050").unwrap();
    assert_eq!((found.offset, found.severity), (Some(len), Severity::Note));
    let mut file = Writer::append(&path, Mode::default(), &limits).unwrap();
    file.write_chunk("large", Type::UInt8, 5000, 1, &large).unwrap();
    file.end_frame().unwrap();
    file.close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), len + 5000);
    assert!(finding("gsd-050").is_none());
    let file = File::open(&path, &limits).unwrap();
    let chunk = file.find_chunk(1, "large").unwrap().unwrap();
    assert!(file.read_chunk(&chunk).unwrap() == large);
    let chunk = file.find_chunk(0, "small").unwrap().unwrap();
    assert_eq!(file.read_chunk(&chunk).unwrap(), [1; 10]);
}

/// Pseudo-random numbers.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A possible state of the disk after a power failure following these calls: everything up to the last
/// sync, and any sectors that were written since.
fn after_power_failure(base: &[u8], done: &[Call], luck: &mut u64) -> Vec<u8> {
    const SECTOR: u64 = 512;
    let mut disk = base.to_vec();
    let synced = done.iter().rposition(|call| *call == Call::Sync).map_or(0, |k| k + 1);
    // Probability in quarters.
    let odds = random(luck) % 5;
    for (k, call) in done.iter().enumerate() {
        match call {
            Call::Sync | Call::SyncFolder => {}
            Call::Reserve(len) => {
                if k < synced || random(luck) % 4 < odds {
                    disk.resize(disk.len().max(*len as usize), 0);
                }
            }
            Call::Write(offset, bytes) => {
                let mut from = *offset;
                let end = offset + bytes.len() as u64;
                while from < end {
                    let to = ((from / SECTOR + 1) * SECTOR).min(end);
                    if k < synced || random(luck) % 4 < odds {
                        disk.resize(disk.len().max(to as usize), 0);
                        let part = &bytes[(from - offset) as usize..(to - offset) as usize];
                        disk[from as usize..to as usize].copy_from_slice(part);
                    }
                    from = to;
                }
            }
        }
    }
    disk
}

/// The first `frames` frames are readable and correct.
fn all_there(path: &Path, frames: u64) -> bool {
    let Ok(file) = File::open(path, &Limits::default()) else { return false };
    (0..frames).all(|frame| {
        (0..CHUNKS).all(|k| {
            let Ok(Some(chunk)) = file.find_chunk(frame, &name(frame, k)) else { return false };
            file.read_chunk(&chunk).is_ok_and(|got| got == bytes(frame, k))
        })
    })
}

#[test]
fn a_power_failure_costs_nothing_that_was_flushed() {
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let [path, left, saved] = ["a", "left", "saved"].map(|name| temp.path().join(name));
    let (mut luck, mut salvaged) = (7, 0);
    for (version, commit, durable, every) in [
        (Version::V2_1, Commit::Frames(1), true, 100),
        (Version::V2_1, Commit::Frames(2), true, 100),
        (Version::V1_0, Commit::Frames(1), true, 100),
        (Version::V0_0_1, Commit::Frames(1), true, 100),
        (Version::V2_1, Commit::OnFlush, false, 3),
        (Version::V2_1, Commit::Frames(1), false, 10),
        (Version::V0_0_1, Commit::Frames(1), false, 5),
    ] {
        let mode = Mode { commit, durable };
        let mut file = create(&path, version, mode);
        let base = std::fs::read(&path).unwrap();
        arm(None);
        // Number of calls and of frames that were durable then.
        let mut safe = vec![(0, 0)];
        while file.nframes() < FRAMES {
            let frame = file.nframes();
            for k in 0..CHUNKS {
                file.write_chunk(&name(frame, k), Type::UInt8, 40, 1, &bytes(frame, k)).unwrap();
            }
            file.end_frame().unwrap();
            let flushed = (frame + 1).is_multiple_of(every);
            if flushed {
                file.flush().unwrap();
            }
            let committed = matches!(commit, Commit::Frames(n) if (frame + 1).is_multiple_of(n));
            if flushed || durable && committed {
                safe.push((calls(), frame + 1));
            }
        }
        let all = disarm();
        drop(file);
        for cut in 0..=all.len() {
            let kept = safe.iter().rev().find(|(calls, _)| *calls <= cut).map_or(0, |(_, n)| *n);
            for trial in 0..12 {
                let what = format!("{version:?} {mode:?} call {cut} trial {trial}");
                let disk = after_power_failure(&base, &all[..cut], &mut luck);
                std::fs::write(&left, disk).unwrap();
                // With durable commits all visible frames are complete.
                if durable || commit == Commit::OnFlush {
                    assert!(examine(&left, &what) >= kept, "{what}");
                    continue;
                }
                // Flushed frames are readable at once or after `salvage`, which `check` recommends.
                if !all_there(&left, kept) {
                    let source = Source::open(&left).unwrap();
                    let report = Gsd.check(&source, &Limits::default(), false).unwrap();
                    assert_eq!(report.worst(), Some(Severity::Error), "{what}");
                    let mut sink = Sink::create(&saved, Overwrite::Replace).unwrap();
                    Gsd.salvage(&source, &mut sink, &Limits::default()).unwrap();
                    sink.commit().unwrap();
                    assert!(all_there(&saved, kept), "{what}");
                    salvaged += 1;
                }
            }
        }
    }
    // Both outcomes must occur.
    assert!((1..500).contains(&salvaged), "{salvaged}");
}
