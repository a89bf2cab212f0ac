//! Declared losses are exactly the differences between a dataset and the file written from it.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::ErrorKind;
use spile_core::format::{FormatWriter as _, LossKind, OpenOptions, write_file};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::semantics::{Missing, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Overwrite;
use spile_core::source::Source;
use spile_core::testkit::differences;
use spile_core::tree::{NodeId, ROOT, Tree, Value};
use spile_gsd::Gsd;

/// Path, kind and attribute of a loss.
type Key = (String, LossKind, Option<String>);

fn declared(content: &Dataset) -> BTreeSet<Key> {
    let losses = Gsd.losses(content, Path::new("out.gsd")).unwrap();
    losses.into_iter().map(|loss| (loss.path, loss.kind, loss.name)).collect()
}

/// What a difference found by the test kit amounts to; none if something was added.
fn amounts_to(difference: &str) -> Option<(String, Vec<LossKind>)> {
    use LossKind::*;
    if difference.ends_with(": new") || difference.starts_with("None frames became") {
        return None;
    }
    if difference.contains(" frames became ") || difference.starts_with("frame ") {
        return Some((String::new(), vec![Frames]));
    }
    let (path, what) = difference.split_once(": ").unwrap();
    let kinds = match what {
        "missing" => vec![Array, Group],
        _ if what.starts_with("attributes") => return None,
        // The HOOMD schema names dimensions without a name.
        _ if what.starts_with("dimensions [\"dim1\"") && what.contains("value") => return None,
        _ if what.starts_with("dimensions") => vec![Dimensions, Shape],
        _ if what.starts_with("coordinates") => vec![Coordinates, Shape],
        _ if what.starts_with("scaling") => vec![Scaling],
        _ if what.starts_with("semantics") => vec![Meaning],
        _ if what.starts_with("number of frames") => vec![Frames],
        _ if what.starts_with("element type") => vec![Type],
        _ if what.starts_with("shape") => vec![Shape],
        _ if what.starts_with("values") => vec![Scaling, Values],
        _ => panic!("{difference}"),
    };
    Some((path.into(), kinds))
}

/// Writes `content`, reads it again and compares the differences with the declared losses.
fn assert_declared(content: &Dataset, case: &str) -> BTreeSet<Key> {
    let declared = declared(content);
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("out.gsd");
    assert!(write_file(&Gsd, content, &path, Overwrite::Never).unwrap().is_empty());
    let written = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    for difference in differences(content, &written).unwrap() {
        let Some((path, kinds)) = amounts_to(&difference) else { continue };
        let keys: Vec<Key> = kinds.into_iter().map(|kind| (path.clone(), kind, None)).collect();
        let found: Vec<&Key> = keys.iter().filter(|key| declared.contains(key)).collect();
        // Frames that the file lacks are missing in all arrays.
        let frames = difference.contains("number of frames");
        let root = frames && declared.contains(&(String::new(), LossKind::Frames, None));
        assert!(root || !found.is_empty(), "{case}: not declared: {difference}");
        seen.extend(found.into_iter().cloned());
    }
    let nodes = content.tree().iter().map(|(id, _)| id).chain([ROOT]);
    for (id, node) in nodes.map(|id| (id, content.tree().node(id))) {
        let new = written.tree().at(&node.path).map(|id| written.tree().node(id));
        for (name, value) in &node.attrs {
            let Some(new) = new.filter(|new| new.attrs.get(name) != Some(value)) else { continue };
            assert!(id == ROOT || new.attrs.is_empty());
            seen.insert((node.path.clone(), LossKind::Attribute, Some(name.into())));
        }
    }
    // The test kit does not compare the values of arrays that have become arrays of frames.
    let hidden = |(path, kind, _): &&Key| {
        matches!(kind, LossKind::Type | LossKind::Shape)
            && declared.contains(&(path.clone(), LossKind::Frames, None))
    };
    seen.extend(declared.iter().filter(hidden).cloned());
    assert_eq!(seen, declared, "{case}");
    declared
}

/// A dataset over 4096 bytes, and its tree while it is built.
fn build(fill: impl FnOnce(&mut Tree)) -> Dataset {
    let mut tree = Tree::new(&Limits::default());
    fill(&mut tree);
    Dataset::new(Source::memory((0..=255).cycle().take(4096).collect::<Vec<u8>>()), tree)
}

fn plain(dtype: DType, lengths: &[u64]) -> Layout {
    let bytes = Shape::new(lengths).bytes(dtype.size()).unwrap();
    Layout::Plain { extents: Extents::one(64, bytes), order: Order::C }
}

fn array(dtype: DType, lengths: &[u64]) -> ArrayDesc {
    ArrayDesc::new(dtype, Shape::new(lengths), plain(dtype, lengths))
}

/// An array with these shapes in the frames; `None` if the frame lacks it.
fn framed(dtype: DType, frames: &[Option<&[u64]>]) -> ArrayDesc {
    let cell =
        |lengths: &[u64]| FrameCell { shape: Shape::new(lengths), layout: plain(dtype, lengths) };
    let first = frames.iter().copied().flatten().next().unwrap_or(&[0]);
    let cells = Cells(frames.iter().map(|frame| frame.map(cell)).collect());
    ArrayDesc::new(dtype, Shape::new(first), Layout::PerFrame(Arc::new(cells)))
}

fn axis(tree: &mut Tree, moments: &[(Option<u64>, Option<f64>)]) {
    tree.set_frames(Arc::new(Moments(moments.to_vec())));
}

const STEPS: [(Option<u64>, Option<f64>); 2] = [(Some(5), None), (Some(7), None)];

#[test]
fn files_of_the_format_lose_nothing() {
    let mut files = 0;
    for path in support::files(&["v0.0.1", "code-v0.1.0", "code-v2", "code-v5", "py-5.0.1"]) {
        let content = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
        let lost = assert_declared(&content, &path.display().to_string());
        // Chunks of one name with several element types are arrays with names of their own.
        let renamed = content.tree().iter().any(|(_, node)| node.path.contains('~'));
        assert!(lost.is_empty() || renamed, "{}: {lost:?}", path.display());
        files += 1;
    }
    assert!(files > 50, "{files}");
}

#[test]
fn metadata_that_gsd_lacks_is_declared() {
    let content = build(|tree| {
        tree.push_attr(ROOT, "application", "made up").unwrap();
        tree.push_attr(ROOT, "schema_version", Value::Int(3)).unwrap();
        tree.push_attr(ROOT, "title", "a run").unwrap();
        let group = tree.add_group(ROOT, "fields").unwrap();
        tree.push_attr(group, "note", "x").unwrap();
        tree.add_group(group, "empty").unwrap();
        let x = tree.add_array(group, "x", framed(DType::F32, &[Some(&[3]), Some(&[3])])).unwrap();
        let mut density = framed(DType::I16, &[Some(&[4, 3]), Some(&[2, 3])]);
        density.dims = vec!["y".into(), "x".into()];
        density.coords[1] = Coord::Node(x);
        density.map = Some(Linear::new(1.0, 0.5));
        density.meaning = Some(Box::new(Semantics::role(Role::Field)));
        let density = tree.add_array(group, "density", density).unwrap();
        tree.push_attr(density, "units", "kg/m^3").unwrap();
        axis(tree, &STEPS);
    });
    let lost = assert_declared(&content, "metadata");
    assert_eq!(lost.len(), 10, "{lost:?}");
    // A text that does not fit the header.
    let content = build(|tree| {
        tree.push_attr(ROOT, "application", "x".repeat(64)).unwrap();
        tree.push_attr(ROOT, "schema", "x".repeat(63)).unwrap();
    });
    let lost = assert_declared(&content, "header");
    assert_eq!(lost, [(String::new(), LossKind::Attribute, Some("application".into()))].into());
}

#[test]
fn types_and_shapes_that_gsd_lacks_are_declared() {
    let content = build(|tree| {
        let two = |dtype: &str, lengths: &'static [u64]| {
            framed(dtype.parse().unwrap(), &[Some(lengths), Some(lengths)])
        };
        for (name, array) in [
            ("bool", two("bool8", &[4])),
            ("complex", two("complex64", &[4])),
            ("text", two("text[5]", &[4])),
            ("letter", two("text[1]", &[4])),
            ("scalar", two("float64", &[])),
            ("column", two("float64", &[4, 1])),
            ("wide", framed(DType::U8, &[Some(&[4, 1]), Some(&[4, 2])])),
            ("both", framed(DType::U8, &[Some(&[4]), Some(&[4, 2])])),
            ("none", framed(DType::U8, &[None, None])),
            ("static", array(DType::U8, &[4])),
        ] {
            tree.add_array(ROOT, name, array).unwrap();
        }
        let group = tree.add_group(ROOT, "gone").unwrap();
        tree.add_array(group, "too", framed(DType::U8, &[None, None])).unwrap();
        // Arrays below arrays.
        let parent = tree.add_array(ROOT, "parent", two("float64", &[4])).unwrap();
        tree.add_array(parent, "child", two("float64", &[4])).unwrap();
        axis(tree, &STEPS);
    });
    let lost = assert_declared(&content, "types and shapes");
    let paths: BTreeSet<&str> = lost.iter().map(|(path, ..)| path.as_str()).collect();
    let intact = ["letter", "wide", "parent", "parent/child"];
    assert!(intact.iter().all(|path| !paths.contains(path)), "{lost:?}");
    assert!(lost.contains(&("gone".into(), LossKind::Group, None)), "{lost:?}");
}

