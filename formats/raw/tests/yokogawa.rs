//! Descriptions with samples that are built here, and damaged copies of them.

use std::fs;
use std::path::Path;

use spile_core::error::ErrorKind;
use spile_core::{Dataset, Format as _, OpenOptions, Result, Source};
use spile_raw::Yokogawa;

/// A description of two traces in one group.
fn description(arrangement: &str, blocks: u32, endian: &str) -> String {
    format!(
        "//YOKOGAWA ASCII FILE FORMAT\n\n$PublicInfo\nFormatVersion    1.01\nModel            DL7440\n\
         Endian           {endian}\nDataFormat       {arrangement}\nGroupNumber      1\n\
         TraceTotalNumber 2\nDataOffset       4\n\n$Group1\nTraceNumber      2\n\
         BlockNumber      {blocks}\nTraceName        CH1         CH2\nBlockSize        2           2\n\
         VResolution      5.0E-1      2.0E+0\nVOffset          1.0E+0      0.0E+0\n\
         VDataType        IS2         IU1\nVUnit                        A\n\
         VIllegalData     -32768      ?\nHResolution      1.0E-6      1.0E-6\n\
         HOffset          -2.0E-6     -2.0E-6\nHUnit            s           s\n\
         Date             2024/03/01  2024/03/01\nTime             12:34:56.50 12:34:56.50\n\
         $PrivateInfo\nModel            other\n"
    )
}

fn open(folder: &Path) -> Result<Dataset> {
    let source = Source::open(folder.join("a.hdr"))?;
    Dataset::open(&Yokogawa, source, &OpenOptions::default())
}

fn pair(description: &str, samples: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.hdr"), description).unwrap();
    fs::write(folder.path().join("a.wvf"), samples).unwrap();
    folder
}

fn values(file: &Dataset, path: &str) -> Vec<f64> {
    file.array(path).unwrap().values().unwrap()
}

#[test]
fn traces_and_blocks_have_values_units_and_times() {
    // Four bytes, then the blocks of CH1 and those of CH2.
    let samples = [9, 9, 9, 9, 2, 0, 4, 0, 0xfe, 0xff, 0, 0, 1, 2, 3, 4];
    let folder = pair(&description("Trace", 2, "Ltl"), &samples);
    let file = open(folder.path()).unwrap();
    assert_eq!(values(&file, "CH1"), [2.0, 3.0, 0.0, 1.0]);
    assert_eq!(values(&file, "CH2"), [2.0, 4.0, 6.0, 8.0]);
    let first = file.array("CH1").unwrap();
    assert_eq!((first.dims(), first.units()), (&["segment".into(), "time".into()][..], None));
    assert_eq!(first.coord("time").unwrap().uniform(), Some((-2e-6, 1e-6)));
    assert_eq!(first.attrs().get_str("trigger_time"), Some("2024-03-01T12:34:56.50"));
    assert_eq!(first.attrs().get_f64("illegal_value"), Some(-32768.0));
    let second = file.array("CH2").unwrap();
    assert_eq!((second.units(), second.attrs().get_str("instrument")), (Some("A"), Some("DL7440")));

    // The traces of a block together, big-endian.
    let samples = [9, 9, 9, 9, 0, 2, 0, 4, 1, 2, 0xff, 0xfe, 0, 0, 3, 4];
    let folder = pair(&description("Block", 2, "Big"), &samples);
    let file = open(folder.path()).unwrap();
    assert_eq!(values(&file, "CH1"), [2.0, 3.0, 0.0, 1.0]);
    assert_eq!(values(&file, "CH2"), [2.0, 4.0, 6.0, 8.0]);
    let folder = pair(&description("Trace", 1, "Big"), &samples);
    let file = open(folder.path()).unwrap();
    assert_eq!(
        (file.array("CH1").unwrap().dims(), values(&file, "CH2")),
        (&["time".into()][..], vec![2.0, 4.0])
    );
    assert_eq!(file.warnings()[0].code, "yokogawa-006");
}

#[test]
fn descriptions_without_samples_and_other_models_are_named() {
    let folder = pair(&description("Trace", 2, "Big"), &[0; 15]);
    let error = open(folder.path()).err().unwrap();
    assert_eq!((error.code(), error.kind()), ("yokogawa-005", ErrorKind::Truncated));
    fs::remove_file(folder.path().join("a.wvf")).unwrap();
    assert_eq!(open(folder.path()).err().unwrap().code(), "yokogawa-002");
    let odd = description("Mixed", 2, "Big");
    let error = open(pair(&odd, &[0; 16]).path()).err().unwrap();
    assert!(error.code() == "yokogawa-004" && error.message().contains("DL7440"));
    let odd = description("Trace", 2, "Big").replace("IU1", "B16");
    assert_eq!(open(pair(&odd, &[0; 16]).path()).err().unwrap().code(), "yokogawa-004");
    let source = Source::memory(*b"$PublicInfo\n");
    assert!(Yokogawa.open(source, &OpenOptions::default()).is_err());
}

#[test]
fn damaged_descriptions_are_read_or_refused() {
    let whole = description("Block", 2, "Ltl").into_bytes();
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for round in 0..300 {
        let mut text = whole.clone();
        if round % 3 == 0 {
            text.truncate(random(text.len()));
        }
        for _ in 0..=(round % 4) {
            if let Some(last) = text.len().checked_sub(1) {
                let at = random(last + 1);
                text[at] = b"0123456789 \n$-e\xff"[random(16)];
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.hdr"), &text).unwrap();
        fs::write(folder.path().join("a.wvf"), [1; 16]).unwrap();
        if let Ok(file) = open(folder.path()) {
            for (_, node, _) in file.arrays() {
                let read = file.array(&node.path).unwrap().values();
                assert!(read.is_ok() || read.is_err_and(|e| e.code() != "core-internal"));
            }
        }
    }
}
