//! Stores written by zarr-python.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::Kind;
use spile_core::error::ErrorKind;
use spile_core::format::OpenOptions;
use spile_core::layout::{Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::semantics::Role;
use spile_core::shape::Order;
use spile_core::tree::{Attrs, Value};
use spile_zarr::Zarr;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/zarr")
}

fn digit(bits: u8) -> char {
    char::from_digit(bits.into(), 16).unwrap()
}

fn manifest() -> Json {
    serde_json::from_slice(&std::fs::read(golden().join("manifest.json")).unwrap()).unwrap()
}

fn open(name: &str) -> Dataset {
    open_within(&golden().join(name), &Limits::default())
}

fn open_within(path: &Path, limits: &Limits) -> Dataset {
    Dataset::open_path(&Zarr, path, &limits.into()).unwrap()
}

fn array(store: &Dataset, path: &str, limits: &Limits) -> Array {
    store.clone().with_limits(*limits).array(path).unwrap()
}

#[test]
fn every_array_has_the_values_of_zarr_python() {
    let mut seen = 0;
    for (name, arrays) in manifest().as_object().unwrap() {
        let store = open(name);
        for (path, expected) in arrays.as_object().unwrap() {
            // Also with a budget of little more than a chunk.
            for limits in [Limits::default(), Limits::default().with_memory(40 << 10)] {
                let array = array(&store, path, &limits);
                let array_name = format!("{name} {path}");
                let lengths: Vec<u64> = expected["shape"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|n| n.as_u64().unwrap())
                    .collect();
                assert_eq!(array.shape().lengths(), lengths, "{array_name}");
                let dtype = array.dtype().to_string();
                let dtype = dtype.trim_end_matches("-be");
                let dtype_name = match expected["dtype"].as_str().unwrap() {
                    "bool" => "bool8".to_string(),
                    "bytes40" => "text[5]".to_string(),
                    other => other.to_string(),
                };
                assert_eq!(dtype, dtype_name, "{array_name}");
                let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
                let sum: String = Sha256::digest(&bytes)
                    .iter()
                    .flat_map(|b| [b >> 4, b & 15])
                    .map(digit)
                    .collect();
                assert_eq!(Some(sum.as_str()), expected["sha256"].as_str(), "{array_name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 140, "{seen}");
}

#[test]
fn slices_equal_those_of_the_unchunked_array() {
    let limits = Limits::default();
    for name in ["v3.zarr", "v2.zarr"] {
        let store = open(name);
        let manifest = manifest();
        let unchunked = array(&store, "whole", &limits);
        let shape = unchunked.shape().clone();
        for question in ["2", ":, 3", ":, :, 5", "4:0:-2, 1:7:3, ::-1", "1:3, 2:5, 3", "0:0"] {
            let selection: Selection = question.parse().unwrap();
            for axes in [Axes::Order(Order::C), Axes::Order(Order::F), Axes::Slowest(&[1, 0, 2])] {
                let expected = unchunked.read_bytes(&selection, axes).unwrap();
                let mut seen = 0;
                for path in manifest[name].as_object().unwrap().keys() {
                    let other = array(&store, path, &limits);
                    if other.shape() == &shape {
                        assert_eq!(
                            other.read_bytes(&selection, axes).unwrap(),
                            expected,
                            "{path} {question}"
                        );
                        seen += 1;
                    }
                }
                assert!(seen > 8);
            }
        }
    }
}

#[test]
fn dimensions_coordinates_scaling_and_attributes_are_read() {
    for name in ["v3.zarr", "v2.zarr"] {
        let store = open(name);
        let tree = store.tree();
        let time = tree.find("time").unwrap();
        let node = tree.node(tree.find("T").unwrap());
        let array = node.array.as_ref().unwrap();
        assert_eq!(array.dims, ["time", "x"]);
        assert_eq!(array.coords, [Coord::Node(time), Coord::None]);
        assert_eq!(array.semantics().role, Role::Field);
        let attr = |name: &str| tree.attrs().get(name).cloned();
        assert_eq!(attr("title"), Some("golden".into()));
        assert_eq!(attr("count"), Some(Value::UInt(3)));
        assert_eq!(attr("ratio"), Some(Value::Float(0.5)));
        assert_eq!(attr("list"), Some(Value::List(vec![Value::UInt(1), Value::UInt(2)])));
        if name == "v3.zarr" {
            assert_eq!(node.attrs, Attrs::from([("units", "K".into())]));
            let values = self::array(&store, "T", &Limits::default());
            let stored = values.read_bytes(&Selection::all(), Axes::Stored).unwrap();
            let first = f64::from(convert::decode::<i16>(&stored)[1]);
            let scaled = values.read_f64(&"0, 1".parse().unwrap(), Axes::Stored).unwrap();
            assert_eq!(scaled, [first * 0.5 + 10.0]);
            // Strings of variable length become text of the longest length.
            assert_eq!(store.warnings(), []);
            assert_eq!(self::array(&store, "words", &Limits::default()).dtype().kind(), Kind::Text);
        }
    }
}

#[test]
fn files_that_are_slabs_have_a_contiguous_layout() {
    for (name, path, order) in [
        ("v3.zarr", "slabs", Order::C),
        ("v3.zarr", "fortran", Order::F),
        ("v2.zarr", "whole", Order::C),
        ("v2.zarr", "fortran_plain", Order::F),
        ("v2.zarr", "none", Order::C),
    ] {
        let store = open(name);
        let tree = store.tree();
        let array = tree.node(tree.find(path).unwrap()).array.as_ref().unwrap();
        assert!(
            matches!(array.layout, Layout::Plain { order: own, .. } if own == order),
            "{path}: {:?}",
            array.layout
        );
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Reads all arrays and returns the kinds of errors and of skipped arrays.
fn exercise(path: &Path) -> Vec<ErrorKind> {
    let limits = Limits::default().with_memory(64 << 20);
    let mut kinds = Vec::new();
    match Dataset::open_path(&Zarr, path, &OpenOptions::with_limits(limits)) {
        Err(e) => kinds.push(e.kind()),
        Ok(store) => {
            for (_, _, desc) in store.tree().arrays() {
                let read =
                    store.open_array(desc).and_then(|array| array.all()?.stream(|_, _| Ok(())));
                kinds.extend(read.err().map(|e| e.kind()));
            }
        }
    }
    kinds
}

#[test]
fn damaged_files_are_errors_of_their_array_only() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("x.zarr");
    std::fs::create_dir(&store).unwrap();
    let from = golden().join("v3.zarr");
    std::fs::copy(from.join("zarr.json"), store.join("zarr.json")).unwrap();
    let mut errors = 0;
    for name in ["plain", "slabs", "zstd", "gzip", "crc32c", "sharded", "sharded_plain", "blosc"] {
        copy(&from.join(name), &store.join(name));
        let mut files = Vec::new();
        all(&store.join(name), &mut files);
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let mut number = 7_usize;
            for k in 0..12 {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (number >> 33) % bytes.len();
                let mut bad = bytes.clone();
                if k % 2 == 0 {
                    bad[at] ^= 1 << (k / 2);
                } else {
                    bad.truncate(at);
                }
                std::fs::write(&file, &bad).unwrap();
                errors += exercise(&store).len();
            }
            std::fs::write(&file, &bytes).unwrap();
        }
        assert!(exercise(&store).is_empty(), "{name}");
        std::fs::remove_dir_all(store.join(name)).unwrap();
    }
    assert!(errors > 200, "{errors}");
}

fn all(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all(&path, found) } else { found.push(path) }
    }
}

#[test]
fn excessive_sizes_in_metadata_allocate_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("x.zarr");
    std::fs::create_dir(&store).unwrap();
    let array = |shape: &str, chunk: &str, codecs: &str| {
        format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "float64",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {chunk}}}}},
            "chunk_key_encoding": {{"name": "default"}}, "fill_value": 0, "codecs": {codecs}}}"#
        )
    };
    let bytes = r#"[{"name": "bytes"}]"#;
    let shard = r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [1],
        "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes"}]}}]"#;
    let zstd = r#"[{"name": "bytes"}, {"name": "zstd"}]"#;
    for (shape, chunk, codecs) in [
        ("[4611686018427387904, 16]", "[1, 1]", bytes),
        ("[10]", "[0]", bytes),
        ("[10]", "[1, 2]", bytes),
        ("[-1]", "[1]", bytes),
        ("[10]", "[9000000000000000000]", bytes),
        ("[10]", "[100000000000]", zstd),
        ("[1000000000000]", "[1000000000000]", shard),
        ("[10]", "[10]", "[]"),
        (
            "[10]",
            "[10]",
            r#"[{"name": "transpose", "configuration": {"order": [1]}}, {"name": "bytes"}]"#,
        ),
        (
            "[2, 2]",
            "[2, 2]",
            r#"[{"name": "transpose", "configuration": {"order": [0, 0]}}, {"name": "bytes"}]"#,
        ),
    ] {
        std::fs::write(store.join("zarr.json"), array(shape, chunk, codecs)).unwrap();
        std::fs::create_dir_all(store.join("c")).unwrap();
        std::fs::write(store.join("c/0"), [0; 100]).unwrap();
        assert_eq!(exercise(&store).len(), 1, "{shape} in {chunk}, {codecs}");
    }
    // Chunks that do not exist are the fill value.
    std::fs::write(store.join("zarr.json"), array("[1000000000000]", "[7]", bytes)).unwrap();
    let store = open_within(&store, &Limits::default());
    let values = self::array(&store, "data", &Limits::default());
    assert_eq!(values.read_f64(&"999999999999".parse().unwrap(), Axes::Stored).unwrap(), [0.0]);
    for text in ["", "[]", "{}", "{\"zarr_format\": 2}", "{\"zarr_format\": 3, \"node_type\": 1}"] {
        std::fs::write(temp.path().join("x.zarr/zarr.json"), text).unwrap();
        assert_eq!(exercise(&temp.path().join("x.zarr")), [ErrorKind::Malformed], "{text}");
    }
}
