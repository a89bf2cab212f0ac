//! Large, invalid and unusual archives.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use spile_core::Dataset;
use spile_core::convert::text_of;
use spile_core::error::{ErrorKind, Result};
use spile_core::format::{Checker as _, Salvager as _, write_file};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::report::{Finding, Severity};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_npy::Npz;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/npz");
    std::fs::read(folder.join(name)).unwrap()
}

fn open(source: Source, limits: &Limits) -> Result<Dataset> {
    Dataset::open(&Npz, source, &limits.into())
}

/// Larger than 32 bits can express.
const HOLE: u64 = 5 << 30;

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|w| w == wanted).unwrap()
}

#[test]
fn stored_and_deflated_members_are_the_same_arrays() {
    let limits = Limits::default();
    let [stored, deflated] = ["stored.npz", "deflated.npz"]
        .map(|name| open(Source::memory(golden(name)), &limits).unwrap());
    for (_, node, array) in stored.tree().arrays() {
        let other = deflated.tree().find(&node.path).unwrap();
        let other = deflated.tree().node(other).array.as_ref().unwrap();
        let read = |file: &Dataset, desc| {
            let array = file.open_array(desc).unwrap();
            array.read_bytes(&Selection::all(), Axes::Stored).unwrap()
        };
        assert_eq!(read(&stored, array), read(&deflated, other), "{}", node.path);
        assert_eq!((array.dtype, &array.shape), (other.dtype, &other.shape));
    }
    assert!(stored.tree().find("Electric Field/Ex").is_ok() && stored.tree().find("größe").is_ok());
}

#[test]
fn fields_of_structured_arrays_are_arrays() {
    let limits = Limits::default();
    let file = open(Source::memory(golden("records.npz")), &limits).unwrap();
    let column = |path: &str| {
        let node = file.tree().node(file.tree().find(path).unwrap());
        let array = file.open_array(node.array.as_ref().unwrap());
        array.unwrap().read_f64(&Selection::all(), Axes::Stored).unwrap()
    };
    assert_eq!((column("table/id"), column("table/x")), (vec![1.0, 2.0], vec![0.5, 1.5]));
    assert_eq!(column("one/x"), [1.5]);
}

#[test]
fn strings_are_utf8_and_times_have_units() {
    let limits = Limits::default();
    for name in ["stored.npz", "deflated.npz"] {
        let file = open(Source::memory(golden(name)), &limits).unwrap();
        let node = |path: &str| file.tree().node(file.tree().find(path).unwrap());
        let strings = |path: &str| {
            let desc = node(path).array.as_ref().unwrap();
            let array = file.open_array(desc).unwrap();
            let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
            let found = bytes.chunks_exact(array.dtype().size()).map(text_of);
            found.collect::<Vec<String>>()
        };
        assert_eq!(strings("words"), ["größe", "\u{1f600} b", "", "x"]);
        assert_eq!(strings("words be"), ["ab", "ç"]);
        assert_eq!(node("when").attrs.get_str("units"), Some("nanoseconds since 1970-01-01"));
        assert_eq!(node("how long").attrs.get_str("units"), Some("seconds"));
    }
}

#[test]
fn an_impossible_compression_ratio_is_an_error() {
    let limits = Limits::default();
    let mut bytes = golden("streamed.npz");
    // A size of 4 GB in the directory.
    let entry = find(&bytes, b"PK\x01\x02");
    bytes[entry + 24..entry + 28].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let error = open(Source::memory(bytes), &limits).err().unwrap();
    assert_eq!((error.code(), error.kind()), ("npz-007", ErrorKind::Malformed));
    // A slightly larger size is found by `check`.
    let mut bytes = golden("streamed.npz");
    let size = u32::from_le_bytes(bytes[entry + 24..entry + 28].try_into().unwrap());
    bytes[entry + 24..entry + 28].copy_from_slice(&(size + 9).to_le_bytes());
    let report = Npz.check(&Source::memory(bytes), &limits, false).unwrap();
    assert_eq!(report.findings[0].code, "npz-008");
}

#[test]
fn damage_in_a_member_is_found_by_its_checksum() {
    let limits = Limits::default();
    let mut bytes = golden("stored.npz");
    let data = find(&bytes, b"\x93NUMPY") + 128 + 3;
    bytes[data] ^= 1;
    let report = Npz.check(&Source::memory(bytes), &limits, false).unwrap();
    assert_eq!(report.findings[0].code, "npz-021");
    // A deflated member is not read.
    let mut bytes = golden("streamed.npz");
    let entry = find(&bytes, b"PK\x01\x02");
    bytes[entry + 16] ^= 1;
    let file = open(Source::memory(bytes), &limits).unwrap();
    let (_, _, desc) = file.tree().arrays().next().unwrap();
    let array = file.open_array(desc).unwrap();
    let error = array.read_bytes(&Selection::all(), Axes::Stored).unwrap_err();
    assert_eq!(error.code(), "npz-021");
}

