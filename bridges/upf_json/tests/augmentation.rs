//! Augmentation functions of ultrasoft pseudopotentials that have one function per pair of projectors.

use std::path::Path;

use spile_core::format::{FormatWriter, WriteOptions};
use spile_core::{
    ArrayDesc, Attrs, DType, Dataset, Limits, NodeId, Overwrite, ROOT, Shape, Sink, Source, Tree,
    Value,
};
use spile_upf_json::UpfJson;

const RADII: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
const JOINT: [f64; 4] = [7.0, 8.0, 9.0, 10.0];

/// Radii of the angular momenta 0, 1, 2 below which a polynomial applies.
const INNER: [f64; 3] = [0.4, 0.75, 1.5];

/// The coefficients of `r^(2 n)` of an angular momentum and a pair of projectors.
fn coefficient(n: usize, l: usize, i: usize, j: usize) -> f64 {
    1.0 + n as f64 + 10.0 * l as f64 + 100.0 * (i + j) as f64
}

fn add(tree: &mut Tree, group: NodeId, name: &str, values: &[f64]) -> NodeId {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let desc = ArrayDesc::inline(DType::F64, Shape::new([values.len() as u64]), bytes);
    tree.add_array(group, name, desc).unwrap()
}

/// Two projectors with the angular momenta 0 and 1.
fn pseudopotential(terms: usize) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let root = tree.add_group(ROOT, "UPF").unwrap();
    let header = tree.add_group(root, "PP_HEADER").unwrap();
    let attrs = Attrs::from([
        ("element", Value::from("Si")),
        ("pseudo_type", "US".into()),
        ("is_ultrasoft", Value::Bool(true)),
        ("number_of_proj", Value::UInt(2)),
    ]);
    tree.set_attrs(header, attrs).unwrap();
    let mesh = tree.add_group(root, "PP_MESH").unwrap();
    add(&mut tree, mesh, "PP_R", &RADII);
    for name in ["PP_LOCAL", "PP_RHOATOM"] {
        add(&mut tree, root, name, &JOINT);
    }
    let nonlocal = tree.add_group(root, "PP_NONLOCAL").unwrap();
    for l in 0..2_u64 {
        let id = add(&mut tree, nonlocal, &format!("PP_BETA.{}", l + 1), &JOINT);
        tree.push_attr(id, "angular_momentum", l).unwrap();
    }
    let group = tree.add_group(nonlocal, "PP_AUGMENTATION").unwrap();
    tree.push_attr(group, "nqf", terms as u64).unwrap();
    for name in ["PP_QIJ.1.1", "PP_QIJ.1.2", "PP_QIJ.2.2"] {
        add(&mut tree, group, name, &JOINT);
    }
    let mut all = Vec::new();
    for (j, i) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        all.extend((0..3).flat_map(|l| (0..terms).map(move |n| coefficient(n, l, i, j))));
    }
    add(&mut tree, group, "PP_QFCOEF", &all);
    add(&mut tree, group, "PP_RINNER", &INNER);
    Dataset::new(Source::memory(Vec::new()), tree)
}

/// The functions of a file: projectors, angular momentum, values.
fn functions(content: &Dataset) -> Vec<(u64, u64, u64, Vec<f64>)> {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.json");
    assert!(
        UpfJson
            .losses(content, Path::new("x.json"))
            .unwrap()
            .iter()
            .all(|loss| { loss.path != "UPF/PP_NONLOCAL/PP_AUGMENTATION/PP_QIJ.1.2" })
    );
    let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
    UpfJson.write(content, &mut sink, &WriteOptions::default()).unwrap();
    sink.commit().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let list = document["pseudo_potential"]["augmentation"].as_array().unwrap().clone();
    let number = |item: &serde_json::Value, key: &str| item[key].as_u64().unwrap();
    let values = |item: &serde_json::Value| {
        let list = item["radial_function"].as_array().unwrap();
        list.iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let one = |item| {
        (number(item, "i"), number(item, "j"), number(item, "angular_momentum"), values(item))
    };
    list.iter().map(one).collect()
}

#[test]
fn functions_of_a_pair_have_a_polynomial_at_small_radii() {
    let found = functions(&pseudopotential(2));
    let keys: Vec<(u64, u64, u64)> = found.iter().map(|(i, j, l, _)| (*i, *j, *l)).collect();
    assert_eq!(keys, [(0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 1, 2)]);
    for (i, j, l, values) in found {
        let [i, j, l] = [i, j, l].map(|n| usize::try_from(n).unwrap());
        for ((r, joint), value) in RADII.into_iter().zip(JOINT).zip(values) {
            let [first, second] = [0, 1].map(|n| coefficient(n, l, i, j));
            let below = (first + second * r * r) * r.powf(l as f64 + 2.0);
            assert_eq!(value, if r < INNER[l] { below } else { joint }, "{i} {j} {l} {r}");
        }
    }
}

#[test]
fn functions_without_a_polynomial_are_written_for_each_angular_momentum() {
    let found = functions(&pseudopotential(0));
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|(_, _, _, values)| *values == JOINT));
}
