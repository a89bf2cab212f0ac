//! An index points to the bytes of the original: what it says of every array is what spile reads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use spile::dtype::{DType, Kind};
use spile::read::Axes;
use spile::select::Selection;
use spile::shape::Order;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

/// The bytes of all chunks of an array, in the order of the slowest index.
fn bytes(refs: &HashMap<String, Json>, path: &str, chunks: &[u64], shape: &[u64]) -> Vec<u8> {
    let cut = (0..shape.len()).find(|k| chunks[*k] != shape[*k].max(1)).unwrap_or(0);
    let count = shape.get(cut).map_or(1, |n| n.div_ceil(chunks[cut]));
    let mut all = Vec::new();
    for number in 0..if shape.contains(&0) { 0 } else { count } {
        let index = |k: usize| if k == cut { number } else { 0 };
        let key: Vec<String> = (0..shape.len().max(1)).map(|k| index(k).to_string()).collect();
        match &refs[&format!("{path}/{}", key.join("."))] {
            Json::Array(place) => {
                let file = std::fs::read(place[0].as_str().unwrap()).unwrap();
                let (at, len) = (place[1].as_u64().unwrap(), place[2].as_u64().unwrap());
                all.extend_from_slice(&file[at as usize..(at + len) as usize]);
            }
            Json::String(text) => {
                let text = text.strip_prefix("base64:").unwrap();
                all.extend(unbase64(text));
            }
            other => panic!("{other}"),
        }
    }
    all
}

fn unbase64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for byte in text.bytes().filter(|b| *b != b'=') {
        bits = bits << 6 | letters.iter().position(|l| *l == byte).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

#[test]
fn every_array_of_an_index_is_the_one_that_spile_reads() {
    let (mut seen, mut ranges) = (0, 0);
    for name in [
        "sdf/epoch2d_4ranks_id4_0001.sdf",
        "sdf/hand_bigendian_all.sdf",
        "scda/a_basic.scd",
        "iotk/be/types.dat",
        "iotk/subrec/subrec.dat",
        "gsd/py-5.0.1/fl_all_dtypes.gsd",
        "taf/good/big_100003x3_u8.taf",
    ] {
        let opened = spile::open(golden(name)).unwrap();
        let reader = &opened;
        let index = spile_ops::index(reader).unwrap();
        let mut text = Vec::new();
        index.write(&mut text).unwrap();
        let document: Json = serde_json::from_slice(&text).unwrap();
        assert_eq!(document["version"], 1);
        let refs = document["refs"].as_object().unwrap().clone();
        let refs: HashMap<String, Json> = refs.into_iter().collect();
        for (_, node, desc) in reader.tree().arrays() {
            // Points of dimensions are somewhere else, frames have a dimension more.
            let Some(meta) = refs.get(&format!("{}/.zarray", node.path)) else { continue };
            let Ok(array) = reader.open_array(desc) else {
                continue;
            };
            let meta: Json = serde_json::from_str(meta.as_str().unwrap()).unwrap();
            let lengths = |name: &str| -> Vec<u64> {
                meta[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
            };
            assert_eq!(lengths("shape"), array.shape().lengths(), "{name} {}", node.path);
            assert_eq!(meta["fill_value"], Json::Null);
            let mut found = bytes(&refs, &node.path, &lengths("chunks"), array.shape().lengths());
            let dtype = DType::from_numpy(meta["dtype"].as_str().unwrap()).unwrap();
            spile::convert::to_little(dtype, &mut found);
            let order = if meta["order"] == "F" { Order::F } else { Order::C };
            let wanted = array.read_bytes(&Selection::all(), Axes::Order(order)).unwrap();
            assert!(found == wanted, "{name} {}", node.path);
            let alike = dtype.kind() == array.dtype().kind();
            assert!(alike || matches!(array.dtype().kind(), Kind::Bool | Kind::Opaque), "{dtype}");
            seen += 1;
        }
        ranges += refs.values().filter(|place| place.is_array()).count();
        for left in &index.left_out {
            assert!(left.why.contains("Zarr has no"), "{name} {}: {}", left.path, left.why);
        }
    }
    assert!(seen > 100 && ranges > 100, "{seen} arrays, {ranges} ranges");
}

/// The values of a column of a table.
fn column(table: &Path, name: &str) -> Option<Vec<u8>> {
    let opened = spile::open(table).unwrap();
    let tree = opened.tree();
    let desc = tree.node(tree.find(name).ok()?).array.clone().unwrap();
    let array = opened.open_array(&desc).unwrap();
    Some(array.read_bytes(&Selection::all(), Axes::Stored).unwrap())
}

#[test]
fn tables_say_the_same_as_the_json() {
    let temp = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
        command.args(words).current_dir(temp.path()).output().unwrap()
    };
    let file = golden("gsd/py-5.0.1/hoomd_many_frames.gsd");
    let file = file.to_str().unwrap();
    assert!(run(&["index", file, "refs.json"]).status.success());
    assert!(run(&["index", file, "refs.parq", "--parquet"]).status.success());
    let json = std::fs::read(temp.path().join("refs.json")).unwrap();
    let refs: Json = serde_json::from_slice(&json).unwrap();
    let refs = refs["refs"].as_object().unwrap();
    let folder = temp.path().join("refs.parq");
    let documents = std::fs::read(folder.join(".zmetadata")).unwrap();
    let documents: Json = serde_json::from_slice(&documents).unwrap();
    assert!(documents["record_size"].as_u64().unwrap() > 1000);
    let (mut ranges, mut inside) = (0, 0);
    for (key, said) in refs {
        if key == ".zmetadata" {
            continue;
        }
        if let Some(document) = documents["metadata"].get(key) {
            assert_eq!(document.to_string(), said.as_str().unwrap());
            continue;
        }
        let (path, chunk) = key.rsplit_once('/').unwrap();
        let row: usize = chunk.split('.').map(|n| n.parse::<usize>().unwrap()).sum();
        let table = folder.join(path).join("refs.0.parq");
        if let Json::String(text) = said {
            let text = text.strip_prefix("base64:").unwrap();
            assert_eq!(column(&table, "raw").unwrap(), unbase64(text), "{key}");
            inside += 1;
            continue;
        }
        let number = |name: &str| {
            let all = column(&table, name).unwrap();
            u64::from_le_bytes(all[8 * row..8 * row + 8].try_into().unwrap())
        };
        assert_eq!(said, &serde_json::json!([file, number("offset"), number("size")]), "{key}");
        ranges += 1;
    }
    assert!(ranges > 10 && inside > 0, "{ranges} ranges, {inside} inside");
    // A folder of something else is not replaced.
    std::fs::create_dir(temp.path().join("mine")).unwrap();
    std::fs::write(temp.path().join("mine/file"), "x").unwrap();
    let refused = run(&["index", file, "mine", "--parquet", "--overwrite"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not replaced"), "{refused:?}");
    assert!(temp.path().join("mine/file").exists());
    assert!(run(&["index", file, "refs.parq", "--parquet", "--overwrite"]).status.success());
}
