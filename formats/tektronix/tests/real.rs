//! Files of instruments: IQ records are complex, the trigger within a sample interval is an attribute.

#[path = "../../../crates/core/tests/support/recordings.rs"]
mod recordings;

use std::path::{Path, PathBuf};

use recordings::read;
use spile_core::{Coord, Dataset, OpenOptions, Source};
use spile_tektronix::Tektronix;

/// A real file; `None` where the folder does not exist.
fn real(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/scope");
    if !folder.exists() {
        println!("skipped: no real files in {}", folder.display());
        return None;
    }
    Some(folder.join(name))
}

#[test]
fn start_and_trigger_offset_give_the_times_of_the_csv_export() {
    let Some(file) = real("tek_digital.wfm") else { return };
    let found = &read(&Tektronix, Source::open(file).unwrap())[0];
    let (start, step) = found.grid();
    assert_eq!(found.values.len(), 2500);
    // The first time of tek_digital.csv, and its interval.
    let offset = found.attrs.get_f64("trigger_offset").unwrap();
    assert!((start + offset + 4.996_203_12e-8).abs() < 1e-16, "{start:e}");
    assert_eq!(step, 4e-11);
}

#[test]
fn iq_records_are_complex_with_twice_the_interval_of_the_numbers() {
    let Some(path) = real("tek_iq.wfm") else { return };
    let raw = std::fs::read(&path).unwrap();
    let file =
        Dataset::open(&Tektronix, Source::open(path).unwrap(), &OpenOptions::default()).unwrap();
    let (id, node, desc) = file.arrays().next().unwrap();
    assert_eq!(
        (desc.dtype.to_string().as_str(), desc.shape.lengths()),
        ("complex128", &[3625][..])
    );
    let bytes = file
        .array_at(id)
        .unwrap()
        .read_bytes(&spile_core::Selection::all(), spile_core::read::Axes::Stored)
        .unwrap();
    let value = |k: usize| f64::from_le_bytes(bytes[8 * k..8 * k + 8].try_into().unwrap());
    let number =
        |k: usize| f64::from(i16::from_le_bytes(raw[838 + 2 * k..840 + 2 * k].try_into().unwrap()));
    for k in [0, 1, 2, 3, 7248, 7249] {
        assert_eq!(value(k), 0.000_156_25 * number(k), "{k}");
    }
    // 1.25 MHz for a span of 1 MHz; the record is 2.9 ms long.
    let Coord::Uniform { start, step } = desc.coords[0] else { panic!() };
    assert!((step - 8e-7).abs() < 1e-11, "{step:e}");
    assert!((start + 3625.0 * step / 2.0).abs() < step, "{start:e}");
    assert_eq!(node.attrs.get_f64("IQ_span"), Some(1e6));
    assert_eq!(node.attrs.get_str("IQ_windowType"), Some("Blackharris"));
}
