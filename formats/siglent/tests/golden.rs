//! Golden files match the manifest; files of the old platform are read as stored.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use recordings::{check_all, folder, read};
use spile_core::{Dataset, Format as _, OpenOptions, Source};
use spile_siglent::Siglent;

#[test]
fn golden_files_match_the_manifest() {
    check_all(&Siglent, &folder("siglent"));
}

#[test]
fn version_6_names_model_and_channels() {
    let file = Source::open(folder("siglent").join("v6.bin")).unwrap();
    let found = read(&Siglent, file);
    assert_eq!((found[0].path.as_str(), found[1].path.as_str()), ("C1", "C2"));
    assert_eq!(found[0].attr("instrument").as_deref(), Some("SDS6204A"));
    assert_eq!(found[0].attr("units").as_deref(), Some("V"));
}

#[test]
fn version_5_is_read_and_files_that_end_early_are_errors() {
    let mut bytes = vec![0; 0x1ba2 + 100];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &5_u32.to_le_bytes());
    put(0x76, &1_u32.to_le_bytes());
    for (at, value, prefix) in [(0xab, 2.5_f64, 8_u32), (0x1b68, 1.0, 7), (0x1b92, 1.0, 9)] {
        put(at, &value.to_le_bytes());
        put(at + 8, &prefix.to_le_bytes());
    }
    put(0x1b88, &3_u32.to_le_bytes());
    put(0x800, &[128, 138, 118]);
    let found = &read(&Siglent, Source::memory(bytes.clone()))[0];
    assert_eq!(found.values, [0.0, 1.0, -1.0]);
    assert_eq!(found.grid(), (-0.007, 1e-3));
    bytes.truncate(0x801);
    let error = Siglent.open(Source::memory(bytes), &OpenOptions::default()).err().unwrap();
    assert!(error.code().starts_with("siglent-"), "{error}");
}

#[test]
fn the_old_platform_is_read_as_stored_with_a_warning() {
    let mut bytes = vec![0; 0x1470 + 8];
    bytes[0x100] = 1;
    bytes[0x104] = 1;
    for k in 0..2 {
        bytes[0xbc + 4 * k..0xc0 + 4 * k].copy_from_slice(&500_f32.to_le_bytes());
    }
    bytes[0x1470..].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let file = Source::memory(bytes);
    let file = Dataset::open(&Siglent, file, &OpenOptions::default()).unwrap();
    assert_eq!(file.array("CH2").unwrap().read::<Vec<f64>>("...").unwrap(), [5.0, 6.0, 7.0, 8.0]);
    assert_eq!(file.warnings()[0].code, "siglent-006");
}
