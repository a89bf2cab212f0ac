//! Salvage loses no block that is not damaged itself.

use std::path::{Path, PathBuf};

use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::source::Source;
use spile_sdf::{BlockType, File, Meta};

#[path = "support/opened.rs"]
mod opened;
use opened::{Opened, check, salvage_to};

fn golden(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sdf");
    std::fs::read(folder.join(name)).unwrap()
}

fn open(bytes: &[u8]) -> File {
    File::from_source(Source::memory(bytes), &Limits::default()).unwrap()
}

/// Codes of the findings with severity error.
fn errors(bytes: &[u8]) -> Vec<String> {
    let report = check(&Source::memory(bytes), false);
    let errors = report.findings.iter().filter(|f| f.severity == Severity::Error);
    errors.map(|f| f.code.to_string()).collect()
}

/// Salvages `bytes`; the result must be a valid file.
fn salvage(bytes: &[u8], folder: &Path) -> (Salvage, Opened) {
    let path = folder.join("saved.sdf");
    let saved = salvage_to(&Source::memory(bytes), &path);
    assert_eq!(errors(&std::fs::read(&path).unwrap()), [""; 0]);
    (saved, Opened::open(&path).unwrap())
}

fn ids(file: &File) -> Vec<&str> {
    file.blocks().iter().map(|b| b.header.id.as_str()).collect()
}

#[test]
fn a_wrong_offset_of_the_next_block_loses_no_block() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hand_nosummary.sdf", "hand_rev1_0_nosummary.sdf"] {
        let bytes = golden(name);
        let original = open(&bytes);
        for block in original.blocks().iter().rev().skip(1).step_by(3) {
            let (at, next) = (block.offset as usize, block.header.next);
            for wrong in [next + 1, next - 1, next + 90, next + 2000, next | 1 << 40, next ^ 0x80] {
                let mut damaged = bytes.clone();
                damaged[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
                let (saved, file) = salvage(&damaged, folder.path());
                assert_eq!(
                    ids(&file.file),
                    ids(&original),
                    "{name} {at} {wrong}: {:?}",
                    saved.lost
                );
            }
        }
    }
}

#[test]
fn the_data_length_of_a_constant_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = golden("hand_nosummary.sdf");
    let original = open(&bytes);
    let constant = original.blocks().iter().find(|b| b.kind() == BlockType::Constant).unwrap();
    let mut damaged = bytes.clone();
    damaged[constant.offset as usize + 50] = 1;
    let (saved, file) = salvage(&damaged, folder.path());
    assert_eq!((ids(&file.file), saved.lost), (ids(&original), vec![]));
}

#[test]
fn blocks_beyond_the_stored_number_are_found() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hand_nosummary.sdf", "hand_rev1_0.sdf", "hand_rev1_3.sdf", "drv_strlen64.sdf"] {
        let bytes = golden(name);
        let original = open(&bytes);
        assert!(!errors(&bytes).contains(&"sdf-027".to_string()));
        let number = original.blocks().len();
        for counted in [1, number / 2, number - 1] {
            let mut damaged = bytes.clone();
            damaged[68..72].copy_from_slice(&(counted as u32).to_le_bytes());
            assert_eq!(errors(&damaged), ["sdf-027"], "{name} {counted}");
            let (saved, file) = salvage(&damaged, folder.path());
            assert_eq!(ids(&file.file), ids(&original), "{name} {counted}: {:?}", saved.lost);
        }
    }
}

#[test]
fn a_summary_is_not_read_as_a_block() {
    let mut bytes = golden("hand_rev1_3.sdf");
    bytes[68] += 1;
    let error = File::from_source(Source::memory(&bytes[..]), &Limits::default()).err().unwrap();
    assert_eq!((error.code(), error.offset()), ("sdf-012", Some(68)));
    assert_eq!(errors(&bytes), ["sdf-012"]);
}

#[test]
fn complete_rows_of_a_truncated_station_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = golden("drv_station.sdf");
    let original = open(&bytes);
    let block = &original.blocks()[0];
    let Meta::Station(station) = &block.meta else { panic!() };
    assert!(station.nelements > 1);
    let cut = (block.header.data_location + station.entry_len + 1) as usize;
    let (saved, file) = salvage(&bytes[..cut], folder.path());
    let Meta::Station(rows) = &file.blocks()[0].meta else { panic!() };
    assert_eq!((rows.nelements, saved.lost.len()), (1, 1), "{:?}", saved.lost);
    let (_, _, time) = file.tree().arrays().next().unwrap();
    assert_eq!(time.shape.lengths(), [1]);
}

#[test]
fn a_block_is_never_replaced_by_another_one() {
    // The header of one block and the summary entry of another are damaged.
    let folder = tempfile::tempdir().unwrap();
    let bytes = golden("hand_rev1_3.sdf");
    let original = open(&bytes);
    let blocks = original.blocks();
    let with_data = |b: &&spile_sdf::Block| b.header.data_length > 0;
    let far = blocks.iter().skip(3).find(with_data).unwrap();
    let mut damaged = bytes.clone();
    damaged[112..112 + 68].fill(0xee);
    damaged[far.offset as usize + 8 + 6] = 1;
    let (_, file) = salvage(&damaged, folder.path());
    let mut want = ids(&original);
    want.retain(|id| *id != far.header.id);
    assert_eq!(ids(&file.file), want);
}

#[test]
fn data_that_overlap_a_header_are_an_error() {
    let bytes = golden("hand_nosummary.sdf");
    let original = open(&bytes);
    let block = original.blocks().iter().find(|b| b.header.data_length > 8).unwrap();
    let at = block.offset as usize + 8;
    for wrong in [100, block.offset + 4, block.header.data_location - 1] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
        assert_eq!(errors(&damaged), ["sdf-046"], "{wrong}");
    }
    let mut damaged = golden("hand_rev1_3.sdf");
    let original = open(&damaged);
    let summary = original.header().summary_location;
    let block = original.blocks().iter().find(|b| b.header.data_length > 8).unwrap();
    let at = block.offset as usize + 8;
    damaged[at..at + 8].copy_from_slice(&summary.to_le_bytes());
    assert_eq!(errors(&damaged), ["sdf-046"]);
    for name in ["drv_all_blocks.sdf", "drv_station.sdf", "hand_rev1_0.sdf", "sdfr_written.sdf"] {
        assert_eq!(errors(&golden(name)), [""; 0], "{name}");
    }
}

#[test]
fn a_summary_at_an_unknown_location_is_not_read_as_blocks() {
    // The job ended between writing the summary and the file header, or its location was lost.
    let folder = tempfile::tempdir().unwrap();
    for name in ["hand_rev1_3.sdf", "hand_rev1_0.sdf", "drv_strlen64.sdf"] {
        let bytes = golden(name);
        let original = open(&bytes);
        for unknown in [56..68, 56..72] {
            let mut open = bytes.clone();
            open[unknown].fill(0);
            assert!(!errors(&open).contains(&"sdf-027".to_string()));
            let (saved, file) = salvage(&open, folder.path());
            assert_eq!((ids(&file.file), saved.lost), (ids(&original), vec![]), "{name}");
        }
    }
}