#[test]
fn offsets_over_4_gib_are_read_from_the_directory() {
    let limits = Limits::default();
    let temp = tempfile::tempdir().unwrap();
    let small = temp.path().join("small.npz");
    let source = Source::memory(golden("moved.npz"));
    let content = open(source, &limits).unwrap();
    write_file(&Npz, &content, &small, Overwrite::Never).unwrap();
    let bytes = std::fs::read(&small).unwrap();

    // The archive with a hole of 5 GiB in the middle, after which offsets have 64 bits.
    let entry = find(&bytes, b"PK\x01\x02");
    let path = temp.path().join("large.npz");
    let file = File::create(&path).unwrap();
    let second = entry + 46 + b"spile.json".len();
    let header = u32::from_le_bytes(bytes[second + 42..second + 46].try_into().unwrap());
    file.write_all_at(&bytes[..header as usize], 0).unwrap();
    let moved = u64::from(header) + HOLE;
    file.write_all_at(&bytes[header as usize..entry], moved).unwrap();
    let mut directory = bytes[entry..second + 46 + b"a.npy".len()].to_vec();
    let at = second - entry;
    directory[at + 30..at + 32].copy_from_slice(&12_u16.to_le_bytes());
    directory[at + 42..at + 46].copy_from_slice(&[0xff; 4]);
    directory.extend([1, 0, 8, 0]);
    directory.extend(moved.to_le_bytes());
    let (offset, size) = (entry as u64 + HOLE, directory.len() as u64);
    directory.extend(b"PK\x06\x06");
    directory.extend(44_u64.to_le_bytes());
    directory.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for field in [2, 2, size, offset] {
        directory.extend(field.to_le_bytes());
    }
    directory.extend(b"PK\x06\x07\0\0\0\0");
    directory.extend((offset + size).to_le_bytes());
    directory.extend(1_u32.to_le_bytes());
    directory.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    file.write_all_at(&directory, offset).unwrap();

    let large = open(Source::open(&path).unwrap(), &limits).unwrap();
    let (_, _, desc) = large.tree().arrays().next().unwrap();
    let array = large.open_array(desc).unwrap();
    let values = array.read_f64(&Selection::all(), Axes::Stored).unwrap();
    assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let report = Npz.check(&Source::open(&path).unwrap(), &limits, false).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn salvage_of_a_truncated_archive_keeps_complete_members() {
    let limits = Limits::default();
    let temp = tempfile::tempdir().unwrap();
    for name in ["stored.npz", "deflated.npz", "streamed.npz"] {
        let bytes = golden(name);
        let directory = find(&bytes, b"PK\x01\x02");
        let all = open(Source::memory(bytes.clone()), &limits).unwrap().tree().arrays().count();
        let mut most = 0;
        for cut in (1..directory).step_by(97).chain([directory, bytes.len() - 5]) {
            let path = temp.path().join("saved.npz");
            let mut sink = Sink::create(&path, Overwrite::Replace).unwrap();
            let source = Source::memory(bytes[..cut].to_vec());
            let Ok(saved) = Npz.salvage(&source, &mut sink, &limits) else { continue };
            sink.commit().unwrap();
            let kept = open(Source::open(&path).unwrap(), &limits).unwrap();
            assert_eq!(kept.tree().arrays().count(), saved.kept.len(), "{name} cut to {cut}");
            let report = Npz.check(&Source::open(&path).unwrap(), &limits, false).unwrap();
            assert!(report.findings.is_empty(), "{name} cut to {cut}: {:?}", report.findings);
            assert!(saved.kept.len() >= most, "{name}: less of {cut} bytes than of fewer");
            most = saved.kept.len();
        }
        // Members with sizes after their data cannot be located.
        assert_eq!(most, if name == "streamed.npz" { 0 } else { all }, "{name}");
    }
}

#[test]
fn an_invalid_member_is_reported_and_hides_no_other() {
    let limits = Limits::default();
    let all = open(Source::memory(golden("stored.npz")), &limits).unwrap();
    let arrays = all.tree().arrays().count();
    // The magic string of the first array, and the local header of the first member.
    for (magic, code) in [(&b"\x93NUMPY"[..], "npz-009"), (b"PK\x03\x04", "npz-004")] {
        let mut bytes = golden("stored.npz");
        let at = find(&bytes, magic);
        bytes[at] ^= 1;
        let file = open(Source::memory(bytes.clone()), &limits).unwrap();
        assert_eq!(file.tree().arrays().count(), arrays - 1);
        let invalid = |findings: &[Finding]| {
            let errors = findings.iter().filter(|f| f.severity == Severity::Error);
            errors.map(|f| (f.code, f.object.clone())).collect::<Vec<_>>()
        };
        let found = invalid(file.warnings());
        assert_eq!((found.len(), found[0].0), (1, code));
        assert!(found[0].1.as_ref().is_some_and(|name| name.ends_with(".npy\"")), "{found:?}");
        let report = Npz.check(&Source::memory(bytes), &limits, false).unwrap();
        assert!(invalid(&report.findings).contains(&found[0]));
    }
}

#[test]
fn members_are_charged_to_the_memory_budget() {
    // An archive of 40,000 members of the same array.
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    let mut array = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
    array.extend(format!("{header:<69}\n").bytes());
    array.extend([1, 0, 2, 0]);
    for k in 0..40_000_u32 {
        let (name, offset) = (format!("a{k:06}.npy"), bytes.len() as u32);
        let mut shared = [20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0].to_vec();
        shared.extend([array.len() as u32; 2].iter().flat_map(|n| n.to_le_bytes()));
        shared.extend([name.len() as u8, 0, 0, 0]);
        bytes.extend([b"PK\x03\x04", &shared[..], name.as_bytes(), &array].concat());
        directory.extend([b"PK\x01\x02\x14\x00", &shared[..], &[0; 10]].concat());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (offset, size) = (bytes.len() as u32, directory.len() as u32);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([40_000_u16; 2].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend([size, offset].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend([0; 2]);
    let source = Source::memory(bytes);
    let limits = Limits::default();
    assert_eq!(open(source.clone(), &limits).unwrap().tree().arrays().count(), 40_000);
    let error = open(source, &limits.with_memory(16 << 20)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
}
