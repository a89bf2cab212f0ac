//! Tables of all types, with frames and special values, are read back with the same values.

use std::sync::Arc;

use proptest::prelude::*;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{ErrorKind, Result};
use spile_core::format::write_file;
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::tree::{Attrs, ROOT, Tree};
use spile_csv::Csv;

fn open(source: Source, limits: &Limits) -> Result<Dataset> {
    Dataset::open(&Csv, source, &limits.into())
}

fn written(content: &Dataset) -> (String, Dataset) {
    let limits = Limits::default();
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.csv");
    write_file(&Csv, content, &path, Overwrite::Never).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    (text.clone(), open(Source::memory(text), &limits).unwrap())
}

/// All values of an array as CSV has them: integers in 64 bits, numbers in float64, text without padding. NaN
/// payloads are ignored.
fn values(file: &Dataset, path: &str, frame: u64) -> Option<(Kind, Shape, Vec<String>)> {
    let node = file.tree().node(file.tree().find(path).unwrap());
    let desc = node.array.as_ref().unwrap();
    let array = file.open_array_in_frame(desc, frame).unwrap()?;
    let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C)).unwrap();
    let dtype = array.dtype();
    let text = |element: &[u8]| {
        let mut text = String::new();
        match dtype.kind() {
            Kind::Float => {
                let number = convert::element_f64(dtype, element);
                let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
                text = format!("{bits:x}");
            }
            _ => convert::write_element(dtype, element, &mut text),
        }
        text
    };
    let kind = match dtype.kind() {
        // Without rows there is nothing to infer a type from.
        _ if array.shape().count().unwrap() == 0 => Kind::Float,
        Kind::UInt => Kind::Int,
        kind => kind,
    };
    let elements = bytes.chunks_exact(dtype.size().max(1)).map(text).collect();
    Some((kind, array.shape().clone(), elements))
}

fn inline(dtype: DType, shape: &[u64], bytes: Vec<u8>) -> ArrayDesc {
    ArrayDesc::new(dtype, Shape::new(shape), Layout::Inline(bytes.into(), Order::C))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_type_round_trips(rows in 0_u64..40, seed in any::<u64>()) {
        let limits = Limits::default();
        let mut tree = Tree::new(&limits);
        let mut state = seed | 1;
        let mut noise = move |n: u64| -> Vec<u8> {
            let byte = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            (0..n).map(byte).collect()
        };
        let types = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64"];
        for name in types {
            let dtype: DType = name.parse().unwrap();
            let bytes = noise(rows * dtype.size() as u64);
            tree.add_array(ROOT, name, inline(dtype, &[rows], bytes)).unwrap();
        }
        let floats: Vec<u8> = noise(rows * 3).iter().flat_map(|b| (f32::from(*b) / 7.0).to_le_bytes()).collect();
        tree.add_array(ROOT, "v (odd)", inline(DType::F32, &[rows, 3], floats)).unwrap();
        let bools: Vec<u8> = noise(rows).iter().map(|b| b & 1).collect();
        tree.add_array(ROOT, "ok", inline("bool8".parse().unwrap(), &[rows], bools)).unwrap();
        let letters = b"a,\"\n x\0\0";
        let texts: Vec<u8> = (0..rows as usize).flat_map(|k| {
            let mut text = letters[k % 6..6].to_vec();
            text.resize(6, 0);
            text
        }).collect();
        tree.add_array(ROOT, "step", inline(DType::text(6), &[rows], texts)).unwrap();
        let content = Dataset::new(Source::memory([]), tree);
        let (text, back) = written(&content);
        for (_, node, _) in content.tree().arrays() {
            prop_assert_eq!(values(&content, &node.path, 0), values(&back, &node.path, 0), "{}\n{}", node.path, text);
        }
    }

    #[test]
    fn frames_round_trip(lengths in proptest::collection::vec(0_u64..4, 1..10)) {
        let limits = Limits::default();
        let mut tree = Tree::new(&limits);
        let frames = |dtype: DType, width: u64, absent: u64| {
            let cell = |(k, rows): (usize, &u64)| {
                let bytes: Vec<u8> = (0..rows * width * dtype.size() as u64).map(|b| (b * 29) as u8 % 100 + k as u8).collect();
                let lengths = if width == 1 { vec![*rows] } else { vec![*rows, width] };
                let layout = Layout::Inline(bytes.into(), Order::C);
                (*rows > 0 && k as u64 % 3 != absent).then(|| FrameCell { shape: Shape::new(lengths), layout })
            };
            let cells: Vec<_> = lengths.iter().enumerate().map(cell).collect();
            let shape = cells.iter().flatten().next().map_or(Shape::new(vec![0; if width == 1 { 1 } else { 2 }]), |c| c.shape.clone());
            let shape = if width > 1 { Shape::new([shape.lengths()[0], width]) } else { shape };
            ArrayDesc::new(dtype, shape, Layout::PerFrame(Arc::new(Cells(cells))))
        };
        tree.add_array(ROOT, "n", frames(DType::I32, 1, 9)).unwrap();
        tree.add_array(ROOT, "v", frames(DType::F32, 3, 1)).unwrap();
        tree.add_array(ROOT, "frame", frames(DType::U8, 1, 2)).unwrap();
        let moments = (0..lengths.len() as u64).map(|k| (Some(7 * k), Some(k as f64 / 3.0)));
        tree.set_frames(Arc::new(Moments(moments.collect())));
        let content = Dataset::new(Source::memory([]), tree);
        let (text, back) = written(&content);
        let axes = [content.tree().frames().unwrap(), back.tree().frames().unwrap()];
        prop_assert_eq!(axes[0].len(), axes[1].len());
        for k in 0..axes[0].len() {
            prop_assert_eq!(axes[0].step(k).unwrap(), axes[1].step(k).unwrap());
            prop_assert_eq!(axes[0].time(k).unwrap(), axes[1].time(k).unwrap());
            for (_, node, _) in content.tree().arrays() {
                prop_assert_eq!(values(&content, &node.path, k), values(&back, &node.path, k), "{} {}\n{}", node.path, k, text);
            }
        }
    }
}

