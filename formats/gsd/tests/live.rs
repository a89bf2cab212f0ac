//! Reading while a file is written.

use std::path::Path;

use spile_core::Dataset;
use spile_core::format::OpenOptions;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Gsd, Mode, Version, Writer, ops};

/// Every frame is committed at its end.
const AT_ONCE: Mode = Mode { commit: Commit::Frames(1), durable: false };

fn create(path: &Path, version: Version) -> spile_core::error::Result<Writer> {
    let about =
        About { application: "test".into(), schema: "mine".into(), schema_version: 1 << 16 };
    Writer::create(path, Overwrite::Replace, version, &about, AT_ONCE)
}

fn open(path: &Path) -> File {
    File::open(path, &Limits::default()).unwrap()
}

#[test]
fn one_writer_and_any_number_of_readers() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let file = create(&path, Version::V2_1).unwrap();
    let busy = |result: spile_core::error::Result<Writer>| {
        let error = result.err().unwrap();
        assert!(error.to_string().contains("another process is writing"), "{error}");
    };
    busy(Writer::append(&path, AT_ONCE, &Limits::default()));
    busy(create(&path, Version::V2_1));
    open(&path);
    file.close().unwrap();
    Writer::append(&path, AT_ONCE, &Limits::default()).unwrap().close().unwrap();
}

#[test]
fn a_concurrent_reader_sees_complete_frames_only() {
    const CHUNKS: u64 = 300;
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("live.gsd");
    let mut file = create(&path, Version::V2_1).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for frame in 0_u64..400 {
                // A new name in every frame, and frames longer than an index page.
                for k in 0..CHUNKS {
                    let name = format!("n{}", if k == 0 { 1000 + frame } else { k });
                    file.write_chunk(&name, Type::UInt64, 1, 1, &frame.to_le_bytes()).unwrap();
                }
                file.end_frame().unwrap();
            }
            file.close().unwrap();
        });
        let mut reader = open(&path);
        let (mut seen, mut updates) = (0, 0);
        while seen < 400 {
            let done = writer.is_finished();
            reader.refresh().unwrap();
            let frames = reader.nframes().unwrap();
            assert!(frames >= seen, "{frames} after {seen}");
            assert_eq!(reader.nchunks(), frames * CHUNKS);
            if frames > seen {
                let chunks = reader.frame(frames - 1).unwrap();
                assert_eq!(chunks.len() as u64, CHUNKS);
                let last = chunks.last().unwrap();
                assert_eq!(reader.read_chunk(last).unwrap(), (frames - 1).to_le_bytes());
                let new = format!("n{}", 1000 + frames - 1);
                assert!(chunks.iter().any(|chunk| *chunk.name == *new));
            }
            seen = frames;
            updates += 1;
            assert!(!done || seen == 400, "{seen} frames at the end");
        }
        assert!(updates > 3);
    });
}

/// Arrays with their shapes, and steps, for every frame.
fn describe(reader: &Dataset) -> Vec<String> {
    let tree = reader.tree();
    let frames = tree.frames().unwrap();
    let mut lines = Vec::new();
    for frame in 0..frames.len() {
        let step = frames.step(frame).unwrap();
        for (_, node, desc) in tree.arrays() {
            let Layout::PerFrame(table) = &desc.layout else { panic!() };
            let shape = table.cell(frame).unwrap().map(|cell| cell.shape.to_string());
            lines.push(format!("{frame} {step:?} {} {} {shape:?}", node.path, desc.dtype));
        }
    }
    lines
}

#[test]
fn an_open_tree_grows_with_its_file() {
    let limits = Limits::default();
    let temp = tempfile::tempdir().unwrap();
    for version in [Version::V0_0_1, Version::V1_0, Version::V2_1] {
        let path = temp.path().join(format!("{version:?}"));
        let reopen = || Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
        let mut file = create(&path, version).unwrap();
        let mut reader = reopen();
        // New names, a change of type, rows and columns, and a moved index.
        for frame in 0_u64..60 {
            let n = 1 + frame % 3;
            let (kind, m) = if frame < 30 { (Type::UInt8, 1) } else { (Type::Float, 2) };
            let bytes = vec![1; (n * m * kind.size()) as usize];
            file.write_chunk("x", kind, n, m, &bytes).unwrap();
            if frame % 2 == 0 {
                file.write_chunk(&format!("n/{}", frame / 9), Type::UInt8, 1, 1, &[2]).unwrap();
            }
            file.end_frame().unwrap();
            if frame % 7 == 0 {
                assert!(reader.refresh().unwrap());
                assert_eq!(describe(&reader), describe(&reopen()), "{version:?} {frame}");
                assert_eq!(reader.tree().frames().unwrap().len(), frame + 1);
            }
        }
        file.close().unwrap();
        // An upgrade changes type codes and name ids.
        ops::upgrade(&path, ops::NameRule::Keep, &limits).unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(describe(&reader), describe(&reopen()), "{version:?} upgraded");
        assert!(!reader.refresh().unwrap(), "nothing new");
    }
}

#[test]
fn frames_without_chunks_are_counted_after_a_commit_only() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    let about = About { application: "test".into(), schema: "none".into(), schema_version: 0 };
    let mut writer =
        Writer::create(&path, Overwrite::Never, Version::V2_1, &about, Mode::default()).unwrap();
    writer.end_frame().unwrap();
    assert_eq!((writer.committed_frames(), writer.nframes()), (0, 1));
    writer.flush().unwrap();
    assert_eq!((writer.committed_frames(), writer.nframes()), (1, 1));
    writer.write_chunk("x", Type::UInt8, 1, 1, &[1]).unwrap();
    writer.end_frame().unwrap();
    writer.end_frame().unwrap();
    assert_eq!((writer.committed_frames(), writer.nframes()), (1, 3));
    writer.write_chunk("y", Type::UInt8, 1, 1, &[1]).unwrap();
    writer.flush().unwrap();
    assert_eq!((writer.committed_frames(), writer.nframes()), (3, 3));
}
