//! Types, channels and damaged files.

use spile_core::testkit::Suite;
use spile_core::{ByteOrder, DType, Dataset, Kind, OpenOptions, Source};
use spile_raw::Raw;

fn open(format: &Raw, bytes: &[u8]) -> spile_core::Result<Dataset> {
    Dataset::open(format, Source::memory(bytes), &OpenOptions::default())
}

#[test]
fn samples_have_the_type_and_byte_order_that_the_user_names() {
    let big = Raw { dtype: DType::I16.with_order(ByteOrder::Big), header: 1, ..Raw::BYTES };
    let file = open(&big, &[9, 0xff, 0xfe, 1, 0]).unwrap();
    let data = file.array("data").unwrap();
    assert_eq!(data.read::<Vec<f64>>("...").unwrap(), [-2.0, 256.0]);
    assert!(!data.coord("dim1").unwrap().is_known());
    let complex = DType::new(Kind::Complex, 8, ByteOrder::Little).unwrap();
    let iq = Raw { dtype: complex, rate: Some(2e6), ..Raw::BYTES };
    let file = open(&iq, &[0; 24]).unwrap();
    assert_eq!(file.array("data").unwrap().shape().lengths(), [3]);
}

#[test]
fn bytes_that_are_no_sample_are_reported_and_wrong_parameters_are_errors() {
    let two = Raw { dtype: DType::I16, channels: 2, ..Raw::BYTES };
    let file = open(&two, &[1, 0, 2, 0, 3, 0, 4]).unwrap();
    assert_eq!(file.array("CH1").unwrap().read::<Vec<f64>>("...").unwrap(), [1.0]);
    assert_eq!(file.warnings()[0].code, "raw-002");
    let error = open(&Raw { header: 8, ..Raw::BYTES }, &[0; 7]).err().unwrap();
    assert_eq!(error.code(), "raw-001");
    assert!(open(&Raw { channels: 0, ..Raw::BYTES }, &[0; 7]).is_err());
    assert!(open(&Raw { rate: Some(-1.0), ..Raw::BYTES }, &[0; 7]).is_err());
    assert_eq!(open(&two, &[]).unwrap().array("CH2").unwrap().shape().lengths(), [0]);
}

#[test]
fn damaged_files_are_read_or_refused() {
    static FORMAT: Raw = Raw { dtype: DType::I16, rate: Some(1.0), header: 16, channels: 2 };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.raw");
    std::fs::write(&path, (0..=255).collect::<Vec<u8>>()).unwrap();
    let suite = Suite::new(&FORMAT, vec![path]);
    suite.check();
    suite.regions();
    suite.sources();
    suite.split_reads();
    suite.truncation();
    suite.corruption();
}
