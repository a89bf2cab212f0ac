//! Reports about damaged files, and what is recovered from them.

use std::fs;
use std::path::Path;

use spile_core::comm::Serial;
use spile_core::format::{Checker as _, Salvage, Salvager as _};
use spile_core::limits::Limits;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_scda::{Elements, File, Options, Scda, Writer};

fn make(path: &Path, encode: bool) -> Vec<u8> {
    let mut file = Writer::create(&Serial, path, b"", Options::default()).unwrap();
    let bytes = [7; 4000];
    let all = Elements::Contiguous(&bytes);
    file.block(b"first", 0, 100, Some(&bytes[..100]), encode).unwrap();
    file.array(b"cells", &[500], 8, all, encode).unwrap();
    file.varray(b"names", &[4], &[1000, 0, 500, 2500], all, encode).unwrap();
    file.close().unwrap();
    fs::read(path).unwrap()
}

fn salvage(bytes: &[u8], folder: &Path) -> Salvage {
    let target = folder.join("saved");
    let mut sink = Sink::create(&target, Overwrite::Replace).unwrap();
    let source = Source::memory(bytes);
    let saved = Scda.salvage(&source, &mut sink, &Limits::default()).unwrap();
    sink.commit().unwrap();
    let file = File::open(&target, &Limits::default()).unwrap();
    assert_eq!(file.sections().len(), saved.kept.len());
    saved
}

#[test]
fn salvage_reports_how_much_of_a_truncated_section_is_present() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("complete");
    let bytes = make(&path, false);
    let data: Vec<usize> = File::open(&path, &Limits::default())
        .unwrap()
        .sections()
        .iter()
        .map(|section| section.raw().data() as usize)
        .collect();
    let result = |length: usize| {
        let saved = salvage(&bytes[..length], folder.path());
        (saved.kept.len(), saved.lost.join("\n"))
    };
    let expect = |length: usize, kept: usize, message: &str| {
        let (number, lost) = result(length);
        assert!(number == kept && lost.ends_with(message), "{length}: {number}, {lost}");
    };
    assert_eq!(result(bytes.len()), (3, String::new()));
    expect(data[0] + 60, 0, "; B \"first\": 60 of 100 bytes are present");
    expect(data[0] + 100, 1, "; B \"first\": 100 of 100 bytes are present");
    expect(data[1] + 87, 2, "; A \"cells\": 10 of 500 elements are complete");
    expect(data[1] + 4001, 2, "; A \"cells\": 500 of 500 elements are complete");
    expect(data[2] - 1, 2, "; V \"names\": 3 of 4 sizes are present, no elements");
    expect(data[2] + 999, 2, "; V \"names\": 0 of 4 elements are complete");
    expect(data[2] + 1000, 3, "; V \"names\": 2 of 4 elements are complete");
    expect(
        data[1] - 80,
        1,
        "unexpected end of file at byte 400: incomplete section header (scda-007)",
    );
}

#[test]
fn salvage_names_compressed_sections() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = make(&folder.path().join("complete"), true);
    let saved = salvage(&bytes[..bytes.len() - 5], folder.path());
    let all = ["B \"first\" (compressed)", "A \"cells\" (compressed)", "V \"names\" (compressed)"];
    assert_eq!(saved.kept, all);
    let lost = "; V \"names\" (compressed): 4 of 4 elements are complete";
    assert!(saved.lost[0].ends_with(lost), "{:?}", saved.lost);
}

/// The data of each section of the file that `salvage` has written.
fn saved_data(folder: &Path) -> Vec<Vec<u8>> {
    let file = File::open(folder.join("saved"), &Limits::default()).unwrap();
    file.sections().iter().map(|section| file.array(section).unwrap().bytes().unwrap()).collect()
}

