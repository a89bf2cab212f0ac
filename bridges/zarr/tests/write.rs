//! Round trips through stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{FolderWriter as _, OpenOptions, WriteOptions, write_file, write_file_if};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{FolderSink, Overwrite};
use spile_core::source::Source;
use spile_core::tree::{Attrs, ROOT, Tree, Value};
use spile_zarr::Zarr;

fn line(dtype: DType, bytes: &[u8]) -> ArrayDesc {
    let shape = Shape::new([(bytes.len() / dtype.size()) as u64]);
    ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C))
}

fn open(path: &Path) -> Dataset {
    Dataset::open_path(&Zarr, path, &OpenOptions::default()).unwrap()
}

fn write(tree: Tree, path: &Path) -> Dataset {
    let content = Dataset::new(Source::memory([]), tree);
    write_file(&Zarr, &content, path, Overwrite::Replace).unwrap();
    open(path)
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn invalid_file_names_are_restored() {
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
        let array = store.open_array(desc).unwrap();
        let value = array.read_bytes(&Selection::all(), Axes::Stored).unwrap()[0];
        let k = names.iter().position(|name| *name == node.name).unwrap() as u8;
        assert_eq!(value, if node.parent == ROOT { k + 100 } else { k });
    }
}

#[test]
fn coordinates_are_at_the_root_and_restored_to_their_group() {
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
    tree.node_mut(id).attrs.push("units", Value::from("V"));
    tree.node_mut(id).attrs.push("bad", Value::Float(f64::NAN));
    let path = temp.path().join("x.zarr");
    let store = write(tree, &path);
    let tree = store.tree();
    let field = tree.node(tree.find("field").unwrap());
    let desc = field.array.as_ref().unwrap();
    assert_eq!(desc.dims, ["x", "t"]);
    assert_eq!(desc.coords[0], Coord::Node(tree.find("Grid/x").unwrap()));
    assert_eq!(desc.coords[1], Coord::Uniform { start: 1.5, step: 0.25 });
    assert_eq!(desc.map, Some(Linear::new(-1.0, 0.5)));
    assert!(tree.at("t").is_none() && tree.at("x").is_none(), "only for other readers");
    assert!(field.attrs.get_f64("bad").unwrap().is_nan());

    let document = json(&path.join("field/zarr.json"));
    assert_eq!(document["dimension_names"], serde_json::json!(["x", "t"]));
    assert_eq!(document["codecs"][0]["name"], "transpose");
    let attrs = &document["attributes"];
    assert_eq!((&attrs["units"], &attrs["bad"]), (&"V".into(), &"NaN".into()));
    assert_eq!((&attrs["scale_factor"], &attrs["add_offset"]), (&0.5.into(), &(-1.0).into()));
    let t: Vec<u8> = [1.5_f64, 1.75, 2.0, 2.25].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(std::fs::read(path.join("t/c/0")).unwrap(), t);
    assert_eq!(std::fs::read(path.join("x/c/0")).unwrap(), [1, 2, 3]);
    let all = json(&path.join("zarr.json"));
    let all = all["consolidated_metadata"]["metadata"].as_object().unwrap().clone();
    let mut names: Vec<_> = all.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["field", "t", "x"]);
}

