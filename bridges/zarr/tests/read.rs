//! Stores that are written by hand: structures, strings, filters, zip archives, links, sparse grids.

use std::path::Path;

use serde_json::json;
use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::format::OpenOptions;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::source::Source;
use spile_core::tree::Value;
use spile_zarr::Zarr;

fn open(path: &Path) -> Dataset {
    Dataset::open_path(&Zarr, path, &OpenOptions::default()).unwrap()
}

fn bytes(store: &Dataset, path: &str) -> Vec<u8> {
    store.array(path).unwrap().read_bytes(&Selection::all(), Axes::Stored).unwrap()
}

/// An array of version 2 without compression; `changes` replaces fields of the metadata.
fn array_2(folder: &Path, dtype: &serde_json::Value, changes: &serde_json::Value, chunk: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    let mut meta = json!({
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": dtype, "order": "C",
        "fill_value": null, "filters": null, "compressor": null,
    });
    meta.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    std::fs::write(folder.join(".zarray"), meta.to_string()).unwrap();
    std::fs::write(folder.join("0"), chunk).unwrap();
}

fn group_2(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
}

#[test]
fn structured_elements_are_one_array_per_field() {
    let temp = tempfile::tempdir().unwrap();
    group_2(temp.path());
    let dtype = json!([
        ["a", "<i2"],
        ["in", [["b", "|u1"], ["c", ">u2"]]],
        ["v", "|u1", [2]],
        ["u", "<U1"]
    ]);
    let record = |k: u8| [k, 0, k + 10, 0, k + 20, k + 30, k + 40, 0xe9, 0, 0, 0];
    array_2(&temp.path().join("s"), &dtype, &json!({}), &[record(1), record(2)].concat());
    let store = open(temp.path());
    assert_eq!(store.warnings(), []);
    assert_eq!(bytes(&store, "s/a"), [1, 0, 2, 0]);
    assert_eq!(bytes(&store, "s/in/b"), [11, 12]);
    assert_eq!(bytes(&store, "s/in/c"), [21, 0, 22, 0]);
    assert_eq!(store.array("s/v").unwrap().shape().lengths(), [2, 2]);
    assert_eq!(bytes(&store, "s/v"), [31, 41, 32, 42]);
    assert_eq!(bytes(&store, "s/u"), "é\0\0é\0\0".as_bytes());
}

#[test]
fn strings_of_variable_length_become_text() {
    let temp = tempfile::tempdir().unwrap();
    group_2(temp.path());
    let chunk = b"\x02\0\0\0\x03\0\0\0abc\0\0\0\0";
    let utf8 = json!({ "filters": [{ "id": "vlen-utf8" }] });
    let raw = json!({ "filters": [{ "id": "vlen-bytes" }] });
    array_2(&temp.path().join("text"), &json!("|O"), &utf8, chunk);
    array_2(&temp.path().join("short"), &json!("|O"), &utf8, &chunk[..9]);
    array_2(&temp.path().join("nul"), &json!("|O"), &raw, b"\x02\0\0\0\x01\0\0\0\0\0\0\0\0");
    array_2(
        &temp.path().join("pickle"),
        &json!("|O"),
        &json!({ "filters": [{ "id": "pickle" }] }),
        b"",
    );
    let store = open(temp.path());
    assert_eq!(bytes(&store, "text"), b"abc\0\0\0");
    let refused: Vec<_> =
        store.warnings().iter().map(|f| (f.object.as_deref().unwrap(), f.code)).collect();
    let expected = [("\"nul\"", "zarr-003"), ("\"pickle\"", "zarr-003"), ("\"short\"", "zarr-005")];
    let mut refused = refused.clone();
    refused.sort_unstable();
    assert_eq!(refused, expected);
}

#[test]
fn dates_have_units_and_missing_values() {
    let temp = tempfile::tempdir().unwrap();
    group_2(temp.path());
    let values = [5_i64, i64::MIN].map(i64::to_le_bytes).concat();
    array_2(&temp.path().join("t"), &json!("<M8[25ms]"), &json!({}), &values);
    let store = open(temp.path());
    let array = store.array("t").unwrap();
    // xarray decodes no multiples of units.
    let units = Value::from("milliseconds since 1970-01-01");
    assert_eq!(array.attrs().get("units"), Some(&units));
    let read: Vec<f64> = array.read("").unwrap();
    assert!(read[0] == 125.0 && read[1].is_nan());
}

#[test]
fn the_fill_value_of_xarray_in_version_2_is_missing() {
    let temp = tempfile::tempdir().unwrap();
    group_2(temp.path());
    for (name, fill) in [("xarray", -9), ("plain", -9), ("zero", 0)] {
        let folder = temp.path().join(name);
        array_2(&folder, &json!("|i1"), &json!({ "fill_value": fill }), &[1, fill as u8]);
        std::fs::write(folder.join(".zattrs"), "{\"nan\": NaN, \"text\": \"a NaN \\\" \"}")
            .unwrap();
    }
    let dims = "{\"_ARRAY_DIMENSIONS\": [\"x\"]}";
    for name in ["xarray", "zero"] {
        std::fs::write(temp.path().join(name).join(".zattrs"), dims).unwrap();
    }
    let store = open(temp.path());
    let read: Vec<f64> = store.array("xarray").unwrap().read("").unwrap();
    assert!(read[0] == 1.0 && read[1].is_nan());
    assert_eq!(store.array("zero").unwrap().read::<Vec<f64>>("").unwrap(), [1.0, 0.0]);
    let plain = store.array("plain").unwrap();
    assert_eq!(plain.read::<Vec<f64>>("").unwrap(), [1.0, -9.0]);
    assert!(plain.attrs().get_f64("nan").unwrap().is_nan());
    assert_eq!(plain.attrs().get_str("text"), Some("a NaN \" "));
}

