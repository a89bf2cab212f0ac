//! Trees of files with many index entries are built from a sample of the index.

use std::fs;
use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::format::{Checker as _, OpenOptions};
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::report::Severity;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Gsd, Mode, Version, Writer};

const FRAMES: u64 = 50_000;

/// A file with the chunks "a" and "b" in every frame, and those that `more` writes.
fn create(folder: &Path, mut more: impl FnMut(&mut Writer, u64)) -> PathBuf {
    let path = folder.join("large.gsd");
    let about = About { application: "t".into(), schema: "t".into(), schema_version: 1 };
    let (overwrite, mode) = (Overwrite::Replace, Mode::default());
    let mut file = Writer::create(&path, overwrite, Version::V2_1, &about, mode).unwrap();
    for frame in 0..FRAMES {
        for name in ["a", "b"] {
            file.write_chunk(name, Type::UInt64, 1, 1, &frame.to_le_bytes()).unwrap();
        }
        more(&mut file, frame);
        file.end_frame().unwrap();
    }
    file.close().unwrap();
    path
}

fn open(path: &Path) -> Dataset {
    Dataset::open_path(&Gsd, path, &OpenOptions::default()).unwrap()
}

/// The shape of an array in a frame, or the code of the error.
fn cell(file: &Dataset, name: &str, frame: u64) -> Result<Option<Vec<u64>>, &'static str> {
    let tree = file.tree();
    let desc = tree.node(tree.find(name).unwrap()).array.as_ref().unwrap();
    let Layout::PerFrame(table) = &desc.layout else { panic!("{name} has no frames") };
    let cell = table.cell(frame).map_err(|error| error.code())?;
    Ok(cell.map(|cell| cell.shape.lengths().to_vec()))
}

fn paths(file: &Dataset) -> Vec<String> {
    file.tree().arrays().map(|(_, node, _)| node.path.clone()).collect()
}

#[test]
fn opening_a_large_file_reads_a_fraction_of_the_index() {
    let temp = tempfile::tempdir().unwrap();
    let file = open(&create(temp.path(), |_, _| {}));
    assert_eq!(paths(&file), ["a", "b"]);
    // The index has 3.2 MB.
    assert!(file.source().bytes_read() < 400_000, "{} bytes", file.source().bytes_read());
    for frame in [0, 1, FRAMES / 3, FRAMES - 1] {
        assert_eq!(cell(&file, "b", frame), Ok(Some(vec![1])));
    }
}

#[test]
fn a_name_that_one_frame_has_is_an_array() {
    let temp = tempfile::tempdir().unwrap();
    let file = open(&create(temp.path(), |file, frame| {
        if frame == 31_111 {
            file.write_chunk("rare", Type::Float, 2, 3, &[0; 24]).unwrap();
        }
    }));
    assert_eq!(paths(&file), ["a", "b", "rare"]);
    assert_eq!(cell(&file, "rare", 31_111), Ok(Some(vec![2, 3])));
    assert_eq!(cell(&file, "rare", 31_112), Ok(None));
}

#[test]
fn types_and_columns_outside_the_sample_are_errors() {
    let temp = tempfile::tempdir().unwrap();
    let file = open(&create(temp.path(), |file, frame| match frame {
        20_001 => file.write_chunk("c", Type::Float, 1, 1, &[0; 4]).unwrap(),
        20_002 => file.write_chunk("c", Type::UInt8, 1, 2, &[0; 2]).unwrap(),
        _ => file.write_chunk("c", Type::UInt8, 1, 1, &[0]).unwrap(),
    }));
    assert_eq!(cell(&file, "c", 20_000), Ok(Some(vec![1])));
    assert_eq!(cell(&file, "c", 20_001), Err("gsd-019"));
    assert_eq!(cell(&file, "c", 20_002), Err("gsd-019"));
}

#[test]
fn frames_out_of_order_outside_the_sample_are_errors_of_the_lookup() {
    let temp = tempfile::tempdir().unwrap();
    let path = create(temp.path(), |_, _| {});
    let mut bytes = fs::read(&path).unwrap();
    let index = u64::from_le_bytes(*bytes[8..].first_chunk().unwrap());
    let at = (index + 32 * 2 * 20_001) as usize;
    bytes[at..at + 8].copy_from_slice(&3_u64.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let file = open(&path);
    assert_eq!(cell(&file, "a", 20_001), Err("gsd-012"));
    assert_eq!(cell(&file, "a", 30_000), Ok(Some(vec![1])));
    let report = Gsd.check(file.source(), &Limits::default(), false).unwrap();
    assert!(report.worst() == Some(Severity::Error));
    assert!(report.findings.iter().any(|f| f.code == "gsd-012" && f.offset == Some(at as u64)));
}
