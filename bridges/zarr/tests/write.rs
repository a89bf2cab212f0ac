//! Trees as stores, and back.

use std::path::Path;
use std::sync::Arc;

use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Dataset, Reader, open_as, write_file};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree, Value};
use spile_zarr::Zarr;

fn line(dtype: DType, bytes: &[u8]) -> ArrayDesc {
    let shape = Shape::new([(bytes.len() / dtype.size()) as u64]);
    ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C))
}

fn write(tree: Tree, path: &Path) -> Box<dyn Reader> {
    let limits = Limits::default();
    let content = Dataset::new(Source::memory([]), tree);
    write_file(&Zarr, &content, path, Overwrite::Replace, &limits).unwrap();
    open_as(&Zarr, path, &limits).unwrap()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn names_that_files_cannot_have_come_back() {
    let temp = tempfile::tempdir().unwrap();
    let long = "n".repeat(300);
    let names =
        ["__reserved", "zarr.json", "...", ".hidden", "c", "a\0b", &long, "x.hidden", "ä b"];
    let mut tree = Tree::new(&Limits::default());
    for (k, name) in names.iter().enumerate() {
        let group = tree.add_group(ROOT, &format!("{name}g")).unwrap();
        tree.add_array(group, name, line(DType::U8, &[k as u8])).unwrap();
        tree.add_array(ROOT, name, line(DType::U8, &[k as u8 + 100])).unwrap();
    }
    let paths: Vec<String> = tree.iter().map(|(_, node)| node.path.clone()).collect();
    let store = write(tree, &temp.path().join("x.zarr"));
    let found: Vec<String> = store.tree().iter().map(|(_, node)| node.path.clone()).collect();
    assert_eq!(found, paths);
    for (_, node, desc) in store.tree().arrays() {
        let array = Array::open(store.source(), store.tree(), desc, &Limits::default()).unwrap();
        let value = array.read(&Selection::all(), Axes::Stored).unwrap()[0];
        let k = names.iter().position(|name| *name == node.name).unwrap() as u8;
        assert_eq!(value, if node.parent == ROOT { k + 100 } else { k });
    }
}

#[test]
fn points_are_at_the_root_for_others_and_in_their_place_for_us() {
    let temp = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let grid = tree.group_at("Grid").unwrap();
    let x = tree.add_array(grid, "x", line(DType::U8, &[1, 2, 3])).unwrap();
    let mut field = ArrayDesc::new(
        DType::I16,
        Shape::new([3, 4]),
        Layout::Inline((0..24).collect::<Vec<_>>().into(), Order::F),
    );
    field.dims = vec!["x".into(), "t".into()];
    field.coords = vec![Coord::Node(x), Coord::Uniform { start: 1.5, step: 0.25 }];
    field.map = Some(Linear::new(-1.0, 0.5));
    let id = tree.add_array(ROOT, "field", field).unwrap();
    tree.node_mut(id).attrs.push(("units".into(), Value::from("V")));
    tree.node_mut(id).attrs.push(("bad".into(), Value::Float(f64::NAN)));
    let path = temp.path().join("x.zarr");
    let store = write(tree, &path);
    let tree = store.tree();
    let field = tree.node(tree.find("field").unwrap());
    let desc = field.array.as_ref().unwrap();
    assert_eq!(desc.dims, ["x", "t"]);
    assert_eq!(desc.coords[0], Coord::Node(tree.find("Grid/x").unwrap()));
    assert_eq!(desc.coords[1], Coord::Uniform { start: 1.5, step: 0.25 });
    assert_eq!(desc.map, Some(Linear::new(-1.0, 0.5)));
    assert!(tree.at("t").is_none() && tree.at("x").is_none(), "they were made for others");
    assert!(matches!(&field.attrs[1].1, Value::Float(v) if v.is_nan()));

    let said = json(&path.join("field/zarr.json"));
    assert_eq!(said["dimension_names"], serde_json::json!(["x", "t"]));
    assert_eq!(said["codecs"][0]["name"], "transpose");
    let attrs = &said["attributes"];
    assert_eq!((&attrs["units"], &attrs["bad"]), (&"V".into(), &"NaN".into()));
    assert_eq!((&attrs["scale_factor"], &attrs["add_offset"]), (&0.5.into(), &(-1.0).into()));
    let t: Vec<u8> = [1.5_f64, 1.75, 2.0, 2.25].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(std::fs::read(path.join("t/c/0")).unwrap(), t);
    assert_eq!(std::fs::read(path.join("x/c/0")).unwrap(), [1, 2, 3]);
    let all = json(&path.join("zarr.json"));
    let all = all["consolidated_metadata"]["metadata"].as_object().unwrap().clone();
    let mut names: Vec<_> = all.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["Grid", "field", "t", "x"]);
}

