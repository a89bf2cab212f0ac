//! Golden files of digitizers and their manifest, for tests of formats. Include this file with `#[path]`.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use spile_core::format::Format;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::testkit::{Json, files, manifest};
use spile_core::tree::Attrs;
use spile_core::{Dataset, OpenOptions};

/// Expected record, from the manifest.
pub(crate) struct Expected {
    pub(crate) count: u64,
    /// NumPy type string, little-endian.
    pub(crate) dtype: String,
    pub(crate) start: f64,
    pub(crate) step: f64,
    pub(crate) sha256_raw: String,
    pub(crate) sha256_values: String,
}

/// Folder of the golden files of a format.
pub(crate) fn folder(format: &str) -> PathBuf {
    golden().join(format)
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// Expected records of a file, in file order.
pub(crate) fn records(file: &Path) -> Vec<Expected> {
    let all = manifest(golden().join("digitizer/manifest.json"));
    let text = |record: &Json, name: &str| record[name].as_str().unwrap().to_string();
    let name = file.file_name().unwrap().to_str().unwrap();
    let records = all[name]["records"].as_array().unwrap_or_else(|| panic!("{name}: no records"));
    let one = |record: &Json| Expected {
        count: record["n"].as_u64().unwrap(),
        dtype: text(record, "raw_dtype"),
        start: text(record, "x0").parse().unwrap(),
        step: text(record, "dx").parse().unwrap(),
        sha256_raw: text(record, "sha256_raw_le"),
        sha256_values: text(record, "sha256_y_f64le"),
    };
    records.iter().map(one).collect()
}

/// A record as read.
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) desc: ArrayDesc,
    pub(crate) attrs: Attrs,
    pub(crate) values: Vec<f64>,
    pub(crate) raw: Vec<u8>,
}

impl Found {
    pub(crate) fn grid(&self) -> (f64, f64) {
        match self.desc.coords[0] {
            Coord::Uniform { start, step } => (start, step),
            ref other => panic!("{}: {other:?}", self.path),
        }
    }

    pub(crate) fn attr(&self, name: &str) -> Option<String> {
        self.attrs.get(name).map(ToString::to_string)
    }
}

/// Reads all records of a file.
pub(crate) fn read(format: &dyn Format, source: Source) -> Vec<Found> {
    read_all(&Dataset::open(format, source, &OpenOptions::default()).unwrap())
}

/// Reads all records of an open file.
pub(crate) fn read_all(file: &Dataset) -> Vec<Found> {
    let found = file.tree().arrays().map(|(_, node, desc)| {
        let array = file.open_array(desc).unwrap();
        Found {
            path: node.path.clone(),
            desc: desc.clone(),
            attrs: node.attrs.clone(),
            values: array.read_f64(&Selection::all(), Axes::Stored).unwrap(),
            raw: array.read_bytes(&Selection::all(), Axes::Stored).unwrap(),
        }
    });
    found.collect()
}

/// Compares samples, counts, types, grids and values of all golden files, bit for bit.
pub(crate) fn check_all(format: &dyn Format, folder: &Path) {
    for file in files(folder) {
        let name = file.display();
        let found = read(format, Source::open(&file).unwrap());
        let expected = records(&file);
        assert_eq!(found.len(), expected.len(), "{name}: records");
        for (got, want) in found.iter().zip(&expected) {
            assert_eq!(got.desc.shape.lengths(), [want.count], "{name} {}", got.path);
            let little = got.desc.dtype.with_order(spile_core::wire::ByteOrder::Little);
            assert_eq!(little.numpy().as_deref(), Some(want.dtype.as_str()), "{name} {}", got.path);
            assert_eq!(got.grid(), (want.start, want.step), "{name} {}: grid", got.path);
            assert_eq!(sha256(&got.raw), want.sha256_raw, "{name} {}: samples", got.path);
            assert_eq!(sha256_of(&got.values), want.sha256_values, "{name} {}: values", got.path);
        }
    }
}

pub(crate) fn sha256_of(values: &[f64]) -> String {
    sha256(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
