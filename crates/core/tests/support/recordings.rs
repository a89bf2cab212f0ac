//! Golden files of digitizers and their manifest, for tests of formats. Include this file with `#[path]`.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use spile_core::format::Format;
use spile_core::layout::{ArrayDesc, Coord, Layout};
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

/// Golden files of a format, without the program that made them and its manifest.
pub(crate) fn golden_files(format: &str) -> Vec<PathBuf> {
    let mut all = files(folder(format));
    all.retain(|file| file.extension().is_none_or(|ending| ending != "py" && ending != "json"));
    all
}

/// Expected records of a file, in file order, from the manifest in its folder or that of all digitizers.
pub(crate) fn records(file: &Path) -> Vec<Expected> {
    let own = file.with_file_name("manifest.json");
    let all = manifest(if own.exists() { own } else { golden().join("digitizer/manifest.json") });
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
    /// Seconds to add to the time of each segment.
    pub(crate) offsets: Vec<f64>,
}

impl Found {
    /// The segments of an array of segments; any other array itself.
    pub(crate) fn segments(self) -> Vec<Self> {
        let [segments, samples] = *self.desc.shape.lengths() else { return vec![self] };
        if self.desc.dims[0] != "segment" {
            return vec![self];
        }
        let size = self.raw.len() / segments as usize;
        let one = |k: usize| {
            let mut desc = self.desc.clone();
            desc.shape = spile_core::Shape::new([samples]);
            (desc.dims, desc.coords) = (vec!["time".into()], vec![self.desc.coords[1].clone()]);
            Self {
                path: format!("{}[{k}]", self.path),
                desc,
                attrs: self.attrs.clone(),
                values: self.values[k * samples as usize..(k + 1) * samples as usize].to_vec(),
                raw: self.raw[k * size..(k + 1) * size].to_vec(),
                offsets: self.offsets.get(k).copied().into_iter().collect(),
            }
        };
        (0..segments as usize).map(one).collect()
    }

    pub(crate) fn grid(&self) -> (f64, f64) {
        match self.desc.coords[usize::from(self.desc.dims[0] == "segment")] {
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

/// Reads all records of an open file, without the values of segments and digital lines.
pub(crate) fn read_all(file: &Dataset) -> Vec<Found> {
    let is_stored = |layout: &Layout| {
        !matches!(layout, Layout::Computed(_)) && !matches!(layout, Layout::Inline(..))
    };
    let stored = file.tree().arrays().filter(|(.., desc)| is_stored(&desc.layout));
    let found = stored.map(|(_, node, desc)| {
        let array = file.open_array(desc).unwrap();
        let names = node.attrs.get_str("coordinates").unwrap_or_default().split(' ');
        let offsets = names.filter(|name| name.ends_with("trigger_offset"));
        let offsets =
            offsets.flat_map(|name| file.array(name).unwrap().values().unwrap()).collect();
        Found {
            offsets,
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
    check_starting(format, folder, |found| found.grid().0);
}

/// As [`check_all`]; `start` is the time of the first sample of a segment.
pub(crate) fn check_starting(format: &dyn Format, folder: &Path, start: fn(&Found) -> f64) {
    for file in golden_files(folder.file_name().unwrap().to_str().unwrap()) {
        let name = file.display();
        let found = read(format, Source::open(&file).unwrap());
        let found: Vec<Found> = found.into_iter().flat_map(Found::segments).collect();
        let expected = records(&file);
        assert_eq!(found.len(), expected.len(), "{name}: records");
        for (got, want) in found.iter().zip(&expected) {
            assert_eq!(got.desc.shape.lengths(), [want.count], "{name} {}", got.path);
            let little = got.desc.dtype.with_order(spile_core::wire::ByteOrder::Little);
            assert_eq!(little.numpy().as_deref(), Some(want.dtype.as_str()), "{name} {}", got.path);
            let grid = (start(got), got.grid().1);
            assert_eq!(grid, (want.start, want.step), "{name} {}: grid", got.path);
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

/// Compares the real files of the manifest in `../shared/real/scope` whose names `selects` accepts: number of
/// samples, grid, first values, minimum, maximum and mean of every channel. Returns how many files were compared;
/// 0 where the folder does not exist.
pub(crate) fn check_real(format: &dyn Format, selects: fn(&str) -> bool) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/scope");
    if !folder.exists() {
        println!("skipped: no real files in {}", folder.display());
        return 0;
    }
    let all = manifest(folder.join("manifest.json"));
    let mut compared = 0;
    for (name, file) in all.as_object().unwrap() {
        let Some(channels) = file["channels"].as_array().filter(|_| selects(name)) else {
            continue;
        };
        let found = read(format, Source::open(folder.join(name)).unwrap());
        assert_eq!(found.len(), channels.len(), "{name}: channels");
        for (got, want) in found.iter().zip(channels) {
            let number = |value: &Json| value.as_f64().unwrap();
            let channel = want["name"].as_str().unwrap().replace(' ', "");
            let place = format!("{name} {channel}");
            assert_eq!(got.path, channel, "{place}");
            assert_eq!(got.values.len() as u64, want["n"].as_u64().unwrap(), "{place}");
            let (start, step) = got.grid();
            close(start, number(&want["t0"]), step * 1e-3, &place);
            // The reader that wrote the manifest puts n samples on n intervals for these two series; the CSV files
            // of the instruments (DS1204B-F.csv) have the interval 1 / sample rate.
            let count = got.values.len() as f64;
            let spread = name.starts_with("DS1204B") || name.starts_with("DS1202CA");
            let step = if spread { step * count / (count - 1.0) } else { step };
            close(step, number(&want["dt"]), step * 1e-9, &place);
            let range = number(&want["max"]) - number(&want["min"]);
            let least = got.values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = got.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = got.values.iter().sum::<f64>() / count;
            let firsts = want["first"].as_array().unwrap().iter().zip(&got.values);
            let pairs = [(&want["min"], &least), (&want["max"], &greatest), (&want["mean"], &mean)];
            for (want, got) in firsts.chain(pairs) {
                close(*got, number(want), range * 1e-6, &place);
            }
        }
        compared += 1;
    }
    compared
}

fn close(found: f64, expected: f64, tolerance: f64, place: &str) {
    let near = (found - expected).abs() <= tolerance.abs();
    assert!(near, "{place}: expected {expected:e}, found {found:e}");
}