#[test]
fn units_and_uniform_coordinates_are_in_the_names() {
    let limits = Limits::default();
    let mut tree = Tree::new(&limits);
    let bytes: Vec<u8> = [1.5_f64, 0.1, -0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut desc = inline(DType::F64, &[3], bytes);
    (desc.dims, desc.coords) = (vec!["t".into()], vec![Coord::Uniform { start: 1.0, step: 0.1 }]);
    let id = tree.add_array(ROOT, "u", desc.clone()).unwrap();
    tree.node_mut(id).attrs.push("units", "V");
    tree.node_mut(id).attrs.push("t_units", "s");
    let (text, back) = written(&Dataset::new(Source::memory([]), tree));
    assert_eq!(text, "\"t (s)\",\"u (V)\"\n1.0,1.5\n1.1,0.1\n1.2,-0.0\n");
    let node = back.tree().node(back.tree().find("u").unwrap());
    let own = node.array.as_ref().unwrap();
    let t = back.tree().find("t").unwrap();
    assert_eq!((&own.dims, &own.coords), (&desc.dims, &vec![Coord::Node(t)]));
    assert_eq!(node.attrs, Attrs::from([("units", "V".into())]));
    assert_eq!(back.tree().node(t).attrs, Attrs::from([("units", "s".into())]));
    assert_eq!(back.points(&own.coords[0], 3).unwrap(), [1.0, 1.1, 1.2]);
}

#[test]
fn many_rows_are_read_in_blocks() {
    let limits = Limits::default();
    let rows = 200_000_u64;
    let text = |k: u64| format!("{k},{}\n", k as f64 / 8.0);
    let table = format!("\"n\",\"x\"\n{}", (0..rows).map(text).collect::<String>());
    let file = open(Source::memory(table), &limits.with_memory(4 << 20)).unwrap();
    let node = file.tree().node(file.tree().find("x").unwrap());
    let array = file.open_array(node.array.as_ref().unwrap()).unwrap();
    let last = array.read_f64(&"-2:".parse().unwrap(), Axes::Stored).unwrap();
    assert_eq!(last, [(rows - 2) as f64 / 8.0, (rows - 1) as f64 / 8.0]);
    // A field that is not a number is an error when its column is read, and names the field.
    let broken = open(Source::memory("\"x {int8}\",\"y\"\n1,2\n300,3\n"), &limits).unwrap();
    let node =
        |path: &str| broken.tree().node(broken.tree().find(path).unwrap()).array.clone().unwrap();
    let read =
        |desc: &ArrayDesc| broken.open_array(desc)?.read_bytes(&Selection::all(), Axes::Stored);
    let error = read(&node("x")).unwrap_err();
    assert!(error.code() == "csv-004" && error.message().contains("300"), "{error}");
    assert!(read(&node("y")).is_ok());
}

#[test]
fn an_incomplete_last_row_is_reported_when_the_file_is_opened() {
    let file = open(Source::memory("\"a\",\"b\"\n1,2\n3"), &Limits::default()).unwrap();
    let codes: Vec<_> = file.warnings().iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["csv-010"]);
}

#[test]
fn columns_and_long_rows_are_charged_to_the_memory_budget() {
    let limits = Limits::default().with_memory(8 << 20);
    let wide = "\"\",".repeat(100_000) + "\"\"\n";
    let long = format!("\"a\"\n\"{}\"\n", "x".repeat(20 << 20));
    for text in [wide, long] {
        let error = open(Source::memory(text), &limits).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
}

#[test]
fn element_types_in_names_are_read() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/csv/frames.csv");
    let file = open(Source::open(path).unwrap(), &Limits::default()).unwrap();
    let node = file.tree().node(file.tree().find("position").unwrap());
    assert_eq!(node.array.as_ref().unwrap().dtype, DType::F32);
    assert_eq!(file.tree().frames().unwrap().len(), 3);
}