#[test]
fn attributes_that_others_change_count() {
    let temp = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let id = tree.add_array(ROOT, "a", line(DType::U8, &[1])).unwrap();
    let node = tree.node_mut(id);
    node.id = Some("identifier".into());
    let int = Value::Int(5);
    for (name, value) in [("kept", int.clone()), ("old", "x".into()), ("gone", "y".into())] {
        node.attrs.push((name.into(), value));
    }
    let path = temp.path().join("x.zarr");
    write(tree, &path);
    let mut said = json(&path.join("a/zarr.json"));
    let attrs = said["attributes"].as_object_mut().unwrap();
    attrs.remove("gone");
    attrs.insert("old".into(), "z".into());
    attrs.insert("new".into(), 7.into());
    std::fs::write(path.join("a/zarr.json"), said.to_string()).unwrap();
    let store = open_as(&Zarr, &path, &Limits::default()).unwrap();
    let node = store.tree().node(store.tree().find("a").unwrap());
    assert_eq!(node.id.as_deref(), Some("identifier"));
    let wanted = [("kept", int), ("old", "z".into()), ("new", Value::UInt(7))];
    assert_eq!(node.attrs, wanted.map(|(name, value)| (name.to_string(), value)));
}

struct Cells(Vec<Option<Vec<u8>>>);

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let cell = |bytes: &Vec<u8>| FrameCell {
            shape: Shape::new([bytes.len() as u64 / 2, 2]),
            layout: Layout::Inline(bytes.as_slice().into(), Order::C),
        };
        Ok(self.0[frame as usize].as_ref().map(cell))
    }
}

#[test]
fn frames_are_a_dimension_with_times_and_come_back_as_frames() {
    let temp = tempfile::tempdir().unwrap();
    let even = vec![Some(vec![1, 2, 3, 4]), Some(vec![5, 6, 7, 8]), Some(vec![9, 10, 11, 12])];
    let ragged = vec![Some(vec![1, 2]), None, Some(vec![3, 4, 5, 6])];
    let mut tree = Tree::new(&Limits::default());
    for (name, cells) in [("even", &even), ("ragged", &ragged)] {
        let layout = Layout::PerFrame(Arc::new(Cells(cells.clone())));
        let shape = Shape::new([cells[0].as_ref().unwrap().len() as u64 / 2, 2]);
        tree.add_array(ROOT, name, ArrayDesc::new(DType::U8, shape, layout)).unwrap();
    }
    let moments = [(Some(10), Some(0.5)), (Some(20), Some(1.0)), (Some(30), Some(1.5))];
    tree.set_frames(Arc::new(Moments(moments.to_vec())));
    let path = temp.path().join("x.zarr");
    let store = write(tree, &path);
    let tree = store.tree();
    let axis = tree.frames().unwrap();
    let found: Vec<_> = (0..3).map(|k| (axis.step(k).unwrap(), axis.time(k).unwrap())).collect();
    assert_eq!(found, moments);
    for (name, cells) in [("even", &even), ("ragged", &ragged)] {
        let desc = tree.node(tree.find(name).unwrap()).array.as_ref().unwrap();
        for (frame, cell) in cells.iter().enumerate() {
            let limits = Limits::default();
            let array =
                Array::open_frame(store.source(), tree, desc, frame as u64, &limits).unwrap();
            let bytes = array.map(|a| a.read(&Selection::all(), Axes::Stored).unwrap());
            assert_eq!(&bytes, cell, "{name} {frame}");
        }
    }
    let said = json(&path.join("even/zarr.json"));
    assert_eq!(said["shape"], serde_json::json!([3, 2, 2]));
    assert_eq!(said["dimension_names"][0], "time");
    let rows = json(&path.join("ragged.rows/zarr.json"));
    let ragged = json(&path.join("ragged/zarr.json"));
    assert_eq!(rows["attributes"]["sample_dimension"], ragged["dimension_names"][0]);
}

#[test]
fn long_arrays_are_several_files_of_the_same_length() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.zarr");
    for order in [Order::C, Order::F] {
        let mut tree = Tree::new(&Limits::default());
        let bytes: Vec<u8> = (0..(70_u32 << 20) + 70).map(|k| (k ^ (k >> 11)) as u8).collect();
        let shape = [10, (7 << 20) + 7];
        let layout = Layout::Inline(bytes.as_slice().into(), order);
        tree.add_array(ROOT, "long", ArrayDesc::new(DType::U8, Shape::new(shape), layout)).unwrap();
        let store = write(tree, &path);
        let tree = store.tree();
        let desc = tree.node(tree.find("long").unwrap()).array.as_ref().unwrap();
        let Layout::Plain { extents, order: own } = &desc.layout else { panic!("{desc:?}") };
        assert_eq!((extents.parts().len(), *own), (2, order));
        let array = Array::open(store.source(), tree, desc, &Limits::default()).unwrap();
        assert!(array.read(&Selection::all(), Axes::Stored).unwrap() == bytes);
    }
}

#[test]
fn a_folder_of_other_files_is_never_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("mine");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("thesis.tex"), "").unwrap();
    let content = Dataset::new(Source::memory([]), Tree::new(&Limits::default()));
    let done = write_file(&Zarr, &content, &path, Overwrite::Replace, &Limits::default());
    assert!(done.unwrap_err().to_string().contains("not replaced"));
    assert!(path.join("thesis.tex").exists());
}