#[test]
fn attributes_changed_by_other_programs_are_used() {
    let temp = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let id = tree.add_array(ROOT, "a", line(DType::U8, &[1])).unwrap();
    let node = tree.node_mut(id);
    node.id = Some("identifier".into());
    let int = Value::Int(5);
    for (name, value) in [("kept", int.clone()), ("old", "x".into()), ("gone", "y".into())] {
        node.attrs.push(name, value);
    }
    let path = temp.path().join("x.zarr");
    write(tree, &path);
    let mut document = json(&path.join("a/zarr.json"));
    let attrs = document["attributes"].as_object_mut().unwrap();
    attrs.remove("gone");
    attrs.insert("old".into(), "z".into());
    attrs.insert("new".into(), 7.into());
    std::fs::write(path.join("a/zarr.json"), document.to_string()).unwrap();
    let store = open(&path);
    let node = store.tree().node(store.tree().find("a").unwrap());
    assert_eq!(node.id.as_deref(), Some("identifier"));
    let expected = [("kept", int), ("old", "z".into()), ("new", Value::UInt(7))];
    assert_eq!(node.attrs, Attrs::from(expected));
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
fn frames_are_a_dimension_with_times_and_are_restored() {
    let temp = tempfile::tempdir().unwrap();
    let uniform = vec![Some(vec![1, 2, 3, 4]), Some(vec![5, 6, 7, 8]), Some(vec![9, 10, 11, 12])];
    let ragged = vec![Some(vec![1, 2]), None, Some(vec![3, 4, 5, 6])];
    let mut tree = Tree::new(&Limits::default());
    for (name, cells) in [("uniform", &uniform), ("ragged", &ragged)] {
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
    for (name, cells) in [("uniform", &uniform), ("ragged", &ragged)] {
        let id = tree.find(name).unwrap();
        for (frame, cell) in cells.iter().enumerate() {
            let array = store.array_in_frame(id, frame as u64).unwrap();
            let bytes = array.map(|a| a.read_bytes(&Selection::all(), Axes::Stored).unwrap());
            assert_eq!(&bytes, cell, "{name} {frame}");
        }
    }
    let document = json(&path.join("uniform/zarr.json"));
    assert_eq!(document["shape"], serde_json::json!([3, 2, 2]));
    assert_eq!(document["dimension_names"][0], "time");
    let rows = json(&path.join("ragged.rows/zarr.json"));
    let ragged = json(&path.join("ragged/zarr.json"));
    assert_eq!(rows["attributes"]["sample_dimension"], ragged["dimension_names"][0]);
}

#[test]
fn long_arrays_are_several_files_of_equal_length() {
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
        let array = store.array("long").unwrap();
        assert!(array.read_bytes(&Selection::all(), Axes::Stored).unwrap() == bytes);
    }
}

#[test]
fn missing_values_of_xarray_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.zarr");
    let mut tree = Tree::new(&Limits::default());
    let values: Vec<u8> = [1.0_f32, -9.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    for name in ["base64", "nan", "number"] {
        tree.add_array(ROOT, name, line(DType::F32, &values)).unwrap();
    }
    write(tree, &path);
    let mut root = json(&path.join("zarr.json"));
    root["attributes"].as_object_mut().unwrap().remove("spile");
    std::fs::write(path.join("zarr.json"), root.to_string()).unwrap();
    // base64 of the bytes of the double -9.0.
    let fill = [("base64", "AAAAAAAAIsA=".into()), ("nan", "NaN".into()), ("number", (-9).into())];
    for (name, value) in fill {
        let file = path.join(name).join("zarr.json");
        let mut document = json(&file);
        document["attributes"]["_FillValue"] = value;
        std::fs::write(file, document.to_string()).unwrap();
    }
    let store = open(&path);
    let missing = |name: &str| store.array(name).unwrap().missing().values.clone();
    assert_eq!((missing("base64"), missing("number")), (vec![-9.0], vec![-9.0]));
    assert!(missing("nan")[0].is_nan());
    assert!(store.array("nan").unwrap().attrs().contains("_FillValue"));
    let values: Vec<f64> = store.array("base64").unwrap().read("").unwrap();
    assert!(values[0] == 1.0 && values[1].is_nan() && values[2] == 3.0);
}

#[test]
fn a_folder_of_other_files_is_not_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("mine");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("thesis.tex"), "").unwrap();
    let content = Dataset::new(Source::memory([]), Tree::new(&Limits::default()));
    let done = write_file(&Zarr, &content, &path, Overwrite::Replace);
    assert!(done.unwrap_err().to_string().contains("not replaced"));
    assert!(path.join("thesis.tex").exists());
}

#[test]
fn metadata_json_that_does_not_fit_is_a_warning() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.zarr");
    let mut tree = Tree::new(&Limits::default());
    let group = tree.add_group(ROOT, "group").unwrap();
    tree.add_array(group, "a", line(DType::U8, &[1, 2])).unwrap();
    write(tree, &path);
    let good = json(&path.join("zarr.json"));
    let text = good["attributes"]["spile"].as_str().unwrap();
    let mut nodes: serde_json::Value = serde_json::from_str(text).unwrap();
    // The same path twice cannot be restored.
    let again = nodes["nodes"][1].clone();
    nodes["nodes"].as_array_mut().unwrap().push(again);
    for text in [nodes.to_string(), "{}".to_string(), "no JSON".to_string()] {
        let mut document = good.clone();
        document["attributes"]["spile"] = text.into();
        std::fs::write(path.join("zarr.json"), document.to_string()).unwrap();
        let store = open(&path);
        let codes: Vec<_> = store.warnings().iter().map(|f| f.code).collect();
        assert_eq!(codes, ["core-metadata"]);
        let desc = store.tree().node(store.tree().find("group_a").unwrap()).array.as_ref().unwrap();
        let array = store.open_array(desc).unwrap();
        assert_eq!(array.read_bytes(&Selection::all(), Axes::Stored).unwrap(), [1, 2]);
    }
}

#[test]
fn an_array_that_cannot_be_read_hides_no_other() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("x.zarr");
    let mut tree = Tree::new(&Limits::default());
    let group = tree.add_group(ROOT, "group").unwrap();
    for name in ["a", "b"] {
        tree.add_array(group, name, line(DType::U8, &[1, 2])).unwrap();
    }
    write(tree, &path);
    let good = json(&path.join("group_a/zarr.json"));
    let changed = |key: &str, value: serde_json::Value| {
        let mut document = good.clone();
        document[key] = value;
        document.to_string()
    };
    let raw = serde_json::json!(
        { "name": "raw_bytes", "configuration": { "length_bytes": u32::MAX } }
    );
    let mystery = serde_json::json!([{ "name": "bytes" }, { "name": "mystery" }]);
    for (text, code) in [
        ("no JSON".to_string(), "zarr-002"),
        (changed("node_type", "table".into()), "zarr-002"),
        (changed("shape", (-1).into()), "zarr-002"),
        (changed("codecs", mystery), "zarr-003"),
        (changed("data_type", raw), "zarr-003"),
    ] {
        std::fs::write(path.join("group_a/zarr.json"), &text).unwrap();
        let store = open(&path);
        let findings: Vec<_> =
            store.warnings().iter().map(|f| (f.object.as_deref(), f.code)).collect();
        assert_eq!(findings, [(Some("\"group_a\""), code)], "{text}");
        assert!(store.tree().at("group/a").is_none());
        assert!(store.tree().at("group/b").is_some());
    }
}

