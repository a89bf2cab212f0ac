//! Metadata that the header cannot express is stored in the comments; the header has precedence.

use std::path::Path;

use spile_core::dtype::DType;
use spile_core::format::write_file;
use spile_core::layout::{ArrayDesc, Coord, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::assert_same_content;
use spile_core::tree::{ROOT, Tree, Value};
use spile_core::{Dataset, OpenOptions};
use spile_taf::ops::{self, Adjust, Target};
use spile_taf::{File, Taf};

fn content(shape: &[u64], coords: Vec<Coord>, comments: Option<&str>) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    let root = tree.node_mut(ROOT);
    root.attrs.push("code", "EPOCH");
    root.attrs.extend(comments.map(|text| ("comments".to_string(), Value::from(text))));
    let group = tree.group_at("Electric Field").unwrap();
    tree.node_mut(group).attrs.push("kind", "größe");
    let count: u64 = shape.iter().product();
    let bytes: Vec<u8> = (0..count as i16).flat_map(i16::to_le_bytes).collect();
    let layout = Layout::Inline(bytes.into(), Order::C);
    let mut array = ArrayDesc::new(DType::I16, Shape::new(shape), layout);
    array.dims = (0..shape.len()).map(|k| format!("axis {k}")).collect();
    array.coords = coords;
    array.map = Some(Linear::new(0.5, 0.25));
    let id = tree.add_array(group, "Ex", array).unwrap();
    let node = tree.node_mut(id);
    node.attrs.push("units", "V/m");
    node.id = Some("ex".into());
    Dataset::new(Source::memory([]), tree)
}

fn written(content: &Dataset, folder: &Path) -> std::path::PathBuf {
    let path = folder.join("x.taf");
    write_file(&Taf, content, &path, Overwrite::Replace).unwrap();
    path
}

fn open(path: &Path) -> Dataset {
    Dataset::open_path(&Taf, path, &OpenOptions::default()).unwrap()
}

#[test]
fn a_tree_with_one_array_is_restored_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let grid = Coord::Uniform { start: -1.0, step: 0.5 };
    let default = Coord::Uniform { start: 1.0, step: 1.0 };
    for (shape, coords) in [
        (&[6][..], vec![Coord::None]),
        (&[6], vec![grid.clone()]),
        (&[], vec![]),
        (&[2, 3], vec![Coord::None, grid.clone()]),
        (&[2, 3], vec![default, Coord::None]),
        (&[1, 3, 1], vec![grid.clone(), Coord::None, grid]),
    ] {
        for comments in [None, Some("one line\nand another\n")] {
            let content = content(shape, coords.clone(), comments);
            let path = written(&content, folder.path());
            assert_same_content(&content, &open(&path));
        }
    }
}

#[test]
fn operations_on_the_header_override_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    let grid = |start, step| Coord::Uniform { start, step };
    let content = content(&[3, 2], vec![grid(0.0, 2.0), Coord::None], Some("first\n"));
    let path = written(&content, folder.path());
    ops::add_comment(&path, "second", &limits).unwrap();
    ops::adjust(&path, 1, Adjust::Shift(10.0), &limits).unwrap();
    let file = open(&path);
    let array = |file: &Dataset| {
        let tree = file.tree();
        let (_, node, array) = tree.arrays().next().unwrap();
        (node.path.clone(), array.dims.clone(), array.coords.clone())
    };
    let (name, dims, coords) = array(&file);
    assert_eq!(
        (name.as_str(), dims),
        ("Electric Field/Ex", vec!["axis 0".into(), "axis 1".into()])
    );
    assert_eq!(coords, [grid(10.0, 2.0), Coord::None]);
    assert_eq!(file.attrs().get_str("comments"), Some("first\nsecond\n"));
    // The names of the dimensions no longer apply.
    ops::transpose(&path, &Target::InPlace, &limits).unwrap();
    let file = open(&path);
    assert_eq!(
        array(&file),
        ("data".into(), vec!["dim1".into(), "dim2".into()], vec![grid(1.0, 1.0), grid(10.0, 2.0)])
    );
    let file = File::open(&path, &limits).unwrap();
    assert_eq!(file.comments().unwrap(), b"first\nsecond\n");
}

#[test]
fn invalid_metadata_is_reported_and_kept_as_a_comment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.taf");
    ops::example(&path, 2, Overwrite::Never).unwrap();
    ops::set_comment(&path, "spile: {\"nonsense\"", &Limits::default()).unwrap();
    let file = open(&path);
    assert_eq!(file.warnings()[0].code, "core-metadata");
    assert!(file.tree().find("data").is_ok());
    assert_eq!(file.attrs().get_str("comments"), Some("spile: {\"nonsense\""));
}