#[test]
fn frames_steps_and_times_that_gsd_lacks_are_declared() {
    let frames = |moments: &[(Option<u64>, Option<f64>)], array: ArrayDesc, schema: &str| {
        build(|tree| {
            tree.push_attr(ROOT, "schema", schema).unwrap();
            tree.add_array(ROOT, "x", array).unwrap();
            axis(tree, moments);
        })
    };
    let both = || framed(DType::U8, &[Some(&[4]), Some(&[4])]);
    let first = || framed(DType::U8, &[Some(&[4]), None]);
    let root: BTreeSet<Key> = [(String::new(), LossKind::Frames, None)].into();
    let none = BTreeSet::new();
    let no_steps = [(None, None); 2];
    let times = [(Some(1), Some(0.5)), (Some(2), None)];
    for schema in ["mine", "hoomd"] {
        assert_eq!(assert_declared(&frames(&STEPS, both(), schema), schema), none);
        assert_eq!(assert_declared(&frames(&STEPS, first(), schema), schema), none);
        assert_eq!(assert_declared(&frames(&times, both(), schema), schema), root);
    }
    assert_eq!(assert_declared(&frames(&no_steps, both(), "mine"), "no steps"), none);
    assert_eq!(assert_declared(&frames(&no_steps, first(), "mine"), "a frame less"), root);
    // An array in place of the steps that does not have them.
    let content = build(|tree| {
        let group = tree.add_group(ROOT, "configuration").unwrap();
        tree.add_array(group, "step", framed(DType::F32, &[Some(&[1]), Some(&[1])])).unwrap();
        axis(tree, &STEPS);
    });
    assert_eq!(assert_declared(&content, "steps of another type"), root);
}

