//! Datasets that are difficult for formats that write plain arrays and store metadata beside them.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::semantics::{Missing, Role};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};

fn array(dtype: &str, shape: &[u64]) -> ArrayDesc {
    let dtype: DType = dtype.parse().unwrap();
    let shape = Shape::new(shape);
    let bytes = shape.bytes(dtype.size()).unwrap();
    let bytes: Vec<u8> = (0..bytes).map(|k| (k * 7 % 120) as u8).collect();
    ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C))
}

fn per_frame(frames: &[ArrayDesc]) -> ArrayDesc {
    let cell = |array: &ArrayDesc| {
        Some(FrameCell { shape: array.shape.clone(), layout: array.layout.clone() })
    };
    let layout = Layout::PerFrame(Arc::new(Cells(frames.iter().map(cell).collect())));
    ArrayDesc { layout, ..frames[0].clone() }
}

fn axis(frames: u64) -> Arc<Moments> {
    Arc::new(Moments((0..frames).map(|k| (Some(k), Some(k as f64))).collect()))
}

fn dataset(tree: Tree) -> Dataset {
    Dataset::new(Source::memory([]), tree)
}

/// Arrays of float16, plain and per frame, with coordinates and attributes.
pub(crate) fn half() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let x = tree.add_array(ROOT, "x", array("float32", &[3])).unwrap();
    let mut field = array("float16", &[3, 2]);
    field.coords[0] = Coord::Node(x);
    field.semantics_mut().role = Role::Field;
    let id = tree.add_array(ROOT, "field", field).unwrap();
    tree.push_attr(id, "list", Value::List(vec![Value::Int(1), "a".into()])).unwrap();
    tree.node_mut(id).id = Some("native".into());
    let frames = [array("float16", &[2]), array("float16", &[3])];
    tree.add_array(ROOT, "frames", per_frame(&frames)).unwrap();
    tree.set_frames(axis(2));
    dataset(tree)
}

/// An array of so many dimensions.
#[allow(dead_code)] // Not all formats have a limit.
pub(crate) fn of_rank(rank: usize) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    tree.add_array(ROOT, "deep", array("uint8", &vec![1; rank])).unwrap();
    dataset(tree)
}

/// 20,000 attributes of a kilobyte at the root and at an array.
pub(crate) fn many_attributes() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let id = tree.add_array(ROOT, "data", array("uint8", &[3])).unwrap();
    for k in 0..10_000 {
        for (node, text) in [(ROOT, "root"), (id, "array")] {
            tree.push_attr(node, &format!("{text} {k}"), text.repeat(200)).unwrap();
        }
    }
    dataset(tree)
}

fn attributes() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let all = [
        ("spile", Value::from("mine")),
        ("twice", Value::UInt(1)),
        ("twice", Value::UInt(2)),
        ("nan", Value::Float(f64::NAN)),
        ("int", Value::Int(5)),
        ("complex", Value::Complex(1.0, -0.0)),
        ("bytes", Value::Bytes(vec![0, 200])),
        ("mixed", Value::List(vec![Value::Int(1), "a".into(), Value::List(Vec::new())])),
        ("DIMENSION_LIST", Value::from("x")),
        ("_ARRAY_DIMENSIONS", Value::from("x")),
        ("empty", Value::from("")),
        ("", Value::Bool(true)),
    ];
    let scaling = [("scale_factor", Value::Float(2.0)), ("add_offset", Value::from("none"))];
    let missing = [("_FillValue", Value::Int(-1)), ("valid_max", Value::Float(7.0))];
    let map = Some(Linear { intercept: 1.0, slope: 0.5, origin: 3.0 });
    let group = tree.add_group(ROOT, "group").unwrap();
    let plain = tree.add_array(group, "plain", array("int16", &[2])).unwrap();
    let complex = tree.add_array(group, "complex", array("complex64", &[2])).unwrap();
    let scaled = ArrayDesc { map, ..array("int16", &[2]) };
    let scaled = tree.add_array(group, "scaled", scaled).unwrap();
    let mut masked = ArrayDesc { map, ..array("int16", &[2]) };
    masked.semantics_mut().missing =
        Missing { values: vec![7.0, f64::NAN], min: Some(-1.0), max: None };
    tree.add_array(group, "masked", masked).unwrap();
    for (name, value) in all {
        for node in [ROOT, group, plain] {
            tree.push_attr(node, name, value.clone()).unwrap();
        }
    }
    for (name, value) in scaling.into_iter().chain(missing) {
        for node in [plain, complex, scaled] {
            tree.push_attr(node, name, value.clone()).unwrap();
        }
    }
    dataset(tree)
}

fn types() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let types = "int8 int64 uint16 float128 x87 complex32 complex128 complex-x87 bool8 bool64 text[1] \
                 text[5] text[0] opaque[0] opaque[1] opaque[7] float16";
    for dtype in types.split_whitespace() {
        for shape in [&[][..], &[0], &[3], &[2, 3]] {
            let name = format!("{dtype} {}", shape.len() + shape.iter().product::<u64>() as usize);
            tree.add_array(ROOT, &name, array(dtype, shape)).unwrap();
        }
    }
    dataset(tree)
}

fn frames() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let changing = per_frame(&[array("float64", &[2, 2]), array("float64", &[2, 3])]);
    let changing = tree.add_array(ROOT, "changing", changing).unwrap();
    let same = ArrayDesc { layout: Layout::Same(changing), ..array("float64", &[2, 2]) };
    tree.add_array(ROOT, "alias", same).unwrap();
    let mut field = array("int32", &[2]);
    field.coords[0] = Coord::Node(changing);
    field.semantics_mut().mesh = Some(changing);
    tree.add_array(ROOT, "field", field).unwrap();
    let kept = per_frame(&[array("int16", &[2]), array("int16", &[0])]);
    tree.add_array(ROOT, "kept", kept).unwrap();
    tree.add_array(ROOT, "kept.rows", array("int64", &[2])).unwrap();
    let empty = per_frame(&[array("int32", &[0]), array("int32", &[0])]);
    tree.add_array(ROOT, "empty", empty).unwrap();
    tree.set_frames(axis(2));
    dataset(tree)
}

fn names() -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    for name in [".a", "x.a", "a:b", "zarr.json", "__a", "step", "kept.rows"] {
        let group = tree.add_group(ROOT, &format!("{name} ")).unwrap();
        tree.push_attr(group, "own", name).unwrap();
        let group = tree.add_group(ROOT, name).unwrap();
        tree.push_attr(group, "own", name).unwrap();
        let id = tree.add_array(group, name, array("uint8", &[2])).unwrap();
        tree.push_attr(id, "own", name).unwrap();
    }
    dataset(tree)
}

/// All of these but the large ones.
pub(crate) fn samples() -> Vec<Dataset> {
    vec![half(), attributes(), types(), frames(), names()]
}
