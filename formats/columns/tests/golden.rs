//! Rows, columns, header lines and numbers of the golden files.

use std::path::{Path, PathBuf};

use spile_columns::Columns;
use spile_core::Dataset;
use spile_core::format::{OpenOptions, Region};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::testkit::{files, manifest};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn open(name: &str) -> Dataset {
    let source = Source::open(golden().join("columns").join(name)).unwrap();
    Dataset::open(&Columns, source, &OpenOptions::default()).unwrap()
}

fn values(file: &Dataset) -> (Vec<u64>, Vec<f64>) {
    let (_, _, desc) = file.tree().arrays().next().unwrap();
    let array = file.open_array(desc).unwrap();
    let values = array.read_f64(&Selection::all(), Axes::Stored).unwrap();
    (array.shape().lengths().to_vec(), values)
}

/// Number of lines before the rows, including empty ones.
fn header_lines(file: &Dataset) -> u64 {
    let mut lines = 0;
    let count = &mut |region: Region| {
        if region.name == "header" {
            let text = file.source().read_vec(region.offset, region.len)?;
            lines = text.split(|b| *b == b'\n').count() as u64 - 1;
        }
        Ok(())
    };
    file.regions(count).unwrap();
    lines
}

#[test]
fn rows_columns_and_headers_are_those_of_the_manifest() {
    let all = manifest(golden().join("digitizer/manifest.json"));
    let mut compared = 0;
    for path in files(golden().join("columns")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let want = &all[name];
        let Some(rows) = want["rows"].as_u64() else { continue };
        let file = open(name);
        assert_eq!(values(&file).0, [rows, want["columns"].as_u64().unwrap()], "{name}");
        assert_eq!(header_lines(&file), want["header_lines"].as_u64().unwrap(), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 9);
}

#[test]
fn all_separators_give_the_same_numbers() {
    let plain = values(&open("column_plain.txt"));
    assert_eq!(plain.1[147..], [4.9e-8, -0.982_452_612_6, 0.186_512_369_4]);
    let others = ["header.txt", "comma.csv", "semicolon.dat", "crlf.txt", "partial_last.txt"];
    for other in others {
        assert_eq!(values(&open(&format!("column_{other}"))), plain, "{other}");
    }
    // A single number is header; a date of the same width as the rows cannot be distinguished from one.
    let (shape, numbers) = values(&open("column_numeric_header.txt"));
    assert_eq!((shape, &numbers[..3]), (vec![51, 3], &[2023.0, 8.0, 7.0][..]));
    assert_eq!(numbers[3..], plain.1);
}

#[test]
fn fortran_exponents_nan_and_infinity_are_read() {
    let (shape, fortran) = values(&open("column_fortran_d.txt"));
    assert_eq!((shape, fortran), (vec![2, 2], vec![0.0, 1.0, 1e-9, 2.0]));
    let (_, odd) = values(&open("column_nan_inf.txt"));
    assert!(odd[2].is_nan() && odd[7].is_nan() && odd[8] == 3.0);
    assert_eq!(odd[4..6], [f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn dimensions_have_unique_names() {
    for (header, name) in [("t (s),a", "t"), ("column (s),a", "x"), ("", "x")] {
        let text = format!("{header}\n0,1\n1,2\n2,4\n");
        let file = Dataset::open(&Columns, Source::memory(text), &OpenOptions::default()).unwrap();
        let (_, node, array) = file.tree().arrays().next().unwrap();
        assert_eq!(array.dims, [name, "column"]);
        let units = node.attrs.contains(&format!("{name}_units"));
        assert_eq!(units, !header.is_empty());
    }
}

#[test]
fn an_incomplete_row_is_reported() {
    let file = open("column_partial_last.txt");
    assert_eq!(file.warnings().iter().map(|f| f.code).collect::<Vec<_>>(), ["columns-010"]);
    assert!(open("column_plain.txt").warnings().is_empty());
}