#[test]
fn the_hoomd_schema_keeps_names_of_dimensions_and_meaning() {
    let content = |role: Role| {
        build(|tree| {
            tree.push_attr(ROOT, "schema", "hoomd").unwrap();
            let group = tree.add_group(ROOT, "particles").unwrap();
            let meaning = |mesh: Option<NodeId>| {
                let mut meaning = Semantics::role(role);
                (meaning.mesh, meaning.point_set) = (mesh, Some("particles".into()));
                meaning
            };
            let mut position = framed(DType::F32, &[Some(&[4, 3]), Some(&[4, 3])]);
            position.dims = vec!["particle".into(), "xyz".into()];
            let id = tree.add_array(group, "position", position).unwrap();
            let desc = tree.node_mut(id).array.as_mut().unwrap();
            *desc.semantics_mut() = meaning(Some(id));
            let mut mass = framed(DType::F32, &[Some(&[4]), Some(&[4])]);
            mass.dims = vec!["particle".into()];
            tree.add_array(group, "mass", mass.with_semantics(meaning(Some(id)))).unwrap();
            axis(tree, &STEPS);
        })
    };
    assert_eq!(assert_declared(&content(Role::Points), "hoomd"), BTreeSet::new());
    let lost = assert_declared(&content(Role::Field), "other roles");
    assert!(lost.len() == 2 && lost.iter().all(|(_, kind, _)| *kind == LossKind::Meaning));
}

