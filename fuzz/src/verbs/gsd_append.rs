//! Any sequence of calls of the GSD writer: the file has exactly the committed chunks.

use std::collections::BTreeMap;
use std::path::Path;

use spile::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

use super::inputs;
use crate::drive::{LIMITS, show, use_one_thread};

const VERSIONS: [Version; 4] = [Version::V2_1, Version::V2_0, Version::V1_0, Version::V0_0_1];
const TYPES: [Type; 4] = [Type::UInt8, Type::Int16, Type::Float, Type::UInt64];

/// Frames and names.
type Chunks = BTreeMap<(u64, String), Vec<u8>>;

pub fn run(data: &[u8]) {
    use_one_thread();
    let Some((head, program)) = data.split_first_chunk::<3>() else { return };
    let version = VERSIONS[usize::from(head[0]) % VERSIONS.len()];
    let commit = match head[1] % 4 {
        0 => Commit::OnFlush,
        n => Commit::Frames(n.into()),
    };
    let mode = Mode { commit, durable: head[2] & 1 == 1 };
    let folder = inputs::folder();
    let path = folder.path().join("append.gsd");
    let about = About { application: "a".into(), schema: "s".into(), schema_version: 1 };
    // An upgrade of version 0.0.1 adds chunks with the steps of the frames.
    let mut added = false;
    let mut file = match Writer::create(&path, Overwrite::Replace, version, &about, mode) {
        Ok(file) => file,
        Err(error) => return show(&error),
    };
    if head[2] & 2 == 2 {
        file.set_buffer_size(usize::from(head[2]));
    }
    let (mut done, mut current) = (Chunks::new(), Chunks::new());
    let mut at = program;
    while let Some((code, rest)) = at.split_first_chunk::<2>() {
        at = rest;
        let frame = file.nframes();
        match code[0] % 8 {
            0..=2 => {
                let kind = TYPES[usize::from(code[1]) % TYPES.len()];
                let length = rest.len().min(usize::from(code[1]) / 8);
                let (name, tail) = rest.split_at(length);
                at = tail;
                let name = String::from_utf8_lossy(name).into_owned();
                let n = u64::from(code[0]) / 8;
                let bytes = vec![code[1]; (n * kind.size()) as usize];
                match file.write_chunk(&name, kind, n, 1, &bytes) {
                    Ok(()) => drop(current.insert((frame, name), bytes)),
                    Err(error) => show(&error),
                }
            }
            3 => match file.end_frame() {
                Ok(()) => done.append(&mut current),
                Err(error) => return show(&error),
            },
            4 => file.flush().expect("frames can be committed"),
            5 => {
                file.discard_frame();
                current.clear();
            }
            6 => {
                // The current frame is not complete.
                file.close().expect("the file can be closed");
                current.clear();
                compare(&path, &done, added);
                file = Writer::append(&path, mode, &LIMITS).expect("the file can be opened again");
            }
            _ => match code[1] % 4 {
                0 => {
                    file = file.truncate().expect("the file can be emptied");
                    (done, current) = (Chunks::new(), Chunks::new());
                    added = false;
                }
                1 => {
                    file.discard_frame();
                    current.clear();
                    added |= version == Version::V0_0_1;
                    file = match file.upgrade() {
                        Ok(file) => file,
                        Err(error) => return show(&error),
                    };
                }
                _ => {
                    let found = file.find_chunk(0, "x");
                    assert!(found.is_ok(), "{found:?}");
                }
            },
        }
    }
    file.close().expect("the file can be closed");
    compare(&path, &done, added);
}

/// The file has these chunks and no others, unless some were `added`.
fn compare(path: &Path, expected: &Chunks, added: bool) {
    let file = File::open(path, &LIMITS).expect("a written file can be opened");
    let count = expected.len() as u64;
    let fits = file.nchunks() == count || added && file.nchunks() > count;
    assert!(fits, "expected {count} chunks, found {}", file.nchunks());
    for ((frame, name), bytes) in expected {
        let chunk = file.find_chunk(*frame, name).expect("the index can be searched");
        let chunk = chunk.unwrap_or_else(|| panic!("frame {frame} lacks {name:?}"));
        assert_eq!(
            &file.read_chunk(&chunk).expect("chunks can be read"),
            bytes,
            "{frame} {name:?}"
        );
    }
}