/// A zip archive of stored members.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let offset = out.len() as u32;
        let len = (content.len() as u32).to_le_bytes();
        let sizes = [[0; 12].as_slice(), &len, &len, &(name.len() as u16).to_le_bytes()].concat();
        out.extend([b"PK\x03\x04\x14\0".as_slice(), &[0; 8], &sizes[8..], &[0; 2]].concat());
        out.extend([name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\x14\0\x14\0".as_slice(), &[0; 8], &sizes[8..]].concat());
        directory.extend([[0; 12].as_slice(), &offset.to_le_bytes(), name.as_bytes()].concat());
    }
    let (start, len) = (out.len() as u32, directory.len() as u32);
    let count = (members.len() as u16).to_le_bytes();
    out.extend(directory);
    out.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count].concat());
    out.extend([len.to_le_bytes().as_slice(), &start.to_le_bytes(), &[0; 2]].concat());
    out
}

#[test]
fn stores_in_zip_archives_are_byte_ranges() {
    let meta = json!({
        "zarr_format": 2, "shape": [2, 3], "chunks": [1, 3], "dtype": "|u1", "order": "C",
        "fill_value": 7, "filters": null, "compressor": null,
    });
    let meta = meta.to_string();
    let group = br#"{"zarr_format": 2}"#;
    let members: [(&str, &[u8]); 3] =
        [("x/.zgroup", group), ("x/a/.zarray", meta.as_bytes()), ("x/a/1.0", &[1, 2, 3])];
    let good = archive(&members);
    let open = |bytes: &[u8]| Dataset::open(&Zarr, Source::memory(bytes), &OpenOptions::default());
    assert_eq!(bytes(&open(&good).unwrap(), "a"), [7, 7, 7, 1, 2, 3]);
    let escaping = archive(&[("x/.zgroup", group), ("x/../../secret", b"")]);
    assert_eq!(open(&escaping).err().unwrap().code(), "zarr-010");
    assert_eq!(open(&archive(&[("a.txt", b"")])).err().unwrap().kind(), ErrorKind::NotThisFormat);
    for len in 0..good.len() {
        if let Ok(store) = open(&good[..len]) {
            panic!("{len}: {:?}", store.warnings());
        }
    }
    for k in 0..good.len() {
        let mut bad = good.clone();
        bad[k] ^= 0x55;
        if let Ok(store) = open(&bad) {
            for (id, ..) in store.arrays() {
                let _ =
                    store.array_at(id).and_then(|a| a.read_bytes(&Selection::all(), Axes::Stored));
            }
        }
    }
}

#[test]
fn links_out_of_the_store_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let store = temp.path().join("x.zarr");
    group_2(&store);
    for name in ["good", "inside", "outside"] {
        array_2(&store.join(name), &json!("|u1"), &json!({}), &[1, 2]);
    }
    std::fs::write(temp.path().join("secret"), [8, 9]).unwrap();
    let relink = |target: &Path, name: &str| {
        std::fs::remove_file(store.join(name)).unwrap();
        std::os::unix::fs::symlink(target, store.join(name)).unwrap();
    };
    relink(&store.join("good/0"), "inside/0");
    relink(Path::new("../../secret"), "outside/0");
    std::os::unix::fs::symlink(temp.path(), store.join("loop")).unwrap();
    let opened = open(&store);
    assert_eq!((bytes(&opened, "good"), bytes(&opened, "inside")), (vec![1, 2], vec![1, 2]));
    let mut refused: Vec<_> =
        opened.warnings().iter().map(|f| (f.object.as_deref().unwrap(), f.code)).collect();
    refused.sort_unstable();
    assert_eq!(refused, [("\"loop\"", "zarr-010"), ("\"outside\"", "zarr-010")]);
}

#[test]
fn grids_that_exist_only_in_the_metadata_are_limited() {
    let temp = tempfile::tempdir().unwrap();
    group_2(temp.path());
    for (name, chunk) in [("small", 1), ("medium", 1 << 20), ("large", 1_u64 << 40)] {
        let huge = json!({ "shape": [1_u64 << 40], "chunks": [chunk], "fill_value": 7 });
        array_2(&temp.path().join(name), &json!("|u1"), &huge, &[1]);
        if chunk > 1 {
            std::fs::remove_file(temp.path().join(name).join("0")).unwrap();
        }
    }
    let store = open(temp.path());
    let start = std::time::Instant::now();
    for (name, first) in [("small", 1), ("medium", 7), ("large", 7)] {
        let array = store.array(name).unwrap();
        let ends = array.read_bytes(&"::1099511627775".parse().unwrap(), Axes::Stored).unwrap();
        assert_eq!(ends, [first, 7]);
        assert_eq!(array.all().err().unwrap().kind(), ErrorKind::Limit, "{name}");
    }
    // Many chunks that are not stored are read if the values are not too many.
    let array = store.array("medium").unwrap();
    let part = array.read_bytes(&"1048570:5242880".parse().unwrap(), Axes::Stored).unwrap();
    assert!(part.len() == (4 << 20) + 6 && part.iter().all(|value| *value == 7));
    assert!(start.elapsed().as_secs() < 5);
}
