//! MAT-files: what is written is read back in MATLAB's order, and the losses are declared.

use std::path::Path;

use spile_core::dtype::DType;
use spile_core::format::{Format, FormatWriter, Head, LossKind, write_file};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::tree::{ROOT, Tree};
use spile_core::{Dataset, Limits, OpenOptions, Source};
use spile_hdf5::{Hdf5, Mat};

fn content() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let group = tree.add_group(ROOT, "run 1").unwrap();
    let bytes: Vec<u8> = (0..6).flat_map(|k| f64::from(k).to_le_bytes()).collect();
    let matrix = Layout::Inline(bytes.clone().into(), Order::C);
    tree.add_array(ROOT, "m", ArrayDesc::new(DType::F64, Shape::new([2, 3]), matrix)).unwrap();
    let line = Layout::Inline(bytes.into(), Order::C);
    let mut trace = ArrayDesc::new(DType::F64, Shape::new([6]), line);
    trace.dims = vec!["time".into()];
    trace.coords = vec![Coord::Uniform { start: 1.0, step: 0.5 }];
    let id = tree.add_array(group, "trace", trace).unwrap();
    tree.push_attr(id, "units", "V").unwrap();
    tree.push_attr(id, "time_units", "s").unwrap();
    let empty = Layout::Inline([].into(), Order::C);
    tree.add_array(ROOT, "none", ArrayDesc::new(DType::I32, Shape::new([0, 4]), empty)).unwrap();
    Dataset::new(Source::memory([]), tree)
}

#[test]
fn variables_have_the_order_of_matlab_and_units_are_a_struct() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    write_file(&Mat, &content(), &path, Overwrite::Never).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let head = Head { bytes: &bytes[..4096.min(bytes.len())], len: bytes.len() as u64 };
    assert_eq!(Mat.probe(head), 100);
    let file = Dataset::open_path(&Mat, &path, &OpenOptions::default()).unwrap();
    let matrix = file.array("m").unwrap();
    assert_eq!(matrix.shape().lengths(), [2, 3]);
    assert_eq!(matrix.read::<Vec<f64>>("1, :").unwrap(), [3.0, 4.0, 5.0]);
    assert_eq!(file.array("none").unwrap().shape().lengths(), [0, 4]);
    assert_eq!(file.array("none").unwrap().dtype(), DType::I32);
    let times = file.array("run_1/time").unwrap();
    assert_eq!(times.shape().lengths(), [6, 1]);
    assert_eq!(times.read::<Vec<f64>>("1:3, 0").unwrap(), [1.5, 2.0]);
    for (name, unit) in [("units/run_1/trace", 'V'), ("units/run_1/time", 's')] {
        let text = file.array(name).unwrap();
        assert_eq!(text.read::<Vec<u16>>("...").unwrap(), [unit as u16], "{name}");
    }
    // As HDF5 the dimensions are reversed.
    let plain = Dataset::open_path(&Hdf5, &path, &OpenOptions::default()).unwrap();
    assert_eq!(plain.array("m").unwrap().shape().lengths(), [3, 2]);
}

#[test]
fn changed_names_and_shapes_are_declared() {
    let losses = Mat.losses(&content(), Path::new("x.mat")).unwrap();
    let has = |path: &str, kind| losses.iter().any(|loss| (&*loss.path, loss.kind) == (path, kind));
    assert!(has("run 1", LossKind::Name) && has("run 1/trace", LossKind::Name), "{losses:?}");
    assert!(!losses.iter().any(|loss| loss.path == "m" || loss.path == "none"), "{losses:?}");
}
