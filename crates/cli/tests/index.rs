//! An index points to the bytes of the original: what it says of every array is what spile reads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use spile::dtype::{DType, Kind};
use spile::limits::Limits;
use spile::read::{Array, Axes};
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
    let limits = Limits::default();
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
        let opened = spile::open(golden(name), &limits).unwrap();
        let reader = &*opened.reader;
        let index = spile_ops::index(reader, &limits).unwrap();
        let mut text = Vec::new();
        index.write(&mut text).unwrap();
        let document: Json = serde_json::from_slice(&text).unwrap();
        assert_eq!(document["version"], 1);
        let refs = document["refs"].as_object().unwrap().clone();
        let refs: HashMap<String, Json> = refs.into_iter().collect();
        for (_, node, desc) in reader.tree().arrays() {
            // Points of dimensions are somewhere else, frames have a dimension more.
            let Some(meta) = refs.get(&format!("{}/.zarray", node.path)) else { continue };
            let Ok(array) = Array::open(reader.source(), reader.tree(), desc, &limits) else {
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
            let wanted = array.read(&Selection::all(), Axes::Order(order)).unwrap();
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