#[test]
fn planning_fails_like_writing() {
    let temp = tempfile::tempdir().unwrap();
    let ragged = Layout::Ragged { starts: [0, 1, 4].into(), data: Extents::one(0, 4) };
    let ragged = ArrayDesc::new(DType::opaque(1), Shape::new([2]), ragged);
    for (name, array, code) in [
        ("cube", array(DType::U8, &[2, 2, 2]), "gsd-032"),
        ("texts", array("text[5]".parse().unwrap(), &[2, 2]), "gsd-032"),
        ("late", framed(DType::U8, &[Some(&[1]), Some(&[1, 1, 1])]), "gsd-032"),
        ("ragged", ragged, "gsd-032"),
        ("half", array("float16".parse().unwrap(), &[2]), "gsd-031"),
        ("n\0ul", array(DType::U8, &[2]), "gsd-037"),
    ] {
        let content = build(|tree| {
            tree.add_array(ROOT, name, array).unwrap();
            axis(tree, &STEPS);
        });
        let planned = Gsd.losses(&content, Path::new("out.gsd")).unwrap_err();
        let path = temp.path().join("out.gsd");
        let written = write_file(&Gsd, &content, &path, Overwrite::Never).unwrap_err();
        assert_eq!((planned.kind(), planned.code()), (ErrorKind::Unsupported, code), "{name}");
        assert_eq!(planned.to_string(), written.to_string());
        assert!(!path.exists());
    }
}

#[test]
fn flattened_datasets_are_restored_completely() {
    let content = build(|tree| {
        tree.push_attr(ROOT, "title", "a run").unwrap();
        let group = tree.add_group(ROOT, "fields").unwrap();
        tree.push_attr(group, "note", "x").unwrap();
        let mut cube = framed(DType::I16, &[Some(&[2, 2, 3]), None]);
        cube.dims = vec!["z".into(), "y".into(), "x".into()];
        cube.coords[2] = Coord::Uniform { start: 1.0, step: 0.5 };
        cube.map = Some(Linear::new(1.0, 0.5));
        tree.add_array(group, "cube", cube.with_semantics(Semantics::role(Role::Field))).unwrap();
        tree.add_array(group, "static", array("complex64".parse().unwrap(), &[4])).unwrap();
        // Elements that are not stored one after the other.
        let layout = Layout::Rows { extents: Extents::one(0, 37), stride: 5, order: Order::F };
        let scattered = FrameCell { shape: Shape::new([2, 2, 2]), layout };
        let scattered = Layout::PerFrame(Arc::new(Cells(vec![None, Some(scattered)])));
        let scattered = ArrayDesc::new(DType::I16, Shape::new([2, 2, 2]), scattered);
        tree.add_array(group, "scattered", scattered).unwrap();
        axis(tree, &[(Some(5), Some(0.5)), (Some(7), Some(0.75))]);
    });
    let capabilities = Gsd.capabilities().unwrap();
    let flat = spile_interchange::flatten(&content, &capabilities).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("flat.gsd");
    write_file(&Gsd, &flat, &path, Overwrite::Never).unwrap();
    let written = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
    assert_eq!(differences(&content, &written).unwrap(), [""; 0]);
}

#[test]
fn missing_values_of_scaled_arrays_are_nan() {
    let mut tree = Tree::new(&Limits::default());
    let values: Vec<u8> = [1_i16, -999, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut desc = ArrayDesc::inline(DType::I16, Shape::new([3]), values);
    desc.map = Some(Linear::new(10.0, 0.5));
    let missing = Missing { values: vec![-999.0], ..Missing::default() };
    let mut semantics = Semantics::default();
    semantics.missing = missing;
    let desc = desc.with_semantics(semantics);
    tree.add_array(ROOT, "temperature", desc).unwrap();
    let content = Dataset::new(Source::memory([]), tree);
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.gsd");
    write_file(&Gsd, &content, &path, Overwrite::Never).unwrap();
    let file = Dataset::open_path(&Gsd, &path, &OpenOptions::default()).unwrap();
    let id = file.tree().find("temperature").unwrap();
    let array = file.array_in_frame(id, 0).unwrap().unwrap();
    let read = array.read_f64(&Selection::all(), Axes::Order(Order::C)).unwrap();
    assert_eq!((read[0], read[2]), (10.5, 11.5));
    assert!(read[1].is_nan(), "{read:?}");
}
