//! Shared by the tests of complete files.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spile_core::format::{Checker as _, Salvage, Salvager as _};
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_gsd::semantics::{Precision, Snapshot, Trajectory, TrajectoryWriter, Values};
use spile_gsd::wire::Type;
use spile_gsd::{File, Gsd, Mode};

pub(crate) fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gsd")
}

pub(crate) fn open(path: &Path) -> File {
    File::open(path, &Limits::default()).unwrap()
}

/// All files in golden folders whose name starts with one of `folders`.
pub(crate) fn files(folders: &[&str]) -> Vec<PathBuf> {
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

pub(crate) type Content = BTreeMap<(u64, String), (u64, u64, Vec<u8>)>;

/// All chunks by frame and name; steps of 0.0.1 as chunks.
pub(crate) fn content(path: &Path) -> Content {
    let file = open(path);
    let mut all = Content::new();
    file.each_chunk(|chunk| {
        let chunk = chunk.unwrap();
        let bytes = file.read_chunk(&chunk).unwrap();
        if file.header().form.is_v0_0_1() {
            let key = (chunk.entry.frame, "configuration/step".to_string());
            all.insert(key, (1, 1, chunk.entry.step.to_le_bytes().to_vec()));
        }
        // Of several chunks with the same name the last one is used.
        all.insert(
            (chunk.entry.frame, chunk.name.to_string()),
            (chunk.entry.n, chunk.entry.m, bytes),
        );
        Ok(())
    })
    .unwrap();
    all
}

/// Fails if a strict check finds errors.
pub(crate) fn assert_valid(path: &Path) {
    let source = Source::open(path).unwrap();
    let report = Gsd.check(&source, &Limits::default(), true).unwrap();
    assert!(report.worst() < Some(Severity::Error), "{}: {:?}", path.display(), report.findings);
}

pub(crate) fn snapshots(path: &Path) -> Vec<Snapshot> {
    let file = Trajectory::new(open(path)).unwrap();
    (0..file.len().unwrap()).map(|frame| file.read(frame).unwrap()).collect()
}

/// Text for comparison, because NaN differs from itself, without logs and state.
pub(crate) fn without_logs(snapshot: &Snapshot) -> String {
    let mut plain = Snapshot { log: BTreeMap::new(), ..snapshot.clone() };
    plain.state.clear();
    format!("{plain:?}")
}

/// Writes a small HOOMD file with a logged quantity in frames for which `log` returns a value.
pub(crate) fn trajectory(path: &Path, frames: u64, log: impl Fn(u64) -> Option<Values>) {
    let (mode, overwrite) = (Mode::default(), Overwrite::Replace);
    let mut file = TrajectoryWriter::create(path, overwrite, "t", Precision::Single, mode).unwrap();
    for step in 1..=frames {
        let log = log(step).map(|values| ("E".to_string(), Some(values)));
        file.write(&Snapshot { step, log: log.into_iter().collect(), ..Snapshot::default() })
            .unwrap();
    }
    file.close().unwrap();
}

pub(crate) fn real(value: f64) -> Values {
    Values { kind: Type::Double, n: 1, m: 1, bytes: value.to_le_bytes().to_vec() }
}

/// Offset of the index entry of a chunk.
pub(crate) fn entry_at(path: &Path, frame: u64, name: &str) -> usize {
    let file = open(path);
    let chunk = file.find_chunk(frame, name).unwrap().unwrap();
    (file.header().index.location + chunk.number * file.header().form.entry_size()) as usize
}

pub(crate) fn salvage(bytes: &[u8], to: &Path) -> spile_core::error::Result<Salvage> {
    let mut sink = Sink::create(to, Overwrite::Replace).unwrap();
    let saved = Gsd.salvage(&Source::memory(bytes), &mut sink, &Limits::default())?;
    sink.commit().unwrap();
    Ok(saved)
}
