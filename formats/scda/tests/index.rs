//! Index and checksums at the end of a file.

#[path = "support/sections.rs"]
#[allow(dead_code)]
mod sections;

use std::fs;
use std::path::Path;

use spile_core::comm::{Comm, Serial, Threads};
use spile_core::format::{Checker as _, Salvager as _};
use spile_core::{Dataset, Limits, OpenOptions, Overwrite, Sink, Source};
use spile_scda::{
    Checkpoint, Coding, Cursor, Elements, Field, File, Options, Recode, Restart, Scda, Writer,
    recode, split_evenly,
};

fn options() -> Options {
    Options { index: true, checksums: true, overwrite: Overwrite::Replace, ..Options::default() }
}

/// Writes sections of all types, plain and compressed, and fields.
fn write(comm: &dyn Comm, path: &Path, options: Options) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut file = Checkpoint::create(comm, path, "index", 1, options).unwrap();
    let counts = split_evenly(50, ranks);
    let first: u64 = counts[..rank].iter().sum();
    let mine = first..first + counts[rank];
    for encode in [false, true] {
        let writer = file.writer();
        let block = [7; 1000];
        writer
            .block(b"block", ranks - 1, 1000, (rank + 1 == ranks).then_some(&block), encode)
            .unwrap();
        let sizes: Vec<u64> = mine.clone().map(|k| k % 7 * 100).collect();
        let data: Vec<Vec<u8>> =
            mine.clone().map(|k| vec![k as u8; (k % 7 * 100) as usize]).collect();
        let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        writer.varray(b"varray", &counts, &sizes, Elements::Indirect(&slices), encode).unwrap();
        let mut field = Field::of::<f64>(if encode { "compressed" } else { "plain" }).shaped(&[2]);
        field.compressed = encode;
        let values: Vec<f64> = mine.clone().flat_map(|k| [k as f64, 0.5]).collect();
        file.write(&field, &counts, &values).unwrap();
    }
    file.writer().inline(b"mark", 0, (rank == 0).then_some(&[b'.'; 32])).unwrap();
    file.close().unwrap();
}

#[test]
fn the_index_does_not_depend_on_the_ranks_and_has_the_checksums_of_zlib() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serial");
    write(&Serial, &path, options());
    let bytes = fs::read(&path).unwrap();
    for ranks in 1..=7 {
        let other = folder.path().join("other");
        Threads::run(ranks, |comm| write(comm, &other, options()));
        assert!(fs::read(&other).unwrap() == bytes, "{ranks} ranks");
    }
    let file = File::open(&path, &Limits::default()).unwrap();
    let parts = file.index().unwrap().parts();
    // Without an index the bytes before it are the same.
    let without = folder.path().join("without");
    write(&Serial, &without, Options::default());
    let end = parts.last().unwrap().end;
    assert!(fs::read(&without).unwrap() == bytes[..end as usize]);
    for part in parts {
        let data = &bytes[part.offset as usize..part.end as usize];
        assert_eq!(part.crc, Some(libdeflater::crc32(data)));
    }
    // Other libraries see two more sections.
    let raw = File::from_source(Source::open(&path).unwrap(), false, &Limits::default()).unwrap();
    let last: Vec<char> = raw.sections().iter().map(|s| s.kind.letter()).collect();
    assert_eq!(last[last.len() - 2..], ['A', 'I']);
}

#[test]
fn every_changed_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write(&Serial, &path, options());
    let bytes = fs::read(&path).unwrap();
    let check = |bytes: &[u8]| match Scda.check(&Source::memory(bytes), &Limits::default(), true) {
        Ok(report) => report.findings.iter().map(|finding| finding.code).collect::<Vec<_>>(),
        Err(error) => vec![error.code()],
    };
    assert_eq!(check(&bytes), Vec::<&str>::new());
    let end = File::open(&path, &Limits::default()).unwrap().index().unwrap().offset() as usize;
    for at in (0..end).step_by(13).chain(0..128) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(!check(&damaged).is_empty(), "byte {at}");
    }
}

