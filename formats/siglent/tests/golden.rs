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

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A quantity of version 4: value, prefix, and the powers of volt and ampere.
fn quantity(bytes: &mut [u8], at: usize, value: f64, powers: [i32; 2]) {
    put(bytes, at, &value.to_le_bytes());
    put(bytes, at + 8, &8_u32.to_le_bytes());
    for (k, word) in [0, powers[0], 1, powers[1], 1, 0, 1].into_iter().enumerate() {
        put(bytes, at + 12 + 4 * k, &word.to_le_bytes());
    }
}

/// A header of version 4 without traces: 16-bit samples from byte 4096 on, 10 kSa/s, 20 ms per division.
fn version_4() -> Vec<u8> {
    let mut bytes = vec![0; 0x1000];
    put(&mut bytes, 0, &4_u32.to_le_bytes());
    put(&mut bytes, 4, &0x1000_u32.to_le_bytes());
    quantity(&mut bytes, 0x19c, 0.02, [0, 0]);
    quantity(&mut bytes, 0x1f0, 1e4, [0, 0]);
    put(&mut bytes, 0x264, &[1]);
    put(&mut bytes, 0x26c, &10_u32.to_le_bytes());
    bytes
}

#[test]
fn version_4_subtracts_the_offset_and_applies_the_probe_as_instruments_do() {
    // Settings of an SDS814X HD that measured 3 V with a probe of 10:1.
    let mut bytes = version_4();
    put(&mut bytes, 0x08, &1_u32.to_le_bytes());
    quantity(&mut bytes, 0x18, 0.1, [1, 0]);
    quantity(&mut bytes, 0xb8, -0.2, [1, 0]);
    put(&mut bytes, 0x1ec, &2_u32.to_le_bytes());
    put(&mut bytes, 0x244, &10_f64.to_le_bytes());
    put(&mut bytes, 0x270, &7680_u32.to_le_bytes());
    bytes.extend([32768_u16 - 15360, 32768 + 7680].map(u16::to_le_bytes).concat());
    let found = &read(&Siglent, Source::memory(bytes))[0];
    assert!((found.values[0] - 0.0).abs() < 1e-12 && (found.values[1] - 3.0).abs() < 1e-12);
    assert_eq!((found.grid(), found.attr("units").as_deref()), ((-0.1, 1e-4), Some("V")));
}

#[test]
fn calculated_channels_and_zoomed_traces_have_their_own_settings() {
    let mut math = version_4();
    put(&mut math, 0x280, &1_u32.to_le_bytes());
    quantity(&mut math, 0x290, 10.0, [1, 1]);
    quantity(&mut math, 0x330, -20.0, [1, 1]);
    put(&mut math, 0x3d0, &2_u32.to_le_bytes());
    put(&mut math, 0x3e0, &2e-4_f64.to_le_bytes());
    put(&mut math, 0x400, &7680_u32.to_le_bytes());
    math.extend([32768_u16, 32768 - 7680].map(u16::to_le_bytes).concat());
    let found = &read(&Siglent, Source::memory(math))[0];
    assert_eq!((found.path.as_str(), &found.values[..]), ("F1", &[20.0, 10.0][..]));
    assert_eq!((found.grid(), found.attr("units").as_deref()), ((-0.1, 2e-4), Some("W")));

    let mut zoom = version_4();
    put(&mut zoom, 0x0c, &1_u32.to_le_bytes());
    quantity(&mut zoom, 0x18 + 40, 1.0, [0, 1]);
    put(&mut zoom, 0x1ec, &1_u32.to_le_bytes());
    put(&mut zoom, 0x24c, &1_f64.to_le_bytes());
    put(&mut zoom, 0x274, &7680_u32.to_le_bytes());
    put(&mut zoom, 0xaf4, &1_u32.to_le_bytes());
    quantity(&mut zoom, 0xaf8, 0.002, [0, 0]);
    quantity(&mut zoom, 0xb20, 0.015, [0, 0]);
    zoom.extend(32768_u16.to_le_bytes());
    let found = &read(&Siglent, Source::memory(zoom))[0];
    assert_eq!((found.path.as_str(), found.attr("units").as_deref()), ("CH2", Some("A")));
    assert!((found.grid().0 - 0.005).abs() < 1e-15);
}

#[test]
fn digital_lines_alone_are_a_finding_of_a_siglent_file() {
    let mut bytes = version_4();
    put(&mut bytes, 0x158, &1_u32.to_le_bytes());
    let file = Dataset::open(&Siglent, Source::memory(bytes), &OpenOptions::default()).unwrap();
    assert_eq!((file.arrays().count(), file.warnings()[0].code), (0, "siglent-005"));
}

#[test]
fn units_that_an_instrument_did_not_set_do_not_hide_the_version() {
    // The start of a file of an SDS1000X: the unit of the sample rate is not initialised.
    let mut bytes = vec![0; 0x800];
    put(&mut bytes, 0, &1_u32.to_le_bytes());
    let numbers = [(0x10, 0.5, 0), (0xd4, 5e-5, 17), (0xe4, 1.74e-4, 17), (0xf8, 1e9, 0x3139_ec70)];
    for (at, value, unit) in numbers {
        put(&mut bytes, at, &f64::to_le_bytes(value));
        put(&mut bytes, at + 8, &8_u32.to_le_bytes());
        put(&mut bytes, at + 12, &u32::to_le_bytes(unit));
    }
    put(&mut bytes, 0xf4, &3_u32.to_le_bytes());
    bytes.extend([128, 178, 78]);
    let found = &read(&Siglent, Source::memory(bytes))[0];
    assert_eq!(found.values, [0.0, 1.0, -1.0]);
    assert_eq!(found.grid(), (-3.5e-4, 1e-9));
}
