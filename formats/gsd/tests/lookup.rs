//! Lookup of chunks: uniform and varying frames, any order of access, invalid entries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{File, Mode, Version, Writer};

const NAMES: [&str; 3] = ["position", "orientation", "log/energy"];

/// A number of equal frames, and the rows of their chunks.
type Run = (u64, [Option<u64>; 3]);

fn data(frame: u64, id: usize, rows: u64) -> Vec<u8> {
    (0..4 * rows).map(|k| (frame * 31 + id as u64 * 7 + k) as u8).collect()
}

type Written = BTreeMap<(u64, usize), Vec<u8>>;

fn write(path: &Path, runs: &[Run]) -> Written {
    let about = About { application: "test".into(), schema: "test".into(), schema_version: 1 };
    let mode = Mode::default();
    let mut file = Writer::create(path, Overwrite::Never, Version::V2_1, &about, mode).unwrap();
    let (mut frame, mut written) = (0, Written::new());
    for (frames, chunks) in runs {
        for _ in 0..*frames {
            for (id, rows) in chunks.iter().enumerate() {
                let Some(rows) = rows else { continue };
                let data = data(frame, id, *rows);
                file.write_chunk(NAMES[id], Type::Float, *rows, 1, &data).unwrap();
                written.insert((frame, id), data);
            }
            file.end_frame().unwrap();
            frame += 1;
        }
    }
    file.close().unwrap();
    written
}

fn open(path: &Path) -> File {
    File::open(path, &Limits::default()).unwrap()
}

/// Data, or the code of an error.
type Data = Result<Vec<u8>, &'static str>;

/// Data of a chunk, read with `read_into`.
fn read(file: &File, frame: u64, name: &str, len: usize) -> Result<Option<Vec<u8>>, &'static str> {
    let mut buffer = vec![0; len];
    match file.read_into(frame, name, &mut buffer) {
        Ok(found) => Ok(found.then_some(buffer)),
        Err(error) => Err(error.code()),
    }
}

/// Data or error codes of all chunks, in index order.
fn listed(file: &File) -> BTreeMap<(u64, String), Vec<Data>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for frame in 0..file.nframes().unwrap() {
        for name in NAMES {
            if let Err(error) = open(file.source().path().unwrap()).find_chunk(frame, name) {
                all.entry((frame, name.to_string())).or_default().push(Err(error.code()));
            }
        }
    }
    file.each_chunk(|chunk| {
        if let Ok(chunk) = chunk {
            let data = file.read_chunk(&chunk).unwrap();
            all.entry((chunk.entry.frame, chunk.name.to_string())).or_default().push(Ok(data));
        }
        Ok(())
    })
    .unwrap();
    all
}

/// All frames and names: ascending, descending, and with jumps.
fn orders(frames: u64) -> [Vec<(u64, usize)>; 3] {
    let all: Vec<_> = (0..=frames).flat_map(|f| (0..3).map(move |id| (f, id))).collect();
    let back = all.iter().rev().copied().collect();
    let mut jumps: Vec<_> = all.iter().map(|(f, id)| (f * 37 % (frames + 1), *id)).collect();
    jumps.chunks_mut(3).step_by(3).for_each(<[_]>::reverse);
    [all, back, jumps]
}

/// Change of a 64-bit word.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Add(i64),
    Set(u64),
    /// An offset inside the index.
    Index,
    /// The offset two bytes before the end of the file.
    End,
}

fn every_chunk_is_read(runs: &[Run]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gsd");
    let written = write(&path, runs);
    let frames = runs.iter().map(|(frames, _)| frames).sum();
    for order in orders(frames) {
        let file = open(&path);
        for (frame, id) in order {
            let expected = written.get(&(frame, id)).cloned();
            let len = expected.as_ref().map_or(0, Vec::len);
            assert_eq!(read(&file, frame, NAMES[id], len), Ok(expected));
        }
        // Frame numbers that overflow in products with small integers.
        for frame in [u64::MAX, 1 << 63, u64::MAX / 3 + 1] {
            for name in NAMES {
                assert_eq!(read(&file, frame, name, 0), Ok(None));
            }
        }
    }
}

