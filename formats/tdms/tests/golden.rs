//! Values, properties and time base of the golden files; tests/interop/tdms_nptdms.py compares them with nptdms.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::folder;
use spile_core::{Dataset, ErrorKind, Format as _, OpenOptions, Source};
use spile_tdms::Tdms;

fn open(name: &str) -> Dataset {
    let source = Source::open(folder("tdms").join(name)).unwrap();
    Dataset::open(&Tdms, source, &OpenOptions::default()).unwrap()
}

fn values(file: &Dataset, path: &str) -> Vec<f64> {
    file.array(path).unwrap().values().unwrap()
}

#[test]
fn segments_are_joined_and_scaled() {
    let file = open("segments.tdms");
    let path = "g'1/a\u{2215}b";
    let array = file.array(path).unwrap();
    let scaled: Vec<f64> = (0..30).map(|k| f64::from(k) * 0.5 - 1.0).collect();
    assert_eq!((array.values().unwrap(), array.units()), (scaled, Some("V")));
    assert_eq!(array.coord("time").unwrap().uniform(), Some((-0.5, 1e-4)));
    assert_eq!(array.attrs().get_str("trigger_time"), Some("2024-03-01T12:34:56.25"));
    assert_eq!(values(&file, "g'1/b")[8..], [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(file.array("g'1/b").unwrap().attrs().get_i64("last"), Some(2));
    let group = file.tree().at("g'1").unwrap();
    assert_eq!(file.tree().node(group).attrs.get_f64("k"), Some(2.0));
    // 1 - 2 y + y^2 / 4 + y^3 / 2 of y = 1 + 2 x.
    let poly = |x: f64| {
        let y = 1.0 + 2.0 * x;
        1.0 - 2.0 * y + 0.25 * y * y + 0.5 * y * y * y
    };
    let expected: Vec<f64> = (0..10).map(|k| poly(f64::from(k % 5) - 2.0)).collect();
    assert_eq!(values(&file, "g'1/poly"), expected);
}

#[test]
fn interleaved_and_big_endian_segments_and_daqmx_rows_are_read() {
    let file = open("interleaved.tdms");
    let twice = |values: [f64; 6]| [values, values].concat();
    assert_eq!(values(&file, "g/a"), twice([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]));
    assert_eq!(values(&file, "g/b"), twice([0.0, 0.25, 0.5, 0.75, 1.0, 1.25]));
    let file = open("big_endian.tdms");
    assert_eq!(values(&file, "g/a"), [[1.0, -2.0, 300.0]; 4].concat());
    // The last chunk ends after one value.
    assert_eq!(values(&file, "g/b"), [0.5, -8.0, 0.5, -8.0, 0.5, -8.0]);
    assert_eq!(file.warnings()[0].code, "tdms-006");
    let file = open("daqmx.tdms");
    let rows = |first: f64, slope: f64| -> Vec<f64> {
        let once = (0..5).map(|k| (first + 2.0 * f64::from(k)) * slope - 1.0);
        once.clone().chain(once).collect()
    };
    assert_eq!(values(&file, "g/d0"), rows(-4.0, 0.5));
    assert_eq!(values(&file, "g/d1"), rows(-3.0, 1.5));
}

#[test]
fn times_are_microseconds_and_text_is_text() {
    let file = open("types.tdms");
    let times = file.array("all types/times").unwrap();
    assert_eq!(times.units(), Some("microseconds since 1970-01-01"));
    let first = 1_709_296_496_250_000.0;
    assert_eq!(times.values().unwrap()[..2], [first, first + 1500.0]);
    let text = file.array("all types/text").unwrap();
    assert_eq!(text.bytes().unwrap()[13..15], *b"ab");
    assert_eq!(values(&file, "all types/u8")[6], 18.0);
}

#[test]
fn other_files_are_named() {
    let code = |bytes: &[u8]| {
        let error = Tdms.open(Source::memory(bytes), &OpenOptions::default()).err().unwrap();
        (error.code(), error.kind())
    };
    assert_eq!(
        code(&[b"TDSh".to_vec(), vec![0; 24]].concat()),
        ("tdms-003", ErrorKind::Unsupported)
    );
    assert_eq!(
        code(&[b"TDSx".to_vec(), vec![0; 24]].concat()),
        ("tdms-001", ErrorKind::NotThisFormat)
    );
    assert_eq!(code(b"TDSm"), ("tdms-002", ErrorKind::Truncated));
}
