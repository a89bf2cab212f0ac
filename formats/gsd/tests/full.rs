//! A full disk: an error, complete frames, and a file that can be continued later.

#[path = "../../../crates/core/tests/support/machine.rs"]
mod machine;

use std::fs;
use std::path::Path;

use machine::{Disk, skipped};
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

const CHUNKS: u64 = 5;

fn write_frame(file: &mut Writer, rows: u64) -> spile_core::error::Result<()> {
    let frame = file.nframes();
    for k in 0..CHUNKS {
        // A new name per frame, so that the name list grows as well.
        let name = if k == 0 { format!("name-{frame}") } else { format!("c{k}") };
        let bytes = vec![(frame + k) as u8; rows as usize];
        file.write_chunk(&name, Type::UInt8, rows, 1, &bytes)?;
    }
    file.end_frame()
}

fn examine(path: &Path, rows: u64) -> u64 {
    let file = File::open(path, &Limits::default()).unwrap();
    let frames = file.nframes().unwrap();
    assert_eq!(file.nchunks(), frames * CHUNKS);
    for frame in 0..frames {
        for (k, chunk) in file.frame(frame).unwrap().iter().enumerate() {
            let bytes = file.read_chunk(chunk).unwrap();
            assert_eq!(bytes.len() as u64, rows);
            let want = match chunk.name.strip_prefix('c') {
                Some(number) => frame + number.parse::<u64>().unwrap(),
                None => frame,
            };
            assert!(bytes.iter().all(|b| *b == want as u8), "frame {frame} chunk {k}");
        }
    }
    frames
}

#[test]
fn a_full_disk_costs_no_committed_frame_and_the_file_goes_on_afterwards() {
    let temp = tempfile::tempdir().unwrap();
    let _disk = match Disk::mount(temp.path(), 24) {
        Ok(disk) => disk,
        Err(why) => return skipped(&format!("no file system to fill: {why}")),
    };
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    let path = temp.path().join("a.gsd");
    let filler = temp.path().join("filler");
    for (rows, commit, version) in [
        (10, Commit::Frames(1), Version::V2_1),
        (3000, Commit::Frames(1), Version::V2_1),
        (3000, Commit::Frames(7), Version::V2_0),
        (500, Commit::Frames(1), Version::V0_0_1),
        (300_000, Commit::Frames(1), Version::V2_1),
    ] {
        // Fill most of the disk.
        fs::write(&filler, vec![1; 20 << 20]).unwrap();
        let mode = Mode { commit, durable: false };
        let mut file = Writer::create(&path, Overwrite::Replace, version, &about, mode).unwrap();
        let mut done = 0;
        let error = loop {
            match write_frame(&mut file, rows) {
                Ok(()) => done += 1,
                Err(error) => break error,
            }
            assert!(done < 1_000_000);
        };
        assert!(error.to_string().contains("no space left"), "{error}");
        let seen = examine(&path, rows);
        let waiting = if let Commit::Frames(n) = commit { n } else { 0 };
        assert!(seen + waiting >= done && seen <= done + 1, "{seen} seen, {done} written");
        // With free space the failed chunks are written again.
        fs::remove_file(&filler).unwrap();
        let started = file.nframes();
        if started == done {
            // The frame is not completed: write its missing chunks.
            for k in 0..CHUNKS {
                let name = if k == 0 { format!("name-{started}") } else { format!("c{k}") };
                let bytes = vec![(started + k) as u8; rows as usize];
                match file.write_chunk(&name, Type::UInt8, rows, 1, &bytes) {
                    Ok(()) => {}
                    Err(e) => assert!(e.to_string().contains("already has this chunk"), "{e}"),
                }
            }
            file.end_frame().unwrap();
        }
        write_frame(&mut file, rows).unwrap();
        let frames = file.nframes();
        file.close().unwrap();
        assert_eq!(examine(&path, rows), frames);
        fs::remove_file(&path).unwrap();
    }
}