#[test]
fn complete_elements_of_cut_sections_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for encode in [false, true] {
        let path = folder.path().join("complete");
        let _ = fs::remove_file(&path);
        let bytes = make(&path, encode);
        let file = File::open(&path, &Limits::default()).unwrap();
        let (cells, names) = (file.sections()[1].raw(), file.sections()[2].raw());
        let all: Vec<Vec<u8>> =
            file.sections().iter().map(|s| file.array(s).unwrap().bytes().unwrap()).collect();
        for (cut, number) in [(cells.data_end() - 1, 2), (names.data_end() - 1, 3)] {
            let saved = salvage(&bytes[..cut as usize], folder.path());
            assert_eq!(saved.kept.len(), number, "{saved:?}");
            let found = saved_data(folder.path());
            let expected = &all[number - 1][..found[number - 1].len()];
            assert!(found[number - 1] == expected && !expected.is_empty());
            let lost = if number == 2 { "499 of 500" } else { "3 of 4" };
            assert!(saved.kept[number - 1].ends_with(&format!(": {lost} elements")), "{saved:?}");
            let source = Source::open(folder.path().join("saved")).unwrap();
            let report = Scda.check(&source, &Limits::default(), true).unwrap();
            assert_eq!(report.worst(), None, "{report:?}");
        }
    }
}

#[test]
fn the_first_section_of_a_compressed_pair_is_not_kept_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("complete");
    let bytes = make(&path, true);
    let file = File::open(&path, &Limits::default()).unwrap();
    let names = &file.sections()[2];
    let end = names.raw().head.offset as usize;
    for cut in (names.offset() as usize + 1..end + 200).step_by(7) {
        let saved = salvage(&bytes[..cut], folder.path());
        assert_eq!(saved.kept.len(), 2, "{cut}: {saved:?}");
    }
}

#[test]
fn sections_behind_damage_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("complete");
    let bytes = make(&path, false);
    let file = File::open(&path, &Limits::default()).unwrap();
    let cells = &file.sections()[1].raw().head;
    // The type, the user string, the number of elements, the size of an element: too large and too small.
    for (at, byte) in [(0, b'X'), (60, b'x'), (66, b'x'), (67, b'9'), (98, b'9'), (66, b'1')] {
        let mut damaged = bytes.clone();
        damaged[(cells.offset + at) as usize] = byte;
        let saved = salvage(&damaged, folder.path());
        assert_eq!(saved.kept.last().unwrap(), "V \"names\"", "{at}: {saved:?}");
        assert_eq!(saved_data(folder.path()).last().unwrap().len(), 4000);
    }
    // Headers are not found in data.
    let mut damaged = bytes.clone();
    damaged[cells.offset as usize] = b'X';
    let data = (cells.offset + 128) as usize;
    damaged[data..data + 32].copy_from_slice(&[b'I'; 32]);
    assert_eq!(salvage(&damaged, folder.path()).kept, ["B \"first\"", "V \"names\""]);
}

#[test]
fn damage_in_elements_without_bytes_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    let mut file = Writer::create(&Serial, &path, b"", Options::default()).unwrap();
    file.varray(b"none", &[3], &[0; 3], Elements::Contiguous(&[]), true).unwrap();
    file.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let limits = Limits::default();
    let is_valid = |bytes: &[u8]| {
        let report = Scda.check(&Source::memory(bytes), &limits, false).unwrap();
        report.findings.is_empty()
    };
    assert!(is_valid(&bytes));
    let data = File::open(&path, &limits).unwrap().sections()[0].raw().data() as usize;
    bytes[data + 12] ^= 0x15;
    assert!(!is_valid(&bytes));
}

#[test]
fn compression_levels_above_12_are_rejected() {
    let path = Path::new("never");
    let options = Options { level: 13, ..Options::default() };
    assert!(Writer::create(&Serial, path, b"", options).is_err());
}

#[test]
fn what_cannot_be_decoded_is_lost_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("complete");
    let bytes = make(&path, true);
    let file = File::open(&path, &Limits::default()).unwrap();
    let section = &file.sections()[1];
    // In the base64 of an element, and in the uncompressed size.
    for (at, kept) in
        [(section.raw().data() + 20, 2), (section.announcement().unwrap().data() + 1, 3)]
    {
        let mut damaged = bytes.clone();
        damaged[at as usize] ^= 0x80;
        let saved = salvage(&damaged, folder.path());
        assert_eq!((saved.kept.len(), saved.lost.len()), (kept, 1), "{saved:?}");
        assert!(saved.lost[0].starts_with("section 1, "), "{:?}", saved.lost);
        let source = Source::open(folder.path().join("saved")).unwrap();
        let report = Scda.check(&source, &Limits::default(), false).unwrap();
        assert_eq!(report.worst(), None, "{report:?}");
    }
}