#[test]
fn a_restart_verifies_what_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    write(&Serial, &path, options());
    let mut bytes = fs::read(&path).unwrap();
    let file = File::open(&path, &Limits::default()).unwrap();
    let find =
        |name: &[u8]| file.sections().iter().find(|s| s.user() == name).unwrap().raw().data();
    let at = find(b"plain") as usize;
    bytes[at + 100] ^= 1;
    fs::write(&path, bytes).unwrap();
    for ranks in [1, 3] {
        Threads::run(ranks, |comm| {
            let mut restart = Restart::open(comm, &path, &Limits::default()).unwrap();
            let counts = split_evenly(50, ranks);
            let field = Field::of::<f64>("compressed").shaped(&[2]);
            restart.read::<f64>(&field, &counts).unwrap();
            let field = Field::of::<f64>("plain").shaped(&[2]);
            let error = restart.read::<f64>(&field, &counts).unwrap_err();
            assert_eq!(error.code(), "scda-013", "{error}");
        });
    }
}

#[test]
fn sizes_are_not_read_to_skip_a_section() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let index = Options { checksums: false, ..options() };
    let mut writer = Writer::create(&Serial, &path, b"", index).unwrap();
    writer.varray(b"v", &[1000], &[3; 1000], Elements::Contiguous(&[1; 3000]), false).unwrap();
    writer.array(b"a", &[2], 1, Elements::Contiguous(b"ab"), false).unwrap();
    writer.close().unwrap();
    let sound = fs::read(&path).unwrap();
    // An invalid size entry is not noticed.
    let mut bytes = sound.clone();
    bytes[128 + 96 + 32 * 500] = b'?';
    fs::write(&path, &bytes).unwrap();
    let mut cursor = Cursor::open(&Serial, &path, &Limits::default()).unwrap();
    cursor.next(true).unwrap().unwrap();
    assert_eq!(cursor.next(true).unwrap().unwrap().user, b"a");
    // Nor if the table of sizes exceeds the memory.
    let limits = Limits::default().with_memory(10_000);
    let mut small = OpenOptions::default();
    small.limits = limits;
    let dataset = Dataset::open_path(&Scda, &path, &small).unwrap();
    assert_eq!(dataset.array("v").unwrap().shape().lengths(), [3000]);
    assert_eq!(dataset.warnings()[0].code, "scda-024");
    // An index that does not match is not used.
    let mut bytes = sound;
    let at = bytes.windows(6).position(|w| w == b"L 3000").unwrap();
    bytes[at + 3] = b'1';
    fs::write(&path, &bytes).unwrap();
    let mut cursor = Cursor::open(&Serial, &path, &Limits::default()).unwrap();
    cursor.next(true).unwrap().unwrap();
    assert_eq!(cursor.next(true).unwrap().unwrap().user, b"a");
    let report = Scda.check(&Source::memory(bytes), &Limits::default(), false).unwrap();
    assert_eq!(report.findings[0].code, "scda-014");
}

#[test]
fn recoding_writes_the_index_anew_and_salvage_drops_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("file"), folder.path().join("target"));
    write(&Serial, &path, options());
    let file = File::open(&path, &Limits::default()).unwrap();
    let how =
        Recode { coding: Coding::Encode, breaks: None, level: 9, overwrite: Overwrite::Replace };
    recode(&file, &target, &how).unwrap();
    let recoded = File::open(&target, &Limits::default()).unwrap();
    assert!(recoded.index().unwrap().has_checksums());
    assert_eq!(recoded.sections().len(), file.sections().len());
    let report = Scda.check(recoded.source(), &Limits::default(), true).unwrap();
    assert_eq!(report.worst(), None, "{report:?}");
    let mut sink = Sink::create(&target, Overwrite::Replace).unwrap();
    let saved = Scda.salvage(file.source(), &mut sink, &Limits::default()).unwrap();
    sink.commit().unwrap();
    assert_eq!((saved.kept.len(), saved.lost.len()), (file.sections().len(), 2));
    assert!(File::open(&target, &Limits::default()).unwrap().index().is_none());
}