#[test]
fn frames_of_changing_size_are_read() {
    let (usual, other) = ((100, [Some(1), Some(2), Some(3)]), (1, [Some(4), Some(2), Some(3)]));
    every_chunk_is_read(&[usual, other].repeat(45));
}

/// Changes one word of one entry: lookups return the chunks of the index, or its error.
fn damaged_entries_are_not_read(frames: u64, entry: u64, word: usize, damage: Damage) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gsd");
    write(&path, &[(frames, [Some(3), Some(4), Some(1)])]);
    let mut bytes = fs::read(&path).unwrap();
    let index = u64::from_le_bytes(*bytes[8..].first_chunk().unwrap());
    let end = bytes.len() as u64;
    let field = &mut bytes[(index + 32 * entry) as usize..].as_chunks_mut().0[word];
    let value = match damage {
        Damage::Add(number) => u64::from_le_bytes(*field).wrapping_add_signed(number),
        Damage::Set(number) => number,
        Damage::Index => index + 32,
        Damage::End => end - 2,
    };
    *field = value.to_le_bytes();
    fs::write(&path, &bytes).unwrap();
    let listed = listed(&open(&path));
    for order in orders(frames) {
        let file = open(&path);
        for (frame, id) in order {
            let all = listed.get(&(frame, NAMES[id].into())).map_or(&[][..], Vec::as_slice);
            let expected = all.last().cloned();
            let len = expected.as_ref().map_or(0, |data| data.as_ref().map_or(0, Vec::len));
            let found = read(&file, frame, NAMES[id], len).transpose();
            if matches!(word, 1 | 2) {
                assert_eq!(found, expected);
            } else if let Some(found) = found {
                // Frames or names are not in order: some are not found, but never a wrong one.
                let disorder = found == Err("gsd-012");
                assert!(disorder || all.contains(&found), "{found:?}, not one of {all:?}");
            }
        }
    }
}

/// An index page has 128 entries.
#[test]
fn an_invalid_entry_at_the_border_of_a_page_is_never_read() {
    for entry in [126, 127, 128, 129, 255, 256, 257, 383, 384] {
        for word in [0, 3] {
            for add in [1, -1, -16, 16, 1 << 32] {
                damaged_entries_are_not_read(170, entry, word, Damage::Add(add));
            }
        }
    }
}

fn run() -> impl Strategy<Value = Run> {
    let chunk = || prop::option::weighted(0.8, 0_u64..5);
    (1_u64..200, [chunk(), chunk(), chunk()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_chunk_is_read_in_any_order(runs in prop::collection::vec(run(), 1..5)) {
        every_chunk_is_read(&runs);
    }

    /// One word of one entry is changed: lookups return the chunks of the index, or its error.
    #[test]
    fn an_invalid_entry_is_never_read(
        (frames, entry) in (100_u64..300).prop_flat_map(|frames| (Just(frames), 0..3 * frames)),
        // Frame, rows, location, and the rest.
        word in prop::sample::select(vec![0_usize, 1, 2, 2, 2, 3]),
        damage in prop::sample::select(vec![
            Damage::Add(1), Damage::Add(-1), Damage::Add(-16), Damage::Add(1 << 32), Damage::Add(1 << 48),
            Damage::Add(1 << 56), Damage::Set(0), Damage::Set(100), Damage::Index, Damage::End,
        ]),
    ) {
        damaged_entries_are_not_read(frames, entry, word, damage);
    }

    /// The file is truncated after its index: only missing data are errors.
    #[test]
    fn missing_data_are_errors(frames in 500_u64..680, missing in 1_u64..200) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gsd");
        let written = write(&path, &[(frames, [Some(3), Some(4), Some(1)])]);
        let len = fs::metadata(&path).unwrap().len() - missing;
        fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        for order in orders(frames - 1) {
            let file = open(&path);
            for (frame, id) in order {
                let data = &written[&(frame, id)];
                // The last frame ends where the file ended.
                let end = missing + len - 32 * (frames - 1 - frame) - [20, 4, 0][id];
                let found = read(&file, frame, NAMES[id], data.len());
                let expected = if end > len { Err("gsd-009") } else { Ok(Some(data.clone())) };
                prop_assert_eq!(found, expected);
            }
        }
    }
}