/// All files of a folder with their content.
fn content(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let own = entry.unwrap().path();
            if own.is_dir() {
                folders.push(own);
            } else {
                let name = own.strip_prefix(path).unwrap().to_path_buf();
                found.insert(name, std::fs::read(own).unwrap());
            }
        }
    }
    found
}

#[test]
fn every_combination_of_options_keeps_the_values_also_by_several_processes() {
    let temp = tempfile::tempdir().unwrap();
    let lengths = |n: u64| vec![("x".to_string(), n), ("y".to_string(), n)];
    for (k, (order, compression)) in [Order::C, Order::F]
        .into_iter()
        .flat_map(|order| ["none", "zstd", "gzip:9", "zstd:19"].map(|text| (order, text)))
        .enumerate()
    {
        for (chunks, shards) in [(0, 0), (8, 0), (8, 16), (64, 64)] {
            let mut tree = Tree::new(&Limits::default());
            let bytes: Vec<u8> = (0..2 * 21 * 19 * 2_u32).map(|k| (k / 7) as u8).collect();
            let layout = Layout::Inline(bytes.as_slice().into(), order);
            let mut desc = ArrayDesc::new(DType::I16, Shape::new([2, 21, 19]), layout);
            desc.dims = ["t", "y", "x"].map(String::from).to_vec();
            desc.coords = vec![Coord::None, Coord::None, Coord::Uniform { start: 1.0, step: 0.5 }];
            tree.add_array(ROOT, "a", desc).unwrap();
            let scalar = ArrayDesc::new(DType::U8, Shape::scalar(), Layout::Fill([7].into()));
            tree.add_array(ROOT, "scalar", scalar).unwrap();
            let data = Dataset::new(Source::memory([]), tree);
            let mut options = WriteOptions::default();
            options.compression = Some(compression.parse().unwrap());
            options.chunks = if chunks == 0 { Vec::new() } else { lengths(chunks) };
            options.shards = if shards == 0 { Vec::new() } else { lengths(shards) };
            let [serial, parallel] = ["serial", "parallel"]
                .map(|name| temp.path().join(format!("{name}{k}_{chunks}_{shards}.zarr")));
            write_file_if(&Zarr, &data, &serial, Overwrite::Never, &options, |_| Ok(())).unwrap();
            let store = open(&serial);
            let array = store.array("a").unwrap();
            assert!(array.read_bytes(&Selection::all(), Axes::Order(order)).unwrap() == bytes);
            let document = json(&serial.join("a/zarr.json"));
            let file = &document["chunk_grid"]["configuration"]["chunk_shape"];
            let codec = |k: usize| document["codecs"][k]["name"].as_str();
            match (chunks, shards) {
                (8, 0) => assert_eq!(*file, serde_json::json!([2, 8, 8])),
                (8, _) => assert_eq!(*file, serde_json::json!([2, 16, 16])),
                _ => assert_eq!(*file, serde_json::json!([2, 21, 19])),
            }
            assert_eq!(codec(0) == Some("sharding_indexed"), shards > 0);

            let folder = FolderSink::create(&parallel, Overwrite::Never).unwrap();
            let mut regions = Zarr.regions(&data, &options).unwrap().unwrap();
            regions.write_layout(&folder).unwrap();
            for (number, file) in regions.files().iter().enumerate().rev() {
                let mut sink = folder.file(&file.name).unwrap();
                regions.write_region(number, &mut sink).unwrap();
            }
            folder.commit().unwrap();
            assert!(content(&serial) == content(&parallel));
        }
    }
}

#[test]
fn options_that_do_not_fit_are_errors() {
    let temp = tempfile::tempdir().unwrap();
    let mut tree = Tree::new(&Limits::default());
    let mut desc = line(DType::U8, &[1, 2, 3]);
    desc.dims = vec!["x".into()];
    tree.add_array(ROOT, "a", desc).unwrap();
    let data = Dataset::new(Source::memory([]), tree);
    let path = temp.path().join("x.zarr");
    let error = |options: &WriteOptions| {
        let done = write_file_if(&Zarr, &data, &path, Overwrite::Never, options, |_| Ok(()));
        done.unwrap_err().to_string()
    };
    let mut options = WriteOptions::default();
    options.compression = Some("lz4".parse().unwrap());
    assert!(error(&options).contains("lz4"));
    options.compression = None;
    options.chunks = vec![("y".into(), 2)];
    assert!(error(&options).contains("the dimensions are x"));
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}
